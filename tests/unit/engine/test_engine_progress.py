from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from surgeval.engine import Manifest, RunSummary, Unit, run
from surgeval.engine.parts import Failure, PartInfo
from surgeval.engine.run import RunTally
from surgeval.engine.units import name_jobs
from surgeval.progress import Display, advance
from surgeval.records import Case


def worker(payload: object) -> list[Case]:
    return [Case("a", "VID01")]


def test_a_silent_run_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run([Unit("u")], worker, folder=tmp_path, manifest=Manifest("demo"), progress=False)
    assert capfd.readouterr() == ("", "")


def counting(payload: int) -> Iterator[Case]:
    for number in range(payload):
        yield Case(f"{payload}/{number}", "VID01")
        advance("frames")


def test_a_run_without_a_terminal_prints_plain_lines_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([Unit("u")], worker, folder=tmp_path / "demo", manifest=Manifest("demo"))
    run([Unit("u"), Unit("v")], worker, folder=tmp_path / "demo", manifest=Manifest("demo"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "units 0/1\ndemo: 1 of 2 units were finished before\nunits 0/1\n"


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_workers_report_frames_wherever_they_run(tmp_path: Path, executor: str) -> None:
    units = [Unit(f"u{n}", n, steps={"frames": n}) for n in (3, 4)]
    with Display(show=False) as shown:
        run(units, counting, folder=tmp_path / "demo", manifest=Manifest("demo"), executor=executor, processes=2)
        assert shown.line().startswith("frames 7/7 · ")
        assert set(shown.times) == {"frames"}


def test_the_second_half_of_a_run_is_no_resumed_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run([Unit("u")], worker, folder=tmp_path / "demo", manifest=Manifest("demo"))
    run([Unit("u"), Unit("v")], worker, folder=tmp_path / "demo", manifest=Manifest("demo"), continued=True)
    assert capsys.readouterr().err == "units 0/1\nunits 0/1\n"


def test_steps_do_not_change_the_name_of_a_unit() -> None:
    plain, counted = (
        name_jobs(Manifest("demo").identity(), [unit]) for unit in (Unit("u", 1), Unit("u", 1, steps={"frames": 9}))
    )
    assert plain[0].name == counted[0].name


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
    summary = RunSummary(
        folder=Path("runs/x"), units=1, done=0, resumed=1, failed=0, damaged=0, cases=1, failed_cases=0, seconds=0.2
    )
    assert str(summary) == "runs/x: 1 unit (1 were there already), 1 case in 0:00:00"
    assert summary.to_frame().is_empty() and summary.exit_code == 0
