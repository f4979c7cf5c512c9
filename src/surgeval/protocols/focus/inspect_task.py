"""FOCUS as a task of Inspect AI: the same prompts, pictures and rules, asked by Inspect's models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from anyio import to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from surgeval.asking import FrameOptions, ModelFrame, Unanswered, encode_frames, parse_output
from surgeval.models.chat import open_chat
from surgeval.protocols.asked import NO_MEDIA, check_limit
from surgeval.protocols.focus.asking.prompt import PROMPT_VERSION, question_messages
from surgeval.protocols.focus.asking.run import open_media
from surgeval.protocols.focus.method import results_table
from surgeval.protocols.focus.reading.files import as_sources, read_focus
from surgeval.protocols.focus.reading.sources import open_questions
from surgeval.protocols.focus.scoring.judge import ask_judges
from surgeval.protocols.focus.scoring.rules import latency_limit, outcome
from surgeval.protocols.focus.scoring.summary import ResultRow, focus_numbers
from surgeval.protocols.inspect_kit import asking, names_in, one_sentence, required
from surgeval.qa import FlagPolicy, Message, Panel, open_judges
from surgeval.records import Answer, VqaQuestion

__all__ = ["focus", "focus_answer", "focus_numbers_of"]

MAX_TOKENS = 512  # of a reply, as for `surgeval run focus`


@task
def focus(
    data: str = "",
    media: str | None = None,
    frames: int = 8,
    overlay_time: bool = False,
    track: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    text_only: bool = False,
    judge: str | list[str] | None = None,
) -> Task:
    """Questions about an operation, asked and scored as `surgeval run focus` does.

    `data` is a phantom, a folder of requests and references, published rows or `hub:OWNER/NAME`; `media` a folder with
    a video file for every video. Up to `frames` frames are shown, one on the track `frame`, none with `text_only`.
    `limit` and `seed` draw questions evenly from the videos, as a run does. Without `judge` (as for `surgeval score
    focus`) answers in words have no score.
    """
    with one_sentence():
        check_limit(limit)
        latency_limit(track, None)
        shown = FrameOptions(1 if track == "frame" else frames, overlay_time)
        question_set = open_questions(required(data, "focus"), track=track)
        questions, _ = question_set.drawn(limit, seed)
        eyes = open_media(question_set, questions, Path(media) if media else None, looks=not text_only)
        rows = focus_answer(track, names_in(judge))
    by_id = {question.id: question for question in questions}
    look = partial(encode_frames, eyes, options=shown) if eyes else None
    return Task(
        dataset=MemoryDataset([_sample(question) for question in questions], name="focus"),
        solver=asking(partial(_pose, by_id, look)),
        scorer=rows,
        config=GenerateConfig(temperature=0.0, max_tokens=MAX_TOKENS),
        fail_on_error=False,  # a sample whose frame is damaged costs no other its answer
        metadata={"prompt": PROMPT_VERSION, "media": eyes.identity if eyes else NO_MEDIA},
    )


def _pose(
    questions: dict[str, VqaQuestion], look: Callable[[VqaQuestion], Sequence[ModelFrame]] | None, name: str
) -> tuple[Sequence[Message], Sequence[ModelFrame]]:
    seen = look(questions[name]) if look is not None else ()
    return question_messages(questions[name], seen), seen


def _sample(question: VqaQuestion) -> Sample:
    _, requests, references = as_sources([question], ())
    return Sample(
        input=question.text, target=str(question.answer), id=question.id,
        metadata={"request": requests[0], "reference": references[0]},
    )  # fmt: skip


@metric
def focus_numbers_of() -> Metric:
    """Both accuracies and the pre-evaluation score, by the code that `surgeval score focus` runs."""

    def compute(scores: list[SampleScore]) -> Value:
        rows = [score.score.metadata["result"] for score in scores if score.score.metadata]
        results = pl.DataFrame(rows, schema=ResultRow.dtypes())
        scored = focus_numbers(results, limit=None, scheme="cluster", drop_videoless=False, resamples=1, seed=0)
        numbers = {
            "flat_accuracy": scored.flat, "accuracy_mean_of_video_means": scored.video_mean,
            "mean_of_bucket_accuracies": scored.pre_evaluation,
        }  # fmt: skip
        return {name: float("nan") if number is None else number.estimate for name, number in numbers.items()}

    return compute


@scorer(metrics=[focus_numbers_of()])
def focus_answer(track: str | None = None, judge: list[str] | None = None) -> Scorer:
    """Right or wrong by the rules of the challenge; without a score where there is no judgement or no answer."""
    limit = latency_limit(track, None)
    panel = Panel(open_judges(judge, open_chat)) if judge else None

    def decide(request: dict[str, Any], reference: dict[str, Any], answer: Answer) -> dict[str, Any]:
        responses = as_sources((), [answer])[0]
        files = read_focus([request], [reference], responses, timed=limit is not None)
        questions = [question for question, _ in files.questions]
        applied = None if files.untimed else limit
        outcomes = [outcome(question, response, applied, None) for question, response in files.questions]
        judged = ask_judges(questions, outcomes, panel, policy=FlagPolicy.REPORT, compat=None)
        return results_table(questions, judged.outcomes).row(0, named=True)

    async def score(state: TaskState, target: Target) -> Score:
        try:
            reply = parse_output(state.output)
        except Unanswered as error:
            return Score(value=float("nan"), explanation=str(error))
        request, reference = state.metadata["request"], state.metadata["reference"]
        answer = Answer(request["qID"], reply.content, reply.latency)
        result = await to_thread.run_sync(decide, request, reference, answer)
        right = result["correctness"]
        value: Value = float("nan") if right is None else CORRECT if right else INCORRECT
        return Score(value=value, answer=reply.content, explanation=result["reason"], metadata={"result": result})

    return score
