"""CVAT's own files: key frames and what lies between them, images, masks, projects; and files made to harm."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import check, convert, open_dataset
from surgeval.datasets.formats.cvat.document import Shape
from surgeval.datasets.formats.cvat.motion import Course
from surgeval.records import Box, Frame, Triplet
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")
META = """<meta><task><id>7</id><name>op</name><size>{size}</size><mode>interpolation</mode>
<start_frame>0</start_frame><stop_frame>9</stop_frame><frame_filter>{step}</frame_filter><labels><label>
<name>scissors</name><attributes>
<attribute><name>action</name><mutable>True</mutable><input_type>select</input_type><default_value>null</default_value>
<values>cut\nnull</values></attribute>
<attribute><name>sharp</name><mutable>False</mutable><input_type>checkbox</input_type></attribute>
<attribute><name>age</name><mutable>False</mutable><input_type>number</input_type></attribute>
</attributes></label></labels><original_size><width>80</width><height>40</height></original_size></task></meta>"""


def box(frame: int, x: float = 0, y: float = 0, more: str = "", inner: str = "", w: float = 10) -> str:
    corners = f'xtl="{x}" ytl="{y}" xbr="{x + w}" ybr="{y + 10}"'
    more = more or 'keyframe="1" outside="0" occluded="0"'
    return f'<box frame="{frame}" {more} {corners} z_order="0">{inner}</box>'


def polygon(frame: int, points: str) -> str:
    return f'<polygon frame="{frame}" keyframe="1" outside="0" occluded="0" points="{points}"/>'


def track(*shapes: str, label: str = "scissors", number: int = 0, more: str = "") -> str:
    return f'<track id="{number}" label="{label}" source="manual" {more}>{"".join(shapes)}</track>'


def put(root: Path, *body: str, size: int = 10, step: str = "", name: str = "op/annotations.xml") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(body)
    head = META.format(size=size, step=step)
    path.write_text(
        f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>{head}{text}</annotations>'
    )
    return root


def frames_of(root: Path, video: str = "op") -> list[Frame]:
    return list(open_dataset(root, labels=PROSTATD).frames(video))


def lefts(frames: list[Frame]) -> list[list[float]]:
    return [[i.box.x for i in frame.instances if i.box] for frame in frames]


def test_boxes_move_evenly_between_key_frames_and_stay_until_the_end(tmp_path: Path) -> None:
    frames = frames_of(put(tmp_path, track(box(2, 10), box(6, 30))))
    assert [frame.name for frame in frames] == [f"{n:06d}" for n in range(10)]
    assert lefts(frames) == [[], [], [10], [15], [20], [25], [30], [30], [30], [30]]
    assert [i.attributes.get("keyframe") for frame in frames for i in frame.instances] == [
        None, False, False, False, None, False, False, False]  # fmt: skip
    assert {i.track for frame in frames for i in frame.instances} == {0}


def test_what_is_outside_is_not_seen_until_the_next_key_frame(tmp_path: Path) -> None:
    gone = box(4, 18, more='keyframe="1" outside="1" occluded="0"')
    frames = frames_of(put(tmp_path, track(box(2, 10), gone, box(7, 50, more='keyframe="1" outside="0" occluded="1"'))))
    assert lefts(frames) == [[], [], [10], [14], [], [], [], [50], [50], [50]]
    assert frames[7].instances[0].attributes == {"occluded": True}


def test_what_cvat_wrote_between_key_frames_is_left_out(tmp_path: Path) -> None:
    wrong = box(3, 70, more='keyframe="0" outside="0" occluded="0"')
    assert lefts(frames_of(put(tmp_path, track(box(2, 10), wrong, box(6, 30)))))[3] == [15]


def test_a_value_stays_until_a_key_frame_says_otherwise(tmp_path: Path) -> None:
    first = ('<attribute name="action">cut</attribute><attribute name="target">bladder</attribute>'
             '<attribute name="sharp">true</attribute><attribute name="age">3</attribute>'
             '<attribute name="note">a &lt; b</attribute>')  # fmt: skip
    second = '<attribute name="action">null</attribute><attribute name="target">__undefined__</attribute>'
    frames = frames_of(put(tmp_path, track(box(0, 10, inner=first), box(5, 20, inner=second))))
    cut = Triplet(*PROSTATD.triplets[PROSTATD.triplet_id("scissors", "cut", "bladder")])
    assert [frames[n].instances[0].triplet for n in (0, 4)] == [cut, cut]
    assert frames[5].instances[0].triplet == Triplet(cut.instrument, PROSTATD.id("verb", "null"), -1)
    assert frames[0].instances[0].attributes == frames[5].instances[0].attributes
    assert frames[0].instances[0].attributes == {"sharp": True, "age": 3, "note": "a < b"}


def test_images_of_a_task_tell_names_and_number_of_frames(tmp_path: Path) -> None:
    put(tmp_path, track(box(0, 10), box(2, 30)))
    (tmp_path / "op" / "images").mkdir()
    for name in ("000025", "000050", "000075"):
        Image.new("RGB", (80, 40)).save(tmp_path / "op" / "images" / f"{name}.png")
    frames = frames_of(tmp_path)
    assert [(frame.name, frame.index) for frame in frames] == [("000025", 25), ("000050", 50), ("000075", 75)]
    assert lefts(frames) == [[10], [20], [30]]
    assert check(open_dataset(tmp_path, labels=PROSTATD)).ok


def test_a_task_of_every_fifth_frame(tmp_path: Path) -> None:
    frames = frames_of(put(tmp_path, track(box(0, 10), box(10, 20)), size=4, step="step=5"))
    assert [(frame.index, left) for frame, left in zip(frames, lefts(frames), strict=True)] == [
        (0, [10]), (5, [15]), (10, [20]), (15, [20])]  # fmt: skip


def morph(
    left: list[tuple[float, float]], right: list[tuple[float, float]], frame: int
) -> tuple[tuple[float, float], ...]:
    course = Course([Shape(0, "polygon", tuple(left), 1), Shape(10, "polygon", tuple(right), 2)], 11)
    seen = course.at(frame)
    assert seen is not None
    return seen.shape.points


SQUARE = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)]


def test_outlines_with_vertices_at_the_same_places_move_evenly() -> None:
    moved = [(x * 2 + 5, y * 2 + 3) for x, y in SQUARE]
    assert morph(SQUARE, moved, 5) == tuple(((a + c) / 2, (b + d) / 2)
                                            for (a, b), (c, d) in zip(SQUARE, moved, strict=True))  # fmt: skip


def test_a_vertex_that_appears_grows_out_of_its_neighbour() -> None:
    # The new vertex at (10, 5) lies 15/40 along: as near to the corner at 10/40 as to that at 20/40, the first counts.
    five = [*SQUARE[:2], (10.0, 5.0), *SQUARE[2:]]
    assert morph(SQUARE, five, 5) == ((0.0, 0.0), (10.0, 0.0), (10.0, 2.5), (10.0, 10.0), (0.0, 10.0))
    assert morph(SQUARE, five, 1) == ((0.0, 0.0), (10.0, 0.25), (10.0, 10.0), (0.0, 10.0))  # still too close: one


def test_a_vertex_that_vanishes_runs_into_its_neighbour() -> None:
    five = [*SQUARE[:2], (10.0, 5.0), *SQUARE[2:]]
    assert morph(five, SQUARE, 9) == ((0.0, 0.0), (10.0, 0.25), (10.0, 10.0), (0.0, 10.0))
    assert morph(five, SQUARE, 1) == ((0.0, 0.0), (10.0, 0.0), (10.0, 4.5), (10.0, 10.0), (0.0, 10.0))


def test_outlines_without_extent_do_not_break() -> None:
    assert len(morph(SQUARE, [(5.0, 5.0)] * 4, 5)) >= 3
    assert morph([(5.0, 5.0)] * 3, [(5.0, 5.0)] * 3, 5)


def test_a_turned_box_is_an_outline(tmp_path: Path) -> None:
    turned = box(0, 20, 10, more='keyframe="1" outside="0" occluded="0" rotation="90.0"', w=20)
    instance = frames_of(put(tmp_path, track(turned)))[0].instances[0]
    assert instance.box is not None
    assert np.allclose(instance.box.corners, (25, 5, 35, 25))
    assert len(instance.polygon) == 4


IMAGES = """<image id="{id}" name="{name}" width="80" height="40">
<box label="scissors" source="manual" occluded="1" xtl="1" ytl="2" xbr="11" ybr="22" z_order="1">
<attribute name="Action">cut</attribute><attribute name="Target">bladder</attribute></box>
<polygon label="grasper" occluded="0" points="1,1;9,1;9,9" z_order="0" group_id="2"/>
<mask label="forceps" occluded="0" rle="1, 2, 1" left="4" top="6" width="2" height="2" z_order="2"/>
<points label="scissors" occluded="0" points="3,3" z_order="0"/><tag label="smoke" source="manual"/></image>"""


def test_files_for_images_have_boxes_outlines_masks_and_tags(
    tmp_path: Path, heard: Any, read: Callable[..., list[Frame]]
) -> None:
    put(tmp_path, IMAGES.format(id=0, name="VID01/000025.jpg"), IMAGES.format(id=1, name="VID02/000050.jpg"))
    dataset = open_dataset(tmp_path, labels=PROSTATD)
    one, two = read(dataset, heard)
    assert [(one.video, one.name), (two.video, two.name)] == [("VID01", "000025"), ("VID02", "000050")]
    assert one.attributes == {"tags": ["smoke"]}
    outline, scissors, mask = one.instances
    assert (scissors.box, scissors.attributes, scissors.track) == (Box(1, 2, 10, 20), {"occluded": True}, None)
    assert (outline.polygon, outline.attributes) == (((1, 1), (9, 1), (9, 9)), {"group_id": 2})
    assert mask.mask is not None
    assert np.argwhere(mask.mask.to_array()).tolist() == [[6, 5], [7, 4]]
    assert [problem.kind for problem in heard] == ["shape-ignored"] * 2


def test_several_tasks_of_a_project_are_several_videos(tmp_path: Path) -> None:
    head = ("<meta><project><id>1</id><tasks><task><id>4</id><name>A</name><size>2</size></task>"
            "<task><id>5</id><name>B</name><size>2</size></task></tasks></project></meta>")  # fmt: skip
    body = track(box(0, 10), more='task_id="4"') + track(box(1, 20), more='task_id="5"')
    (tmp_path / "annotations.xml").write_text(f"<annotations>{head}{body}</annotations>")
    dataset = open_dataset(tmp_path, labels=PROSTATD)
    assert [video.name for video in dataset.videos()] == ["A", "B"]
    assert lefts(list(dataset.frames("A"))) == [[10], [10]]
    assert lefts(list(dataset.frames("B"))) == [[], [20]]


def test_unknown_names_make_a_space_of_their_own(tmp_path: Path) -> None:
    inner = '<attribute name="Action">stir</attribute><attribute name="Target">soup</attribute>'
    dataset = open_dataset(put(tmp_path, track(box(0, 10, inner=inner), label="spoon")))
    assert dataset.space.triplet_names == ("spoon,stir,soup",)
    assert dataset.format == "cvat"


def test_a_file_alone_and_a_folder_of_files_are_opened(tmp_path: Path) -> None:
    put(tmp_path, track(box(0, 10)), name="a.xml")
    put(tmp_path, track(box(0, 10)), name="b.xml")
    assert [video.name for video in open_dataset(tmp_path / "a.xml").videos()] == ["a"]
    assert [video.name for video in open_dataset(tmp_path).videos()] == ["a", "b"]


# ── files made to harm ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        (box(0).replace('xtl="0"', 'xtl="nan"'), "not-finite", "xtl: found NaN"),
        (box(0).replace('xtl="0"', 'xtl="1e999"'), "not-finite", "xtl: found Infinity"),
        (box(0).replace('xtl="0"', 'xtl="left"'), "not-a-number", "'left'"),
        (box(0).replace('xtl="0"', ""), "not-a-number", "xtl: found nothing"),
        (box(-1), "not-a-number", "frame"),
        (box(10**9), "not-a-number", "frame"),
        (box(0).replace('frame="0"', 'frame="x"'), "not-a-number", "'x'"),
        (box(0, 500), "box-off-frame", "80 × 40"),
        (box(0, 75), "box-outside", "inside the 80 × 40"),
        (box(0, w=0), "box-degenerate", "0 × 10"),
        (polygon(0, "1,1;2,2"), "mask-broken", "2 points"),
        (polygon(0, "1,1;2,nan;3,3"), "not-finite", "NaN"),
        (polygon(0, "1,1;2;3,3"), "not-a-number", "two numbers"),
        (polygon(0, ""), "not-a-number", "two numbers"),
        (
            '<mask frame="0" keyframe="1" rle="1,99999999999" left="0" top="0" width="2" height="2"/>',
            "mask-broken",
            "4",
        ),
        ('<mask frame="0" keyframe="1" rle="0,4" left="79" top="0" width="2" height="2"/>', "mask-broken", "inside"),
        (box(0, inner='<attribute name="Action">fly</attribute>'), "class-unknown", "'fly'"),
        ('<ellipse frame="0" cx="1" cy="1" rx="1" ry="1"/>', "shape-ignored", "<ellipse>"),
    ],
)
def test_each_wrong_shape_is_named(
    tmp_path: Path, heard: Any, read: Callable[..., list[Frame]], shape: str, kind: str, words: str
) -> None:
    put(tmp_path, track(box(0, 10)), track(shape, number=1), size=1)
    (frame,) = read(open_dataset(tmp_path, labels=PROSTATD), heard)
    kinds = [problem.kind for problem in heard if problem.kind != "images-absent"]
    assert set(kinds) == {kind}, list(map(str, heard))
    assert words in heard.of(kind)[0]
    assert len(frame.instances) == (2 if kind == "box-outside" else 1)


def test_an_entity_bomb_and_a_foreign_document_type_are_refused(
    tmp_path: Path, heard: Any, read: Callable[..., list[Frame]]
) -> None:
    (tmp_path / "secret").write_text("secret")
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    for prolog in (
        f'<!DOCTYPE annotations [<!ENTITY e0 "boom">{layers}]>',
        f'<!DOCTYPE annotations [<!ENTITY e11 SYSTEM "file://{tmp_path}/secret">]>',
        '<!DOCTYPE annotations SYSTEM "http://127.0.0.1:9/x.dtd">',
    ):
        heard.clear()
        text = f"{prolog}<annotations>{track(box(0, 1), label='&e11;')}</annotations>"
        (tmp_path / "annotations.xml").write_text(text)
        assert read(open_dataset(tmp_path / "annotations.xml", "cvat"), heard) == []
        assert heard.of("file-broken")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<annotations>" + "<a>" * 100_000, "file-broken"),
        ("<annotations><track id='0' label='x'>", "file-broken"),
        ("<annotations>\x01</annotations>", "file-broken"),
        ("<annotations>&undefined;</annotations>", "file-broken"),
        ("<?xml version='1.0' encoding='ebcdic-x'?><annotations></annotations>", "file-broken"),
        ("<annotations><meta>" + "x" * (1 << 24) + "x</meta></annotations>", "file-broken"),
    ],
)
def test_broken_xml_is_named(
    tmp_path: Path, heard: Any, read: Callable[..., list[Frame]], text: str, kind: str
) -> None:
    (tmp_path / "annotations.xml").write_text(text)
    assert read(open_dataset(tmp_path, "cvat"), heard) == []
    assert heard.of(kind), list(map(str, heard))


@pytest.mark.parametrize("size", [10**9, 2_000_001, -1, "many"])
def test_a_task_of_absurd_size_is_not_believed(tmp_path: Path, heard: Any, size: Any) -> None:
    dataset = open_dataset(put(tmp_path, track(box(0, 10)), size=size), labels=PROSTATD)
    assert len(list(dataset.frames("op", heard))) == 1
    assert heard.of("not-a-number")


def test_endless_tracks_are_refused_before_they_are_followed(tmp_path: Path, heard: Any) -> None:
    tracks = [track(box(0, 10), number=n) for n in range(200)]
    dataset = open_dataset(put(tmp_path, *tracks, size=1_999_999), labels=PROSTATD)
    start = time.perf_counter()
    assert list(dataset.frames("op", heard)) == []
    assert "vertices between their key frames" in heard.of("file-too-large")[0]
    assert time.perf_counter() - start < 60


@pytest.mark.parametrize("name", ["../../secret.png", "/etc/passwd", "C:\\x.png"])
def test_a_name_that_leaves_the_folder_is_refused(
    tmp_path: Path, heard: Any, read: Callable[..., list[Frame]], name: str
) -> None:
    Image.new("RGB", (80, 40)).save(tmp_path / "secret.png")
    put(tmp_path / "data", IMAGES.format(id=0, name=name))
    frames = read(open_dataset(tmp_path / "data", labels=PROSTATD), heard)
    assert heard.of("path-escape")
    assert all(frame.image is None for frame in frames)
    home = tmp_path / "deep" / "deeper"
    home.mkdir(parents=True)
    before = set(tmp_path.rglob("*"))
    report = convert(open_dataset(tmp_path / "data", labels=PROSTATD), home / "out", "coco", images=False,
                     on_problem=heard)  # fmt: skip
    assert report.frames == 1
    written = set(tmp_path.rglob("*")) - before
    assert home / "out" in written and all(path.is_relative_to(home / "out") for path in written)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ('{"id": 0, "name": "a", "width": 80, "height": 40, "image": "../../../x.png"}', "path-escape"),
        ('{"id": 99999999999, "name": "a", "width": 80, "height": 40}', "not-a-number"),
        ('{"id": 0, "name": 3, "width": 80, "height": 40}', "not-text"),
        ('{"id": 0, "name": "a", "width": 80, "height": NaN}', "not-a-number"),
        ('{"id": 0, "name": "a", "width": 80, "height": 40, "phase": "no such phase"}', "class-unknown"),
        ("[]", "wrong-shape"),
    ],
)
def test_a_wrong_list_of_frames_is_named(tmp_path: Path, heard: Any, frame: str, kind: str) -> None:
    put(tmp_path, track(box(0, 10)))
    (tmp_path / "op" / "frames.json").write_text(f'{{"frames": [{frame}]}}')
    list(open_dataset(tmp_path, labels=PROSTATD).frames("op", heard))
    assert [problem.kind for problem in heard] == [kind], list(map(str, heard))
