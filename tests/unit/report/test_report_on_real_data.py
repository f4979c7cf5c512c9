"""Real labels, counted: the numbers that the files of the public releases hold."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from surgeval.datasets import check, contact_sheet, open_dataset
from surgeval.report import dataset_statistics, write_dataset_page

pytestmark = pytest.mark.real


def test_cholect50_counts_agree_with_a_plain_count_of_the_label_files(real_data: Path) -> None:
    folder = real_data / "cholect50-val"
    rows = [
        row
        for path in sorted((folder / "labels").glob("*.json"))
        for frame in json.loads(path.read_text("utf-8"))["annotations"].values()
        for row in frame
    ]
    s = dataset_statistics(open_dataset(folder), on_problem=lambda problem: None)
    table = s.tables["triplets"]
    for number in range(100):
        assert table["total"][number] == sum(row[0] == number for row in rows)
    assert s.total == sum(row[1] >= 0 for row in rows)
    assert s.labelled == 1008
    assert [row.step for row in s.videos] == [1.0] * 4


def test_m2cai16_instruments_add_up_to_its_boxes(real_data: Path) -> None:
    s = dataset_statistics(open_dataset(real_data / "m2cai16-tool-locations", "voc"), on_problem=lambda problem: None)
    assert s.labelled == 2248
    assert s.boxes == s.total == s.tables["instruments"]["total"].sum() == sum(map(sum, s.box_sizes.values()))


@pytest.mark.figures
def test_a_real_dataset_gives_a_whole_report(real_data: Path, tmp_path: Path) -> None:
    dataset = open_dataset(real_data / "cholect50-val")
    found = check(dataset, images=False)
    sheet = contact_sheet(dataset, 8, on_problem=lambda problem: None)
    page = write_dataset_page(dataset, tmp_path, check=found, sheet=sheet)
    assert page.stat().st_size > 200_000
    assert pl.read_csv(tmp_path / "tables" / "problem_kinds.csv")["problems"].sum() == sum(found.counts.values())
