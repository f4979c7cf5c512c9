"""Questions of the `intent` kind: six skills in the first person, and both traps with their twins.

A false premise and its true twin have the same words, stem and options alike, and differ only in the pictures: what a
reader of the text alone gains on one it loses on the other. A perceptual trap offers things that are not there; its
sanitised twin offers things that are there and beside the point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from surgeval.phantom.questions.focus.scene import QUADRANTS, quadrant
from surgeval.phantom.questions.intent_words import CHECK, GERUND, PHASES, THINGS, WATCH, deed_in_words, keyed
from surgeval.phantom.questions.phrases import REASON, reason, words
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.graph import SceneGraph, SeenTool, Visibility
from surgeval.phantom.script.procedures import PROCEDURES
from surgeval.records import Gaze, IntentQuestion

SKILLS = {
    "absolute": "spatial", "relative": "spatial", "prospective": "temporal", "retrospective": "temporal",
    "discrete": "standard", "continuous": "standard",
}  # fmt: skip
MOMENTS = 2  # per skill and video
TRAPS = 3  # of each kind, per video

_WORKING_WITH = {
    "absolute": "Which of these am I working with at the place I am looking at?",
    "relative": "Which of these is nearest to the tissue I am looking at and at work on it?",
    "prospective": "Which of these am I about to go on working with where I am looking?",
    "retrospective": "Which of these have I brought to the area I am looking at for the present step?",
    "discrete": "Which of these do I have to identify by its tip now, because I am working with it?",
    "continuous": "Which of these do I have to follow with my eyes all the time, because I am working with it?",
}
_AIM = {
    "absolute": "What is it for at the place I am looking at?",
    "relative": "What is it for, given what lies next to the tip I am looking at?",
    "prospective": "What do I want to have reached when I am done with it?",
    "retrospective": "What has made me start it?",
    "discrete": "What does it have to achieve before I may go on?",
    "continuous": "Which aim do I have to keep in mind all the time while I do it?",
}
_REJECTIONS = (
    "that is not what I see here",
    "I am not {gerund} anything here",
    "none of these: no {gerund} is going on",
    "nothing, as there is no {gerund} in my view now",
)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A question whose options are not yet in order."""

    skill: str
    view: Visibility
    frames: int
    ask: str
    right: str
    wrong: tuple[str, ...]


def make_intent_questions(graph: SceneGraph, gaze: Sequence[Gaze], *, prefix: str) -> list[IntentQuestion]:
    """All items of one video, twins included.

    >>> from surgeval.phantom import make_gaze, make_procedure
    >>> from surgeval.phantom.script.graph import build_graph
    >>> procedure = make_procedure(7)
    >>> gaze, nothing_seen = make_gaze(procedure, 448, 256), build_graph("A1", procedure, [], [])
    >>> make_intent_questions(nothing_seen, gaze, prefix="p")
    []
    """
    return _Maker(graph, tuple(gaze), prefix).make()


