from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import (
    Dataset,
    MemoryDataset,
    OnProblem,
    check,
    convert,
    export_losses,
    open_dataset,
    raise_errors,
)
from surgeval.errors import BadInput, DataError
from surgeval.records import Box, Frame, ImageRef, Instance, Mask, Triplet, VqaQuestion
from surgeval.vocab import LabelSpace, load_labels

FORMATS = ["cholect50", "voc", "yolo5", "yolo8", "labelme", "coco", "cvat"]
Make = Callable[[], MemoryDataset]


def frames_of(dataset: Dataset) -> list[Frame]:
    return [frame for video in dataset.videos() for frame in dataset.frames(video.name)]


@pytest.mark.parametrize("format", FORMATS)
def test_labels_survive_a_round_trip(make: Make, tmp_path: Path, same: Callable[..., None], format: str) -> None:
    source = make()
    report = convert(source, tmp_path / "out", format)
    assert (report.frames, report.images) == (6, 6)
    assert report.instances_read == report.instances_written == 8
    back = open_dataset(tmp_path / "out")
    for one, other in zip(frames_of(source), frames_of(back), strict=True):
        if format == "voc":  # instruments only
            bare = [replace(i, triplet=Triplet(i.triplet.instrument)) for i in one.instances]
            one = replace(one, instances=tuple(bare))
        same(one, other, 1e-3 if format.startswith("yolo") else 1e-9)
        assert one.image is not None
        assert other.image is not None
        assert other.image.path.read_bytes() == one.image.path.read_bytes()  # copied, not encoded again


@pytest.mark.parametrize("format", ["cholect50", "coco", "cvat"])
def test_phase_time_split_and_source_survive_where_the_format_holds_them(
    make: Make, tmp_path: Path, format: str
) -> None:
    source = make()
    convert(source, tmp_path / "out", format)
    back = open_dataset(tmp_path / "out")
    for one, other in zip(source.videos(), back.videos(), strict=True):
        assert (one.name, one.source, one.split, one.procedure, one.fps) == (
            other.name, other.source, other.split, other.procedure, other.fps)  # fmt: skip
    for before, after in zip(frames_of(source), frames_of(back), strict=True):
        assert (before.phase, before.time) == (after.phase, after.time)


def test_what_a_format_cannot_hold_is_said(tmp_path: Path, phantom: Path) -> None:
    losses = convert(open_dataset(phantom), tmp_path / "voc", "voc").losses
    for words in (
        "verbs of 4 instances",
        "targets of 4",
        "tracks of 8",
        "masks of 8",
        "phases of 4 frames",
        "2 questions",
    ):
        assert any(f"voc: {words}" in loss for loss in losses), losses
    report = convert(open_dataset(phantom), tmp_path / "coco", "coco")
    assert "coco: 4 instances without a whole triplet were left out" in report.losses
    assert (report.instances_read, report.instances_written) == (8, 4)
    report = convert(open_dataset(phantom), tmp_path / "yolo", "yolo8")
    assert report.instances_written == 8
    report = convert(open_dataset(phantom), tmp_path / "focus", "focus")
    assert set(report.losses) == {
        "focus: 1 questions of another kind were left out",
        "focus: frames and labels are not kept",
    }


def test_nothing_is_said_when_nothing_is_lost(make: Make, tmp_path: Path) -> None:
    assert convert(make(), tmp_path / "coco", "coco").losses == ()
    assert convert(make(), tmp_path / "cholect50", "cholect50").losses == ()
    assert convert(make(), tmp_path / "cvat", "cvat").losses == ()


