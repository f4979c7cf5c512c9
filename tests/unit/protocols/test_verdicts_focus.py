"""Verdicts on planted submissions to FOCUS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.protocols.planted_verdicts import near

from surgeval.protocols.focus import verdict as focus
from surgeval.protocols.focus.method import score_focus
from surgeval.protocols.verdict import Reason, Verdict
from surgeval.qa import ExactJudge, Panel

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
    found = focus.facts_of(score_focus(responses, ask, truth, judge=Panel([ExactJudge()]), resamples=200))
    assert found is not None
    return found


def answered(facts: focus.FocusFacts) -> Verdict:
    return focus.verdict_on(facts)


def test_planted_submissions_get_the_verdict_they_deserve() -> None:
    ask, truth, right = _questions()
    assert answered(_submission(right)).grade == "passes"
    blind = score_focus([], ask, truth, resamples=50).blind
    assert blind is not None
    never_looked = {name: right[name] if blind[name] else "9" if name[-1] < "4" else _other(right[name])
                    for name in right}  # fmt: skip
    assert answered(_submission(never_looked)).grade == "inconclusive"
    same = {name: "4" if name[-1] < "4" else "no" for name in right}
    assert answered(_submission(same)).grade == "fails"
    dice = np.random.default_rng(0)
    random = {name: str(dice.integers(9)) if name[-1] < "4" else ("yes", "no")[dice.integers(2)] for name in right}
    assert answered(_submission(random)).grade == "fails"
    half = answered(_submission({name: text for n, (name, text) in enumerate(right.items()) if n % 2}))
    assert half.grade == "inconclusive"
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
    yes = score_focus([{"qID": one["qID"], "content": "yes"} for one in ask], ask, truth, resamples=100)
    facts = focus.facts_of(yes)
    assert facts is not None and facts.whole is not None
    assert (facts.whole.right, facts.whole.baseline) == (0.5, 0.5)
    assert answered(facts).grade == "inconclusive"
    oracle = score_focus([{"qID": one["qID"], "content": one["answer"]} for one in truth], ask, truth, resamples=100)
    verdict = oracle.verdict()
    assert verdict is not None and verdict.grade == "passes"


def test_a_wording_of_one_video_does_not_answer_itself() -> None:
    ask, truth = _balanced(8, 1)
    blind = score_focus([], ask, truth, resamples=50).blind
    assert blind is not None and np.mean(list(blind.values())) == 0.5


def test_a_model_without_images_is_a_blind_baseline_however_right() -> None:
    right = _submission(_questions()[2])
    blind = answered(replace(right, pictured=False))
    assert str(blind) == "fails: It is itself a blind baseline: it was not given any images."
    for known in (True, None):  # of a file nobody knows
        seen = answered(replace(right, pictured=known))
        assert seen.grade == "passes" and "images" not in [one.rule.name for one in seen.reasons]
    few = answered(replace(right, pictured=False, videos=3))
    assert few.grade == "inconclusive"
    assert few.sentence == "In these 3 videos it fails; six are needed for a claim."
    row = answered(replace(right, pictured=False, reference="It repeats the reference answers."))
    assert str(row) == "not applicable: Reference row: it repeats the reference answers."


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
    assert few.holds is True and "too few videos in 1." in few.text
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
    assert (told.holds, verdict.grade) == (False, "inconclusive")
    assert "it answers “yes” to 97 % of the yes/no questions" in verdict.sentence
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
        assert answered(replace(found, counts={**found.counts, **count})).grade == "inconclusive"


def test_beside_a_headline_stands_what_one_reaches_who_never_looked() -> None:
    ask, truth, right = _questions()
    scores = score_focus([{"qID": name, "content": text} for name, text in right.items()], ask, truth, resamples=50)
    assert scores.blind is not None
    baselines = {one.key: one.baseline for one in scores.headlines()}
    assert baselines["flat_accuracy"] == pytest.approx(np.mean(list(scores.blind.values())))
    assert None not in baselines.values()
    assert {one.chance for one in scores.headlines()} == {None}  # nobody guessed


def test_a_submission_says_how_many_answers_wait_for_a_judge() -> None:
    ask, truth, _ = _questions()
    truth = [{**one, "format": "open_ended", "answer": "a clip"} for one in truth]
    scores = score_focus([{"qID": one["qID"], "content": "a clip"} for one in truth], ask, truth, resamples=50)
    assert "64 answers have no verdict of a judge" in repr(scores)
    assert scores.verdict() is None
