"""Makers of `focus` questions, by capability group: each reads the scene graph and yields what follows from it.

Yes/no makers are told which answer is wanted and stay silent where the video offers no such case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from surgeval.phantom.questions.focus.scene import (
    CLASSES,
    NONE,
    QUADRANTS,
    AskedQuestion,
    QuestionScene,
    class_list,
    clock_of,
    lower,
    quadrant,
    tolerance,
)
from surgeval.phantom.questions.phrases import HARM, PURPOSE, REASON, deed, reason, with_article, words
from surgeval.phantom.script.foreign import STAYS_IN
from surgeval.phantom.script.graph import Event, Visibility

# ── 1 object recognition ────────────────────────────────────────────────────────────────────────────────────────


def _identify(s: QuestionScene) -> Iterator[AskedQuestion]:
    views = s.views()
    some = next((view for view in views if view.visible()), None)
    none = next((view for view in views if not view.visible()), None)
    if some:
        yield s.at(some.time, "identify", "object_identification", "fo_class", class_list(s.seen_slugs(some)))
    if none and s.dice.chance(0.4):
        yield s.at(none.time, "identify", "object_identification", "fo_class", NONE)


def _visible(s: QuestionScene) -> Iterator[AskedQuestion]:
    ever = sorted({thing.slug for thing in s.graph.things})
    for view in s.views():
        there = sorted(s.seen_slugs(view))
        absent = [slug for slug in (ever if s.dice.chance(0.7) else CLASSES) if slug not in there]
        pool = there if s.yes else absent
        if pool:
            slots = {"a_object": with_article(lower(s.dice.choice(pool)))}
            yield s.at(view.time, "visible", "object_identification", "binary", _yn(s.yes), slots=slots)
            return


def _match_class(s: QuestionScene) -> Iterator[AskedQuestion]:
    for view in s.views():
        placed = [(thing, quadrant(thing.x, thing.y)) for thing in s.single(view)]
        for a, where_a in placed:
            for b, where_b in placed:
                if where_a and where_b and where_a != where_b:
                    first, second = s.dice.shuffled([a, b])
                    slots = {
                        "where_a": where_a,
                        "where_b": where_b,
                        "one": lower(s.slug(first)),
                        "two": lower(s.slug(second)),
                    }
                    answer = "A-1, B-2" if first is a else "A-2, B-1"
                    options = {"pattern": r"A-[12], B-[12]"}
                    yield s.at(
                        view.time, "match_class", "instance_matching", "matching", answer, slots=slots, options=options
                    )
                    return


def _held(s: QuestionScene) -> Iterator[AskedQuestion]:
    for view in s.views():
        for thing in s.single(view):
            span = s.graph.thing(thing.key).at(view.time)
            if span and span.state in ("held", "lying") and (span.state == "held") == s.yes:
                slots = {"object": lower(s.slug(thing))}
                yield s.at(view.time, "held", "object_attributes", "binary", _yn(s.yes), slots=slots)
                return


_CONDITIONS = {
    "held": "held by an instrument",
    "lying": "lying free",
    "applied": "fixed to a structure",
    "hidden": "covered and not visible",
    "in_use": "held open for the specimen",
}


def _condition(s: QuestionScene) -> Iterator[AskedQuestion]:
    moments: dict[str, tuple[Visibility, str]] = {}  # condition → a moment of it
    for view in s.views():
        slugs = [s.slug(thing) for thing in view.things]
        for thing, slug in zip(view.things, slugs, strict=True):
            span = s.graph.thing(thing.key).at(view.time)
            seen = thing.state == "visible" or (thing.state == "hidden" and span is not None and span.state == "hidden")
            if span and seen and slugs.count(slug) == 1:
                moments.setdefault(_CONDITIONS[span.state], (view, slug))
    if moments:
        right = s.dice.choice(sorted(moments))
        view, slug = moments[right]
        text, answer = s.lettered(right, s.dice.sample([c for c in _CONDITIONS.values() if c != right], 3))
        slots = {"object": lower(slug), "options": text}
        yield s.at(view.time, "condition", "object_attributes", "multiple_choice", answer, slots=slots)


def _quadrant(s: QuestionScene) -> Iterator[AskedQuestion]:
    for view in s.views():
        for thing in s.single(view):
            where = quadrant(thing.x, thing.y)
            if where:
                text, answer = s.lettered(where, [q for q in QUADRANTS if q != where])
                slots = {"object": lower(s.slug(thing)), "options": text}
                yield s.at(view.time, "quadrant", "spatial_localization_camera", "multiple_choice", answer, slots=slots)
                return


def _situs(s: QuestionScene) -> Iterator[AskedQuestion]:
    organs = ("liver", "omentum", "gut", "peritoneum", "gallbladder", "abdominal_wall_cavity")
    for view in s.views():
        for seen in s.single(view):
            thing = s.graph.thing(seen.key)
            span = thing.at(view.time)
            if span and span.state == "lying" and thing.situs in organs and thing.origin != "freed":
                wrong = s.dice.sample([words(o) for o in organs if o != thing.situs], 3)
                text, answer = s.lettered(words(thing.situs), wrong)
                slots = {"object": lower(thing.slug), "options": text}
                yield s.at(view.time, "situs", "spatial_localization_situs", "multiple_choice", answer, slots=slots)
                return


# ── 2 temporal grounding ────────────────────────────────────────────────────────────────────────────────────────


def _first_seen(s: QuestionScene) -> Iterator[AskedQuestion]:
    firsts: dict[str, float] = {}
    for view in s.graph.views:
        for slug in s.seen_slugs(view):
            firsts.setdefault(slug, view.time)
    late = [(slug, time) for slug, time in sorted(firsts.items()) if time >= 2]
    for slug, time in s.dice.sample(late, 2):
        options = {"threshold_seconds": tolerance(0, s.end)}
        slots = {"a_object": with_article(lower(slug))}
        yield s.whole("first_seen", "temporal_localization", "time", clock_of(time), slots=slots, options=options)


def _clip_times(s: QuestionScene) -> Iterator[AskedQuestion]:
    times = [clock_of(moment) for moment in _moments(s, "clip")]
    if times:
        options = {"threshold_seconds": tolerance(0, s.end)}
        more = {"options": options, "secondaries": ("event_aggregation",)}
        yield s.whole("clip_times", "temporal_localization", "time", ", ".join(times), **more)


def _share(s: QuestionScene) -> Iterator[AskedQuestion]:
    slugs = sorted({slug for view in s.graph.views for slug in s.seen_slugs(view)})
    for slug in s.dice.sample(slugs, 1):
        seen = sum(slug in s.seen_slugs(view) for view in s.graph.views)
        slots = {"a_object": with_article(lower(slug))}
        percent = f"{round(100 * seen / len(s.graph.views))}%"
        yield s.whole("share", "duration_estimation", "percentage", percent, slots=slots, options={"threshold_pp": 5.0})


# ── 3 aggregation ───────────────────────────────────────────────────────────────────────────────────────────────


def _counts(s: QuestionScene) -> Iterator[AskedQuestion]:
    seen = {thing.key for view in s.graph.views for thing in view.visible()}
    slugs = [s.graph.thing(key).slug for key in sorted(seen)]
    plurals = {"clip": "clips", "sponge": "sponges", "needle": "needles"}  # stones are spilled in groups
    for slug in s.dice.sample([slug for slug in plurals if slug in slugs] or ["needle"], 1):
        slots = {"objects": plurals[slug]}
        yield s.whole("count_objects", "object_aggregation", "number", str(slugs.count(slug)), slots=slots)
    yield s.whole("count_classes", "object_aggregation", "number", str(len(set(slugs))))
    most = max((len(view.visible()) for view in s.graph.views), default=0)
    yield s.whole("most_at_once", "object_aggregation", "number", str(most), secondaries=("temporal_localization",))


def _count_events(s: QuestionScene) -> Iterator[AskedQuestion]:
    pairs = (("clipper", "clip"), ("scissors", "cut"), ("bipolar", "coagulate"), ("irrigator", "aspirate"))
    done = [(i, v) for i, v in pairs if any((e.instrument, e.verb) == (i, v) for e in s.events())]
    for instrument, verb in s.dice.sample(done or list(pairs), 2):
        count = sum((e.instrument, e.verb) == (instrument, verb) for e in s.events())
        slots = {**_grammar(instrument), "verb": verb}
        yield s.whole("count_events", "event_aggregation", "number", str(count), slots=slots)


# ── 4 event understanding ───────────────────────────────────────────────────────────────────────────────────────

_HANDLING = ("it is being brought in", "it is being taken out", "it lies untouched", "it is being cut in two")


def _interaction(s: QuestionScene) -> Iterator[AskedQuestion]:
    handled = s.dice.chance(0.7)
    for view in s.views():
        for seen in s.single(view):
            thing = s.graph.thing(seen.key)
            span = thing.at(view.time)
            if span is None or thing.slug == "specimen" or span.state not in ("held", "lying"):
                continue
            if (span.state == "held") != handled:
                continue
            later = thing.spans[-1] is span and thing.removed is not None
            right = _HANDLING[2] if span.state == "lying" else _HANDLING[1] if later else _HANDLING[0]
            text, answer = s.lettered(right, [h for h in _HANDLING if h != right])
            slots = {"object": lower(thing.slug), "options": text}
            yield s.at(view.time, "interaction", "fo_interaction_recognition", "multiple_choice", answer, slots=slots)
            return


def _applying(s: QuestionScene) -> Iterator[AskedQuestion]:
    moments = _moments(s, "clip")
    if not moments:
        return
    if s.yes:
        time = float(round(s.dice.choice(moments)))
    else:
        quiet = [view.time for view in s.views() if all(abs(view.time - moment) > 2.5 for moment in moments)]
        if not quiet:
            return
        time = quiet[0]
    yield s.at(time, "applying", "fo_interaction_recognition", "binary", _yn(s.yes))


def _located(s: QuestionScene, among: Mapping[str, str]) -> tuple[Visibility, str, str] | None:
    """A moment, a quarter of the image with exactly one foreign object in it, and that object's class."""
    for view in s.views():
        quarters = [quadrant(thing.x, thing.y) for thing in view.visible()]
        for thing, where in s.dice.shuffled(list(zip(view.visible(), quarters, strict=True))):
            if where and None not in quarters and quarters.count(where) == 1 and s.slug(thing) in among:
                return view, where, s.slug(thing)
    return None


