"""Filming a procedure: pictures of any moment as the dataset shows them, tint and corruption included.

A labelled frame and its successor 1/25 s later get the same tint and the same dirt, so that optical flow between them
sees only motion.
"""

from __future__ import annotations

from functools import cached_property

from surgeval.errors import BadInput
from surgeval.phantom.scene.corruptions import corrupt
from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import TINTS, Rendered, Renderer
from surgeval.phantom.script.dice import Dice, stream_seed
from surgeval.phantom.script.procedure import FPS, Procedure
from surgeval.vocab import load_labels


class Footage:
    """Camera and recorder of one video."""

    def __init__(
        self, procedure: Procedure, look: str = "A", *, width: int = 448, height: int = 256, tint: str = "none"
    ) -> None:
        if look not in LOOKS:
            raise BadInput(f"look: found {look!r}, expected one of {', '.join(LOOKS)}")
        if tint not in TINTS:
            raise BadInput(f"tint: found {tint!r}, expected one of {', '.join(TINTS)}")
        if not 64 <= height <= 0.75 * width:
            raise BadInput(f"frame size: found {width}×{height}, expected 4:3 or wider and at least 64 pixels high")
        self.procedure, self.look, self.width, self.height, self.tint = procedure, look, width, height, tint

    @cached_property
    def renderer(self) -> Renderer:
        """Made when first needed: it paints the textures."""
        # A random tint is one instrument's tint, drawn anew for every second: same colours as by_instrument, no cue.
        tint = "by_instrument" if self.tint == "random" else self.tint
        return Renderer(LOOKS[self.look], self.procedure.anatomy, width=self.width, height=self.height, tint=tint)

    def shoot(self, index: int, *, like: int | None = None) -> Rendered:
        """Frame number `index` (25 per second), with tint and dirt of frame `like` (itself by default)."""
        like = index if like is None else like
        shot = self.renderer.render(self.procedure.state(index / FPS), tint_key=self._tint_key(like))
        corruption = self.procedure.corruption(like / FPS)
        if corruption is None:
            return shot
        # Dirt stays where it is for the whole stretch; sensor noise is new in every frame.
        moment = index if corruption.kind == "noise" else corruption.kind
        image = corrupt(shot.image, corruption, stream_seed("lens", self.procedure.seed, moment) % 2**32)
        return Rendered(image, shot.masks, shot.object_masks, shot.organ_map)

    def _tint_key(self, index: int) -> str | None:
        if self.tint == "none":
            return None
        if self.tint == "random":
            return Dice("tint", self.procedure.seed, index // FPS).choice(load_labels("phantom").instruments)
        tool = self.procedure.working(index / FPS)
        return tool.instrument if tool else None
