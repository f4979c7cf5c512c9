"""Nothing that a terminal obeys reaches it from data, whoever prints it."""

from __future__ import annotations

import io
import json
import sys

import polars as pl
import pytest
from rich.text import Text

from surgeval.console import print_frame, print_json, print_pieces, print_table, rich_console

CLEAR = "hook\x1b[2J\x9b31m\u202e"
SPELT = "hook\\x1b[2J\\x9b31m\\u202e"


def test_every_way_of_printing_spells_control_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.DataFrame({"video": [CLEAR], CLEAR: [1]})
    print_table(CLEAR, [CLEAR, "n"], [(CLEAR, 1)])
    print_frame(CLEAR, table)
    print_pieces(CLEAR, table)
    rich_console().print(CLEAR)
    rich_console().print(Text(CLEAR), f"first\nsecond {CLEAR}")
    said = capsys.readouterr().out
    assert [c for c in said if not c.isprintable() and c != "\n"] == []
    assert said.count(SPELT) == 3 + 3 + 3 + 1 + 2
    assert "first\nsecond" in said


def test_colours_of_our_own_still_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    print_table("title", [CLEAR], [(CLEAR,)])
    said = screen.getvalue()
    assert "\x1b[1m" in said  # the bold head
    assert "\x1b[2J" not in said
    assert "\x9b" not in said


def test_json_is_the_same_value_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    value = {CLEAR: [CLEAR, "Gallenblasenentfernung ü", "\U000e0001"]}
    print_json(value)
    said = capsys.readouterr().out
    assert [c for c in said if not c.isprintable() and c != "\n"] == []
    assert json.loads(said) == value
    assert "ü" in said


def test_a_column_has_one_way_of_writing_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"score": [1.0, 0.216, None], "half": [0.5, 2.0, float("nan")], "baseline": [True, False, False]}
    print_frame("", pl.DataFrame({"model": ["a", "b", "c"], **rows}))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["a", "1.000", "0.5", "yes"], ["b", "0.216", "2.0", "no"], ["c", "nan", "no"]]


def test_an_interval_stands_whole_on_one_line_however_narrow_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals = ["45.9 % [27.0, 64.8]", "0.418 [-0.324, 0.513]"]
    for columns in (80, 50):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table("", ["", "phantom-clip-resnet", "IVT mAP50"], [["right when it is grounded", *intervals]])
        shown = capsys.readouterr().out
        assert "phantom-clip-resnet" in shown and max(map(len, shown.splitlines())) <= columns
        assert all(part in shown for part in ("[27.0, 64.8]", "[-0.324, 0.513]"))
    assert "45.9 % [" not in shown
    for columns in range(34, 50):  # a heading's too
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table("", ["model", "pre-evaluation score, % [95 %]"], [["a_long_model_name", "21.6 [15.5, 35.1]"]])
        assert "[95 %]" in capsys.readouterr().out