def _purpose(s: QuestionScene) -> Iterator[AskedQuestion]:
    located = _located(s, PURPOSE)
    if located:
        view, where, slug = located
        more = {"slots": {"where": where}, "clinical": True, "secondaries": ("object_identification",)}
        yield s.at(view.time, "purpose", "fo_usage_purpose", "open_ended", PURPOSE[slug], **more)


def _unique_events(s: QuestionScene) -> list[Event]:
    """Events whose description names only them, in random order."""
    names = [(e.instrument, e.verb, e.target) for e in s.events()]
    return s.dice.shuffled([e for e, name in zip(s.events(), names, strict=True) if names.count(name) == 1])


def _order(s: QuestionScene) -> Iterator[AskedQuestion]:
    events = _unique_events(s)
    pairs = [(a, b) for a in events for b in events if a.end + 1 < b.start]
    if pairs:
        first, second = s.dice.choice(pairs)
        if not s.yes:
            first, second = second, first
        slots = {"first": _deed(first), "second": _deed(second)}
        yield s.whole("order", "temporal_ordering", "binary", _yn(s.yes), slots=slots)


def _sequence(s: QuestionScene) -> Iterator[AskedQuestion]:
    events = _unique_events(s)
    picked: list[Event] = []
    for event in events:
        if all(abs(event.start - other.start) > 1.5 for other in picked):
            picked.append(event)
    if len(picked) < 3:
        return
    picked = picked[:3]
    ranks = {event: rank for rank, event in enumerate(sorted(picked, key=lambda e: e.start), start=1)}
    answer = ", ".join(f"{letter}-{ranks[event]}" for letter, event in zip("ABC", picked, strict=True))
    slots = dict(zip("abc", (_deed(event) for event in picked), strict=True))
    options = {"pattern": r"A-[1-3], B-[1-3], C-[1-3]"}
    yield s.whole("sequence", "temporal_ordering", "matching", answer, slots=slots, options=options)


