"""The page as bytes: one drawing library, a policy that names every script, nothing that a name could break out of."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from surgeval.errors import BadInput
from surgeval.figures import Figure, Series
from surgeval.figures import bars as draw_bars
from surgeval.pages import (
    CardNumber,
    Finding,
    IntervalBar,
    Picture,
    Plot,
    Scorecard,
    Section,
    Table,
    render_page,
    write_page,
)
from surgeval.pages.glossary import Terms
from surgeval.pages.safety import inline, script_data, seen
from surgeval.pages.vega import library_name

EVIL = "</script><img src=x onerror=alert(1)>\u2028<!--<script>"


class Elements(HTMLParser):
    """Start tags with their attributes, and the text of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inline.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem and self.inline:
            tag, attrs, text = self.inline[-1]
            self.inline[-1] = (tag, attrs, text + data)


def bars(name: str = "hook") -> Figure:
    return draw_bars(name, (name,), (Series(name, (1,)), Series("B", (2,))), name)


def policy(elements: Elements) -> dict[str, list[str]]:
    text = next(a["content"] for tag, a in elements.tags if a.get("http-equiv") == "Content-Security-Policy")
    return {part.split()[0]: part.split()[1:] for part in (text or "").split(";")}


def test_the_policy_names_every_script_and_style_and_nothing_else() -> None:
    elements = Elements(render_page("Title", [Section("One", figures=(bars(), bars()))]))
    allowed = policy(elements)

    def hashes(tag: str) -> set[str]:
        found = [text for kind, attrs, text in elements.inline if kind == tag and attrs.get("type") is None]
        return {f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in found}

    assert allowed["default-src"] == ["'none'"]
    assert set(allowed["script-src"]) == hashes("script")
    assert len(allowed["script-src"]) == 2
    assert set(allowed["style-src"]) == hashes("style")
    assert allowed["img-src"] == ["data:"]
    assert "unsafe" not in str(allowed)


def test_the_library_is_embedded_once_and_only_where_a_figure_needs_it() -> None:
    banner = "https://vega.github.io/schema/vega"
    assert (
        render_page("x", [Section("a", figures=(bars(), bars())), Section("b", figures=(bars(),))]).count(banner) == 1
    )
    without = render_page("x", [Section("a", "text")])
    assert banner not in without
    assert len(without) < 50_000


def test_no_element_loads_anything_and_none_carries_a_handler_or_a_style() -> None:
    picture = Picture(np.zeros((4, 6, 3), np.uint8), EVIL)
    table = Table(EVIL, pl.DataFrame({EVIL: [EVIL]}), EVIL, "tables/a b.csv")
    evil = CardNumber(EVIL, EVIL, EVIL, IntervalBar(value=0.5, text=EVIL, baselines={EVIL: 0.1}))
    html = render_page(
        EVIL, [Section(EVIL, EVIL, (table,), (bars(EVIL),), (picture,))], scorecard=Scorecard("passes", EVIL, evil)
    )
    elements = Elements(html)
    for tag, attrs in elements.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs), (tag, attrs)
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert (attrs.get("src") or "data:").startswith("data:")
        assert not (attrs.get("href") or "").startswith(("http", "//", "javascript"))
    assert sum(tag == "img" for tag, _ in elements.tags) == 1
    assert sum(tag == "script" for tag, _ in elements.tags) == 4  # the page's, the library, its themes, the figure
    assert 'href="tables/a%20b.csv"' in html


def test_all_text_arrives_as_text() -> None:
    table = Table("T", pl.DataFrame({"<b>": ["<i>&amp;"]}))
    html = render_page("<script>alert(1)</script>", [Section("<u>", "a < b\n\nsecond", (table,))])
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;i&gt;&amp;amp;" in html
    assert "<p>a &lt; b</p>\n<p>second</p>" in html


