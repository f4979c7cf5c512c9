"""Damaged Parquet is an error with a sentence, also where polars would end the interpreter."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from surgeval.errors import BadInput, DataError
from surgeval.files import (
    check_parquet,
    collect_parquet,
    make_folder,
    read_parquet_file,
    scan_parquet_file,
    trust_parquet,
)

ROWS = 300


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "video": [f"VID{k % 5:02d}" for k in range(ROWS)],
            "score": [k / ROWS for k in range(ROWS)],
            "scores": [[k / ROWS, 0.5] for k in range(ROWS)],
        }
    )


def encoded(compression: pl._typing.ParquetCompression = "zstd") -> bytes:
    buffer = io.BytesIO()
    table().write_parquet(buffer, compression=compression)
    return buffer.getvalue()


def text(value: bytes) -> bytes:
    return bytes([len(value)]) + value


def nested(levels: int) -> bytes:
    """A file whose schema is a column inside `levels` groups, in the footer's encoding (Thrift's compact one)."""
    group = b"\x35\x02\x18" + text(b"g") + b"\x15\x02\x00"  # repetition optional, name, one child
    leaf = b"\x15\x02\x25\x02\x18" + text(b"v") + b"\x00"
    count = b"".join(bytes([part]) for part in _varint(levels + 1))
    footer = b"\x15\x02\x19\xfc" + count + group * levels + leaf + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _varint(number: int) -> list[int]:
    return [number] if number < 128 else [number % 128 + 128, *_varint(number // 128)]


def negative_rows() -> bytes:
    """One flipped bit: the first page claims −301 values instead of 300, and polars asks for 2⁶¹ bytes."""
    damaged = encoded().replace(b",\x15\xd8\x04", b",\x15\xd9\x04", 1)
    assert damaged != encoded()
    return damaged


def test_a_sound_file_is_read_whole_or_in_part(tmp_path: Path) -> None:
    path = tmp_path / "v[1]~*.parquet"
    table().write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "plain.parquet").rename(path)
    assert read_parquet_file(path).equals(table())
    assert read_parquet_file(path, ["score"]).columns == ["score"]
    assert scan_parquet_file(path).select(pl.len()).collect().item() == ROWS


@pytest.mark.parametrize("make", [negative_rows, lambda: nested(200_000)], ids=["one bit", "deep schema"])
def test_a_file_that_ends_the_interpreter_is_an_error_here(tmp_path: Path, make: object) -> None:
    assert callable(make)
    path = tmp_path / "found.parquet"
    path.write_bytes(make())
    fatal = subprocess.run(
        [sys.executable, "-c", "import sys, polars; polars.read_parquet(sys.argv[1])", str(path)],
        capture_output=True, check=False,
    )  # fmt: skip
    assert fatal.returncode < 0  # what the guard is for; once polars repairs it this test may go
    with pytest.raises(DataError, match=r"found\.parquet: found a damaged file .*, expected a readable Parquet file"):
        read_parquet_file(path)


def test_columns_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.parquet"
    path.write_bytes(nested(200))
    with pytest.raises(DataError, match="columns that are nested too deeply"):
        check_parquet(path)


def test_a_small_file_of_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pl.select(pl.repeat(1.0, 300_000_000)).write_parquet(path)
    assert path.stat().st_size < 2_000_000
    with pytest.raises(DataError, match="values of more than"):
        check_parquet(path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"video,frame\n", "a file that is no Parquet"),
        (b"PAR1", "cut off"),
        (encoded()[:-1], "cut off"),
        (encoded()[:200], "cut off"),
        (
            b"PAR1" + bytes(20) + (1 << 30).to_bytes(4, "little") + b"PAR1",
            "a footer of 1073741824 bytes in a file of 32",
        ),
    ],
)
def test_what_is_no_whole_parquet_file_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(DataError, match=words):
        check_parquet(tmp_path / "a.parquet")


def test_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "folder.parquet").mkdir()
    for name, words in (("pipe", "a named pipe"), ("folder", "a folder"), ("none", "no such file")):
        with pytest.raises(DataError, match=f"found {words}"):
            read_parquet_file(tmp_path / f"{name}.parquet")


def test_a_file_is_tried_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    run = subprocess.run

    def counted(command: list[str], **options: object) -> object:
        started.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counted)
    path = tmp_path / "a.parquet"
    path.write_bytes(encoded())
    check_parquet(path)
    check_parquet(path)
    assert len(started) == 1
    path.write_bytes(negative_rows())
    for _ in range(2):
        with pytest.raises(DataError):
            check_parquet(path)
    assert len(started) == 2
    table().write_parquet(path)
    trust_parquet(path)
    check_parquet(path)
    assert len(started) == 2


def mutated(data: bytes, seed: int) -> bytes:
    """The file cut, or with a few bytes flipped or set: most of them in its footer, where the numbers are."""
    draw, work = random.Random(seed), bytearray(data)
    if draw.random() < 0.1:
        return bytes(work[: draw.randrange(len(work))])
    footer = int.from_bytes(data[-8:-4], "little")
    for _ in range(draw.choice([1, 1, 2, 6])):
        at = len(work) - 9 - draw.randrange(footer) if draw.random() < 0.6 else draw.randrange(len(work))
        work[at] = work[at] ^ 1 << draw.randrange(8) if draw.random() < 0.6 else draw.choice([0, 1, 127, 128, 255])
    return bytes(work)


def test_no_damaged_byte_is_a_traceback_in_the_child(tmp_path: Path, long: bool) -> None:
    from surgeval.files import _parquet

    paths = []
    for seed in range(1000 if long else 150):
        path = tmp_path / f"{seed}.parquet"
        path.write_bytes(mutated(encoded(("zstd", "snappy", "uncompressed")[seed % 3]), seed))
        paths.append(str(path))
    child = str(Path(_parquet.__file__).with_name("_parquet_child.py"))
    requests = "".join(json.dumps([path, 8 << 30, 1 << 30]) + "\n" for path in paths)
    done = subprocess.run([sys.executable, "-P", child], input=requests.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(paths)
    assert 0.4 * len(paths) < sum(map(bool, said)) < len(paths)  # some bytes do not matter, most do


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_the_child_may_take_no_more_memory_than_it_is_told(tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "t.parquet")
    code = (
        "import resource, sys; from surgeval.files._parquet_child import _tried;"
        "print(repr(_tried(sys.argv[1], 6 << 30, 1 << 30)));"
        "print(resource.getrlimit(resource.RLIMIT_AS)[0] == 6 << 30, resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "t.parquet"], capture_output=True, text=True)
    assert done.stdout.split() == ["''", "True", "0"], done.stderr


def test_a_file_that_breaks_only_in_part_is_one_sentence(tmp_path: Path) -> None:
    """Here it breaks after it was tried; damage that only shows in a slice raises at the same place."""
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"qID": ["q1", "q2", "q3"]}).write_parquet(path)
    table = scan_parquet_file(path)
    path.write_bytes(path.read_bytes()[:-40] + b"PAR1")
    with pytest.raises(DataError, match=r"rows\.parquet: found .*, expected a readable Parquet file"):
        collect_parquet(table.slice(1, 1), path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_path_that_is_no_text_is_one_sentence_and_nothing_is_made(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sur\xff\x1b"))
    with pytest.raises(
        BadInput, match=r"sur\\xff.*: found a path with bytes that are no text, expected UTF-8"
    ) as caught:
        make_folder(folder / "parts")
    assert str(caught.value).encode().isascii() and "\x1b" not in str(caught.value)
    assert not folder.exists()
    folder.mkdir()
    pl.DataFrame({"score": [0.9]}).write_parquet(tmp_path / "cases.parquet")
    (tmp_path / "cases.parquet").rename(folder / "cases.parquet")
    for read in (check_parquet, scan_parquet_file, read_parquet_file):
        with pytest.raises(BadInput, match="bytes that are no text"):
            read(folder / "cases.parquet")