# ── 5 complex reasoning ─────────────────────────────────────────────────────────────────────────────────────────


def _why(s: QuestionScene) -> Iterator[AskedQuestion]:
    for view in s.views():
        tool = view.tool(view.working)
        names = [other.instrument for other in view.tools]
        if tool and tool.verb != "null_verb" and names.count(tool.instrument) == 1:
            right = reason(tool.verb, tool.target)
            others = [text for (verb, _), text in REASON.items() if verb != tool.verb]
            text, answer = s.lettered(right, s.dice.sample(others, 3))
            slots = {**_grammar(tool.instrument), "options": text}
            yield s.at(view.time, "why", "functional_reasoning", "multiple_choice", answer, slots=slots, clinical=True)
            return


def _consequence(s: QuestionScene) -> Iterator[AskedQuestion]:
    located = _located(s, HARM)
    if located:
        view, where, slug = located
        wrong = s.dice.sample([harm for other, harm in HARM.items() if other != slug], 3)
        text, answer = s.lettered(HARM[slug], wrong)
        more = {"slots": {"where": where, "options": text}, "clinical": True}
        yield s.at(view.time, "consequence", "causal_consequence_reasoning", "multiple_choice", answer, **more)


def _left_behind(s: QuestionScene) -> Iterator[AskedQuestion]:
    """Yes: something that should come out is inside. No: it was there and has been taken out."""
    # Applied clips stay and the bag is in somebody's hand: neither is forgotten.
    counted = [t for t in s.graph.things if t.slug not in (*STAYS_IN, "clip", "specimen_bag") and t.origin != "freed"]
    for time in s.dice.shuffled(range(5, s.end)):
        inside = {t.slug for t in counted if t.at(time) is not None}
        known = {t.slug for t in counted if t.start < time}
        pool = sorted(inside if s.yes else known - inside)
        if pool:
            slots = {"a_object": with_article(lower(s.dice.choice(pool))), "t": clock_of(time)}
            asked = AskedQuestion(
                "left_behind", "causal_consequence_reasoning", "binary", _yn(s.yes), 0.0, float(time), slots
            )
            yield asked
            return