def test_numbers_are_grouped_aligned_and_sorted_by_value() -> None:
    frame = pl.DataFrame(
        {"n": [1234567, -5, None], "p": [0.5, 12.25, math.nan], "q": [1.0, math.inf, 3.0], "t": ["x", "y", None]}
    )
    html = render_page("x", [Section("s", tables=(Table("t", frame),))])
    cells = re.findall(r"<td([^>]*)>([^<]*)</td>", html)
    assert [text for _, text in cells] == [
        "1\u202f234\u202f567", "0.50", "1.00", "x", "-5", "12.25", "∞", "y", "–", "–", "3.00", "–",
    ]  # fmt: skip
    assert cells[0][0] == ' class="n" data-v="1234567"'
    assert cells[8][0] == ' class="n"'


def test_a_long_table_is_cut_on_the_page_and_says_so() -> None:
    html = render_page("x", [Section("s", tables=(Table("t", pl.DataFrame({"n": range(1500)})),))])
    assert html.count("<td") == 1000
    assert "500 more rows are in the CSV file" in html


def test_a_picture_is_embedded_as_jpeg() -> None:
    image = np.zeros((8, 12, 3), np.uint8)
    image[:, :, 0] = 200
    html = render_page("x", [Section("s", images=(Picture(image, "red"),))])
    data = re.search(r'src="data:image/jpeg;base64,([^"]+)"', html)
    assert data
    with Image.open(io.BytesIO(base64.b64decode(data[1]))) as back:
        assert back.size == (12, 8)
        assert np.abs(np.asarray(back, int) - image).max() < 12


def test_the_same_sections_give_the_same_bytes_and_no_part_file_stays(tmp_path: Path) -> None:
    sections = [Section("s", "text", figures=(Plot(bars(), "note", ("figures/a.svg",)),))]
    first = write_page(tmp_path / "a" / "report.html", "T", sections, lead="lead", details={"k": "v"}).read_bytes()
    second = write_page(tmp_path / "a" / "report.html", "T", sections, lead="lead", details={"k": "v"}).read_bytes()
    assert first == second
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["figures", "report.html", library_name()]


def test_a_title_that_is_not_utf8_can_be_written(tmp_path: Path) -> None:
    page = write_page(tmp_path / "r.html", "\udcff", [Section("\udcff", "\udcff")]).read_text("utf-8")
    assert "<title>? · report</title>" in page


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="the page cannot be written"):
        write_page(tmp_path / "file" / "report.html", "T", [])


@pytest.mark.parametrize("file", ["/etc/passwd", "../x.csv", "a/../../x", "javascript:alert(1)", "http://x/y", "a\\b"])
def test_a_link_cannot_leave_the_pages_folder(file: str) -> None:
    with pytest.raises(BadInput, match="link"):
        Table("t", pl.DataFrame(), file=file)
    with pytest.raises(BadInput, match="link"):
        Plot(bars(), files=(file,))


@pytest.mark.parametrize("shape", [(4, 4, 4), (0, 4, 3), (4,)])
def test_a_picture_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="expected uint8"):
        Picture(np.zeros(shape, np.uint8), "x")


