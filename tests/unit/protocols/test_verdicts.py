"""Verdicts on planted cases: the oracle, the untrained, the shortcut, the centre-biased, the constant, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.datasets import MemoryDataset
from surgeval.protocols.contract import RunResult
from surgeval.protocols.focus import verdict as focus
from surgeval.protocols.focus.method import score_focus
from surgeval.protocols.intent import verdict as intent
from surgeval.protocols.quality import verdict as quality
from surgeval.protocols.surgxbench import verdict as surgx
from surgeval.protocols.triplets import verdict as triplets
from surgeval.protocols.triplets.method import score_triplets
from surgeval.protocols.verdict import GRADES, Claim, Reason, Rule, Verdict, above, verdict_of
from surgeval.qa.judging import ExactJudge, Panel
from surgeval.stats import Interval

DOCS = Path(__file__).parents[3] / "docs" / "verdicts.md"
CLAIM = Claim("It sees.", "It does not see.")


def near(value: float, half: float = 0.03, clusters: int = 20) -> Interval:
    return Interval(value, value - half, value + half, clusters=clusters)


def rank_of(verdict: Verdict) -> int:
    """0 is best."""
    return GRADES.index(verdict.grade)


# the contract


def test_a_protocol_that_judges_nothing_has_no_verdict() -> None:
    class Bare(RunResult):
        name, protocol, notes = "bare", "crowd", ()

        def headlines(self) -> tuple[()]:
            return ()

    assert Bare().verdict() is None
    assert repr(Bare()) == "Bare 'bare': no number"


HOLDS = st.sampled_from((True, None, False))
EFFECTS = st.sampled_from(("decides", "limits", "remark"))
REASONS = st.lists(st.tuples(EFFECTS, HOLDS), max_size=6)


def _reasons(pairs: Sequence[tuple[Any, bool | None]]) -> list[Reason]:
    return [Reason(Rule(str(n), "A rule.", effect), "A text.", holds) for n, (effect, holds) in enumerate(pairs)]


@given(REASONS, st.integers(0, 5), st.integers(1, 20))
def test_a_better_reason_never_makes_the_grade_worse(
    pairs: list[tuple[Any, bool | None]], place: int, videos: int
) -> None:
    for better in (None, True):
        raised = list(pairs)
        if place < len(raised) and raised[place][1] is not True and (better or raised[place][1] is False):
            raised[place] = (raised[place][0], better)
            before, after = (verdict_of(CLAIM, _reasons(one), videos) for one in (pairs, raised))
            # Among rules that limit, "cannot be told" is as good as holding: neither limits.
            assert rank_of(after) <= rank_of(before)


@given(REASONS, st.integers(1, 5))
def test_few_videos_never_settle_a_claim(pairs: list[tuple[Any, bool | None]], videos: int) -> None:
    found = verdict_of(CLAIM, _reasons(pairs), videos)
    assert found.grade in ("in these videos", "not shown")
    assert found.reasons[-1].rule.name == "videos"


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 1), st.floats(0, 0.2))
def test_a_higher_number_is_never_less_above(value: float, half: float, more: float, margin: float) -> None:
    order = {False: 0, None: 1, True: 2}
    low, high = (above(Interval(v, v - half, v + half), 0, margin) for v in (value, value + more))
    assert order[high] >= order[low]


def test_two_videos_do_not_contradict_a_claim_about_others() -> None:
    missed = [Reason(Rule("right", "A rule.", "decides"), "It is never right.", False, "it is never right")]
    assert verdict_of(CLAIM, missed, 6).grade == "contradicted"
    few = verdict_of(CLAIM, missed, 2)
    assert few.grade == "not shown"
    assert few.sentence == (
        "In these 2 videos it does not see: it is never right; too few videos for a claim about others."
    )


def test_without_a_rule_that_decides_nothing_is_shown() -> None:
    assert verdict_of(CLAIM, _reasons([("remark", True)]), 20).grade == "not shown"


# surgxbench, planted numbers

GOOD = surgx.GroundingFacts(
    videos=20, accuracy=near(0.95), usual="grasper", usual_right=0.6, lead=near(0.35), guess=0.25,
    said={"grasper": 60, "hook": 40}, shown={"grasper": 0.6, "hook": 0.4}, looks=near(0.9),
    maps={"uniform": (0.25, near(0.65)), "centre": (0.4, near(0.5)), "edge": (0.3, near(0.6))},
    instrument_hidden=near(0.5), region_hidden=near(0.45), grounded=near(0.9), weights=near(0.1, 0.1),
    prompt=near(0.5, 0.1), f1={"grasper": 0.95, "hook": 0.9},
)  # fmt: skip
UNTRAINED = replace(
    GOOD, accuracy=near(0.61), lead=near(0.0, 0.01), said={"grasper": 837, "hook": 6}, looks=near(0.34),
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
CONSTANT = replace(GOOD, accuracy=near(0.6), lead=near(0.0, 0.0), said={"grasper": 100})


def looked(facts: surgx.GroundingFacts) -> Verdict:
    return verdict_of(surgx.CLAIM, surgx.reasons_of(facts), facts.videos)


def held(verdict: Verdict) -> dict[str, bool | None]:
    return {one.rule.name: one.holds for one in verdict.reasons}


def test_the_oracle_is_supported_and_only_here_where_videos_are_few() -> None:
    assert looked(GOOD).grade == "supported"
    few = looked(replace(GOOD, videos=3))
    assert few.grade == "in these videos"
    assert "too few videos for a claim about others" in few.sentence


def test_an_untrained_model_is_contradicted_and_the_sentence_says_why() -> None:
    found = looked(UNTRAINED)
    assert found.grade == "contradicted"
    assert "it says grasper in 99 % of the frames" in found.sentence
    assert "34 % of what it looks at is an instrument, less than a map of the middle (39 %)" in found.sentence
    assert "hiding the instrument changes nothing" in found.sentence
    texts = " ".join(one.text for one in found.reasons)
    assert "(837 of 843)" in texts
    fails = {name for name, holds in held(found).items() if holds is False}
    assert fails == {"varied", "looks", "depends", "faithful", "grounded"}


def test_a_lift_over_the_even_map_alone_is_not_enough() -> None:
    assert above(UNTRAINED.maps["uniform"][1]) is True
    assert held(looked(UNTRAINED))["looks"] is False


def test_a_shortcut_is_right_and_contradicted() -> None:
    found = looked(SHORTCUT)
    assert held(found)["right"] is True
    assert found.grade == "contradicted"


def test_a_map_that_only_shows_the_middle_is_not_shown() -> None:
    found = looked(CENTRED)
    assert (found.grade, held(found)["looks"]) == ("not shown", None)
    assert "not surely more than a map of the middle" in found.sentence


def test_a_constant_answer_is_contradicted_unless_all_frames_show_it() -> None:
    assert looked(CONSTANT).grade == "contradicted"
    always = replace(GOOD, said={"grasper": 100}, shown={"grasper": 0.97})
    assert held(looked(always))["varied"] is True


@pytest.mark.parametrize(
    ("times", "shown", "holds"),
    [(90, 0.6, False), (89, 0.6, True), (90, 0.899, True), (95, 0.85, True), (95, 0.84, False)],
)
def test_an_answer_is_constant_from_ninety_per_cent_and_ten_points_above_what_is_shown(
    times: int, shown: float, holds: bool
) -> None:
    facts = replace(GOOD, said={"grasper": times, "hook": 100 - times}, shown={"grasper": shown, "hook": 0.4})
    assert held(looked(facts))["varied"] is holds


def test_the_map_that_is_named_is_the_one_with_the_worst_difference() -> None:
    maps = {"uniform": (0.25, near(0.01, 0.3)), "centre": (0.3, near(-0.1, 0.02)), "edge": (0.5, near(0.2))}
    found = looked(replace(GOOD, looks=near(0.4), maps=maps))
    assert "40 % of what it looks at is an instrument, less than a map of the middle (30 %)" in found.sentence
    maps = {"uniform": (0.25, near(0.02, 0.05)), "centre": (0.3, near(0.3)), "edge": (0.5, near(0.2))}
    found = looked(replace(GOOD, looks=near(0.4), maps=maps))
    assert "not surely more than chance (25 %)" in found.sentence


@pytest.mark.parametrize(
    ("lost", "said"),
    [(near(-0.2, 0.1), "costs fewer right answers than hiding elsewhere (−20 points [−30, −10])"),
     (near(0.0, 0.0), "changes nothing (no difference in any video)"),
     (near(0.0, 0.01), "changes nothing (0 points [−1, +1])"),
     (near(0.03, 0.01), "costs hardly more right answers than hiding elsewhere (+3 points [+2, +4])")],
)  # fmt: skip
def test_what_hiding_does_is_said_as_its_interval_has_it(lost: Interval, said: str) -> None:
    found = looked(replace(GOOD, instrument_hidden=lost))
    assert found.grade == "contradicted"
    assert f"hiding the instrument {said}" in found.sentence


def test_maps_that_do_not_change_with_the_weights_limit_the_verdict() -> None:
    for stuck in (replace(GOOD, weights=near(0.9)), replace(GOOD, prompt=near(0.96))):
        assert looked(stuck).grade == "not shown"


def test_what_was_not_measured_is_not_shown() -> None:
    assert looked(replace(GOOD, instrument_hidden=None)).grade == "not shown"
    assert looked(replace(GOOD, looks=None, maps={})).grade == "not shown"


def test_maps_that_miss_what_the_answer_hangs_on_are_bad_witnesses_and_no_contradiction() -> None:
    blind = {name: (0.4, near(-0.15)) for name in GOOD.maps}
    found = looked(replace(GOOD, looks=near(0.25), maps=blind))
    assert found.grade == "not shown"
    assert "less than" in found.sentence and "though hiding the instrument costs it right answers" in found.sentence
    (looks,) = [one for one in found.reasons if one.rule.name == "looks"]
    assert looks.text.endswith("its maps do not tell what it uses.")
    assert looked(replace(GOOD, maps=blind, instrument_hidden=near(0.0, 0.01))).grade == "contradicted"


@given(st.sampled_from(("lead", "instrument_hidden", "region_hidden", "grounded")), st.floats(-0.2, 0.5),
       st.floats(0, 0.5))  # fmt: skip
def test_surgxbench_grades_are_monotone(field: str, value: float, more: float) -> None:
    changes: list[dict[str, Any]] = [{field: near(v)} for v in (value, value + more)]
    worse, better = (looked(replace(GOOD, **change)) for change in changes)
    assert rank_of(better) <= rank_of(worse)


# triplets

TOLD = triplets.TripletFacts(
    videos=9, what="triplets", metric="mAP50", number=near(0.5), floor=0.01, without={"v1": 0.5, "v2": 0.48},
    classes=[triplets.ClassScore("hook,cut,gut", 0.6, 0.0, 30), triplets.ClassScore("hook,cut,liver", 0.4, 0.0, 20)],
    boxes={"right": 0.6, "missed": 0.3, "false positive": 0.1},
)  # fmt: skip


def told(facts: triplets.TripletFacts) -> Verdict:
    return verdict_of(triplets.claim_of(facts), triplets.reasons_of(facts), facts.videos)


def told_by(facts: triplets.TripletFacts, rule: str) -> Reason:
    return next(reason for reason in told(facts).reasons if reason.rule.name == rule)


def test_one_video_that_carries_a_number_limits_the_verdict() -> None:
    assert told(TOLD).grade == "supported"
    wonder = told(replace(TOLD, without={"v1": 0.5, "v2": 0.05}))
    assert wonder.grade == "not shown"
    assert "one video carries it: without v2 mAP50 is 0.050" in wonder.sentence


def test_classes_that_are_never_found_are_named() -> None:
    rows = [triplets.ClassScore(f"class {n}", 0.0, 0.0, 30 - n) for n in range(3)]
    found = told(replace(TOLD, classes=[*rows, TOLD.classes[0]]))
    assert found.grade == "not shown"
    assert "class 0; class 1; class 2" in " ".join(one.text for one in found.reasons)


def test_half_of_the_classes_may_be_low_and_more_may_not() -> None:
    for low, holds in ((2, True), (3, False)):
        scores = [triplets.ClassScore(f"class {n}", 0.0 if n < low else 0.5, 0.0, 20) for n in range(4)]
        assert told_by(replace(TOLD, classes=scores), "classes").holds is holds


def test_a_class_that_is_always_there_and_always_found_counts_as_found() -> None:
    always = triplets.ClassScore("hook,cut,gut", 1.0, 1.0, 30)
    found = told_by(replace(TOLD, classes=[always]), "classes")
    assert (found.holds, found.text) == (True, "The one class that occurs is found.")
    missed = told_by(replace(TOLD, classes=[always._replace(ap=0.9)]), "classes")
    assert missed.holds is False
    assert missed.text == (
        "The one class that occurs is not found better than with one usual box per class in every frame: hook,cut,gut."
    )


def test_only_what_has_no_precision_is_called_not_found() -> None:
    low, none, fine = (triplets.ClassScore(name, ap, 0.2, 20) for name, ap in (("low", 0.2), ("none", 0), ("fine", 1)))
    both = told_by(replace(TOLD, classes=[low, none, fine], metric="mAP"), "classes")
    assert both.text == (
        "2 of 3 classes that occur (67 %) are not found better than with the class frequencies alone: low; none. "
        "Not found at all: none."
    )
    assert told_by(replace(TOLD, classes=[none, fine]), "classes").text == (
        "1 of 2 classes that occur (50 %) is not found: none."
    )


def test_the_weakest_classes_say_how_many_have_enough_instances() -> None:
    scores = [triplets.ClassScore(f"class {n}", 0.1 * n, 0.0, count) for n, count in enumerate((9, 10, 9))]
    text = told_by(replace(TOLD, classes=scores), "weakest").text
    assert text == "Weakest class: class 1 (0.100, 10 instances). Of 3 classes 1 has 10 or more."
    text = told_by(replace(TOLD, classes=[scores[0], scores[2]]), "weakest").text
    assert text == "None of the 2 classes that occur has 10 or more instances."


def test_no_video_carries_a_lead_that_is_none() -> None:
    small = replace(TOLD, number=near(0.015), without={"v1": 0.015, "v2": 0.0})
    assert told_by(small, "one video").holds is None
    assert told_by(replace(small, number=near(0.03)), "one video").holds is False


def test_the_claim_says_what_the_floor_is() -> None:
    assert told(TOLD).sentence.startswith("It finds triplets better than one usual box per class in every frame: mAP50")
    assert told(replace(TOLD, metric="mAP")).sentence.startswith(
        "It finds triplets better than the class frequencies alone: mAP 0.500 against 0.010"
    )
    worse = told(replace(TOLD, number=near(0.1), floor=0.3))
    assert worse.grade == "contradicted"
    assert worse.sentence.startswith("It finds triplets worse than one usual box per class in every frame")


def _constant_like(theatre: MemoryDataset, seed: int) -> pl.DataFrame:
    """Random triplets at random places."""
    dice = np.random.default_rng(seed)
    rows = [(video.name, frame.name, int(dice.integers(3)), float(dice.random()), float(dice.integers(150)),
             float(dice.integers(50)), 40.0, 40.0)
            for video in theatre.videos() for frame in theatre.frames(video.name)]  # fmt: skip
    return pl.DataFrame(rows, schema=["video", "frame", "triplet", "score", "x", "y", "w", "h"], orient="row")


def test_planted_detectors_get_the_verdict_they_deserve(theatre: MemoryDataset, oracle: Any) -> None:
    grades = {
        "oracle": score_triplets(theatre, oracle(theatre), resamples=60).verdict(),
        "constant": score_triplets(theatre, None, resamples=60).verdict(),
        "random": score_triplets(theatre, _constant_like(theatre, 3), resamples=60).verdict(),
    }
    found = {name: verdict.grade for name, verdict in grades.items() if verdict is not None}
    assert found["oracle"] == "supported"
    assert found["constant"] == "not shown"
    assert found["random"] == "contradicted"


def test_the_floor_of_a_detector_is_what_the_constant_detector_scores(theatre: MemoryDataset, oracle: Any) -> None:
    floor = {one.key: one.chance for one in score_triplets(theatre, oracle(theatre), resamples=20).headlines()}
    constant = score_triplets(theatre, None, resamples=20).number("ivt")
    assert floor["global|ivt|mAP50"] == pytest.approx(constant.estimate, abs=0.02)


@given(st.floats(0, 0.9), st.floats(0, 0.5))
def test_triplet_grades_are_monotone_in_the_number(value: float, more: float) -> None:
    worse, better = (told(replace(TOLD, number=near(v), without={})) for v in (value, value + more))
    assert rank_of(better) <= rank_of(worse)


# focus

VIDEOS = 8


def _questions() -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """Eight videos, each with four counts that differ between videos and four yes/no questions."""
    ask, truth, right = [], [], {}
    for video in range(VIDEOS):
        for k in range(8):
            name = f"q{video}-{k}"
            number = k < 4
            answer = str((video * 3 + k) % 5) if number else ("yes" if (video + k) % 3 else "no")
            ask.append({"qID": name, "videoID": f"v{video}", "start_time": 0, "end_time": 0, "procedure_type": "",
                        "question": "How many clips?" if number else "Is a clip visible?"})  # fmt: skip
            truth.append({"qID": name, "primary": "3a" if number else "1a", "format": "number" if number else "binary",
                          "answer": answer, "ood": k % 2 == 0})  # fmt: skip
            right[name] = answer
    return ask, truth, right


def _submission(said: Mapping[str, str]) -> focus.FocusFacts:
    ask, truth, _ = _questions()
    responses = [{"qID": name, "content": text} for name, text in said.items()]
    found = focus.facts_of(score_focus(ask, truth, responses, judge=Panel([ExactJudge()]), resamples=200))
    assert found is not None
    return found


def answered(facts: focus.FocusFacts) -> Verdict:
    return verdict_of(focus.CLAIM, focus.reasons_of(facts), facts.videos)


def test_planted_submissions_get_the_verdict_they_deserve() -> None:
    ask, truth, right = _questions()
    assert answered(_submission(right)).grade == "supported"
    floor = score_focus(ask, truth, [], resamples=50).floor
    assert floor is not None
    never_looked = {name: right[name] if floor[name] else "9" if name[-1] < "4" else _other(right[name])
                    for name in right}  # fmt: skip
    assert answered(_submission(never_looked)).grade == "not shown"
    same = {name: "4" if name[-1] < "4" else "no" for name in right}
    assert answered(_submission(same)).grade == "contradicted"
    dice = np.random.default_rng(0)
    random = {name: str(dice.integers(9)) if name[-1] < "4" else ("yes", "no")[dice.integers(2)] for name in right}
    assert answered(_submission(random)).grade == "contradicted"
    half = answered(_submission({name: text for n, (name, text) in enumerate(right.items()) if n % 2}))
    assert half.grade == "not shown"
    assert "50 % of the answers are missing, late or unreadable" in half.sentence


def _other(answer: str) -> str:
    return "no" if answer == "yes" else "yes"


def _balanced(videos: int, sharing: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Four yes/no questions a video; `sharing` videos in a row share their wordings, half of them say yes."""
    ask, truth = [], []
    for video in range(videos):
        for k in range(4):
            name, block = f"q{video}-{k}", video // sharing
            ask.append({"qID": name, "videoID": f"v{video}", "start_time": 0, "end_time": 0, "procedure_type": "",
                        "question": f"Is tool {k} of {block} visible?"})  # fmt: skip
            truth.append({"qID": name, "primary": "1a", "format": "binary", "ood": False,
                          "answer": "yes" if (video + k) % 2 else "no"})  # fmt: skip
    return ask, truth


