"""CholecT45/T50 frames with the boxes of Cholec80-BBox: by video number, time and instrument."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from surgeval.datasets import (
    Dataset,
    JoinCounts,
    MemoryDataset,
    Problem,
    check,
    convert,
    dataset_fingerprint,
    join_boxes,
    open_dataset,
)
from surgeval.errors import BadInput
from surgeval.records import Box, Frame, Instance, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels

T50, C80 = load_labels("cholect50"), load_labels("cholec80")
GRASPER, HOOK = Triplet(*T50.triplets[17]), Triplet(*T50.triplets[60])
GRASP = Triplet(*T50.triplets[7])  # another triplet of the grasper
A, B, C = Box(8, 16, 24, 32), Box(40, 8, 20, 30), Box(1, 2, 10, 11)


def dataset(
    space: LabelSpace,
    video: str,
    contents: Sequence[Sequence[Instance]],
    fps: float = 1.0,
    size: tuple[int, int] = (96, 64),
) -> MemoryDataset:
    frames = [Frame(video, f"{n:06d}", n, n / fps, None, *size, tuple(found)) for n, found in enumerate(contents)]
    return MemoryDataset(space, frames, [Video(video, fps=fps)])


def triplets(*contents: Sequence[Triplet], video: str = "VID42") -> MemoryDataset:
    return dataset(T50, video, [[Instance(triplet) for triplet in found] for found in contents])


def tools(*contents: Sequence[tuple[str, Box]], video: str = "video42") -> MemoryDataset:
    rows = [[Instance(Triplet(C80.id("instrument", name)), box) for name, box in found] for found in contents]
    return dataset(C80, video, rows)


def told(joined: Dataset) -> list[Problem]:
    found: list[Problem] = []
    check(joined, on_problem=found.append)
    return found


def test_an_instrument_takes_the_box_of_its_class() -> None:
    joined = join_boxes(triplets([GRASPER, HOOK]), tools([("Hook", A), ("Grasper", B)]))
    [frame] = joined.frames("VID42")
    assert [(i.triplet, i.box, dict(i.attributes)) for i in frame.instances] == [(GRASPER, B, {}), (HOOK, A, {})]
    assert told(joined) == []
    assert joined.counts == JoinCounts(frames=1, frames_with=1, paired=2)


def test_several_instances_of_a_class_are_paired_by_order_and_say_so() -> None:
    joined = join_boxes(triplets([GRASPER, GRASP]), tools([("Grasper", A), ("Grasper", B)]))
    [frame] = joined.frames("VID42")
    assert [(i.triplet, i.box) for i in frame.instances] == [(GRASPER, A), (GRASP, B)]
    assert all(instance.attributes["ambiguous"] for instance in frame.instances)
    assert joined.counts.ambiguous == 2


def test_what_only_one_side_has_is_counted_and_told() -> None:
    joined = join_boxes(triplets([GRASPER], [HOOK]), tools([("Hook", A), ("Hook", C)], [("SpecimenBag", B)]))
    first, second = joined.frames("VID42")
    assert [(i.triplet, i.box) for i in first.instances] == [
        (GRASPER, None), (Triplet(HOOK.instrument), A), (Triplet(HOOK.instrument), C)]  # fmt: skip
    assert first.instances[1].attributes["unexplained"]
    assert [(i.triplet, i.box) for i in second.instances] == [(HOOK, None)]
    assert joined.counts == JoinCounts(frames=2, frames_with=2, unboxed=2, unexplained=2, outside=1)
    found = told(joined)
    assert {problem.level for problem in found} == {"warning"}
    assert [problem.kind for problem in found] == [
        "frame-unboxed", "box-unmatched", "frame-unboxed", "box-unmatched"]  # fmt: skip
    assert "VID42 frame 000000: found 1 grasper in the triplets without a box" in str(found[0])


def test_reading_twice_counts_once() -> None:
    joined = join_boxes(triplets([GRASPER]), tools([("Grasper", A)]))
    assert list(joined.frames("VID42")) == list(joined.frames("VID42"))
    assert joined.counts.paired == 1


def test_boxes_of_a_larger_picture_are_scaled() -> None:
    boxes = dataset(C80, "video42", [[Instance(Triplet(0), Box(20, 40, 60, 80))]], size=(192, 128))
    [frame] = join_boxes(triplets([GRASPER]), boxes).frames("VID42")
    assert frame.instances[0].box == Box(10, 20, 30, 40)


def test_frames_meet_by_time_whatever_their_numbers() -> None:
    """Numbers of the film's frames, 25 a second, meet one triplet frame a second."""
    rows = [[Instance(Triplet(0), A)] if n % 25 == 0 else [Instance(Triplet(0), B)] for n in range(51)]
    joined = join_boxes(triplets([GRASPER], [GRASPER], [GRASPER]), dataset(C80, "Video_42", rows, fps=25.0))
    assert [frame.instances[0].box for frame in joined.frames("VID42")] == [A, A, A]


