"""What a training is given is examined before hours of work, and whatever is wrong with it is one sentence."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from surgeval.errors import BadInput, DataError, SurgevalError

pytest.importorskip("torch", reason="training needs surgeval[models]")
pytest.importorskip("transformers", reason="training needs surgeval[models]")

from studies.embedded_models.__main__ import main, train_embedded
from studies.embedded_models.recipes import Recipe
from studies.embedded_models.render import SIZE, SLOTS, Frames, load_frames, save_frames

pytestmark = pytest.mark.long  # the study is not part of the package
NAME = "phantom-clip-resnet"
RECIPE = Recipe(videos=1, steps=1, batch=2)


def some_frames(count: int = 4) -> Frames:
    """Grey frames of two videos, each with the first instrument."""
    slots = np.full((count, SLOTS), -1, np.int16)
    slots[:, 0] = 0
    return Frames(
        images=np.full((count, SIZE, SIZE, 3), 99, np.uint8),
        tools=np.full((count, SIZE, SIZE), 1 << 5 | 31, np.uint8),
        instrument=slots,
        triplet=slots.copy(),
        boxes=np.zeros((count, SLOTS, 4), np.float32),
        working=np.zeros(count, np.int16),
        tint=np.zeros(count, np.int16),
        video=(np.arange(count) % 2).astype(np.int32),
        plates=np.zeros((2, SIZE, SIZE, 3), np.uint8),
    )


def spoil(frames: Frames, name: str, value: int) -> Frames:
    array = getattr(frames, name).copy()
    array.flat[-1] = value
    return replace(frames, **{name: array})


def refuse(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_frames(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def test_good_frames_are_trained_on(tmp_path: Path) -> None:
    save_frames(tmp_path / "kept.npz", some_frames())
    report = train_embedded({NAME: RECIPE}, tmp_path / "out", frames=tmp_path / "kept.npz", workers=1)
    assert report[NAME]["frames"] == 2


def test_frames_that_are_not_kept_whole_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(stream: BinaryIO, **_: object) -> None:
        stream.write(b"PK half an archive")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(KeyboardInterrupt):
        save_frames(tmp_path / "kept.npz", some_frames())
    assert list(tmp_path.iterdir()) == []


HOSTILE: dict[str, tuple[Callable[[Frames], Frames], str]] = {
    "a row missing": (lambda f: replace(f, tint=f.tint[:-1]), r"tint: expected .* got int16 of shape"),
    "a smaller picture": (lambda f: replace(f, images=f.images[:, :64]), "images: .* got uint8 of shape"),
    "floats": (lambda f: replace(f, images=f.images.astype(np.float64)), "images: .* got float64"),
    "unsigned labels": (lambda f: replace(f, instrument=f.instrument.astype(np.uint64)), "instrument: .* got uint64"),
    "no axis": (lambda f: replace(f, video=np.array(0, np.int32)), r"video: .* got int32 of shape \(\)"),
    "no frames": (lambda f: Frames(**{k: v[:0] for k, v in asdict(f).items()}), "instrument: no value in video 0"),
    "an unknown instrument": (lambda f: spoil(f, "instrument", 300), "instrument: .* got -1 to 300"),
    "an unknown triplet": (lambda f: spoil(f, "triplet", -2), "triplet: .* got -2"),
    "an unknown tint": (lambda f: spoil(f, "tint", 7), "tint: expected numbers from -1 to 6, got 0 to 7"),
    "a seventh slot": (lambda f: spoil(f, "tools", 255), "tools: expected numbers from 0 to 6, got 7 to 7"),
    "a working slot": (lambda f: spoil(f, "working", 6), "working: expected numbers from -1 to 5, got 0 to 6"),
    "a gap between videos": (lambda f: spoil(f, "video", 400), "video: .* got 0 to 400"),
    "an infinite box": (lambda f: replace(f, boxes=f.boxes + np.inf), "boxes: expected finite corners"),
    "no tint": (lambda f: replace(f, tint=f.tint - 1), "tint: no value in video 0"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_frames_that_no_training_kept_are_refused(tmp_path: Path, case: str) -> None:
    change, words = HOSTILE[case]
    path = tmp_path / "kept.npz"
    save_frames(path, change(some_frames()))
    with pytest.raises(DataError, match=words):
        load_frames(path)


def test_files_that_hold_no_frames_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    for content in (b"", b"PK", b"\x93NUMPY", b"\x80\x04."):
        path.write_bytes(content)
        assert "not a file of stored frames" in refuse(path)
    np.savez(path, images=np.zeros(1))
    assert "not a file of stored frames" in refuse(path)
    np.savez_compressed(path, **asdict(some_frames()))
    assert "a compressed archive" in refuse(path)
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    refuse(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in asdict(some_frames()):
            archive.writestr(f"{name}.npy", b"no array")
    assert "images: expected uint8 of shape (frames, 128, 128, 3), got bytes" in refuse(path)
    assert "not a regular file" in refuse(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refuse(tmp_path / "pipe")


def test_an_empty_file_of_frames_is_bad_input_and_no_interruption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept.npz").touch()
    options = ["--out", str(tmp_path / "out"), "--frames", str(tmp_path / "kept.npz")]
    assert main(["train", NAME, *options]) == 2
    assert "kept.npz: not a file of stored frames" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "options", "words"),
    [
        ({}, {"device": "foo"}, "Cannot use device 'foo'"),
        ({}, {"device": "meta"}, "Cannot use device 'meta'"),
        ({"seed": 10**30}, {}, "seed must be .* got 1000000000000000000000000000000"),
        ({"seed": -1}, {}, "seed must be .* got -1"),
        ({"batch": 10**30}, {}, "batch must be at most 65536"),
        ({}, {"workers": 0}, "workers must be at least 1"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    recipe: dict[str, Any], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=words):
        train_embedded({NAME: replace(RECIPE, **recipe)}, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def no_rendering(*_: object) -> None:
    pytest.fail("rendered before the places were looked at")


@pytest.mark.parametrize("bad", ["out below a file", "model is a file", "weights are a folder", "frames below a file",
                                 "frames in no folder"])  # fmt: skip
def test_places_that_cannot_be_written_are_told_before_anything_is_rendered(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.embedded_models.__main__.render_videos", no_rendering)
    (tmp_path / "file").touch()
    out, frames = tmp_path / "out", None
    out.mkdir()
    if bad == "out below a file":
        out = tmp_path / "file" / "out"
    elif bad == "model is a file":
        (out / NAME).touch()
    elif bad == "weights are a folder":
        (out / NAME / "model.safetensors").mkdir(parents=True)
    else:
        frames = tmp_path / ("file" if bad == "frames below a file" else "none") / "kept.npz"
    with pytest.raises(
        SurgevalError,
        match=r"is a file|Cannot (write to the folder|replace|write the file)|was not written by a training",
    ):
        train_embedded({NAME: RECIPE}, out, frames=frames)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="every place is writable to root")
def test_a_folder_without_permission_is_told_before_anything_is_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.embedded_models.__main__.render_videos", no_rendering)
    (tmp_path / "locked").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(BadInput, match=r"Cannot write to the folder .* permission denied"):
        train_embedded({NAME: RECIPE}, tmp_path / "locked")
    with pytest.raises(BadInput, match=r"Cannot write the file .* permission denied"):
        train_embedded({NAME: RECIPE}, tmp_path / "out", frames=tmp_path / "locked" / "kept.npz")


def test_looking_whether_frames_can_be_kept_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        assert not (tmp_path / "kept.npz").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr("studies.embedded_models.__main__.render_videos", stop)
    with pytest.raises(KeyboardInterrupt):
        train_embedded({NAME: RECIPE}, tmp_path / "out", frames=tmp_path / "kept.npz")
