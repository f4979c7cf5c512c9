"""Laws of the datasets' parts: run lengths, reading piece by piece, merging."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.run_lengths import encode_counts

from surgeval.datasets import MemoryDataset, MergeMap, merged
from surgeval.datasets.io.json import Members
from surgeval.datasets.io.outline import decode_counts
from surgeval.files import Location
from surgeval.records import Frame, Instance, Mask, Triplet, Video
from surgeval.vocab import LabelSpace, load_labels

SPACE = load_labels("phantom")


@given(rows=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=9))
def test_run_lengths_survive_their_string(rows: list[list[bool]]) -> None:
    counts = list(Mask.from_array(np.array(rows, bool)).counts)
    assert decode_counts(encode_counts(counts)) == counts


@given(counts=st.lists(st.integers(0, 10**7), min_size=1, max_size=60))
def test_any_run_lengths_survive_their_string(counts: list[int]) -> None:
    assert decode_counts(encode_counts(counts)) == counts


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(
    document=st.dictionaries(st.text(max_size=6), values, max_size=5),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    chunk=st.integers(1, 40),
)
def test_walking_a_file_meets_what_parsing_it_gives(
    document: dict[str, object], indent: int | None, ascii_only: bool, chunk: int
) -> None:
    import surgeval.datasets.io.json as module

    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        path = Path(folder) / "x.json"
        path.write_bytes(data)
        found: dict[str, object] = {key: [] for key, value in document.items() if isinstance(value, list)}
        told: list[object] = []
        for key, number, value, start, length in Members(path, Location("x", told.append)):
            assert json.loads(data[start : start + length]) == value
            if number < 0:
                found[key] = value
            else:
                items = found[key]
                assert isinstance(items, list)
                assert len(items) == number
                items.append(value)
    assert told == []
    assert found == document


@given(cut=st.floats(0, 1, exclude_max=True), chunk=st.sampled_from([3, 17, 1 << 18]))
def test_a_cut_file_is_told_once_with_line_and_column_of_the_cut(cut: float, chunk: int) -> None:
    import surgeval.datasets.io.json as module

    text = json.dumps({"images": [{"id": k, "name": "ä" * k} for k in range(6)], "rest": {"a": [1, 2]}}, indent=2,
                      ensure_ascii=False)  # fmt: skip
    short = text[: int(cut * len(text))]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        path = Path(folder) / "x.json"
        path.write_text(short, encoding="utf-8")
        told: list[str] = []
        list(Members(path, Location("x", lambda problem: told.append(str(problem)))))
    assert len(told) == 1
    if short.strip():
        line = int(told[0].split("line ")[1].split()[0])
        assert short.count("\n") + 1 - line in (0, 1)


@st.composite
def mergings(draw: st.DrawFn) -> tuple[LabelSpace, dict[str, dict[str, str]], list[int], int]:
    space = LabelSpace("raw", ("a", "b", "c"), ("p", "q"), ("x", "y", "z"), tuple(
        (i, v, t) for i in range(3) for v in range(2) for t in range(3)))  # fmt: skip
    groups = {"instruments": space.instruments, "verbs": space.verbs, "targets": space.targets}
    rules = {key: draw(st.dictionaries(st.sampled_from(names), st.sampled_from([*names, "new"]), max_size=2))
             for key, names in groups.items()}  # fmt: skip
    return space, rules, draw(st.lists(st.integers(0, 17), max_size=30)), draw(st.integers(0, 4))


@given(case=mergings())
def test_a_merge_loses_nothing_but_what_it_counts(
    case: tuple[LabelSpace, dict[str, dict[str, str]], list[int], int],
) -> None:
    space, rules, numbers, least = case
    instances = [Instance(Triplet(*space.triplets[k])) for k in numbers]
    frames = [Frame("V", f"{n:06d}", n, None, None, 9, 9, (one,)) for n, one in enumerate(instances)]
    source = merged(MemoryDataset(space, frames, [Video("V")]), MergeMap.from_json(rules), least)
    after = [i for frame in source.frames("V") for i in frame.instances]
    assert source.before == len(numbers) == len(after) + source.dropped
    counts: dict[Triplet, int] = {}
    for instance in after:
        triplet = instance.triplet
        assert source.space.find(triplet.instrument, triplet.verb, triplet.target) >= 0
        counts[triplet] = counts.get(triplet, 0) + 1
    assert all(n >= least for n in counts.values())
    if least <= 1:
        assert source.dropped == 0
