"""The readers on published files: every listed oddity is found and named, none of them crashes."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surgeval.datasets import (
    CheckReport,
    check,
    contact_sheet,
    convert,
    frame_quality,
    instance_mask,
    open_dataset,
    open_video,
    propose_drops,
    read_image,
)
from surgeval.errors import BadInput
from surgeval.records import Box, Frame, ImageRef

pytestmark = pytest.mark.real
LONG = bool(os.environ.get("SURGEVAL_LONG"))


@pytest.fixture(scope="module")
def data() -> Path:
    place = os.environ.get("SURGEVAL_REAL_DATA")
    if not place or not Path(place).is_dir():
        pytest.skip("SURGEVAL_REAL_DATA is not set: the real surgical data is not at hand")
    return Path(place)


def sentences(report: CheckReport, kind: str) -> list[str]:
    return [str(problem) for problem in report.problems if problem.kind == kind]


def test_cholect50_videos_are_read_and_their_oddities_named(data: Path) -> None:
    dataset = open_dataset(data / "cholect50-val")
    assert dataset.space.name == "cholect50"
    report = check(dataset, images=LONG)
    assert (report.videos, report.frames, report.instances, report.boxes) == (4, 1082, 1192, 1192)
    assert report.errors == 0
    assert dict(report.counts) == {"frame-unlabelled": 74, "file-odd-name": 95, "box-outside": 2}
    assert all("VID70" in text and "(1).jpg" in text for text in sentences(report, "file-odd-name"))
    assert {text.split("frame ")[1][:6] for text in sentences(report, "box-outside")} == {"001011", "001069"}


def test_m2cai16_is_two_formats_in_one_folder(data: Path) -> None:
    with pytest.raises(BadInput, match="found files of voc and yolo"):
        open_dataset(data / "m2cai16-tool-locations")


def test_m2cai16_boxes_agree_in_both_formats(data: Path) -> None:
    root = data / "m2cai16-tool-locations"
    voc, yolo = open_dataset(root, "voc"), open_dataset(root, "yolo", labels="cholec80")
    assert voc.space == yolo.space
    boxes = 0
    for one, other in zip(voc.videos(), yolo.videos(), strict=True):
        assert one == other
        for a, b in zip(voc.frames(one.name), yolo.frames(one.name), strict=True):
            assert (a.name, a.width, a.height) == (b.name, b.width, b.height)
            for x, y in zip(a.instances, b.instances, strict=True):
                assert x.triplet == y.triplet
                assert x.box is not None
                assert y.box is not None
                assert np.allclose(x.box.corners, y.box.corners, rtol=0, atol=1e-9)
                boxes += 1
    assert boxes == 3149


def test_m2cai16_oddities_are_named(data: Path) -> None:
    report = check(open_dataset(data / "m2cai16-tool-locations", "voc"), images=LONG)
    assert (report.videos, report.frames, report.instances, report.errors) == (10, 2248, 3149, 0)
    # Every video has frames in train and in val; 18 boxes leave the pixels 1…width, two of them below zero.
    assert dict(report.counts) == {"split-leak": 10, "box-outside": 18}
    named = sentences(report, "box-outside")
    assert any("v03_046025.xml" in text and "bndbox: found (114, -3) to (317, 142)" in text for text in named)
    assert any("v02_042225.xml" in text for text in named)


def test_psi_ava_is_read_without_its_images(data: Path) -> None:
    dataset = open_dataset(data / "psi-ava" / "val_coco_anns_v3_35s.json")
    report = check(dataset)
    assert (report.videos, report.frames, report.instances, report.errors) == (4, 1029, 2623, 0)
    assert dict(report.counts) == {"images-absent": 1}
    assert len(dataset.space.instruments) == 7
    assert len(dataset.space.phases) == 11
    frame = next(iter(dataset.frames("CASE021")))
    assert frame.phase == 0
    assert frame.instances[0].attributes["actions"] == [15]
    predictions = open_dataset(data / "psi-ava" / "val_coco_preds_v3_35s.json")
    scores = [i.score for video in predictions.videos() for f in predictions.frames(video.name) for i in f.instances]
    assert len(scores) == 2364
    assert all(score is not None and 0 <= score <= 1 for score in scores)
    with pytest.raises(BadInput, match="several COCO files"):
        open_dataset(data / "psi-ava")


def test_every_cholec_instance_seg_file_comes_back_as_it_was(data: Path, tmp_path: Path) -> None:
    root = data / "cholec-instance-seg" / "_sample_files"
    report = convert(open_dataset(root), tmp_path / "out", "labelme")
    assert report.losses == ()
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    assert len(files) == 20
    for name in files:
        before, after = root / name, tmp_path / "out" / name
        if name.suffix == ".json":  # the same keys and values in the same order; only white space may differ
            before_text, after_text = (json.dumps(json.loads(path.read_text())) for path in (before, after))
            assert before_text == after_text, name
        else:
            assert before.read_bytes() == after.read_bytes()
    first, again = open_dataset(root), open_dataset(tmp_path / "out")
    for video in first.videos():
        for one, other in zip(first.frames(video.name), again.frames(video.name), strict=True):
            assert replace(one, image=None) == replace(other, image=None)


def test_cholec_instance_seg_outlines_survive_cvat(data: Path, tmp_path: Path) -> None:
    source = open_dataset(data / "cholec-instance-seg" / "_sample_files")
    report = convert(source, tmp_path / "out", "cvat")
    assert report.losses == ()
    back = open_dataset(tmp_path / "out")
    assert check(back).ok
    for video in source.videos():
        for one, other in zip(source.frames(video.name), back.frames(video.name), strict=True):
            assert [(i.triplet, i.box, i.polygon, i.attributes.get("polygons"), i.attributes["group_id"])
                    for i in one.instances] == [
                (i.triplet, i.box, i.polygon, i.attributes.get("polygons"), i.attributes["group_id"])
                for i in other.instances]  # fmt: skip


def _parts(box: Box, frame: Frame) -> np.ndarray:
    """Corners as parts of the frame: without images a frame's size is assumed."""
    return np.array(box.corners) / (frame.width, frame.height, frame.width, frame.height)


