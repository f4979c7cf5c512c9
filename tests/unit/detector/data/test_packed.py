"""A packed training set is the same training set, and a damaged one is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.detector.data.small_sets import mixed_set

from surgeval.detector import load_state, save_state
from surgeval.detector.data import Augment, load_packed, save_packed
from surgeval.errors import BadInput, DataError

DATA = mixed_set()


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    save_packed(tmp_path / "train.safetensors", DATA, quality=None)
    return tmp_path / "train.safetensors"


def test_without_loss_every_sample_is_the_same(packed: Path) -> None:
    for cache in (0, 1 << 30):
        again = load_packed(packed, cache_bytes=cache)
        assert (again.fingerprint, again.problems, again.classes) == (DATA.fingerprint, DATA.problems, DATA.classes)
        assert bool(again.pictures.cached) == (cache > 0)
        for k in range(len(DATA)):
            one, other = again.sample(k, 2, 1, Augment()), DATA.sample(k, 2, 1, Augment())
            assert (one.image == other.image).all() and (one.boxes == other.boxes).all()
            assert all((one.labels[head] == rows).all() for head, rows in other.labels.items())


def test_jpeg_is_smaller_and_keeps_the_labels(packed: Path, tmp_path: Path) -> None:
    save_packed(tmp_path / "small.safetensors", DATA, quality=60)
    assert (tmp_path / "small.safetensors").stat().st_size < packed.stat().st_size / 1.5
    again = load_packed(tmp_path / "small.safetensors")
    assert again.fingerprint == DATA.fingerprint
    with pytest.raises(BadInput, match="quality 0"):
        save_packed(tmp_path / "no.safetensors", DATA, quality=0)


def test_some_frames_of_a_set_can_be_packed(tmp_path: Path) -> None:
    part = DATA.of_videos(["VID02"])
    save_packed(tmp_path / "part.safetensors", part, quality=None)
    again = load_packed(tmp_path / "part.safetensors")
    assert again.names == part.names
    assert (again.sample(1).image == part.sample(1).image).all()


def _number(tensors: dict[str, Any], name: str, place: Any, value: float) -> None:
    tensors[name][place] = value


DAMAGES: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = {
    "kind": (lambda t, m: m.update(kind="tdnet"), "kind: found tdnet"),
    "format": (lambda t, m: m.pop("format"), "Written by an earlier version"),
    "no names": (lambda t, m: m.update(names=[]), "names"),
    "names of numbers": (lambda t, m: m.update(names=[1] * 12), "names"),
    "videos missing": (lambda t, m: m["videos"].pop(), "videos"),
    "size": (lambda t, m: m.update(image_size=100), "image_size"),
    "size as text": (lambda t, m: m.update(image_size="96"), "image_size"),
    "fill": (lambda t, m: m.update(fill=300), "fill"),
    "classes": (lambda t, m: m.update(classes={"task": "x"}), "task"),
    "problems": (lambda t, m: m.update(problems=3), "problems"),
    "offsets falling": (lambda t, m: _number(t, "offsets", 3, 50), "offsets"),
    "offsets wrapping": (lambda t, m: _number(t, "offsets", 2, -(2**63)), "offsets"),
    "offsets beyond": (lambda t, m: _number(t, "offsets", -1, 2**62), "boxes"),
    "ends beyond": (lambda t, m: _number(t, "ends", -1, 2**62), "pictures"),
    "ends negative": (lambda t, m: _number(t, "ends", 0, -5), "ends"),
    "box outside": (lambda t, m: _number(t, "boxes", (0, 2), 97), "boxes"),
    "box not a number": (lambda t, m: _number(t, "boxes", (0, 0), float("nan")), "boxes"),
    "box reversed": (lambda t, m: _number(t, "boxes", (0, 2), 0), "boxes"),
    "frame sizes": (lambda t, m: _number(t, "frame_sizes", (0, 0), 0), "frame_sizes"),
    "other frame size": (lambda t, m: _number(t, "frame_sizes", (0, 0), 30), "picture 0"),
    "picture cut": (lambda t, m: t["pictures"][200:400].zero_(), "picture 0"),
    "no boxes": (lambda t, m: t.pop("boxes"), "boxes"),
    "boxes of another type": (lambda t, m: t.update(boxes=t["boxes"].double()), "boxes"),
    "too few bits": (lambda t, m: t.update(main=t["main"][:, :5].contiguous()), "main"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_files_are_refused_by_name(packed: Path, damage: str) -> None:
    tensors, metadata = load_state(packed)
    change, named = DAMAGES[damage]
    change(tensors, metadata)
    save_state(packed, tensors, metadata)
    with pytest.raises(DataError) as refusal:
        load_packed(packed)
    assert named in str(refusal.value) and "train.safetensors" in str(refusal.value)


def test_a_file_cut_anywhere_is_refused(packed: Path) -> None:
    whole = packed.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        packed.write_bytes(whole[:length])
        with pytest.raises(DataError):
            load_packed(packed)


def test_other_checkpoints_are_no_training_sets(tmp_path: Path) -> None:
    save_state(tmp_path / "x.safetensors", {"weight": torch.zeros(3)}, {"kind": "tdnet"})
    with pytest.raises(DataError, match="expected a training set packed by surgeval"):
        load_packed(tmp_path / "x.safetensors")