@pytest.mark.parametrize("sharing", [20, 2])
def test_a_constant_answer_is_not_supported_where_answers_are_balanced(sharing: int) -> None:
    ask, truth = _balanced(20, sharing)
    yes = score_focus(ask, truth, [{"qID": one["qID"], "content": "yes"} for one in ask], resamples=100)
    facts = focus.facts_of(yes)
    assert facts is not None and facts.whole is not None
    assert (facts.whole.right, facts.whole.floor) == (0.5, 0.5)
    assert answered(facts).grade == "not shown"
    oracle = score_focus(ask, truth, [{"qID": one["qID"], "content": one["answer"]} for one in truth], resamples=100)
    verdict = oracle.verdict()
    assert verdict is not None and verdict.grade == "supported"


def test_a_wording_of_one_video_does_not_answer_itself() -> None:
    ask, truth = _balanced(8, 1)
    floor = score_focus(ask, truth, [], resamples=50).floor
    assert floor is not None and np.mean(list(floor.values())) == 0.5


def _part(lead: float, p: float, clusters: int = 20) -> focus.Part:
    return focus.Part(40, 0.5 + lead, 0.5, near(lead, clusters=clusters), p)


def test_one_low_bucket_of_ten_is_luck_and_few_videos_say_nothing() -> None:
    def parts(**buckets: focus.Part) -> Reason:
        facts = replace(_submission(_questions()[2]), buckets=buckets)
        return next(one for one in focus.reasons_of(facts) if one.rule.name == "parts")

    even = {f"b{n}": _part(0.01, 0.7) for n in range(9)}
    assert parts(**even, low=_part(-0.1, 0.03)).holds is True
    assert parts(**even, low=_part(-0.1, 0.005)).holds is False  # exactly the level after correction
    assert parts(**even, low=_part(-0.1, 0.0051)).holds is True
    few = parts(**even, low=_part(-0.5, np.nan, 5))
    assert few.holds is True and "too few videos to tell in 1." in few.text
    assert parts(a=_part(-0.5, np.nan, 5), b=_part(-0.5, np.nan, 2)).holds is None


