"""The demo's chapter on questions: five answerers of the phantom's FOCUS questions, scored, reported and ranked.

Three are reference rows, which are shown no picture; their pages say so. Two are simulated models, scored like files of
answers. They are right with a probability by capability group, so the truth about them is known: `keen` is the better
one in every group, by 10 to 30 points.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.console import progress_bar
from surgeval.protocols.contract import Chapter, Demo

if TYPE_CHECKING:
    from surgeval.asking import Answerer, ModelAnswer, ModelFrame
    from surgeval.protocols.focus.result import FocusScores
    from surgeval.records import VqaQuestion

SKILLS: dict[str, dict[str, float]] = {
    "keen": {
        "object_recognition": 0.95, "aggregation": 0.9, "event_understanding": 0.85, "temporal_grounding": 0.8,
        "complex_reasoning": 0.7,
    },
    "vague": {
        "object_recognition": 0.75, "aggregation": 0.6, "event_understanding": 0.65, "temporal_grounding": 0.6,
        "complex_reasoning": 0.6,
    },
}  # fmt: skip
BASELINES = ("prior", "random")
RESAMPLES, OUTER, INNER = 500, 50, 300  # enough to see what the pages show; your own models deserve the defaults
_TRIES = 50


class NoisyAnswerer:
    """Right with a probability by capability group, else wrong in a plausible way; the same for a question always."""

    uses_images = cache_answers = False

    def __init__(self, name: str, skill: Mapping[str, float], questions: Sequence[VqaQuestion]) -> None:
        from surgeval.vocab import capabilities

        self.identity = name
        self._skill = {leaf.value: skill[leaf.group] for leaf in capabilities()}
        self._said: dict[str, list[str]] = {}
        for question in questions:
            self._said.setdefault(question.format, []).append(question.answer)

    def answer(self, question: VqaQuestion, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        """The reference, or something else of its format."""
        from surgeval.asking import ModelAnswer

        dice = random.Random(f"{self.identity}\0{question.id}")
        right = dice.random() < self._skill[question.primary]
        return ModelAnswer(question.answer if right else self._wrong(question, dice), round(dice.uniform(0.5, 3), 2))

    def _wrong(self, question: VqaQuestion, dice: random.Random) -> str:
        """What other questions are answered, where answers are texts or classes; else a guess that misses."""
        from surgeval.asking import RandomAnswerer

        for _ in range(_TRIES):
            if question.format in ("open_ended", "fo_class"):
                answer = dice.choice(self._said[question.format])
            else:
                answer = RandomAnswerer(dice.randrange(1 << 30)).answer(question).content
            if _misses(question, answer):
                return answer
        return "none"


def _misses(question: VqaQuestion, answer: str) -> bool:
    from surgeval.qa import judge_format

    verdict = judge_format(question.format, dict(question.format_options), question.answer, answer)
    return answer != question.answer if verdict.state == "judge" else verdict.state == "mismatch"


def chapter(demo: Demo) -> Chapter:
    """Let five answerers answer the dataset's questions, score each into a run folder; the demo ranks them."""
    import polars as pl

    from surgeval.protocols.focus.method import score_focus
    from surgeval.protocols.focus.page import write_page_of
    from surgeval.protocols.focus.reading.files import as_sources
    from surgeval.qa import ExactJudge, Panel
    from surgeval.records import Answer, VqaQuestion

    out = demo.out
    questions = [question for question in demo.dataset.questions() if isinstance(question, VqaQuestion)]
    scored: dict[str, FocusScores] = {}
    pages: dict[str, Path] = {}
    judge = Panel([ExactJudge()])
    answerers = _answerers(questions)
    with progress_bar("answerers") as bar:
        for name, answerer in bar.track(answerers.items(), "answering", len(answerers)):
            replies = [(question, answerer.answer(question)) for question in questions]
            answers = [Answer(question.id, reply.content, reply.latency) for question, reply in replies]
            scored[name] = score_focus(
                *as_sources(questions, answers),
                judge=judge,
                track="segment",
                concurrency=1,
                resamples=RESAMPLES,
                name=name,
                pictured=None if name in SKILLS else False,
            )
            if name not in SKILLS:
                scored[name] = replace(scored[name], asked_model=name)
            folder = out / name
            scored[name].save(folder)
            pages[name] = write_page_of([scored[name]], folder)
    rows = [
        {"answerer": name, "accuracy": str(scores.flat), "score over buckets": str(scores.pre_evaluation)}
        for name, scores in scored.items()
    ]
    return Chapter(
        title="five answerers of its questions, scored and ranked",
        page=pages["keen"],
        runs=tuple(out / name for name in scored),
        table=pl.DataFrame(rows),
        sentences=_sentences(scored),
        ranking={"baselines": BASELINES, "outer": OUTER, "resamples": INNER},
    )


def _sentences(scored: Mapping[str, FocusScores]) -> tuple[str, str]:
    """Which models differ significantly, by paired differences over the same videos."""
    from surgeval.protocols.comparison import Comparison, compare_pair
    from surgeval.protocols.focus.compare import pair_focus

    def compared(a: str, b: str) -> Comparison:
        return compare_pair(scored[a], scored[b], pair_focus(scored[a], scored[b]), resamples=RESAMPLES)

    numbers = compared("keen", "vague").numbers
    buckets = [number.difference for number in numbers if number.key.startswith("bucket/")]
    ahead = sum(bucket.significant and bucket.estimate > 0 for bucket in buckets)
    behind = sum(bucket.significant and bucket.estimate < 0 for bucket in buckets)

    def beats(name: str, baseline: str) -> bool:
        return compared(name, baseline).difference("pre_evaluation_score").interval.low > 0

    better = [name for name in scored if name not in BASELINES and all(beats(name, other) for other in BASELINES)]
    return (
        f"keen is better than vague in {ahead} of {len(buckets)} buckets, worse in {behind}, by the paired test of "
        "a comparison (the ranking's bootstrap may tell more of them apart)",
        f"better than {' and '.join(BASELINES)}: {', '.join(better) or 'none'}",
    )


def _answerers(questions: list[VqaQuestion]) -> dict[str, Answerer[VqaQuestion]]:
    from surgeval.asking import Oracle, PriorAnswerer, RandomAnswerer

    noisy = {name: NoisyAnswerer(name, skill, questions) for name, skill in SKILLS.items()}
    return {"oracle": Oracle(), **noisy, "prior": PriorAnswerer(questions), "random": RandomAnswerer()}
