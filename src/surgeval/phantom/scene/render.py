"""The renderer: a scene state and a look in, a picture with exact masks out.

Order of a frame: sample the tissue through camera and pulls; spots, marks, objects, shadows, instruments; one light for
all of it (falloff, glints that move with the camera); sparks, smoke, sensor noise, the round field of the scope.
Nothing on the way depends on the CPU: see `_warp` and `_texture`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from surgeval.arrays import Bools, Image, Int16s
from surgeval.errors import BadInput
from surgeval.phantom.scene.effects import GLINT, Smoke, Spots, add_light
from surgeval.phantom.scene.instruments import INSTRUMENTS, instrument_sprite
from surgeval.phantom.scene.objects import mark_sprite, object_sprite, water_sprite
from surgeval.phantom.scene.optics import Optics
from surgeval.phantom.scene.sprite import Sprite
from surgeval.phantom.scene.tissue import EXTENT, ORGANS, SCALE, Tissue, build_field
from surgeval.phantom.scene.warp import (
    Affine,
    WarpMaps,
    affine_maps,
    compose,
    invert,
    refine,
    sample,
    sample_nearest,
    tissue_grid,
    window_of,
)
from surgeval.phantom.script.anatomy import Anatomy
from surgeval.phantom.script.state import CameraPose, Look, Pull, SceneState, ToolState, displaced, gallbladder_swing
from surgeval.records import Point

TINTS = ("none", "random", "by_instrument")
SIZE = 1.22  # of all instruments, relative to the units in which they are drawn
SOLID = 96  # opacity from which a pixel belongs to a thing


@dataclass(frozen=True, slots=True)
class Rendered:
    """A picture and what is visible in it; `organ_map` holds indices into `ORGANS`, 0 outside the field."""

    image: Image
    masks: dict[int, Bools]
    object_masks: dict[int, Bools]
    organ_map: Image


@dataclass(frozen=True, slots=True)
class _Layer:
    """A sprite where it lands in the frame."""

    window: tuple[slice, slice]
    pixels: Image


class Renderer:
    """Draws states of one anatomy under one look; textures are made once, here."""

    def __init__(
        self, look: Look, anatomy: Anatomy, *, width: int = 448, height: int = 256, tint: str = "none"
    ) -> None:
        if tint not in TINTS:
            raise BadInput(f"tint: found {tint!r}, expected one of {', '.join(TINTS)}")
        if width < 64 or height < 64:
            raise BadInput(f"frame size: found {width}×{height}, expected at least 64×64 pixels")
        self.look, self.anatomy, self.width, self.height, self.tint = look, anatomy, width, height, tint
        self._field = build_field(anatomy, look)
        self._optics = Optics(look, width, height)
        self._smoke = Smoke(width, height)
        self._partly: tuple[int, Tissue] = (0, self._field.closed)
        bag = next(organ for organ in anatomy.organs if organ.name == "gallbladder")
        xs, ys = [x for x, _ in bag.outline], [y for _, y in bag.outline]
        self._bag_centre = ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
        self._fundus = bag.outline[0]

    def tool_affine(self, tool: ToolState, camera: CameraPose) -> Affine:
        """The instrument's local frame → image pixels, as a 2×3 matrix row by row."""
        return compose(camera.affine(self.width, self.height), _tool_to_world(tool))

    def tool_motion(self, before: ToolState, cam0: CameraPose, after: ToolState, cam1: CameraPose) -> Affine:
        """Image pixels of a tool's body → image pixels of the same body in the later state."""
        return compose(self.tool_affine(after, cam1), invert(self.tool_affine(before, cam0)))

    def render(self, state: SceneState, tint_key: str | None = None) -> Rendered:
        """Draw one state; with `tint="by_instrument"` the `tint_key` is the instrument that colours the tissue."""
        colour, relief, organ, maps = self._tissue_layers(state)
        if self.tint != "none":
            self._optics.tint(colour, self._tint_index(state, tint_key))
        self._spots(state, colour, relief, maps)
        for mark in state.marks:
            spot = displaced((mark.x, mark.y), state.pulls)
            self._put(colour, relief, self._layer(mark_sprite(mark.kind), spot, mark.angle, 1.0, state.camera))
        objects = self._object_layers(state)
        tools = self._tool_layers(state)
        self._shadows(colour, [*objects.values(), *tools.values()])
        cover = np.zeros((self.height, self.width), np.int16)
        tokens = {foreign.number: k + 1 for k, foreign in enumerate(state.objects)}
        tool_tokens = {tool.track: len(tokens) + k + 1 for k, tool in enumerate(state.tools)}
        for number, layer in objects.items():
            self._put(colour, relief, layer, cover, tokens[number])
        for tool in sorted(state.tools, key=lambda t: (t.depth, t.track)):
            if tool.verb in ("irrigate", "aspirate") and tool.instrument == "irrigator":
                jet = water_sprite(tool.verb, round(state.time * 25) % 4)
                self._put(colour, relief, self._flat(jet, self.tool_affine(tool, state.camera)))
            self._put(colour, relief, tools.get(tool.track), cover, tool_tokens[tool.track])
        image = self._optics.light(colour, relief, GLINT)
        image = self._energy(image, state)
        image = self._optics.expose(image, round(state.time * 1000))
        cover[~self._optics.inside] = 0
        organ[(cover != 0) | ~self._optics.inside] = 0
        masks = {track: cover == token for track, token in tool_tokens.items()}
        object_masks = {number: cover == token for number, token in tokens.items()}
        return Rendered(image, masks, object_masks, organ)

    # ── tissue ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _tissue_layers(self, state: SceneState) -> tuple[Image, Image, Image, WarpMaps]:
        breath = Pull(20.0, -60.0, 0.3 * math.sin(state.wobble), 1.3 * math.sin(state.wobble), 150.0)
        grid = tissue_grid(state.camera, (*state.pulls, breath), self.width, self.height)
        scale = 32 * SCALE
        maps = WarpMaps(
            refine(grid.x - (EXTENT[0] + 0.5 / SCALE), scale, self.width, self.height),
            refine(grid.y - (EXTENT[1] + 0.5 / SCALE), scale, self.width, self.height),
        )
        tissue = self._tissue(state)
        colour, relief = sample(tissue.colour, maps), sample(tissue.relief, maps)
        organ = sample_nearest(tissue.organ, maps)
        self._draw_bag(state, maps, colour, relief, organ)
        if state.pulls:
            gain = np.clip(refine(grid.tension, 128, self.width, self.height) + 128, 80, 162).astype(np.uint16)
            view = colour.astype(np.uint16)
            view *= cv2.merge([gain, gain, gain, np.full_like(gain, 128)])
            colour = np.minimum(view >> 7, 255).astype(np.uint8)
        return colour, relief, organ, maps

    def _tissue(self, state: SceneState) -> Tissue:
        """The field's texture: closed, open, or the bed opened as far as it is dissected."""
        if state.gallbladder != "attached":
            return self._field.open
        step = math.ceil(min(max(state.detached, 0.0), 1.0) * 12)
        if step == 0:
            return self._field.closed
        if self._partly[0] != step:
            # Under the bag the closed texture shows the bag itself; the open one is what lies there.
            bare = (self._field.dissection < step * 255 // 12) | (self._field.bag.colour[..., 3] > 0)
            closed, opened = self._field.closed, self._field.open
            colour, relief = (
                cv2.copyTo(below, bare.astype(np.uint8), above.copy())
                for below, above in ((opened.colour, closed.colour), (opened.relief, closed.relief))
            )
            self._partly = (step, Tissue(colour, relief, opened.organ))
        return self._partly[1]

    def _draw_bag(self, state: SceneState, maps: WarpMaps, colour: Image, relief: Image, organ: Image) -> None:
        """The gallbladder while it is being lifted off its bed, or free: drawn from its own texture."""
        moved = self._bag_motion(state)
        if moved is None:
            return
        back = invert(moved)
        a, b, d, e = (math.floor(back[k] * 4096 + 0.5) for k in (0, 1, 3, 4))
        ox, oy = EXTENT[0], EXTENT[1]
        c = math.floor((back[0] * ox + back[1] * oy + back[2] - ox) * SCALE * 32 + 0.5)
        f = math.floor((back[3] * ox + back[4] * oy + back[5] - oy) * SCALE * 32 + 0.5)
        own = WarpMaps(((a * maps.x + b * maps.y) >> 12) + c, ((d * maps.x + e * maps.y) >> 12) + f)
        bag = self._field.bag
        pixels, bumps = sample(bag.colour, own), sample(bag.relief, own)
        alpha = pixels[..., 3].astype(np.uint16)
        layer = _Layer((slice(0, self.height), slice(0, self.width)), pixels)
        self._shadows(colour, [layer])
        for target, source in ((colour, pixels), (relief, bumps)):
            for channel in range(3):
                view = target[..., channel]
                target[..., channel] = (view * (256 - alpha) + source[..., channel] * alpha) >> 8
        organ[alpha > SOLID] = ORGANS.index("gallbladder")

    def _bag_motion(self, state: SceneState) -> Affine | None:
        """Rest → present place of the gallbladder, when it is drawn by itself."""
        if state.gallbladder == "attached" and state.detached > 0:
            # It swings aside about its fundus as its bed is opened from the neck.
            angle, shift = gallbladder_swing(min(state.detached, 1.0))
            pivot, scale = self._fundus, 1.0
        elif state.gallbladder == "detached":
            centre = state.gallbladder_at or self._bag_centre
            pivot, angle, scale = self._bag_centre, 0.6, 0.86
            shift = (centre[0] - pivot[0], centre[1] - pivot[1])
        else:
            return None
        cos, sin = scale * math.cos(angle), scale * math.sin(angle)
        x, y = pivot
        return (cos, sin, x - cos * x - sin * y + shift[0], -sin, cos, y + sin * x - cos * y + shift[1])

    def _spots(self, state: SceneState, colour: Image, relief: Image, maps: WarpMaps) -> None:
        spots = Spots(colour, relief, maps, state.camera.zoom * self.width / 448)
        for kind, draw in ((state.burns, spots.burn), (state.fluid, spots.fluid), (state.blood, spots.blood)):
            for spot in kind:
                centre = displaced((spot.x, spot.y), state.pulls)
                draw(spot, state.camera.project(centre, self.width, self.height))

    def _tint_index(self, state: SceneState, key: str | None) -> int | None:
        if self.tint == "random":
            return int(np.random.Generator(np.random.PCG64([self.anatomy.seed, round(state.time * 25)])).integers(7))
        return INSTRUMENTS.index(key) if key in INSTRUMENTS else None

    # ── things ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _object_layers(self, state: SceneState) -> dict[int, _Layer]:
        layers = {}
        for foreign in state.objects:
            if foreign.state == "visible":
                full = foreign.slug == "specimen_bag" and state.gallbladder == "bagged"
                sprite = object_sprite(foreign.slug, foreign.number, full)
                layer = self._layer(sprite, (foreign.x, foreign.y), foreign.angle, foreign.scale, state.camera)
                if layer is not None:
                    layers[foreign.number] = layer
        return layers

    def _tool_layers(self, state: SceneState) -> dict[int, _Layer]:
        layers = {}
        for tool in state.tools:
            if tool.instrument not in INSTRUMENTS:
                raise BadInput(f"instrument: found {tool.instrument!r}, expected one of {', '.join(INSTRUMENTS)}")
            sprite = instrument_sprite(tool.instrument, self.look.shaft, tool.jaw, state.gallbladder == "bagged")
            layer = self._flat(sprite, self.tool_affine(tool, state.camera))
            if layer is not None:
                layers[tool.track] = layer
        return layers

    def _layer(self, sprite: Sprite, at: Point, angle: float, scale: float, camera: CameraPose) -> _Layer | None:
        cos, sin = scale * math.cos(angle), scale * math.sin(angle)
        return self._flat(sprite, compose(camera.affine(self.width, self.height), (cos, -sin, at[0], sin, cos, at[1])))

    def _flat(self, sprite: Sprite, to_image: Affine) -> _Layer | None:
        window = window_of(to_image, *sprite.corners, self.width, self.height)
        if window is None:
            return None
        back = compose(sprite.to_pixels, invert(to_image))
        return _Layer(window, sample(sprite.pixels, affine_maps(back, window)))

    def _shadows(self, colour: Image, layers: list[_Layer]) -> None:
        """Darken what lies under and just below things."""
        if not layers:
            return
        solid = np.zeros((self.height, self.width), np.uint8)
        for layer in layers:
            view = solid[layer.window]
            np.maximum(view, layer.pixels[..., 3], out=view)
        small = cv2.resize(solid, (self.width // 4, self.height // 4), interpolation=cv2.INTER_AREA)
        small = cv2.blur(cv2.blur(small, (3, 3)), (3, 3))
        soft = cv2.resize(small, (self.width, self.height), interpolation=cv2.INTER_LINEAR)
        drop, aside = max(round(self.height * 0.028), 1), max(round(self.width * 0.009), 1)
        keep = np.full((self.height, self.width), 255, np.uint8)
        keep[drop:, aside:] -= (soft[:-drop, :-aside] >> 2) + (soft[:-drop, :-aside] >> 3)
        keep -= soft >> 3
        gain = cv2.merge([keep, keep, keep, np.full_like(keep, 255)])
        np.copyto(colour, ((colour.astype(np.uint16) * gain + 255) >> 8).astype(np.uint8))

    def _put(
        self,
        colour: Image,
        relief: Image,
        layer: _Layer | None,
        cover: Int16s | None = None,
        mark: int = 0,
    ) -> None:
        """Lay a premultiplied sprite over the picture; dry, so that the tissue's glints do not shine through it."""
        if layer is None:
            return
        alpha = layer.pixels[..., 3]
        rest = cv2.bitwise_not(alpha)
        keep = cv2.merge([rest, rest, rest])
        view = colour[layer.window][..., :3]
        under = (view.astype(np.uint16) * keep + 255) >> 8
        view[...] = cv2.add(under.astype(np.uint8), np.ascontiguousarray(layer.pixels[..., :3]))
        wet = relief[layer.window][..., 2]
        wet[...] = (wet.astype(np.uint16) * rest) >> 8
        if cover is not None:
            cover[layer.window][alpha >= SOLID] = mark

    def _energy(self, image: Image, state: SceneState) -> Image:
        """Sparks at active tips, plumes above them, the veil of smoke."""
        tick = round(state.time * 25)
        plumes = []
        for tool in state.tools:
            if tool.active:
                x, y = state.camera.project(tool.contact or tool.tip, self.width, self.height)
                add_light(image, self._smoke.sparks[(tick + tool.track) % 3], x, y)
                plumes.append((x, y))
        if state.smoke > 0.004 or plumes:
            opacity = self._smoke.veil(state.smoke, state.time, plumes)[: self.height, : self.width]
            image = self._optics.haze(image, opacity)
        return image


def _tool_to_world(tool: ToolState) -> Affine:
    """Local +x points to the trocar; +y points down whichever side the instrument comes from."""
    dx, dy = tool.entry[0] - tool.tip[0], tool.entry[1] - tool.tip[1]
    length = math.hypot(dx, dy)
    ex, ey = (dx / length, dy / length) if length > 1e-9 else (1.0, 0.0)
    nx, ny = (-ey, ex) if tool.entry[0] >= 0 else (ey, -ex)
    s = SIZE * tool.scale
    return (s * ex, s * nx, tool.tip[0], s * ey, s * ny, tool.tip[1])
