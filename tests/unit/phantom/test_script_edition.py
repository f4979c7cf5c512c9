"""Claims about the fixed edition as a whole, from its scripts (no pixels): variety, gaze, labels."""

from __future__ import annotations

import json
from collections import Counter
from statistics import correlation
from typing import Any

import pytest

from surgeval.phantom import FPS
from surgeval.phantom.script.graph import graph_from_json
from surgeval.vocab import foreign_objects, load_labels


def test_every_verb_instrument_phase_and_foreign_object_occurs(sketched: Any) -> None:
    space = load_labels("phantom")
    tools = [tool for video in sketched for item in video.labelled for tool in item.view.tools]
    assert {tool.verb for tool in tools} == set(space.verbs)
    assert {tool.instrument for tool in tools} == set(space.instruments)
    assert {span.name for video in sketched for span in video.graph.phases} == set(space.phases)
    visible = {thing.key.rsplit("-", 1)[0] for v in sketched for item in v.labelled for thing in item.view.visible()}
    assert visible == {fo.slug for fo in foreign_objects()}


def test_mostly_two_or_three_instruments_are_in_the_field(sketched: Any) -> None:
    counts = Counter(len(item.frame.instances) for video in sketched for item in video.labelled)
    total = sum(counts.values())
    assert (counts[2] + counts[3]) / total > 0.5
    assert 0 < counts[0] / total < 0.12
    assert counts[5] + counts[6] > 0
    assert max(counts) <= 6


def test_gaze_leads_the_working_tip(sketched: Any) -> None:
    """The lagged correlation of gaze and tip is largest where the tip is a few tenths of a second later."""
    for video in sketched[::5]:
        by_lag = {lag: _correlation(video, lag) for lag in (-0.8, -0.4, 0.0, 0.4, 0.8, 1.2)}
        assert max(by_lag, key=lambda lag: by_lag[lag]) == 0.4, by_lag
        assert by_lag[0.4] > 0.6


def _correlation(video: Any, lag: float) -> float:
    pairs = []
    for fix in video.gaze:
        t = fix.t + fix.duration / 2
        tool = video.procedure.working(t + lag) if 1 < t + lag < 59 else None
        later = [] if tool is None else [o for o in video.procedure.state(t + lag).tools if o.track == tool.track]
        if later:
            x, y = video.procedure.state(t).camera.project(later[0].tip, 224, 128)
            if 0 <= x < 224 and 0 <= y < 128:
                pairs.append((fix.x, x, fix.y, y))
    gx, x, gy, y = zip(*pairs, strict=True)
    return (correlation(gx, x) + correlation(gy, y)) / 2


def test_fixations_do_not_overlap_and_stay_in_the_frame(sketched: Any) -> None:
    for video in sketched:
        for one, other in zip(video.gaze, video.gaze[1:], strict=False):
            assert one.t + one.duration <= other.t
        assert all(0 <= fix.x <= 1 and 0 <= fix.y <= 1 and fix.duration > 0 for fix in video.gaze)


def test_boxes_are_tight_around_masks_of_at_least_thirty_pixels(sketched: Any) -> None:
    for video in sketched[::4]:
        for item in video.labelled:
            for instance in item.frame.instances:
                assert instance.mask.area >= 30
                assert instance.box == instance.mask.box()


def test_the_interaction_region_holds_the_contact_of_an_acting_instrument(sketched: Any) -> None:
    regions = 0
    for video in sketched:
        for item in video.labelled:
            region = item.frame.region
            if region is not None:
                contacts = [i.points["contact"] for i in item.frame.instances if "contact" in i.points]
                x1, y1, x2, y2 = region.corners
                assert any(x1 - 1 <= x <= x2 + 1 and y1 - 1 <= y <= y2 + 1 for x, y in contacts)
                regions += 1
    assert regions > 300


def test_tracks_name_one_instrument_for_life(sketched: Any) -> None:
    for video in sketched:
        names: dict[int, int] = {}
        for item in video.labelled:
            for instance in item.frame.instances:
                assert names.setdefault(instance.track, instance.triplet.instrument) == instance.triplet.instrument


def test_camera_truth_predicts_where_fixed_points_go(sketched: Any) -> None:
    """u = −P − Zx + Ry, v = −T − Zy − Rx about the frame's centre, for the exact camera of the script."""
    video = sketched[0]
    for item in video.labelled[::7]:
        now, after = video.procedure.state(item.frame.time), video.procedure.state(item.frame.time + 1 / FPS)
        motion = item.frame.camera
        for world in ((10.0, 5.0), (-60.0, 40.0)):
            x0, y0 = now.camera.project(world, 224, 128)
            x1, y1 = after.camera.project(world, 224, 128)
            x, y = x0 - 111.5, y0 - 63.5
            assert x1 - x0 == pytest.approx(-motion.P - motion.Z * x + motion.R * y, abs=1e-6)
            assert y1 - y0 == pytest.approx(-motion.T - motion.Z * y - motion.R * x, abs=1e-6)


def test_a_scene_graph_survives_json(sketched: Any) -> None:
    for video in sketched[:3]:
        assert graph_from_json(json.loads(json.dumps(video.graph.to_json())), "x") == video.graph


def test_clips_are_in_the_graph_from_the_moment_they_are_applied(sketched: Any) -> None:
    clips = 0
    for video in sketched:
        applied = sorted(thing.start for thing in video.graph.things if thing.origin == "applied")
        assert applied == sorted(e.moment for e in video.graph.events if e.verb == "clip")
        clips += len(applied)
    assert clips > 10
