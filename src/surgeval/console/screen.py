"""How the command line looks: one console, and aligned tables.

Whatever is printed may hold names from files, and a terminal obeys the control characters it is sent: both consoles
spell them out themselves, so no command has to think of it.

A reader can close the pipe (`surgeval … | head`) or there may be none (`>&-`): inside `standard_streams` printing then
goes nowhere, and the command still ends with its own exit code.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from surgeval.errors import visible

if TYPE_CHECKING:
    import polars as pl

_BEFORE_INTERVAL = re.compile(r" (?=\[[^\[\]]*\]$)")
_PIECE = re.compile(r"\[[^\[\]]*\]|\S+")  # what no line should break: an interval, a word


@contextmanager
def standard_streams() -> Iterator[None]:
    """Standard output and error that survive their readers; an output that cannot be stored is still an error.

    >>> with standard_streams():
    ...     print("frames: 9")
    frames: 9
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without − shows ? instead of ending the command
    output = _Outlet(sys.stdout or Path(os.devnull).open("w"), BrokenPipeError)  # noqa: SIM115 - as long-lived as stdout
    errors = _Outlet(sys.stderr or Path(os.devnull).open("w"), OSError)  # noqa: SIM115 - there is no output to report to
    with redirect_stdout(cast(TextIO, output)), redirect_stderr(cast(TextIO, errors)):
        yield
    output.flush()
    errors.flush()


class _Outlet:
    """A stream that writes to nowhere from the first of the given errors on."""

    def __init__(self, stream: TextIO, unread: type[OSError]) -> None:
        self._stream, self._unread = stream, unread

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except self._unread:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except self._unread:
            self._give_up()

    def _give_up(self) -> None:
        # The descriptor itself: Python flushes once more at its end, and what it could not write is still held.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Screen(Console):
    """A console that spells out control characters; its own colours and cursor moves are no text and stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(visible(line) for line in segment.text.split("\n")), segment.style)


def rich_console() -> Console:
    r"""Standard output; markup is off because names come from files.

    >>> rich_console().print("[bold] \x1b[2J is a name")
    [bold] \x1b[2J is a name
    """
    return _Screen(markup=False, highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """An aligned table; numbers go to the right, those of a column with as many decimals.

    Where it is wider than the screen, intervals stand below their numbers: one that is broken cannot be read.

    >>> print_table("", ["video", "frames", "f1"], [("VID01", 9, 1.0), ("VID02", 1720, 0.625)])
    video  frames     f1
    VID01       9  1.000
    VID02    1720  0.625
    """
    rows = [list(row) for row in rows]
    numeric = [bool(rows) and all(_is_number(row[k]) for row in rows) for k in range(len(columns))]
    decimals = [max((_decimals(row[k]) for row in rows), default=0) for k in range(len(columns))]
    screen = rich_console()
    heads = [visible(name) for name in columns]
    cells = [[_cell(value, places) for value, places in zip(row, decimals, strict=True)] for row in rows]
    room = screen.width - 2 * (len(heads) - 1)
    if sum(max(map(cell_len, column)) for column in zip(heads, *cells, strict=True)) > room:
        heads, *cells = [[_BEFORE_INTERVAL.sub("\n", cell) for cell in row] for row in (heads, *cells)]
    table = Table(title=Text(visible(title)), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for head, right, width in zip(heads, numeric, _widths([heads, *cells], room), strict=True):
        table.add_column(Text(head), justify="right" if right else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    screen.print(table)


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int] | list[None]:
    """Widths with which no word or interval is broken, where lines must be; the narrow columns share what is left."""
    columns = list(zip(*rows, strict=True))
    wanted = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    widths = [max((cell_len(piece) for cell in column for piece in _PIECE.findall(cell)), default=0)
              for column in columns]  # fmt: skip
    if sum(wanted) <= room or sum(widths) > room:
        return [None] * len(columns)
    for _ in range(room - sum(widths)):
        lacking = [number for number in range(len(columns)) if widths[number] < wanted[number]]
        widths[min(lacking, key=widths.__getitem__)] += 1
    return widths


def print_frame(title: str, frame: pl.DataFrame) -> None:
    """A polars table, printed.

    >>> import polars as pl
    >>> print_frame("", pl.DataFrame({"f1": [0.5, None], "class": ["hook", "clip"]}))
    f1   class
    0.5  hook
         clip
    """
    print_table(title, frame.columns, frame.iter_rows())


def print_pieces(title: str, frame: pl.DataFrame) -> None:
    """A table in pieces that fit the screen, each with the first column; a broken row cannot be read.

    >>> import polars as pl
    >>> print_pieces("", pl.DataFrame({"video": ["VID01"], "frames": [9]}))
    video  frames
    VID01       9
    <BLANKLINE>
    """
    room = rich_console().width
    widths = {}
    for column in frame.get_columns():
        values = column.to_list()
        decimals = max(map(_decimals, values), default=0)
        widths[column.name] = max(len(column.name), *(cell_len(_cell(value, decimals)) for value in values), 1) + 2
    first, *others = frame.columns
    pieces: list[list[str]] = [[first]]
    for name in others:
        if len(pieces[-1]) > 1 and sum(widths[column] for column in [*pieces[-1], name]) - 2 > room:
            pieces.append([first])
        pieces[-1].append(name)
    for number, names in enumerate(pieces):
        print_frame(title if number == 0 else "", frame.select(names))
        rich_console().print()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimals(value: object) -> int:
    """How many of three decimals a value needs."""
    if not isinstance(value, float) or not math.isfinite(value):
        return 0
    return len(f"{value:.3f}".rstrip("0").partition(".")[2])


def _cell(value: object, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{decimals}f}"
    return visible(str(value))


def print_json(value: Any) -> None:
    """One JSON object on standard output and nothing else; characters that a terminal would obey are escaped.

    >>> print_json({"frames": 9})
    {
      "frames": 9
    }
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text) + "\n")
