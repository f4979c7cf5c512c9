"""The study of detectors: what is trained is what is scored, and no video is trained and tested."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PLAN = {"videos": ["A1", "A2", "B1", "B2"], "split": {"train": ["A1", "B1"], "val": ["A2"], "test": ["B2"]},
        "halves": [["A1/1", "A2/1"], ["A1/2", "A2/2"]]}  # fmt: skip


@pytest.fixture(scope="module")
def study() -> ModuleType:
    path = Path(__file__).parents[2] / "studies" / "detectors.py"
    spec = importlib.util.spec_from_file_location("detector_study", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def options(study: ModuleType, experiment: str, *more: str) -> argparse.Namespace:
    words = ["train", experiment, "--packed", "x", "--out", "y", "--budget-seconds", "600", "--device", "cpu", *more]
    given = study.parser().parse_args(words)
    assert isinstance(given, argparse.Namespace)
    return given


@pytest.mark.parametrize("experiment", ["compare", "ablation", "videos", "halves", "one"])
def test_no_video_is_trained_and_tested(experiment: str, study: ModuleType) -> None:
    tasks = study.PLANS[experiment](PLAN, 64, options(study, experiment))
    assert len({task.name for task in tasks}) == len(tasks)
    for task in tasks:
        assert task.test and not set(task.test) & {*task.train, *task.val}
        assert not set(task.train) & set(task.val)


def test_trainings_fit_into_the_budget(study: ModuleType) -> None:
    for experiment in study.PLANS:
        tasks = study.PLANS[experiment](PLAN, 64, options(study, experiment))
        shares = [study.STUDENT_SHARE if task.kind == "student" else 1.0 for task in tasks]
        minutes = sum(share * (task.settings.minutes or 0) for share, task in zip(shares, tasks, strict=True))
        assert minutes * 60 <= 600


def test_students_of_a_seed_differ_by_their_fusion_weight_alone(study: ModuleType) -> None:
    tasks = study.PLANS["ablation"](PLAN, 64, options(study, "ablation", "--seeds", "2"))
    students = [task for task in tasks if task.kind == "student"]
    teachers = {task.name: task for task in tasks if task.kind == "tdnet"}
    assert len(students) == 8
    for task in students:
        own, other = task.settings.to_json(), teachers[task.teacher].settings.to_json()
        assert {key for key in own if own[key] != other[key]} == {"fusion"}
