"""Tables: as the page shows them, and as files in CSV, Markdown and LaTeX.

`save_tables` writes full numbers as CSV, where a text that a spreadsheet would take for a formula gets an apostrophe in
front. `format_table` writes what goes into a paper or a README: numbers rounded, the interval in the cell of its
number, the best of a column bold, an asterisk where a difference is significant. Text is escaped for each format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl

from surgeval.errors import BadInput
from surgeval.files import failure_reason, guard, make_folder, path_inside, unguard, write_atomically
from surgeval.pages.glossary import Terms
from surgeval.pages.parts import Table
from surgeval.pages.safety import seen
from surgeval.stats import with_ends

__all__ = ["TableFormat", "distinct", "format_table", "page_table", "save_tables", "table_files", "table_formats",
           "unguarded", "write_table"]  # fmt: skip

TableFormat: TypeAlias = Literal["csv", "markdown", "latex"]
_ENDINGS: dict[TableFormat, str] = {"csv": ".csv", "markdown": ".md", "latex": ".tex"}
_BESIDE: ContextVar[tuple[TableFormat, ...]] = ContextVar("_BESIDE", default=())
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MOST_ROWS = 1000  # of a table on the page; the CSV has them all
_MOST_PRINTED, _MOST_PRINTED_FOLDED = 60, 12  # rows of a table on paper; page.css hides the others
_SHORT = 30  # rows that stand whole on the page: a box that hides the last one or two reads as if they were all
_FEW = 8  # rows that are not worth a sentence about leaving them out
_MOST_NAMES = 60  # of rows with nothing in them
_LONG = 18  # characters of a heading that may take a wider column
_NAMES = ("id",)  # numbers that are names
_GRADED = ("grade", "own grade")  # columns of grades
_SIGNIFICANT = "significant"  # the column that says of a row whether its difference is
_WITH_ENDS = re.compile(r"(-?[\d.]+)( %| points)? \[(-?[\d.]+), (-?[\d.]+)\]")  # as `stats.with_ends` writes it
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_NOTHING = ("", "–", None)
_MARKDOWN = re.compile(r"([\\`*_\[\]|~#$])")
_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
          "–": "--", "−": "$-$", "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$",
          "\u202f": r"\,", "\u00a0": "~", '"': "''", "|": r"\textbar{}", "`": r"\textasciigrave{}"}  # fmt: skip
_STAR = "An asterisk marks a significant difference (p ≤ 0.05)."


# Files


def unguarded(column: pl.Series) -> pl.Series:
    """A text column as it was before `save_tables` guarded it.

    >>> unguarded(pl.Series(["'=1", "grasper", None])).to_list()
    ['=1', 'grasper', None]
    """
    texts = [None if text is None else unguard(text) for text in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def distinct(names: Iterable[str]) -> list[str]:
    """The names with a number behind each that came before.

    >>> distinct(["total", "PWH", "total"])
    ['total', 'PWH', 'total (2)']
    """
    seen_names: set[str] = set()
    result = []
    for name in names:
        candidate, number = name, 1
        while candidate in seen_names:
            number += 1
            candidate = f"{name} ({number})"
        seen_names.add(candidate)
        result.append(candidate)
    return result


@contextmanager
def table_formats(*formats: str) -> Iterator[None]:
    """Within it `save_tables` writes these formats beside the CSV files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, table_formats("latex"):
    ...     [path.name for path in save_tables({"videos": pl.DataFrame({"video": ["V1"]})}, folder)]
    ['videos.csv', 'videos.tex']
    """
    token = _BESIDE.set(tuple(map(_check_format, formats)))
    try:
        yield
    finally:
        _BESIDE.reset(token)


def save_tables(
    tables: Mapping[str, pl.DataFrame], folder: str | Path, *, best: Mapping[str, bool] | None = None
) -> tuple[Path, ...]:
    """Write each table to `FOLDER/NAME.csv` and return the paths.

    Formats that `table_formats` asks for, and those that an earlier call left in the folder, are written beside it.
    `best` is as `format_table` takes it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = save_tables({"videos": pl.DataFrame({"video": ["=1", "V2"], "frames": [9, 10]})}, Path(folder))
    ...     path.name, path.read_text().splitlines()
    ('videos.csv', ['video,frames', "'=1,9", 'V2,10'])
    """
    folder = Path(folder)
    for name in tables:
        if not _NAME.fullmatch(name):
            raise BadInput(f"table {name!r}: expected a name of lower-case letters, digits, '-' and '_'")
    paths = []
    try:
        make_folder(path_inside(folder.parent, folder.name))
        for name, table in tables.items():
            for kind, ending in _ENDINGS.items():
                path = folder / f"{name}{ending}"
                if kind == "csv" or kind in _BESIDE.get() or path.is_file():
                    write_atomically(path, _encoded(table, kind, caption=name.replace("_", " "), best=best))
                    paths.append(path)
    except OSError as error:
        raise BadInput(f"{folder}: tables cannot be written: {failure_reason(error)}") from error
    return tuple(paths)


def table_files(csv: str, folder: Path) -> tuple[tuple[str, str], ...]:
    """The files of a table beside a page in `folder`, with the word for each: the CSV, and other formats that exist."""
    if not csv.endswith(".csv"):
        return (("CSV", csv),) if csv else ()
    words = {"markdown": "Markdown", "latex": "LaTeX"}
    others = [(words[kind], csv.removesuffix(".csv") + _ENDINGS[kind]) for kind in words]  # type: ignore[index]
    return (("CSV", csv), *((word, file) for word, file in others if (folder / file).is_file()))


def write_table(
    table: pl.DataFrame, path: str | Path, *, caption: str = "", note: str = "", best: Mapping[str, bool] | None = None
) -> Path:
    r"""Write one table as CSV, Markdown or LaTeX, as the ending of the path says (.csv, .md, .tex).

    A CSV holds full numbers; `caption`, `note` and `best` are those of `format_table`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_table(pl.DataFrame({"model": ["a_b"], "F1": [0.5]}), Path(folder) / "table.tex")
    ...     r"a\_b & 0.500" in path.read_text()
    True
    """
    path = Path(path)
    kind = next((kind for kind, ending in _ENDINGS.items() if ending == path.suffix.casefold()), None)
    if kind is None:
        raise BadInput(f"{path}: a table ends in {', '.join(_ENDINGS.values())}.")
    try:
        make_folder(path.parent)
        write_atomically(path, _encoded(table, kind, caption=caption, note=note, best=best))
    except OSError as error:
        raise BadInput(f"{path}: the table cannot be written: {failure_reason(error)}") from error
    return path


def format_table(
    table: pl.DataFrame, kind: TableFormat = "markdown", *, caption: str = "", note: str = "",
    best: Mapping[str, bool] | None = None,
) -> str:  # fmt: skip
    r"""The table as text in one of the formats.

    Columns `X_low` and `X_high`, or `low` and `high`, go into the cell of their number as `[low, high]`. `best` says of
    columns by name whether more is better: their best cells are bold. A column `significant` puts an asterisk behind
    the number of its row instead of standing in the table.

    >>> ends = {"F1_low": [0.6, 0.4], "F1_high": [0.8, 0.6]}
    >>> scores = pl.DataFrame({"model": ["net_1", "b*"], "F1": [0.71, 0.5], **ends})
    >>> print(format_table(scores, best={"F1": True}))
    | model | F1 |
    | :--- | ---: |
    | net\_1 | **0.710 [0.600, 0.800]** |
    | b\* | 0.500 [0.400, 0.600] |
    <BLANKLINE>
    >>> print(format_table(scores.head(1), "latex").splitlines()[-4])
    net\_1 & 0.710 [0.600, 0.800] \\
    """
    _check_format(kind)
    if kind == "csv":
        return str(_guarded(table).write_csv())
    printed = _Printed.of(table, best or {})
    remark = " ".join(filter(None, (note, _STAR if printed.starred else "")))
    return (_markdown if kind == "markdown" else _latex)(printed, caption, remark)


def _check_format(kind: str) -> TableFormat:
    for known in _ENDINGS:
        if known == kind:
            return known
    raise BadInput(f"Unknown table format {kind!r}. Choose one of {', '.join(_ENDINGS)}.")


def _encoded(table: pl.DataFrame, kind: TableFormat, **options: Any) -> bytes:
    return format_table(table, kind, **options).encode("utf-8", "replace")


def _guarded(table: pl.DataFrame) -> pl.DataFrame:
    # Column by column, not by name: polars reads a column name like "^.*$" as a pattern.
    heads = distinct(guard(name) for name in table.columns)
    return pl.DataFrame(
        [
            pl.Series(head, [guard(text) if isinstance(text, str) else text for text in column.to_list()])
            if column.dtype == pl.String
            else column.alias(head)
            for head, column in zip(heads, table.get_columns(), strict=True)
        ]
    )


@dataclass(frozen=True, slots=True)
class _Printed:
    """A table as print has it: heads, whether each column stands right, rows of texts, and which cells are bold."""

    heads: tuple[str, ...]
    right: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]]
    starred: bool

    @classmethod
    def of(cls, table: pl.DataFrame, best: Mapping[str, bool]) -> _Printed:
        names = table.columns
        ends = {name: pair for name in names if (pair := _ends_of(name, names))}
        marks = _SIGNIFICANT if table.schema.get(_SIGNIFICANT) == pl.Boolean else ""
        hidden = {end for pair in ends.values() for end in pair} | ({marks} if marks else set())
        kept = [(name, table[name]) for name in names if name not in hidden]
        starred = next((name for name in ends if name == "difference"), next(iter(ends), "")) if marks else ""
        columns, bold = [], set[tuple[int, int]]()
        for place, (name, column) in enumerate(kept):
            texts = _texts(column, *(table[end] for end in ends.get(name, ())))
            if name in best:
                bold |= {(row, place) for row in _best_rows(column, higher=best[name])}
            if starred and name == starred:
                texts = [f"{text}*" if mark else text for text, mark in zip(texts, table[marks], strict=True)]
            columns.append(texts)
        right = tuple(_stands_right(column) for _, column in kept)
        rows = tuple(zip(*columns, strict=True))
        return cls(tuple(name for name, _ in kept), right, rows, frozenset(bold), bool(starred and table[marks].any()))


def _ends_of(name: str, names: Sequence[str]) -> tuple[str, str] | None:
    for low, high in ((f"{name}_low", f"{name}_high"), ("low", "high")):
        if low in names and high in names and (low != "low" or name in ("estimate", "difference", "correlation")):
            return low, high
    return None


def _texts(column: pl.Series, *ends: pl.Series) -> list[str]:
    if column.dtype == pl.Boolean:
        return [{True: "yes", False: "no"}.get(value, "–") for value in column.to_list()]
    if not column.dtype.is_float():
        return ["–" if value is None else str(value) for value in column.to_list()]
    if ends:
        return [with_ends(*row) for row in zip(column.to_list(), *(end.to_list() for end in ends), strict=True)]
    values = [value for value in column.to_list() if value is not None and math.isfinite(value)]
    places = 0 if all(value == int(value) for value in values) else 3 if all(abs(v) <= 100 for v in values) else 1
    return ["–" if value is None or math.isnan(value) else f"{value:.{places}f}" for value in column.to_list()]


def _number_in(value: object) -> float | None:
    """The number of a cell, also of one that was made into text with its interval."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return None if math.isnan(value) else float(value)
    match = _NUMBER.match(value) if isinstance(value, str) else None
    return float(match[0].replace("−", "-")) if match else None


