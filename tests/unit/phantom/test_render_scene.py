"""What a rendered frame promises about the things in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from surgeval import vocab
from surgeval.errors import BadInput
from surgeval.phantom.scene.instruments import INSTRUMENTS
from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.scene.sheet import caption_sheet
from surgeval.phantom.scene.tissue import ORGANS
from surgeval.phantom.script.anatomy import PROCEDURES, REACH, build_anatomy, visible_organ
from surgeval.phantom.script.state import CameraPose, Mark, ObjectState, SceneState, Spot, ToolState
from surgeval.records import Point

ANATOMY = build_anatomy(2)
EMPTY = SceneState(0.0, "preparation", CameraPose())
DYNAMIC = {"null_target", "specimen_bag", "fluid"}


@pytest.fixture(scope="module")
def wide() -> Renderer:
    return Renderer(LOOKS["C"], ANATOMY)


@pytest.fixture(scope="module")
def tight() -> Renderer:
    return Renderer(LOOKS["A"], ANATOMY)


def tool(track: int, instrument: str, tip: Point, entry: Point, *, jaw: float = 0.5, depth: float = 0.0) -> ToolState:
    return ToolState(track, instrument, entry, tip, jaw=jaw, depth=depth)


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("seed", [0, 1, 17, 400])
def test_every_tissue_target_has_two_sites_that_lie_on_it_and_in_reach(seed: int, procedure: str) -> None:
    anatomy = build_anatomy(seed, procedure)
    for target in set(vocab.load_labels("cholect50").targets) - DYNAMIC:
        sites = anatomy.sites[target]
        assert len(sites) >= 2
        for x, y in sites:
            assert abs(x) <= REACH[0] and abs(y) <= REACH[1]
            assert visible_organ(anatomy.organs, (x, y)) == target


def test_the_organ_map_shows_the_organ_at_its_sites(wide: Renderer) -> None:
    organ_map = wide.render(EMPTY).organ_map
    for target, sites in ANATOMY.sites.items():
        for site in sites:
            x, y = EMPTY.camera.project(site, 448, 256)
            around = organ_map[round(y) - 3 : round(y) + 4, round(x) - 3 : round(x) + 4]
            assert ORGANS.index(target) in around, (target, site)


def test_two_patients_and_two_sources_look_different(wide: Renderer, tight: Renderer) -> None:
    other = Renderer(LOOKS["C"], build_anatomy(3)).render(EMPTY).image
    here = wide.render(EMPTY).image
    assert np.abs(here.astype(int) - other).mean() > 5
    assert np.abs(here.astype(int) - tight.render(EMPTY).image).mean() > 5


@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("entry", [(300.0, 60.0), (-300.0, 90.0), (150.0, -260.0)])
def test_an_instrument_whose_tip_is_in_view_has_a_mask_that_reaches_its_tip(
    wide: Renderer, instrument: str, entry: tuple[float, float]
) -> None:
    mask = wide.render(replace(EMPTY, tools=(tool(4, instrument, (10.0, 20.0), entry),))).masks[4]
    assert mask.shape == (256, 448) and mask.dtype == bool
    ys, xs = np.nonzero(mask)
    x, y = EMPTY.camera.project((10.0, 20.0), 448, 256)
    assert np.hypot(xs - x, ys - y).min() < 16  # half-open jaws straddle their tip
    assert 400 < mask.sum() < 0.5 * mask.size


def test_an_instrument_out_of_view_has_an_empty_mask(wide: Renderer) -> None:
    rendered = wide.render(replace(EMPTY, tools=(tool(1, "hook", (500.0, 0.0), (900.0, 0.0)),)))
    assert not rendered.masks[1].any()
    assert np.array_equal(rendered.image, wide.render(EMPTY).image)


def test_masks_of_two_tools_are_disjoint_and_the_nearer_one_wins(wide: Renderer) -> None:
    near = tool(1, "clipper", (0.0, 0.0), (300.0, 60.0), depth=2.0)
    far = tool(2, "grasper", (30.0, 10.0), (-300.0, 0.0), depth=1.0)
    both = wide.render(replace(EMPTY, tools=(near, far))).masks
    alone = {t.track: wide.render(replace(EMPTY, tools=(t,))).masks[t.track] for t in (near, far)}
    assert not (both[1] & both[2]).any()
    assert np.array_equal(both[1], alone[1])
    assert (alone[1] & alone[2]).any() and np.array_equal(both[2], alone[2] & ~alone[1])


def test_nothing_is_visible_outside_the_round_field(tight: Renderer) -> None:
    rendered = tight.render(replace(EMPTY, tools=(tool(1, "irrigator", (0.0, 0.0), (300.0, 20.0)),)))
    ys, xs = np.mgrid[0:256, 0:448]
    radius = LOOKS["A"].vignette * float(np.hypot(448, 256)) / 2
    far = np.hypot(xs - 223.5, ys - 127.5)
    outside = far > radius + 2
    assert outside.any()
    assert rendered.image[outside].max() < 20
    assert not rendered.masks[1][outside].any() and not rendered.organ_map[outside].any()


def test_open_jaws_change_the_head_and_not_the_shaft(wide: Renderer) -> None:
    shut, open_ = (
        wide.render(replace(EMPTY, tools=(tool(1, "grasper", (0.0, 0.0), (300.0, 0.0), jaw=jaw),)))
        for jaw in (0.0, 1.0)
    )
    differs = np.asarray(np.any(shut.masks[1] ^ open_.masks[1], axis=0))
    assert differs[224:300].any() and not differs[330:].any()


@pytest.mark.parametrize("slug", [thing.slug for thing in vocab.foreign_objects()])
def test_a_foreign_object_is_seen_when_visible_and_leaves_no_pixel_when_hidden(wide: Renderer, slug: str) -> None:
    thing = ObjectState(3, slug, 5.0, 10.0, angle=0.4)
    shown = wide.render(replace(EMPTY, objects=(thing,)))
    assert 30 < shown.object_masks[3].sum() < 0.2 * 256 * 448
    for state in ("hidden", "absent"):
        covered = wide.render(replace(EMPTY, objects=(replace(thing, state=state),)))
        assert not covered.object_masks[3].any()
        assert np.array_equal(covered.image, wide.render(EMPTY).image)


def test_a_tool_over_an_object_takes_its_pixels(wide: Renderer) -> None:
    thing = ObjectState(1, "sponge", 0.0, 0.0)
    grasper = tool(1, "grasper", (0.0, 0.0), (300.0, 20.0))
    rendered = wide.render(replace(EMPTY, objects=(thing,), tools=(grasper,)))
    alone = wide.render(replace(EMPTY, objects=(thing,))).object_masks[1]
    assert not (rendered.object_masks[1] & rendered.masks[1]).any()
    assert np.array_equal(rendered.object_masks[1], alone & ~rendered.masks[1])


def test_blood_reddens_and_burns_darken_the_tissue(wide: Renderer) -> None:
    x, y = ANATOMY.sites["omentum"][1]
    px, py = (round(v) for v in EMPTY.camera.project((x, y), 448, 256))
    window = np.s_[py - 5 : py + 6, px - 5 : px + 6]
    clean = wide.render(EMPTY).image[window].astype(float)
    blood = wide.render(replace(EMPTY, blood=(Spot(x, y, 16, 1.0),))).image[window].astype(float)
    burnt = wide.render(replace(EMPTY, burns=(Spot(x, y, 16, 1.0),))).image[window].astype(float)
    assert np.median(blood[..., 0] - blood[..., 1]) > np.median(clean[..., 0] - clean[..., 1])
    assert np.median(burnt) < 0.7 * np.median(clean)


def test_smoke_takes_contrast_away_step_by_step(wide: Renderer) -> None:
    contrast = [wide.render(replace(EMPTY, smoke=level)).image.std() for level in (0.0, 0.3, 0.6, 0.9)]
    assert contrast == sorted(contrast, reverse=True)


def test_energy_lights_the_tip(wide: Renderer) -> None:
    hook = tool(1, "hook", (20.0, 20.0), (300.0, 60.0))
    off, on = (wide.render(replace(EMPTY, tools=(replace(hook, active=active),))).image for active in (False, True))
    x, y = (round(v) for v in EMPTY.camera.project((20.0, 20.0), 448, 256))
    near = np.s_[y - 4 : y + 5, x - 4 : x + 5]
    assert on[near].mean() > off[near].mean() + 30


def test_the_gallbladder_leaves_its_bed(wide: Renderer) -> None:
    index = ORGANS.index("gallbladder")
    attached = wide.render(EMPTY)
    moved = wide.render(replace(EMPTY, gallbladder="detached", gallbladder_at=(60.0, 50.0), detached=1.0))
    gone = wide.render(replace(EMPTY, gallbladder="gone", detached=1.0))
    assert (attached.organ_map == index).any() and not (gone.organ_map == index).any()
    ys, xs = np.nonzero(moved.organ_map == index)
    assert np.hypot(xs.mean() - (223.5 + 60), ys.mean() - (127.5 + 50)) < 12
    bed = attached.organ_map == index
    assert (gone.organ_map[bed] == ORGANS.index("cystic_plate")).mean() > 0.7


def test_dissection_opens_the_bed_bit_by_bit(wide: Renderer) -> None:
    start = wide.render(EMPTY).image.astype(int)
    change = [np.abs(wide.render(replace(EMPTY, detached=part)).image - start).mean() for part in (0.0, 0.2, 0.5, 1.0)]
    assert change[0] == 0 and change == sorted(change) and change[-1] > change[1] > 0


def test_clips_and_cuts_are_drawn_where_they_are(wide: Renderer) -> None:
    x, y = ANATOMY.duct[12]
    plain = wide.render(EMPTY).image.astype(int)
    for kind in ("clip", "cut"):
        marked = wide.render(replace(EMPTY, marks=(Mark(kind, x, y, 0.6),))).image
        ys, xs = np.nonzero(np.abs(marked - plain).max(axis=2) > 8)
        px, py = EMPTY.camera.project((x, y), 448, 256)
        assert len(xs) > 30 and np.hypot(xs - px, ys - py).max() < 20


def test_a_tint_betrays_the_instrument_only_when_asked_to() -> None:
    state = replace(EMPTY, tools=(tool(1, "hook", (0.0, 0.0), (300.0, 50.0)),))
    telling = Renderer(LOOKS["C"], ANATOMY, tint="by_instrument")
    means = [telling.render(state, tint_key=name).image.mean(axis=(0, 1)) for name in INSTRUMENTS]
    ratios = np.array([[m[1] / m[0], m[2] / m[0]] for m in means])
    gaps = np.abs(ratios[:, None] - ratios[None]).max(axis=2)[~np.eye(len(means), dtype=bool)]
    assert gaps.min() > 0.015
    plain = Renderer(LOOKS["C"], ANATOMY)
    assert np.array_equal(plain.render(state, tint_key="hook").image, plain.render(state, tint_key="grasper").image)


def test_a_random_tint_changes_from_frame_to_frame_and_not_within_one() -> None:
    renderer = Renderer(LOOKS["C"], ANATOMY, tint="random")
    colours = [renderer.render(replace(EMPTY, time=float(t))).image.mean(axis=(0, 1)) for t in range(16)]
    assert len({tuple(np.round(c / c[0], 2)) for c in colours}) > 3
    assert np.array_equal(renderer.render(EMPTY).image, renderer.render(EMPTY).image)


def test_other_frame_sizes_show_the_same_scene(wide: Renderer) -> None:
    state = replace(EMPTY, tools=(tool(1, "grasper", (0.0, 20.0), (300.0, 50.0)),))
    small = Renderer(LOOKS["C"], ANATOMY, width=224, height=128).render(state)
    large = wide.render(state)
    assert small.image.shape == (128, 224, 3)
    assert small.masks[1].mean() == pytest.approx(large.masks[1].mean(), rel=0.08)


def test_wrong_names_are_refused_with_the_names_that_exist(wide: Renderer) -> None:
    with pytest.raises(BadInput, match="by_instrument"):
        Renderer(LOOKS["A"], ANATOMY, tint="rainbow")
    with pytest.raises(BadInput, match="grasper"):
        wide.render(replace(EMPTY, tools=(tool(1, "stapler", (0.0, 0.0), (300.0, 0.0)),)))
    with pytest.raises(BadInput, match="sponge"):
        wide.render(replace(EMPTY, objects=(ObjectState(1, "spoon", 0.0, 0.0),)))
    with pytest.raises(BadInput, match="cholecystectomy"):
        build_anatomy(1, "appendectomy")


def test_a_contact_sheet_holds_every_image() -> None:
    images = [np.full((20, 30, 3), 40 * k, np.uint8) for k in range(1, 6)]
    sheet = caption_sheet(images, 2, ["one"] * 5)
    assert all((sheet == 40 * k).all(axis=2).sum() >= 600 for k in range(1, 6))
    with pytest.raises(BadInput, match="captions"):
        caption_sheet(images, 2, ["one"])
