"""Claims about competency, reliability and the interventions, on answerers whose behaviour is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from tests.unit.protocols.intent_world import ANSWERERS, CONDITIONS, make_items, oracle, scores_of

from surgeval.protocols.intent.result import IntentScores, outcomes
from surgeval.protocols.intent.scoring.estimates import difference_of
from surgeval.protocols.intent.scoring.interventions import trap_removal
from surgeval.protocols.intent.scoring.scores import Invalid, roles_of, scored_cells
from surgeval.protocols.intent.scoring.weights import SKILLS
from surgeval.protocols.intent.tables import reference_rows, set_table
from surgeval.records import IntentQuestion


@pytest.fixture(scope="module")
def items() -> list[IntentQuestion]:
    return make_items(12)


@pytest.fixture(scope="module")
def planted(items: list[IntentQuestion]) -> dict[str, IntentScores]:
    return {name: scores_of(items, answerer) for name, answerer in ANSWERERS.items()}


def value(scores: IntentScores, number: str) -> float:
    return scores.numbers[number].estimate


def test_twelve_of_27_items_are_of_competency(items: list[IntentQuestion]) -> None:
    roles = list(roles_of(items[:27]).values())
    counts = {role: roles.count(role) for role in ("competency", "perceptual", "cognitive", "twin", "untrapped")}
    assert counts == {"competency": 12, "perceptual": 3, "cognitive": 3, "twin": 3, "untrapped": 6}


def test_twins_are_not_counted_as_competency(items: list[IntentQuestion]) -> None:
    roles = roles_of(items)

    def wrong_on_twins(item: IntentQuestion, role: str, condition: str) -> int:
        return (item.answer + (roles[item.id] in ("twin", "untrapped"))) % 4

    scores = scores_of(items, wrong_on_twins, ["plain"])
    assert value(scores, "overall") == 1
    assert (value(scores, "cognitive"), value(scores, "twin"), value(scores, "paired")) == (1, 0, 0)


def test_a_dimension_is_the_mean_of_its_skills_whatever_their_counts() -> None:
    items = make_items(8)
    kept = [item for item in items if item.skill != "absolute" or item.id.endswith("00")]
    scores = scores_of(kept, ANSWERERS["discriminating"], ["plain"])
    assert value(scores, "spatial") == pytest.approx((value(scores, "absolute") + value(scores, "relative")) / 2)
    assert value(scores, "overall") == pytest.approx(sum(value(scores, skill) for skill in SKILLS) / 6)


def test_the_oracle_is_exactly_right_everywhere(planted: dict[str, IntentScores]) -> None:
    oracle = planted["oracle"]
    assert {number: found.estimate for number, found in oracle.numbers.items()} == {
        **dict.fromkeys(oracle.numbers, 1.0), "over_rejection": 0.0, "asymmetry": 0.0,
    }  # fmt: skip


def test_always_rejecting_wins_the_papers_metric_and_no_pair(planted: dict[str, IntentScores]) -> None:
    rejecting = planted["always-reject"]
    assert value(rejecting, "cognitive") == 1
    assert (value(rejecting, "twin"), value(rejecting, "paired"), value(rejecting, "over_rejection")) == (0, 0, 1)
    assert value(rejecting, "cognitive") > 0.7767  # the best published model


def test_always_accepting_passes_no_trap(planted: dict[str, IntentScores]) -> None:
    accepting = planted["always-accept"]
    assert (value(accepting, "cognitive"), value(accepting, "over_rejection"), value(accepting, "paired")) == (0, 0, 0)


def test_a_mean_that_no_video_changes_is_no_surer_than_its_parts() -> None:
    def sycophant(item: IntentQuestion, role: str, condition: str) -> int:
        return (item.answer + (item.trap == "cognitive")) % 4

    numbers = scores_of(make_items(3), sycophant, ["plain"]).numbers
    perceptual, cognitive, average = (numbers[name] for name in ("perceptual", "cognitive", "reliability"))
    assert (perceptual.estimate, cognitive.estimate, average.estimate) == (1, 0, 0.5)
    assert average.low == pytest.approx(0.5 - (1 - perceptual.low) / 2)
    assert average.high == pytest.approx(0.5 + cognitive.high / 2)
    assert numbers["overall"].estimate == numbers["overall"].high == 1
    assert max(numbers[skill].low for skill in SKILLS) < numbers["overall"].low < 1
    assert numbers["asymmetry"].low < 0 < numbers["asymmetry"].high


def test_two_differences_of_shares_differ_by_at_most_two() -> None:
    items = make_items(3)

    def turned(item: IntentQuestion, role: str, condition: str) -> int:
        forward = (item.skill == "prospective") == (item.cluster == "V00")
        return item.answer if forward else (item.answer + 1) % 4

    gap = difference_of(
        scores_of(items, turned, ["plain"]).plain, scores_of(items, oracle, ["plain"]).plain, "asymmetry"
    )
    assert gap is not None
    assert (gap.interval.low, gap.interval.high) == (-2, 2)


def test_reference_rows_need_no_run(items: list[IntentQuestion]) -> None:
    rows = {row["answerer"]: row for row in reference_rows(items).iter_rows(named=True)}
    assert rows["always-reject"] == {
        "answerer": "always-reject", "perceptual": 0.25, "cognitive": 1.0, "reliability": 0.625, "twin": 0.0,
        "paired": 0.0, "over_rejection": 1.0,
    }  # fmt: skip
    assert rows["always-accept"]["twin"] == pytest.approx(1 / 3)
    assert rows["guessing"]["paired"] == pytest.approx(1 / 16)


def test_only_who_looks_gets_trap_and_twin_right(planted: dict[str, IntentScores]) -> None:
    looking = planted["discriminating"].numbers["paired"]
    for name in ("always-reject", "always-accept", "prior", "sycophant"):
        assert planted[name].numbers["paired"].high < looking.low, name


def test_the_gaze_helps_the_one_that_uses_it(planted: dict[str, IntentScores]) -> None:
    gain = planted["discriminating"].gains["overall"]
    assert gain.significant
    assert gain.interval.low > 0
    assert gain.estimate == pytest.approx(gain.a - gain.b)
    assert planted["gaze-blind"].gains["overall"].estimate == 0


def test_gains_of_dimensions_average_to_that_of_all(planted: dict[str, IntentScores]) -> None:
    gains = planted["discriminating"].gains
    mean = sum(gains[name].estimate for name in ("spatial", "temporal", "standard")) / 3
    assert gains["overall"].estimate == pytest.approx(mean)


def test_moved_gaze_changes_the_answers_of_the_one_that_uses_it(planted: dict[str, IntentScores]) -> None:
    moved, ignored = planted["discriminating"].moved, planted["gaze-blind"].moved
    assert moved is not None
    assert ignored is not None
    assert moved.to_distractor is not None
    assert (moved.against, ignored.changed.estimate) == ("gaze", 0.0)
    assert moved.changed.low > 0.3
    assert moved.to_distractor.estimate <= moved.changed.estimate


def test_text_only_stands_beside_chance_and_full(planted: dict[str, IntentScores]) -> None:
    row = planted["discriminating"].text_only["overall"]
    assert row.chance == pytest.approx(0.25)
    assert row.chance < row.text.estimate < row.full.estimate
    assert row.gain.interval.low > 0
    assert planted["prior"].text_only["overall"].gain.estimate == 0


def test_regression_to_the_mean_shows_in_the_control() -> None:
    """Whoever fails by luck does as well when the same trap is asked again: taking the trap away adds nothing."""
    items = make_items(24)
    lucky = scores_of(items, ANSWERERS["random"]).removal["perceptual"]
    assert lucky.after_failed is not None
    assert lucky.again is not None
    assert lucky.over_again is not None
    assert lucky.over_again.interval.low <= 0 <= lucky.over_again.interval.high


def test_taking_the_trap_away_helps_who_was_led_astray(planted: dict[str, IntentScores]) -> None:
    led = planted["sycophant"].removal["cognitive"]
    assert (led.failed, led.passed) == (36, 0)
    assert led.again is not None
    assert led.over_again is not None
    assert (led.again.estimate, led.after_passed, led.less_than_passed) == (0.0, None, None)
    assert led.over_again.significant


def test_twins_of_passed_traps_are_the_second_control(planted: dict[str, IntentScores]) -> None:
    row = planted["prior"].removal["perceptual"]
    assert row.after_failed is not None
    assert row.after_passed is not None
    assert row.less_than_passed is not None
    assert row.less_than_passed.estimate == pytest.approx(row.after_failed.estimate - row.after_passed.estimate)


def test_a_guesser_is_not_consistent_and_one_who_likes_a_letter_shows_it(items: list[IntentQuestion]) -> None:
    def first_letter(item: IntentQuestion, role: str, condition: str) -> int:
        return int(condition.removeprefix("rotated-")) if condition.startswith("rotated-") else 0

    order = scores_of(items, first_letter).order
    assert order is not None
    assert (order.consistent.estimate, order.by_position) == (0.0, {0: 4 * order.items})
    assert (order.rotations, order.always_right.estimate) == (3, 0.0)


def test_unreadable_replies_are_wrong_unless_they_are_dropped(items: list[IntentQuestion]) -> None:
    wrong = scores_of(items, ANSWERERS["mumbler"])
    dropped = replace(wrong, invalid="drop")
    assert value(wrong, "overall") < 0.8
    assert value(dropped, "overall") == 1
    assert value(dropped, "paired") == 1
    rows = wrong.tables["denominators"]
    assert (rows["readable"] < rows["answered"]).all()
    assert (rows["unreadable_dropped"] == 1).all()
    assert rows["answered"].to_list() == rows["asked"].to_list()
    assert wrong.unreadable == dropped.unreadable > 0.2


def test_strict_and_lenient_stand_side_by_side_with_what_differs(planted: dict[str, IntentScores]) -> None:
    scores = planted["oracle"]
    rows = scores.tables["readings"].filter(pl.col("condition") == "plain").row(0, named=True)
    strict = scores.answers.filter(pl.col("condition") == "plain")["strict"].is_not_null().mean()
    assert (rows["right"], rows["right_strict"]) == (1.0, pytest.approx(strict))
    assert rows["differs"] == pytest.approx(1 - rows["right_strict"])
    assert scores.strict["overall"].estimate < 1


def test_failed_requests_are_in_no_number(items: list[IntentQuestion]) -> None:
    whole = scores_of(items, oracle, ["plain"])
    lost = whole.answers.with_columns(
        status=pl.when(pl.col("item").str.ends_with("-03")).then(pl.lit("server")).otherwise("status"),
        choice=pl.when(pl.col("item").str.ends_with("-03")).then(None).otherwise("choice"),
        right=pl.col("right") & ~pl.col("item").str.ends_with("-03"),
    )
    scores = replace(whole, answers=lost)
    assert (value(scores, "overall"), scores.failed, scores.unreadable) == (1.0, 12, 0.0)


def without_replies(scores: IntentScores, kept: set[str]) -> IntentScores:
    """The same answers, missing for every item that is not kept."""
    gone = ~pl.col("item").is_in(list(kept))
    answers = scores.answers.with_columns(
        status=pl.when(gone).then(pl.lit("missing")).otherwise("status"),
        choice=pl.when(gone).then(None).otherwise("choice"), strict=pl.when(gone).then(None).otherwise("strict"),
        right=pl.col("right") & ~gone, right_strict=pl.col("right_strict") & ~gone,
    )  # fmt: skip
    return replace(scores, answers=answers)


@pytest.mark.parametrize("invalid", ["wrong", "drop"])
def test_missing_replies_are_wrong_under_either_rule(items: list[IntentQuestion], invalid: Invalid) -> None:
    first = {item.id for item in items if item.cluster == "V00"}
    scores = without_replies(scores_of(items, oracle, ["plain"], invalid=invalid), first)
    videos = len({item.cluster for item in items})
    for number in ("overall", "perceptual", "cognitive", "twin", "paired"):
        assert value(scores, number) == pytest.approx(1 / videos)
    assert (scores.missing, scores.failed) == (len(items) - len(first), 0)
    assert scores.warnings == (f"{len(items) - len(first)} of {len(items)} items have no reply and count as wrong.",)
    table = scores.tables["denominators"]
    assert (table["right"] / table["asked"]).to_list() == table["unreadable_dropped"].to_list()


def test_a_missing_reply_neither_rejects_nor_accepts(items: list[IntentQuestion]) -> None:
    first = {item.id for item in items if item.cluster == "V00"}
    scores = without_replies(scores_of(items, ANSWERERS["always-reject"], ["plain"]), first)
    assert value(scores, "over_rejection") == 1
    verdict = str(without_replies(scores_of(items, oracle, ["plain"]), {"none"}).verdict())
    assert "accepts false premises" not in verdict
    assert "not there (" not in verdict


def test_what_the_gaze_adds_is_measured_on_items_with_a_reply(items: list[IntentQuestion]) -> None:
    scores = scores_of(items, oracle, ["plain", "gaze"])
    gone = (pl.col("condition") == "plain") & (pl.col("cluster") != "V00")
    lost = scores.answers.with_columns(
        status=pl.when(gone).then(pl.lit("missing")).otherwise("status"), right=pl.col("right") & ~gone
    )
    assert replace(scores, answers=lost).gains["overall"].estimate == 0


def test_every_number_counts_its_items(items: list[IntentQuestion]) -> None:
    scores = scores_of(items, ANSWERERS["discriminating"], ["plain"])
    roles = Counter(roles_of(items).values())
    counts = {number: interval.n for number, interval in scores.numbers.items()}
    assert counts["overall"] == roles["competency"]
    assert counts["reliability"] == roles["perceptual"] + roles["cognitive"]
    assert counts["paired"] == counts["cognitive"] == roles["cognitive"]


def test_without_twins_there_is_no_pair() -> None:
    scores = scores_of(make_items(8, twins=False), ANSWERERS["always-reject"])
    assert not scores.has_twins
    assert not {"paired", "twin", "over_rejection"} & set(scores.numbers)
    assert scores.removal == {}
    assert value(scores, "cognitive") == 1


def test_a_set_without_a_skill_averages_over_those_it_has() -> None:
    items = [item for item in make_items(8) if item.skill not in ("continuous", "discrete")]
    scores = scores_of(items, oracle, ["plain"])
    assert "standard" not in scores.numbers
    assert value(scores, "overall") == 1
    assert not scores.gains
    assert not scores.text_only
    assert scores.order is None
    assert scores.moved is None


def test_the_set_is_counted_by_scenario_and_skill() -> None:
    table = set_table(make_items(4, scenarios=("open_surgery", "chest_xray")))
    assert table["scenario"].to_list() == ["chest_xray", "open_surgery"]
    assert table.select(*SKILLS).row(0) == (4,) * 6
    assert table.select("videos", "items", "perceptual", "cognitive", "twin").row(1) == (2, 54, 6, 6, 6)


def test_scenarios_are_told_apart() -> None:
    items = make_items(12, scenarios=("open_surgery", "chest_xray"))

    def surgeon(item: IntentQuestion, role: str, condition: str) -> int:
        return (item.answer + (item.scenario != "open_surgery")) % 4

    table = scores_of(items, surgeon, ["plain"]).tables["scenarios"]
    found = {(row["scenario"], row["number"]): row["estimate"] for row in table.iter_rows(named=True)}
    assert found["open_surgery", "overall"] == 1
    assert found["chest_xray", "overall"] == 0


def test_outcomes_rank_by_pairs_where_there_are_twins(planted: dict[str, IntentScores]) -> None:
    table = outcomes(planted["always-reject"])
    groups = table.group_by("group").agg(pl.col("correctness").mean()).sort("group")
    assert groups["group"].to_list() == ["perceptual traps", "spatial", "standard", "temporal", "trap and twin"]
    assert groups.filter(pl.col("group") == "trap and twin")["correctness"].item() == 0
    assert table["qID"].n_unique() == table.height


def test_conditions_do_not_mix(items: list[IntentQuestion]) -> None:
    scores = scores_of(items, oracle, CONDITIONS)
    cells = scored_cells(items, scores.answers)
    plain = cells.filter(pl.col("condition") == "plain")
    assert plain.select("item", "cell").n_unique() == plain.height
    assert trap_removal(items, scores.answers.filter(pl.col("condition") == "gaze")) == {}
