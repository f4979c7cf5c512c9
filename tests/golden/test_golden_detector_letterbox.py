"""Every golden letterbox file under `--golden DIR`: sizes and padding, and the picture that has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval.detector.geometry import Fit


def _cases(folder: Path) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    cases = []
    for file in sorted((folder / "detector").glob("*.json")):
        entries = json.loads(file.read_bytes())
        if isinstance(entries, list) and entries and "results" in entries[0]:
            cases += [(tuple(entry["size_hw"]), result) for entry in entries for result in entry["results"]]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "letterbox_case" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--golden")
        cases = _cases(Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden")
        ids = [f"{h}x{w}-up={r['scaleup']}-centre={r['center']}" for (h, w), r in cases]
        metafunc.parametrize("letterbox_case", cases, ids=ids)


def test_a_frame_is_scaled_and_padded_as_the_reference_does(
    letterbox_case: tuple[tuple[int, int], dict[str, Any]],
) -> None:
    (height, width), expected = letterbox_case
    side = expected["output_hw"][0]
    fit = Fit.of(height, width, side, scaleup=expected["scaleup"], center=expected["center"])
    assert fit.ratio == expected["ratio"]
    assert list(fit.resized_hw) == expected["resized_hw"]
    padding = [expected[name] for name in ("left", "top", "right", "bottom")]
    assert [fit.left, fit.top, fit.right, fit.bottom] == padding
    if height * width < 1_500_000:
        picture = fit.image(np.full((height, width, 3), 9, np.uint8), fill=114)
        assert list(picture.shape[:2]) == expected["output_hw"]
        rows, columns = np.nonzero(picture[..., 0] == 9)
        measured = [columns.min(), rows.min(), side - 1 - columns.max(), side - 1 - rows.max()]
        assert measured == padding
