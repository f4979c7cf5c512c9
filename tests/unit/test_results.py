"""What a public function hands back: fields by name, tables, figures, and a line to read in a terminal."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

import surgeval
from surgeval.errors import BadInput
from surgeval.metrics import Boxes, DetectionSet, evaluate_detection, evaluate_recognition
from surgeval.results import Result
from surgeval.stats import (
    bootstrap_mean,
    bootstrap_slices,
    calibration,
    cohen_kappa,
    leave_one_model_out,
    minimum_detectable_difference,
    paired_difference,
    rank_outcomes,
    slices_by,
    stability,
)

BY_POSITION = 6  # more values than this are mixed up sooner or later


def exported() -> Iterator[type]:
    """Every class of ours that a public package exports."""
    names = [found.name for found in pkgutil.walk_packages(surgeval.__path__, "surgeval.") if found.ispkg]
    for name in ("surgeval", *(name for name in names if "._" not in name)):
        package = import_module(name)
        for value in (getattr(package, word) for word in getattr(package, "__all__", ())):
            if inspect.isclass(value) and value.__module__.startswith("surgeval."):
                yield value


PUBLIC = sorted(set(exported()), key=lambda one: (one.__module__, one.__name__))
RESULTS = [one for one in PUBLIC if hasattr(one, "to_frame")]


def by_position(one: type) -> list[str]:
    return [word.name for word in inspect.signature(one).parameters.values() if word.kind is not word.KEYWORD_ONLY]


def test_the_walk_finds_results_of_every_layer() -> None:
    found = {one.__name__ for one in RESULTS}
    assert {"Interval", "DetectionResult", "RunSummary", "Detected", "SetReport", "PanelReport", "Ranking",
            "ConvertReport", "FocusScores", "RankingStudy", "Explained"} <= found  # fmt: skip


@pytest.mark.parametrize("one", RESULTS, ids=lambda one: one.__name__)
def test_results_have_tables_and_figures_take_keywords_and_print_a_line(one: type) -> None:
    assert issubclass(one, Result)
    assert by_position(one) == []
    if "__dataclass_params__" in vars(one):
        assert not vars(one)["__dataclass_params__"].repr


@pytest.mark.parametrize("package", ["surgeval.metrics", "surgeval.stats"])
def test_numbers_are_not_told_apart_by_position(package: str) -> None:
    records = [one for one in PUBLIC if dataclasses.is_dataclass(one) and one.__module__.startswith(package)]
    assert {one.__name__ for one in records if len(by_position(one)) > BY_POSITION} == set()


def made() -> list[Result]:
    """One of each kind that metrics and statistics hand back."""
    right, videos = {"net": [1] * 16, "prior": [1, 0] * 8}, [video for video in "abcdefgh" for _ in range(2)]
    places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=99)
    boxes = Boxes.of([0, 1], {"i": [0, 0]}, [[0, 0, 10, 10]] * 2)
    detected = evaluate_detection(DetectionSet.of(boxes, boxes, [0, 1]), {"i": 40})
    labels = np.eye(40)[:20]
    return [
        places, stability(places, outer=5, resamples=20), leave_one_model_out(places),
        calibration(places, challenges=5, resamples=20), minimum_detectable_difference(places),
        bootstrap_mean(right["prior"], videos), cohen_kappa([1, 0] * 8, [1, 1] * 8, resamples=20),
        bootstrap_slices(right["prior"], videos, slices_by("half", [1, 2] * 8)),
        paired_difference(right["net"], right["prior"], videos),
        detected, detected["i"], evaluate_recognition(labels, labels, [0] * 10 + [1] * 10)["ivt"],
    ]  # fmt: skip


@pytest.mark.figures
def test_what_metrics_and_statistics_give_is_a_line_a_table_and_a_picture() -> None:
    results = made()
    wanted = {one for one in RESULTS if one.__module__.startswith(("surgeval.metrics", "surgeval.stats"))}
    assert {type(result) for result in results} == wanted
    for result in results:
        line = repr(result)
        assert line.startswith(type(result).__name__) and "\n" not in line and len(line) < 120
        first = next(iter(result.tables.values()))
        assert first.height and result.to_frame().equals(first) and "<table" in result._repr_html_()
        assert result.plot().svg().startswith("<svg")


def test_an_undefined_number_is_a_word_in_the_picture_and_no_bar() -> None:
    only = evaluate_recognition(np.array([[0.9, 0.1], [0.2, 0.3]]), np.array([[1, 0], [0, 0]]), [0, 0])["ivt"]
    assert repr(only) == "RecognitionResult: ivt mAP 1.000 (2 classes, 1 video)"
    assert "0 1, 1 undefined" in only.figures["AP"].alt
    with pytest.raises(BadInput, match="expected one of AP"):
        only.plot("F1")
