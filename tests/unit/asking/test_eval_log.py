"""Logs of Inspect AI from strangers: whatever is wrong with one is one sentence, and none unpacks without end."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from surgeval.asking import Unanswered, parse_output, read_eval_log, recorded_answers
from surgeval.errors import DataError, MissingExtra


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


def sentence(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_eval_log(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


def test_what_is_no_archive_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    assert "no such file" in sentence(path)
    path.write_bytes(b"")
    assert "not a log of Inspect AI, or damaged" in sentence(path)
    path.write_text(json.dumps([{"qID": "q1", "content": "yes"}]))
    assert "not a log of Inspect AI, or damaged" in sentence(path)
    path.unlink()
    path.mkdir()
    assert "a folder" in sentence(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_unpacks_to_too_much_is_refused_whatever_its_size_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: int
) -> None:
    monkeypatch.setattr(recorded_answers, "MAX_MEMBER", 1 << 20)
    path = archive(tmp_path / "log.eval", {"samples/q_epoch_1.json": b" " * (1 << 22)}, method)
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\1\2")
    struct.pack_into("<I", data, directory + 24, 10)  # "ten bytes when unpacked"
    path.write_bytes(data)
    assert "unpacks to more than 1048576 bytes" in sentence(path)


def test_zstandard_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = pytest.importorskip("zstandard", reason="the extra is not installed: pip install 'surgeval[inspect]'")
    monkeypatch.setattr(recorded_answers, "MAX_MEMBER", 1 << 20)
    packed = codec.ZstdCompressor().compress(b" " * (1 << 24))
    path = archive(tmp_path / "log.eval", {"header.json": packed}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        struct.pack_into("<H", data, data.rindex(signature) + offset, 93)
    path.write_bytes(data)
    assert "unpacks to more than 1048576 bytes" in sentence(path)
    broken = data.index(packed) + len(packed) // 2
    data[broken : broken + 4] = b"\xff" * 4
    path.write_bytes(data)
    sentence(path)


def test_too_many_members_and_too_much_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "log.eval", {f"samples/{n}.json": b" " * 1000 for n in range(20)})
    monkeypatch.setattr(recorded_answers, "MAX_TOTAL", 10_000)
    assert "unpacks to 20000 bytes" in sentence(path)
    monkeypatch.setattr(recorded_answers, "MAX_MEMBERS", 19)
    assert "has 20 members" in sentence(path)


def test_two_tables_of_contents_are_refused(tmp_path: Path) -> None:
    """Bytes in front of an archive: Python's zipfile reads on from where they end, other readers do not."""
    path = archive(tmp_path / "log.eval", {"header.json": b"{}"})
    path.write_bytes(b"x" * 64 + path.read_bytes())
    assert "two tables of contents" in sentence(path)


def test_a_log_cut_anywhere_is_one_sentence(tmp_path: Path) -> None:
    whole = archive(tmp_path / "log.eval", {"header.json": b"{}", "samples/q_epoch_1.json": b"{}"}).read_bytes()
    for end in range(0, len(whole), 7):
        path = tmp_path / "cut.eval"
        path.write_bytes(whole[:end])
        sentence(path)


HEADERS = [b"", b"{", b"[]", b"{}", b'{"version": 2}', b"[" * 100_000, b'{"eval": {"dataset": {"sample_ids": 3}}}']


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
def test_what_the_reader_refuses_is_one_sentence(tmp_path: Path, header: bytes) -> None:
    pytest.importorskip("inspect_ai", reason="the extra is not installed: pip install 'surgeval[inspect]'")
    path = archive(tmp_path / "log.eval", {"header.json": header, "samples/q_epoch_1.json": b'{"id": "q"}'})
    assert "Inspect AI cannot read it" in sentence(path)


def test_without_the_extra_a_sentence_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "log.eval", {"header.json": b"{}"})
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(MissingExtra, match=r"found no inspect_ai, .*pip install 'surgeval\[inspect\]'"):
        read_eval_log(path)


def test_surgeval_itself_imports_no_inspect() -> None:

    program = (
        "import sys, surgeval.cli, surgeval.asking, surgeval.protocols.focus.method, surgeval.protocols.intent.method"
    )
    done = subprocess.run([sys.executable, "-c", f"{program}; print('inspect_ai' in sys.modules)"], capture_output=True,
                          text=True, timeout=120, check=True)  # fmt: skip
    assert done.stdout.strip() == "False"


def output(text: str, stop: str = "stop", **more: Any) -> Any:
    return SimpleNamespace(
        completion=text, choices=[SimpleNamespace(stop_reason=stop)], time=0.5, usage=None, error=None, **more
    )


def test_an_output_is_read_as_any_reply() -> None:
    assert parse_output(output("<think>hm</think> yes")).content == "yes"
    assert parse_output(output("")).content == ""
    assert parse_output(output("half an ans", "max_tokens")).content == "half an ans"
    for cut in (output("<think>hm", "max_tokens"), output("", "model_length"), output("no", "content_filter"),
                SimpleNamespace(choices=[], error="moderated")):  # fmt: skip
        with pytest.raises(Unanswered):
            parse_output(cut)