def _best_rows(column: pl.Series, *, higher: bool) -> list[int]:
    numbers = {row: number for row, value in enumerate(column.to_list()) if (number := _number_in(value)) is not None}
    if len(numbers) < 2:
        return []
    top = (max if higher else min)(numbers.values())
    return [row for row, number in numbers.items() if number == top]


def _stands_right(column: pl.Series) -> bool:
    if column.dtype.is_numeric():
        return True
    texts = [text for text in column.to_list() if text not in _NOTHING]
    return bool(texts) and all(isinstance(text, str) and _NUMBER.match(text) for text in texts)


def _markdown(table: _Printed, caption: str, note: str) -> str:
    def cell(text: str) -> str:
        plain = " ".join(seen(text).split())
        number = plain.removesuffix("*")
        safe = plain.replace("*", r"\*") if _WITH_ENDS.fullmatch(number) else _MARKDOWN.sub(r"\\\1", plain)
        return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def shown(row: int, place: int, text: str) -> str:
        return f"**{cell(text)}**" if (row, place) in table.bold else cell(text)

    lines = [f"**{cell(caption)}**", ""] if caption else []
    lines.append(f"| {' | '.join(map(cell, table.heads))} |")
    lines.append(f"| {' | '.join('---:' if right else ':---' for right in table.right)} |")
    for row, texts in enumerate(table.rows):
        lines.append(f"| {' | '.join(shown(row, place, text) for place, text in enumerate(texts))} |")
    return "\n".join([*lines, *(["", cell(note)] if note else []), ""])