def test_masks_tracks_scores_and_outlines_survive_coco(make: Make, tmp_path: Path) -> None:
    source = make()
    base = next(iter(source.frames("VID01")))
    mask = Mask.from_array(np.arange(64 * 96).reshape(64, 96) % 7 == 0)
    parts = (((1.5, 2.0), (9.0, 2.0), (9.0, 8.25)), ((20.0, 20.0), (30.0, 20.0), (30.0, 30.0)))
    rich = (
        Instance(base.instances[0].triplet, Box(0, 0, 96, 64), mask, track=4, score=0.25),
        Instance(base.instances[0].triplet, Box(1.5, 2, 7.5, 6.25), polygon=parts[0], attributes={"step": [1, 2]}),
        Instance(base.instances[0].triplet, Box(1.5, 2, 28.5, 28), attributes={"polygons": parts}),
    )
    convert(MemoryDataset(source.space, [replace(base, instances=rich)]), tmp_path / "out", "coco")
    one, two, three = next(iter(open_dataset(tmp_path / "out").frames("VID01"))).instances
    assert (one.mask, one.track, one.score) == (mask, 4, 0.25)
    assert (two.polygon, two.attributes) == (parts[0], {"step": [1, 2]})
    assert three.attributes["polygons"] == parts


def test_attributes_cannot_take_the_place_of_coco_s_own_keys(make: Make, tmp_path: Path) -> None:
    base = next(iter(make().frames("VID01")))
    extra = {"bbox": [0, 0, 1, 1], "category_id": 99, "score": "x", "note": "kept", "bad": float("nan"), "odd": b"x"}
    frame = replace(base, instances=(replace(base.instances[0], attributes=extra),), attributes={"smoke": True})
    report = convert(MemoryDataset(load_labels("cholect50"), [frame]), tmp_path / "out", "coco")
    (back,) = frames_of(open_dataset(tmp_path / "out"))
    (instance,) = back.instances
    assert (instance.triplet, instance.box) == (base.instances[0].triplet, base.instances[0].box)
    assert (instance.attributes, back.attributes) == ({"note": "kept"}, {"smoke": True})
    for name, why in (
        ("bbox", "needs"),
        ("category_id", "needs"),
        ("score", "needs"),
        ("bad", "JSON"),
        ("odd", "JSON"),
    ):
        assert any(f"attribute {name!r} of 1 records" in loss and why in loss for loss in report.losses)


@pytest.mark.parametrize("format", ["labelme", "cvat", "yolo8", "cholect50", "yolo5", "coco"])
def test_a_triplet_that_is_no_class_is_a_stated_loss(make: Make, tmp_path: Path, format: str) -> None:
    source = make()
    base = next(iter(source.frames("VID01")))
    suction = Triplet(source.space.id("instrument", "hook"), source.space.id("verb", "clip"), 0)
    assert source.space.find(suction.instrument, suction.verb, suction.target) < 0
    frame = replace(base, instances=(*base.instances, replace(base.instances[0], triplet=suction)))
    report = convert(MemoryDataset(source.space, [frame]), tmp_path / "out", format)
    words = "triplet is no class" if format in ("yolo5", "coco") else "no classes of the label space"
    assert any(words in loss for loss in report.losses), report.losses
    told: list[object] = []
    assert len(next(iter(open_dataset(tmp_path / "out").frames("VID01", told.append))).instances) == 2


def test_a_score_of_one_is_a_label_in_cholect50_and_that_is_said(make: Make, tmp_path: Path) -> None:
    base = next(iter(make().frames("VID01")))
    scored = tuple(replace(base.instances[0], score=score) for score in (1.0, 0.25))
    dataset = MemoryDataset(load_labels("cholect50"), [replace(base, instances=scored)])
    assert "cholect50: scores of 1 instances that are exactly 1, which reads as a label, are not kept" in convert(
        dataset, tmp_path / "out", "cholect50").losses  # fmt: skip
    assert [i.score for i in frames_of(open_dataset(tmp_path / "out"))[0].instances] == [None, 0.25]


