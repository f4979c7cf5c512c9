"""What may be wrong with the labels of a video: a list for the annotator to go through, nothing is changed.

Frames are put into seconds by their times, else by the film's rate, else they are taken to be a second apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from math import hypot

from surgeval.studio.schema import Schema, Standing, standing
from surgeval.studio.store import Annotation, FrameState, VideoState
from surgeval.vocab import LabelSpace

__all__ = ["RULES", "Checks", "Problem", "find_problems"]

RULES: Mapping[str, str] = {
    "inadmissible": "a value that the schema does not admit",
    "no class": "admissible, but no class of the label space: lost in formats of class numbers",
    "incomplete": "an attribute without a value",
    "outside": "a box that reaches past the frame",
    "empty": "frames without any instance, between frames that have some",
    "gap": "a short interruption inside one action of an instrument",
    "long": "a momentary action that lasts longer than the seconds before and after contact",
    "swap": "two instruments of a class that seem to have exchanged their numbers",
}
_TOOL_ACTION = "action"
_NOTHING = "null"


@dataclass(frozen=True)
class Problem:
    """A place to look at."""

    frame: int
    rule: str
    text: str
    instance: str | None = None


@dataclass(frozen=True)
class Checks:
    """The bounds of the rules, in seconds and pixels."""

    gap: float = 2.0
    contact: float = 2.0  # before and after
    momentary: frozenset[str] = frozenset({"cut", "clip"})
    slack: float = 1.0
    exchange: float = 0.5  # a swap must make the summed way so much shorter


@dataclass
class _Video:
    state: VideoState
    times: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, frame: int) -> float:
        known = self.times.get(frame)
        return known if known is not None else frame / (self.state.fps or 1.0)


def find_problems(
    video: VideoState,
    frames: Sequence[FrameState],
    instances: Sequence[Annotation],
    schema: Schema,
    space: LabelSpace | None = None,
    checks: Checks = Checks(),  # noqa: B008 - frozen
) -> tuple[Problem, ...]:
    """All that the rules find, by frame; proposals are not judged.

    >>> from surgeval.records import Box
    >>> from surgeval.studio.schema import builtin_schema
    >>> seen = Annotation("i1", "V1", 0, "tools", "scissors", Box(60, 10, 20, 20), values={"action": "suture"})
    >>> found = find_problems(VideoState("V1", "V1", 64, 48), [], [seen], builtin_schema("prostatd"))
    >>> [(one.rule, one.text) for one in found]
    [('inadmissible', 'scissors #-: action suture'), ('outside', 'scissors #-: 16 pixels past the frame')]
    """
    told = [one for one in instances if not one.proposal]
    own = _Video(video, {frame.frame: frame.time for frame in frames if frame.time is not None})
    found = [*_labels(told, schema, space), *_outside(told, video, checks), *_empty(told, own)]
    for track, members in _tracks(told):
        found += _gaps(track, members, own, checks)
        found += _long(track, members, own, checks)
    found += _swaps(told, own, checks)
    order = {rule: number for number, rule in enumerate(RULES)}
    return tuple(sorted(found, key=lambda one: (one.frame, order[one.rule], one.instance or "")))


def _labels(told: Sequence[Annotation], schema: Schema, space: LabelSpace | None) -> Iterator[Problem]:
    for one in told:
        place = standing(schema, space, one.group, one.name, one.values)
        if place is Standing.INADMISSIBLE:
            wrong = schema.inadmissible(one.group, one.name, one.values)
            said = ", ".join(f"{name} {one.values[name]}" if name in one.values else name for name in wrong)
            yield Problem(one.frame, "inadmissible", f"{_name(one)}: {said}", one.id)
        elif place is Standing.NO_CLASS:
            said = ", ".join(f"{name} {value}" for name, value in sorted(one.values.items()))
            yield Problem(one.frame, "no class", f"{_name(one)}: {said}", one.id)
        elif place is Standing.INCOMPLETE:
            member = schema.require(one.group, one.name)
            missing = [a.name for a in member.attributes if a.values and a.name not in one.values]
            yield Problem(one.frame, "incomplete", f"{_name(one)}: no {' and no '.join(missing)}", one.id)


def _outside(told: Sequence[Annotation], video: VideoState, checks: Checks) -> Iterator[Problem]:
    for one in told:
        box = one.box
        past = max(-box.x, -box.y, box.x + box.w - video.width, box.y + box.h - video.height)
        if past > checks.slack:
            yield Problem(one.frame, "outside", f"{_name(one)}: {past:.0f} pixels past the frame", one.id)


def _empty(told: Sequence[Annotation], video: _Video) -> Iterator[Problem]:
    """Runs of frames without instances; before the first and after the last one nobody may have labelled yet."""
    shown = sorted({one.frame for one in told})
    for before, after in pairwise(shown):
        if after > before + 1:
            seconds = video.seconds(after) - video.seconds(before + 1)
            frames = f"frame {before + 1}" if after == before + 2 else f"frames {before + 1} to {after - 1}"
            yield Problem(before + 1, "empty", f"{frames} show nothing ({seconds:.0f} s)")


def _tracks(told: Sequence[Annotation]) -> Iterator[tuple[str, list[Annotation]]]:
    """Instances of each track in the order of frames; those without identity belong to none."""
    known = sorted((one for one in told if one.track is not None), key=lambda one: (_key(one), one.frame))
    for _, members in groupby(known, key=_key):
        rows = list(members)
        yield _name(rows[0]), rows


def _gaps(track: str, members: Sequence[Annotation], video: _Video, checks: Checks) -> Iterator[Problem]:
    runs = _action_runs(members)
    named = [run for run in runs if run[0] not in ("", _NOTHING)]
    for (action, _, end), (again, start, _) in pairwise(named):
        seconds = video.seconds(start) - video.seconds(end)
        if action == again and start > end + 1 and seconds <= checks.gap:
            yield Problem(end + 1, "gap", f"{track}: {action} is interrupted for {seconds:.1f} s")


def _long(track: str, members: Sequence[Annotation], video: _Video, checks: Checks) -> Iterator[Problem]:
    for action, start, end in _action_runs(members):
        seconds = video.seconds(end) - video.seconds(start)
        if action in checks.momentary and seconds > 2 * checks.contact:
            yield Problem(start, "long", f"{track}: {action} for {seconds:.1f} s")


def _action_runs(members: Sequence[Annotation]) -> list[tuple[str, int, int]]:
    """Stretches of frames that follow each other with one action: action, first and last frame."""
    runs: list[tuple[str, int, int]] = []
    for one in members:
        action = one.values.get(_TOOL_ACTION, "")
        if runs and runs[-1][0] == action and one.frame <= runs[-1][2] + 1:
            runs[-1] = (action, runs[-1][1], one.frame)
        else:
            runs.append((action, one.frame, one.frame))
    return runs


def _swaps(told: Sequence[Annotation], video: _Video, checks: Checks) -> Iterator[Problem]:
    """Pairs of a class present in two frames that follow each other, whose way is much shorter crosswise."""
    frames: dict[int, dict[tuple[str, str], list[Annotation]]] = {}
    for one in told:
        if one.track is not None:
            frames.setdefault(one.frame, {}).setdefault((one.group, one.name), []).append(one)
    for frame, groups in sorted(frames.items()):
        after = frames.get(frame + 1, {})
        for kind, now in groups.items():
            then = {one.track: one for one in after.get(kind, [])}
            both = [one for one in now if one.track in then]
            for number, one in enumerate(both):
                for other in both[number + 1 :]:
                    straight = _way(one, then[one.track]) + _way(other, then[other.track])
                    crossed = _way(one, then[other.track]) + _way(other, then[one.track])
                    if crossed < checks.exchange * straight:
                        text = f"{_name(one)} and {_name(other)} seem to have exchanged their numbers"
                        yield Problem(frame + 1, "swap", text, then[one.track].id)


def _way(one: Annotation, other: Annotation) -> float:
    a, b = one.box, other.box
    return hypot(a.x + a.w / 2 - b.x - b.w / 2, a.y + a.h / 2 - b.y - b.h / 2)


def _key(one: Annotation) -> tuple[str, str, int]:
    return one.group, one.name, one.track if one.track is not None else -1


def _name(one: Annotation) -> str:
    return f"{one.name} #{'-' if one.track is None else one.track}"
