"""Every golden vqa file under `--golden DIR`: formats row by row, and whole runs, as the challenge's package has them.

Files are told apart by content: `rows` with an `outcome` are format rows, `requests` with `expected` whole runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.protocols.focus import FocusScores, score_focus
from surgeval.qa import ORENA_FOCUS, Panel, TableJudge, judge_format


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = golden_folder(metafunc.config) / "vqa"
    files = sorted(folder.glob("*.json"))
    if "format_row" in metafunc.fixturenames:
        rows = [row for file in files for row in load(file).get("rows", []) if "outcome" in row]
        metafunc.parametrize("format_row", rows, ids=[f"{row['id']}-{row['format']}" for row in rows])
    if "run_file" in metafunc.fixturenames:
        runs = [file for file in files if {"requests", "references", "expected"} <= load(file).keys()]
        metafunc.parametrize("run_file", runs, ids=[file.stem for file in runs])


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return "inf" if value == float("inf") else list(value) if isinstance(value, tuple) else value


def test_a_format_row_is_read_and_compared_as_the_original_does(format_row: dict[str, Any]) -> None:
    row = format_row
    verdict = judge_format(row["format"], row["kwargs"], row["reference"], row["response"], compat=ORENA_FOCUS)
    assert (verdict.state, verdict.correct, _plain(verdict.response)) == (row["outcome"], row["correct"], row["parsed"])
    assert verdict.reason
    assert (verdict.reference is not None) == row["reference_ok"]


def test_the_default_gives_the_suggested_verdict(format_row: dict[str, Any]) -> None:
    verdict = judge_format(format_row["format"], format_row["kwargs"], format_row["reference"], format_row["response"])
    assert verdict.state != "crash"
    assert verdict.reason
    if format_row["suggested_correct"] is not None:
        assert verdict.correct == format_row["suggested_correct"], verdict


def _panel(golden: dict[str, Any], folder: Path, compat: str | None) -> Panel:
    judges = max(map(len, golden["judge_verdicts"].values()), default=0)
    for number in range(judges):
        table = {qid: verdicts[number] for qid, verdicts in golden["judge_verdicts"].items()}
        (folder / f"judge{number}.json").write_text(json.dumps(table), encoding="utf-8")
    return Panel([TableJudge(folder / f"judge{number}.json") for number in range(judges)], compat=compat)


def _score(golden: dict[str, Any], folder: Path, compat: str | None) -> FocusScores:
    for name in ("responses", "requests", "references"):
        (folder / f"{name}.json").write_text(json.dumps(golden[name]), encoding="utf-8")
    return score_focus(
        *(folder / f"{name}.json" for name in ("responses", "requests", "references")),
        judge=_panel(golden, folder, compat), track=golden["track"], max_latency=golden["max_latency"], compat=compat,
        resamples=200,
    )  # fmt: skip


def test_a_run_scores_as_the_original_does(run_file: Path, tmp_path: Path) -> None:
    golden = load(run_file)
    expected, scores = golden["expected"], _score(golden, tmp_path, ORENA_FOCUS)
    columns = expected["per_question_columns"]
    found = scores.results.select(
        "qID",
        pl.col("correctness").alias("correct"),
        pl.col("status").eq("late").alias("timed_out"),
        pl.col("status").eq("missing").alias("missing"),
    ).select(columns)
    assert [list(row) for row in found.iter_rows()] == expected["per_question"]
    assert scores.pre_evaluation_score == pytest.approx(expected["pre_evaluation_score"], abs=1e-12)
    assert scores.flat_accuracy == pytest.approx(expected["flat_accuracy"], abs=1e-12)
    counted = (scores.n_timed_out, scores.n_missing, scores.n_orphan)
    assert counted == tuple(expected[key] for key in ("n_timed_out", "n_missing", "n_orphan_responses"))
    assert list(scores.judge_calls) == expected["judge_calls"]
    assert [(b.group, b.ood, b.count) for b in scores.buckets] == [
        (b["group"], b["ood"], b["count"]) for b in expected["buckets"]
    ]
    assert [b.accuracy for b in scores.buckets] == pytest.approx([b["accuracy"] for b in expected["buckets"]])
    levels = {(row["level"], row["name"]): row for row in scores.summary.iter_rows(named=True)}
    for level in expected["levels"]:
        row = levels[level["level"], level["name"]]
        assert row["count"] == level["count"]
        assert row["accuracy_mean_of_video_means"] == pytest.approx(level["accuracy_mean_of_video_means"], abs=1e-12)


def test_the_default_differs_only_where_a_status_or_reason_says_why(run_file: Path, tmp_path: Path) -> None:
    golden = load(run_file)
    original, ours = _score(golden, tmp_path, ORENA_FOCUS), _score(golden, tmp_path, None)
    both = original.results.join(ours.results, on="qID", suffix="_ours")
    assert both.height == original.results.height
    moved = both.filter(pl.col("correctness").ne_missing(pl.col("correctness_ours")))
    # A verdict that moved either is set aside or rejected by name, or is right for a reason of decimals.
    assert set(moved["status_ours"]) <= {"invalid", "bad_reference", "ok"}
    repaired = moved.filter(pl.col("status_ours") == "ok")
    assert repaired["correctness_ours"].all()
    assert set(ours.results.filter(pl.col("correctness").is_null())["status"]) <= {"bad_reference"}