def test_unlabelled_and_empty_frames_stay_apart(make: Make, tmp_path: Path) -> None:
    source = make()
    frames = frames_of(source)
    frames[1] = replace(frames[1], labelled=False, instances=(), phase=None)
    for format in FORMATS:
        convert(MemoryDataset(source.space, frames, source.videos()), tmp_path / format, format)
        back = open_dataset(tmp_path / format)
        told: list[object] = []
        read = [f for v in back.videos(told.append) for f in back.frames(v.name, told.append)]
        assert [frame.labelled for frame in read] == [True, False, True, True, True, True], format


def test_a_phase_of_an_empty_frame_survives_cholect50(make: Make, tmp_path: Path) -> None:
    convert(make(), tmp_path / "out", "cholect50")
    assert [frame.phase for frame in frames_of(open_dataset(tmp_path / "out"))] == [1, 1, 1, 2, 2, 2]


def test_underscores_in_frame_names_are_replaced_and_said(make: Make, tmp_path: Path) -> None:
    frame = replace(next(iter(make().frames("VID01"))), name="t80_VID03_000030")
    report = convert(MemoryDataset(load_labels("cholect50"), [frame]), tmp_path / "out", "yolo8")
    assert "yolo8: underscores in the names of 1 frames became dashes" in report.losses
    assert frames_of(open_dataset(tmp_path / "out"))[0].name == "t80-VID03-000030"


