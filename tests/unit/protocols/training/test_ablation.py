"""Ablations: what a configuration adds is weighed against what another seed changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.unit.protocols.training.conftest import simulated

from surgeval import compare
from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput, RunError
from surgeval.protocols.contract import by_key
from surgeval.protocols.training.ablation.method import run_ablation
from surgeval.protocols.training.ablation.result import ABLATIONS, AblationScores, Configuration, load_ablation
from surgeval.protocols.training.detectors import TrainableDetector
from surgeval.protocols.training.method import run_training
from surgeval.protocols.training.page import write_page_of

EIGHT = {"one": [f"v{k}" for k in range(8)]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ablation")


@pytest.fixture(scope="module")
def made(home: Path, theatre: MemoryDataset) -> AblationScores:
    """Without distillation much worse, without the heads alike."""

    def model_of(row: Configuration, seed: int) -> TrainableDetector:
        return simulated("poor" if "w/o self" in row.name else "good", name=row.name, seed=seed)

    return run_ablation(theatre, model_of, home, seeds=(0, 1), scheme=EIGHT)


def test_means_and_spreads_are_those_over_seeds(made: AblationScores) -> None:
    values = made.values("TDnet", "ivt", "mAP50")
    row = made.tables["configurations"].filter(pl.col("configuration") == "TDnet").row(0, named=True)
    assert row["IVT mAP50"] == pytest.approx(values.mean())
    assert row["IVT mAP50 std"] == pytest.approx(np.std(values, ddof=1))


def test_a_difference_is_paired_over_videos_and_averaged_over_seeds(made: AblationScores) -> None:
    own = made.differences["TDnet w/o self-distill"]["ivt", "mAP50"]
    expected = made.values("TDnet w/o self-distill", "ivt", "mAP50") - made.values("TDnet", "ivt", "mAP50")
    assert own.estimate == pytest.approx(expected.mean())
    assert own.interval.low < own.estimate < own.interval.high and own.interval.clusters == 8
    same = made.differences["TDnet w/o MTL"]["ivt", "mAP50"]
    assert same.estimate == 0 and same.interval.low == same.interval.high == 0


def test_the_finding_names_what_is_told_apart(made: AblationScores) -> None:
    assert "significantly different from TDnet over videos: TDnet w/o self-distill." in made.finding


@pytest.mark.figures
def test_the_page_shows_ours_beside_table_9(made: AblationScores, home: Path) -> None:
    page = write_page_of([load_ablation(home)], home).read_text()
    for words in ("As Table 9", "TDnet w/o MTL", "2 seeds", "published (ProstaTD)", "34.4 ± 4.2"):
        assert words in page


def test_two_ablations_are_compared_row_by_row(made: AblationScores, home: Path) -> None:
    assert {one.difference.estimate for one in compare(home, made).numbers} == {0.0}
    swapped = {**made.runs, "TDnet": made.runs["TDnet w/o self-distill"]}
    both = compare(made, replace(made, name="other", runs=swapped))
    found = by_key(both.numbers, "TDnet|ivt|mAP50").difference
    expected = made.differences["TDnet w/o self-distill"]["ivt", "mAP50"]
    assert found.estimate == pytest.approx(-expected.estimate) and found.interval.clusters == 8
    assert by_key(both.numbers, "TDnet w/o MTL|ivt|mAP50").difference.estimate == 0
    assert both.notes[-1] == "means over 2 seeds and 2 seeds: intervals are over videos, not over seeds"
    fusion = replace(made, table="fusion", runs=dict.fromkeys(
        (row.name for row in ABLATIONS["fusion"].configurations), made.runs["TDnet"]))  # fmt: skip
    with pytest.raises(BadInput, match="ablations components and fusion, which share no configuration"):
        compare(made, fusion)


def test_an_ablation_is_not_compared_with_trained_folds(
    made: AblationScores, theatre: MemoryDataset, tmp_path: Path
) -> None:
    folds = run_training(theatre, simulated("good"), tmp_path / "folds", scheme=EIGHT, pages=False)
    assert folds is not None
    with pytest.raises(BadInput, match="Compare two of a kind"):
        compare(folds, made)


def test_weights_that_differ_by_no_more_than_their_seeds_are_noise(made: AblationScores) -> None:
    rows = ABLATIONS["fusion"].configurations
    assert [row.changes["fusion"] for row in rows] == [0.0, 0.2, 0.5, 0.8, 1.0]
    good, twin = made.runs["TDnet"]
    runs = {row.name: (good, twin) if k % 2 else (twin, good) for k, row in enumerate(rows)}
    fusion = replace(made, table="fusion", runs=runs)
    assert fusion.reference == "teacher 0.8 : labels 0.2"
    assert fusion.finding.endswith("within noise, as far as 2 seeds can tell.")
    assert fusion.paper().paper.number == 11
    alone = replace(fusion, seeds=(0,), runs={name: pair[:1] for name, pair in runs.items()})
    assert alone.finding.endswith("one seed cannot separate that from chance.")


def test_another_table_in_the_folder_and_seeds_that_repeat_are_refused(
    made: AblationScores, home: Path, theatre: MemoryDataset
) -> None:
    with pytest.raises(RunError, match="found the ablation components, expected fusion or a new folder"):
        run_ablation(theatre, lambda row, _seed: simulated(name=row.name), home, table="fusion", scheme=EIGHT)
    with pytest.raises(BadInput, match=r"seeds: found \[1, 1\]"):
        run_ablation(theatre, lambda row, _seed: simulated(name=row.name), home, seeds=(1, 1), scheme=EIGHT)
