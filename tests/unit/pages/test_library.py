"""The drawing library: beside the page by default, inside it on demand, and made once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surgeval.errors import BadInput
from surgeval.figures import Series, bars
from surgeval.pages import Section, single_file, vega, write_page
from surgeval.pages.vega import library, library_name

DRAWN = [Section("Result", figures=(bars("Instruments", ("hook",), (Series("all", (1,)),), "instances"),))]
BANNER = "https://vega.github.io/schema/vega"


def page(path: Path, title: str = "T") -> Path:
    return write_page(path, title, DRAWN)


def test_a_page_is_small_and_its_library_lies_beside_it(tmp_path: Path) -> None:
    text = page(tmp_path / "report.html").read_text("utf-8")
    assert len(text) < 100_000
    assert BANNER not in text
    assert (tmp_path / library_name()).read_text("utf-8") == library()
    assert f'src="{library_name()}"' in text


def test_a_page_without_figures_has_no_library(tmp_path: Path) -> None:
    write_page(tmp_path / "report.html", "T", [Section("Result", "text")])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_single_file_holds_it_and_the_wish_ends_with_its_block(tmp_path: Path) -> None:
    with single_file():
        assert BANNER in page(tmp_path / "one" / "report.html").read_text("utf-8")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["report.html"]
    with single_file(False):
        assert BANNER not in page(tmp_path / "two" / "report.html").read_text("utf-8")
    assert BANNER not in page(tmp_path / "three" / "report.html").read_text("utf-8")


def test_the_bytes_of_a_page_do_not_depend_on_its_folder(tmp_path: Path) -> None:
    assert page(tmp_path / "a" / "report.html").read_bytes() == page(tmp_path / "b" / "c" / "x.html").read_bytes()


def test_the_library_is_made_once_and_then_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import vl_convert

    made: list[str] = []

    def bundle(snippet: str) -> str:
        made.append(snippet)
        return "window.vega = 1;"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    monkeypatch.setattr(vega, "__file__", str(tmp_path / "readonly" / "vega.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "readonly").touch()  # no folder can be made below a file
    assert [library.__wrapped__(), library.__wrapped__()] == ["window.vega = 1;"] * 2
    assert len(made) == 1
    assert [path.parent.name for path in tmp_path.rglob("*.js")] == ["surgeval"]


def test_a_file_of_that_name_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    (tmp_path / library_name()).write_text("alert(1)")
    page(tmp_path / "report.html")
    assert (tmp_path / library_name()).read_text("utf-8") == library()


def test_the_nonce_is_of_this_page_alone_and_names_one_script(tmp_path: Path) -> None:
    text = page(tmp_path / "a.html").read_text("utf-8")
    (value,) = re.findall(r"'nonce-([^']+)'", text)
    assert len(value) == 44
    assert text.count(value) == 2
    assert re.findall(r'<script nonce="([^"]*)"', text) == [value]
    other = page(tmp_path / "b.html", "another title").read_text("utf-8")
    assert value not in other


def test_a_title_that_looks_like_the_place_of_the_nonce_gets_none(tmp_path: Path) -> None:
    trap = "'nonce-' <script nonce=\"\" src=evil.js></script>"
    text = write_page(tmp_path / "a.html", trap, [*DRAWN, Section(trap, trap)]).read_text("utf-8")
    (value,) = re.findall(r"'nonce-([^']{44})'", text)
    assert text.count(value) == 2
    assert text.index(value) < text.index("<title>")
    assert f'<script nonce="{value}" src="{library_name()}">' in text


def test_a_folder_of_that_name_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / library_name()).mkdir()
    (tmp_path / library_name() / "mine.txt").touch()
    with pytest.raises(BadInput, match=r"report\.html: the page cannot be written"):
        page(tmp_path / "report.html")
