from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import polars as pl
import pytest
from tests.figure_values import mark_rows

from surgeval import compare
from surgeval.cli.app import run as command
from surgeval.datasets import QualityLimits
from surgeval.errors import BadInput, DataError, RunError
from surgeval.phantom import write_phantom
from surgeval.protocols.comparison import few_video_notes
from surgeval.protocols.contract import by_key
from surgeval.protocols.quality import load_quality, run_quality, write_page_of
from surgeval.report import write_run_pages

pytestmark = pytest.mark.usefixtures("same_tissue")


@pytest.fixture(scope="module")
def phantom(same_tissue: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("q") / "D"
    return write_phantom(place, seed=3, videos=2, seconds=8, width=128, height=96, processes=1)


def _spoil(data: Path, video: str, name: str, image: np.ndarray | bytes) -> None:
    path = data / "frames" / video / f"{name}.jpg"
    path.write_bytes(image if isinstance(image, bytes) else cv2.imencode(".jpg", image)[1].tobytes())


def test_spoiled_frames_are_proposed_and_an_unreadable_one_is_a_failed_case(phantom: Path, tmp_path: Path) -> None:
    _spoil(phantom, "A1", "000025", np.zeros((96, 128, 3), np.uint8))
    _spoil(phantom, "A1", "000050", np.full((96, 128, 3), 255, np.uint8))
    _spoil(phantom, "B1", "000075", b"no picture at all")
    done = run_quality(phantom, out=tmp_path / "run", progress=False)
    found = {(p.video, p.name): p.reason for p in done.proposals}
    assert found["A1", "000025"] == "black"
    assert found["A1", "000050"] == "too bright"
    assert done.summary.failed_cases == 1
    assert done.summary.cases == 16
    assert done.to_frame().columns[:3] == ["video", "frame", "reason"]


def test_a_finished_run_is_resumed_without_measuring_again(phantom: Path, tmp_path: Path) -> None:
    first = run_quality(phantom, out=tmp_path / "run", progress=False)
    again = run_quality(phantom, out=tmp_path / "run", progress=False)
    assert again.summary.done == 0
    assert again.summary.resumed == 2
    assert again.proposals == first.proposals


def test_changed_data_never_reuses_an_old_run(phantom: Path, tmp_path: Path) -> None:
    run_quality(phantom, out=tmp_path / "run", progress=False)
    truth = sorted((phantom / "truth").glob("*.json"))[0]
    text = truth.read_text()
    truth.write_text(text + "\n")
    try:
        with pytest.raises(RunError, match="dataset"):
            run_quality(phantom, out=tmp_path / "run", progress=False)
    finally:
        truth.write_text(text)


# the run as a folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same two videos before and after somebody blackened two frames of the first."""
    place = tmp_path_factory.mktemp("runs")
    data = write_phantom(place / "D", seed=3, videos=2, seconds=8, width=128, height=96, processes=1)
    run_quality(data, out=place / "clean", progress=False)
    for name in ("000025", "000050"):
        _spoil(data, "A1", name, np.zeros((96, 128, 3), np.uint8))
    _spoil(data, "B1", "000075", b"no picture at all")
    run_quality(data, out=place / "spoiled", progress=False)
    shutil.rmtree(data)
    return place / "clean", place / "spoiled"


def test_a_loaded_run_tells_shares_and_means(runs: tuple[Path, Path]) -> None:
    found = load_quality(runs[1])
    assert found.cases.height == 15 and found.unreadable["frame"].to_list() == ["000075"]
    dropped = by_key(found.headlines(), "dropped")
    assert dropped.interval.estimate == pytest.approx(2 / 15) and dropped.higher_is_better is False
    assert by_key(found.headlines(), "dark").interval.estimate == pytest.approx(found.cases["dark"].mean())
    assert found.to_frame()["frame"].to_list() == ["000025", "000050"]
    assert found.tables["videos"]["to drop"].to_list() == [2, 0]
    assert sum(row["count"] for row in mark_rows(found.figures["brightness"].spec, "bar")) == 15
    assert repr(found).startswith("QualityScores 'spoiled': inconclusive; frames proposed to drop, share 13.3 %")


@pytest.mark.figures
def test_the_page_is_made_from_the_folder_alone(runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = write_run_pages([runs[1]], tmp_path).read_text("utf-8")
    assert "3 of 16 frames (" in page and "are unreadable or proposed to drop." in page
    assert "000025" in page and "Frames that could not be read" in page
    titles = ("Frames to remove", "Each frame", "Why", "Measures")
    assert sorted(titles, key=lambda title: page.index(f"<bdi>{title}</bdi></h2>")) == list(
        titles
    )  # what to do comes first
    cases = load_quality(runs[1]).evidence()
    assert cases.cases["verdict"].to_list().index("usable") == cases.wrong > 0
    assert (tmp_path / "tables" / "drop.csv").is_file() and (tmp_path / "figures" / "sharpness.svg").is_file()
    write_run_pages([runs[0]], tmp_path / "clean")
    with pytest.raises(BadInput, match="takes 1 run"):
        write_page_of([load_quality(run) for run in runs], tmp_path)


def test_runs_of_a_protocol_without_a_page_for_several_get_an_index(runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "clean" in write_run_pages([*runs], tmp_path / "both").read_text("utf-8")
    with pytest.raises(BadInput, match="found no folder for their page"):
        write_run_pages([*runs])


def test_before_and_after_are_compared_video_by_video(runs: tuple[Path, Path]) -> None:
    found = compare(*runs)
    dropped = by_key(found.numbers, "dropped").difference
    assert dropped.estimate == pytest.approx(-2 / 15)
    assert dropped.interval.low < dropped.estimate < dropped.interval.high and not dropped.significant
    for compared in compare(runs[0], runs[0]).numbers:
        assert compared.difference.estimate == 0 == compared.difference.interval.high
    assert compare(runs[0], runs[0]).notes == few_video_notes(2)
    assert found.notes[1:] == ("the runs are of different data: videos are paired by their names alone",)
    other = replace(load_quality(runs[1]), limits=QualityLimits(black=10))
    with pytest.raises(BadInput, match="limit of black"):
        compare(runs[0], other)
    renamed = load_quality(runs[1])
    renamed = replace(renamed, cases=renamed.cases.with_columns(pl.lit("Z9").alias("video")))
    with pytest.raises(BadInput, match="share no video"):
        compare(runs[0], renamed)


def test_edited_runs_are_told_in_a_sentence(runs: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    record = json.loads((folder / "run.json").read_text())
    for limits in ({"black": "much"}, {"white": 1}, [1]):
        (folder / "run.json").write_text(json.dumps({**record, "config": {"limits": limits}}))
        with pytest.raises(DataError, match=r"config\.limits"):
            load_quality(folder)


def test_the_folder_of_the_quality_check_is_reported_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_phantom(tmp_path / "D", seed=3, videos=2, seconds=4, width=128, height=96, processes=1)
    for name in ("before", "after"):
        assert command(["data", "check", str(data), "--quality", "--out", str(tmp_path / name), "--json"]) == 0
    assert command(["report", str(tmp_path / "before")]) == 0
    assert "0 of 8 frames (0\u00a0%) are unreadable or proposed to drop" in (
        tmp_path / "before" / "report.html"
    ).read_text("utf-8")
    capsys.readouterr()
    assert command(["compare", str(tmp_path / "before"), str(tmp_path / "after"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {row["difference"] for row in said["differences"]} == {0.0} and said["protocol"] == "quality"