def _latex(table: _Printed, caption: str, note: str) -> str:
    def cell(text: str) -> str:
        return "".join(_LATEX.get(sign, sign) for sign in " ".join(seen(text).split()))

    def shown(row: int, place: int, text: str) -> str:
        return rf"\textbf{{{cell(text)}}}" if (row, place) in table.bold else cell(text)

    def line(cells: Iterable[str]) -> str:
        text = " & ".join(cells)
        # A "[" or "*" at the beginning would be an argument of the command on the line before.
        return rf"{'{}' if text.startswith(('[', '*')) else ''}{text} \\"

    head = ["% needs \\usepackage{booktabs}", r"\begin{table}", r"\centering"]
    head += [rf"\caption{{{cell(caption)}}}"] if caption else []
    head.append(rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in table.right)}}}")
    body = [line(shown(row, place, text) for place, text in enumerate(texts)) for row, texts in enumerate(table.rows)]
    end = [r"\bottomrule", r"\end{tabular}", *([rf"\par\smallskip\footnotesize {cell(note)}"] if note else []),
           r"\end{table}", ""]  # fmt: skip
    return "\n".join([*head, r"\toprule", line(map(cell, table.heads)), r"\midrule", *body, *end])


# On the page


def page_table(table: Table, terms: Terms) -> dict[str, Any]:
    """Column heads, and rows of cells (text, sort key, is a number, drawing, is a grade); `empty` names blank rows.

    A grade is shown as a coloured word, and a cell with an interval bar has the bar below its text.
    """
    full, blank = (table.frame, []) if table.bars else _parted(table.frame)
    frame = full.head(_MOST_ROWS)
    floats = [value for column in frame.get_columns() if column.dtype.is_float() for value in column.to_list()]
    places = max((_decimals(value) for value in floats if value is not None and math.isfinite(value)), default=0)
    columns = [_column(column, places) for column in frame.get_columns()]
    if table.explained and columns:
        columns[0] = [(terms.cell(text), key, numeric) for text, key, numeric in columns[0]]
    bars = [table.bars.get(name, ()) for name in frame.columns]
    graded = [name in _GRADED for name in frame.columns]
    drawn = [[(*cell, bar.svg() if bar else "", grade) for cell, bar in zip_longest(column, drawings[: len(column)])]
             for column, drawings, grade in zip(columns, bars, graded, strict=True)]  # fmt: skip
    printed = _MOST_PRINTED_FOLDED if table.folded else _MOST_PRINTED
    heads = [(column.name, _head_class(column), terms.described(column.name)) for column in frame.get_columns()]
    return {
        "heads": heads,
        "rows": list(zip(*drawn, strict=True)),
        "tall": frame.height > _SHORT,
        "hidden": full.height - frame.height,
        "empty": blank[:_MOST_NAMES],
        "empty_rows": len(blank),
        "total": table.frame.height,
        "cut": printed if full.height > printed + _FEW else 0,
    }


