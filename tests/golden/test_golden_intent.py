"""Every golden file of `intent` under `--golden DIR`: fixations by I-DT, and coefficients of agreement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.datasets.gaze import GazeTrack, find_fixations, idt
from surgeval.stats import cohen_kappa, count_ratings, fleiss_kappa, krippendorff_alpha


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = golden_folder(metafunc.config) / "intent"
    for fixture, key in (("trace", "positions"), ("table", "ratings")):
        if fixture in metafunc.fixturenames:
            cases = [
                case
                for file in sorted(folder.glob("*.json*"))
                if isinstance(load(file), list)
                for case in load(file)
                if key in case
            ]
            metafunc.parametrize(fixture, cases, ids=[case["case"] for case in cases])


def _track(trace: dict[str, Any]) -> GazeTrack:
    positions = np.array([[np.nan if value is None else value for value in row] for row in trace["positions"]])
    t = np.array(trace["time_ms"]) / 1000
    return GazeTrack(trace["case"], "samples", t, positions[:, 0], positions[:, 1], np.zeros(len(t)))


def test_fixations_are_those_of_the_textbook_loop(trace: dict[str, Any]) -> None:
    track, times = _track(trace), np.array(trace["time_ms"])
    pairs = idt(track.x, track.y, trace["dispersion_threshold"], int(trace["minimum_samples"]))
    assert times[pairs].tolist() == trace["loop"]
    fixed = find_fixations(track, trace["dispersion_threshold"], minimum=trace["minimum_duration_ms"] / 1000)
    ends = np.column_stack([fixed.t, fixed.t + fixed.duration]).reshape(-1, 2) * 1000
    assert np.round(ends).tolist() == trace["loop"]


def test_fixations_are_those_of_pymovements_within_a_sample_where_the_file_says_so(trace: dict[str, Any]) -> None:
    track, times = _track(trace), np.array(trace["time_ms"])
    ours = times[idt(track.x, track.y, trace["dispersion_threshold"], int(trace["minimum_samples"]))].reshape(-1, 2)
    theirs = np.array(trace["pymovements"]).reshape(-1, 2)
    close = ours.shape == theirs.shape and bool((np.abs(ours - theirs) <= trace["interval_ms"]).all())
    assert close == trace["within_one_sample"]


def _ours(name: str, ratings: list[list[Any]]) -> float | None:
    items = list(zip(*ratings, strict=True))
    used = sorted({label for row in ratings for label in row if label is not None})
    if name.startswith("cohen"):
        weights: Any = name.removeprefix("cohen").removeprefix("_") or None
        return cohen_kappa(*ratings, weights=weights, categories=used, resamples=10).value
    if name.startswith("fleiss"):
        chance: Any = name.removeprefix("fleiss").removeprefix("_") or "fleiss"
        return fleiss_kappa(count_ratings(items)[0], chance=chance, resamples=10).value
    assert name == "alpha_nominal", f"a coefficient this test does not know: {name}"
    return krippendorff_alpha(items, resamples=10).value


def test_coefficients_of_agreement_are_those_of_the_packages(table: dict[str, Any]) -> None:
    for name, value in table["expected"].items():
        if name == "alpha_error":
            continue
        ours = _ours(name, table["ratings"])
        if value is None:
            assert ours is None or np.isnan(ours), name
        else:
            assert ours == pytest.approx(value, abs=1e-9), name
