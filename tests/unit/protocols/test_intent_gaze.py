"""Gaze as a model is told it: which fixation, where the circle is, where a wrong gaze goes."""

from __future__ import annotations

import math
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.datasets.gaze import fixation_at
from surgeval.errors import BadInput
from surgeval.protocols.intent.asking.conditions import posed
from surgeval.protocols.intent.asking.gaze import (
    APART,
    GazePoint,
    GazeStyle,
    draw_circle,
    draw_path,
    gaze_in_words,
    mirrored,
    separation,
    spot_at,
)
from surgeval.protocols.intent.asking.reading import ReadingWorker
from surgeval.protocols.intent.asking.scene import Tip, WrongSpot, distractor_option, wrong_spots
from surgeval.records import Gaze, IntentQuestion
from surgeval.vocab import load_labels

GAZE = (Gaze(1.0, 0.2, 0.2, 0.5), Gaze(2.0, 0.8, 0.6, 0.5))
SHARES = st.floats(0, 1)
SIDES = st.integers(16, 4000)


@pytest.mark.parametrize(
    ("time", "index"),
    [(1.0, 0), (1.5, 0), (1.7, 0), (1.8, 1), (2.5, 1), (3.0, 1), (3.01, None), (0.5, 0), (0.49, None)],
)
def test_the_active_fixation_counts_else_the_nearest_within_half_a_second(time: float, index: int | None) -> None:
    assert fixation_at(GAZE, time) == (None if index is None else GAZE[index])


def test_a_still_picture_is_marked_where_it_was_looked_at_longest() -> None:
    gaze = (Gaze(0, 0.1, 0.1, 0.2), Gaze(1, 0.5, 0.6, 0.9), Gaze(2, 0.2, 0.2, 0.3))
    assert spot_at(gaze, None) == GazePoint(0.5, 0.6)
    assert spot_at((), None) is None
    assert spot_at((), 1.0) is None


def test_the_circle_has_the_radius_ring_filling_and_colour_of_the_defaults() -> None:
    image = np.full((300, 400, 3), 100, np.uint8)
    drawn = draw_circle(image, GazePoint(0.5, 0.5)).astype(int)
    radius = round(0.06 * 500)
    row = drawn[150]
    assert np.unique(image).tolist() == [100]  # the picture that was given is as it was
    assert row[200].tolist() == [round(100 + 0.35 * 155), 65, round(100 + 0.35 * 155)]
    ring = [x for x in range(200, 260) if row[x].tolist() == [255, 0, 255]]
    assert len(ring) in (2, 3)
    assert abs(np.mean(ring) - (200 + radius - 0.5)) < 1
    untouched = np.hypot(*np.meshgrid(np.arange(400) + 0.5 - 200, np.arange(300) + 0.5 - 150)) > radius + 3
    assert np.unique(drawn[untouched]).tolist() == [100]
    assert (drawn != 100).any(axis=2).sum() == pytest.approx(math.pi * (radius + 1.5) ** 2, rel=0.05)


@pytest.mark.parametrize("spot", [GazePoint(0, 0), GazePoint(1, 1), GazePoint(0, 1), GazePoint(1, 0.5)])
def test_a_circle_at_the_edge_is_cut_off_by_it(spot: GazePoint) -> None:
    drawn = draw_circle(np.zeros((50, 90, 3), np.uint8), spot)
    assert drawn.shape == (50, 90, 3)
    assert drawn.max() == 255


def test_the_path_leads_through_the_fixations_to_the_circle() -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    drawn = draw_path(image, [GazePoint(0.1, 0.1), GazePoint(0.1, 0.9), GazePoint(0.8, 0.9)])
    assert drawn[50, 20].tolist() == [255, 0, 255]
    assert drawn[90, 80].tolist() == [255, 0, 255]
    assert drawn[50, 100].tolist() == [0, 0, 0]
    assert image.max() == 0


@given(x=SHARES, y=SHARES, width=SIDES, height=SIDES)
def test_a_mirrored_gaze_is_inside_the_frame_and_a_quarter_of_the_diagonal_away(
    x: float, y: float, width: int, height: int
) -> None:
    there = mirrored(GazePoint(x, y), width, height)
    assert 0 <= there.x <= 1
    assert 0 <= there.y <= 1
    assert separation(GazePoint(x, y), there, width, height) >= APART


@given(
    spots=st.lists(st.one_of(st.none(), st.builds(GazePoint, SHARES, SHARES)), min_size=1, max_size=3),
    tips=st.lists(st.builds(GazePoint, SHARES, SHARES), max_size=4),
    size=st.tuples(SIDES, SIDES),
)
def test_a_wrong_gaze_is_never_near_the_right_one_and_stays_with_one_instrument(
    spots: list[GazePoint | None], tips: list[GazePoint], size: tuple[int, int]
) -> None:
    seen = [Tip(f"tool {n}", str(n), tip) for n, tip in enumerate(tips)]
    moved = wrong_spots(spots, [seen] * len(spots), [size] * len(spots))
    assert [place is None for place in moved] == [spot is None for spot in spots]
    for spot, place in zip(spots, moved, strict=True):
        if spot is not None and place is not None:
            assert separation(spot, place.spot, *size) >= APART
    assert len({place.instrument for place in moved if place is not None and place.instrument}) <= 1


