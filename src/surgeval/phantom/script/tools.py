"""One instrument's whole stay in the abdomen: where its tip is, how far its jaws open, what it touches, at any time.

The path runs through rest points of the tissue; in contact the tip goes where the tissue goes, so an instrument that
works on a gallbladder held up by another one follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surgeval.phantom.script import actions as _actions
from surgeval.phantom.script.actions import HINGED, IDLE_JAW, Action
from surgeval.phantom.script.motion import along, ramp, rounded, sway
from surgeval.phantom.script.state import Pull, ToolState, displaced
from surgeval.records import Point

SETTLE = 0.5  # seconds over which an arriving or leaving tip joins or leaves the tissue's movement


@dataclass(frozen=True, slots=True)
class Tool:
    """An instrument between entering and leaving; `path` holds (time, rest point), `grips` when it carries."""

    track: int
    instrument: str
    lane: str
    entry: Point
    path: tuple[tuple[float, Point], ...]
    actions: tuple[Action, ...]
    depth: float
    scale: float
    tremor: float
    grips: tuple[tuple[float, float], ...] = ()
    touches: tuple[tuple[float, float, Point], ...] = ()  # from, to, rest point: where it puts down or picks up

    @property
    def enters(self) -> float:
        """When it starts to move in, still out of view."""
        return self.path[0][0]

    @property
    def leaves(self) -> float:
        """When it is out of view again."""
        return self.path[-1][0]

    def present(self, t: float) -> bool:
        """Whether it is in the abdomen."""
        return self.enters <= t <= self.leaves

    def doing(self, t: float) -> Action | None:
        """The action in contact at this time."""
        return next((action for action in self.actions if action.start <= t <= action.end), None)

    def labelled(self, t: float) -> Action | None:
        """The action whose triplet a frame at this time carries."""
        return next((action for action in self.actions if action.labelled[0] <= t <= action.labelled[1]), None)

    def rest(self, t: float) -> Point:
        """The tip, before tissue movement, strokes and tremor."""
        return along(self.path, t)

    def tip(self, t: float, pulls: Sequence[Pull]) -> Point:
        """The tip in the world."""
        x, y = self.rest(t)
        for action in self.actions:
            if action.start - SETTLE < t < action.end + SETTLE:
                if not action.free:
                    share = ramp(t, action.start - SETTLE, action.start) * (
                        1 - ramp(t, action.end, action.end + SETTLE)
                    )
                    rest, moved = action.rest(t), displaced(action.anchor(t), tuple(pulls))
                    x, y = x + share * (moved[0] - rest[0]), y + share * (moved[1] - rest[1])
                dx, dy = _actions.offset(action, t)
                x, y = x + dx, y + dy
        for start, end, rest in self.touches:
            share = ramp(t, start - SETTLE, start) * (1 - ramp(t, end, end + SETTLE))
            if share > 0:
                moved = displaced(rest, tuple(pulls))
                x, y = x + share * (moved[0] - rest[0]), y + share * (moved[1] - rest[1])
        dx, dy = sway(t, self.tremor, 0.5)
        return rounded((x + dx, y + dy))

    def jaw(self, t: float) -> float:
        """Opening of the jaws; for the bag, of its mouth."""
        if self.instrument == "specimen_bag":
            return round(1.0 - 0.9 * max((ramp(t, end - 0.4, end) for _, end in self.grips), default=0.0), 3)
        if self.instrument not in HINGED:
            return 0.0
        if self.grips:
            closed = max(ramp(t, a - 0.3, a) * (1 - ramp(t, b, b + 0.3)) for a, b in self.grips)
            return round(0.7 - 0.62 * closed, 3)
        action = self.doing(t)
        if action is not None:
            return round(_actions.jaw(action, t), 3)
        before = max((a for a in self.actions if a.end < t), key=lambda a: a.end, default=None)
        after = min((a for a in self.actions if a.start > t), key=lambda a: a.start, default=None)
        return round(_actions.jaw_between(before, after, t), 3) if (before or after) else IDLE_JAW

    def state(self, t: float, pulls: Sequence[Pull]) -> ToolState:
        """Everything the renderer and the truth need to know of it at this time."""
        touching, labelled = self.doing(t), self.labelled(t)
        tip = self.tip(t, pulls)
        return ToolState(
            track=self.track,
            instrument=self.instrument,
            entry=self.entry,
            tip=tip,
            jaw=self.jaw(t),
            active=touching is not None and _actions.active(touching, t),
            verb=labelled.verb if labelled else "null_verb",
            target=labelled.target if labelled else "null_target",
            contact=tip if touching and touching is labelled else None,
            depth=self.depth,
            scale=self.scale,
        )


def pulls_at(tools: Sequence[Tool], t: float) -> tuple[Pull, ...]:
    """The tension that all instruments together put on the tissue."""
    pulls = []
    for tool in tools:
        action = tool.doing(t)
        if action is None or action.free or action.pull == (0.0, 0.0):
            continue
        amount = _actions.tension(action, t)
        if amount > 1e-4:
            x, y = rounded(action.anchor(t))
            dx, dy = rounded((action.pull[0] * amount, action.pull[1] * amount))
            pulls.append(Pull(x, y, dx, dy, action.radius))
    return tuple(pulls)
