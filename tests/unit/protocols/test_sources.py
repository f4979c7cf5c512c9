"""Sources of videos where the files name none, as in the released form of ProstaTD."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from surgeval.cli.app import run as command
from surgeval.datasets import name_sources, open_dataset
from surgeval.errors import BadInput, DataError
from surgeval.protocols.training.scheme import choose_folds
from surgeval.protocols.training.single import choose_videos
from surgeval.protocols.triplets import score_triplets
from surgeval.records import Video

PUBLISHED = ("esadv1", "esadv2", "psiv1", "psiv4", "pwhv1", "pwhv8")


def write_yolo(folder: Path, videos: tuple[str, ...]) -> Path:
    """Labels in YOLO's lines, named VIDEO_FRAME, with nothing that names a source."""
    (folder / "labels").mkdir(parents=True)
    for k, video in enumerate(videos):
        for n in range(2):
            (folder / "labels" / f"{video}_{n:06d}.txt").write_text(f"{(k + n) % 3} 0.5 0.5 0.2 0.1\n")
    return folder


def test_sources_of_prostatd_are_known_by_the_names_of_its_videos(tmp_path: Path) -> None:
    dataset = open_dataset(write_yolo(tmp_path / "data", PUBLISHED), labels="prostatd")
    scores = score_triplets(None, dataset, constant=True, task="recognition", leave_source_out=True)
    assert scores.settings["scheme"]["groups"] == {
        "ESAD": ["esadv1", "esadv2"], "PSI-AVA": ["psiv1", "psiv4"], "PWH": ["pwhv1", "pwhv8"],
    }  # fmt: skip
    assert [fold.name for fold in choose_folds(dataset.videos(), "sources").folds] == ["ESAD", "PSI-AVA", "PWH"]
    assert choose_videos(dataset.videos(), source="PWH").test == ("pwhv1", "pwhv8")


def test_the_commands_take_sources_by_pattern_and_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    videos = ("A1", "A2", "B1", "B2")
    data = write_yolo(tmp_path / "data", videos)
    asked = ["score", "triplets", "--data", str(data), "--labels", "prostatd", "--constant", "--task", "recognition",
             "--leave-source-out", "--json"]  # fmt: skip
    assert command(asked) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "video A1 has no source. Name sources by video: sources PATTERN=NAME, or a file." in said
    table, names = tmp_path / "where.csv", tmp_path / "where.json"
    table.write_text("video,source\nA1,Bern\nA2,Bern\nB1,Lyon\nB2,Lyon\nC1,Rome\n")
    names.write_text(json.dumps({"A1": "Bern", "A2": "Bern", "B*": "Lyon"}))
    for options in (["A*=Bern,B*=Lyon"], ["A*=Bern", "B*=Lyon"], [str(table)], [str(names)]):
        assert command([*asked, *(word for option in options for word in ("--sources", option))]) == 0
        groups = json.loads(capsys.readouterr().out)["settings"]["scheme"]["groups"]
        assert groups == {"Bern": ["A1", "A2"], "Lyon": ["B1", "B2"]}
    words = [
        "report",
        str(data),
        "--labels",
        "prostatd",
        "--out",
        str(tmp_path / "page"),
        "--sources",
        "A*=Bern,B*=Lyon",
    ]
    command(words)
    by_source = pl.read_csv(tmp_path / "page" / "tables" / "splits.csv")
    assert by_source.select("source", "videos").rows() == [("Bern", 2), ("Lyon", 2)]


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        ("C*=Bern", "sources: 'C*' matches no video. The dataset has A1, B1."),
        ("A*=Bern,?1=Lyon", r"video A1 matches 'A*' (Bern) and '?1' (Lyon). Give it one source."),
        ("A*", "sources 'A*': expected PATTERN=NAME"),
        ("A*=", "sources: 'A*': the source is empty. Give each video a name as its source."),
        (["A*=Bern", "A*=Lyon"], "'A*' has the sources Bern and Lyon. Give it one."),
        ({"A1": 3}, "sources: 'A1': the source is 3."),
    ],
)
def test_sources_that_cannot_be_used_are_refused(sources: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        name_sources([Video("A1"), Video("B1")], sources)
    assert sentence in str(error.value)


def test_a_file_of_sources_without_its_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "where.csv"
    path.write_text("video,hospital\nA1,Bern\n")
    with pytest.raises(DataError, match="found no column source, expected the columns video and source"):
        name_sources([Video("A1")], path)


def test_given_sources_go_before_those_of_the_dataset() -> None:
    videos = [Video("A1", source="old"), Video("A2", source="old"), Video("esadv1")]
    assert [video.source for video in name_sources(videos, {"A1": "new"})] == ["new", "old", "ESAD"]


def test_sources_that_nothing_uses_are_refused(tmp_path: Path) -> None:
    dataset = open_dataset(write_yolo(tmp_path / "data", PUBLISHED), labels="prostatd")
    with pytest.raises(BadInput, match="used only with leave_source_out"):
        score_triplets(None, dataset, constant=True, sources="*=one")
    with pytest.raises(BadInput, match="used only with the folds named sources"):
        choose_folds(dataset.videos(), "videos", "*=one")
    with pytest.raises(BadInput, match="used only where a source is left out"):
        choose_videos(dataset.videos(), sources="*=one")


def test_a_table_of_boxes_names_sources_in_a_column(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("op,file,tool,x,y,w,h,hospital\n1,5,Hook,1,2,3,4,Bern\n2,5,Hook,1,2,3,4,Lyon\n")
    (tmp_path / "mapping.toml").write_text(
        'table = "boxes.csv"\nvideo = "op"\nframe = "file"\nclass = "tool"\nbox = ["x", "y", "w", "h"]\n'
        'labels = "cholec80"\nsize = [100, 100]\nsource = "hospital"\n'
    )
    assert [(video.name, video.source) for video in open_dataset(tmp_path).videos()] == [("1", "Bern"), ("2", "Lyon")]
