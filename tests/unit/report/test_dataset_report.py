"""The report on a dataset: a page, its tables and its figures, from any labels."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.datasets import Problem
from surgeval.errors import BadInput, DataError
from surgeval.records import Video
from surgeval.report import dataset_sections, dataset_statistics, write_dataset_page
from surgeval.report.dataset.findings import dataset_findings
from surgeval.vocab import load_labels

A, B, C = (0, 0, 0), (0, 0, 1), (1, 1, 1)


@dataclass(frozen=True)
class Found:
    """What a check gives."""

    problems: tuple[Problem, ...]

    @property
    def counts(self) -> Counter[str]:
        return Counter(problem.kind for problem in self.problems)


@pytest.fixture
def toy(make: Any, moment: Any) -> Any:
    def frames() -> list[Any]:
        return [moment(t, *([A, C] if t < 5 else [B]), phase=int(t > 5)) for t in range(12)]

    return make({Video("v1", "east", "train"): frames(), Video("v2", "west", "test"): frames()})


def test_page_tables_and_figures_are_written_and_every_link_leads_to_one(toy: Any, tmp_path: Path) -> None:
    sheet = np.full((20, 30, 3), 90, np.uint8)
    page = write_dataset_page(toy, tmp_path, sheet=sheet)
    assert page == tmp_path / "report.html"
    html = page.read_text("utf-8")
    links = set(re.findall(r'href="((?:tables|figures)/[^"]+)"', html))
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")}
    assert links == written
    assert len([link for link in links if link.endswith(".svg")]) >= 10
    assert "data:image/jpeg" in html
    assert pl.read_csv(tmp_path / "tables" / "triplets.csv")["total"].to_list() == [10, 14, 10]


@pytest.mark.figures
def test_the_figures_are_the_same_bytes_on_a_second_run(toy: Any, tmp_path: Path) -> None:
    write_dataset_page(toy, tmp_path / "a")
    write_dataset_page(toy, tmp_path / "b")
    first, second = (sorted(path for path in (tmp_path / run).rglob("*") if path.is_file()) for run in "ab")
    assert len(first) > 20
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_problems_are_listed_with_files_named_from_the_datasets_folder(toy: Any, tmp_path: Path) -> None:
    problem = Problem(
        "box-outside", str(toy.root / "labels" / "v1.json"), "found x = -3, expected a box inside", "frame 3", "box"
    )
    page = write_dataset_page(toy, tmp_path, check=Found((problem,) * 300))
    table = pl.read_csv(tmp_path / "tables" / "problems.csv")
    assert table.height == 300
    assert table["file"][0] == "labels/v1.json"
    assert pl.read_csv(tmp_path / "tables" / "problem_kinds.csv").row(0) == ("box-outside", "error", 300)
    assert "100 more are not listed here" in page.read_text("utf-8")


def test_errors_stop_the_report_unless_a_check_has_told_them(make: Any, tmp_path: Path) -> None:
    problem = Problem("file-broken", "v.json", "found half a file, expected JSON")

    class Broken(make):
        def frames(self, video: str, on_problem: Any = None) -> Any:
            on_problem(problem)
            return iter(())

    dataset = Broken({Video("v"): []})
    with pytest.raises(DataError, match="half a file"):
        write_dataset_page(dataset, tmp_path)
    assert "half a file" in write_dataset_page(dataset, tmp_path, check=Found((problem,))).read_text("utf-8")
    heard: list[Problem] = []
    write_dataset_page(dataset, tmp_path, on_problem=heard.append)
    assert heard == [problem]


def test_a_clean_check_says_so(toy: Any, tmp_path: Path) -> None:
    assert "The check found none." in write_dataset_page(toy, tmp_path, check=Found(())).read_text("utf-8")


@pytest.mark.parametrize(("level", "grade"), [("warning", None), ("error", "fails")])
def test_only_errors_speak_against_a_dataset(toy: Any, level: Any, grade: str | None) -> None:
    said = dataset_findings(
        dataset_statistics(toy), Found((Problem("some-kind", "v.json", "found this, expected that", level=level),))
    )
    assert said[0].text.startswith("The check found") and said[0].grade == grade


def test_rare_classes_are_counted_among_those_that_occur_and_are_no_error(make: Any, moment: Any) -> None:
    dataset = make({Video("v1"): [moment(t, A, *([B] if t < 3 else []), *([C] if t < 2 else [])) for t in range(12)]})
    said = dataset_findings(dataset_statistics(dataset), Found(()))
    (rare,) = [one for one in said if "fewer than 10 instances" in one.text]
    assert rare.text.startswith("2 of the 3 triplet classes that occur have fewer than 10 instances")
    assert rare.grade is None  # a remark: the check found nothing wrong


@pytest.mark.figures
def test_an_empty_dataset_still_gives_a_page(make: Any, tmp_path: Path) -> None:
    html = write_dataset_page(make({}), tmp_path).read_text("utf-8")
    assert "0 frames of 0 videos, none of them labelled." in html


def test_instruments_alone_give_a_report_without_triplets(make: Any, moment: Any, tmp_path: Path) -> None:
    dataset = make({Video("v"): [moment(None, (0, -1, -1), (2, -1, -1))] * 3}, load_labels("cholec80"))
    html = write_dataset_page(dataset, tmp_path).read_text("utf-8")
    assert "Instruments" in html
    assert "riplet" not in re.sub(r"<script>.*?</script>", "", html, flags=re.S)


@pytest.mark.figures
def test_a_hundred_sources_do_not_make_a_hundred_colours(make: Any, moment: Any, tmp_path: Path) -> None:
    dataset = make({Video(f"v{k}", f"s{k}"): [moment(0, A)] for k in range(100)})
    sections = dataset_sections(dataset_statistics(dataset))
    specs = [json.dumps(plot.figure.spec) for section in sections for plot in section.plots]
    assert max(len(set(re.findall(r'"series": "[^"]*"', spec))) for spec in specs) <= 12


def test_sections_come_without_links_unless_files_lie_beside_them(toy: Any) -> None:
    sections = dataset_sections(dataset_statistics(toy))
    assert not any(table.file for section in sections for table in section.tables)
    assert not any(plot.files for section in sections for plot in section.plots)


def test_an_output_folder_that_is_a_file_is_one_sentence(toy: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        write_dataset_page(toy, tmp_path / "out")
