"""Who prepares pictures: processes of each set beside a GPU, kept to the end; threads elsewhere."""

from __future__ import annotations

import os

import pytest
import torch
from tests.unit.detector.data.small_sets import mixed_set

from surgeval.detector.data import PictureProcesses, batches, can_fork
from surgeval.detector.training import hands as _hands
from surgeval.detector.training.compute import Compute
from surgeval.detector.training.hands import Hands, hand_count
from surgeval.errors import RunError

GPU, CPU = Compute(torch.device("cuda")), Compute(torch.device("cpu"))  # nothing is computed on it here
DATA, OTHER = mixed_set(size=64, count=8), mixed_set(size=64, count=8)


@pytest.mark.parametrize(("cores", "hands"), [(None, 1), (1, 1), (2, 1), (16, 15), (25, 24), (200, 24)])
def test_all_cores_but_one_serve_a_gpu(cores: int | None, hands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert hand_count(None, GPU) == hands
    assert hand_count(None, CPU) == 1
    assert [hand_count(wanted, one) for wanted in (0, 3) for one in (GPU, CPU)] == [0, 0, 3, 3]


def test_beside_a_cpu_there_are_threads() -> None:
    with Hands(3, 4, CPU) as hands:
        assert hands.of(DATA) == 3


@pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")
def test_beside_a_gpu_every_set_has_its_processes_to_the_end() -> None:
    with Hands(1, 4, GPU) as hands:
        mine, others = hands.of(DATA), hands.of(OTHER)
        assert isinstance(mine, PictureProcesses) and isinstance(others, PictureProcesses)
        assert mine is not others and hands.of(DATA) is mine and hands.of(OTHER) is others
        assert (
            len(list(batches(DATA, batch=4, workers=mine))) == len(list(batches(OTHER, batch=4, workers=others))) == 2
        )
    with pytest.raises((RunError, RuntimeError)):  # they have been sent home
        list(batches(DATA, batch=4, workers=mine))


def test_nobody_is_hired_where_nobody_is_wanted_or_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hands(0, 4, GPU) as hands:
        assert hands.of(DATA) == 0
    monkeypatch.setattr(_hands, "can_fork", lambda: False)
    with Hands(2, 4, GPU) as hands:
        assert hands.of(DATA) == 2
