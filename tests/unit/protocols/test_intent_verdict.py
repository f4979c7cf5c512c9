"""Verdicts on planted answerers: the sentence names what is wrong with each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_items, scores_of

from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.verdict import IntentFacts, facts_of, reasons_of
from surgeval.protocols.verdict import Verdict
from surgeval.stats import Interval


@pytest.fixture(scope="module")
def planted() -> dict[str, IntentScores]:
    items = make_items(18)
    return {name: scores_of(items, answerer) for name, answerer in ANSWERERS.items()}


def judged(scores: IntentScores) -> tuple[Verdict, dict[str, bool | None]]:
    verdict = scores.verdict()
    assert verdict is not None
    return verdict, {reason.rule.name: reason.holds for reason in verdict.reasons}


@pytest.mark.parametrize(
    ("name", "grade", "words"),
    [
        ("oracle", "supported", "trap and twin both right in 100 %"),
        ("discriminating", "supported", "the pictures add"),
        ("gaze-blind", "supported", "the pictures add"),
        ("always-reject", "contradicted", "it rejects true premises as well as false ones"),
        ("always-accept", "contradicted", "it accepts false premises"),
        ("sycophant", "contradicted", "it accepts false premises"),
        ("prior", "contradicted", "its answers come from language"),
        ("random", "contradicted", "trap and twin both right in"),
    ],
)
def test_the_first_sentence_says_it(planted: dict[str, IntentScores], name: str, grade: str, words: str) -> None:
    verdict, _ = judged(planted[name])
    assert verdict.grade == grade, verdict
    assert words in verdict.sentence


def test_rejecting_everything_is_said_in_words(planted: dict[str, IntentScores]) -> None:
    verdict, _ = judged(planted["always-reject"])
    text = next(reason.text for reason in verdict.reasons if reason.rule.name == "discriminates")
    assert "It rejects 100 % of the true premises too" in text
    assert "which the paper's metric counts as 100 % reliable" in text
    assert "together it is right in 0 %" in text


def test_text_only_that_equals_full_is_answerable_from_language(planted: dict[str, IntentScores]) -> None:
    verdict, holds = judged(planted["prior"])
    assert holds["pictures"] is False
    assert any("answerable from language" in reason.text for reason in verdict.reasons)


def test_the_gaze_is_a_remark_that_tells_the_two_apart(planted: dict[str, IntentScores]) -> None:
    using, blind = (judged(planted[name])[1] for name in ("discriminating", "gaze-blind"))
    assert (using["gaze"], using["wrong gaze"]) == (True, True)
    assert (blind["gaze"], blind["wrong gaze"]) == (False, False)


def test_no_gain_where_nothing_is_left_to_gain(planted: dict[str, IntentScores]) -> None:
    _, holds = judged(planted["oracle"])
    assert holds["gaze"] is None


def test_answers_that_change_with_any_order_say_nothing_about_gaze(planted: dict[str, IntentScores]) -> None:
    _, holds = judged(planted["random"])
    assert (holds["wrong gaze"], holds["order"]) == (None, False)


def test_without_twins_rejecting_cannot_be_told_from_discriminating() -> None:
    scores = scores_of(make_items(12, twins=False), ANSWERERS["always-reject"], ["plain"])
    verdict, holds = judged(scores)
    assert verdict.grade == "not shown"
    assert holds["discriminates"] is None
    assert "without twins rejecting and discriminating cannot be told apart" in verdict.sentence


def test_never_asked_without_pictures_is_not_shown() -> None:
    scores = scores_of(make_items(12), ANSWERERS["discriminating"], ["plain"])
    verdict, holds = judged(scores)
    assert (verdict.grade, holds["pictures"]) == ("not shown", None)
    assert "never asked without the pictures" in verdict.sentence


def test_who_was_shown_no_picture_cannot_have_looked(planted: dict[str, IntentScores]) -> None:
    blind = replace(facts_of(planted["discriminating"]), pictured=False)
    holds = {reason.rule.name: reason.holds for reason in reasons_of(blind)}
    assert holds["pictures"] is False


def test_unreadable_replies_limit_the_claim(planted: dict[str, IntentScores]) -> None:
    verdict, holds = judged(planted["mumbler"])
    assert holds["readable"] is False
    assert verdict.grade != "supported"


def test_a_subset_is_named_among_the_reasons(planted: dict[str, IntentScores]) -> None:
    scores = replace(planted["oracle"], subset="27 of 324 items")
    verdict, _ = judged(scores)
    assert any("27 of 324 items" in reason.text for reason in verdict.reasons)


def test_few_videos_carry_no_claim() -> None:
    verdict, _ = judged(scores_of(make_items(4), ANSWERERS["oracle"]))
    assert verdict.grade == "in these videos"


def test_a_higher_pair_share_never_makes_it_worse() -> None:
    def holds(paired: float) -> bool | None:
        found = {name: Interval(0.8, 0.7, 0.9) for name in ("overall", "cognitive", "twin", "over_rejection")}
        found["paired"] = Interval(paired, max(paired - 0.1, 0.0), paired + 0.1)
        facts = IntentFacts(videos=20, numbers=found, chances={"overall": 0.25, "paired": 0.0625})
        return next(reason.holds for reason in reasons_of(facts) if reason.rule.name == "discriminates")

    order = [False, None, True]
    ranks = [order.index(holds(share / 100)) for share in range(0, 90, 2)]
    assert ranks == sorted(ranks)
