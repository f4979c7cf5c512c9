"""Uploads: a ZIP stays in its folder, and does not unpack to more than it may."""

from __future__ import annotations

import io
import stat
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from surgeval.errors import BadInput
from surgeval.studio.exchange import unpack


def archive(tmp_path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as made:
        for name, data in members:
            made.writestr(name, data)
    path = tmp_path / "upload"
    path.write_bytes(stream.getvalue())
    return path


@pytest.mark.parametrize(
    "name", ["../out.json", "/etc/out.json", "a/../../out.json", "..\\out.json", "a\0b", "nul.json"]
)
def test_a_member_that_would_leave_or_is_odd_is_refused(tmp_path: Path, name: str) -> None:
    made = archive(tmp_path, ("fine.json", b"{}"), (zipfile.ZipInfo(name), b"{}"))
    if "\0" in name:
        data = archive(tmp_path, ("fine.json", b"{}"), ("aXb", b"{}")).read_bytes().replace(b"aXb", b"a\nb")
        made.write_bytes(data)
    with pytest.raises(BadInput, match=r"^archive: found .*, expected plain names that stay inside$"):
        unpack(made, "x.zip", tmp_path / "imports")
    assert list((tmp_path / "imports").iterdir()) == [], "nothing of it stays"
    assert not (tmp_path / "out.json").exists()


def test_an_upload_is_there_when_all_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[Path]] = []
    unpacking = import_module("surgeval.studio.exchange.unpack")
    extract = unpacking._extract

    def watched(upload: Path, target: Path, most: int) -> None:
        extract(upload, target, most)
        seen.append(list((tmp_path / "imports" / "x").iterdir()))

    monkeypatch.setattr(unpacking, "_extract", watched)
    target = unpack(archive(tmp_path, ("a.json", b"{}"), ("V/b.json", b"{}")), "x.zip", tmp_path / "imports")
    assert seen == [[]]
    assert sorted(path.name for path in target.rglob("*.json")) == ["a.json", "b.json"]
    assert list((tmp_path / "imports").iterdir()) == [target]


def test_links_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(BadInput, match="stay inside"):
        unpack(archive(tmp_path, (link, b"/etc/passwd")), "x.zip", tmp_path / "imports")


def test_a_bomb_is_stopped_whatever_it_states(tmp_path: Path) -> None:
    made = archive(tmp_path, ("zeros.json", bytes(5_000_000)))
    data = made.read_bytes()
    assert len(data) < 10_000
    with pytest.raises(BadInput, match="found more than 1000000 bytes"):
        unpack(made, "x.zip", tmp_path / "imports", most=1_000_000)
    made.write_bytes(data.replace((5_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))  # it says 10 bytes
    with pytest.raises(BadInput, match="archive"):
        unpack(made, "x.zip", tmp_path / "imports", most=1_000_000)
    assert list((tmp_path / "imports").iterdir()) == []


def test_a_damaged_or_locked_archive_is_one_sentence(tmp_path: Path) -> None:
    made = archive(tmp_path, ("a.json", b"{}" * 500))
    data = bytearray(made.read_bytes())
    data[40:60] = bytes(20)
    made.write_bytes(bytes(data))
    with pytest.raises(BadInput, match="found a ZIP that cannot be read"):
        unpack(made, "x.zip", tmp_path / "imports")


def test_a_name_is_never_written_over_and_desktop_files_are_passed_by(tmp_path: Path) -> None:
    made = archive(tmp_path, ("V1/1.json", b"{}"), ("__MACOSX/V1/._1.json", b"x"), (".DS_Store", b"x"))
    places = [unpack(made, "C:\\labels\\mine.zip", tmp_path / "imports") for _ in range(2)]
    assert [place.name for place in places] == ["mine", "mine-2"]
    assert [path.relative_to(places[0]).as_posix() for path in places[0].rglob("*") if path.is_file()] == ["V1/1.json"]


def test_a_plain_file_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "upload").write_text("{}")
    place = unpack(tmp_path / "upload", "../../coco.json", tmp_path / "imports")
    assert (place / "coco.json").read_text() == "{}"
    assert place.parent == tmp_path / "imports"


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_what_can_be_counted_while_it_unpacks_is_taken(tmp_path: Path, kind: int) -> None:
    made = archive(tmp_path, ("V1/1.json", bytes(1000)), kind=kind)
    with pytest.raises(BadInput, match=rf"'V1/1.json' compressed by method {kind}, expected files that are stored"):
        unpack(made, "x.zip", tmp_path / "imports")
    locked = bytearray(archive(tmp_path, ("V1/1.json", b"{}")).read_bytes())
    locked[6] |= 1
    locked[locked.find(b"PK\x01\x02") + 8] |= 1
    made.write_bytes(bytes(locked))
    with pytest.raises(BadInput, match=r"'V1/1\.json' encrypted, expected"):
        unpack(made, "x.zip", tmp_path / "imports")


def test_a_file_that_is_a_folder_too_is_refused_without_the_path_of_this_machine(tmp_path: Path) -> None:
    for names in (("a", "a/b.json"), ("a/b.json", "a")):
        with pytest.raises(BadInput, match=r"^archive: found '(a|a/b.json)' twice, expected each file once$"):
            unpack(archive(tmp_path, *((name, b"{}") for name in names)), "x.zip", tmp_path / "imports")
    assert list((tmp_path / "imports").iterdir()) == []


def test_whatever_is_damaged_in_an_archive_it_is_a_sentence(tmp_path: Path) -> None:
    whole = archive(tmp_path, ("V1/1.json", b'{"shapes": []}' * 9), ("V1/2.json", b"{}")).read_bytes()
    made, said = tmp_path / "damaged", []
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 0xFF
        made.write_bytes(bytes(data))
        try:
            unpack(made, "x.zip", tmp_path / "imports")
        except BadInput as error:
            said.append(str(error))
    assert said
    assert not [sentence for sentence in said if str(tmp_path) in sentence]


def test_nothing_is_unpacked_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "imports").symlink_to(tmp_path / "outside")
    with pytest.raises(BadInput, match="imports: found a link"):
        unpack(archive(tmp_path, ("V1/1.json", b"{}")), "x.zip", tmp_path / "imports")
    assert list((tmp_path / "outside").iterdir()) == []
