from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import check, convert, media_paths, open_dataset
from surgeval.records import Box, CameraMotion, IntentQuestion, Triplet, VqaQuestion


def edit(path: Path, change: Callable[[Any], None]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("format", ["yolo8", "labelme", "cvat", "cholect50"])
def test_the_bag_of_a_converted_phantom_is_an_instrument_without_triplet(
    phantom: Path, tmp_path: Path, format: str
) -> None:
    convert(open_dataset(phantom), tmp_path / "out", format)
    dataset = open_dataset(tmp_path / "out")
    assert [problem for problem in check(dataset).problems if problem.level == "error"] == []
    video = dataset.videos()[0].name
    triplets = [instance.triplet for instance in next(dataset.frames(video)).instances]
    assert triplets == [Triplet(*dataset.space.triplets[17]), Triplet(6)]


def test_everything_the_scene_knows_is_read(phantom: Path) -> None:
    dataset = open_dataset(phantom)
    video = dataset.videos()[0]
    assert (video.name, video.source, video.split, video.fps, video.seconds) == ("PA1", "A", "train", 25.0, 2.0)
    frame = next(iter(dataset.frames("PA1")))
    assert (frame.name, frame.index, frame.time, frame.phase) == ("000025", 25, 1.0, 0)
    assert frame.camera == CameraMotion(0.5, -0.25, 0.0, 0.01)
    assert frame.region == Box(12, 14, 10, 10)
    assert frame.objects == {"sponge": "hidden"}
    assert [gaze.t for gaze in frame.gaze] == [0.9]
    assert frame.successor is not None
    assert frame.successor.path.name == "000026.jpg"
    tool, bag = frame.instances
    assert tool.triplet == Triplet(*dataset.space.triplets[17])
    assert (tool.track, tool.points) == (1, {"tip": (28.5, 20.0), "contact": (27.0, 21.0)})
    assert list(tool.motion or ()) == [1, 0, 0.5, 0, 1, -0.25]
    assert tool.mask is not None
    assert tool.mask.box() == tool.box
    assert bag.triplet == Triplet(6)


def test_questions_of_both_kinds_are_read_with_their_media(phantom: Path) -> None:
    dataset = open_dataset(phantom)
    focus, intent = dataset.questions()
    assert isinstance(focus, VqaQuestion)
    assert focus.primary == "object_identification"
    assert isinstance(intent, IntentQuestion)
    assert media_paths(dataset, intent) == (phantom / "frames" / "PA1" / "000025.jpg",)
    assert check(dataset).ok


def test_a_fresh_phantom_checks_clean_and_three_damages_are_all_named(phantom: Path) -> None:
    clean = check(open_dataset(phantom))
    assert (clean.errors, clean.warnings) == (0, 0)
    assert (clean.videos, clean.frames, clean.instances, clean.images, clean.questions) == (2, 4, 8, 8, 2)
    (phantom / "frames" / "PA1" / "000051.jpg").unlink()
    edit(phantom / "truth" / "PA1.json", lambda d: d["frames"][0]["instances"][0].update(box=[float("nan"), 1, 2, 3]))
    truth = phantom / "truth" / "PB1.json"
    truth.write_text(truth.read_text()[:-200])
    report = check(open_dataset(phantom))
    assert dict(report.counts) == {"image-missing": 1, "not-finite": 1, "file-broken": 1}
    text = "\n".join(map(str, report.problems))
    assert "000051.jpg" in text
    assert "PA1.json: frame 000025, instance 0: box: found [NaN, 1, 2, 3]" in text
    assert "PB1.json: found cut off at line 1 column" in text


@pytest.mark.parametrize("text", ['{"format": "surg', "[]", '{"format": "other"}', ""])
def test_a_broken_manifest_does_not_hide_the_rest(phantom: Path, text: str) -> None:
    (phantom / "phantom.json").write_text(text)
    (phantom / "frames" / "PB1" / "000025.jpg").unlink()
    report = check(open_dataset(phantom))
    assert report.frames == 4
    assert report.counts["image-missing"] == 1
    assert any("phantom.json" in str(problem) for problem in report.problems)


def test_a_video_that_the_manifest_does_not_list_is_read_and_named(phantom: Path) -> None:
    edit(phantom / "phantom.json", lambda d: d["videos"].pop())
    report = check(open_dataset(phantom))
    assert report.videos == 2
    assert report.counts == {"video-unlisted": 1}


@pytest.mark.parametrize("name", ["../PA1", "a/b", "", 7, None, "..", "\ud800"])
def test_a_video_name_cannot_lead_out_of_the_folder(phantom: Path, name: object) -> None:
    edit(phantom / "phantom.json", lambda d: d["videos"][0].update(name=name))
    report = check(open_dataset(phantom))
    assert report.errors
    assert report.frames == 4


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda f: f.update(time="x"), "not-a-number"),
        (lambda f: f.update(phase="Lunch"), "class-unknown"),
        (lambda f: f.update(camera={"P": 1}), "not-a-number"),
        (lambda f: f.update(region=[1, 2]), "not-a-number"),
        (lambda f: f.update(instances={}), "wrong-shape"),
        (lambda f: f.update(name="../x"), "frame-name"),
        (lambda f: f["instances"][0].update(triplet=3), "triplet-inconsistent"),
        (lambda f: f["instances"][0].update(triplet=100), "class-unknown"),
        (lambda f: f["instances"][0].update(instrument="spoon"), "class-unknown"),
        (lambda f: f["instances"][0].update(motion=[1, 2]), "wrong-shape"),
        (lambda f: f["instances"][0].update(tip=[1]), "not-a-number"),
        (lambda f: f["instances"][0]["mask"].update(size=[1, 1]), "mask-broken"),
        (lambda f: f["instances"][0]["mask"].update(counts=[1]), "mask-broken"),
    ],
)
def test_each_wrong_value_is_one_problem_of_its_kind(phantom: Path, change: Callable[[Any], None], kind: str) -> None:
    edit(phantom / "truth" / "PA1.json", lambda d: change(d["frames"][1]))
    report = check(open_dataset(phantom))
    assert kind in report.counts
    assert all("PA1.json: frame" in str(problem) for problem in report.problems if problem.kind == kind)
