"""Verdicts on planted answerers: the sentence names what is wrong with each of them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_items, scores_of

from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.verdict import CLAIM, IntentFacts, facts_of, reasons_of
from surgeval.protocols.verdict import Verdict, reference_verdict
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
        ("oracle", "passes", "trap and twin both right in 100 %"),
        ("discriminating", "passes", "the images add"),
        ("gaze-blind", "passes", "the images add"),
        ("always-reject", "fails", "it rejects true premises as well as false ones"),
        ("always-accept", "fails", "it accepts false premises"),
        ("sycophant", "fails", "it accepts false premises"),
        ("prior", "fails", "its answers come from language"),
        ("random", "fails", "trap and twin both right in"),
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
    assert "together it is right in 0 %" in text


def test_text_only_that_equals_full_is_answerable_from_language(planted: dict[str, IntentScores]) -> None:
    verdict, holds = judged(planted["prior"])
    assert holds["images"] is False
    assert "its answers come from language" in verdict.sentence


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


def test_without_twins_rejecting_everything_is_inconclusive() -> None:
    scores = scores_of(make_items(12, twins=False), ANSWERERS["always-reject"], ["plain"])
    verdict, holds = judged(scores)
    assert verdict.grade == "inconclusive"
    assert holds["discriminates"] is None


def test_never_asked_without_images_is_inconclusive() -> None:
    scores = scores_of(make_items(12), ANSWERERS["discriminating"], ["plain"])
    verdict, holds = judged(scores)
    assert (verdict.grade, holds["images"]) == ("inconclusive", None)


def test_a_model_without_images_fails(planted: dict[str, IntentScores]) -> None:
    blind = replace(facts_of(planted["discriminating"]), pictured=False)
    holds = {reason.rule.name: reason.holds for reason in reasons_of(blind)}
    assert holds["images"] is False


def test_unreadable_replies_limit_the_claim(planted: dict[str, IntentScores]) -> None:
    verdict, holds = judged(planted["mumbler"])
    assert holds["readable"] is False
    assert verdict.grade != "passes"


def test_a_subset_is_named_among_the_reasons(planted: dict[str, IntentScores]) -> None:
    scores = replace(planted["oracle"], subset="27 of 324 items")
    verdict, _ = judged(scores)
    assert any("27 of 324 items" in reason.text for reason in verdict.reasons)


def test_few_videos_carry_no_claim() -> None:
    verdict, _ = judged(scores_of(make_items(4), ANSWERERS["oracle"]))
    assert verdict.grade == "inconclusive"


def test_a_higher_pair_share_never_makes_it_worse() -> None:
    def holds(paired: float) -> bool | None:
        found = {
            name: Interval(estimate=0.8, low=0.7, high=0.9)
            for name in ("overall", "cognitive", "twin", "over_rejection")
        }
        found["paired"] = Interval(estimate=paired, low=max(paired - 0.1, 0.0), high=paired + 0.1)
        facts = IntentFacts(videos=20, numbers=found, chances={"overall": 0.25, "paired": 0.0625})
        return next(reason.holds for reason in reasons_of(facts) if reason.rule.name == "discriminates")

    order = [False, None, True]
    ranks = [order.index(holds(share / 100)) for share in range(0, 90, 2)]
    assert ranks == sorted(ranks)


def _told(guessing: float = 0.0625, **shares: float) -> dict[str, tuple[bool | None, str]]:
    """What the rules make of these shares (each ± 2 points), of 20 videos and four options."""
    numbers = {name: Interval(estimate=share, low=max(share - 0.02, 0.0), high=min(share + 0.02, 1.0), clusters=20)
               for name, share in ({"overall": 0.5} | shares).items()}  # fmt: skip
    chances = dict.fromkeys(numbers, 0.25) | {"paired": guessing}
    reasons = reasons_of(IntentFacts(videos=20, numbers=numbers, chances=chances))
    return {reason.rule.name: (reason.holds, reason.text) for reason in reasons}


@pytest.mark.parametrize(
    ("cognitive", "over_rejection", "words"),
    [
        (0.80, 0.80, "It rejects 80 % of the true premises too"), (0.95, 0.79, ""), (0.79, 0.95, ""),
        (0.10, 0.10, "It accepts every premise"), (0.05, 0.11, ""), (0.11, 0.05, ""),
    ],
)  # fmt: skip
def test_rejecting_or_accepting_every_premise_takes_both(cognitive: float, over_rejection: float, words: str) -> None:
    _, text = _told(cognitive=cognitive, over_rejection=over_rejection, paired=0.1, twin=0.4)["discriminates"]
    assert [
        phrase for phrase in ("It rejects 80 % of the true premises too", "It accepts every premise") if phrase in text
    ] == [phrase for phrase in (words,) if phrase]


@pytest.mark.parametrize(
    ("paired", "guessing", "holds"),
    [(0.23, 0.0625, True), (0.21, 0.0625, True), (0.17, 0.0625, False), (0.03, 0.0625, False), (0.2, 0.25, False),
     (0.24, 0.25, None), (0.28, 0.25, True)],
)  # fmt: skip
def test_pairs_are_held_against_guessing_both_and_a_fifth(paired: float, guessing: float, holds: bool | None) -> None:
    """Wholly below a fifth is refuted, also where it is above guessing; of two options guessing is a quarter."""
    told = _told(cognitive=0.5, over_rejection=0.3, paired=paired, twin=0.4, guessing=guessing)["discriminates"][0]
    assert told is holds


@pytest.mark.parametrize(("unreadable", "holds"), [(0.0, True), (0.2, True), (0.21, False)])
def test_a_fifth_of_the_replies_may_be_unreadable(unreadable: float, holds: bool) -> None:
    numbers = {"overall": Interval(estimate=0.5, low=0.4, high=0.6)}
    facts = IntentFacts(videos=20, numbers=numbers, chances={"overall": 0.25}, unreadable=unreadable)
    assert {reason.rule.name: reason.holds for reason in reasons_of(facts)}["readable"] is holds


@pytest.mark.parametrize(("overall", "holds"), [(0.94, False), (0.95, None), (1.0, None)])
def test_from_95_per_cent_on_nothing_is_left_to_gain(overall: float, holds: bool | None) -> None:
    numbers = {"overall": Interval(estimate=overall, low=overall, high=overall)}
    gain = Interval(estimate=0.0, low=-0.01, high=0.01)
    facts = IntentFacts(videos=20, numbers=numbers, chances={"overall": 0.25}, gaze_gain=gain)
    assert {reason.rule.name: reason.holds for reason in reasons_of(facts)}["gaze"] is holds


def test_a_reference_row_is_not_applicable_and_says_what_it_does(planted: dict[str, IntentScores]) -> None:
    facts = replace(facts_of(planted["prior"]), pictured=False)
    row = reference_verdict(CLAIM, reasons_of(facts), "It answers from the wording of the question alone.")
    assert (row.grade, row.because) == ("not applicable", ())
    record = planted["prior"].record.model_copy(
        update={"model": {"name": "prior", "identity": "prior of 9 questions, 0a1b"}, "config": {"media": "none"}}
    )
    plain = planted["prior"].answers.with_columns(shown=pl.lit("[]"))
    blind = replace(planted["prior"], record=record, answers=plain)
    verdict = blind.verdict()
    assert verdict is not None and verdict.sentence == row.sentence