def test_a_side_of_five_videos_says_nothing_about_the_shift() -> None:
    facts = _submission(_questions()[2])
    for clusters, holds in ((6, False), (5, None)):
        sides = {"id": _part(0.2, 0.01), "ood": _part(-0.2, 0.01, clusters)}
        told = next(one for one in focus.reasons_of(replace(facts, sides=sides)) if one.rule.name == "shift")
        assert told.holds is holds


def test_a_fifth_of_lost_answers_and_a_hundredth_unjudged_are_borne() -> None:
    facts = _submission(_questions()[2])
    for name, limit in (("missing", 20), ("judge_error", 1)):
        rule = "usable" if name == "missing" else "judged"
        for count, holds in ((limit, True), (limit + 1, False)):
            counts = {**facts.counts, "questions": 100, name: count}
            told = {one.rule.name: one.holds for one in focus.reasons_of(replace(facts, counts=counts))}
            assert told[rule] is holds


def test_a_constant_answer_is_named() -> None:
    _, _, right = _questions()
    fine = next(one for one in focus.reasons_of(_submission(right)) if one.rule.name == "varied")
    assert fine.holds is True
    parrot = {name: text if name[-1] < "4" else ("No." if name == "q0-4" else "Yes") for name, text in right.items()}
    verdict = answered(_submission(parrot))
    told = next(one for one in verdict.reasons if one.rule.name == "varied")
    assert (told.holds, verdict.grade) == (False, "not shown")
    assert told.text == "It says “yes” to 97 % of the yes/no questions; of the references 69 % say so."
    assert "it says “yes” to 97 % of the yes/no questions" in verdict.sentence
    hostile = focus.Usual("<b>\x1b[31m", 30, 1.0, 0.1)
    text = focus.reasons_of(replace(_submission(right), usual={"open_ended": hostile}))[4].text
    assert "\x1b" not in text and "open questions" in text
    close = replace(_submission(right), usual={"binary": focus.Usual("yes", 30, 0.95, 0.89)})
    assert focus.reasons_of(close)[4].holds is True
    rare = replace(_submission(right), usual={"binary": focus.Usual("yes", 9, 1.0, 0.1)})
    assert "varied" not in [one.rule.name for one in focus.reasons_of(rare)]


