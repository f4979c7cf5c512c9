"""A training that dies at any of its writes, before or after the file has its name, ends with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.detector.coloured import coloured

from surgeval.detector.state import load_state
from surgeval.detector.training import TrainRecord, TrainSettings, read_curves, train_tdnet

FILES = ("last.safetensors", "best.safetensors", "student/last.safetensors", "detector.safetensors")
SETTINGS = TrainSettings(size="p", batch=4, nominal=4, image_size=64, epochs=2, student_epochs=1)


class Death(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def train(folder: Path) -> None:
    data, validation = coloured(["a"], 4, 64), coloured(["b"], 2, 64)
    train_tdnet(data, validation, data.classes, folder, SETTINGS)


@pytest.mark.slow
def test_dying_at_any_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    torch.set_num_threads(1)
    rename, writes = Path.replace, 0

    def counted(self: Path, target: Any) -> Path:
        nonlocal writes
        writes += 1
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", counted)
    train(tmp_path / "undisturbed")
    assert writes > 8

    def dying(at: int, after: bool) -> Callable[[Path, Any], Path]:
        count = 0

        def replace(self: Path, target: Any) -> Path:
            nonlocal count
            count += 1
            if count != at:
                return rename(self, target)
            if after:
                rename(self, target)
            raise Death

        return replace

    deaths = [(at, after) for at in range(1, writes + 1) for after in (False, True)]
    for at, after in deaths if long else deaths[9::12]:
        folder = tmp_path / f"death-{at}-{after}"
        monkeypatch.setattr(Path, "replace", dying(at, after))
        with pytest.raises(Death):
            train(folder)
        monkeypatch.setattr(Path, "replace", rename)
        train(folder)
        assert TrainRecord.load(folder).status == "done"
        assert [row["epoch"] for row in read_curves(folder)] == [1, 2]
        for name in FILES:
            mine, theirs = load_state(folder / name)[0], load_state(tmp_path / "undisturbed" / name)[0]
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(mine[key], theirs[key]) for key in mine), f"{name} after {at}"