def _inside(s: QuestionScene) -> Iterator[AskedQuestion]:
    time = s.end - s.dice.below(max(s.end // 2, 1)) - 1
    count = sum(thing.at(time) is not None for thing in s.graph.things)
    slots = {"t": clock_of(time)}
    yield AskedQuestion("inside", "multi_step_reasoning", "number", str(count), 0.0, float(time), slots, clinical=True)


def _out_of_sight(s: QuestionScene) -> Iterator[AskedQuestion]:
    for view in s.views():
        before = {slug for other in s.graph.views if other.time < view.time for slug in s.seen_slugs(other)}
        inside = {t.slug for t in s.graph.things if t.at(view.time) is not None}
        gone = (before & inside) - s.seen_slugs(view)
        if gone:
            slots = {"t": clock_of(view.time)}
            yield AskedQuestion(
                "out_of_sight",
                "multi_step_reasoning",
                "fo_class",
                class_list(gone),
                0.0,
                view.time,
                slots,
                clinical=True,
            )
            return


def _moments(s: QuestionScene, verb: str) -> list[float]:
    return [e.moment for e in s.events() if e.verb == verb and e.moment is not None]


def _grammar(instrument: str) -> dict[str, str]:
    many = instrument == "scissors"
    return {"instrument": words(instrument), "does": "do" if many else "does", "is_": "are" if many else "is"}


def _deed(event: Event) -> str:
    return deed(event.instrument, event.verb, event.target)


def _yn(yes: bool) -> str:
    return "Yes" if yes else "No"


Maker = Callable[[QuestionScene], Iterator[AskedQuestion]]
MAKERS: tuple[Maker, ...] = (
    _identify, _visible, _visible, _match_class, _held, _condition, _quadrant, _situs, _first_seen, _clip_times, _share,
    _counts, _count_events, _interaction, _applying, _purpose, _order, _order, _sequence, _why, _consequence,
    _left_behind, _inside, _out_of_sight,
)  # fmt: skip
