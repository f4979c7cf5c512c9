"""Clinical intent as a task of Inspect AI: the same items, prompts, pictures and reading, asked by Inspect's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from surgeval.asking import FrameOptions, ModelFrame, Unanswered, parse_output
from surgeval.errors import BadInput
from surgeval.protocols.asked import check_limit
from surgeval.protocols.inspect_kit import asking, names_in, one_sentence, required
from surgeval.protocols.intent.asking.conditions import (
    asked_first,
    chosen_interventions,
    of_split,
    own_option,
    stratified,
)
from surgeval.protocols.intent.asking.gaze import GazeMode
from surgeval.protocols.intent.asking.look import Eyes, Seeing
from surgeval.protocols.intent.asking.prompt import PROMPT_VERSION, item_messages
from surgeval.protocols.intent.asking.run import MAX_TOKENS
from surgeval.protocols.intent.cases import AnswerRow, split_id
from surgeval.protocols.intent.items import open_items
from surgeval.protocols.intent.scoring.estimates import estimate_of
from surgeval.protocols.intent.scoring.interventions import under
from surgeval.protocols.intent.scoring.scores import PLAIN, answers_of, scored_cells
from surgeval.protocols.intent.scoring.weights import NUMBERS
from surgeval.qa import Message, option_letters, read_choice
from surgeval.records import IntentQuestion

__all__ = ["intent", "intent_choice", "intent_numbers"]

_KEPT = ("scenario", "cluster", "dimension", "skill", "trap", "twin", "untrapped")  # of an item, beside its sample


@task
def intent(
    data: str = "",
    conditions: str | list[str] = "plain,gaze,text-only",
    gaze: GazeMode = "mark",
    frames: int = 8,
    split: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Task:
    """Multiple-choice items about what a clinician does and why, asked and scored as `surgeval run intent` does.

    `data` is an `items.jsonl`, a folder that holds one, or a phantom. `conditions` are `plain`, which is always asked,
    and any of `gaze`, `text-only`, `order` and `wrong-gaze`. `gaze`, `frames`, `split`, `limit` and `seed` are those of
    `surgeval run intent`.
    """
    with one_sentence():
        check_limit(limit)
        seeing = Seeing(FrameOptions(frames=frames, longest_edge=1024, quality=90), gaze)
        part, _ = of_split(open_items(required(data, "intent")), split)
        item_set, subset = stratified(part, limit, seed)
        questions = asked_first(item_set, _interventions(names_in(conditions)), looks=True)
        eyes = Eyes(item_set.dataset, item_set.items, seeing)
    by_id = {question.id: question for question in questions}
    return Task(
        dataset=MemoryDataset([_sample(question) for question in questions], name="intent"),
        solver=asking(partial(_pose, by_id, eyes, gaze)),
        scorer=intent_choice(),
        config=GenerateConfig(temperature=0.0, max_tokens=MAX_TOKENS, seed=seed),
        fail_on_error=False,  # a sample whose picture is damaged costs no other its answer
        metadata={"prompt": PROMPT_VERSION, "media": eyes.media.identity, "subset": subset},
    )


def _interventions(conditions: list[str]) -> tuple[Any, ...]:
    others = [name for name in conditions if name != PLAIN]
    if "again" in others:
        raise BadInput("conditions: found again, expected what is known before the first answer: plain, gaze, "
                       "text-only, order or wrong-gaze")  # fmt: skip
    return chosen_interventions(",".join(others) or "none")


def _pose(
    questions: Mapping[str, IntentQuestion], eyes: Eyes, gaze: GazeMode, name: str
) -> tuple[Sequence[Message], Sequence[ModelFrame]]:
    seen = eyes(questions[name])
    return item_messages(questions[name], seen, gaze=gaze), seen


def _sample(question: IntentQuestion) -> Sample:
    item, condition = split_id(question.id)
    return Sample(
        input=question.question, choices=list(question.options),
        target=option_letters(len(question.options))[question.answer],
        id=question.id,
        metadata={
            "item": item, "condition": condition, "options": list(question.options), "answer": question.answer,
            "labels": list(question.labels), **{name: getattr(question, name) for name in _KEPT},
        },
    )  # fmt: skip


def _question(name: str, known: Mapping[str, Any]) -> IntentQuestion:
    """An item out of the metadata of a sample, as far as scoring needs it."""
    return IntentQuestion(
        name, media=(), question="", options=tuple(known["options"]), answer=known["answer"],
        labels=tuple(known["labels"]), **{field: known[field] for field in _KEPT},
    )  # fmt: skip


@metric
def intent_numbers() -> Metric:
    """Competency and reliability of the plain condition, by the code that `surgeval score intent` runs."""

    def compute(scores: list[SampleScore]) -> Value:
        read = [(score.sample_metadata, score.score.metadata) for score in scores]
        plain = [(known, row) for known, row in read if known and row and row["condition"] == PLAIN]
        items = [_question(known["item"], known) for known, _ in plain]
        schema = {name: dtype for name, dtype in AnswerRow.dtypes().items() if name != "cluster"}
        answers = answers_of(items, pl.DataFrame([row for _, row in plain], schema=schema))
        cells = under(scored_cells(items, answers), PLAIN)
        intervals = {number: estimate_of(cells, number) for number in NUMBERS}
        return {number: interval.estimate for number, interval in intervals.items() if interval is not None}

    return compute


@scorer(metrics=[intent_numbers()])
def intent_choice() -> Scorer:
    """Whether the option that a reply chooses is the right one; a reply in which none can be read is wrong."""

    async def score(state: TaskState, target: Target) -> Score:
        try:
            reply = parse_output(state.output)
        except Unanswered as error:
            return Score(value=float("nan"), explanation=str(error))
        question = _question(str(state.sample_id), state.metadata)
        choice = read_choice(reply.content, question.options)
        item, condition = split_id(question.id)
        row = {
            "id": question.id, "status": "ok", "reason": "", "item": item, "condition": condition,
            "choice": own_option(question, choice.index), "strict": own_option(question, choice.strict),
            "reading": str(choice.reading),
        }  # fmt: skip
        return Score(
            value=CORRECT if choice.index == question.answer else INCORRECT,
            answer=None if choice.index is None else option_letters(len(question.options))[choice.index],
            explanation=f"{choice.reading}: {reply.content}",
            metadata=row,
        )

    return score
