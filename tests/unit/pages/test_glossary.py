"""Jargon is explained where it stands: which words are terms, and that the glossary lists those a page uses."""

from __future__ import annotations

import re

import polars as pl
import pytest
from tools.written_pages import main

from surgeval.figures import Estimate, Series, bars, estimates, heatmap
from surgeval.pages import CardNumber, Scorecard, Section, Table, glossary, render_page
from surgeval.pages.glossary import Glossary, Terms
from surgeval.protocols.registry import descriptors
from surgeval.stats import glossary_entries

MEASURES = [measure for protocol in descriptors().values() for measure in protocol.declared_measures()]
WANTED = (
    "AC AA |A|/HW TP-AA TP-AC FP-AC RAS ARS lift chance bucket Copeland I V T IVT IV IT mAP50 mAP50:95 AP F1 coco ivtd "
    "ivtd-legacy IoU cluster two_level interval tau ood ICC kappa grounded P R AR"
)


def entries(html: str) -> list[str]:
    return re.findall(r'<dd id="term-([^"]+)">', html)


def links(html: str) -> list[str]:
    return re.findall(r'<a class="term" href="#term-([^"]+)"', html)


def test_the_documentation_has_the_same_terms_and_numbers() -> None:
    assert main(["--check"]) == 0, "run python tools/written_pages.py"


def test_a_declared_number_is_explained_nowhere_else() -> None:
    words = {term.name: term.says for term in glossary()}
    for protocol in descriptors().values():
        for term, _, says in glossary_entries(protocol.declared_measures()):
            assert words.get(term, says) == says, f"{protocol.name}: {term}"


def test_terms_are_named_once_and_explained_in_a_sentence() -> None:
    known = glossary(MEASURES)
    assert len({term.key for term in known}) == len({term.name for term in known}) == len(known) > 50
    assert all(term.key and term.says.endswith(".") and len(term.says) < 200 for term in known)


@pytest.mark.parametrize(
    "name",
    WANTED.split(),
)
def test_the_words_that_readers_ask_for_are_there(name: str) -> None:
    assert name in {term.name for term in glossary(MEASURES)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TP-AC is AC of right ones", ["tp-ac", "ac"]),
        ("mAP50:95 and mAP50", ["map50-95", "map50"]),
        ("Buckets and the bucket", ["bucket"]),  # once in a section
        ("attended share of its view, |A|/HW", ["a-hw"]),
        ("I use a hook to cut the AC-DC cable, chances are", []),
        ("the attended region", ["attended-region"]),
    ],
)
def test_whole_words_become_links(text: str, expected: list[str]) -> None:
    assert links(str(Terms(Glossary(MEASURES)).mark(text))) == expected


def test_a_page_lists_only_what_it_uses() -> None:
    table = Table("Numbers", pl.DataFrame({"F1": [0.5], "hook": [1.0]}))
    html = render_page("Net", [Section("Result", "Its lift.", tables=(table,))],
                       scorecard=Scorecard(None, "It is right.", CardNumber("IoU", "0.5")))  # fmt: skip
    used = set(entries(html))
    assert {"lift", "iou", "f1"} <= used
    assert used - {"lift", "iou", "f1"} == {"chance", "precision", "recall"}  # words of those three sentences
    assert all(f'id="term-{key}"' in html for key in links(html))
    assert '<button type="button" aria-describedby="term-f1">' in html
    assert entries(render_page("Net", [Section("Result", "All is well.")])) == []


def test_a_figures_text_alternative_is_no_use_of_a_term() -> None:
    figure = heatmap("Right answers", ("net",), ("verbs",), ((50.0,),), "% right", whole=100)
    assert figure.alt.startswith("Heatmap")
    assert entries(render_page("Net", [Section("Result", figures=(figure,))])) == []


def test_names_from_data_are_never_terms_and_never_markup() -> None:
    table = Table("Classes", pl.DataFrame({"class": ["AC", "<b>lift</b>"], "frames": [1, 2]}))
    html = render_page("Net", [Section("<i>AC</i>", "<u>AC</u>", tables=(table,))])
    assert "<td>AC</td>" in html
    assert "&lt;b&gt;lift&lt;/b&gt;" in html
    assert "&lt;u&gt;<a class=" in html
    assert "<u>" not in html


def test_our_own_first_column_is_explained() -> None:
    table = Table("Numbers", pl.DataFrame({"number": ["TP-AC, when right"], "net": ["0.5"]}), explained=True)
    html = render_page("Net", [Section("Result", tables=(table,))], measures=MEASURES)
    assert links(html) == ["tp-ac"]


def test_a_figure_with_nothing_in_it_is_a_sentence() -> None:
    empty = estimates("Named", ("hook",), (Series("net", (Estimate(None),)),), "score")
    zero = bars("Counted", ("hook",), (Series("all", (0,)),), "frames")
    drawn = estimates("Found", ("hook",), (Series("net", (Estimate(0.5),)),), "score")
    html = render_page("Net", [Section("Result", figures=(empty, zero, drawn))])
    assert html.count('<div class="canvas"') == 1
    assert html.count("is not drawn: there is nothing in it.") == 2
    assert 'id="themes"' not in render_page("Net", [Section("Result", figures=(empty,))])


def test_rows_with_nothing_in_them_are_named_below_the_table() -> None:
    frame = pl.DataFrame(
        {"id": [0, 1, 2, 3], "triplet": ["a", "b", "<c>", "d"], "A": [3, 0, 0, 1], "F1": ["0.5", "–", "–", "–"]}
    )
    html = render_page("Data", [Section("Classes", tables=(Table("Each", frame),))])
    assert "2 more rows with nothing in them" in html
    assert "<bdi>b</bdi>; <bdi>&lt;c&gt;</bdi>" in html
    assert html.count("<tr>") == 3
    whole = render_page("Data", [Section("Classes", tables=(Table("Each", frame.head(2)),))])
    assert "more rows" not in whole
