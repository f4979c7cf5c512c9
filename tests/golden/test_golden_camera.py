"""Every golden camera file under `--golden DIR`: fitted parameters, corrected flow, magnitude and motion mask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from surgeval.explain.camera import camera_field, corrected_flow, edge_motion, fit_camera, fit_camera_robust
from surgeval.explain.motion import flow_magnitude, motion_mask
from surgeval.records import CameraMotion

Case = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]


def _cases(folder: Path) -> list[Case]:
    found: list[Case] = []
    for file in sorted((folder / "xai").glob("*.json")):
        entries = json.loads(file.read_bytes())
        if not (isinstance(entries, list) and entries and "use_backward" in entries[0]):
            continue
        with np.load(file.with_suffix(".npz"), allow_pickle=False) as arrays:
            for entry in entries:
                prefix = entry["case"] + "/"
                found.append((entry, {k.removeprefix(prefix): arrays[k] for k in arrays.files if k.startswith(prefix)}))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "camera_case" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--golden")
        cases = _cases(Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden")
        metafunc.parametrize("camera_case", cases, ids=[entry["case"] for entry, _ in cases])


def _flows(case: Case) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    entry, arrays = case
    forward = np.moveaxis(arrays["fwd"], 0, -1)
    return forward, np.moveaxis(arrays["bwd"], 0, -1) if entry["use_backward"] else None


def _apart(a: CameraMotion, b: CameraMotion, shape: tuple[int, ...]) -> float:
    return edge_motion(CameraMotion(a.P - b.P, a.T - b.T, a.Z - b.Z, a.R - b.R), shape[0], shape[1])


def test_the_fit_finds_the_golden_parameters_and_residual(camera_case: Case) -> None:
    entry, arrays = camera_case
    forward, backward = _flows(camera_case)
    where = None if arrays["mask"].all() else arrays["mask"]
    motion = fit_camera(forward, backward, where=where)
    assert _apart(motion, CameraMotion(**entry["solved"]), forward.shape) < 1e-9
    field = camera_field(motion, *forward.shape[:2])
    residual = ((field - forward) ** 2).sum(axis=2)
    if backward is not None:
        residual = residual + ((field + backward) ** 2).sum(axis=2)
    assert residual[arrays["mask"]].sum() == pytest.approx(entry["E"], rel=1e-9, abs=1e-12)


def test_corrected_flow_magnitude_and_mask_are_the_golden_ones(camera_case: Case) -> None:
    entry, arrays = camera_case
    forward, _ = _flows(camera_case)
    corrected = corrected_flow(forward, CameraMotion(**entry["solved"]))
    np.testing.assert_allclose(np.moveaxis(corrected, -1, 0), arrays["corrected"], atol=1e-5)
    magnitude = flow_magnitude(corrected)
    np.testing.assert_allclose(magnitude, arrays["mag"], atol=1e-5)
    if magnitude.max() > 1e-9 or not magnitude.any():  # else the mask ranks rounding errors
        marked = motion_mask(magnitude, keep_top=0.2, floor=0.0)
        np.testing.assert_array_equal(marked.mask, arrays["motion_mask_top20"])


def test_the_robust_fit_ignores_the_moving_object(camera_case: Case) -> None:
    entry, arrays = camera_case
    forward, backward = _flows(camera_case)
    fit = fit_camera_robust(forward, backward, where=arrays["mask"])
    truth = CameraMotion(**entry["true"])
    assert fit.converged
    # Without noise the truth itself; with noise about what the pixels outside the object would tell.
    clean = arrays["mask"] & ~arrays["object"]
    reachable = _apart(fit_camera(forward, backward, where=clean), truth, forward.shape)
    assert _apart(fit.motion, truth, forward.shape) < 1e-6 + 2 * reachable
