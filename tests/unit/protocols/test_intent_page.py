"""The page of an intent run, of several, and of a comparison: what each says in words, and run folders of strangers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_cases, make_items, scores_of, write_run

from surgeval import compare
from surgeval.cli.app import run as command
from surgeval.errors import BadInput, DataError
from surgeval.protocols.contract import by_key
from surgeval.protocols.intent.ceiling import gaze_ceiling
from surgeval.protocols.intent.evidence import intent_evidence
from surgeval.protocols.intent.page import _details, _facts, _notes, _tables, intent_sections, write_page_of
from surgeval.protocols.intent.page_tables import competency_tables, reading_tables, removal_tables
from surgeval.protocols.intent.result import IntentScores, load_intent
from surgeval.protocols.run_page import finding_sections
from surgeval.records import Gaze, IntentQuestion
from surgeval.stats import Interval


@pytest.fixture(scope="module")
def items() -> list[IntentQuestion]:
    return make_items(8, scenarios=("open_surgery", "chest_xray"))


@pytest.fixture(scope="module")
def runs(items: list[IntentQuestion], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    names = ("discriminating", "sycophant", "always-reject")
    return {name: write_run(folder / name, items, make_cases(items, ANSWERERS[name]), name) for name in names}


def words(*results: IntentScores) -> str:
    """Everything the page says outside its tables."""
    return "\n".join(
        " ".join((section.title, section.text, *(finding.text for finding in section.findings)))
        for section in (*finding_sections({one.name: one.verdict() for one in results}, _notes(results)),
                        *intent_sections(results, {}))
    )  # fmt: skip


def test_a_run_is_read_back_as_it_was_answered(runs: dict[str, Path], items: list[IntentQuestion]) -> None:
    loaded, made = load_intent(runs["discriminating"]), scores_of(items, ANSWERERS["discriminating"])
    assert loaded.name == "discriminating"
    assert loaded.numbers == made.numbers
    assert loaded.gains == made.gains
    assert loaded.moved == made.moved
    assert len(loaded.pictures) == 60


@pytest.mark.figures
def test_the_page_is_written_with_tables_and_figures(runs: dict[str, Path], tmp_path: Path) -> None:
    page = write_page_of([load_intent(runs["discriminating"])], tmp_path)
    assert page.name == "report.html"
    tables = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert {"numbers", "gaze", "text_only", "trap_removal", "option_order", "wrong_gaze", "scenarios", "readings",
            "denominators", "set", "answers", "references"} <= tables  # fmt: skip
    figures = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert figures == {"scatter", "skills", "reliability", "gaze", "text_only", "scenarios", "set"}


def test_a_run_that_got_no_answer_has_a_page_that_says_so(
    items: list[IntentQuestion], runs: dict[str, Path], tmp_path: Path
) -> None:
    mute = scores_of(items, ANSWERERS["sycophant"])
    mute = replace(mute, name="mute", answers=mute.answers.with_columns(status=pl.lit("failed")))
    assert "scenarios" not in mute.figures
    assert write_page_of([mute], tmp_path / "alone").is_file()
    both = write_page_of([mute, load_intent(runs["sycophant"])], tmp_path / "both")
    assert (both.parent / "figures" / "scenarios.svg").is_file()


def test_published_rows_stand_apart_in_folded_tables(runs: dict[str, Path]) -> None:
    sections = intent_sections([load_intent(runs["discriminating"])], {})
    layouts = [table for section in sections for table in section.tables if "paper's Table" in table.title]
    assert [table.title for table in layouts] == [
        f"{what} the paper's Table {number}, per cent" for number in range(3, 8)
        for what in ("In the layout of", "Published in")
    ]  # fmt: skip
    for own, published in zip(layouts[::2], layouts[1::2], strict=True):
        assert own.frame.columns == published.frame.columns
        assert "discriminating" in own.frame["model"] and "discriminating" not in published.frame["model"]
        known = published.frame["model"].is_in(["GPT-5", "Qwen3-VL-32B"])
        assert known.any() and not own.frame["model"].is_in(published.frame["model"].to_list()).any()
        assert published.folded and published.note.startswith("Other models on other items")


def test_the_expected_score_of_always_rejecting_is_a_row_beside_the_runs(runs: dict[str, Path]) -> None:
    sections = intent_sections([load_intent(runs["always-reject"])], {})
    (table,) = [
        one for part in sections for one in part.tables if one.title.startswith("In the layout of the paper's Table 4")
    ]
    assert table.frame["model"].to_list() == [
        "always-reject", "expected if always rejecting", "expected if always accepting",
        "expected if guessing",
    ]  # fmt: skip
    assert "no model was asked" in table.note


def test_the_papers_numbers_stand_there_as_printed(runs: dict[str, Path]) -> None:
    sections = intent_sections([load_intent(runs["discriminating"])], {})
    tables = {table.title: table.frame for section in sections for table in section.tables}
    gpt5 = tables["Published in the paper's Table 3, per cent"].filter(pl.col("model") == "GPT-5").row(0)
    assert gpt5[1:] == ("52.94", "56.86", "56.77", "62.39", "66.51", "78.22", "54.90", "59.58", "72.37", "62.28")
    qwen = tables["Published in the paper's Table 5, per cent"].filter(pl.col("model") == "Qwen3-VL-32B").row(0)
    assert qwen[1:3] == ("50.88", "53.88 (+3.00)")


def test_always_rejecting_is_told_in_words(runs: dict[str, Path]) -> None:
    said = words(load_intent(runs["always-reject"]))
    assert "of the true premises too" in said
    assert "always rejecting scores 100 %" in said


def test_without_twins_the_page_says_what_cannot_be_told(items: list[IntentQuestion]) -> None:
    said = words(scores_of(make_items(8, twins=False), ANSWERERS["always-reject"], ["plain"]))
    assert "Rejecting and discriminating cannot be separated here" in said
    assert "A twin asks the same" not in said


def test_a_subset_is_labelled(items: list[IntentQuestion], tmp_path: Path) -> None:
    label = "54 of 216 items, drawn evenly from skills and traps (seed 0)"
    few = items[:54]
    folder = write_run(tmp_path / "few", few, make_cases(few, ANSWERERS["oracle"], ["plain"]), "oracle", subset=label)
    scores = load_intent(folder)
    assert label in words(scores)
    assert any(label in fact for fact in _facts([scores]))
    assert _details([scores])["Subset"] == label
    assert label in str(scores)
    both = compare(scores, replace(scores, name="again"))
    assert any(label in note for note in both.notes)


def test_dropped_replies_are_said(items: list[IntentQuestion]) -> None:
    scores = replace(scores_of(items, ANSWERERS["mumbler"], ["plain"]), invalid="drop")
    assert "Unreadable replies are left out" in words(scores)


def test_several_models_get_the_same_question(runs: dict[str, Path]) -> None:
    results = [load_intent(runs[name]) for name in ("discriminating", "always-reject")]
    section = next(one for one in intent_sections(results, {}) if one.title == "The same question, several models")
    (table,) = section.tables
    assert table.frame.select("scenario", "skill").n_unique() == table.frame.height == 12
    assert table.frame["discriminating"].str.contains("^[✓✗] [A-D]\\. ").all()
    assert section.cards
    assert _tables(results)["numbers"]["model"].unique().sort().to_list() == ["always-reject", "discriminating"]


def test_two_runs_of_one_name_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    scores = load_intent(runs["sycophant"])
    with pytest.raises(BadInput, match="Two runs are named 'sycophant'"):
        write_page_of([scores, scores], tmp_path)


def test_failed_traps_have_a_gallery(runs: dict[str, Path]) -> None:
    section = next(one for one in intent_sections([load_intent(runs["sycophant"])], {}) if one.title == "Failed traps")
    lines = section.cards[-1].lines
    assert lines[1].startswith("✗ chosen: ")
    assert lines[2].startswith("✓ right: ")


def test_every_answer_is_evidence(runs: dict[str, Path]) -> None:
    scores = load_intent(runs["sycophant"])
    shown = scores.evidence()
    assert shown is not None
    assert shown.cases.height == scores.answers.height
    assert set(shown.cases["verdict"]) == {"right", "wrong"}
    row = shown.cases.filter((pl.col("kind") == "cognitive trap") & (pl.col("condition") == "plain")).row(0, named=True)
    assert row["answer"].endswith(")")
    assert "to close a vessel (said: Answer: " in row["answer"]
    assert row["reference"].endswith("that is not what I see here")
    assert "A. " in row["asked"]


def test_headlines_have_chance_and_direction(runs: dict[str, Path]) -> None:
    headlines = load_intent(runs["discriminating"]).headlines()
    assert [one.key for one in headlines] == [
        "overall", "paired", "reliability", "perceptual", "cognitive", "over_rejection", "gaze_gain",
    ]  # fmt: skip
    assert by_key(headlines, "paired").chance == pytest.approx(1 / 16)
    assert by_key(headlines, "over_rejection").higher_is_better is False
    assert by_key(headlines, "overall").interval.clusters == 8


def test_the_gaze_ceiling_is_the_share_that_the_gaze_answers() -> None:
    items = [item for item in make_items(4) if item.skill == "absolute" and item.trap is None][:8]
    assert gaze_ceiling(items) is not None
    moved = [replace(item, gaze=(Gaze(0.8, 1 - item.gaze[0].x, 1 - item.gaze[0].y, 0.5),)) for item in items[:4]]
    known = gaze_ceiling([*moved, *items[4:]])
    assert known is not None
    asked = sum(all("the " in text for text in item.options) and "upper" in " ".join(item.options) for item in items)
    assert known.items == asked
    assert gaze_ceiling([item for item in make_items(2) if item.skill == "relative"]) is None


def test_a_comparison_pairs_the_same_items(runs: dict[str, Path]) -> None:
    both = compare(runs["discriminating"], runs["sycophant"])
    overall, paired, gaze = (by_key(both.numbers, key).difference for key in ("overall", "paired", "gaze_gain"))
    assert overall.estimate == 0
    assert paired.significant
    assert paired.interval.low > 0
    assert gaze.interval.low > 0
    assert by_key(both.numbers, "asymmetry").higher_is_better is None
    assert any("the same pictures" in note for note in both.notes)
    assert [section.title for section in both.sections] == ["The same question, several models"]


def test_other_items_are_not_compared(runs: dict[str, Path], items: list[IntentQuestion]) -> None:
    ours = load_intent(runs["discriminating"])
    with pytest.raises(BadInput, match="only one of them has 189 of the items"):
        compare(ours, scores_of(items[:27], ANSWERERS["oracle"]))
    changed = replace(ours, items=(replace(ours.items[0], question="Something else?"), *ours.items[1:]))
    with pytest.raises(BadInput, match="texts or answers differ under the same ids"):
        compare(ours, changed)
    with pytest.raises(BadInput, match="the rule for unreadable replies"):
        compare(ours, replace(ours, invalid="drop"))


def test_pictures_that_differ_are_told(runs: dict[str, Path]) -> None:
    ours = load_intent(runs["discriminating"])
    other = replace(ours, name="other", answers=ours.answers.with_columns(shown=pl.lit('[{"sha256": "0"}]')))
    assert any("other pictures were shown" in note for note in compare(ours, other).notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choice": 9}, "choice: the item has no option 9"),
        ({"id": "nobody@plain"}, "item: the run has no item 'nobody'"),
    ],
)
def test_answers_of_strangers_are_checked(
    runs: dict[str, Path], tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs["sycophant"], folder)
    cases = pl.read_parquet(folder / "cases.parquet")
    first = pl.int_range(pl.len()) == 0
    cases.with_columns(
        pl.when(first).then(pl.lit(value)).otherwise(pl.col(key)).cast(cases.schema[key]).alias(key)
        for key, value in change.items()
    ).write_parquet(folder / "cases.parquet")
    with pytest.raises(DataError, match=said):
        load_intent(folder)


@pytest.mark.figures
def test_a_run_that_nobody_answered_still_gets_its_page(items: list[IntentQuestion], tmp_path: Path) -> None:
    asked = make_cases(items, ANSWERERS["oracle"], ["plain", "text-only"])
    silence = {"choice": None, "content": ""}
    dead = [replace(case, status="model_error", reason="refused", values={**case.values, **silence}) for case in asked]
    scores = load_intent(write_run(tmp_path / "run", items, dead, "dead"))
    assert scores.verdict() is None
    assert {row["answer"] for row in intent_evidence(scores).cases.to_dicts()} == {"no answer"}  # type: ignore[union-attr]
    page = write_page_of([scores], tmp_path / "page")
    assert f"{len(dead)} requests failed" in page.read_text()


def test_what_was_asked_without_pictures_is_shown_without(runs: dict[str, Path]) -> None:
    evidence = intent_evidence(load_intent(runs["sycophant"]))
    assert evidence is not None
    assert evidence.pictures
    assert not [name for name in evidence.pictures if name.endswith("@text-only")]


def test_an_unreadable_reply_and_missing_gaze_are_said_in_words(items: list[IntentQuestion], tmp_path: Path) -> None:
    blind = [replace(item, gaze=()) for item in items]
    mute = make_cases(blind, lambda item, role, condition: None, ["plain"])
    scores = load_intent(write_run(tmp_path / "run", blind, mute, "mute"))
    section = next(section for section in intent_sections([scores], {}) if section.title == "Failed traps")
    assert section.text == "What it chose and what is right."
    assert section.cards[0].lines[1] == "✗ chosen: no choice can be read"


@pytest.mark.parametrize("name", ["lvlm", "right"])
def test_two_runs_of_one_model_are_compared(name: str, items: list[IntentQuestion], tmp_path: Path) -> None:
    for folder, answerer in (("before", "discriminating"), ("after", "sycophant")):
        write_run(tmp_path / folder, items, make_cases(items, ANSWERERS[answerer]), name)
    said = ["compare", str(tmp_path / "before"), str(tmp_path / "after"), "--out", str(tmp_path / "both")]
    assert command(said) == 0
    page = (tmp_path / "both" / "report.html").read_text("utf-8")
    assert f"{name} (1)" in page and f"{name} (2)" in page


def test_the_strict_reading_stands_where_reading_is_explained_and_nowhere_else(runs: dict[str, Path]) -> None:
    sections = intent_sections([load_intent(runs["discriminating"])], {})
    told = [(section.title, table) for section in sections for table in section.tables
            if any("strict" in head for head in table.frame.columns)]  # fmt: skip
    assert [(title, table.title) for title, table in told] == [
        ("Reading the replies", "How replies were read"), ("Reading the replies", "Each number by both readings"),
    ]  # fmt: skip
    assert all("no fault of its answers" in table.note for _, table in told)
    numbers = told[1][1].frame
    assert numbers.height == len(load_intent(runs["discriminating"]).numbers)


def test_differences_of_removed_traps_are_points_and_one_sided_intervals_say_so(runs: dict[str, Path]) -> None:
    scores = load_intent(runs["sycophant"])
    (table, *_) = removal_tables([scores])
    row = table.frame.row(by_predicate=pl.col("traps") == "cognitive", named=True)
    assert row["trap taken away adds"].split(" [")[0].endswith(" points")
    assert row["failed, asked again"] == f"{scores.removal['cognitive'].again.cell('share')}, one-sided"  # type: ignore[union-attr]
    assert "the bound of the number" in table.note


def test_a_difference_whose_interval_ends_at_the_number_is_marked_one_sided(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = load_intent(runs["sycophant"])
    difference = Interval(estimate=0.25, low=-0.543, high=0.25, clusters=3)
    changed = replace(scores.removal["cognitive"], less_than_passed=difference)
    monkeypatch.setitem(vars(scores), "removal", {"cognitive": changed})
    (table, *_) = removal_tables([scores])
    assert table.frame["failed − passed"].to_list() == ["25.0 points [-54.3, 25.0], one-sided"]


def test_a_difference_of_two_skills_is_in_points(runs: dict[str, Path]) -> None:
    scores, other = load_intent(runs["discriminating"]), load_intent(runs["sycophant"])
    for results in ((scores,), (scores, other)):
        rows = [table.frame.to_dicts() for table in (*competency_tables(results), *reading_tables(results))]
        asymmetry = [row for table in rows for row in table if "prospective − retrospective" in row.values()]
        cells = [str(cell) for row in asymmetry for cell in row.values()]
        assert asymmetry and not any("%" in cell for cell in cells)
        assert sum(" points" in cell for cell in cells) >= 3
    both = compare(runs["discriminating"], runs["sycophant"])
    assert (by_key(both.numbers, "asymmetry").unit, by_key(both.numbers, "overall").unit) == ("points", "share")
