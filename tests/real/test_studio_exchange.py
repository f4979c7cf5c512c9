"""Published labels in the studio: they open, are shown by the server, and are saved without loss."""

from __future__ import annotations

import json
import shutil
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import convert, open_dataset
from surgeval.studio.exchange import StudioDataset, export_project, import_dataset
from surgeval.studio.server import Running, serve, set_schema

pytestmark = pytest.mark.real


def get(running: Running, path: str) -> Any:
    connection = HTTPConnection(running.address.removeprefix("http://").rstrip("/"), timeout=240)
    connection.request("GET", path, headers={"authorization": f"Bearer {running.token}"})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200, data
    return json.loads(data) if answer.getheader("content-type", "").startswith("application/json") else data


def test_cholec_instance_seg_is_shown_and_saved_to_the_last_value(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "cholec-instance-seg" / "_sample_files"
    place = tmp_path / "project"
    for pictures in source.glob("*/img_dir"):
        shutil.copytree(pictures, place / pictures.relative_to(source))
    with serve(place, author="amy") as running:
        report = import_dataset(running.project.database, source, author="amy")
        assert (report.frames, report.matched, report.instances, report.problems, report.losses) == (10, 10, 23, 0, ())
        (video,) = get(running, "/api/project")["videos"]
        assert (video["name"], video["frames"]) == ("VID03_t80_sparse", 10)
        shown = get(running, f"/api/videos/{video['id']}/annotations?first=0&last=9")["annotations"]
        assert len(shown) == 23
        assert all(one["polygons"] for one in shown)
        assert get(running, f"/frames/{video['id']}/0")[:4] == b"\x89PNG"
        made = export_project(place, running.project.database, "back", "labelme")
    assert made.losses == ()
    assert made.folder is not None
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    for name in files:
        before, after = source / name, made.folder / name
        if name.suffix == ".json":  # the same keys and values in the same order; only white space may differ
            texts = [json.dumps(json.loads(path.read_text())) for path in (before, after)]
            assert texts[0] == texts[1], name
        else:
            assert before.read_bytes() == after.read_bytes()


def test_cholect50_videos_are_shown_and_saved_without_loss(real_data: Path, tmp_path: Path) -> None:
    source = real_data / "cholect50-val"
    place = tmp_path / "project"
    for folder in (source / "videos").iterdir():
        shutil.copytree(folder, place / folder.name)
    with serve(place, author="amy") as running:
        set_schema(running.project, "cholect50")
        report = import_dataset(running.project.database, source, author="amy")
        assert (report.matched, report.frames, report.instances, report.problems) == (1082, 1082, 1192, 0)
        assert report.lacking == ()
        videos = get(running, "/api/project")["videos"]
        assert [video["name"] for video in videos] == ["VID68", "VID70", "VID73", "VID74"]
        last = videos[0]["frames"] - 1
        shown = get(running, f"/api/videos/VID68/annotations?first=0&last={last}")["annotations"]
        assert get(running, "/frames/VID68/5")[:2] == b"\xff\xd8"
        made = export_project(place, running.project.database, "back", "cholect50", images=False)
    first = open_dataset(source)
    assert len(shown) == sum(len(frame.instances) for frame in first.frames("VID68", lambda _: None))
    assert made.folder is not None
    for video in ("VID68", "VID70", "VID73", "VID74"):
        there, back = (
            json.loads((folder / "labels" / f"{video}.json").read_text()) for folder in (source, made.folder)
        )
        assert _rows(back) == _rows(there)
    dataset = StudioDataset(place)
    convert(dataset, tmp_path / "coco", "coco", images=False, on_problem=lambda _: None)
    assert sum(1 for video in dataset.videos() for frame in dataset.frames(video.name) if not frame.labelled) == 74 + 95


def _rows(document: dict[str, Any]) -> dict[str, list[list[float]]]:
    """The rows of every frame; boxes to a millionth, the order of rows within a frame is no matter."""
    return {frame: sorted([round(value, 6) for value in row] for row in rows)
            for frame, rows in document["annotations"].items()}  # fmt: skip
