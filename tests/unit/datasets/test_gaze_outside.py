"""A fixation outside the frame is no gaze point in any file: left out, counted, and reported once per file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import Problem, keep_warnings, open_dataset, read_intent_items
from surgeval.datasets.gaze import read_gaze
from surgeval.protocols.intent import score_intent
from surgeval.questions import read_source_records
from surgeval.records import Gaze

LOOKED = [
    {"t": 1.0, "x": 0.5, "y": 0.5, "duration": 0.4},
    {"t": 1.0, "x": 1.2, "y": 0.5, "duration": 0.4},
    {"t": 1.0, "x": 0.5, "y": -0.1, "duration": 0.4},
]
Read = Callable[[Path, list[Problem]], Iterable[tuple[Gaze, ...]]]


def write_lines(path: Path, record: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record | {"id": name, "gaze": LOOKED}) + "\n" for name in ("a", "b")))
    return path


def from_items(folder: Path, problems: list[Problem]) -> Iterable[tuple[Gaze, ...]]:
    item = {"scenario": "s", "cluster": "v", "media": [], "dimension": "spatial", "skill": "absolute",
            "question": "Where?", "options": ["left", "right"], "answer": 0}  # fmt: skip
    path = write_lines(folder / "items.jsonl", item)
    return [item.gaze for item in read_intent_items(path, keep_warnings(problems))]


def from_records(folder: Path, problems: list[Problem]) -> Iterable[tuple[Gaze, ...]]:
    path = write_lines(folder / "records.jsonl", {"scenario": "s", "cluster": "v", "media": ["a.png"]})
    return [record.gaze for record in read_source_records(path, keep_warnings(problems))]


def from_phantom(folder: Path, problems: list[Problem]) -> Iterable[tuple[Gaze, ...]]:
    path = folder / "truth" / "PA1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"gaze": [*LOOKED, *LOOKED]}))
    frame = next(iter(open_dataset(folder).frames("PA1", keep_warnings(problems))))
    return [frame.gaze[:1], frame.gaze[1:]]


@pytest.mark.parametrize("read", [from_items, from_records, from_phantom])
def test_a_fixation_outside_the_frame_is_left_out_counted_and_reported_once(phantom: Path, read: Read) -> None:
    problems: list[Problem] = []
    assert list(read(phantom, problems)) == [(Gaze(1.0, 0.5, 0.5, 0.4),)] * 2
    (problem,) = problems
    assert (problem.kind, problem.level) == ("gaze-range", "warning")
    assert "4 of 6 fixations outside the frame" in problem.sentence
    assert "x 1.2, y 0.5" in problem.sentence  # the first


def test_a_gaze_file_counts_what_lies_outside_the_frame(tmp_path: Path) -> None:
    (tmp_path / "VID01.csv").write_text("t,x,y,duration\n0,0.5,0.5,1\n1,1.2,0.5,1\n2,,,1\n")
    track = read_gaze(tmp_path / "VID01.csv")["VID01"]
    assert (len(track.on_frame()), track.off_frame) == (1, 1)


def test_scores_of_items_name_the_fixations_left_out(tmp_path: Path) -> None:
    from_items(tmp_path, [])
    scores = score_intent([{"id": name, "content": "A"} for name in ("a", "b")], tmp_path)
    assert "4 of 6 fixations outside the frame" in scores.notes[0]