def _head_class(column: pl.Series) -> str:
    """Classes of a heading: numbers stand right, and a long one is not squeezed to a word a line."""
    return " ".join(
        name for name, is_so in (("n", column.dtype.is_numeric()), ("long", len(column.name) > _LONG)) if is_so
    )


def _parted(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The rows that say something, and the names of the others: all of their numbers are 0 or missing."""
    names = [column.name for column in frame.get_columns() if column.name in _NAMES or not column.dtype.is_numeric()]
    named = names[: max(1, next((k for k, name in enumerate(frame.columns) if name not in names), 1))]
    values = [name for name in frame.columns if name not in named]
    label = next((name for name in named if frame.schema[name] == pl.String), None)
    if not values or label is None or frame.height < 3:
        return frame, []
    rows = list(frame.iter_rows(named=True))
    blank = [all(_says_nothing(row[name]) for name in values) for row in rows]
    if sum(blank) < 2 or all(blank):
        return frame, []
    informative = frame.filter(pl.Series([not empty for empty in blank]))
    return informative, [str(row[label]) for row, empty in zip(rows, blank, strict=True) if empty]


def _says_nothing(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value in _NOTHING or (number and (value == 0 or value != value))


def _column(column: pl.Series, places: int) -> list[tuple[str, str, bool]]:
    """Cells as (text, sort key, is a number); fractions have as many decimals as the table needs."""
    values = column.to_list()
    if not column.dtype.is_numeric():
        return [("–", "", False) if value is None else (_unbroken(str(value)), "", False) for value in values]
    places = places if column.dtype.is_float() else 0
    cells = []
    for value in values:
        if value is None or math.isnan(value):
            cells.append(("–", "", True))
        elif math.isinf(value):
            cells.append(("∞" if value > 0 else "−∞", "Infinity" if value > 0 else "-Infinity", True))
        else:
            cells.append((f"{value:,.{places}f}".replace(",", "\u202f"), repr(value), True))
    return cells


def _unbroken(text: str) -> str:
    """A narrow column may break between a number and its interval, not inside the interval."""
    return _WITH_ENDS.sub(_kept_together, text)


def _kept_together(match: re.Match[str]) -> str:
    value, unit, low, high = match.groups()
    return f"{value}{(unit or '').replace(' ', chr(0xA0))} [{low},\u00a0{high}]"


def _decimals(value: float) -> int:
    return next((places for places in range(2) if abs(value - round(value, places)) < 1e-9), 2)
