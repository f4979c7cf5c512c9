"""From frames to cases: what follows a frame, what moves, and where a model looks that reads nothing but colours.

The colour reader's maps are its pixels: where it looks for red is where the frame is red. So every case can be
counted by hand in whole pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from tests.flow_fields import write_flo
from tests.unit.explain.small_models import Small

from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput
from surgeval.explain.flow import DisFlow, StoredFlow
from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import Preparation, View
from surgeval.protocols.surgxbench import SurgXSettings
from surgeval.protocols.surgxbench.measuring.frames import Follower, PreparedFrame, Reader, batches, followed
from surgeval.protocols.surgxbench.measuring.hide import hidden_scores
from surgeval.protocols.surgxbench.measuring.instruments import instrument_cases
from surgeval.protocols.surgxbench.measuring.triplets import triplet_cases
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import LabelSpace, TripletPrompts

pytestmark = pytest.mark.usefixtures("one_thread")
Picture = npt.NDArray[np.uint8]

# what follows a frame


def _moment(name: str, time: float | None, successor: str | None = None) -> Frame:
    later = ImageRef(Path(successor)) if successor else None
    return Frame("v", name, int(name), time, ImageRef(Path(f"{name}.png")), 64, 48, successor=later)


def _followers(*frames: Frame, gap: float = 1.5) -> list[tuple[str | None, str]]:
    pairs = list(followed(frames, gap))
    assert [frame for frame, _ in pairs] == list(frames)
    return [(None if one.image is None else str(one.image.path), "" if one.image else one.flag) for _, one in pairs]


def test_the_next_frame_follows_where_it_is_near_enough_in_time() -> None:
    found = _followers(_moment("0", 0.0), _moment("1", 1.0), _moment("2", 2.5), _moment("3", 4.01))
    assert found == [("1.png", ""), ("2.png", ""), (None, "gap"), (None, "no_motion")]  # 1.5 s is not too far yet
    assert _followers(_moment("0", 0.0), _moment("1", 1.0), gap=0.5)[0] == (None, "gap")


def test_a_stored_successor_follows_whatever_the_next_frame_is() -> None:
    found = _followers(_moment("0", 0.0, "0b.png"), _moment("1", 1.0), _moment("2", 60.0, "2b.png"))
    assert found == [("0b.png", ""), (None, "gap"), ("2b.png", "")]


def test_where_times_are_unknown_the_next_frame_is_taken() -> None:
    assert _followers(_moment("0", None), _moment("1", 90.0), _moment("2", None))[:2] == [("1.png", ""), ("2.png", "")]
    assert _followers() == []


@pytest.mark.parametrize("gap", [0.0, -1.0, float("nan"), float("inf")])
def test_a_gap_that_is_no_time_is_refused(gap: float) -> None:
    with pytest.raises(BadInput, match="flow_gap: found "):
        SurgXSettings(flow_gap=gap)


# what moves: flow from files, so that it is known to the pixel

HEIGHT, WIDTH = 48, 64
STILL = np.zeros((HEIGHT, WIDTH, 2), np.float32)


def _picture(path: Path, height: int = HEIGHT, width: int = WIDTH) -> ImageRef:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((height, width, 3), 120, np.uint8)).save(path)
    return ImageRef(path)


def _stored(folder: Path, field: npt.NDArray[np.float32]) -> StoredFlow:
    (folder / "v").mkdir(parents=True, exist_ok=True)
    write_flo(folder / "v" / "0.flo", field)
    write_flo(folder / "v" / "0.back.flo", -field)
    return StoredFlow(folder)


def _filmed(folder: Path, *boxes: Box, name: str = "0") -> Frame:
    seen = tuple(Instance(Triplet(0, 0, 0), box) for box in boxes)
    return Frame("v", name, int(name), None, _picture(folder / f"{name}.png"), WIDTH, HEIGHT, seen)


def _read(frame: Frame, follower: Follower, flow: Any, **settings: Any) -> PreparedFrame:
    found = Reader(Preparation(resize=(32, 32)), SurgXSettings(flow="files", **settings), flow)(frame, follower)
    assert isinstance(found, PreparedFrame)
    assert found.size == (HEIGHT, WIDTH) and found.pixels.shape == (3, 32, 32) and found.edges is not None
    return found


def test_only_what_reaches_the_motion_floor_moves(tmp_path: Path) -> None:
    """An eighth of the picture moves by a pixel, the rest stands still."""
    field = STILL.copy()
    field[:, :8, 0] = 1
    flow, frame = _stored(tmp_path / "flow", field), _filmed(tmp_path)
    after = Follower(_picture(tmp_path / "after.png"))
    for floor, share, flag in ((None, 1 / 8, ""), (1.0, 1 / 8, ""), (1.5, 0, "still"), (0.0, 1, "")):
        seen = _read(frame, after, flow, motion_floor=floor)
        assert seen.motion is not None
        assert (seen.motion.mean(), seen.motion_flag) == (share, flag), floor
        assert share != 1 / 8 or seen.motion[:, :8].all()


def test_the_camera_is_fitted_as_the_settings_say(tmp_path: Path) -> None:
    """A box of a quarter of the picture, and stripes of an eighth beside it, move four pixels to the right.

    Both lie around the middle, so a fit by least squares is a pan by the mean: over all pixels, or over those outside
    of the box. A robust fit follows the majority, which stands still.
    """
    field = STILL.copy()
    field[12:36, 16:48, 0] = 4
    field[:, :4, 0] = field[:, -4:, 0] = 4
    flow, after = _stored(tmp_path / "flow", field), Follower(_picture(tmp_path / "after.png"))
    boxed, bare = _filmed(tmp_path, Box(16, 12, 32, 24)), _filmed(tmp_path)
    outside = 4 * (1 / 8) / (3 / 4)
    for frame, fit, pan in ((boxed, "plain", 4 * 3 / 8), (boxed, "masked", outside), (boxed, "robust", 0),
                            (bare, "masked", 4 * 3 / 8)):  # fmt: skip
        reader = Reader(Preparation(resize=(32, 32)), SurgXSettings(flow="files", fit=fit), flow)  # type: ignore[arg-type]
        motion, _, _ = reader.motion(frame, np.full((HEIGHT, WIDTH, 3), 120, np.uint8), after)
        assert motion is not None
        assert abs(motion.camera.P + pan) < 1e-6, fit
        assert max(abs(motion.camera.T), abs(motion.camera.Z), abs(motion.camera.R)) < 1e-6


def test_what_has_no_motion_keeps_its_picture_and_says_why(tmp_path: Path) -> None:
    flow, after = _stored(tmp_path / "flow", STILL), Follower(_picture(tmp_path / "after.png"))
    full, plain = _filmed(tmp_path, Box(0, 0, WIDTH, HEIGHT)), _filmed(tmp_path)
    other = _filmed(tmp_path, name="7")  # has no .flo file
    smaller = Follower(_picture(tmp_path / "small.png", HEIGHT, WIDTH - 8))
    gone = Follower(ImageRef(tmp_path / "gone.png"))
    for frame, follower, flag in (
        (full, after, "no_flow"),  # no pixel is left to fit the camera to
        (other, after, "no_flow"),
        (plain, gone, "no_flow"),
        (plain, smaller, "no_motion"),
        (plain, Follower(None), "no_motion"),
        (plain, Follower(None, "gap"), "gap"),
    ):
        seen = _read(frame, follower, flow)
        assert (seen.motion, seen.motion_flag) == (None, flag)
    assert (_read(plain, after, flow).motion_flag, _read(plain, after, None).motion_flag) == ("still", "")
    assert _read(full, after, flow, fit="plain").motion is not None  # which needs no pixel outside of boxes


def test_a_frame_without_motion_costs_the_rest_of_the_video_nothing(tmp_path: Path) -> None:
    """The second frame is one box; the third has another size: only the first has motion."""
    frames = [_filmed(tmp_path, *boxes, name=f"{n}")
              for n, boxes in enumerate([(), (Box(0, 0, WIDTH, HEIGHT),), (), ()])]  # fmt: skip
    _picture(tmp_path / "3.png", HEIGHT + 8)
    frames[3] = replace(frames[3], height=HEIGHT + 8)
    space = LabelSpace("toy", ("grasper",), ("grasp",), ("liver",), ((0, 0, 0),))
    settings = SurgXSettings(batch=3, threads=1)
    reader = Reader(Preparation(resize=(32, 32)), settings, DisFlow())
    dataset = MemoryDataset(space, frames)
    seen = [one for batch in batches(dataset, "v", reader, settings) for one in batch]
    assert all(isinstance(one, PreparedFrame) for one in seen)
    flags = [one.motion_flag for one in seen if isinstance(one, PreparedFrame)]
    assert flags == ["still", "no_flow", "no_motion", "no_motion"]


# where the colour reader looks

SPACE = LabelSpace("toy", ("grasper", "hook", "bag", "clipper"), ("grasp", "pull"), ("liver", "duct"),
                   ((0, 0, 0), (1, 1, 1), (2, 0, 1)))  # fmt: skip
RAW: dict[str, Any] = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}  # black is 0
PROMPTS = TripletPrompts(("red", "green", "blue"), SPACE.triplets)
COLOURS = TextBank(PROMPTS.texts, vectors=torch.eye(3))
RED, GREEN = np.s_[0:10, 0:12], np.s_[20:30, 20:30]  # 120 and 100 pixels


@dataclass
class ColourReader(Small):
    """Three prompts, the share of red, green and blue; a convolutional tower whose feature maps are the pixels."""

    preparation: Preparation = field(default_factory=lambda: Preparation(resize=(32, 32), **RAW))

    def trunk(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(features.mean(dim=(2, 3)), dim=-1)

    def vector(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.head(self.trunk(pixels))


def _painted(red: Any = RED, green: Any = GREEN) -> Picture:
    image = np.zeros((32, 32, 3), np.uint8)
    image[(*red, 0)] = image[(*green, 1)] = 255
    return image


def _seen(image: Picture, *instances: Instance, motion: Any = None, model: Small | None = None) -> PreparedFrame:
    prepare = (model or ColourReader(None)).preparation
    height, width = image.shape[:2]
    frame = Frame("v", "0", 0, None, None, width, height, instances)
    moving = None
    if motion is not None:
        moving = np.zeros((height, width), bool)
        for part in motion:
            moving[part] = True
    return PreparedFrame(frame, image, prepare(image), prepare.view(height, width), moving)


def _instruments(seen: PreparedFrame, model: Small | None = None, **settings: Any) -> dict[str, dict[str, Any]]:
    """The cases of the three instruments that have a colour, by name."""
    chosen = SurgXSettings(**{"occlusion": False, **settings})
    found = instrument_cases(model or ColourReader(None), COLOURS, SPACE.instruments[:3], [seen], chosen)
    return {str(case.values["class"]): dict(case.values) for case in found}


def _triplets(seen: PreparedFrame, model: Small | None = None, **settings: Any) -> dict[str, dict[str, Any]]:
    chosen = SurgXSettings(**{"occlusion": False, "top_k": 2, **settings})
    found = triplet_cases(model or ColourReader(None), COLOURS, PROMPTS, SPACE, [seen], chosen)
    return {str(case.values["triplet"]): dict(case.values) for case in found}


GRASPER = Instance(Triplet(0, 0, 0), Box(0, 0, 6, 10))  # 60 of the 120 red pixels
BAG = Instance(Triplet(2, 0, 1), Box(6, 0, 3, 10))  # 30 more
MOVING = (np.s_[0:10, 9:10], np.s_[20:25, 20:30])  # 10 red and 50 of the 100 green pixels
ALL = 32 * 32


def test_ras_is_local_for_a_matched_triplet_and_global_over_all_prompts_for_a_missed_one() -> None:
    """Red and green are said. The grasper's triplet is red; the bag's is blue, which is missed."""
    found = _triplets(_seen(_painted(), GRASPER, BAG, motion=MOVING))
    matched, missed = found["grasper,grasp,liver"], found["bag,grasp,duct"]
    assert (matched["level"], missed["level"]) == ("IVT", "missed")
    assert matched["ras"] == pytest.approx((60 + 10) / 120)  # without the bag's 30
    assert matched["chance"] == pytest.approx((60 + 60) / ALL)
    assert matched["area"] == pytest.approx(120 / ALL)
    assert missed["ras"] == pytest.approx(((60 + 30 + 10) / 120 + 50 / 100) / 2)
    assert missed["chance"] == pytest.approx((60 + 30 + 60) / ALL)
    assert missed["area"] == pytest.approx((120 + 100) / 2 / ALL)
    assert matched["excluded"] == missed["excluded"] == ""


def test_a_flat_map_is_in_no_ras() -> None:
    """Red and green fill a quarter each and nothing is blue: by the literal formula blue attends everywhere."""
    image = _painted(np.s_[0:16, 0:16], np.s_[16:32, 16:32])
    bag, clipper = Instance(Triplet(2, 0, 1), Box(0, 8, 8, 8)), Instance(Triplet(3, 0, 0), Box(0, 8, 8, 8))
    found = _triplets(_seen(image, bag, clipper, motion=[np.s_[0:8, 0:8]]), top_k=3, positive=False)
    flat, missed = found["bag,grasp,duct"], found["clipper,grasp,liver"]
    assert (flat["level"], flat["ras"], flat["excluded"]) == ("IVT", None, "constant")
    assert (missed["level"], missed["excluded"]) == ("missed", "")
    assert missed["ras"] == pytest.approx((128 / 256 + 0 / 256) / 2)  # of red and green; blue would add 128 / 1024
    assert "constant" in missed["flags"].split()


def test_without_any_visible_box_there_is_no_ras_however_much_moves() -> None:
    bare = Instance(Triplet(0, 0, 0), None)
    (unboxed,) = _triplets(_seen(_painted(), bare, motion=MOVING)).values()
    assert (unboxed["level"], unboxed["ras"], unboxed["excluded"]) == ("IVT", None, "no_gt")
    model = _cropping()
    outside = Instance(Triplet(0, 0, 0), Box(2, 2, 10, 10))
    (unseen,) = _triplets(_seen(_wide(), outside, motion=MOVING, model=model), model).values()
    assert (unseen["level"], unseen["ras"], unseen["excluded"]) == ("IVT", None, "gt_not_visible")


def test_coverage_and_agreement_are_counted_in_pixels() -> None:
    found = _instruments(_seen(_painted(), GRASPER, BAG))
    grasper = found["grasper"]
    assert (grasper["predicted"], grasper["present"], grasper["excluded"]) == (True, True, "")
    assert (grasper["ac"], grasper["aa"]) == pytest.approx((90 / 120, 60 / 120))
    assert (grasper["chance"], grasper["area"]) == pytest.approx((90 / ALL, 120 / ALL))
    assert not found["bag"]["predicted"] and found["bag"]["aa"] is None


def test_a_false_alarm_agrees_with_nothing_and_is_not_left_out() -> None:
    hook = Instance(Triplet(1, 1, 1), Box(0, 0, 6, 10))
    alarm = _instruments(_seen(_painted(), hook))["grasper"]
    assert (alarm["predicted"], alarm["present"], alarm["excluded"]) == (True, False, "")
    assert (alarm["aa"], alarm["ac"]) == (0.0, 0.5)


def test_a_box_without_a_pixel_agrees_with_nothing_and_a_missing_box_says_nothing() -> None:
    """Beside a good box of another instrument, so that the frame itself counts."""
    hook = Instance(Triplet(1, 1, 1), Box(0, 0, 6, 10))
    degenerate, missing = (Instance(Triplet(0, 0, 0), box) for box in (Box(8, 3, 0, 0), None))
    empty, bare = (_instruments(_seen(_painted(), hook, one))["grasper"] for one in (degenerate, missing))
    for row in (empty, bare):
        assert (row["present"], row["ac"], row["excluded"]) == (True, 0.5, "")
        assert "class_empty" in row["flags"].split()
    assert (empty["aa"], "gt_empty" in empty["flags"].split()) == (0.0, True)
    assert (bare["aa"], "gt_empty" in bare["flags"].split()) == (None, False)


# a model that sees the middle of a wide frame


def _cropping() -> ColourReader:
    return ColourReader(None, preparation=Preparation(resize=32, crop=(32, 32), **RAW))


def _wide() -> Picture:
    """64 × 32: black, and between columns 16 and 48 what the model sees."""
    image = np.zeros((32, 64, 3), np.uint8)
    image[:, 16:48] = _painted()
    return image


def test_a_map_lies_in_the_window_or_is_stretched_over_the_frame() -> None:
    """In the window red is 12 columns from 16 on; stretched, 25 columns from 0 on: twice as many and one of blur."""
    model = _cropping()
    seen = _seen(_wide(), Instance(Triplet(0, 0, 0), Box(16, 0, 12, 10)), model=model)
    window, stretch = (_instruments(seen, model, geometry=geometry)["grasper"] for geometry in ("window", "stretch"))
    assert (window["ac"], window["area"], window["chance"]) == pytest.approx((1, 120 / ALL, 120 / ALL))
    assert (stretch["ac"], stretch["area"]) == pytest.approx((9 / 25, 250 / (2 * ALL)))
    assert stretch["chance"] == pytest.approx(120 / (2 * ALL))


def test_boxes_are_hidden_where_the_model_sees_them() -> None:
    """The frame is 128 × 64, the model's 32 × 32 pixels show its columns 32 to 96 at half the size."""
    model, image = ColourReader(None), _painted()
    pixels = torch.from_numpy(model.preparation(image))[None]
    box = Box(32, 0, 24, 20)  # exactly the red
    frame = Frame("v", "0", 0, None, None, 128, 64, (Instance(Triplet(0, 0, 0), box),))
    seen = PreparedFrame(
        frame, np.zeros((64, 128, 3), np.uint8), pixels[0].numpy(), View((64, 128), (32.0, 0.0, 96.0, 64.0))
    )
    after = hidden_scores(model, COLOURS, [seen], pixels, pixels[:, 0], [0], SurgXSettings())
    assert after["boxes"].hides == (True,)
    assert after["boxes"].scores[0].tolist() == pytest.approx([0, 1, 0])  # red is gone, all of green is left
    away = hidden_scores(model, COLOURS, [seen], pixels, pixels[:, 0], [1], SurgXSettings())
    assert away["boxes"].hides == (False,)  # no hook is labelled


def test_hiding_the_attended_region_and_hiding_the_least_attended_are_two_things() -> None:
    model, image = ColourReader(None), _painted()
    pixels = torch.from_numpy(model.preparation(image))[None]
    before = model.scores(pixels, COLOURS)[0]
    seen = _seen(image, GRASPER)
    after = hidden_scores(model, COLOURS, [seen], pixels, pixels[:, 0], [0], SurgXSettings())
    assert after["attended"].scores[0].tolist() == pytest.approx([0, 1, 0])
    assert float(after["least"].scores[0, 0]) >= float(before[0])  # not a pixel of red is hidden
    half = np.hypot(60, 100)  # the grasper's box hides half of the red
    assert after["boxes"].scores[0].tolist() == pytest.approx([60 / half, 100 / half, 0])
