"""The class names of a YOLO folder, in every spelling that YAML allows, or one sentence on why they cannot be used."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import MemoryDataset, Problem, convert, open_dataset
from surgeval.datasets.formats.class_names import read_class_names
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "class-names" / "data_yaml.json"
DIALECTS = json.loads(GOLDEN.read_text(encoding="utf-8"))


def put(root: Path, text: str, file: str = "data.yaml") -> Path:
    (root / "labels").mkdir(exist_ok=True)
    (root / "labels" / "video_000001.txt").write_text("1 0.5 0.5 0.25 0.5\n")
    (root / file).write_bytes(text.encode())
    return root


def problems(root: Path) -> list[Problem]:
    heard: list[Problem] = []
    open_dataset(root).videos(heard.append)
    return [problem for problem in heard if problem.kind != "images-absent"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=[entry["text"][:40] for entry in DIALECTS])
def test_a_data_yaml_gives_its_names_or_says_why_not(tmp_path: Path, dialect: dict[str, Any]) -> None:
    put(tmp_path, dialect["text"])
    found = problems(tmp_path)
    if isinstance(dialect["names"], str):
        assert [problem.level for problem in found] == [dialect["names"]]
        assert "data.yaml" in found[0].path
    else:
        assert not found
        named = read_class_names(tmp_path, found.append)
        assert named is not None and list(named.names) == dialect["names"]


def test_without_names_the_classes_that_nc_counts_are_numbered(tmp_path: Path) -> None:
    assert open_dataset(put(tmp_path, "nc: 3\n")).space.instruments == ("class 0", "class 1", "class 2")
    assert "class 0 to class 2" in str(problems(tmp_path)[0])


def test_names_of_three_parts_between_commas_are_triplets(tmp_path: Path) -> None:
    put(tmp_path, "names: ['grasper,retract,gallbladder', 'hook, dissect, cystic_duct']\n")
    space = open_dataset(tmp_path).space
    assert space.triplet_names == ("grasper,retract,gallbladder", "hook,dissect,cystic_duct")


@pytest.mark.parametrize(("text", "kind"), [("hook\n\ngrasper\n", "class-names"), ("hook\nHook\n", "class-names")])
def test_a_line_of_classes_txt_that_names_no_class_of_its_own_is_an_error(tmp_path: Path, text: str, kind: str) -> None:
    put(tmp_path, text, "classes.txt")
    assert [(problem.kind, problem.level) for problem in problems(tmp_path)] == [(kind, "error")]


@pytest.mark.parametrize("text", ["names: " + "[" * 500_000, "names:\n" + "- " * 250_000 + "x", "names: [*a, &a x"])
def test_a_hostile_yaml_is_refused_at_once(tmp_path: Path, text: str) -> None:
    put(tmp_path, text)
    started = time.process_time()
    assert [problem.kind for problem in problems(tmp_path)] == ["file-broken"]
    assert time.process_time() - started < 2


def test_written_names_are_read_again_as_they_were(tmp_path: Path) -> None:
    names = ("no", "01", "L'hook", 'grasper "A"', "bag: large", "clip # 2", "钩")
    space = LabelSpace("own", names)
    frame = Frame("V1", "000001", 1, None, None, 80, 40, (Instance(Triplet(6), Box(1, 1, 5, 5)),))
    convert(MemoryDataset(space, [frame]), tmp_path / "out", "yolo5")
    (tmp_path / "out" / "labels.json").unlink()
    assert open_dataset(tmp_path / "out").space.instruments == names
