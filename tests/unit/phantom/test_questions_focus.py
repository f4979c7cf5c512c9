"""Claims about the `focus` questions: they parse, they are right, they give nothing away."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from surgeval.phantom import make_focus_questions
from surgeval.phantom.dataset.edition import HELD_OUT_WORDINGS
from surgeval.phantom.questions.phrases import PHRASES
from surgeval.records import VqaQuestion
from surgeval.vocab import capabilities, foreign_objects

FORMATS = {"binary", "number", "percentage", "fo_class", "time", "multiple_choice", "open_ended", "matching"}


@pytest.fixture(scope="module")
def asked(sketched: Any) -> list[tuple[Any, list[VqaQuestion]]]:
    return [
        (v, make_focus_questions(v.graph, prefix="p1", held_out=HELD_OUT_WORDINGS[v.plan.split], ood=v.plan.ood))
        for v in sketched
    ]


@pytest.fixture(scope="module")
def questions(asked: list[tuple[Any, list[VqaQuestion]]]) -> list[VqaQuestion]:
    return [question for _, some in asked for question in some]


def test_all_formats_and_all_fifteen_capabilities_occur(questions: list[VqaQuestion]) -> None:
    assert {q.format for q in questions} == FORMATS
    assert {q.primary for q in questions} == {leaf.value for leaf in capabilities()}
    assert {s for q in questions for s in q.secondaries} <= {leaf.value for leaf in capabilities()}


def test_every_video_gets_several_questions_with_unique_ids(asked: list[tuple[Any, list[VqaQuestion]]]) -> None:
    assert all(len(some) >= 20 for _, some in asked)
    ids = [q.id for _, some in asked for q in some]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"p1-[ABC][1-6]-\d{4}", one) for one in ids)


def test_every_answer_parses_in_its_format(questions: list[VqaQuestion]) -> None:
    names = {fo.name for fo in foreign_objects()}
    for q in questions:
        if q.format == "binary":
            assert q.answer in ("Yes", "No")
        elif q.format == "number":
            assert q.answer.isdigit()
        elif q.format == "percentage":
            assert re.fullmatch(r"\d+%", q.answer) and int(q.answer[:-1]) <= 100
        elif q.format == "fo_class":
            assert q.answer == "None" or set(q.answer.split(", ")) <= names
        elif q.format == "time":
            assert all(re.fullmatch(r"\d\d:[0-5]\d:[0-5]\d", part) for part in q.answer.split(", "))
            assert q.format_options["threshold_seconds"] == pytest.approx(
                min(5, 1 + (q.end - q.start) * 4 / 360), abs=1e-3
            )
        elif q.format == "matching":
            assert re.fullmatch(str(q.format_options["pattern"]), q.answer)
        else:
            assert 0 < len(q.answer) <= 300
        assert 0 <= q.start <= q.end <= 60


def test_a_multiple_choice_answer_is_one_of_its_options_and_in_every_place_alike(questions: list[VqaQuestion]) -> None:
    places: Counter[str] = Counter()
    for q in questions:
        if q.format == "multiple_choice":
            options = re.findall(r"([A-D]\) .*?)(?= [B-D]\) |$)", q.text)
            assert len(options) == 4 and len(set(options)) == 4
            assert q.answer in options
            places[q.answer[0]] += 1
    assert max(places.values()) - min(places.values()) <= 0.12 * sum(places.values())


def test_yes_and_no_are_balanced_over_all_and_within_each_capability(questions: list[VqaQuestion]) -> None:
    by_leaf: dict[str, Counter[str]] = defaultdict(Counter)
    for q in questions:
        if q.format == "binary":
            by_leaf[q.primary][q.answer] += 1
    total = sum(by_leaf.values(), Counter[str]())
    assert abs(total["Yes"] / total.total() - 0.5) < 0.08
    for leaf, counts in by_leaf.items():
        assert 0.25 <= counts["Yes"] / counts.total() <= 0.75, (leaf, counts)


def test_training_videos_know_neither_the_unseen_procedure_nor_the_held_out_wordings(
    asked: list[tuple[Any, list[VqaQuestion]]],
) -> None:
    unusual = [_pattern(wording) for _, held_out in PHRASES.values() for wording in held_out]
    out = 0
    for video, some in asked:
        for q in some:
            strange = any(pattern.fullmatch(q.text) for pattern in unusual)
            if video.plan.split in ("train", "val"):
                assert not q.ood and not strange and q.procedure != "adhesiolysis"
            assert q.ood == (strange or q.procedure == "adhesiolysis")
            out += q.ood
    assert out > 60


def _pattern(wording: str) -> re.Pattern[str]:
    text = wording[0].upper() + wording[1:]
    return re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(text)))


def test_in_every_split_and_capability_group_there_are_questions(asked: list[tuple[Any, list[VqaQuestion]]]) -> None:
    group = {leaf.value: leaf.group for leaf in capabilities()}
    seen = {(v.plan.split, group[q.primary]) for v, some in asked for q in some}
    assert len(seen) == 3 * 5


def test_visibility_answers_agree_with_the_labels(asked: list[tuple[Any, list[VqaQuestion]]]) -> None:
    checked = 0
    for video, some in asked:
        states = {item.frame.time: item.frame.objects for item in video.labelled}
        for q in some:
            if q.primary == "object_identification" and q.format == "fo_class":
                slugs = {key.rsplit("-", 1)[0] for key, state in states[q.start].items() if state == "visible"}
                named = {fo.slug for fo in foreign_objects() if fo.name in q.answer.split(", ")}
                assert slugs == named
                checked += 1
    assert checked >= 18


def test_counted_clips_agree_with_the_script(asked: list[tuple[Any, list[VqaQuestion]]]) -> None:
    checked = 0
    for video, some in asked:
        clips = sum(action.verb == "clip" for action in video.procedure.actions)
        for q in some:
            if q.primary == "event_aggregation" and "clipper" in q.text:
                assert q.answer == str(clips)
                checked += 1
            if q.format == "time" and "clips applied" in q.text:
                assert len(q.answer.split(", ")) == clips
    assert checked


def test_objects_left_behind_are_those_nobody_took_out(asked: list[tuple[Any, list[VqaQuestion]]]) -> None:
    checked = 0
    for video, some in asked:
        for q in some:
            if q.primary == "causal_consequence_reasoning" and q.format == "binary":
                slug = next(fo.slug for fo in foreign_objects() if f" {fo.name.lower()} " in f"{q.text.lower()} ")
                plans = [p for p in video.procedure.objects if p.slug == slug]
                assert (q.answer == "Yes") == any(p.start <= q.end < p.end for p in plans)
                checked += 1
    assert checked >= 5


def test_the_same_graph_gives_the_same_questions(sketched: Any) -> None:
    graph = sketched[0].graph
    once, again = (make_focus_questions(graph, prefix="p1", held_out=0.5, ood=False) for _ in range(2))
    assert once == again
