"""A scored folder is a run: loaded again it is the same result, its page the same bytes, and damage is one sentence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import MemoryDataset
from surgeval.datasets.predictions import ground_truth
from surgeval.engine import Manifest, load_record, save_scored
from surgeval.errors import SurgevalError
from surgeval.protocols.registry import load_run
from surgeval.protocols.triplets import TripletScores, load_triplets, score_triplets
from surgeval.protocols.triplets.page import triplet_sections, write_page_of


def scored(dataset: MemoryDataset, table: pl.DataFrame | None, **options: Any) -> TripletScores:
    return score_triplets(table, dataset, constant=table is None, **{"name": "mine", **options})


def same_numbers(a: TripletScores, b: TripletScores) -> bool:
    """NaN equals NaN here."""
    pairs = zip(a.numbers, b.numbers, strict=True)
    return all(repr(x) == repr(y) for x, y in pairs)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"leave_source_out": True},
    {"folds": {"a": ["v0", "v1"], "b": ["v2", "v3"]}},
    {"components": ["v", "i"]},
    {"split": "test", "threshold_from": "val", "convention": "ivtd"},
    {"task": "recognition"},
    {"task": "recognition", "leave_source_out": True},
    {"task": "recognition", "components": ["i", "iv"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(options) or "default")
def test_a_loaded_run_is_the_result_that_was_stored(
    theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path, options: dict[str, Any]
) -> None:
    result = scored(theatre, None if options.get("task") else good, **options)
    result.save(tmp_path)
    again = load_triplets(tmp_path)
    assert (again.name, again.task, again.settings, again.notes) == (
        result.name, result.task, result.settings, result.notes,
    )  # fmt: skip
    assert again.thresholds == result.thresholds
    assert same_numbers(again, result)
    assert list(again.tables) == list(result.tables)
    for name, table in result.tables.items():
        assert again.tables[name].schema == table.schema, name
        assert again.tables[name].equals(table), name
    assert again.curves == result.curves
    assert again.replicates.keys == result.replicates.keys
    assert again.replicates.values.keys() == result.replicates.values.keys()
    for draw, values in result.replicates.values.items():
        np.testing.assert_array_equal(again.replicates.values[draw], values)
    for component, (confusion, names) in result.confusions.items():
        assert again.confusions[component][1] == names
        np.testing.assert_array_equal(again.confusions[component][0].counts, confusion.counts)


@pytest.mark.figures
@pytest.mark.long  # with sketched figures: test_every_protocol
@pytest.mark.parametrize("task", ["detection", "recognition"])
def test_the_page_of_a_stored_run_is_the_same_to_the_byte(
    theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path, task: str
) -> None:
    result = scored(theatre, good if task == "detection" else None, task=task, leave_source_out=True)
    page = write_page_of([result], result.save(tmp_path / "run").parent)
    again = write_page_of([load_triplets(tmp_path / "run")], tmp_path / "again")
    assert again.read_bytes() == page.read_bytes()
    for folder in ("tables", "figures"):
        files = sorted(path.name for path in (tmp_path / "run" / folder).iterdir())
        assert files == sorted(path.name for path in (tmp_path / "again" / folder).iterdir())
        for name in files:
            assert (tmp_path / "run" / folder / name).read_bytes() == (tmp_path / "again" / folder / name).read_bytes()
    assert not (tmp_path / "again" / "run.json").exists()  # a page elsewhere is not a second run


def test_run_json_says_what_was_scored(theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path) -> None:
    result = scored(theatre, good)
    result.save(tmp_path)
    record = load_record(tmp_path)
    assert (record.protocol, record.model, record.status) == ("triplets", "mine", "done")
    assert record.dataset == result.settings["data"]
    assert record.config["convention"] == "coco"
    assert record.cases == ground_truth(theatre).n_frames == 72
    loaded = load_run(tmp_path)
    assert isinstance(loaded, TripletScores)
    assert loaded.protocol == "triplets"
    assert repr(loaded) == repr(result)
    assert repr(result).startswith("TripletScores 'mine': passes; IVT mAP50 0.")
    assert "\n" not in repr(result)


def test_a_run_of_another_protocol_is_not_overwritten(
    theatre: MemoryDataset, good: pl.DataFrame, tmp_path: Path
) -> None:
    save_scored(tmp_path, Manifest("focus"), cases=1)
    with pytest.raises(SurgevalError, match="holds a run of focus"):
        scored(theatre, good).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_headlines_begin_with_the_triplets_and_know_their_floor(theatre: MemoryDataset, good: pl.DataFrame) -> None:
    detection = scored(theatre, good).headlines()
    labels = [headline.label for headline in detection]
    assert labels[:7] == ["IVT mAP50", "IVT mAP50:95", "IVT F1", "I mAP50", "I mAP75", "V mAP50", "T mAP50"]
    known = {one.label for one in detection if one.baseline is not None}
    assert known == {"IVT mAP50", "I mAP50", "V mAP50", "T mAP50"}  # F1 depends on a threshold: it has no floor
    frames = scored(theatre, None, task="recognition")
    first = frames.headlines()[0]
    assert (first.label, first.key) == ("IVT mAP", "global|ivt|mAP")
    assert {one.chance for one in (*detection, first)} == {None}  # nobody guessed
    assert first.baseline == pytest.approx(ground_truth(theatre).labels.mean(axis=0).mean())
    assert all(not math.isnan(headline.interval.estimate) for headline in frames.headlines())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value; of a long list its first two items."""
    yield path
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value[:2])) if isinstance(value, list) \
        else []  # fmt: skip
    for key, item in items:
        yield from leaves(item, (*path, key))