def test_bad_requests_are_refused_before_anything_is_written(make: Make, tmp_path: Path) -> None:
    for words, options in (
        ("'doc': expected one of cholect50", {"format": "doc"}),
        ("size 5", {"format": "coco", "size": 5}),
        ("exclude each other", {"format": "coco", "size": 640, "restore": True}),
        ("expected labelme", {"format": "coco", "restore": True}),
    ):
        with pytest.raises(BadInput, match=words):
            convert(make(), tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    with pytest.raises(BadInput, match="found something there already"):
        convert(make(), tmp_path / "full", "coco")


def test_a_conversion_that_fails_leaves_nothing_behind(make: Make, tmp_path: Path) -> None:
    source = make()
    (tmp_path / "source" / "VID02" / "000050.jpg").unlink()
    with pytest.raises(DataError, match=r"000050\.jpg: found no such file"):
        convert(source, tmp_path / "out", "coco")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_disguised_file_is_not_copied(make: Make, tmp_path: Path) -> None:
    source = make()
    (tmp_path / "source" / "VID02" / "000050.jpg").write_text("root:x:0:0")
    with pytest.raises(DataError, match="a file that is no image"):
        convert(source, tmp_path / "out", "yolo8")


def test_images_can_be_left_out(make: Make, tmp_path: Path) -> None:
    assert convert(make(), tmp_path / "out", "coco", images=False).images == 0
    assert not list((tmp_path / "out").rglob("*.jpg"))
    assert len(frames_of(open_dataset(tmp_path / "out"))) == 6


def test_questions_are_read_once_for_the_account(make: Make, tmp_path: Path, vqa: VqaQuestion) -> None:
    source = make()
    report = convert(MemoryDataset(source.space, frames_of(source), source.videos(), [vqa]), tmp_path / "out", "coco")
    assert report.losses == ("coco: 1 questions are not kept",)


def test_shapes_that_are_no_instances_are_announced_but_where_they_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "labelme" / "V1"
    folder.mkdir(parents=True)
    Image.new("RGB", (80, 40)).save(folder / "000001.jpg")
    kinds = {"rectangle": [[1, 1], [9, 9]], "point": [[5, 5]], "circle": [[5, 5], [9, 9]], "line": [[1, 1], [2, 2]]}
    shapes = [{"label": "hook", "points": points, "shape_type": kind} for kind, points in kinds.items()]
    document = {"shapes": shapes, "imageWidth": 80, "imageHeight": 40, "imagePath": "000001.jpg"}
    (folder / "000001.json").write_text(json.dumps(document))
    lost = "3 shapes that are no boxes or outlines are not kept"
    dataset = open_dataset(tmp_path / "labelme")
    assert f"coco: {lost}" in convert(dataset, tmp_path / "coco", "coco").losses
    assert f"cvat: {lost}" in export_losses(dataset, "cvat")
    assert export_losses(dataset, "labelme") == ()


def test_cvat_s_other_shapes_are_announced(tmp_path: Path) -> None:
    other = '<ellipse label="hook" cx="5" cy="5" rx="2" ry="2"/><points label="hook" points="1,1"/>'
    box = '<box label="hook" xtl="1" ytl="1" xbr="9" ybr="9"/>'
    picture = f'<image id="0" name="000001.jpg" width="80" height="40">{box}{other}</image>'
    (tmp_path / "task.xml").write_text(f"<annotations>{picture}</annotations>")
    lost = export_losses(open_dataset(tmp_path / "task.xml"), "cvat")
    assert lost == ("cvat: 2 shapes that are no boxes or outlines are not kept",)


@pytest.mark.parametrize("format", FORMATS)
def test_a_frame_rate_and_a_length_are_read_back_or_announced_as_lost(make: Make, tmp_path: Path, format: str) -> None:
    source = make()
    videos = [replace(video, seconds=3.0) for video in source.videos()]
    report = convert(MemoryDataset(source.space, frames_of(source), videos), tmp_path / "out", format)
    read = open_dataset(tmp_path / "out").videos()
    for words, kept in (
        ("frame rates", all(v.fps == 25 for v in read)),
        ("lengths", all(v.seconds == 3 for v in read)),
    ):
        assert kept != (f"{format}: {words} of 2 videos are not kept" in report.losses)


def test_a_mask_s_own_area_is_no_attribute_when_it_is_read_back(tmp_path: Path) -> None:
    mask = Mask.from_array(np.eye(20, dtype=bool))
    frame = Frame("V1", "000001", 1, None, None, 20, 20, (Instance(Triplet(3), mask.box(), mask),))
    convert(MemoryDataset(load_labels("cholec80"), [frame]), tmp_path / "coco", "coco")
    (read,) = frames_of(open_dataset(tmp_path / "coco"))
    assert read.instances[0].attributes == {}


def test_each_frame_is_written_before_the_next_is_read(tmp_path: Path) -> None:
    class Watching(MemoryDataset):
        def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
            for number, frame in enumerate(super().frames(video, on_problem)):
                assert len(list(tmp_path.rglob("V_*.txt"))) == number
                yield frame

    box = Instance(Triplet(0), Box(1, 1, 9, 9))
    frames = [Frame("V", f"{n:06d}", n, None, None, 64, 64, (box,)) for n in range(20)]
    assert convert(Watching(load_labels("cholec80"), frames), tmp_path / "out", "yolo5").frames == 20


def test_video_frames_become_images(exported: Callable[[str], Path], tmp_path: Path) -> None:
    report = convert(open_dataset(exported("mp4")), tmp_path / "frames", "cholect50")
    assert report.images == 6
    assert "cholect50: 6 video frames were encoded as images" in report.losses
    assert ImageRef(tmp_path / "frames" / "videos" / "VID01" / "000001.jpg").path.is_file()


@pytest.mark.parametrize("name", ["hook\x01", "ho\tok", "hook\r", "hook\ufffe"])
def test_a_name_that_xml_cannot_hold_is_refused_before_anything_is_written(
    make: Make, tmp_path: Path, name: str
) -> None:
    space = LabelSpace("odd", ("grasper", name))
    frames = [replace(frame, instances=(Instance(Triplet(1), Box(1, 1, 9, 9)),)) for frame in frames_of(make())]
    with pytest.raises(BadInput, match=r"instrument 1 of odd: found the name .* which XML cannot hold"):
        convert(MemoryDataset(space, [replace(frame, phase=None) for frame in frames]), tmp_path / "out", "voc")
    assert not (tmp_path / "out").exists()


def test_control_characters_elsewhere_are_replaced_and_said(make: Make, tmp_path: Path) -> None:
    source = make()
    odd = Instance(Triplet(1), Box(1, 1, 9, 9), attributes={"pose": "a\x02b <&>"})
    frame = replace(frames_of(source)[0], video="V\x01", instances=(odd,))
    report = convert(MemoryDataset(source.space, [frame]), tmp_path / "out", "voc")
    assert "voc: 1 texts with characters that XML cannot hold were changed" in report.losses
    assert "voc: names of 1 videos became other file names" in report.losses
    (back,) = frames_of(open_dataset(tmp_path / "out"))
    assert back.instances[0].box == odd.box
    assert back.instances[0].attributes == {"pose": "a\ufffdb <&>"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("images", [True, False])
def test_unlabelled_frames_are_kept_or_said_to_be_lost(make: Make, tmp_path: Path, format: str, images: bool) -> None:
    source = make()
    frames = [replace(frame, labelled=frame.index != 50, instances=frame.instances if frame.index != 50 else ())
              for frame in frames_of(source)]  # fmt: skip
    report = convert(MemoryDataset(source.space, frames), tmp_path / "out", format, images=images)
    said = [loss for loss in report.losses if "2 unlabelled frames" in loss]
    back = frames_of(open_dataset(tmp_path / "out"))
    assert len(back) == (4 if said else 6)
    assert bool(said) == (not images and format not in ("coco", "labelme", "cvat"))
    assert sum(not frame.labelled for frame in back) == (0 if said else 2)


def test_a_place_inside_the_dataset_is_refused(exported: Callable[[str], Path], tmp_path: Path) -> None:
    root = exported("coco")
    before = sorted(root.rglob("*"))
    (tmp_path / "link").symlink_to(root / "images")
    for out in (root / "out", root, root / "images" / ".." / "deep" / "er", tmp_path / "link" / "out"):
        with pytest.raises(BadInput, match=r"found (a place inside the dataset|something there already)"):
            convert(open_dataset(root), out, "yolo8")
    assert sorted(root.rglob("*")) == before


def test_a_link_to_an_empty_folder_is_written_through(make: Make, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert convert(make(), tmp_path / "out", "coco").out == tmp_path / "out"
    assert (tmp_path / "out").is_symlink()
    assert check(open_dataset(tmp_path / "disk")).ok


def test_what_a_killed_conversion_left_is_removed_by_the_next(make: Make, tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {dead.pid: f".out.{dead.pid}.partial", os.getppid(): f".out.{os.getppid()}.partial", 0: ".other.1.partial"}
    for name in names.values():
        (tmp_path / name / "images").mkdir(parents=True)
    convert(make(), tmp_path / "out", "coco")
    left = {path.name for path in tmp_path.iterdir() if path.name.endswith(".partial")}
    assert left == set(names.values()) - {names[dead.pid]}


@pytest.mark.parametrize("format", ["cholect50", "labelme", "yolo8", "cvat"])
def test_null_verb_and_target_that_are_no_class_are_written_as_the_instrument_alone(
    format: str, tmp_path: Path
) -> None:
    space = load_labels("phantom")
    bag = space.find_name("instrument", "specimen_bag")
    pair = space.find_name("verb", "null_verb"), space.find_name("target", "null_target")
    assert space.find(bag, *pair) == -1
    Image.new("RGB", (64, 48)).save(tmp_path / "frame.jpg")
    image = ImageRef(tmp_path / "frame.jpg")
    alone = Frame("op", "000000", 0, None, image, 64, 48, (Instance(Triplet(bag, *pair), Box(5, 5, 10, 10)),))
    report = convert(MemoryDataset(space, [alone]), tmp_path / "out", format)
    assert not any("no classes of the label space" in loss for loss in report.losses)
    back = open_dataset(tmp_path / "out")
    assert not [problem for problem in check(back).problems if problem.level == "error"]
    ((frame,),) = ([*back.frames(video.name)] for video in back.videos())
    assert [back.space.instruments[instance.triplet.instrument] for instance in frame.instances] == ["specimen_bag"]
    assert frame.instances[0].triplet.verb == -1
