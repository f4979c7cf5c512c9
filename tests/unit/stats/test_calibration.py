"""The calibration benchmark in small: equal models are rarely told apart, intervals mostly hold the truth."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "calibration.py"


@pytest.fixture(scope="module")
def calibration() -> Any:
    spec = importlib.util.spec_from_file_location("calibration", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", ["accuracy", "lift"])
def test_six_unequal_videos_claim_little_and_hold_the_truth(calibration: Any, number: str) -> None:
    rows = calibration.simulate(number, "lognormal", 6, range(150))
    share = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    assert share["false new"] <= 0.05 + 0.036  # two standard errors of 150 challenges
    assert share["false new"] < share["false old"] - 0.02
    assert share["alone new"] >= 0.93 - 0.06 and share["alone new"] > share["alone old"]
    assert share["difference new"] >= 0.93 - 0.06