def test_answers_without_verdict_and_answers_that_steer_limit_the_verdict() -> None:
    found = _submission(_questions()[2])
    for count in ({"judge_error": 10}, {"flags": 1}):
        assert answered(replace(found, counts={**found.counts, **count})).grade == "not shown"


def test_the_chance_of_a_headline_is_what_the_prior_scores() -> None:
    ask, truth, right = _questions()
    scores = score_focus(ask, truth, [{"qID": name, "content": text} for name, text in right.items()], resamples=50)
    assert scores.floor is not None
    chance = {one.key: one.chance for one in scores.headlines()}
    assert chance["flat_accuracy"] == pytest.approx(np.mean(list(scores.floor.values())))
    assert None not in chance.values()


def test_a_submission_says_how_many_answers_wait_for_a_judge() -> None:
    ask, truth, _ = _questions()
    truth = [{**one, "format": "open_ended", "answer": "a clip"} for one in truth]
    scores = score_focus(ask, truth, [{"qID": one["qID"], "content": "a clip"} for one in truth], resamples=50)
    assert "64 answers have no verdict of a judge" in repr(scores)
    assert scores.verdict() is None


# quality


@pytest.mark.parametrize(("lost", "holds"), [(5, True), (6, None), (19, None), (20, False)])
def test_up_to_five_per_cent_may_be_unusable_and_twenty_may_not(lost: int, holds: bool | None) -> None:
    assert quality.reasons_of({"v0": (lost, 100)})[0].holds is holds


