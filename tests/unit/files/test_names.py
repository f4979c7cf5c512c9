"""A name from data is a file inside the folder, and two names are two files."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surgeval.errors import BadInput
from surgeval.files import DistinctNames, leads_out, path_inside, safe_name

hostile = st.lists(
    st.sampled_from(["..", ".", "/", "\\", "C:", "x", "X", " ", "-", "_", "\0", "\n", "\x1b", "\ud800", "con", "NUL",
                     "é", "e\u0301", "ß", "手", "a" * 120, ".json", "~", "*", "\u202e"]),
    max_size=8,
).map("".join) | st.text(max_size=12)  # fmt: skip
plain = st.text("abcXYZ019_-. éß手", min_size=1, max_size=30).filter(
    lambda name: not name.startswith(".") and not name.endswith((".", " ")) and name.strip(" .")
)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("VID01", "VID01"),
        ("2024-03-01 operation (left) #2", "2024-03-01 operation (left) #2"),
        ("手術", "手術"),
        ("../../etc/passwd", "etc-passwd"),
        ("/etc/passwd", "etc-passwd"),
        ("..\\..\\x", "x"),
        ("\\\\server\\share\\x", "server-share-x"),
        ("C:\\x", "C--x"),
        ("C:x", "C-x"),
        ("a/./b//c", "a-b-c"),
        ("..", "unnamed"),
        (".", "unnamed"),
        ("", "unnamed"),
        ("   ", "unnamed"),
        ("...", "unnamed"),
        (".hidden", "hidden"),
        ("x. . ", "x"),
        ("a\0b\x1b[2J\n", "a-b-[2J-"),
        ("a:b*c?d", "a-b-c-d"),
        ("CON", "CON-"),
        ("con.json", "con-.json"),
        ("Lpt1 .x", "Lpt1-.x"),
        ("COM¹", "COM¹-"),
        ("console", "console"),
        ("clip \ud800", "clip -"),
    ],
)
def test_what_a_name_becomes(name: str, file: str) -> None:
    assert safe_name(name) == file


def test_a_long_name_is_cut_between_characters_and_told_apart_by_what_was_cut() -> None:
    one, other = safe_name("手" * 200 + "a"), safe_name("手" * 200 + "b")
    assert one != other
    assert len(one.encode()) <= 240
    assert one.startswith("手" * 70)
    assert safe_name("x" * 240) == "x" * 240
    assert len(safe_name("x" * 5_000_000)) == 240


@given(name=hostile)
@example("..")
@example("/")
@example(". . .")
def test_a_name_is_one_entry_of_its_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "names"
    folder.mkdir(exist_ok=True)
    path = path_inside(folder, name)
    assert path.parent == folder
    path.write_bytes(b"x")
    assert os.listdir(folder) == [path.name]  # noqa: PTH208 (no name is left out)
    path.unlink()


@given(name=hostile)
def test_a_safe_name_stays_as_it_is(name: str) -> None:
    assert safe_name(safe_name(name)) == safe_name(name)


@given(name=plain)
def test_a_plain_name_is_its_own_file(name: str) -> None:
    assert safe_name(name) == name
    assert DistinctNames().claim(name) == name


@given(names=st.lists(hostile | st.sampled_from(["a-b", "a/b", "A-B", "a-b-2", "a-b-3"]), max_size=25))
def test_no_two_names_share_a_file_on_any_disk(names: list[str]) -> None:
    claims = DistinctNames("labels.json")
    given_out = [claims.claim(name, ".jpg") for name in names]
    as_disks_see_them = {unicodedata.normalize("NFC", name).casefold() for name in given_out}
    assert len(as_disks_see_them) == len(names)
    assert all(safe_name(name) == name for name in given_out)


def test_many_frames_of_one_name_take_no_time() -> None:
    claims = DistinctNames()
    assert [claims.claim("..") for _ in range(50_000)][-1] == "unnamed-50000"


@pytest.mark.parametrize("depth", [0, 1])
def test_nothing_is_written_through_a_link(tmp_path: Path, depth: int) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "out"
    (folder / "a").mkdir(parents=True)
    link = folder / "a" / "b" if depth else folder / "c"
    link.symlink_to(tmp_path / "elsewhere")
    names = ("a", "b", "x.jpg") if depth else ("c", "x.jpg")
    with pytest.raises(BadInput, match="is a link"):
        path_inside(folder, *names)
    assert path_inside(folder, "a", "x.jpg") == folder / "a" / "x.jpg"


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    assert path_inside(tmp_path / "out", "x") == tmp_path / "out" / "x"


def test_a_link_may_stay_inside_but_not_lead_out(tmp_path: Path) -> None:
    home = tmp_path / "data"
    home.mkdir()
    (tmp_path / "secret").write_text("key")
    (home / "1.jpg").write_text("picture")
    (home / "2.jpg").symlink_to(home / "1.jpg")
    (home / "3.jpg").symlink_to(tmp_path / "secret")
    (home / "up").symlink_to(tmp_path)
    assert [leads_out(home / name, home) for name in ("1.jpg", "2.jpg", "3.jpg", "up/secret", "none.jpg")] == [
        False, False, True, True, False]  # fmt: skip