def put(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The JSON value with something else at one place; `...` takes the place away."""
    if not path:
        return {} if value is ... else value
    *before, last = path
    holder = data
    for key in before:
        holder = holder[key]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return data


@pytest.mark.parametrize("task", ["detection", "recognition"])
@pytest.mark.parametrize("file", ["scores.json", "details.json"])
def test_no_damage_to_a_file_is_a_traceback(
    tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path, file: str, task: str, long: bool
) -> None:
    result = scored(tiny, half if task == "detection" else None, task=task)
    result.save(tmp_path)
    text = (tmp_path / file).read_text()
    spots = list(leaves(json.loads(text)))
    random = np.random.default_rng(5)
    values: tuple[Any, ...] = (..., None, "x", -1, 10**200, math.nan, 1.5, True, [], {}, ["a"], {"a": 1})
    cases = [(spot, value) for spot in spots for value in values]
    chosen = random.choice(len(cases), min(len(cases), 2000 if long else 40), replace=False).tolist()
    refused, broken = [], []
    for number in chosen:
        spot, value = cases[number]
        (tmp_path / file).write_text(json.dumps(put(json.loads(text), spot, value)))
        try:
            again = load_triplets(tmp_path)
            triplet_sections(again, {})
            again.headlines()
            assert again.figures
        except SurgevalError as error:
            refused.append(str(error))
        except Exception as error:  # noqa: BLE001 - each is the defect
            broken.append(f"{spot} = {value!r}: {type(error).__name__}: {error}")
    assert broken == []
    assert len(refused) > len(chosen) / 3
    assert all("\n" not in sentence and len(sentence) < 1000 for sentence in refused)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("details.json", None, "details.json: no such file"),
        ("replicates.parquet", None, "replicates.parquet: no such file"),
        ("details.json", b"[]", "details.json: expected a JSON object"),
        ("scores.json", b"{", "cut off"),
        ("scores.json", b'{"format": 0, "schema": 3}', "Written by an earlier version; run again."),
        ("scores.json", b"[" * 100_000, "nested too deeply"),
        ("scores.json", b"\xff", "not valid UTF-8"),
        ("replicates.parquet", b"PAR1", "not a readable Parquet file"),
    ],
)
def test_a_damaged_file_is_named(
    tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    scored(tiny, half).save(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SurgevalError) as error:
        load_triplets(tmp_path)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["scores.json", "details.json", "replicates.parquet"])
def test_a_named_pipe_is_no_file_to_wait_for(
    tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path, name: str
) -> None:
    scored(tiny, half).save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(SurgevalError, match="a named pipe"):
        load_triplets(tmp_path)


def test_replicates_of_another_score_are_refused(tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path) -> None:
    scored(tiny, half).save(tmp_path / "a")
    scored(tiny, half, components=["i"]).save(tmp_path / "b")
    (tmp_path / "b" / "replicates.parquet").replace(tmp_path / "a" / "replicates.parquet")
    with pytest.raises(SurgevalError, match="expected the 89 numbers"):
        load_triplets(tmp_path / "a")


def test_a_name_that_is_not_utf8_can_be_stored(tiny: MemoryDataset, half: pl.DataFrame, tmp_path: Path) -> None:
    scored(tiny, half, name="bad \udcff name").save(tmp_path)
    assert load_triplets(tmp_path).name == "bad \\udcff name"
