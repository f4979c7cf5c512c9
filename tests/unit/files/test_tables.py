"""Tables from outside are frames or one sentence; cells that we write are no formulas, and are read back exactly."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.datasets import MemoryDataset
from surgeval.datasets.gaze import read_gaze
from surgeval.datasets.predictions import ground_truth, read_detections
from surgeval.errors import BadInput, DataError
from surgeval.files import (
    BrokenCsv,
    collect_parquet,
    guard,
    make_folder,
    parse_csv,
    read_parquet_file,
    scan_parquet_file,
    unguard,
)
from surgeval.pages import unguarded
from surgeval.records import Frame
from surgeval.report.ranking.results_file import read_results
from surgeval.vocab import load_labels

ROWS = 300
BOMB = b"a,b\n" + bytes(200) * 1_000_000

texts = st.lists(
    st.sampled_from(["'", "=", "+", "-", "@", "＝", "＋", "－", "＠", " ", "\u3000", "\u200b", "\ufeff", "\t", "\n",
                     "\0", "a", "1", "\xa0"]),
    max_size=6,
).map("".join) | st.text(max_size=8)  # fmt: skip


def table() -> pl.DataFrame:
    return pl.DataFrame({"video": [f"VID{k % 5:02d}" for k in range(ROWS)], "score": [k / ROWS for k in range(ROWS)]})


def encoded() -> bytes:
    buffer = io.BytesIO()
    table().write_parquet(buffer)
    return buffer.getvalue()


# ── Parquet ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sound_file_is_read_whole_or_in_part(tmp_path: Path) -> None:
    path = tmp_path / "v[1]~*.parquet"
    table().write_parquet(tmp_path / "plain.parquet")
    (tmp_path / "plain.parquet").rename(path)
    assert read_parquet_file(path).equals(table())
    assert read_parquet_file(path, ["score"]).columns == ["score"]
    assert scan_parquet_file(path).select(pl.len()).collect().item() == ROWS


@pytest.mark.parametrize(
    "data",
    [b"", b"video,frame\n", b"PAR1", encoded()[:-1], encoded()[:200],
     b"PAR1" + bytes(20) + (1 << 30).to_bytes(4, "little") + b"PAR1"],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.parquet: not a readable Parquet file: ") as caught:
        read_parquet_file(tmp_path / "a.parquet")
    assert caught.value.code == "file-broken" and "\n" not in str(caught.value)


def test_a_panic_of_polars_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table().write_parquet(tmp_path / "a.parquet")

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds\nbacktrace")

    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(DataError, match=r"not a readable Parquet file: index out of bounds$"):
        read_parquet_file(tmp_path / "a.parquet")


def test_pipes_folders_and_absent_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "folder.parquet").mkdir()
    for name, words in (("pipe", "a named pipe"), ("folder", "a folder"), ("none", "no such file")):
        with pytest.raises(DataError, match=words):
            read_parquet_file(tmp_path / f"{name}.parquet")


def test_a_file_that_breaks_only_in_part_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"qID": ["q1", "q2", "q3"]}).write_parquet(path)
    table = scan_parquet_file(path)
    path.write_bytes(b"PAR1" + bytes(20))
    with pytest.raises(DataError, match=r"rows\.parquet: not a readable Parquet file"):
        collect_parquet(table.slice(1, 1), path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
def test_a_path_that_is_not_utf_8_is_one_sentence_and_nothing_is_made(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sur\xff\x1b"))
    with pytest.raises(BadInput, match=r"sur\\xff.*: the path is not valid UTF-8") as caught:
        make_folder(folder / "parts")
    assert str(caught.value).encode().isascii() and "\x1b" not in str(caught.value)
    assert not folder.exists()
    folder.mkdir()
    pl.DataFrame({"score": [0.9]}).write_parquet(tmp_path / "cases.parquet")
    (tmp_path / "cases.parquet").rename(folder / "cases.parquet")
    for read in (scan_parquet_file, read_parquet_file):
        with pytest.raises(BadInput, match="the path is not valid UTF-8"):
            read(folder / "cases.parquet")


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01", b"\x28\xb5\x2f\xfd"]))
def test_any_bytes_are_a_table_or_one_sentence(data: bytes, first: bytes) -> None:
    said = ""
    try:
        parse_csv(first + data)
    except BrokenCsv as error:
        said = str(error)
    assert "\n" not in said and len(said) <= 160


def _predictions(path: Path) -> object:
    frame = Frame("v", "0", 0, None, None, 10, 10)
    return read_detections(path, ground_truth(MemoryDataset(load_labels("phantom"), [frame])))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
@pytest.mark.parametrize("read", [read_results, read_gaze, _predictions])
def test_a_compressed_table_is_named_and_not_unpacked(
    pack: Callable[[bytes], bytes], read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(pack(BOMB))
    with pytest.raises(DataError, match=r"table\.csv.*a compressed file \((gzip|zlib)\)"):
        read(path)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫"])
@pytest.mark.parametrize("before", ["", " ", "   ", "\t", "\n", "\xa0", "\u3000", "\u2009", "\u200b", "\ufeff",
                                    "\u2060", "\0", "\xad", "\u202e", " \u200b ", "\U000e0020"])  # fmt: skip
def test_a_formula_is_guarded_whatever_stands_before_its_sign(before: str, sign: str) -> None:
    assert guard(f"{before}{sign}1+1") == f"'{before}{sign}1+1"


@pytest.mark.parametrize("text", ["grasper", "", " ", "a=b", "'quoted'", "−1", "– none", "3-4", "手＝", "it's", "'"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert guard(text) == text == unguard(text)


@given(text=texts)
def test_the_guard_is_taken_off_exactly(text: str) -> None:
    assert unguard(guard(text)) == text
    assert guard(text) in (text, f"'{text}")


@given(first=texts, second=texts)
def test_two_texts_stay_two_cells(first: str, second: str) -> None:
    assert (guard(first) == guard(second)) == (first == second)


def test_a_column_is_read_back_with_its_missing_cells() -> None:
    column = pl.Series("video", ["=1", "'=1", None, "VID01"])
    guarded = pl.Series("video", [None if text is None else guard(text) for text in column])
    assert unguarded(guarded).to_list() == column.to_list()
    assert unguarded(pl.Series("video", [None], dtype=pl.String)).to_list() == [None]