class _Maker:
    def __init__(self, graph: SceneGraph, gaze: tuple[Gaze, ...], prefix: str) -> None:
        self.graph, self.gaze, self.prefix = graph, gaze, prefix
        self.dice = Dice("intent", prefix, graph.video)
        self.items: list[IntentQuestion] = []
        self._places: list[int] = []
        self.whole = [view for view in graph.views if view.time == int(view.time)]
        # Moments at which the attended instrument acts, in view: clear pictures first.
        acting = [view for view in self.whole if self._acting(view)]
        self.moments = sorted(self.dice.shuffled(acting), key=lambda view: view.corrupted)

    def make(self) -> list[IntentQuestion]:
        drafts = (
            self._absolute,
            self._relative,
            self._prospective,
            self._retrospective,
            self._discrete,
            self._continuous,
        )
        for maker in drafts:
            count = 0
            for view in self.dice.shuffled(self.moments):
                draft = maker(view) if count < MOMENTS else None
                if draft:
                    count += 1
                    self._add(draft)
        skills = self.dice.shuffled(list(SKILLS)) * 2
        for skill, view in zip(skills[:TRAPS], self.dice.shuffled(self.moments), strict=False):
            self._perceptual(skill, view)
        for skill, pair in zip(skills[TRAPS : 2 * TRAPS], self._premise_pairs(), strict=False):
            self._cognitive(skill, *pair)
        return self.items

    # ── putting an item together ────────────────────────────────────────────────────────────────────────────────

    def _acting(self, view: Visibility) -> SeenTool | None:
        tool = view.tool(view.working)
        inside = tool is not None and 0.06 < tool.x < 0.94 and 0.06 < tool.y < 0.94
        return tool if tool and inside and tool.verb != "null_verb" else None

    def _place(self) -> int:
        """The next position of a right answer: every four items use each position once."""
        if not self._places:
            self._places = self.dice.shuffled(range(4))
        return self._places.pop()

    def _add(
        self,
        draft: _Draft,
        trap: Literal["perceptual", "cognitive"] | None = None,
        options: tuple[str, ...] | None = None,
    ) -> IntentQuestion:
        view = draft.view
        if options is None:
            ordered = self.dice.shuffled(draft.wrong)
            ordered.insert(self._place(), draft.right)
            options = tuple(ordered)
        phase = self.graph.phase(view.time)
        stem = f"During the {PHASES[phase.name]} of this {self.graph.procedure} I am working at {_site(phase.site)}."
        start = max(view.time - (draft.frames - 1), self.whole[0].time)
        shown = [v for v in self.whole if start <= v.time <= view.time]
        item = IntentQuestion(
            id=f"{self.prefix}-{self.graph.video}-i{len(self.items) + 1:04d}",
            scenario="laparoscopy",
            cluster=self.graph.video,
            media=tuple(f"../../frames/{self.graph.video}/{v.name}.jpg" for v in shown),
            dimension=SKILLS[draft.skill],
            skill=draft.skill,
            question=f"{stem} {draft.ask}",
            options=options,
            answer=options.index(draft.right),
            start=shown[0].time,
            end=view.time,
            gaze=tuple(
                fix for fix in self.gaze if fix.t - 0.5 <= view.time and shown[0].time <= fix.t + fix.duration + 0.5
            ),
            context={"procedure": self.graph.procedure, "phase": PHASES[phase.name], "site": phase.site},
            trap=trap,
        )
        self.items.append(item)
        return item

    # ── competency ──────────────────────────────────────────────────────────────────────────────────────────────

    def _absolute(self, view: Visibility) -> _Draft | None:
        tool = self._acting(view)
        where = tool and quadrant(tool.x, tool.y)
        if not where:
            return None
        ask = "In which part of my view is the tip of the instrument I am looking at?"
        return _Draft(
            "absolute", view, 1, ask, f"in the {where}", tuple(f"in the {q}" for q in QUADRANTS if q != where)
        )

    def _relative(self, view: Visibility) -> _Draft | None:
        tool = self._acting(view)
        names = [other.instrument for other in view.tools]
        others = [t for t in view.tools if tool and t.track != tool.track and names.count(t.instrument) == 1]
        for other in self.dice.shuffled(others):
            if tool is None or tool.instrument == other.instrument:
                continue
            dx, dy = 1.75 * (tool.x - other.x), tool.y - other.y  # in frame heights
            if max(abs(dx), abs(dy)) < 0.2 or not (abs(dx) > 1.4 * abs(dy) or abs(dy) > 1.4 * abs(dx)):
                continue
            side = (
                ("left of it" if dx < 0 else "right of it")
                if abs(dx) > abs(dy)
                else "above it"
                if dy < 0
                else "below it"
            )
            sides = ("left of it", "right of it", "above it", "below it")
            ask = (
                f"Where is the tip of the instrument I am looking at, seen from that of the {words(other.instrument)}?"
            )
            return _Draft("relative", view, 1, ask, side, tuple(s for s in sides if s != side))
        return None

    def _steps(self, views: Sequence[Visibility], now: SeenTool) -> Iterator[tuple[float, str]]:
        """What the attended instrument does in these views, where it is not what is being done now."""
        current = deed_in_words(now.instrument, now.verb, now.target)
        for view in views:
            tool = self._acting(view)
            if tool and deed_in_words(tool.instrument, tool.verb, tool.target) != current:
                yield view.time, deed_in_words(tool.instrument, tool.verb, tool.target)

    def _other_deeds(self, not_these: set[str]) -> tuple[str, ...]:
        """Three things that are done in such procedures, but not these."""
        jobs = {
            t
            for p in PROCEDURES[self.graph.procedure].phases
            for job in p.jobs
            if job.lane == "right"
            for t in job.triplets
        }
        deeds = sorted({deed_in_words(*triplet.split(",")) for triplet in jobs} - not_these)
        return tuple(self.dice.sample(deeds, 3))

    def _done(self, start: float, end: float) -> set[str]:
        return {
            deed_in_words(e.instrument, e.verb, e.target) for e in self.graph.events if e.start < end and e.end > start
        }

    def _prospective(self, view: Visibility) -> _Draft | None:
        tool = self._acting(view)
        step = next(self._steps([v for v in self.whole if v.time > view.time], tool), None) if tool else None
        if tool is None or step is None or step[0] - view.time > 8:
            return None
        wrong = self._other_deeds({step[1], *self._done(view.time - 1, view.time + 15)})
        ask = "What do I do next, after what I am doing where I am looking?"
        return _Draft("prospective", view, 3, ask, step[1], wrong)

    def _retrospective(self, view: Visibility) -> _Draft | None:
        tool = self._acting(view)
        step = next(self._steps([v for v in reversed(self.whole) if v.time < view.time], tool), None) if tool else None
        if tool is None or step is None or view.time - step[0] > 8:
            return None
        wrong = self._other_deeds({step[1], *self._done(0.0, view.time + 1)})
        ask = "Which of these did I do before, so that I can do what I am doing where I am looking?"
        return _Draft("retrospective", view, 3, ask, step[1], wrong)

    def _discrete(self, view: Visibility) -> _Draft | None:
        ask = "What do I have to check before I go on with what I am doing where I am looking?"
        return self._standard("discrete", CHECK, view, ask)

    def _continuous(self, view: Visibility) -> _Draft | None:
        ask = "What do I have to keep an eye on all the time during what I am doing where I am looking?"
        return self._standard("continuous", WATCH, view, ask)

    def _standard(self, skill: str, table: dict[str, str], view: Visibility, ask: str) -> _Draft | None:
        tool = self._acting(view)
        if tool is None:
            return None
        right = keyed(table, tool.verb, tool.target)
        wrong = self.dice.sample(sorted(set(table.values()) - {right}), 3)
        return _Draft(skill, view, 2, ask, right, tuple(wrong))

    # ── traps ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _perceptual(self, skill: str, view: Visibility) -> None:
        tool = self._acting(view)
        if tool is None:
            return
        tools = {other.instrument for other in view.tools}
        seen = {self.graph.thing(thing.key).slug for thing in view.visible()}
        inside = {self.graph.thing(thing.key).slug for thing in view.things}
        instruments = ("grasper", "bipolar", "hook", "scissors", "clipper", "irrigator", "specimen_bag")
        absent = [name for name in instruments if name not in tools | inside]
        absent += self.dice.sample([s for s in ("sponge", "needle", "mesh", "silicone_loop") if s not in inside], 1)
        others = [
            self.dice.shuffled(sorted(names & set(THINGS) - {tool.instrument}))
            for names in (tools, seen, set(view.organs))
        ]
        beside = list(dict.fromkeys(name for names in others for name in names))  # instruments first: the harder choice
        right = THINGS[tool.instrument]
        fabricated = tuple(THINGS[name] for name in self.dice.sample(absent, 3))
        visible = tuple(THINGS[name] for name in beside[:3])
        if len(fabricated) == len(visible) == 3:
            ask = _WORKING_WITH[skill]
            trap = self._add(_Draft(skill, view, 1, ask, right, fabricated), trap="perceptual")
            twin = self._add(_Draft(skill, view, 1, ask, right, visible))
            self.items[-2] = replace(trap, untrapped=twin.id)

    def _premise_pairs(self) -> Iterator[tuple[Visibility, Visibility]]:
        """(false, true) moments of one phase: what is done at the second is not to be seen at the first."""
        used: set[str] = set()
        for true in self.dice.shuffled(self.moments):
            done = self._acting(true)
            for false in self.dice.shuffled(self.moments):
                actual = self._acting(false)
                if done is None or actual is None or true.phase != false.phase:
                    continue
                premise = (done.instrument, done.verb, done.target)
                if deed_in_words(*premise) in used or abs(true.time - false.time) < 2:
                    continue
                if all(tool.verb != done.verb for tool in false.tools):  # by no instrument: the rejections say so
                    used.add(deed_in_words(*premise))
                    yield false, true
                    break

    def _cognitive(self, skill: str, false: Visibility, true: Visibility) -> None:
        done, actual = self._acting(true), self._acting(false)
        if done is None or actual is None:
            return
        aim, other_aim = reason(done.verb, done.target), reason(actual.verb, actual.target)
        taken = {text for (verb, _), text in REASON.items() if verb in (done.verb, actual.verb)}
        spare = self.dice.sample(sorted(set(REASON.values()) - taken), 2)
        gerund = GERUND[done.verb]
        reject = self.dice.choice(_REJECTIONS).format(gerund=gerund)
        ask = f"I am {gerund} the {words(done.target)} with the {words(done.instrument)}. {_AIM[skill]}"
        first, second = self._place(), self._place()
        while second == first:
            second = self._place()
        rest = iter(self.dice.shuffled(spare))
        options = tuple(reject if k == first else aim if k == second else next(rest) for k in range(4))
        trap = self._add(_Draft(skill, false, 1, ask, reject, ()), trap="cognitive", options=options)
        position = len(self.items) - 1
        twin = self._add(_Draft(skill, true, 1, ask, aim, ()), options=options)
        plain = f"I am at work where I am looking. {_AIM[skill]}"
        sanitised = self._add(_Draft(skill, false, 1, plain, other_aim, (aim, *spare)))
        self.items[position] = replace(trap, twin=twin.id, untrapped=sanitised.id)


def _site(site: str) -> str:
    return site if site[0].isupper() else f"the {site}"