def test_a_video_without_boxes_passes_unchanged() -> None:
    joined = join_boxes(triplets([GRASPER], video="VID43"), tools([("Grasper", A)]))
    assert joined.boxed == ()
    assert next(joined.frames("VID43")).instances[0].box is None
    assert [problem.kind for problem in told(joined)] == ["frame-unboxed"]


def test_two_videos_of_the_same_number_are_refused() -> None:
    frames = [Frame(name, "0", 0, 0.0, None, 9, 9) for name in ("video42", "Video_42")]
    with pytest.raises(BadInput, match="found video42 and Video_42 for VID42"):
        join_boxes(triplets([GRASPER]), MemoryDataset(C80, frames)).videos()


def test_boxes_of_other_instruments_altogether_are_refused() -> None:
    space = LabelSpace("esd", ("Forceps", "Knife"))
    with pytest.raises(BadInput, match="found boxes of Forceps, Knife, expected instruments of cholect50: grasper"):
        join_boxes(triplets([GRASPER]), dataset(space, "video42", [[]]))


def test_frames_that_have_boxes_keep_them() -> None:
    source = dataset(T50, "VID42", [[Instance(GRASPER, C)]])
    joined = join_boxes(source, tools([("Grasper", A)]))
    assert next(joined.frames("VID42")).instances == (Instance(GRASPER, C),)
    assert told(joined) == []
    assert joined.counts.own == 1


def test_frames_that_only_one_side_has_are_told() -> None:
    joined = join_boxes(triplets([GRASPER], [GRASPER], [GRASPER]), tools([("Grasper", A)]))
    assert [problem.kind for problem in told(joined)] == ["frame-unboxed"]
    joined = join_boxes(triplets([GRASPER]), tools([("Grasper", A)], [("Grasper", A)]))
    assert [problem.kind for problem in told(joined)] == ["box-unmatched"]


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_boxes_that_are_a_frame_late_or_early_are_noticed(off: int) -> None:
    """The instruments change every third second; the boxes show the same `off` seconds later."""
    shown = [[GRASPER] if n // 3 % 2 else [HOOK] for n in range(120)]
    seen = [shown[min(max(n - off, 0), 119)][0] for n in range(120)]
    boxes = tools(*[[("Grasper" if triplet == GRASPER else "Hook", A)] for triplet in seen])
    kinds = [problem for problem in told(join_boxes(triplets(*shown), boxes)) if problem.kind == "boxes-shifted"]
    assert len(kinds) == (off != 0)
    assert all(f"better {off:+d} frames away" in str(problem) for problem in kinds)
    assert "boxes-shifted" not in {problem.kind for problem in told(join_boxes(triplets(*shown), boxes, shift=off))}


def test_open_dataset_joins_two_folders_and_the_fingerprint_knows_both(tmp_path: Path) -> None:
    convert(triplets([GRASPER, HOOK], [GRASPER]), tmp_path / "t50", "cholect50")
    boxes = tmp_path / "bbox"
    boxes.mkdir()
    header = "Surgery_num;Dir;FrameName;NumBBox_inFrame;ToolName;BBox_X;BBox_Y;BBox_Width;BBox_Height\n"
    row = "42;;Video_42_{:05d}.png;1;Grasper;85.4;48;427;240\n"
    (boxes / "ROI_Labels.csv").write_text(header + row.format(1) + row.format(2))
    joined = open_dataset(tmp_path / "t50", boxes=boxes)
    assert joined.format == "joined"
    assert [frame.instances[0].box for frame in joined.frames("VID42")] == [Box(85.4, 48, 427, 240)] * 2
    before = dataset_fingerprint(joined)
    assert before != dataset_fingerprint(open_dataset(tmp_path / "t50"))
    (boxes / "ROI_Labels.csv").write_text(header + row.format(1))
    assert before != dataset_fingerprint(open_dataset(tmp_path / "t50", boxes=boxes))
    report = convert(joined, tmp_path / "out", "cholect50", images=False)
    assert report.instances_written == 3
    [first, *_], _ = (frame.instances for frame in open_dataset(tmp_path / "out").frames("VID42"))
    assert first.box is not None
    assert first.box.corners == pytest.approx((85.4, 48, 512.4, 288))