@given(st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_script_data_is_the_same_json_without_a_way_out(value: object) -> None:
    import json

    def spelt(part: object) -> object:
        """Control characters, and those that turn the direction of a text, as their escapes."""
        if isinstance(part, str):
            return "".join(json.dumps(c)[1:-1] if seen(c) != c else c for c in part)
        if isinstance(part, list):
            return [spelt(one) for one in part]
        return {spelt(key): spelt(one) for key, one in part.items()} if isinstance(part, dict) else part

    text = script_data(value)
    assert json.loads(text) == spelt(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()


def test_nothing_hides_in_a_name_or_in_what_a_model_said() -> None:
    hidden = "safe\u202eevil\u2066\x1b[2J\x00\x9b"
    table = Table("T", pl.DataFrame({"said": [hidden]}), explained=True)
    html = render_page(hidden, [Section("S", hidden, tables=(table,))], lead=hidden)
    assert not re.search("[\x00\x1b\x9b\u202a-\u202e\u2066-\u2069]", html)
    assert html.count("safe\\u202eevil\\u2066\\x1b[2J\\x00\\x9b") >= 4


def test_a_number_that_json_lacks_is_refused_in_script_data() -> None:
    with pytest.raises(ValueError, match="JSON"):
        script_data(math.nan)


@pytest.mark.parametrize("text", ["x</SCRIPT >", "a\0b"])
def test_a_script_that_would_end_itself_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="end tag"):
        inline(text, "script")


@settings(max_examples=25)
@given(name=st.text(max_size=30))
def test_no_name_adds_an_element_to_the_page(name: str) -> None:
    def tags(text: str) -> list[str]:
        table = Table(text, pl.DataFrame({"c": [text.encode("utf-8", "replace").decode()]}), note="n")
        section = Section(text or "t", "p", (table,), (Plot(bars(text), "n"),))
        return [tag for tag, _ in Elements(render_page(text, [section], lead="l", details={"k": text})).tags]

    assume("<a" not in Terms().mark(name))  # a term of the glossary becomes a link,
    assume(not Terms().described(name))  # or as a heading gets its entry
    assert tags(name) == tags("hook")


def test_no_line_ends_inside_a_number() -> None:
    findings = (Finding("+9 points [−4, +13]."),)
    card = Scorecard(None, "It sees.", CardNumber("right", "97 %", "95 % interval 85.4 % to 99.4 %"))
    table = Table("A", pl.DataFrame({"number": ["25.0 points [-76.8, 100.0]"]}))
    html = render_page("Page", [Section("One", findings=findings, tables=(table,))], scorecard=card)
    for whole in ("85.4\u00a0% to 99.4\u00a0%", "[−4,\u00a0+13]", "25.0\u00a0points [-76.8,\u00a0100.0]"):
        assert whole in html
    assert ">95 % interval</a>" in html, "a term is still one"


def test_a_long_heading_gets_a_wider_column() -> None:
    table = Table("A", pl.DataFrame({"mAP": [0.5], "the same answer in every frame": [0.1]}))
    html = render_page("Page", [Section("One", tables=(table,))])
    assert re.findall(r'<th scope="col" class="([^"]*)"', html) == ["n", "n long"]


def test_a_finding_shows_its_grade_as_a_word_and_folds_its_rule_away() -> None:
    findings = (Finding("It sees.", "passes", "Right <often>."), Finding("By the way."))
    html = render_page("Page", [Section("Findings", findings=findings)])
    assert re.findall(r'<li><span>(?:<span class="grade (\w+)">(\w+)</span>)?</span>', html) == [
        ("passes", "Passes"), ("", ""),
    ]  # fmt: skip
    assert html.index("<p>It sees.</p>") < html.index("How this is decided") < html.index("Right &lt;often&gt;.")
    assert "How this is decided" not in render_page("Page", [Section("Notes", findings=findings[1:])])


def test_an_interval_bar_places_dot_band_and_baselines_on_its_span() -> None:
    bar = IntervalBar(value=0.5, low=0.25, high=2.0, text="0.5 <b>", baselines={"always <i>": 0.0, "chance": 0.1})
    svg = str(bar.svg())
    assert 'cx="50.00%"' in svg and '<line class="band" x1="26.00%" x2="98.00%"' in svg
    assert svg.count('<line class="base"') == 2
    assert 'aria-label="0.5 &lt;b&gt;"' in bar.svg() and "always" not in bar.svg()
    labels = re.findall(r'<text x="[\d.]+%" y="(\d+)"[^>]*>([^<]+)<', bar.svg(labelled=True))
    assert labels == [("32", "always &lt;i&gt;"), ("47", "chance")], "near labels stand below each other"
