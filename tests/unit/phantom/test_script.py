"""Claims about the scripted operation: what happens is surgically plausible, smooth and repeatable."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.phantom import FPS, PROCEDURES, Procedure, make_procedure
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.script.actions import MOMENTARY
from surgeval.phantom.script.state import SceneState, displaced
from surgeval.vocab import load_labels

SEEDS = st.integers(0, 10_000)
KINDS = st.sampled_from(sorted(PROCEDURES))
PLAUSIBLE = {
    triplet for plan in PROCEDURES.values() for phase in plan.phases for job in phase.jobs for triplet in job.triplets
}


@cache
def procedures(seeds: int = 4) -> tuple[Procedure, ...]:
    assert PROCEDURES
    return tuple(make_procedure(seed, 60.0, name) for seed in range(seeds) for name in PROCEDURES)


@cache
def film(seed: int, name: str) -> list[SceneState]:
    """Every frame of a minute; two tests look at the same ones."""
    procedure = make_procedure(seed, 60.0, name)
    return [procedure.state(k / FPS) for k in range(60 * FPS)]


@given(SEEDS, KINDS, st.floats(0, 60))
def test_every_triplet_is_a_class_and_plausible(seed: int, kind: str, t: float) -> None:
    space = load_labels("phantom")
    for tool in make_procedure(seed, 60.0, kind).state(t).tools:
        if tool.instrument == "specimen_bag":
            assert (tool.verb, tool.target) == ("null_verb", "null_target")
            continue
        assert space.triplet_id(tool.instrument, tool.verb, tool.target) >= 0
        if tool.verb != "null_verb":
            assert f"{tool.instrument},{tool.verb},{tool.target}" in PLAUSIBLE


@given(SEEDS, KINDS, st.floats(0, 60), st.lists(st.floats(0, 60), min_size=1, max_size=4))
def test_a_state_depends_on_seed_and_time_only(seed: int, kind: str, t: float, earlier: list[float]) -> None:
    fresh = make_procedure(seed, 60.0, kind).state(t)
    random.seed(seed + 1)
    np.random.seed(seed + 1)  # noqa: NPY002 - the state that others share
    used = make_procedure(seed, 60.0, kind)
    for moment in earlier:
        used.state(moment)
    assert used.state(t) == fresh
    assert any(used.state(moment) != fresh for moment in (0.0, 20.0, 40.0))


def test_another_seed_is_another_operation() -> None:
    assert make_procedure(1).tools != make_procedure(2).tools


@given(SEEDS, KINDS)
def test_numbers_are_rounded_so_that_math_libraries_cannot_differ(seed: int, kind: str) -> None:
    for tool in make_procedure(seed, 60.0, kind).state(33.33).tools:
        for value in (*tool.tip, *tool.entry, tool.jaw):
            assert value == round(value, 3)


def test_tips_and_camera_never_jump() -> None:
    followed = 0
    for seed, name in product(range(2), PROCEDURES):
        for k, (before, now) in enumerate(pairwise(film(seed, name)), start=1):
            last = {tool.track: tool for tool in before.tools}
            for tool in now.tools:
                if tool.track in last:
                    assert math.dist(tool.tip, last[tool.track].tip) * FPS < 800, (seed, name, k, tool)
                    assert abs(tool.jaw - last[tool.track].jaw) < 0.6
                    followed += 1
            assert math.dist((now.camera.x, now.camera.y), (before.camera.x, before.camera.y)) * FPS < 200
            assert abs(now.camera.zoom / before.camera.zoom - 1) < 0.04
    assert followed > 9_000  # more than one instrument in a frame


@given(SEEDS, KINDS)
def test_instruments_come_and_go_out_of_view(seed: int, kind: str) -> None:
    procedure = make_procedure(seed, 60.0, kind)
    width, height = 448, 336  # the tallest frame that is allowed sees the most
    for tool in procedure.tools:
        for t in (tool.enters, tool.leaves):
            if 0 <= t <= 60:
                x, y = procedure.camera.pose(t).project(tool.tip(t, ()), width, height)
                assert not (0 <= x < width and 0 <= y < height), (tool.track, t)


@given(SEEDS, KINDS)
def test_at_most_six_instruments_and_tracks_are_never_reused(seed: int, kind: str) -> None:
    procedure = make_procedure(seed, 60.0, kind)
    assert len({tool.track for tool in procedure.tools}) == len(procedure.tools)
    for t in range(60):
        assert len(procedure.state(t).tools) <= 6


@given(SEEDS, KINDS)
def test_one_trocar_holds_one_instrument(seed: int, kind: str) -> None:
    procedure = make_procedure(seed, 60.0, kind)
    for lane in {tool.lane for tool in procedure.tools}:
        stays = sorted((tool.enters, tool.leaves) for tool in procedure.tools if tool.lane == lane)
        assert all(first[1] <= second[0] + 1e-6 for first, second in pairwise(stays))


def test_phases_follow_cholec80_and_fill_the_time() -> None:
    order = load_labels("phantom").phases
    for procedure in procedures(2):
        names = [span.name for span in procedure.phases]
        assert names == sorted(names, key=order.index)
        assert procedure.phases[0].start == 0.0
        assert procedure.phases[-1].end == 60.0
        assert all(a.end == b.start for a, b in zip(procedure.phases, procedure.phases[1:], strict=False))


@given(SEEDS)
def test_duct_and_artery_are_clipped_before_they_are_cut(seed: int) -> None:
    actions = make_procedure(seed).actions
    cuts = [a for a in actions if a.verb == "cut" and a.target in ("cystic_duct", "cystic_artery")]
    assert cuts
    for cut in cuts:
        clips = [a for a in actions if a.verb == "clip" and a.target == cut.target]
        assert any(clip.moment < cut.moment for clip in clips if clip.moment and cut.moment)


@given(SEEDS, st.sampled_from(["cholecystectomy", "cholecystectomy with bleeding"]))
def test_the_gallbladder_is_freed_bagged_and_taken_out_in_this_order(seed: int, kind: str) -> None:
    procedure = make_procedure(seed, 60.0, kind)
    order = ["attached", "detached", "bagged", "gone"]
    seen = [procedure.state(k / 5).gallbladder for k in range(300)]
    assert seen == sorted(seen, key=order.index)
    assert set(seen) == set(order)
    assert procedure.packing is not None
    for action in procedure.actions:
        if action.target == "gallbladder" and action.verb != "pack":
            assert action.start < procedure.packing.freed


def test_a_retracting_grasper_draws_tissue_toward_its_trocar() -> None:
    found = 0
    for procedure in procedures(2):
        for tool in procedure.tools:
            for action in tool.actions:
                if action.verb == "retract" and tool.instrument == "grasper" and action.end < 60:
                    middle = (action.start + action.end) / 2
                    site = action.anchor(middle)
                    pull = next(p for p in procedure.state(middle).pulls if math.dist((p.x, p.y), site) < 0.01)
                    assert (tool.entry[0] - site[0]) * pull.dx + (tool.entry[1] - site[1]) * pull.dy > 0
                    found += 1
    assert found > 20


def test_in_contact_the_tip_stays_on_the_moving_tissue() -> None:
    found = 0
    for procedure in procedures(2):
        for tool in procedure.tools:
            for action in tool.actions:
                if action.verb in ("grasp", "retract") and not action.free and action.end < 60:
                    t = action.start + 0.6 * (action.end - action.start)
                    state = procedure.state(t)
                    tip = next(other.tip for other in state.tools if other.track == tool.track)
                    assert math.dist(tip, displaced(action.anchor(t), state.pulls)) < 1.5
                    found += 1
    assert found > 30


def test_renderer_and_script_agree_where_the_gallbladder_swings() -> None:
    procedure = make_procedure(3)
    swing = procedure.swing
    assert swing is not None
    t = 0.3 * swing.start + 0.7 * swing.end
    stand_in = SimpleNamespace(_fundus=swing.pivot, _bag_centre=(0.0, 0.0))
    motion = Renderer._bag_motion(stand_in, procedure.state(t))  # type: ignore[arg-type]
    assert motion is not None
    a, b, c, d, e, f = motion
    x, y = 12.0, -30.0
    assert swing.moved((x, y), t) == pytest.approx((a * x + b * y + c, d * x + e * y + f), abs=0.05)


def test_clips_and_cuts_stay() -> None:
    for procedure in procedures(1):
        counts = [len(procedure.state(t).marks) for t in range(60)]
        assert counts == sorted(counts)
        assert counts[-1] > 0
        assert counts[-1] == sum(a.verb in MOMENTARY and a.instrument != "hook" for a in procedure.actions)


def test_aspiration_empties_and_irrigation_fills() -> None:
    found = Counter[str]()
    for procedure in procedures(2):
        for action in procedure.actions:
            if action.verb in ("aspirate", "irrigate") and action.end < 59:

                def pool(t: float, x: float = action.site[0], procedure: Procedure = procedure) -> float:
                    return sum(spot.amount for spot in procedure.state(t).fluid if spot.x == x)

                change = pool(action.end - 0.1) - pool(action.start + 0.1)
                assert change < 0 if action.verb == "aspirate" else change > 0
                found[action.verb] += 1
    assert min(found["aspirate"], found["irrigate"]) >= 3


def test_energy_makes_smoke_and_burns() -> None:
    found = 0
    for procedure in procedures(2):
        for action in procedure.actions:
            if action.verb == "coagulate" and action.end < 60:
                state = procedure.state(action.end)
                assert state.smoke > 0.1
                assert any((spot.x, spot.y) == action.site and spot.amount > 0.5 for spot in state.burns)
                found += 1
    assert found >= 8


def test_a_bleeding_procedure_bleeds_until_it_is_coagulated() -> None:
    procedure = make_procedure(5, 60.0, "cholecystectomy with bleeding")
    main = max(procedure.bleeds, key=lambda bleed: bleed.radius)
    spots = [max(procedure.state(t).blood, key=lambda s: s.radius) for t in (main.start + 1, main.stops)]
    assert spots[0].radius < spots[1].radius
    assert any(a.verb == "coagulate" and a.end == main.stops for a in procedure.actions)


def test_continuous_actions_are_labelled_exactly_while_in_contact() -> None:
    found = 0
    for procedure in procedures(1):
        for tool in procedure.tools:
            for action in tool.actions:
                if action.verb not in MOMENTARY and action.end < 59.5:
                    for t, labelled in (
                        (action.start - 0.2, False),
                        (action.start + 0.1, True),
                        (action.end - 0.1, True),
                    ):
                        now = next((o for o in procedure.state(t).tools if o.track == tool.track), None)
                        assert now is not None
                        assert ((now.verb, now.target) == (action.verb, action.target)) == labelled
                        assert (now.contact is not None) == (now.verb != "null_verb")
                    found += 1
    assert found > 30


def test_momentary_actions_are_labelled_within_a_second_of_their_moment() -> None:
    found = 0
    for procedure in procedures(1):
        for tool in procedure.tools:
            for action in tool.actions:
                if action.moment is not None:
                    assert action.labelled[0] >= action.moment - 1.0
                    assert action.labelled[1] <= action.moment + 1.0
                    now = next(o for o in procedure.state(action.moment).tools if o.track == tool.track)
                    assert now.verb == action.verb
                    assert now.jaw < 0.1
                    found += 1
    assert found >= 8


def test_a_short_video_is_a_window_of_a_longer_procedure() -> None:
    whole, short = make_procedure(9, 60.0), make_procedure(9, 10.0)
    assert short.tools == whole.tools
    assert 0 <= short.offset <= 50
    assert short.state(4.0).tools == whole.state(4.0 + short.offset).tools


def test_a_held_object_is_at_the_tip_of_its_carrier() -> None:
    held = 0
    for procedure in procedures(4):
        for k in range(240):
            state = procedure.state(k / 4)
            tips = {tool.track: tool.tip for tool in state.tools}
            for thing in state.objects:
                if thing.held_by is not None:
                    assert tips[thing.held_by] == (thing.x, thing.y)
                    held += 1
    assert held > 30


def test_objects_never_jump() -> None:
    moving = 0
    for seed, name in product(range(3), PROCEDURES):
        seen = [{thing.number: thing for thing in state.objects} for state in film(seed, name)]
        for k, (before, now) in enumerate(pairwise(seen), start=1):
            for number, thing in now.items():
                if number in before:
                    moved = math.dist((thing.x, thing.y), (before[number].x, before[number].y))
                    assert moved < 800 / FPS, (seed, name, k, thing)
                    moving += moved > 0
    assert moving > 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"procedure": "appendectomy"}, "procedure: found 'appendectomy', expected one of"),
        ({"seconds": float("nan")}, "seconds: found nan"),
        ({"seconds": 0.5}, "seconds: found 0.5"),
    ],
)
def test_what_cannot_be_scripted_is_refused_in_one_sentence(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make_procedure(1, **arguments)  # type: ignore[arg-type]
