from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from surgeval.progress import Display, advance, forwarded, phases, quiet, start_phase, time_line
from surgeval.progress.display import CountedKind, JobPart


def _terminal() -> tuple[io.StringIO, Console]:
    screen = io.StringIO()
    return screen, Console(file=screen, force_terminal=True, width=100)


def test_a_terminal_shows_the_first_phase_before_anything_is_done() -> None:
    screen, console = _terminal()
    with Display(console=console) as shown:
        shown.phase("loading phantom-clip")
        assert shown._bar is not None
        shown._bar.refresh()
        assert "loading phantom-clip" in screen.getvalue()


def test_names_from_files_are_shown_and_not_obeyed() -> None:
    screen, console = _terminal()
    with Display(console=console) as shown:
        shown.phase("[red]\x1b[2Jhook", frames=2)
        assert shown._bar is not None
        shown._bar.refresh()
        shown.note("the part of unit [u] is damaged")
    said = screen.getvalue()
    assert "\x1b[2J" not in said and "unit [u]" in said


def test_without_a_terminal_eager_phases_are_lines_at_once_and_others_only_when_they_last() -> None:
    for eager, expected in ((True, "loading\nframes 0/2\n"), (False, "")):
        screen = io.StringIO()
        with Display(eager=eager, console=Console(file=screen)) as shown:
            shown.phase("loading")
            shown.phase("looking", frames=2)
            advance("frames", 2)
        assert screen.getvalue() == expected


def test_a_phase_that_begins_anew_is_one_line_without_a_terminal() -> None:
    screen = io.StringIO()
    with Display(eager=True, console=Console(file=screen)) as shown:
        for _ in range(3):
            shown.phase("teacher", images=8)
        shown.phase("student", images=8)
    assert screen.getvalue() == "images 0/8\nimages 0/8\n"


def test_what_lasts_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    screen = io.StringIO()
    with Display(console=Console(file=screen, width=100)) as shown:
        shown.phase("looking", frames=100)
        for _ in range(100):
            now[0] += 1.0
            shown.advance("frames")
    lines = screen.getvalue().splitlines()
    assert lines[0] == "frames 2/100 · 1 frames/s · 1:38 left"
    assert 4 <= len(lines) <= 12


def test_the_time_left_knows_that_checks_take_longer_than_frames() -> None:
    kinds = {"frames": CountedKind(100, 50, 10.0), "checks": CountedKind(10, 5, 90.0)}
    assert JobPart("looking", kinds, began=0.0).text(100.0) == "frames 50/100, checks 5/10 · 5 frames/s · 1:40 left"


def test_the_time_of_a_phase_is_shared_out_by_the_work_of_its_kinds() -> None:
    kinds = {
        "frames": CountedKind(10, 10, 6.0),
        "checks": CountedKind(5, 5, 2.0),
    }  # two processes: 8 seconds of work in 4
    assert JobPart("looking", kinds, began=0.0).times(4.0) == {"frames": 3.0, "checks": 1.0}
    assert time_line({"loading": 3.1, "frames": 3.0}) == "time: 6.1 s (loading 3.1 s, frames 3.0 s)"


def test_an_open_display_is_shared_and_silence_reaches_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet(True), phases(eager=True) as outer:
        with phases(eager=True) as inner:
            assert inner is outer
        start_phase("page")
        assert list(outer.times) == ["page"]
    assert capsys.readouterr() == ("", "")


def test_threads_may_report_and_what_is_forwarded_is_not_counted_here() -> None:
    told: list[str] = []
    with Display(show=False) as shown:
        shown.phase("asking", questions=40)
        threads = [threading.Thread(target=advance, args=("questions",)) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with forwarded(lambda kind, count, seconds: told.append(kind)):
            advance("questions")
        assert shown.line().startswith("questions 40/40") and told == ["questions"]
