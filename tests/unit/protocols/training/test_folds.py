"""A detector over folds: trained once per fold, tested on what it never saw, scored as the triplets protocol scores."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.unit.protocols.training.conftest import FOLDS, simulated

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput, RunError, SurgevalError
from surgeval.phantom import simulate_detector
from surgeval.protocols.training.curves import load_training_folder
from surgeval.protocols.training.method import run_training
from surgeval.protocols.training.page import write_page_of
from surgeval.protocols.training.result import TrainingScores, load_training
from surgeval.protocols.training.stored import PlanFile, load_fold
from surgeval.protocols.training.tables import paper_tables
from surgeval.protocols.triplets import score_triplets


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folds")


@pytest.fixture(scope="module")
def good_run(home: Path, theatre: MemoryDataset) -> TrainingScores:
    made = run_training(theatre, simulated("good"), home / "good", scheme=FOLDS, pages=False)
    assert made is not None
    return made


def test_folds_are_scored_as_one_file_of_predictions_is(good_run: TrainingScores, theatre: MemoryDataset) -> None:
    whole = score_triplets(simulate_detector(theatre, "good"), theatre, folds=FOLDS)
    assert good_run.scores.number("ivt") == whole.number("ivt")
    rows = good_run.tables["folds"]
    values = rows.filter(pl.col("test videos").is_not_null())["mAP50"].to_numpy()
    assert rows.filter(pl.col("fold") == "mean")["mAP50"].item() == pytest.approx(values.mean())
    assert rows.filter(pl.col("fold") == "std")["mAP50"].item() == pytest.approx(np.std(values, ddof=1))
    assert rows["frames per second"].to_list()[:3] == [48.0] * 3


@pytest.mark.parametrize("name", ["folds", "folds/a", "folds/a/training", "scores"])
def test_folds_stay_inside_their_folder(name: str, tmp_path: Path, theatre: MemoryDataset) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "run" / name
    elsewhere.mkdir()
    run_training(theatre, simulated("good"), tmp_path / "run", scheme=FOLDS, only=[])  # only the plan
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    with pytest.raises(BadInput, match=f"{name}: is a link"):
        run_training(theatre, simulated("good"), tmp_path / "run", scheme=FOLDS, pages=False)
    assert list(elsewhere.iterdir()) == []


def test_a_finished_fold_is_not_trained_again(good_run: TrainingScores, home: Path, theatre: MemoryDataset) -> None:
    trained: list[str] = []
    method = simulated("good", trained=trained)
    again = run_training(theatre, method, home / "good", scheme=FOLDS, pages=False)
    assert trained == [] and again is not None
    assert repr(again.scores.numbers) == repr(good_run.scores.numbers)  # some have no interval: NaN equals nothing
    (home / "good" / "folds" / "b" / "fold.json").unlink()  # as if its process had been killed
    run_training(theatre, method, home / "good", scheme=FOLDS, only=["b"])
    assert trained == ["b"]


def test_jobs_train_folds_apart_and_one_call_scores(tmp_path: Path, theatre: MemoryDataset) -> None:
    trained: list[str] = []
    for name in ("c", "a", "b"):
        method = simulated("good", trained=trained)
        assert run_training(theatre, method, tmp_path / "jobs", scheme=FOLDS, only=[name]) is None
        assert not (tmp_path / "jobs" / "run.json").exists()
    assert trained == ["c", "a", "b"]


def test_another_detector_scheme_or_dataset_is_refused(good_run: TrainingScores, home: Path, theatre: MemoryDataset,
                                                       tiny: MemoryDataset) -> None:  # fmt: skip
    with pytest.raises(RunError, match="found folds of another method"):
        run_training(theatre, simulated("fair"), home / "good", scheme=FOLDS)
    with pytest.raises(RunError, match="found folds of another scheme"):
        run_training(theatre, simulated("good"), home / "good", scheme="sources")
    with pytest.raises(RunError, match="another data"):
        run_training(tiny, simulated("good"), home / "good", scheme="videos")
    with pytest.raises(BadInput, match="fold 'z': expected one of a, b, c"):
        run_training(theatre, simulated("good"), home / "good", scheme=FOLDS, only=["z"])


def test_the_tables_are_the_papers_with_ours_marked(good_run: TrainingScores) -> None:
    tables = {table.paper.number: table for table in paper_tables([good_run])}
    assert set(tables) == {4, 5, 8, 12, 14}
    ours = tables[4].frame().row(0, named=True)
    assert ours["data"] == "ours (toy, 9 videos)" and ours["method"] == "simulated"
    assert ours["IVT mAP50"] == pytest.approx(100 * good_run.scores.number("ivt").estimate)
    published = tables[4].frame().filter(pl.col("data") == "published (ProstaTD)")
    assert published.height == 14
    assert tables[4].readable().filter(pl.col("method") == "TDnet")["IVT mAP50"].item() == "36.1 ± 3.4"
    parts = tables[14].frame().row(0, named=True)
    assert sum(parts[name] for name in ("box", "I", "V", "T")) == pytest.approx(parts["IVT"], abs=0.002)


def test_published_rows_are_marked_where_ours_have_another_convention(
    good_run: TrainingScores, home: Path, theatre: MemoryDataset
) -> None:
    shutil.copytree(home / "good", home / "ivtd")
    trained: list[str] = []
    again = run_training(
        theatre, simulated("good", trained=trained), home / "ivtd", scheme=FOLDS, convention="ivtd", pages=False
    )
    assert again is not None and trained == []  # finished folds are scored anew, not trained
    assert again.scores.settings["convention"] == "ivtd"
    said = "Ours are computed under convention coco, published rows with ivtdmetrics"
    for result, convention in ((good_run, "coco"), (again, "ivtd")):
        for table in paper_tables([result]):
            assert table.frame()["convention"].to_list() == [convention] + ["ivtdmetrics"] * len(table.paper.rows)
            assert any(said in note for note in table.notes) == (convention == "coco")
        page = write_page_of([result], home / f"page-{convention}").read_text(encoding="utf-8")
        assert (said in page) == (convention == "coco")
    assert paper_tables([again])[0].frame()["IVT mAP50"][0] != paper_tables([good_run])[0].frame()["IVT mAP50"][0]
    with pytest.raises(BadInput, match="convention 'voc': expected one of coco, ivtd, ivtd-legacy"):
        run_training(theatre, simulated("good", trained=trained), home / "voc", convention="voc")  # type: ignore[arg-type]
    assert trained == []


def test_a_run_is_loaded_compared_and_shown(good_run: TrainingScores, home: Path, theatre: MemoryDataset) -> None:
    worse = run_training(theatre, simulated("fair", name="worse"), home / "fair", scheme=FOLDS, pages=False)
    loaded = load_training(home / "good")
    assert isinstance(loaded, TrainingScores) and worse is not None
    assert loaded.headlines()[0].interval == good_run.headlines()[0].interval
    assert loaded.verdict() is not None
    compared = compare(loaded, worse)
    assert compared.protocol == "training" and compared.numbers[0].difference.estimate > 0
    page = write_page_of([loaded, worse], home / "both").read_text()
    for words in (
        "As Table 4",
        "published (ProstaTD)",
        "ours (toy, 9 videos)",
        "simulated − worse",
        "Each fold of worse",
    ):
        assert words in page
    assert (home / "both" / "tables" / "table_14.csv").exists()


def test_leaving_out_sources_gives_table_15(tmp_path: Path, theatre: MemoryDataset) -> None:
    made = run_training(theatre, simulated("good"), tmp_path / "out", scheme="sources", pages=False)
    assert made is not None
    (table,) = paper_tables([made])
    assert table.paper.number == 15
    assert [row.name for row in table.ours] == [
        f"simulated: {x}" for x in ("without A", "without B", "without C", "average")
    ]
    assert table.paper.rows[0].values == (19.3, 16.4, 16.8)


def test_named_sources_are_those_that_are_left_out_and_scored(tmp_path: Path, theatre: MemoryDataset) -> None:
    named = {"v[0-4]": "north", "v[5-8]": "south"}  # in place of the dataset's A, B and C
    made = run_training(theatre, simulated("good"), tmp_path / "out", scheme="sources", sources=named, pages=False)
    assert made is not None and made.scheme == "sources"
    groups = {"north": [f"v{k}" for k in range(5)], "south": [f"v{k}" for k in range(5, 9)]}
    assert made.scores.settings["scheme"]["groups"] == groups
    assert [row.name for row in paper_tables([made])[0].ours][:2] == [
        "simulated: without north", "simulated: without south",
    ]  # fmt: skip


def test_damaged_records_are_refused_by_name(tmp_path: Path, theatre: MemoryDataset) -> None:
    method = simulated("good")
    run_training(theatre, method, tmp_path / "x", scheme=FOLDS, only=["a"])
    record = tmp_path / "x" / "folds" / "a" / "fold.json"
    record.write_text('{"format": 1, "plan": 3}')
    with pytest.raises(SurgevalError, match=r"fold\.json: plan: expected text, got 3; fold: is missing"):
        run_training(theatre, method, tmp_path / "x", scheme=FOLDS, only=["a"])


ODD: tuple[Any, ...] = (None, [], {}, "x", -1, 1e300, True, ["a", 3], {"folds": 3})
LOADERS: dict[str, Callable[[Path], object]] = {
    "folds.json": PlanFile.load,
    "folds/a/fold.json": load_fold,
    "folds/a/training/train.json": load_training_folder,
}


@pytest.mark.parametrize("name", LOADERS)
def test_no_odd_value_in_a_file_does_more_than_name_it(name: str, good_run: TrainingScores, home: Path) -> None:
    path = home / "good" / name
    whole = path.read_bytes()
    data = json.loads(whole)
    refused: list[str] = []
    for key in data:
        for odd in ODD:
            path.write_text(json.dumps({**data, key: odd}))
            try:
                LOADERS[name](path.parent)
            except SurgevalError as error:
                refused.append(str(error))
    path.write_bytes(whole)
    assert len(refused) >= 10 and all(path.name in sentence for sentence in refused)
