"""Tables as CSV, Markdown and LaTeX: one writer, each format with its own escapes."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from surgeval.errors import BadInput
from surgeval.pages import Section, Table, format_table, save_tables, table_formats, write_page, write_table

SCORES = pl.DataFrame(
    {"model": ["net", "twin", "third"], "F1": [0.7, 0.7, None], "F1_low": [0.6, None, None],
     "F1_high": [0.8, None, None], "seconds": [2.0, 1.5, 3.0], "frames": [10, 20, 30]}
)  # fmt: skip


def rows_of(markdown: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in markdown.splitlines() if "|" in line]


def test_the_interval_stands_in_the_cell_of_its_number() -> None:
    heads, _, *rows = rows_of(format_table(SCORES))
    assert heads == ["model", "F1", "seconds", "frames"]
    assert [row[1] for row in rows] == ["0.700 [0.600, 0.800]", "0.700", "–"]


def test_every_best_number_of_a_column_is_bold_in_its_direction() -> None:
    _, _, *rows = rows_of(format_table(SCORES, best={"F1": True, "seconds": False}))
    assert [[n for n, cell in enumerate(row) if cell.startswith("**")] for row in rows] == [[1], [1, 2], []]
    latex = format_table(SCORES, "latex", best={"F1": True})
    assert latex.count(r"\textbf{") == 2 and r"\begin{tabular}{lrrr}" in latex
    assert [latex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_an_asterisk_marks_a_significant_difference_and_the_note_says_so() -> None:
    table = pl.DataFrame({"number": ["F1", "AP"], "difference": [0.2, 0.1], "low": [0.1, -0.1], "high": [0.3, 0.3],
                          "significant": [True, False]})  # fmt: skip
    text = format_table(table, "latex", note="Six videos.")
    assert "0.200 [0.100, 0.300]* " in text and "0.100 [-0.100, 0.300] " in text
    assert "significant &" not in text and "Six videos. An asterisk marks" in text
    assert "asterisk" not in format_table(table.with_columns(significant=pl.lit(value=False)), "latex")


HOSTILE = r"""=1+1|*a* _b_ `c` [x](javascript:alert(1)) <script> & \input{/etc/passwd} $x^2$ #1 50% ~"""


def test_text_from_data_is_escaped_for_each_format() -> None:
    table = pl.DataFrame({HOSTILE: [f"{HOSTILE}\nnext \u202eline"]})
    assert format_table(table, "csv").splitlines()[0].lstrip('"').startswith("'=1+1|")
    markdown = format_table(table)
    assert len(markdown.splitlines()) == 3 and "<script" not in markdown and "\u202e" not in markdown
    assert not re.search(r"(?<!\\)[*_`\[|](?! :?-| )", markdown.splitlines()[2][2:-2])
    latex = format_table(table, "latex")
    (body,) = [line for line in latex.splitlines() if "next" in line]
    plain = re.sub(
        r"\\(?:textbackslash|textbar|textasciigrave|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]",
        "",
        body,
    )
    assert not set(plain.removesuffix(r" \\")) & set("\\&%$#_{}~^<>")


def test_other_formats_are_written_on_request_and_kept_up_to_date(tmp_path: Path) -> None:
    with table_formats("latex"):
        save_tables({"scores": SCORES}, tmp_path / "tables")
    save_tables({"scores": SCORES.head(1), "more": SCORES}, tmp_path / "tables")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["more.csv", "scores.csv", "scores.tex"]
    assert "third" not in (tmp_path / "tables" / "scores.tex").read_text()
    section = Section(
        "One", tables=tuple(Table(name, SCORES, file=f"tables/{name}.csv") for name in ("scores", "more"))
    )
    page = write_page(tmp_path / "report.html", "Page", [section]).read_text()
    assert re.findall(r'class="file" href="([^"]+)">(\w+)<', page) == [
        ("tables/scores.csv", "CSV"), ("tables/scores.tex", "LaTeX"), ("tables/more.csv", "CSV"),
    ]  # fmt: skip


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Choose one of csv, markdown, latex"), table_formats("bibtex"):
        pass
    with pytest.raises(BadInput, match=r"a table ends in \.csv, \.md, \.tex"):
        write_table(SCORES, tmp_path / "scores.xlsx")


def test_a_label_in_brackets_is_no_argument_of_the_latex_line_above_it() -> None:
    table = pl.DataFrame({"[x]": ["[3pt] net", "*twin", "net|x"]})
    lines = format_table(table, "latex").splitlines()
    assert {"{}[x] \\\\", "{}[3pt] net \\\\", "{}*twin \\\\", "net\\textbar{}x \\\\"} < set(lines)


def test_a_dollar_sign_opens_no_formula_in_markdown() -> None:
    assert r"\$x\$" in format_table(pl.DataFrame({"model": ["$x$"]}))
