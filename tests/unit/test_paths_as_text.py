"""Whoever writes `"runs/a"` is understood: every exported function that takes a path takes it as text too."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.test_public_examples import packages

from surgeval import datasets, detector, engine, explain, figures, files, pages, questions, report
from surgeval.errors import DataError
from surgeval.figures import Series
from surgeval.records import Frame, Video
from surgeval.studio.exchange import StudioDataset, export_project, import_dataset, preview_export, preview_import
from surgeval.studio.store import Database, Request, apply
from surgeval.vocab import load_labels


class _Later(type):
    """Stands for a name that is imported for type checkers only; it is no path."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item: object) -> type:
        return cls


def hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters."""
    later: dict[str, Any] = {}
    while True:
        try:
            known = typing.get_type_hints(function, localns=later)
        except NameError as error:
            later[str(error.name)] = _Later(str(error.name), (), {})
        else:
            return {name: hint for name, hint in known.items() if name != "return"}


def wants_a_path(hint: Any) -> bool:
    """Whether an annotation, or what it is a sequence or mapping of, admits a Path where it does not admit its text."""
    if hint is Path:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is collections.abc.Callable:  # called by us, with a Path
        return False
    if origin in (typing.Union, types.UnionType) and Path in inner:
        return str not in inner or any(wants_a_path(one) for one in inner if one is not Path)
    return any(wants_a_path(one) for one in inner)


def public_callables(room: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that a package exports, and how its exported classes are made.

    Results and records (dataclasses) hold a Path and are made by functions.
    """
    home = import_module(room)
    for name in getattr(home, "__all__", ()):
        value = getattr(home, name)
        if not str(getattr(value, "__module__", "")).startswith("surgeval"):
            continue
        if inspect.isfunction(inspect.unwrap(value)):
            yield name, inspect.unwrap(value)
        elif inspect.isclass(value):
            for way, function in vars(value).items():
                if isinstance(function, classmethod | staticmethod) and not way.startswith("_"):
                    yield f"{name}.{way}", function.__func__
                elif way == "__init__" and inspect.isfunction(function) and function.__code__.co_filename != "<string>":
                    yield name, function


def test_every_exported_function_takes_a_path_as_text() -> None:
    deaf = [
        f"{room}.{name}({parameter})"
        for room in packages()
        for name, function in public_callables(room)
        for parameter, hint in hints(function).items()
        if wants_a_path(hint)
    ]
    assert not deaf, f"annotated Path without str: {', '.join(deaf)}"


@pytest.mark.parametrize(
    ("hint", "deaf"),
    [
        (Path, True),
        (Path | None, True),
        (collections.abc.Sequence[Path], True),
        (collections.abc.Mapping[str, Path] | None, True),
        (str | Path, False),
        (str | Path | None, False),
        (collections.abc.Sequence[str | Path], False),
        (collections.abc.Callable[[Path], None], False),
        (str | None, False),
    ],
)
def test_what_counts_as_deaf(hint: Any, deaf: bool) -> None:
    assert wants_a_path(hint) is deaf


def test_constructors_and_classmethods_are_among_them() -> None:
    assert {"MemoryDataset", "MergeMap.load", "cut_frames"} <= {
        name for name, _ in public_callables("surgeval.datasets")
    }
    assert "load_run" in dict(public_callables("surgeval"))


def test_files_of_text_names(tmp_path: Path) -> None:
    file = f"{tmp_path}/new/scores.json"
    files.make_folder(f"{tmp_path}/new")
    files.write_atomically(file, b'{"a": 1}')
    assert files.read_json_object(file) == {"a": 1}
    assert files.path_inside(str(tmp_path), "new", "scores.json") == Path(file)
    with files.folder_lock(str(tmp_path)):
        assert (tmp_path / files.LOCK).is_file()
    assert files.remove_temporary(str(tmp_path)) == 0
    pl.DataFrame({"score": [0.5]}).write_parquet(tmp_path / "scores.parquet")
    assert files.read_parquet_file(f"{tmp_path}/scores.parquet")["score"].to_list() == [0.5]


def test_pages_and_figures_of_text_names(tmp_path: Path) -> None:
    dataset = datasets.MemoryDataset(
        load_labels("cholec80"), [Frame("V1", "1", 0, None, None, 64, 48)], [Video("V1")], media_root=str(tmp_path)
    )
    assert dataset.media_root == tmp_path
    page = report.write_dataset_page(dataset, f"{tmp_path}/page")
    assert page == tmp_path / "page" / "report.html"
    assert page.is_file()
    saved = figures.bars("Frames", ("V1",), (Series("train", (1.0,)),), "frames").save(f"{tmp_path}/frames.svg")
    assert saved == tmp_path / "frames.svg"
    assert pages.save_tables({"videos": pl.DataFrame({"video": ["V1"]})}, f"{tmp_path}/tables")[0].is_file()


def test_runs_of_text_names(tmp_path: Path) -> None:
    results = "qID,video,group,ood,correctness\nq1,VID01,verb,False,1\n"
    (tmp_path / "net.csv").write_text(results)
    assert list(report.ranking.read_outcomes_of([f"{tmp_path}/net.csv"])) == ["net"]
    manifest = engine.Manifest("toy", model="net")
    assert engine.save_scored(f"{tmp_path}/run", manifest, cases=3).cases == 3
    assert engine.load_record(f"{tmp_path}/run").cases == 3


def test_questions_of_text_names(tmp_path: Path) -> None:
    record = questions.SourceRecord("a", "chest_xray", "p1", ("a.png",))
    (tmp_path / "a.png").touch()
    (tmp_path / "items.jsonl").touch()
    questions.write_source_records(f"{tmp_path}/records.jsonl", [record])
    assert [one.id for one in questions.read_source_records(f"{tmp_path}/records.jsonl")] == ["a"]
    opened = questions.open_set(str(tmp_path), f"{tmp_path}/records.jsonl")
    assert (opened.folder, list(opened.records)) == (tmp_path, ["a"])


def test_a_detector_of_a_text_name(tmp_path: Path) -> None:
    import torch

    detector.save_state(f"{tmp_path}/last.safetensors", {"step": torch.tensor([7])}, {"epoch": 3})
    assert detector.load_state(f"{tmp_path}/last.safetensors")[1] == {"epoch": 3}
    with pytest.raises(DataError, match=r"best\.pt: found no such file"):
        detector.load_detector("no/best.pt")


def test_flow_of_a_text_name(tmp_path: Path) -> None:
    assert explain.open_flow("files", folder=str(tmp_path)).record()["folder"] == str(tmp_path)


def test_the_studio_exchanges_with_text_names(tmp_path: Path) -> None:
    with Database(f"{tmp_path}/studio.sqlite") as database:
        apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
        assert preview_export(str(tmp_path), database, "coco").instances == 0
        made = export_project(str(tmp_path), database, "first", "coco", images=False)
        assert made.folder == tmp_path / "exports" / "first"
        assert preview_import(database, str(made.folder)).frames == 0
        assert import_dataset(database, str(made.folder), author="amy").instances == 0
    assert [video.name for video in StudioDataset(str(tmp_path)).videos()] == ["V1"]
