"""Tables 1 and 2 of the early text in its layout, from cases small enough to work out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from surgeval.engine import Manifest, RunRecord
from surgeval.protocols.surgxbench import tables
from surgeval.protocols.surgxbench.papers import left_out, paper_table_1, paper_table_2
from surgeval.protocols.surgxbench.result import SurgXScores

RECORD = RunRecord(
    **Manifest("surgxbench", config={}, model={}).stored(), status="done", units=1, finished=1, failed=0, cases=1
)
# video, present, AC, AA, chance, excluded; all were predicted
SEEN = (
    ("A", True, 0.4, 0.2, 0.1, ""),
    ("A", False, 0.2, 0.0, 0.1, ""),
    ("B", True, 0.6, 0.6, 0.3, ""),
    ("B", True, None, None, None, "no_gt"),
)
# video, valid, ARS
ACTED = (
    ("A", True, 0.5), ("A", True, 0.0), ("A", False, None), ("A", False, None),
    ("B", True, 0.7), ("B", False, None),
)  # fmt: skip


def _cases(seen: tuple[Any, ...] = SEEN, acted: tuple[Any, ...] = ACTED) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"task": "instruments", "cluster": video, "predicted": True, "present": present, "ac": ac, "aa": aa,
         "chance": chance, "area": 0.2, "excluded": excluded}
        for video, present, ac, aa, chance, excluded in seen
    ]  # fmt: skip
    rows += [
        {"task": "ars", "cluster": video, "valid": valid, "ars": ars, "excluded": "", "area": 0.2,
         **{f"match_{name}": valid for name in ("instrument", "verb", "target", "triplet")}}
        for video, valid, ars in acted
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _with(name: str, cases: pl.DataFrame, made: dict[str, pl.DataFrame]) -> SurgXScores:
    return SurgXScores(name=name, record=RECORD, classes=("hook",), cases=cases, numbers={}, detail_tables=made)


def _scores(name: str, cases: pl.DataFrame) -> SurgXScores:
    made = {
        "table1": tables.early_instruments(cases),
        "table2": tables.early_triplets(cases),
    }
    return _with(name, cases, made)


def _other(seen: tuple[Any, ...] = SEEN) -> SurgXScores:
    """A model measured on video A and on a video C that the first never met."""
    renamed = tuple(("C" if row[0] == "B" else row[0], *row[1:]) for row in seen)
    return _scores("blip", _cases(renamed, tuple(("C" if row[0] == "B" else row[0], *row[1:]) for row in ACTED)))


def test_table_1_has_a_row_per_model_and_two_columns_per_video() -> None:
    table = paper_table_1([_scores("clip", _cases())])
    assert table.columns[:5] == ["model", "A τ-AC", "A τ-AA", "B τ-AC", "B τ-AA"]
    row = table.row(0, named=True)
    assert row["model"] == "clip"
    assert row["A τ-AC"] == pytest.approx(0.3)
    assert row["A τ-AA"] == pytest.approx(0.1)
    assert row["B τ-AC"] == pytest.approx(0.6)  # the frame without annotation is left out, not a zero
    assert row["all videos τ-AC"] == pytest.approx(1.2 / 3)
    assert row["all videos τ-AA"] == pytest.approx(0.8 / 3)


def test_only_what_is_over_all_videos_has_an_interval() -> None:
    first = paper_table_1([_scores("clip", _cases())])
    ends = [name for name in first.columns if name.endswith(("_low", "_high"))]
    assert ends == [f"all videos τ-{kind}_{end}" for kind in ("AC", "AA") for end in ("low", "high")]
    row = first.row(0, named=True)
    # Two videos tell next to nothing: t with one degree of freedom reaches past what a share can be.
    assert (row["all videos τ-AC_low"], row["all videos τ-AC_high"]) == (0.0, 1.0)
    second = paper_table_2([_scores("clip", _cases())])
    assert second["clip ARS_low"].to_list()[:2] == [None, None]
    assert second.row(2, named=True)["clip ARS_low"] == 0.0
    assert second.row(2, named=True)["clip ARS_high"] == 1.0


def test_table_2_has_a_row_per_video_and_prints_coverage_in_per_cent() -> None:
    model = _scores("clip", _cases())
    table = paper_table_2([model])
    assert table["video"].to_list() == ["A", "B", "all videos"]
    assert table["clip ARS"].to_list() == pytest.approx([0.25, 0.7, 0.4])
    assert table["clip V/T (%)"].to_list() == pytest.approx([50, 50, 50])
    assert table["clip Z/V (%)"].to_list() == pytest.approx([50, 0, 100 / 3])
    high = model.tables["table2"]["zero_high"].to_list()[-1]
    assert 1 / 3 < high < 1
    assert table.row(2, named=True)["clip Z/V (%)_high"] == pytest.approx(100 * high)  # the ends are per cent too


def test_a_video_that_one_model_never_met_is_empty_there() -> None:
    models = [_scores("clip", _cases()), _other()]
    first = paper_table_1(models)
    assert first["model"].to_list()[:2] == ["clip", "blip"]
    assert first["B τ-AC"].to_list()[:2] == [pytest.approx(0.6), None]
    assert first["C τ-AC"].to_list()[:2] == [None, pytest.approx(0.6)]
    second = paper_table_2(models)
    assert second["video"].to_list() == ["A", "B", "C", "all videos"]
    assert second["blip ARS"].to_list() == [pytest.approx(0.25), None, pytest.approx(0.7), pytest.approx(0.4)]


def test_chance_stands_once_where_the_models_were_measured_on_the_same_predictions() -> None:
    same = paper_table_1([_scores("clip", _cases()), _scores("twin", _cases())])
    assert same["model"].to_list() == ["clip", "twin", "chance"]
    assert same.row(2, named=True)["all videos τ-AC"] == pytest.approx(0.5 / 3)
    assert same.row(2, named=True)["A τ-AA"] is None
    other = paper_table_1([_scores("clip", _cases()), _other()])
    assert other["model"].to_list() == ["clip", "blip", "chance (clip)", "chance (blip)"]


@pytest.mark.parametrize("name", ["overall", "all videos", "model", "video", "^.*$", "all videos τ-AC"])
def test_a_video_may_be_called_anything(name: str) -> None:
    seen = tuple((name if row[0] == "A" else row[0], *row[1:]) for row in SEEN)
    acted = tuple((name if row[0] == "A" else row[0], *row[1:]) for row in ACTED)
    model = _scores("clip", _cases(seen, acted))
    first, second = paper_table_1([model]), paper_table_2([model])
    assert first.row(0, named=True)[f"{name} τ-AC"] == pytest.approx(0.3)
    total = second["video"].to_list()[-1]
    assert second["video"].n_unique() == 3
    assert second["clip ARS"].to_list()[-1] == pytest.approx(0.4)
    assert first.row(0, named=True)[f"{total} τ-AC"] == pytest.approx(0.4)


def test_without_a_run_of_the_early_profile_there_are_no_such_tables() -> None:
    plain = _with("clip", _cases(), {})
    assert paper_table_1([plain]).is_empty()
    assert paper_table_2([plain]).is_empty()
    assert paper_table_1([plain, _scores("early", _cases())])["model"].to_list() == ["early", "chance"]


def test_what_was_left_out_is_told_with_its_reason_and_adds_up() -> None:
    seen = (*SEEN, ("A", True, None, None, None, "constant no_gt"), ("A", True, 0.5, None, 0.1, ""))
    table = left_out([_scores("clip", _cases(seen))])
    rows = table.filter(pl.col("what").str.contains("AC"))
    assert dict(rows.select("became", "cases").iter_rows()) == {
        "counted": 3,
        "counted in AC, left out of AA: no visible box of the instrument": 1,
        "left out: no_gt": 1,
        "left out: constant and no_gt": 1,
    }
    assert rows["of"].unique().to_list() == [6]
    assert rows["percent"].sum() == pytest.approx(100)
    valid = table.filter(pl.col("what").str.contains("ARS"))
    assert valid.select("became", "cases", "of").rows() == [("counted", 3, 3)]  # only valid frames have an ARS


def test_a_prediction_that_was_not_made_is_not_left_out() -> None:
    missed = pl.DataFrame([{"task": "instruments", "cluster": "A", "predicted": False, "present": True,
                            "excluded": "no_map"}])  # fmt: skip
    cases = pl.concat([_cases(), missed], how="diagonal_relaxed")
    table = left_out([_with("clip", cases, {})])
    assert "left out: no_map" not in table["became"].to_list()
    assert table.filter(pl.col("what").str.contains("AC"))["of"].unique().to_list() == [4]
