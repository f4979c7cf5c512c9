"""Verdicts on planted cases: the oracle, the untrained, the shortcut, the centre-biased, the constant, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.planted_verdicts import rank_of

from surgeval.protocols import quality
from surgeval.protocols.focus import verdict as focus
from surgeval.protocols.intent import verdict as intent
from surgeval.protocols.result import RunResult
from surgeval.protocols.run_page import finding_sections
from surgeval.protocols.surgxbench import verdict as surgx
from surgeval.protocols.triplets import verdict as triplets
from surgeval.protocols.verdict import Claim, Effect, Reason, Rule, above, verdict_of
from surgeval.results import Grade
from surgeval.stats import Interval

DOCS = Path(__file__).parents[3] / "docs" / "verdicts.md"
CLAIM = Claim("It sees.", "It does not see.")
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
            # Among rules that limit, inconclusive is as good as holding: neither limits.
            assert rank_of(after) <= rank_of(before)


@given(REASONS, st.integers(1, 5))
def test_few_videos_never_settle_a_claim(pairs: list[tuple[Any, bool | None]], videos: int) -> None:
    found = verdict_of(CLAIM, _reasons(pairs), videos)
    assert found.grade == "inconclusive"
    assert found.reasons[-1].rule.name == "videos"


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 1), st.floats(0, 0.2))
def test_a_higher_number_is_never_less_above(value: float, half: float, more: float, margin: float) -> None:
    order = {False: 0, None: 1, True: 2}
    low, high = (above(Interval(estimate=v, low=v - half, high=v + half), 0, margin) for v in (value, value + more))
    assert order[high] >= order[low]


def test_two_videos_do_not_settle_a_claim_about_others() -> None:
    missed = [Reason(Rule("right", "A rule.", "decides"), "It is never right.", False, "it is never right")]
    assert verdict_of(CLAIM, missed, 6).grade == "fails"
    few = verdict_of(CLAIM, missed, 2)
    assert few.grade == "inconclusive"
    assert few.sentence == "In these 2 videos it fails; six are needed for a claim."


def test_without_a_rule_that_decides_the_grade_is_inconclusive() -> None:
    assert verdict_of(CLAIM, _reasons([("remark", True)]), 20).grade == "inconclusive"


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
        (True, 20, "passes: It sees: so it is."),
        (False, 20, "fails: It does not see: so it is."),
        (None, 20, "inconclusive: Unclear whether it sees: so it is."),
        (True, 3, "inconclusive: In these 3 videos it passes; six are needed for a claim."),
        (False, 1, "inconclusive: In this video it fails; six are needed for a claim."),
    ],
)
def test_grade_and_sentence_read_as_one_statement(holds: bool | None, videos: int, read: str) -> None:
    rule = Rule("right", "Right more often than not.", "decides")
    made = verdict_of(Claim("It sees.", "It does not see."), [Reason(rule, "So it is.", holds, "so it is")], videos)
    assert str(made) == read


@pytest.mark.parametrize(
    ("effect", "grades"),
    [("decides", ["passes", "fails", "inconclusive"]), ("limits", ["passes", "fails", "inconclusive"]),
     ("remark", [None, None, None])],
)  # fmt: skip
def test_every_finding_has_the_grade_of_its_rule_and_a_remark_has_none(
    effect: Effect, grades: list[str | None]
) -> None:
    rule = Rule("right", "Right more often than not.", effect)
    verdict = verdict_of(CLAIM, [Reason(rule, "So.", holds) for holds in (True, False, None)], videos=20)
    (section,) = finding_sections({"net": verdict})
    assert [finding.grade for finding in section.findings] == grades
    assert all(f"| {grade} | " in DOCS.read_text("utf-8") for grade in get_args(Grade))
