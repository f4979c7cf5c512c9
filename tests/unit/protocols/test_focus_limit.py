"""A part of the questions is a part of every video, the same each time, and known as a part."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from surgeval.errors import RunError
from surgeval.protocols.focus import run_focus
from surgeval.protocols.focus.reading.files import as_sources
from surgeval.protocols.focus.reading.sources import FocusSet
from surgeval.records import VqaQuestion

# As files have them: all questions of the first video, then all of the next; the last one has few.
ASKED = tuple(
    VqaQuestion(f"v{video}q{number:02}", f"v{video}", 0, 9, "cholecystectomy", "How many?", "3a", "number", "3")
    for video, count in enumerate((20, 20, 20, 20, 2))
    for number in range(count)
)


def test_a_limit_takes_as_many_questions_of_each_video() -> None:
    drawn, label = FocusSet(ASKED).drawn(12)
    assert set(Counter(question.video for question in drawn).values()) == {2, 3}
    assert len(drawn) == 12
    assert drawn == tuple(question for question in ASKED if question in drawn)  # in the order of the set
    assert label == "12 of 82 questions, drawn evenly from the videos (seed 0)"
    many = Counter(question.video for question in FocusSet(ASKED).drawn(50)[0])
    assert many == {"v0": 12, "v1": 12, "v2": 12, "v3": 12, "v4": 2}


def test_fewer_questions_than_videos_are_not_those_of_the_first_ones() -> None:
    firsts = {FocusSet(ASKED).drawn(1, seed)[0][0].video for seed in range(40)}
    assert firsts == {"v0", "v1", "v2", "v3", "v4"}


def test_a_draw_hangs_on_its_seed_alone_and_a_larger_one_keeps_the_smaller() -> None:
    whole = FocusSet(ASKED)
    assert whole.drawn(12) == FocusSet(ASKED).drawn(12)
    assert whole.drawn(12, 1)[0] != whole.drawn(12)[0]
    for smaller, larger in ((1, 2), (7, 30), (30, 81)):
        few, more = ({question.id for question in whole.drawn(count)[0]} for count in (smaller, larger))
        assert few < more


def test_all_questions_are_no_part() -> None:
    assert FocusSet(ASKED).drawn(None) == FocusSet(ASKED).drawn(82) == FocusSet(ASKED).drawn(99) == (ASKED, "")


def test_a_run_keeps_the_questions_it_began_with(tmp_path: Path) -> None:
    for name, rows in zip(("responses", "requests", "references"), as_sources(ASKED, []), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    run = run_focus(tmp_path, "oracle", tmp_path / "run", limit=10, progress=False)
    assert run.answers["video"].n_unique() == 5
    assert run.subset in str(run)
    before = (tmp_path / "run" / "requests.json").read_bytes()
    for other in ({"limit": 20}, {"limit": 10, "seed": 1}, {}):
        with pytest.raises(RunError, match="other settings"):
            run_focus(tmp_path, "oracle", tmp_path / "run", progress=False, **other)  # type: ignore[arg-type]
    assert (tmp_path / "run" / "requests.json").read_bytes() == before
    again = run_focus(tmp_path, "oracle", tmp_path / "run", limit=10, progress=False)
    assert again.answers.equals(run.answers)
