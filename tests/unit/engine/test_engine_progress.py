from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from surgeval.engine import Manifest, RunSummary, Unit, run
from surgeval.engine._parts import Failure, PartInfo
from surgeval.engine._progress import Progress, rates
from surgeval.engine._tally import RunTally
from surgeval.records import Case


def worker(payload: object) -> list[Case]:
    return [Case("a", "VID01")]


def test_a_silent_run_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run([Unit("u")], worker, folder=tmp_path, manifest=Manifest("demo"), progress=False)
    assert capfd.readouterr() == ("", "")


def test_a_run_without_a_terminal_prints_plain_lines_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([Unit("u")], worker, folder=tmp_path / "demo", manifest=Manifest("demo"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "demo: 1 units, 0 of them finished before\n"


def test_a_terminal_shows_units_rates_and_the_remaining_time() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    tally = RunTally(units=4, resumed=1)
    with Progress("demo", show=True, console=console) as shown:
        shown.begin(tally)
        tally.add(PartInfo("n", "u", 5, (Failure("error", "no [answer]", 2),), 0.1), resumed=False)
        shown.note("the part of unit [u] is damaged")
        shown.update(tally, 5)
    text = screen.getvalue()
    assert "2/4" in text and "cases/s" in text and "left, 1 failed" in text and "unit [u]" in text


def test_units_found_finished_do_not_flatter_the_rate() -> None:
    assert rates(RunTally(units=100, done=0, resumed=50), 0, 10.0).startswith("0 units/s")
    assert rates(RunTally(units=100, done=10, resumed=80), 10, 10.0) == "1 units/s, 1 cases/s, 0:00:10 left"


def test_reasons_are_bounded_and_sorted_by_their_number() -> None:
    tally = RunTally(units=1000)
    for i in range(1000):
        tally.add(PartInfo("n", f"u{i}", 1, (Failure("error", f"request {i}", 1),), 0.1), resumed=False)
    summary = tally.summary(Path("runs/x"), 3661.0)
    assert len(summary.failures) == 201
    assert (summary.failures[0].reason, summary.failures[0].cases) == ("other reasons", 800)
    assert summary.to_frame()["cases"].sum() == summary.failed_cases == 1000
    text = str(summary)
    assert text.startswith("runs/x: 1,000 units, 1,000 cases in 1:01:01\n")
    assert text.endswith("and 196 more reasons")


def test_a_summary_without_failures_is_one_line_and_an_empty_table() -> None:
    summary = RunSummary(Path("runs/x"), 1, 0, 1, 0, 0, 1, 0, 0.2)
    assert str(summary) == "runs/x: 1 unit (1 were there already), 1 case in 0:00:00"
    assert summary.to_frame().is_empty() and summary.exit_code == 0
