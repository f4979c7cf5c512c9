"""What may be wrong with the labels of a video: a list for the annotator to go through, nothing is changed.

Rules look at whole columns, and what goes on from frame to frame is one entry. Frames are put into seconds by their
times, else by the film's rate, else they are taken to be a second apart. Texts have names and numbers only: the page
says in its own language what a rule is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surgeval.arrays import Bools, Floats, Ints
from surgeval.studio.schema import IMAGE, Schema, Standing, standings
from surgeval.studio.store import NO_NUMBER, Columns, FrameColumns, VideoState
from surgeval.vocab import LabelSpace

__all__ = ["PROBLEM_RULES", "Checks", "LabelProblem", "LabelProblems", "find_problems"]

PROBLEM_RULES: Mapping[str, str] = {
    "inadmissible": "a value that the schema does not admit",
    "no class": "admissible, but no class of the label space: lost in formats of class numbers",
    "incomplete": "an attribute without a value",
    "outside": "a box that reaches past the frame",
    "empty": "frames without any instance, between frames that have some",
    "gap": "a short interruption inside one action of an instrument",
    "long": "a momentary action that lasts longer than the seconds before and after contact",
    "swap": "two instruments of a class that seem to have exchanged their numbers",
}
_RULE_OF = {Standing.INADMISSIBLE: "inadmissible", Standing.NO_CLASS: "no class", Standing.INCOMPLETE: "incomplete"}
_TOOL_ACTION = "action"
_NOTHING = "null"
_MOST = 2000  # entries of one rule that are listed; all are counted


@dataclass(frozen=True)
class LabelProblem:
    """A place to look at: a frame, or the stretch from `frame` to `last`."""

    frame: int
    rule: str
    text: str
    instance: str | None = None
    last: int = 0


@dataclass(frozen=True)
class LabelProblems:
    """What the rules found, by frame; of a rule that finds thousands the first ones, and how many there are."""

    listed: tuple[LabelProblem, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Checks:
    """The bounds of the rules, in seconds and pixels."""

    gap: float = 2.0
    contact: float = 2.0  # before and after
    momentary: frozenset[str] = frozenset({"cut", "clip"})
    slack: float = 1.0
    exchange: float = 0.5  # a swap must make the summed way so much shorter


def find_problems(
    video: VideoState,
    frames: FrameColumns,
    told: Columns,
    schema: Schema,
    space: LabelSpace | None = None,
    checks: Checks = Checks(),  # noqa: B008 - frozen
) -> LabelProblems:
    """All that the rules find; `told` is without proposals, which nobody has answered for.

    >>> from surgeval.records import Box
    >>> from surgeval.studio.schema import builtin_schema
    >>> from surgeval.studio.store import Annotation
    >>> seen = Annotation("i1", "V1", 0, "tools", "scissors", Box(60, 10, 20, 20), values={"action": "suture"})
    >>> video, schema = VideoState("V1", "V1", 64, 48), builtin_schema("prostatd")
    >>> problems = find_problems(video, FrameColumns.none(), Columns.of([seen]), schema)
    >>> [(problem.rule, problem.text) for problem in problems.listed]
    [('inadmissible', 'scissors #-: action suture'), ('incomplete', 'scissors #-: target'),
     ('outside', 'scissors #-: 16 px')]
    """
    look = _Look(video, frames, told, schema, space, checks)
    for rule in (look.labels, look.image, look.outside, look.empty, look.actions, look.swaps):
        rule()
    order = {rule: number for number, rule in enumerate(PROBLEM_RULES)}
    listed = sorted(look.problems, key=lambda problem: (problem.frame, order[problem.rule], problem.instance or ""))
    return LabelProblems(tuple(listed), {rule: look.counts[rule] for rule in PROBLEM_RULES if rule in look.counts})


class _Look:
    """One look at a video; every method is a rule or two."""

    def __init__(
        self, video: VideoState, frames: FrameColumns, told: Columns, schema: Schema, space: LabelSpace | None,
        checks: Checks,
    ) -> None:  # fmt: skip
        self.video, self.frames, self.told, self.schema, self.space = video, frames, told, schema, space
        self.checks = checks
        self.problems: list[LabelProblem] = []
        self.counts: dict[str, int] = {}

    def labels(self) -> None:
        """Values held against schema and label space: judged once per combination that occurs."""
        told = self.told
        if not len(told):
            return
        combined, combination = np.unique(np.stack([told.kind, told.label]), axis=1, return_inverse=True)
        combination = combination.reshape(-1)
        pairs = [(told.kinds[kind], told.values[label]) for kind, label in combined.T.tolist()]
        judged = [self._judged(group, name, values) for (group, name), values in pairs]
        for rule in _RULE_OF.values():
            texts = {number: rules.get(rule, "") for number, rules in enumerate(judged)}
            wrong = np.array([rule in rules for rules in judged])
            begins, ends = self._stretches(np.flatnonzero(wrong[combination]), combination)
            self._tell(rule, begins, ends, _naming(told, combination, texts))

    def image(self) -> None:
        """Values of whole frames that the schema lacks."""
        frames = self.frames
        judged = {label: self._judged(IMAGE, IMAGE, values) for label, values in frames.values.items() if values}
        wrong = {
            label: f"{IMAGE}: {rules['inadmissible']}" for label, rules in judged.items() if "inadmissible" in rules
        }
        rows = np.flatnonzero(np.isin(frames.label, list(wrong)))
        new = np.append(True, (np.diff(frames.label[rows]) != 0) | (np.diff(frames.frame[rows]) > 1))[: len(rows)]
        begins = np.flatnonzero(new)
        ends = np.append(begins[1:], len(rows))[: len(begins)] - 1
        for begin, end in zip(rows[begins][:_MOST].tolist(), rows[ends][:_MOST].tolist(), strict=True):
            text, last = wrong[int(frames.label[begin])], int(frames.frame[end])
            self.problems.append(LabelProblem(int(frames.frame[begin]), "inadmissible", text, None, last))
        self._count("inadmissible", len(begins))

    def outside(self) -> None:
        """Boxes that reach past the frame."""
        x, y, w, h = self.told.xywh.T
        past = np.max([-x, -y, x + w - self.video.width, y + h - self.video.height], axis=0, initial=-np.inf)
        begins, ends = self._stretches(np.flatnonzero(past > self.checks.slack), self.told.kind)
        self._tell("outside", begins, ends, lambda row: f"{self.told.name(row)}: {past[row]:.0f} px")

    def empty(self) -> None:
        """Runs of frames without instances; before the first and after the last one nobody may have labelled yet."""
        shown = np.unique(self.told.frame)
        before = np.flatnonzero(np.diff(shown) > 1)
        first, last = shown[before] + 1, shown[before + 1] - 1
        seconds = self.seconds(last + 1) - self.seconds(first)
        for begin, end, long in zip(first[:_MOST].tolist(), last[:_MOST].tolist(), seconds.tolist(), strict=False):
            self.problems.append(LabelProblem(begin, "empty", f"{long:.0f} s", None, end))
        self._count("empty", len(first))

    def actions(self) -> None:
        """Interruptions inside one action, and momentary actions that last too long."""
        told, checks = self.told, self.checks
        names = {label: values.get(_TOOL_ACTION, "") for label, values in told.values.items()}
        words = sorted({"", _NOTHING, *names.values()})
        action = _looked_up(told.label, {label: words.index(name) for label, name in names.items()})
        rows = self.by_track
        new = self._track_begins(rows) | (np.diff(told.frame[rows], prepend=-9) > 1)
        new |= np.diff(action[rows], prepend=-1) != 0
        begins = rows[new]
        ends = rows[np.append(np.flatnonzero(new)[1:], len(rows))[: len(begins)] - 1]
        seconds = self.seconds(told.frame[ends]) - self.seconds(told.frame[begins])
        momentary = np.isin(action[begins], [words.index(name) for name in checks.momentary if name in words])
        long = np.flatnonzero(momentary & (seconds > 2 * checks.contact))
        lasted = dict(zip(begins[long].tolist(), seconds[long].tolist(), strict=True))
        self._tell(
            "long", begins[long], ends[long],
            lambda row: f"{told.name(row)}: {words[action[row]]} {lasted[row]:.1f} s", anonymous=True,
        )  # fmt: skip
        named = ~np.isin(action[begins], [words.index(""), words.index(_NOTHING)])
        begins, ends = begins[named], ends[named]
        before, after = ends[:-1], begins[1:]
        away = self.seconds(told.frame[after]) - self.seconds(told.frame[before])
        short = self._same(before, after) & (action[before] == action[after]) & (away <= checks.gap)
        short &= told.frame[after] > told.frame[before] + 1
        for earlier, later, gone in zip(before[short][:_MOST].tolist(), after[short][:_MOST].tolist(),
                                    away[short].tolist(), strict=False):  # fmt: skip
            text = f"{told.name(earlier)}: {words[action[earlier]]} {gone:.1f} s"
            self.problems.append(
                LabelProblem(int(told.frame[earlier]) + 1, "gap", text, None, int(told.frame[later]) - 1)
            )
        self._count("gap", int(short.sum()))

    def swaps(self) -> None:
        """Pairs of a class present in two frames that follow each other, whose way is much shorter crosswise."""
        told, rows = self.told, self.by_track
        then = np.full(len(told), -1, np.int64)  # the same track in the next frame
        follows = ~self._track_begins(rows) & (np.diff(told.frame[rows], prepend=-9) == 1)
        then[rows[np.flatnonzero(follows) - 1]] = rows[follows]
        here = np.flatnonzero(then >= 0)
        here = here[np.lexsort((told.number[here], told.frame[here], told.kind[here]))]
        pairs: list[tuple[Ints, Ints]] = []
        for apart in range(1, len(here)):
            first, second = here[:-apart], here[apart:]
            both = (told.kind[first] == told.kind[second]) & (told.frame[first] == told.frame[second])
            if not both.any():
                break
            first, second = first[both], second[both]
            straight = self._way(first, then[first]) + self._way(second, then[second])
            crossed = self._way(first, then[second]) + self._way(second, then[first])
            swapped = crossed < self.checks.exchange * straight
            pairs.append((first[swapped], second[swapped]))
        for first, second in pairs:
            for a, b in zip(first[:_MOST].tolist(), second[:_MOST].tolist(), strict=True):
                frame = int(told.frame[a]) + 1
                text = f"{told.name(a)}, #{told.number[b]}"
                self.problems.append(LabelProblem(frame, "swap", text, told.ids[then[a]], frame))
            self._count("swap", len(first))

    def seconds(self, frames: Ints) -> Floats:
        """When frames are."""
        known = self.frames
        guessed = frames / (self.video.fps or 1.0)
        if not len(known.frame):
            return guessed
        position = np.minimum(np.searchsorted(known.frame, frames), len(known.frame) - 1)
        there = (known.frame[position] == frames) & ~np.isnan(known.time[position])
        return np.where(there, known.time[position], guessed)

    @cached_property
    def by_track(self) -> Ints:
        """The rows that have a number, track by track in the order of frames."""
        told = self.told
        rows = np.flatnonzero(told.number != NO_NUMBER)
        return rows[np.lexsort((told.frame[rows], told.number[rows], told.kind[rows]))]

    def _judged(self, group: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
        """The rules that a combination of values breaks, each with what is to be said of it."""
        wrong = self.schema.inadmissible(group, name, values)
        member = self.schema.member(group, name)
        lacking = [a.name for a in member.attributes if a.values and a.name not in values] if member else []
        texts = {
            Standing.INADMISSIBLE: ", ".join(f"{key} {values[key]}" if key in values else key for key in wrong),
            Standing.NO_CLASS: ", ".join(f"{key} {values[key]}" for key in sorted(values) if key not in wrong),
            Standing.INCOMPLETE: ", ".join(lacking),
        }
        return {_RULE_OF[fault]: texts[fault] for fault in standings(self.schema, self.space, group, name, values)}

    def _stretches(self, rows: Ints, key: Ints) -> tuple[Ints, Ints]:
        """First and last row of each stretch of frames in which a track is among the rows with the same `key`."""
        told = self.told
        rows = rows[np.lexsort((told.frame[rows], key[rows], told.number[rows], told.kind[rows]))]
        new = self._track_begins(rows) | (np.diff(told.frame[rows], prepend=-9) > 1)
        new |= np.diff(key[rows], prepend=-1) != 0
        begins = np.flatnonzero(new)
        return rows[begins], rows[np.append(begins[1:], len(rows))[: len(begins)] - 1]

    def _track_begins(self, rows: Ints) -> Bools:
        number, kind = self.told.number[rows], self.told.kind[rows]
        begins: Bools = (np.diff(number, prepend=-9) != 0) | (np.diff(kind, prepend=-9) != 0)
        return begins

    def _same(self, rows: Ints, others: Ints) -> Bools:
        told = self.told
        same: Bools = (told.kind[rows] == told.kind[others]) & (told.number[rows] == told.number[others])
        return same

    def _way(self, rows: Ints, others: Ints) -> Floats:
        box = self.told.xywh
        centre = box[:, :2] + box[:, 2:] / 2
        way: Floats = np.hypot(*(centre[rows] - centre[others]).T)
        return way

    def _tell(
        self, rule: str, begins: Ints, ends: Ints, text: Callable[[int], str], *, anonymous: bool = False
    ) -> None:
        told = self.told
        first = np.argsort(told.frame[begins], kind="stable")[:_MOST]
        for begin, end in zip(begins[first].tolist(), ends[first].tolist(), strict=True):
            id = None if anonymous else told.ids[begin]
            self.problems.append(LabelProblem(int(told.frame[begin]), rule, text(begin), id, int(told.frame[end])))
        self._count(rule, len(begins))

    def _count(self, rule: str, count: int) -> None:
        if count:
            self.counts[rule] = self.counts.get(rule, 0) + count


def _naming(told: Columns, combination: Ints, texts: Mapping[int, str]) -> Callable[[int], str]:
    return lambda row: f"{told.name(row)}: {texts[int(combination[row])]}"


def _looked_up(keys: Ints, words: Mapping[int, int]) -> Ints:
    """The number of each key."""
    known, inverse = np.unique(keys, return_inverse=True)
    return np.array([words[key] for key in known.tolist()], dtype=np.int64)[inverse.reshape(-1)]
