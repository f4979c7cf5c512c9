"""Named tensors in one file: whatever a stranger put there is read or refused in one sentence."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from surgeval.detector import load_state, save_state
from surgeval.errors import BadInput, DataError

TENSORS = {
    "weight": torch.arange(6.0).reshape(2, 3),
    "half": torch.tensor([1.5, -2.0]).half(),
    "brain": torch.tensor([[3.0]]).bfloat16(),
    "exact": torch.tensor([1e-300], dtype=torch.float64),
    "step": torch.tensor(7),
    "flags": torch.tensor([True, False, True]),
    "bytes": torch.tensor([1, 255], dtype=torch.uint8),
    "none": torch.zeros(0, 4),
}


def write(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file with this header, whatever it is."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def with_tensor(**entry: Any) -> dict[str, Any]:
    """A header with one tensor of two float32 numbers, changed by the arguments."""
    whole = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **entry}
    return {"__metadata__": {"surgeval": "{}"}, "w": whole}


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_state(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def complaint(call: Callable[[], object]) -> str:
    """The sentence of a refusal, or nothing; any other exception is a defect."""
    try:
        call()
    except DataError as error:
        return str(error)
    return ""


def test_what_is_saved_is_loaded_and_other_tools_read_it(tmp_path: Path) -> None:
    file = tmp_path / "last.safetensors"
    save_state(file, TENSORS, {"epoch": 3, "rate": 0.01, "name": "müde \ud800"})
    tensors, metadata = load_state(file)
    theirs = load_file(file)
    assert metadata == {"epoch": 3, "rate": 0.01, "name": "müde \\ud800"}
    assert set(tensors) == set(theirs) == set(TENSORS)
    for name, value in TENSORS.items():
        for found in (tensors[name], theirs[name]):
            assert found.dtype == value.dtype and torch.equal(found, value)
    with safe_open(file, "pt") as opened:
        assert json.loads(opened.metadata()["surgeval"])["epoch"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["last.safetensors"]


def test_files_of_the_library_are_read_if_they_say_whose_they_are(tmp_path: Path) -> None:
    save_file({"a": torch.ones(3)}, tmp_path / "ours.safetensors", {"surgeval": '{"epoch": 1}'})
    tensors, metadata = load_state(tmp_path / "ours.safetensors")
    assert torch.equal(tensors["a"], torch.ones(3)) and metadata == {"epoch": 1}
    save_file({"a": torch.ones(3)}, tmp_path / "theirs.safetensors")
    assert "found no 'surgeval' among its metadata" in refusal(tmp_path / "theirs.safetensors")


def test_views_and_tensors_that_share_memory_are_stored_as_they_look(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    save_state(tmp_path / "s", {"turned": base.T, "same": base, "again": base, "part": base[1:, ::2]}, {})
    tensors, _ = load_state(tmp_path / "s")
    assert torch.equal(tensors["turned"], base.T) and torch.equal(tensors["part"], base[1:, ::2])
    tensors["same"].zero_()
    assert torch.equal(tensors["again"], base)  # memory of its own


@given(st.dictionaries(st.text(min_size=1, max_size=12).filter(lambda s: s != "__metadata__"), st.tuples(
    st.lists(st.integers(0, 3), max_size=4), st.sampled_from([torch.float32, torch.float16, torch.int64, torch.bool])),
    max_size=6))  # fmt: skip
def test_any_names_and_shapes_come_back(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, tuple[list[int], torch.dtype]]
) -> None:
    file = tmp_path_factory.mktemp("state") / "s.safetensors"
    tensors = {name: torch.ones(shape, dtype=dtype) for name, (shape, dtype) in wanted.items()}
    save_state(file, tensors, {"names": list(wanted)})
    found, metadata = load_state(file)
    assert metadata == {"names": list(wanted)} and set(found) == set(tensors)
    assert all(torch.equal(found[name], value) and found[name].dtype == value.dtype for name, value in tensors.items())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "last.safetensors"
    save_state(file, {"a": torch.ones(1)}, {"epoch": 1})
    with pytest.raises(BadInput, match="metadata: found what JSON cannot hold"):
        save_state(file, {"a": torch.ones(1)}, {"epoch": float("nan")})
    with pytest.raises(BadInput, match=r"found torch\.complex64"):
        save_state(file, {"a": torch.ones(1, dtype=torch.complex64)}, {})
    assert load_state(file)[1] == {"epoch": 1} and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    file = tmp_path / "cut.safetensors"
    save_state(file, {"a": torch.ones(1000)}, {})
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    refusal(file)


def test_bytes_behind_the_last_tensor_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "long", with_tensor(), bytes(9))
    assert "found 9 bytes of tensors, expected 8 bytes, as its header says" in refusal(file)
    assert "cut off: 7 bytes" in refusal(write(tmp_path / "short", with_tensor(), bytes(7)))


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (with_tensor(shape=[1 << 40], data_offsets=[0, 1 << 42]), "cut off: 8 bytes of tensors"),
        (with_tensor(shape=[1 << 40]), "w: found 8 bytes for shape (1099511627776,) of type F32"),
        (with_tensor(shape=[1 << 59, 1 << 59, 0], data_offsets=[0, 0]), "w: found shape"),
        (with_tensor(shape=[0] * 9, data_offsets=[0, 0]), "w: found shape"),
        (with_tensor(shape=[-2]), "w: found shape [-2]"),
        (with_tensor(shape=[True, 2]), "w: found shape"),
        (with_tensor(shape=[2.0]), "w: found shape"),
        (with_tensor(shape="2"), "w: found shape 2"),
        (with_tensor(dtype="F8_E4M3"), "w: found type 'F8_E4M3', expected one of F64"),
        (with_tensor(dtype=["F32"]), "w: found type"),
        (with_tensor(data_offsets=[8, 0]), "w: found -8 bytes"),
        (with_tensor(data_offsets=[0]), "w: found offsets [0]"),
        (with_tensor(data_offsets=[-8, 0]), "w: found offsets"),
        (with_tensor(data_offsets=[4, 12]), "w: found data from byte 4, expected data from byte 0"),
        ({**with_tensor(), "v": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "found data from byte 0"),
        ({**with_tensor(), "v": 3}, "v: found type None"),
        ({"__metadata__": 3}, "found no 'surgeval' among its metadata"),
        ({"__metadata__": {"surgeval": 3}}, "found no 'surgeval'"),
        ({"__metadata__": {"surgeval": "[1]"}}, "metadata: found a list, expected a JSON object"),
        ({"__metadata__": {"surgeval": "{"}}, "metadata: found text that cannot be read"),
        (
            {"__metadata__": {"surgeval": '{"a": NaN}'}},
            "metadata: found text that cannot be read (the number NaN",
        ),
        ([], "found a header that is a list"),
        (b"\xff\xfe", "a header that cannot be read (no UTF-8 text)"),
        (b'{"a": 1, "a": 2}', "a header that cannot be read (the key 'a' occurs twice in one object)"),
        (b"[" * 100_000, "a header that cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a header that cannot be read (a number"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: object, complaint: str) -> None:
    assert complaint in refusal(write(tmp_path / "liar.safetensors", header, bytes(8)))


@pytest.mark.parametrize("length", [1 << 62, 2**64 - 1, 10_000])
def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path, length: int) -> None:
    assert f"found a header of {length} bytes" in refusal(write(tmp_path / "huge", b"{}", b"", length))


def test_a_header_beyond_every_use_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.write(struct.pack("<Q", 1 << 25))
        file.truncate(1 << 26)  # no bytes on the disk
    assert "expected at most 16777216 in a file of 67108864 bytes" in refusal(tmp_path / "sparse")


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "zip.pt")
    torch.save({"a": torch.ones(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (tmp_path / "bare.pkl").write_bytes(pickle.dumps({"a": [1, 2, 3]}))
    for name in ("zip.pt", "old.pt", "bare.pkl"):
        assert "found a pickle or an archive, which may run code" in refusal(tmp_path / name)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "link", "endless"):
        assert "found a named pipe, a device or the like" in refusal(tmp_path / name)
    assert "found a folder" in refusal(tmp_path)
    for name in ("nowhere", "absent"):
        assert "found no such file" in refusal(tmp_path / name)


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "last").symlink_to(tmp_path / "precious")
    save_state(tmp_path / "last", {"a": torch.ones(1)}, {})
    assert (tmp_path / "precious").read_text() == "keep me" and not (tmp_path / "last").is_symlink()


@given(st.data())
def test_no_damaged_byte_gets_past_as_another_exception(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("damage") / "s"
    save_state(file, {"a": torch.ones(3), "b": torch.ones(2, 2).half()}, {"epoch": 1, "names": ["hook"]})
    whole = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(whole)
    assert "\n" not in complaint(lambda: load_state(file))
