"""CSV from strangers: a table or one sentence, and nothing is unpacked."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.datasets import MemoryDataset
from surgeval.datasets.gaze import read_gaze
from surgeval.datasets.predictions import ground_truth, read_detections
from surgeval.errors import DataError
from surgeval.files import BrokenCsv, parse_csv
from surgeval.records import Frame
from surgeval.report.ranking.results_file import read_results
from surgeval.vocab import load_labels

BOMB = b"a,b\n" + bytes(200) * 1_000_000


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