@pytest.mark.parametrize(("lost", "holds"), [(19, True), (20, False)])
def test_a_video_may_not_lose_half_of_its_frames(lost: int, holds: bool) -> None:
    assert quality.reasons_of({"v0": (lost, 40), "v1": (0, 400)})[1].holds is holds


@given(st.integers(0, 40), st.integers(0, 40))
def test_fewer_unusable_frames_never_make_the_grade_worse(bad: int, less: int) -> None:
    videos = {f"v{k}": (0, 40) for k in range(7)}
    worse, better = (
        verdict_of(quality.CLAIM, quality.reasons_of({**videos, "v0": (lost, 40)}), 7)
        for lost in (bad, max(0, bad - less))
    )
    assert rank_of(better) <= rank_of(worse)


# the documents


@pytest.mark.parametrize("module", [surgx, triplets, focus, intent, quality],
                         ids=lambda module: module.__name__.split(".")[2])  # fmt: skip
def test_every_rule_stands_in_the_documents_word_for_word(module: Any) -> None:
    text = " ".join(DOCS.read_text("utf-8").split())
    for rule in module.RULES.values():
        assert f"| {rule.name} | {rule.effect} | {rule.text} |" in text, rule.name


@pytest.mark.parametrize(
    ("holds", "videos", "read"),
    [
        (True, 20, "supported: It sees: so it is."),
        (False, 20, "contradicted, for it does not see: so it is."),
        (None, 20, "Not shown that it sees: so it is."),
        (True, 3, "In these 3 videos it sees: so it is; too few videos for a claim about others."),
        (False, 1, "In this video it does not see: so it is; too few videos for a claim about others."),
    ],
)
def test_grade_and_sentence_read_as_one_statement(holds: bool | None, videos: int, read: str) -> None:
    rule = Rule("right", "Right more often than not.", "decides")
    made = verdict_of(Claim("It sees.", "It does not see."), [Reason(rule, "So it is.", holds, "so it is")], videos)
    assert str(made) == read
