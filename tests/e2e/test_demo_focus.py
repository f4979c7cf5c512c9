"""The demo's chapter on questions: five answerers whose true order is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from surgeval.cli.demo_chapters import ranking_of
from surgeval.datasets import MemoryDataset
from surgeval.protocols.contract import Demo
from surgeval.protocols.focus.demo import SKILLS, NoisyAnswerer, chapter
from surgeval.qa import judge_format
from surgeval.records import VqaQuestion
from surgeval.report import rank
from surgeval.vocab import LabelSpace, capabilities

CHOICE = "Where does it lie? A) upper left B) upper right C) lower left"
ASKED: tuple[
    tuple[str, dict[str, Any], str, tuple[str, str]], ...
] = (  # format, options, text, references of even and odd videos
    ("binary", {}, "Is a clip in view?", ("Yes", "No")),
    ("number", {}, "How many clips are in view?", ("2", "3")),
    ("percentage", {"threshold_pp": 5.0}, "During what share is a sponge in view?", ("22%", "83%")),
    ("fo_class", {}, "Which objects are in view?", ("Clip, Sponge", "None")),
    ("time", {"threshold_seconds": 1.5}, "When is a clip first in view?", ("00:00:05", "00:00:41")),
    ("multiple_choice", {}, CHOICE, ("A) upper left", "B) upper right")),
    ("open_ended", {}, "What is it for?", ("to drain fluid", "to stop bleeding")),
    ("matching", {"pattern": "A-[12], B-[12]"}, "Match A and B with 1 and 2.", ("A-1, B-2", "A-2, B-1")),
)


@pytest.fixture(scope="module")
def questions() -> list[VqaQuestion]:
    made = []
    for video in range(8):
        for leaf in capabilities():
            for format, options, text, answers in ASKED[:: 1 + video % 2]:
                name = f"{video}-{leaf.code}-{format}"
                made.append(VqaQuestion(name, f"v{video}", 0, 60, "x", text, leaf.value, format,
                                        answers[(video // 2) % 2], options))  # fmt: skip
    return made


@pytest.fixture(scope="module")
def dataset(questions: list[VqaQuestion]) -> MemoryDataset:
    return MemoryDataset(LabelSpace("none", ("instrument",)), [], questions=questions)


def test_the_ranking_finds_the_order_that_was_built_in(dataset: MemoryDataset, tmp_path: Path) -> None:
    made = chapter(Demo(dataset=dataset, edition="", out=tmp_path / "focus"))
    assert made.table["answerer"].to_list() == ["oracle", "keen", "vague", "prior", "random"]
    assert made.table["accuracy"][0].startswith("1.000")
    assert made.sentences[0].startswith("keen is better than vague in ")
    assert "worse in 0, by the paired test of a comparison (the ranking's bootstrap" in made.sentences[0]
    assert made.sentences[1] == "better than prior and random: oracle, keen, vague"
    assert made.page.is_file()
    grades = {run.name: json.loads((run / "scores.json").read_text())["verdict"]["grade"] for run in made.runs}
    assert [name for name, grade in grades.items() if grade == "not applicable"] == ["oracle", "prior", "random"]
    assert all((run / "report.html").is_file() for run in made.runs)
    assert json.loads(json.dumps(made.to_json()))["runs"]
    assert made.ranking is not None
    ranking = rank(made.runs, baselines=made.ranking["baselines"])
    assert [name for place in ranking.final_order for name in place][:3] == ["oracle", "keen", "vague"]
    assert ranking.gate is not None
    assert [name for name, beats in ranking.gate.final.items() if beats] == ["oracle", "keen", "vague"]
    told = ranking_of(replace(made, ranking={**made.ranking, "outer": 4}), tmp_path / "ranking")
    assert told.feedback.is_file() and "late" in told.page.read_text()
    assert told.table.columns[:3] == ["place", "model", "ahead of the next by"]
    assert json.loads((tmp_path / "ranking/ranking.json").read_text())["statuses"][0]["late"] == 0
    teams = sorted(path.parent.name for path in (tmp_path / "ranking/feedback").glob("*/feedback.html"))
    assert teams == ["keen", "oracle", "vague"]


@pytest.mark.parametrize(("skill", "share"), [(0.0, 0.0), (1.0, 1.0)])
def test_a_noisy_answerer_is_wrong_in_the_asked_format(
    questions: list[VqaQuestion], skill: float, share: float
) -> None:
    one = NoisyAnswerer("x", dict.fromkeys(SKILLS["keen"], skill), questions)
    states = set()
    right = []
    for question in questions:
        said = one.answer(question).content
        verdict = judge_format(question.format, dict(question.format_options), question.answer, said)
        states.add(verdict.state)
        right.append(said == question.answer if verdict.state == "judge" else verdict.correct)
        assert one.answer(question).content == said
    assert "invalid" not in states
    assert right.count(True) == share * len(questions)
