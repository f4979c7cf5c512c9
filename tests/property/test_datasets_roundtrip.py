"""What a format can hold comes back unchanged, whatever it is."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from surgeval.datasets import Letterbox, MemoryDataset, convert, export_losses, open_dataset
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet, Video
from surgeval.vocab import load_labels

SIZES = ((96, 64), (64, 96), (80, 80))
SPACE = load_labels("phantom")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], Path]:
    folder = tmp_path_factory.mktemp("pictures")
    paths = {}
    for size in SIZES:
        paths[size] = folder / f"{size[0]}.png"
        Image.new("RGB", size, (180, 60, 50)).save(paths[size])
    return paths


@st.composite
def boxes(draw: st.DrawFn, width: int, height: int) -> Box:
    """Boxes inside the frame with corners on sixteenths of a pixel, so that sums are exact."""
    x1, x2 = sorted(draw(st.lists(st.integers(0, 16 * width), min_size=2, max_size=2, unique=True)))
    y1, y2 = sorted(draw(st.lists(st.integers(0, 16 * height), min_size=2, max_size=2, unique=True)))
    return Box(x1 / 16, y1 / 16, (x2 - x1) / 16, (y2 - y1) / 16)


triplets = st.one_of(
    st.integers(0, len(SPACE.triplets) - 1).map(lambda k: Triplet(*SPACE.triplets[k])), st.just(Triplet(6))
)


@st.composite
def datasets(draw: st.DrawFn, boxed: bool = True) -> MemoryDataset:
    frames, videos = [], []
    for number in range(draw(st.integers(1, 3))):
        name = f"VID{number}"
        width, height = draw(st.sampled_from(SIZES))
        videos.append(Video(name, split=draw(st.sampled_from(["", "train", "val", "test"])), fps=25.0))
        for index in sorted(draw(st.sets(st.integers(0, 999_999), min_size=1, max_size=4))):
            box = boxes(width, height) if boxed else st.one_of(st.none(), boxes(width, height))
            found = draw(st.lists(st.builds(Instance, triplets, box), max_size=4))
            frames.append(Frame(name, f"{index:06d}", index, index / 25.0, None, width, height, tuple(found),
                                phase=draw(st.one_of(st.none(), st.integers(0, 6)))))  # fmt: skip
    return MemoryDataset(SPACE, frames, videos)


def through(source: MemoryDataset, format: str, pictures: dict[tuple[int, int], Path]) -> Iterator[tuple[Frame, Frame]]:
    """Frames before and after writing and reading."""
    known = [frame for video in source.videos() for frame in source.frames(video.name)]
    known = [replace(frame, image=ImageRef(pictures[frame.width, frame.height])) for frame in known]
    with tempfile.TemporaryDirectory() as folder:
        convert(MemoryDataset(SPACE, known, source.videos()), Path(folder) / "out", format)
        back = open_dataset(Path(folder) / "out", labels=SPACE if format == "voc" else None)
        read = {(frame.video, frame.name): frame for video in back.videos() for frame in back.frames(video.name)}
        assert {video.name: video.split for video in back.videos()} == {v.name: v.split for v in source.videos()}
        assert back.space.instruments == SPACE.instruments
        assert len(read) == len(known)
        for frame in known:
            yield frame, read[frame.video, frame.name]


few = settings(max_examples=settings.default.max_examples // 2 if settings.default else 20)


@few
@given(source=datasets(boxed=False))
def test_cholect50_holds_triplets_boxes_phases_and_missing_boxes(
    pictures: dict[tuple[int, int], Path], source: MemoryDataset
) -> None:
    for one, other in through(source, "cholect50", pictures):
        assert (one.index, one.time, one.phase) == (other.index, other.time, other.phase)
        assert [i.triplet for i in one.instances] == [i.triplet for i in other.instances]
        for a, b in zip(one.instances, other.instances, strict=True):
            assert (a.box is None) == (b.box is None)
            if a.box and b.box:
                assert np.allclose(a.box.corners, b.box.corners, rtol=0, atol=1e-9)


@given(
    x=st.floats(0, 639), y=st.floats(0, 479), right=st.floats(1e-3, 640), below=st.floats(1e-3, 480)
)  # fmt: skip
def test_voc_holds_corners_to_the_last_bit_and_counts_from_one(x: float, y: float, right: float, below: float) -> None:
    assume(x < right and y < below and right - x > 0 and below - y > 0)
    box = Box.from_corners(x, y, right, below)
    frame = Frame("VID1", "000001", 0, None, None, 640, 480, (Instance(Triplet(2), box),))
    with tempfile.TemporaryDirectory() as folder:
        convert(MemoryDataset(SPACE, [frame]), Path(folder) / "out", "voc", images=False)
        (file,) = (Path(folder) / "out").rglob("*.xml")
        text = file.read_text()
        (back,) = next(iter(open_dataset(Path(folder) / "out", labels=SPACE).frames("VID1"))).instances
    assert back.box is not None
    assert (back.box.x, back.box.y) == (x, y)
    assert back.box.corners == pytest.approx(box.corners, rel=1e-15)
    written = {key: float(value) for key, value in re.findall("<([xy]m[a-z]+)>([^<]+)<", text)}
    assert written == pytest.approx({"xmin": x + 1, "ymin": y + 1, "xmax": right, "ymax": below}, rel=1e-12)


@few
@given(source=datasets())
@pytest.mark.parametrize("format", ["voc", "labelme"])
def test_corner_formats_hold_boxes_exactly(
    pictures: dict[tuple[int, int], Path], source: MemoryDataset, format: str
) -> None:
    for one, other in through(source, format, pictures):
        bare = tuple(replace(i, triplet=Triplet(i.triplet.instrument)) for i in one.instances)
        read = tuple(replace(i, attributes={}) for i in other.instances)  # without the file's own words
        assert read == (bare if format == "voc" else one.instances)


@few
@given(source=datasets())
def test_coco_holds_all_that_has_a_triplet_exactly(
    pictures: dict[tuple[int, int], Path], source: MemoryDataset
) -> None:
    for one, other in through(source, "coco", pictures):
        assert other.instances == tuple(i for i in one.instances if i.triplet.verb >= 0)
        assert (one.phase, one.time, one.index) == (other.phase, other.time, other.index)


@few
@given(source=datasets())
@pytest.mark.parametrize("format", ["yolo5", "yolo8"])
def test_yolo_holds_boxes_to_six_decimals_of_the_frame(
    pictures: dict[tuple[int, int], Path], source: MemoryDataset, format: str
) -> None:
    for one, other in through(source, format, pictures):
        held = [i for i in one.instances if i.triplet.verb >= 0 or format == "yolo8"]
        assert [i.triplet for i in held] == [i.triplet for i in other.instances]
        for a, b in zip(held, other.instances, strict=True):
            assert a.box is not None
            assert b.box is not None
            assert np.allclose(a.box.corners, b.box.corners, rtol=0, atol=1.01e-6 * max(one.width, one.height))


plain = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e6, 1e6) | st.text(max_size=6)
told = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
names = st.text(max_size=6).filter(lambda name: name not in ("label", "points", "shape_type", "originalPoints"))


@st.composite
def labelme_shapes(draw: st.DrawFn) -> dict[str, object]:
    """Shapes of any dialect: keys in any order, present or absent, and fields that nobody knows."""
    corners = st.lists(st.integers(1, 63) | st.floats(1, 63), min_size=2, max_size=2)
    kind = draw(st.sampled_from(["rectangle", "polygon", "point"]))
    number = {"rectangle": 2, "polygon": 4, "point": 1}[kind]
    verb, target = draw(
        st.sampled_from([("Dissect", "gallbladder"), ("null", "null"), (None, ""), ("null_verb", None)])
    )
    attributes = st.none() | st.fixed_dictionaries(
        {"Action": st.just(verb), "Target": st.just(target)},
        optional={"Track": st.integers(0, 9) | st.sampled_from(["3", "x"]), "position": told, "flags": told},
    )
    fields = {
        "label": draw(st.sampled_from(["hook", "HOOK"])),
        "points": draw(st.lists(corners, min_size=number, max_size=number)), "shape_type": kind,
        "group_id": draw(st.none() | st.integers(0, 2) | st.just("a")),
        "description": draw(st.none() | st.text(max_size=8) | st.sampled_from(["confidence: .87", "confidence: 1\nx"])),
        "flags": draw(st.none() | st.dictionaries(st.text(max_size=3), st.booleans(), max_size=2)),
        "attributes": draw(attributes), "mask": None, **draw(st.dictionaries(names, told, max_size=2)),
    }  # fmt: skip
    optional = ("group_id", "description", "flags", "mask", "attributes")
    order = [key for key in draw(st.permutations(list(fields))) if key not in optional or draw(st.booleans())]
    return {key: fields[key] for key in order}


@few
@given(shapes=st.lists(labelme_shapes(), max_size=4), extra=st.dictionaries(st.text(max_size=5), told, max_size=3),
       data=st.booleans())  # fmt: skip
def test_labelme_files_of_any_dialect_come_back_as_they_were(
    shapes: list[dict[str, object]], extra: dict[str, object], data: bool
) -> None:
    document = {"version": "5.6.1", **extra, "shapes": shapes, "imagePath": "000001.png", "imageHeight": 64,
                "imageWidth": 64, **({"imageData": None} if data else {})}  # fmt: skip
    for key in ("transformInfo", "noAnnotation"):
        document.pop(key, None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in" / "VID1" / "000001.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document))
        source = open_dataset(Path(folder) / "in", labels=SPACE)
        problems: list[object] = []
        report = convert(source, Path(folder) / "out", "labelme", images=False, on_problem=problems.append)
        written = Path(folder) / "out" / "VID1" / "000001.json"
        assert json.dumps(json.loads(written.read_text())) == json.dumps(document)
        again = open_dataset(Path(folder) / "out", labels=SPACE)
        assert [replace(frame, image=None) for frame in source.frames("VID1", problems.append)] == [
            replace(frame, image=None) for frame in again.frames("VID1", problems.append)]  # fmt: skip
    assert report.losses == ()


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=6)
values_of = {"note": texts, "age": st.integers(-5, 5) | st.floats(-9, 9), "sharp": st.booleans(), "a b": texts}


@st.composite
def tracked(draw: st.DrawFn) -> MemoryDataset:
    """A video of boxes and outlines with tracks, scores and attributes; nothing is the same from frame to frame."""
    frames = []
    point = st.tuples(st.integers(0, 96 * 4), st.integers(0, 64 * 4)).map(lambda p: (p[0] / 4, p[1] / 4))
    for index in sorted(draw(st.sets(st.integers(0, 9999), min_size=1, max_size=6))):
        instances = []
        for _ in range(draw(st.integers(0, 4))):
            box = draw(boxes(96, 64))
            left, top, right, below = box.corners
            outline = ((left, top), (right, top), (right, below), draw(point))
            ends = [value for x, y in outline for value in (x, y)]
            box = draw(st.sampled_from([box, Box.from_corners(min(ends[::2]), min(ends[1::2]), max(ends[::2]),
                                                              max(ends[1::2]))]))  # fmt: skip
            tight = box.corners == (min(ends[::2]), min(ends[1::2]), max(ends[::2]), max(ends[1::2]))
            extra: dict[str, object] = draw(st.fixed_dictionaries({}, optional=values_of))
            if draw(st.booleans()):
                extra["occluded"] = True
            if draw(st.booleans()):
                extra["group_id"] = draw(st.integers(1, 3))
            instances.append(Instance(
                draw(triplets), box, polygon=outline if tight and draw(st.booleans()) else (),
                track=draw(st.none() | st.integers(-2, 3)), score=draw(st.none() | st.floats(0, 1)), attributes=extra,
            ))  # fmt: skip
        frames.append(Frame("VID0", f"{index:06d}", index, index / 25, None, 96, 64, tuple(instances),
                            labelled=bool(instances) or draw(st.booleans()),
                            phase=draw(st.none() | st.integers(0, 6))))  # fmt: skip
    return MemoryDataset(SPACE, frames, [Video("VID0", "site", "train", "chole", 25.0, 12.5, len(frames))])


def _joins_another(one: Instance, held: list[Instance]) -> bool:
    """Whether labelme would take an outline for a part of one before it."""
    group = one.attributes.get("group_id")
    before = held[: next(k for k, other in enumerate(held) if other is one)]
    return (
        bool(one.polygon)
        and group is not None
        and any(
            other.polygon and (other.triplet, other.attributes.get("group_id")) == (one.triplet, group)
            for other in before
        )
    )


@few
@given(source=tracked())
@pytest.mark.parametrize("format", ["cvat", "labelme", "coco"])
def test_tracks_scores_and_attributes_come_back(source: MemoryDataset, format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = convert(source, Path(folder) / "out", format, images=False)
        back = open_dataset(Path(folder) / "out")
        told: list[object] = []
        read = list(back.frames("VID0", told.append))
        (video,) = back.videos(told.append)
        known = list(source.frames("VID0"))
        assert len(read) == len(known)
        for one, other in zip(known, read, strict=True):
            held = [i for i in one.instances if i.triplet.verb >= 0 or format != "coco"]
            assert [replace(i, attributes={}) for i in held] == [replace(i, attributes={}) for i in other.instances]
            for a, b in zip(held, other.instances, strict=True):
                known_of = dict(a.attributes)
                if format == "labelme" and _joins_another(a, held):
                    assert "would join them to another of their class" in " ".join(report.losses)
                    known_of["group_id"] = b.attributes["group_id"]
                assert known_of == {key: value for key, value in b.attributes.items() if key != "labelme"}
            assert one.labelled == other.labelled
            if format != "labelme":
                assert (one.phase, one.time, one.index) == (other.phase, other.time, other.index)
    assert video.split == "train"
    if format == "cvat":
        assert report.losses == ()
        assert (video.source, video.procedure, video.fps) == ("site", "chole", 25.0)


@few
@given(source=tracked(), format=st.sampled_from(["yolo5", "yolo8", "cholect50", "voc"]))
def test_what_other_formats_drop_is_said_beforehand(source: MemoryDataset, format: str) -> None:
    instances = [i for frame in source.frames("VID0") for i in frame.instances]
    said = " ".join(export_losses(source, format, images=False))
    assert ("tracks of" in said) == any(i.track is not None for i in instances)
    assert ("outlines of" in said) == any(i.polygon for i in instances)
    for name in ("note", "age", "sharp", "a b", "group_id"):
        assert (f"attribute {name!r}" in said) == any(name in i.attributes for i in instances)
    if format != "cholect50":
        assert ("scores of" in said) == any(i.score is not None for i in instances)
    with tempfile.TemporaryDirectory() as folder:
        assert said == " ".join(convert(source, Path(folder) / "out", format, images=False).losses)


sides = st.integers(2, 4000)


@given(width=sides, height=sides, size=st.sampled_from([224, 640, 1024]), data=st.data())
def test_the_square_and_back_is_the_same_box(width: int, height: int, size: int, data: st.DataObject) -> None:
    box = data.draw(boxes(width, height))
    letterbox = Letterbox(width, height, size)
    there = letterbox.forward(box)
    assert there.inside(size, size, 1e-9)
    assert np.allclose(letterbox.inverse(there).corners, box.corners, rtol=0, atol=1e-9)


@given(width=sides, height=sides, x=st.floats(-1e4, 1e4), y=st.floats(-1e4, 1e4))
def test_points_outside_are_clamped_to_the_square(width: int, height: int, x: float, y: float) -> None:
    letterbox = Letterbox(width, height)
    u, v = letterbox.forward_point((x, y))
    assert 0 <= u <= 640
    assert 0 <= v <= 640
