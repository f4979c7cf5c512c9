"""Optical flow: every method finds a known shift, files are believed only when whole, RAFT needs its file."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flow_fields import forward_backward_error, write_flo

from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.explain.flow import (
    DisFlow,
    FarnebackFlow,
    FlowMethod,
    StoredFlow,
    estimate_flow,
    open_flow,
    read_flo,
)
from surgeval.explain.motion import round_field


@pytest.fixture(scope="module")
def shifted() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """A textured picture, and the same moved 3 px right and 2 px up."""
    texture = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 256, (200, 260, 3)).astype(np.uint8), (0, 0), 2)
    texture = cv2.normalize(texture, None, 0, 255, cv2.NORM_MINMAX)
    return texture[20:180, 20:240], texture[22:182, 17:237]


@pytest.mark.parametrize("method", [DisFlow(), DisFlow("fast"), FarnebackFlow()], ids=["dis", "dis-fast", "farneback"])
def test_a_shift_is_found_in_both_directions(
    method: FlowMethod, shifted: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
) -> None:
    pair = method.pair(*shifted)
    assert pair.backward is not None
    assert pair.forward.dtype == np.float32 and pair.forward.shape == (160, 220, 2)
    inner = np.s_[20:-20, 20:-20]
    np.testing.assert_allclose(np.median(pair.forward[inner], axis=(0, 1)), (3, -2), atol=0.1)
    np.testing.assert_allclose(np.median(pair.backward[inner], axis=(0, 1)), (-3, 2), atol=0.1)
    assert np.nanmedian(forward_backward_error(pair)) < 0.2
    assert method.pair(*shifted, backward=False).backward is None
    np.testing.assert_array_equal(estimate_flow(*shifted, method), pair.forward)


def test_dis_does_not_depend_on_the_number_of_threads(
    shifted: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]],
) -> None:
    before, found = cv2.getNumThreads(), []
    try:
        for threads in (1, 2, 5):
            cv2.setNumThreads(threads)
            found.append(estimate_flow(*shifted))
    finally:
        cv2.setNumThreads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_frames_that_are_no_pictures_are_refused() -> None:
    picture = np.zeros((40, 50, 3), np.uint8)
    cases: tuple[tuple[npt.NDArray[Any], npt.NDArray[Any], str], ...] = (
        (picture, picture[:, :40], "50×40 and 40×40"),
        (picture.astype(np.float32), picture, "float32"),
        (picture[..., :2], picture, r"\(40, 50, 2\)"),
        (picture[:20], picture[:20], "too small"),
    )
    for a, b, said in cases:
        with pytest.raises(BadInput, match=said):
            estimate_flow(a, b)


def test_an_unknown_method_or_preset_is_named() -> None:
    with pytest.raises(BadInput, match=r"'lucas'\. Use one of dis, farneback, raft, files"):
        open_flow("lucas")
    with pytest.raises(BadInput, match="ultrafast, fast, medium"):
        open_flow("dis", preset="slow")
    with pytest.raises(BadInput, match="needs a folder"):
        open_flow("files")
    with pytest.raises(BadInput, match="needs a weights file"):
        open_flow("raft")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_stored_flow_comes_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    there, back = (rng.normal(0, 4, (40, 50, 2)).astype(np.float32) for _ in range(2))
    (tmp_path / "VID01").mkdir()
    write_flo(tmp_path / "VID01" / "000025.flo", there)
    write_flo(tmp_path / "VID01" / "000025.back.flo", back)
    picture = np.zeros((40, 50, 3), np.uint8)
    pair = open_flow("files", folder=tmp_path).pair(picture, picture, key="VID01/000025")
    assert pair.backward is not None
    np.testing.assert_array_equal(pair.forward, there)
    np.testing.assert_array_equal(pair.backward, back)
    with pytest.raises(DataError, match="50×40 differs from the frame's 60×40"):
        StoredFlow(tmp_path).pair(*[np.zeros((40, 60), np.uint8)] * 2, key="VID01/000025")
    with pytest.raises(DataError, match="no such file"):
        StoredFlow(tmp_path).pair(picture, picture, key="VID01/000026")


def test_a_frame_name_leads_nowhere_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    write_flo(outside / "a.flo", np.zeros((40, 50, 2), np.float32))
    (inside / "link").symlink_to(outside)
    picture = np.zeros((40, 50), np.uint8)
    for key in ("../out/a", str(outside / "a"), "link/a", "", "VID\0/a"):
        with pytest.raises(BadInput, match="found by VIDEO/FRAME"):
            StoredFlow(inside).pair(picture, picture, key=key, backward=False)


def _file(folder: Path, magic: float, width: int, height: int, body: bytes) -> Path:
    path = folder / "x.flo"
    path.write_bytes(struct.pack("<fii", magic, width, height) + body)
    return path


@pytest.mark.parametrize(
    ("magic", "width", "height", "body", "said"),
    [
        (1.0, 2, 2, bytes(32), "begins with 1 instead of 202021.25"),
        (202021.25, 2, 2, bytes(31), "43 bytes; 2×2 pixels need 44"),
        (202021.25, 2, 2, bytes(33), "45 bytes; 2×2 pixels need 44"),
        (202021.25, 2**31 - 1, 2**31 - 1, b"", "expected sides from 1 to 16384"),
        (202021.25, -2, -2, bytes(32), "expected sides from 1 to 16384"),
        (202021.25, 0, 5, b"", "expected sides from 1 to 16384"),
        (202021.25, 16384, 16384, b"", "12 bytes; 16384×16384 pixels need 2147483660"),
        (202021.25, 1, 1, struct.pack("<ff", float("nan"), 0), "row 0, column 0: flow: \\(nan, 0\\)"),
        (202021.25, 1, 1, struct.pack("<ff", 0, float("inf")), "finite flow"),
        (202021.25, 1, 1, struct.pack("<ff", 1666666752.0, 0), "finite flow"),
    ],
)
def test_a_flo_file_that_lies_is_refused(
    tmp_path: Path, magic: float, width: int, height: int, body: bytes, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read_flo(_file(tmp_path, magic, width, height, body))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.flo")
    (tmp_path / "short.flo").write_bytes(b"PIEH")
    for path, said in (
        (tmp_path / "pipe.flo", "not a regular file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "none.flo", "no such file"),
        (tmp_path / "short.flo", "4 bytes"),
        (tmp_path / "zero\0.flo", "not a possible file name"),
    ):
        with pytest.raises(DataError, match=said):
            read_flo(path)


def test_a_pipe_among_stored_flow_is_not_waited_for(tmp_path: Path) -> None:
    import signal

    write_flo(tmp_path / "1.flo", np.zeros((40, 40, 2), np.float32))
    before = StoredFlow(tmp_path).record()
    os.mkfifo(tmp_path / "2.flo")
    signal.alarm(60)  # ends a run that waits
    assert StoredFlow(tmp_path).record() == before
    frame = np.zeros((40, 40), np.uint8)
    with pytest.raises(DataError, match=r"2\.flo: not a regular file"):
        StoredFlow(tmp_path).pair(frame, frame, key="2", backward=False)
    signal.alarm(0)


@given(st.binary(max_size=64), st.booleans())
def test_no_bytes_crash_the_reader(data: bytes, honest: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.flo"
        path.write_bytes(struct.pack("<f", 202021.25) + data if honest else data)
        try:
            found = read_flo(path)
        except SurgevalError:
            return
        assert np.isfinite(found).all() and found.nbytes + 12 == path.stat().st_size


# ── the round field ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_black_around_the_field_is_left_out_with_a_margin() -> None:
    y, x = np.mgrid[:200, :300]
    inside = np.hypot(x - 150, y - 100) < 110
    picture = np.where(inside[..., None], np.uint8(120), np.uint8(4)) + np.zeros(3, np.uint8)
    picture[90:110, 140:160] = 0  # a dark thing in the middle is no black border
    field = round_field(picture)
    assert field[100, 150] and not field[0, 0]
    assert not (field & ~inside).any()
    assert 0.8 < field.sum() / inside.sum() < 1


def test_a_picture_without_black_or_in_the_dark_is_all_field() -> None:
    assert round_field(np.full((60, 80, 3), 90, np.uint8)).all()
    assert round_field(np.zeros((60, 80, 3), np.uint8)).all()


# ── RAFT ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_raft_without_torchvision_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    monkeypatch.setitem(sys.modules, "torchvision.models.optical_flow", None)
    with pytest.raises(BadInput, match="found no torchvision"):
        open_flow("raft", weights=tmp_path / "raft.pth")


def test_raft_runs_from_a_state_dict_and_refuses_other_files(tmp_path: Path) -> None:
    import torch

    try:
        import torchvision.models.optical_flow as networks
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"torchvision cannot be imported: {error}")

    state = networks.raft_small(weights=None).state_dict()
    good, renamed, code, cut = (tmp_path / f"{name}.pth" for name in ("good", "renamed", "code", "cut"))
    torch.save(state, good)
    torch.save({k.replace("update_block", "update"): v for k, v in state.items()}, renamed)
    code.write_bytes(pickle.dumps({"feature_encoder.convnormrelu.0.weight": os.system}))
    cut.write_bytes(good.read_bytes()[:5000])
    a, b = (np.random.default_rng(k).integers(0, 255, (132, 150, 3)).astype(np.uint8) for k in (0, 1))
    method = open_flow("raft", weights=good)
    pair = method.pair(a, b)
    assert pair.backward is not None and pair.forward.shape == pair.backward.shape == (132, 150, 2)
    assert method.record()["network"] == "raft_small"
    np.testing.assert_allclose(method.pair(b, a, backward=False).forward, pair.backward, atol=1e-2)
    with pytest.raises(DataError, match="holds more than tensors"):
        open_flow("raft", weights=code)
    with pytest.raises(DataError, match="truncated or damaged"):
        open_flow("raft", weights=cut)
    with pytest.raises(DataError, match="no such file"):
        open_flow("raft", weights=tmp_path / "none.pth")
    with pytest.raises(DataError, match="not a state dict of torchvision's raft_large or raft_small"):
        open_flow("raft", weights=renamed).pair(a, b)
