"""Every golden regions and ARS file under `--golden DIR`: region masks pixel by pixel, and all ratios."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.metrics import Region, Truth, ars, ars_columns, fixed_region, ground_region, top_region

MODE = re.compile(r"(?P<kind>top|fixed)(?P<value>[0-9.]+)(_(?P<option>positive|ge|gt))?")


@cache
def _arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = golden_folder(metafunc.config) / "xai"
    if "region_case" in metafunc.fixturenames:
        cases = [
            (file, number)
            for file in sorted(folder.glob("*.json"))
            if file.with_suffix(".npz").exists() and isinstance(load(file), list)
            for number, case in enumerate(load(file))
            if "modes" in case and "boxes_xyxy" in case
        ]
        metafunc.parametrize(
            "region_case", cases, ids=[f"{file.stem}-{load(file)[number]['case']}" for file, number in cases]
        )
    if "ars_file" in metafunc.fixturenames:
        files = [f for f in sorted(folder.glob("*.json")) if isinstance(load(f), dict) and "V_over_T" in load(f)]
        metafunc.parametrize("ars_file", files, ids=[f.stem for f in files])


def _case(region_case: tuple[Path, int]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], Truth]:
    file, number = region_case
    case, arrays = load(file)[number], _arrays(file.with_suffix(".npz"))
    mine = {key.removeprefix(f"{case['case']}/"): a for key, a in arrays.items() if key.startswith(f"{case['case']}/")}
    boxes, classes = [box for _, box in case["boxes_xyxy"]], [name for name, _ in case["boxes_xyxy"]]
    return case, mine, Truth.of(boxes, classes, case["H"], case["W"])


def _region(heat: npt.NDArray[Any], mode: str) -> Region:
    found = MODE.search(mode.rpartition("(")[2])  # "literal_eq1_tau0.8(top0.8)" means top0.8
    assert found is not None, f"a mode this test does not know: {mode}"
    if found["kind"] == "top":
        return top_region(heat, float(found["value"]), positive=found["option"] == "positive")
    return fixed_region(heat, float(found["value"]), strict=found["option"] == "gt")


def test_the_region_is_the_golden_one_pixel_by_pixel(region_case: tuple[Path, int]) -> None:
    case, arrays, _ = _case(region_case)
    for mode, expected in case["modes"].items():
        region = _region(arrays["L"], mode)
        assert region.size == expected["n_region"], mode
        np.testing.assert_array_equal(region.mask, arrays[f"A/{mode}"], err_msg=mode)


def test_all_ratios_equal_the_golden_ones(region_case: tuple[Path, int]) -> None:
    case, arrays, truth = _case(region_case)
    assert np.count_nonzero(truth.union) == case["gt_pixels"]
    for mode, expected in case["modes"].items():
        region = _region(arrays["L"], mode)
        found = ground_region(region, truth, case["pred"], motion=arrays["motion"], matched=True)
        assert found.present == case["pred_in_gt"]
        wanted = {name: expected[name] for name in ("AC", "AA", "RAS_local", "RAS_global")}
        for name, value in (wanted | {"ARS": expected["ARS_if_match"]}).items():
            assert getattr(found, name) == pytest.approx(value, abs=1e-12), (mode, name)
        assert ars(region, truth, case["pred"], matched=False) == expected["ARS_if_mismatch"], mode
        assert ("empty_region" in found.flags) == (expected["AC"] is None)
        for name in ("constant", "no_gt", "gt_empty"):
            assert (name in found.flags) == case["flags"][name], (mode, name)


def test_the_ars_row_equals_the_golden_one(ars_file: Path) -> None:
    golden = load(ars_file)
    frames = golden["frames"]
    valid = [frame["gt"] == frame["pred"] for frame in frames]
    columns = ars_columns(valid, [frame["overlap_ratio"] for frame in frames])
    right, zeros, known, total = (columns[name].sum() for name in ("V", "Z", "known", "ARS"))
    assert (right, len(frames)) == (golden["V"], golden["T"])
    assert right / len(frames) == pytest.approx(golden["V_over_T"], abs=1e-12)
    assert zeros / right == pytest.approx(golden["Z_over_V"], abs=1e-12)
    assert total / known == pytest.approx(golden["ARS_mean_over_valid"], abs=1e-12)
    assert total / (len(frames) - right + known) == pytest.approx(golden["ARS_mean_over_all_with_zeros"], abs=1e-12)
