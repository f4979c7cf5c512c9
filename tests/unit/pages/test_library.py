"""plotly.js: beside the page by default, inside it on demand, and on the disk once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surgeval.errors import BadInput
from surgeval.figures import Bars, Series
from surgeval.pages import Section, single_file, write_page
from surgeval.pages import library as library_module
from surgeval.pages.library import library, library_name

DRAWN = [Section("Result", figures=(Bars("Instruments", ("hook",), (Series("all", (1,)),), "instances"),))]
BANNER = "* plotly.js v"


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


def test_neighbours_share_one_file_on_the_disk(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("demo", "demo/report", "demo/focus/keen", "demo/triplets/fair")]
    for folder in folders:
        page(folder / "report.html")
    assert len({(folder / library_name()).stat().st_ino for folder in folders}) == 1
    assert not list(tmp_path.rglob(".plotly-*"))


def test_a_disk_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    page(tmp_path / "a" / "report.html")
    page(tmp_path / "b" / "report.html")
    assert (tmp_path / "b" / library_name()).read_text("utf-8") == library()


@pytest.mark.parametrize("planted", ["other bytes", "as long", "a link"])
def test_a_file_of_that_name_that_is_something_else_is_replaced_and_never_shared(tmp_path: Path, planted: str) -> None:
    elsewhere = tmp_path / "away" / "deep" / "down" / "victim.js"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text("alert(1)" if planted != "as long" else "x" * len(library().encode()))
    folder = tmp_path / "run"
    folder.mkdir()
    if planted == "a link":
        (folder / library_name()).symlink_to(elsewhere)
    else:
        (folder / library_name()).write_bytes(elsewhere.read_bytes())
    before = elsewhere.read_bytes()
    page(tmp_path / "beside" / "report.html")  # looks at its neighbour, and does not take it
    page(folder / "report.html")
    for place in (folder, tmp_path / "beside"):
        assert (place / library_name()).read_text("utf-8") == library()
        assert not (place / library_name()).is_symlink()
    assert elsewhere.read_bytes() == before


def test_a_neighbours_copy_of_another_owner_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page(tmp_path / "a" / "report.html")
    linked: list[Path] = []
    monkeypatch.setattr(library_module, "_owner", lambda path: str(path.parent if path.suffix else path))
    monkeypatch.setattr(library_module, "_link", lambda copy, _: linked.append(copy))
    page(tmp_path / "b" / "report.html")
    assert linked == []


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


def test_a_copy_that_others_may_change_is_not_shared(tmp_path: Path) -> None:
    page(tmp_path / "a" / "report.html")
    (tmp_path / "a" / library_name()).chmod(0o666)
    page(tmp_path / "b" / "report.html")
    assert (tmp_path / "b" / library_name()).stat().st_nlink == 1


def test_a_folder_of_that_name_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / library_name()).mkdir()
    (tmp_path / library_name() / "mine.txt").touch()
    with pytest.raises(BadInput, match=r"plotly-.*: found a folder, expected the file"):
        page(tmp_path / "report.html")
