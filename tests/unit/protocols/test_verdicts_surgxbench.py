"""Verdicts of surgxbench on planted numbers: the oracle, the untrained, the shortcut, the centre-biased."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.planted_verdicts import near, rank_of

from surgeval.protocols.surgxbench import verdict as surgx
from surgeval.protocols.verdict import Verdict, above, verdict_of
from surgeval.stats import Interval

# surgxbench, planted numbers

GOOD = surgx.GroundingFacts(
    videos=20, accuracy=near(0.95), usual="grasper", usual_right=0.6, lead=near(0.35), guess=0.25,
    answers={"grasper": 60, "hook": 40}, shown={"grasper": 0.6, "hook": 0.4}, looks=near(0.9),
    maps={"uniform": (0.25, near(0.65)), "centre": (0.4, near(0.5)), "edge": (0.3, near(0.6))},
    instrument_hidden=near(0.5), region_hidden=near(0.45), grounded=near(0.9), weights=near(0.1, 0.1),
    prompt=near(0.5, 0.1), f1={"grasper": 0.95, "hook": 0.9},
)  # fmt: skip
UNTRAINED = replace(
    GOOD, accuracy=near(0.61), lead=near(0.0, 0.01), answers={"grasper": 837, "hook": 6}, looks=near(0.34),
    maps={"uniform": (0.25, near(0.09)), "centre": (0.39, near(-0.05)), "edge": (0.3, near(0.04))},
    instrument_hidden=near(0.0, 0.01), region_hidden=near(0.0, 0.01), grounded=near(0.2),
)  # fmt: skip
SHORTCUT = replace(
    GOOD, looks=near(0.24), instrument_hidden=near(0.01, 0.02), grounded=near(0.1),
    maps={"uniform": (0.21, near(0.03, 0.05)), "centre": (0.35, near(-0.11)), "edge": (0.38, near(-0.14))},
)  # fmt: skip
CENTRED = replace(
    GOOD, looks=near(0.4), maps={"uniform": (0.25, near(0.15)), "centre": (0.4, near(0.0, 0.01)),
                                 "edge": (0.3, near(0.1))},
)  # fmt: skip
CONSTANT = replace(GOOD, accuracy=near(0.6), lead=near(0.0, 0.0), answers={"grasper": 100})


def looked(facts: surgx.GroundingFacts) -> Verdict:
    return verdict_of(surgx.CLAIM, surgx.reasons_of(facts), facts.videos)


def held(verdict: Verdict) -> dict[str, bool | None]:
    return {one.rule.name: one.holds for one in verdict.reasons}


def test_the_oracle_passes_and_is_inconclusive_where_videos_are_few() -> None:
    assert looked(GOOD).grade == "passes"
    few = looked(replace(GOOD, videos=3))
    assert few.grade == "inconclusive"
    assert few.sentence == "In these 3 videos it passes; six are needed for a claim."


def test_an_untrained_model_fails_and_the_sentence_says_why() -> None:
    found = looked(UNTRAINED)
    assert found.grade == "fails"
    assert "it answers “grasper” in 99 % of the frames" in found.sentence
    assert "34 % of the attended region is an instrument, less than a map of the middle (39 %)" in found.sentence
    assert "hiding the instrument changes nothing" in found.sentence
    texts = " ".join(one.text for one in found.reasons)
    assert "in 99 % of the frames that show an instrument (837 of 843)" in texts
    fails = {name for name, holds in held(found).items() if holds is False}
    assert fails == {"varied", "looks", "depends", "faithful", "grounded"}


def test_a_lift_over_the_even_map_alone_is_not_enough() -> None:
    assert above(UNTRAINED.maps["uniform"][1]) is True
    assert held(looked(UNTRAINED))["looks"] is False


def test_a_shortcut_is_right_and_fails() -> None:
    found = looked(SHORTCUT)
    assert held(found)["right"] is True
    assert found.grade == "fails"


def test_a_map_that_only_shows_the_middle_is_inconclusive() -> None:
    found = looked(CENTRED)
    assert (found.grade, held(found)["looks"]) == ("inconclusive", None)
    assert "not significantly more than a map of the middle" in found.sentence


def test_a_constant_answer_fails_unless_all_frames_show_it() -> None:
    assert looked(CONSTANT).grade == "fails"
    always = replace(GOOD, answers={"grasper": 100}, shown={"grasper": 0.97})
    assert held(looked(always))["varied"] is True


@pytest.mark.parametrize(
    ("times", "shown", "holds"),
    [(90, 0.6, False), (89, 0.6, True), (90, 0.899, True), (95, 0.85, True), (95, 0.84, False)],
)
def test_an_answer_is_constant_from_ninety_per_cent_and_ten_points_above_what_is_shown(
    times: int, shown: float, holds: bool
) -> None:
    facts = replace(GOOD, answers={"grasper": times, "hook": 100 - times}, shown={"grasper": shown, "hook": 0.4})
    assert held(looked(facts))["varied"] is holds


def test_the_map_that_is_named_is_the_one_with_the_worst_difference() -> None:
    maps = {"uniform": (0.25, near(0.01, 0.3)), "centre": (0.3, near(-0.1, 0.02)), "edge": (0.5, near(0.2))}
    found = looked(replace(GOOD, looks=near(0.4), maps=maps))
    assert "40 % of the attended region is an instrument, less than a map of the middle (30 %)" in found.sentence
    maps = {"uniform": (0.25, near(0.02, 0.05)), "centre": (0.3, near(0.3)), "edge": (0.5, near(0.2))}
    found = looked(replace(GOOD, looks=near(0.4), maps=maps))
    assert "not significantly more than chance (25 %)" in found.sentence


@pytest.mark.parametrize(
    ("lost", "said"),
    [(near(-0.2, 0.1), "costs fewer right answers than hiding elsewhere (−20 points [−30, −10])"),
     (near(0.0, 0.0), "changes nothing (no difference in any video)"),
     (near(0.0, 0.01), "changes nothing (0 points [−1, +1])"),
     (near(0.03, 0.01), "costs hardly more right answers than hiding elsewhere (+3 points [+2, +4])")],
)  # fmt: skip
def test_what_hiding_does_is_said_as_its_interval_has_it(lost: Interval, said: str) -> None:
    found = looked(replace(GOOD, instrument_hidden=lost))
    assert found.grade == "fails"
    assert f"hiding the instrument {said}" in found.sentence


def test_maps_that_do_not_change_with_the_weights_limit_the_verdict() -> None:
    for stuck in (replace(GOOD, weights=near(0.9)), replace(GOOD, prompt=near(0.96))):
        assert looked(stuck).grade == "inconclusive"


def test_what_was_not_measured_is_inconclusive() -> None:
    assert looked(replace(GOOD, instrument_hidden=None)).grade == "inconclusive"
    assert looked(replace(GOOD, looks=None, maps={})).grade == "inconclusive"


def test_maps_that_miss_what_the_answer_depends_on_are_inconclusive() -> None:
    blind = {name: (0.4, near(-0.15)) for name in GOOD.maps}
    found = looked(replace(GOOD, looks=near(0.25), maps=blind))
    assert found.grade == "inconclusive"
    assert "though hiding the instrument costs right answers" in found.sentence
    assert looked(replace(GOOD, maps=blind, instrument_hidden=near(0.0, 0.01))).grade == "fails"


@given(st.sampled_from(("lead", "instrument_hidden", "region_hidden", "grounded")), st.floats(-0.2, 0.5),
       st.floats(0, 0.5))  # fmt: skip
def test_surgxbench_grades_are_monotone(field: str, value: float, more: float) -> None:
    changes: list[dict[str, Any]] = [{field: near(v)} for v in (value, value + more)]
    worse, better = (looked(replace(GOOD, **change)) for change in changes)
    assert rank_of(better) <= rank_of(worse)
