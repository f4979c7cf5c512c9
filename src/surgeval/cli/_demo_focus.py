"""The demo's chapter on questions: five answerers of the phantom's FOCUS questions, scored, reported and ranked.

None of them looks at a frame. Two are simulated models that are right with a probability by capability group, so the
truth about them is known: `keen` is the better one in every group, by 10 to 30 points.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeval.cli._console import progress

if TYPE_CHECKING:
    import polars as pl

    from surgeval.datasets import Dataset
    from surgeval.protocols.focus import Answered, Answerer, FocusScores, Picture
    from surgeval.records import VqaQuestion
    from surgeval.stats import Ranking

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


@dataclass(frozen=True)
class FocusChapter:
    """What the chapter made: pages, a folder per answerer, and a small table to print."""

    page: Path
    pages: dict[str, Path]
    table: pl.DataFrame
    sentences: tuple[str, ...]
    ranking: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        pages = {name: str(page) for name, page in self.pages.items()}
        return {"report": str(self.page), "pages": pages, "answerers": self.table.to_dicts(), "ranking": self.ranking}


class NoisyAnswerer:
    """Right with a probability by capability group, else wrong in a plausible way; the same for a question always."""

    looks = costly = False

    def __init__(self, name: str, skill: Mapping[str, float], questions: Sequence[VqaQuestion]) -> None:
        from surgeval.vocab import capabilities

        self.identity = name
        self._skill = {leaf.value: skill[leaf.group] for leaf in capabilities()}
        self._said: dict[str, list[str]] = {}
        for question in questions:
            self._said.setdefault(question.format, []).append(question.answer)

    def answer(self, question: VqaQuestion, pictures: Sequence[Picture] = ()) -> Answered:
        """The reference, or something else of its format."""
        from surgeval.protocols.focus import Answered

        dice = random.Random(f"{self.identity}\0{question.id}")
        right = dice.random() < self._skill[question.primary]
        return Answered(question.answer if right else self._wrong(question, dice), round(dice.uniform(0.5, 3), 2))

    def _wrong(self, question: VqaQuestion, dice: random.Random) -> str:
        """What other questions are answered, where answers are texts or classes; else a guess that misses."""
        from surgeval.protocols.focus import RandomAnswerer

        for _ in range(_TRIES):
            if question.format in ("open_ended", "fo_class"):
                said = dice.choice(self._said[question.format])
            else:
                said = RandomAnswerer(dice.randrange(1 << 30)).answer(question).content
            if _misses(question, said):
                return said
        return "none"


def _misses(question: VqaQuestion, said: str) -> bool:
    from surgeval.qa import judge_format

    verdict = judge_format(question.format, dict(question.format_options), question.answer, said)
    return said != question.answer if verdict.state == "judge" else verdict.state == "mismatch"


def focus_chapter(dataset: Dataset, out: Path) -> FocusChapter:
    """Let five answerers answer the dataset's questions; score them, rank them and write pages below `out`."""
    from surgeval.protocols.focus import as_sources, score_focus
    from surgeval.qa.judge import ExactJudge, Panel
    from surgeval.records import Answer, VqaQuestion
    from surgeval.report import FocusReport, study_ranking, write_focus_report, write_ranking_report
    from surgeval.stats import rank

    questions = [question for question in dataset.questions() if isinstance(question, VqaQuestion)]
    scored: dict[str, FocusScores] = {}
    pages: dict[str, Path] = {}
    judge = Panel([ExactJudge()])
    with progress("answerers") as bar:
        for name, one in bar.track(_answerers(questions).items(), description="answering"):
            given = [(question, one.answer(question)) for question in questions]
            answers = [Answer(question.id, said.content, said.latency) for question, said in given]
            scored[name] = score_focus(
                *as_sources(questions, answers), judge=judge, track="segment", workers=1, resamples=RESAMPLES
            )
            pages[name] = write_focus_report(FocusReport(scored[name], name), out / name)
    ranking = rank({name: one.results for name, one in scored.items()}, baselines=BASELINES)
    study = study_ranking(ranking, outer=OUTER, n_boot=INNER)
    page = write_ranking_report(study, out / "ranking", title="Five answerers of the phantom's questions")
    kept = ("models", "copeland", "final_rank", "final_order", "bucket_rank", "win_rate")
    plain = ranking.to_json()
    return FocusChapter(
        page, pages, _table(ranking, scored), _sentences(ranking), {key: plain[key] for key in kept if key in plain}
    )


def _answerers(questions: list[VqaQuestion]) -> dict[str, Answerer]:
    from surgeval.protocols.focus import Oracle, PriorAnswerer, RandomAnswerer

    noisy = {name: NoisyAnswerer(name, skill, questions) for name, skill in SKILLS.items()}
    return {"oracle": Oracle(), **noisy, "prior": PriorAnswerer(questions), "random": RandomAnswerer()}


def _table(ranking: Ranking, scored: Mapping[str, FocusScores]) -> pl.DataFrame:
    import polars as pl

    rows = []
    for place, model, copeland in ranking.table().select("place", "model", "copeland").iter_rows():
        one = scored[model]
        rows.append({
            "place": place, "answerer": model, "Copeland": copeland, "accuracy": str(one.flat),
            "score over buckets": str(one.pre_evaluation),
        })  # fmt: skip
    return pl.DataFrame(rows)


def _sentences(ranking: Ranking) -> tuple[str, ...]:
    """What is told apart, and what is not, about the two simulated models."""
    first, second = (ranking.models.index(name) for name in SKILLS)
    ahead, behind = int(ranking.wins[first, second]), int(ranking.wins[second, first])
    told = f"keen is better than vague in {ahead} of {len(ranking.buckets)} buckets, worse in {behind}"
    admitted = [name for name, passed in (ranking.gate.final if ranking.gate else {}).items() if passed]
    return (
        f"{told}; the others do not tell them apart",
        f"better than {' and '.join(BASELINES)}: {', '.join(admitted)}",
    )