@pytest.mark.parametrize("format", ["labelme", "coco", "cvat", "yolo8", "cholect50"])
def test_cholect50_labels_survive_every_format_or_the_loss_is_said(data: Path, tmp_path: Path, format: str) -> None:
    source = open_dataset(data / "cholect50-val")
    problems: list[object] = []
    report = convert(source, tmp_path / "out", format, images=False, on_problem=problems.append)
    back = open_dataset(tmp_path / "out", labels=source.space)
    for video in source.videos(problems.append):
        one = {frame.name: frame for frame in source.frames(video.name, problems.append) if frame.labelled}
        other = {frame.name: frame for frame in back.frames(video.name, problems.append) if frame.labelled}
        assert one.keys() == other.keys()
        for name, frame in one.items():
            assert [i.triplet for i in frame.instances] == [i.triplet for i in other[name].instances]
            for a, b in zip(frame.instances, other[name].instances, strict=True):
                assert a.box is not None
                assert b.box is not None
                exact = 1.01e-6 if format == "yolo8" else 1e-9  # YOLO has six decimals of the frame
                assert np.allclose(_parts(a.box, frame), _parts(b.box, other[name]), rtol=0, atol=exact)
    said = " ".join(report.losses)
    assert ("phases of" in said) == (format == "yolo8")
    assert ("times of" in said) == (format in ("labelme", "yolo8"))


def test_cholec_instance_seg_is_the_same_in_labelme_and_coco(data: Path) -> None:
    root = data / "cholec-instance-seg"
    labelme = open_dataset(root)
    coco = open_dataset(root / "_sample_results" / "generated_coco_files" / "sample_generated_coco.json")
    report = check(labelme)
    assert (report.frames, report.instances, report.errors, report.warnings) == (10, 23, 0, 0)
    report = check(coco)
    assert (report.frames, report.instances, report.errors) == (10, 23, 0)
    assert dict(report.counts) == {"id-type": 7, "images-absent": 1}
    first = [f for video in labelme.videos() for f in labelme.frames(video.name)]
    second = [f for video in coco.videos() for f in coco.frames(video.name)]
    for one, other in zip(first, second, strict=True):
        assert one.name.endswith(other.name)
        names = [Counter(space.instruments[i.triplet.instrument].lower() for i in frame.instances)
                 for frame, space in ((one, labelme.space), (other, coco.space))]  # fmt: skip
        assert names[0] == names[1]
        masks = [sorted(mask.area for i in frame.instances if (mask := instance_mask(i, frame.width, frame.height)))
                 for frame in (one, other)]  # fmt: skip
        assert np.allclose(masks[0], masks[1], rtol=0.03, atol=30)


def test_the_clip_is_read_frame_by_frame_in_any_order(data: Path) -> None:
    (path,) = (data / "clip").glob("*.mp4")
    dataset = open_dataset(path)
    (video,) = dataset.videos()
    assert video.frames == 800
    assert video.fps == pytest.approx(25.0)
    report = check(dataset)
    assert (report.frames, report.errors, report.warnings) == (800, 0, 0)
    wanted = list(range(40)) if not LONG else list(range(800))
    forward = {n: read_image(ImageRef(path, n)) for n in wanted[:: 8 if LONG else 1]}
    order = np.random.default_rng(0).permutation(list(forward)).tolist()
    for n in order:
        assert np.array_equal(read_image(ImageRef(path, n)), forward[n]), n
    assert len(list(open_video(path, every=1.0).frames(path.stem))) == 32


@pytest.mark.parametrize("format", ["cholect50", "voc", "yolo8", "labelme", "coco"])
def test_real_labels_survive_every_format(data: Path, tmp_path: Path, format: str) -> None:
    source = open_dataset(data / "cholect50-val")
    report = convert(source, tmp_path / "out", format, images=format in ("cholect50", "yolo8"))
    assert (report.frames, report.instances_written) == (1082, 1192)
    back = check(open_dataset(tmp_path / "out"), images=False)
    assert back.instances == 1192
    assert not {"class-unknown", "triplet-unknown", "file-broken"} & back.counts.keys()


def test_few_real_frames_are_proposed_to_be_dropped(data: Path) -> None:
    dataset = open_dataset(data / "cholect50-val")
    rows = []
    for video in dataset.videos():
        for number, frame in enumerate(dataset.frames(video.name)):
            if frame.image and (LONG or number % 4 == 0):
                rows.append(frame_quality(read_image(frame.image), frame.video, frame.name))
    dropped = propose_drops(rows)
    assert len(dropped) <= 0.015 * len(rows)
    assert all(proposal.reason == "blurred" for proposal in dropped)
    if LONG:
        assert ("VID68", "001903") in {(p.video, p.name) for p in dropped}


def test_contact_sheets_show_real_frames(data: Path) -> None:
    for path, format in (("cholect50-val", None), ("m2cai16-tool-locations", "voc"), ("cholec-instance-seg", None)):
        sheet = contact_sheet(open_dataset(data / path, format), 4)
        assert sheet.shape[1] == 1600
        assert sheet.std() > 20