def test_a_wrong_gaze_goes_to_another_instrument_where_its_tip_is_known() -> None:
    hook, grasper, clipper = (
        Tip("hook", "1", GazePoint(0.3, 0.5)),
        Tip("grasper", "2", GazePoint(0.8, 0.5)),
        Tip("clipper", "3", GazePoint(0.35, 0.5)),
    )
    (moved,) = wrong_spots([GazePoint(0.31, 0.5)], [[hook, clipper, grasper]], [(448, 256)])
    assert moved == WrongSpot(GazePoint(0.8, 0.5), "grasper")
    (mirror,) = wrong_spots([GazePoint(0.31, 0.5)], [[hook, clipper]], [(448, 256)])
    assert mirror is not None
    assert mirror.instrument == ""


def item(*options: str, answer: int = 0) -> IntentQuestion:
    return IntentQuestion("i", "s", "v", (), "spatial", "absolute", "?", options, answer)


@pytest.mark.parametrize(
    ("asked", "moved", "expected"),
    [
        (item("in the upper left", "in the upper right", "in the lower left", "in the lower right"),
         WrongSpot(GazePoint(0.8, 0.2)), 1),
        (item("in the upper left", "in the lower right"), WrongSpot(GazePoint(0.2, 0.2)), None),
        (item("the hook, which cuts", "the graspers", "a bag"), WrongSpot(GazePoint(0.8, 0.2), "grasper"), 1),
        (item("the hook", "the clip applier"), WrongSpot(GazePoint(0.8, 0.2), "clipper"), 1),
        (item("left of it", "right of it"), WrongSpot(GazePoint(0.8, 0.2), "grasper"), None),
        (item("a grasper", "another grasper", "a bag"), WrongSpot(GazePoint(0.8, 0.2), "grasper"), None),
    ],
)  # fmt: skip
def test_the_option_that_a_wrong_gaze_speaks_for(asked: IntentQuestion, moved: WrongSpot, expected: int | None) -> None:
    assert distractor_option(asked, moved, load_labels("phantom")) == expected


def test_gaze_in_words_names_pictures_and_shares() -> None:
    spots = [GazePoint(0.254, 0.5), None, GazePoint(0, 1)]
    told = gaze_in_words(spots, "text")
    assert "picture 1: 25, 50; picture 3: 0, 100." in told
    assert "circled" not in told
    assert gaze_in_words(spots, "mark") == "Focus on the circled area, where I am looking."
    assert gaze_in_words(spots, "both").endswith("Focus on the circled area, where I am looking.")
    assert "path of my gaze" in gaze_in_words(spots, "trail")
    assert gaze_in_words([None], "both") == ""


def test_an_absurd_circle_is_refused() -> None:
    with pytest.raises(BadInput, match="gaze radius: found nan"):
        GazeStyle(radius=float("nan"))


def test_magenta_survives_jpeg() -> None:
    image = np.full((256, 448, 3), (120, 60, 50), np.uint8)
    drawn = draw_circle(image, GazePoint(0.5, 0.5))
    coded = cv2.imencode(".jpg", drawn[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 90])[1]
    decoded = cv2.imdecode(coded, cv2.IMREAD_COLOR)
    assert decoded is not None
    back = decoded[..., ::-1].astype(int)
    ring = back[128, round(448 / 2 + 0.06 * math.hypot(256, 448)) - 2 :][:4]
    assert (ring[:, 0] - ring[:, 1]).max() > 120


def test_all_frames_of_a_wrong_gaze_point_at_what_is_nearest_in_the_last() -> None:
    """Far from the gaze in both frames: the clipper is nearer in the first, the grasper in the last."""
    gaze = GazePoint(0.1, 0.5)
    frames = [[Tip("clipper", "1", GazePoint(0.5, 0.5)), Tip("grasper", "2", GazePoint(0.9, 0.5))],
              [Tip("clipper", "1", GazePoint(0.8, 0.5)), Tip("grasper", "2", GazePoint(0.6, 0.5))]]  # fmt: skip
    moved = wrong_spots([gaze, gaze], frames, [(400, 300)] * 2)
    assert moved == [WrongSpot(GazePoint(0.9, 0.5), "grasper"), WrongSpot(GazePoint(0.6, 0.5), "grasper")]


def test_the_distractor_is_what_the_last_picture_points_at() -> None:
    asked = item("in the upper left", "in the upper right", "in the lower left", "in the lower right")
    places = [WrongSpot(GazePoint(0.9, 0.1)), WrongSpot(GazePoint(0.9, 0.9)), None]
    eyes = SimpleNamespace(gaze=lambda _: places, scene=SimpleNamespace(space=load_labels("cholec80")))
    worker = ReadingWorker(SimpleNamespace(), {}, {asked.id: asked}, eyes)  # type: ignore[arg-type]
    assert worker._distractor(posed(asked, "wrong-gaze")) == 3
