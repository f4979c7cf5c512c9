"""Claims about the `intent` questions: first person, six skills, traps that only pictures can resolve."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from surgeval.phantom import make_intent_questions
from surgeval.phantom.questions.intent_words import THINGS
from surgeval.phantom.questions.phrases import REASON
from surgeval.records import IntentQuestion


@pytest.fixture(scope="module")
def items(sketched: Any) -> dict[str, IntentQuestion]:
    made = [q for v in sketched for q in make_intent_questions(v.graph, v.gaze, prefix="p1")]
    assert len({q.id for q in made}) == len(made)
    return {q.id: q for q in made}


def test_six_skills_are_asked_in_every_video(items: dict[str, IntentQuestion]) -> None:
    dimension = {
        "absolute": "spatial", "relative": "spatial", "prospective": "temporal", "retrospective": "temporal",
        "discrete": "standard", "continuous": "standard",
    }  # fmt: skip
    for cluster in {q.cluster for q in items.values()}:
        assert {q.skill for q in items.values() if q.cluster == cluster} == set(dimension)
    assert all(dimension[q.skill] == q.dimension for q in items.values())


def test_stems_are_in_the_first_person_and_name_procedure_phase_and_site(items: dict[str, IntentQuestion]) -> None:
    for q in items.values():
        assert re.search(r"\bI\b", q.question)
        assert all(str(q.context[key]) in q.question for key in ("procedure", "phase", "site"))
        assert not re.search(r"\d", q.question), "no coordinates or times"


def test_four_different_options_of_which_one_is_right(items: dict[str, IntentQuestion]) -> None:
    for q in items.values():
        assert len(q.options) == 4 == len(set(q.options))
        assert 0 <= q.answer < 4


def test_right_answers_are_in_every_place_alike(items: dict[str, IntentQuestion]) -> None:
    places = Counter(q.answer for q in items.values())
    assert max(places.values()) - min(places.values()) <= 0.06 * len(items)


@pytest.mark.parametrize("trap", [None, "perceptual", "cognitive"])
def test_the_right_option_is_not_systematically_the_longest(items: dict[str, IntentQuestion], trap: str | None) -> None:
    some = [q for q in items.values() if q.trap == trap]
    longest = sum(all(len(q.options[q.answer]) > len(o) for o in q.options if o != q.options[q.answer]) for q in some)
    assert longest / len(some) < 0.4


def test_a_perceptual_trap_offers_only_one_thing_that_is_there(sketched: Any, items: dict[str, IntentQuestion]) -> None:
    views = {(v.plan.name, view.name): (v.graph, view) for v in sketched for view in v.graph.views}
    traps = [q for q in items.values() if q.trap == "perceptual"]
    assert len(traps) >= 2 * len(sketched)
    for q in traps:
        graph, view = views[q.cluster, q.media[-1].rsplit("/", 1)[1].removesuffix(".jpg")]
        there = {tool.instrument for tool in view.tools} | {graph.thing(thing.key).slug for thing in view.things}
        words = {THINGS[name] for name in there | set(view.organs) if name in THINGS}
        assert [option in words for option in q.options].count(True) == 1
        assert q.options[q.answer] in words
        twin = items[str(q.untrapped)]
        assert twin.trap is None and twin.media == q.media and twin.question == q.question
        assert all(option in words for option in twin.options)
        assert twin.options[twin.answer] == q.options[q.answer]


def test_a_false_premise_and_its_true_twin_have_the_same_words(items: dict[str, IntentQuestion]) -> None:
    traps = [q for q in items.values() if q.trap == "cognitive"]
    assert len(traps) >= 30
    for q in traps:
        twin = items[str(q.twin)]
        assert (twin.question, twin.options, twin.context, twin.cluster) == (
            q.question,
            q.options,
            q.context,
            q.cluster,
        )
        assert twin.media != q.media
        assert twin.answer != q.answer
        assert twin.trap is None


def test_the_premise_is_false_where_it_is_called_false_and_true_in_the_twin(
    sketched: Any, items: dict[str, IntentQuestion]
) -> None:
    views = {(v.plan.name, view.name): view for v in sketched for view in v.graph.views}
    traps = [q for q in items.values() if q.trap == "cognitive"]
    assert len(traps) > 5
    for q in traps:
        match = re.search(r"I am (\w+)ing the ([\w ]+) with the (\w+)\.", q.question)
        assert match
        instrument = match[3]

        def doing(item: IntentQuestion, stem: str = match[1][:4], instrument: str = instrument) -> bool:
            view = views[item.cluster, item.media[-1].rsplit("/", 1)[1].removesuffix(".jpg")]
            return any(t.verb.startswith(stem[:3]) and t.instrument == instrument for t in view.tools)

        assert not doing(q)
        assert doing(items[str(q.twin)])


def test_always_rejecting_gains_nothing(items: dict[str, IntentQuestion]) -> None:
    """A rule that rejects is right as often as one that believes, and no reader of the text alone does better."""
    false = [q for q in items.values() if q.trap == "cognitive"]
    premise = [*false, *(items[str(q.twin)] for q in false)]
    aims = set(REASON.values())
    rejects = [[option not in aims for option in q.options] for q in premise]
    assert all(row.count(True) == 1 for row in rejects)
    assert sum(row[q.answer] for row, q in zip(rejects, premise, strict=True)) == len(premise) / 2
    right_by_text: dict[tuple[str, ...], Counter[int]] = defaultdict(Counter)
    for q in premise:
        right_by_text[(q.question, *q.options)][q.answer] += 1
    best = sum(max(answers.values()) for answers in right_by_text.values())
    assert best == len(premise) / 2


def test_the_sanitised_twin_has_lost_its_premise(items: dict[str, IntentQuestion]) -> None:
    traps = [q for q in items.values() if q.trap == "cognitive"]
    assert len(traps) > 5
    for q in traps:
        plain = items[str(q.untrapped)]
        assert plain.media == q.media and plain.trap is None
        assert " with the " not in plain.question
        assert q.options[q.answer] not in plain.options


def test_media_are_labelled_frames_and_gaze_covers_them(items: dict[str, IntentQuestion]) -> None:
    for q in items.values():
        assert q.media and all(re.fullmatch(r"\.\./\.\./frames/[ABC]\d/\d{6}\.jpg", path) for path in q.media)
        assert q.start is not None and q.end is not None
        assert any(fix.t <= q.end + 0.5 and fix.t + fix.duration >= q.end - 0.5 for fix in q.gaze)
        assert len(q.media) == q.end - q.start + 1


def test_the_next_step_is_what_the_script_does_next(sketched: Any, items: dict[str, IntentQuestion]) -> None:
    graphs = {v.plan.name: v.graph for v in sketched}
    next_steps = [
        q for q in items.values() if q.skill == "prospective" and q.trap is None and "What do I do next" in q.question
    ]
    assert len(next_steps) > 5
    for q in next_steps:
        verb, _, rest = q.options[q.answer].partition(" the ")
        target, _, instrument = rest.rpartition(" with the ")
        names = {"abdominal wall": "abdominal_wall_cavity", "liver bed": "cystic_plate"}
        wanted = (verb, names.get(target, target.replace(" ", "_")), instrument.replace(" ", "_"))
        later = [e for e in graphs[q.cluster].events if e.end > (q.end or 0) and e.start < (q.end or 0) + 9]
        assert wanted in {(e.verb, e.target, e.instrument) for e in later}
