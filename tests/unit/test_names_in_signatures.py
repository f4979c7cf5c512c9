"""The same thing has the same name in every public signature, and on the command line."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import typer.main

import surgeval
from surgeval.cli.app import app

RETIRED = {
    "n_boot": "resamples",
    "label_space": "space",
    "tell": "on_problem, progress or announce",
}
RETIRED_IN = {"surgeval.metrics": {"video": "videos, the video of each row; compat keeps the names of its models"}}
HANDS = ("surgeval.detector", "surgeval.phantom")  # threads and processes that prepare pictures: these are workers


def public_packages() -> Iterator[ModuleType]:
    """Every package without an underscore, from the top."""
    yield surgeval
    for found in pkgutil.walk_packages(surgeval.__path__, "surgeval."):
        if found.ispkg and "._" not in found.name:
            yield import_module(found.name)


def signatures() -> Iterator[tuple[str, str, Any]]:
    """Package, name and parameters of everything public that can be called, methods included."""
    for package in public_packages():
        for name in getattr(package, "__all__", ()):
            one = getattr(package, name)
            if inspect.ismodule(one):
                continue
            several = {name: one}
            if inspect.isclass(one):
                methods = inspect.getmembers(one, inspect.isfunction)
                several |= {f"{name}.{inner}": method for inner, method in methods if not inner.startswith("_")}
            for called, function in several.items():
                try:
                    yield package.__name__, called, inspect.signature(function).parameters
                except (TypeError, ValueError):  # no function: a type alias, a table
                    continue


def test_retired_names_are_in_no_public_signature() -> None:
    every = list(signatures())
    assert {"rank", "run_focus", "score_focus"} <= {name for _, name, _ in every}
    found = {f"{package}.{name}({old}): {new}" for package, name, given in every for old, new in RETIRED.items()
             if old in given}  # fmt: skip
    assert found == set()
    for package, names in RETIRED_IN.items():
        inside = [(name, given) for home, name, given in every if f"{home}.".startswith(f"{package}.")]
        assert {
            f"{name}({old}): {new}" for name, given in inside for old, new in names.items() if old in given
        } == set()
        assert any("videos" in given for _, given in inside)


def test_questions_at_a_time_are_concurrency_and_threads_are_workers() -> None:
    both = {"workers": set(), "concurrency": set()}  # type: dict[str, set[str]]
    for package, _, given in signatures():
        for word, places in both.items():
            places |= {package} if word in given else set()
    assert {place for place in both["workers"] if not place.startswith(HANDS)} == set()
    assert both["concurrency"] and not {place for place in both["concurrency"] if place.startswith(HANDS)}


def test_what_a_protocol_is_run_on_is_called_data() -> None:
    started = {
        name: list(given)
        for package, name, given in signatures()
        if package.startswith("surgeval.protocols.") and (name.startswith("run_") or name == "train")
    }
    assert started and {name for name, words in started.items() if words[0] != "data" or "out" not in words} == set()


def test_predictions_come_before_targets_and_targets_before_videos() -> None:
    order = ("predictions", "targets", "videos")
    holders = ("DetectionSet", "LabelSpace")  # classes whose fields are given by name
    places = {
        name: [list(given).index(word) for word in order if word in given]
        for package, name, given in signatures()
        if package in ("surgeval", "surgeval.metrics") and "targets" in given and name not in holders
    }
    assert len(places) > 8 and {name for name, found in places.items() if found != sorted(found)} == set()


def test_what_scores_writes_only_where_out_names_a_folder() -> None:
    scoring = [given for package, name, given in signatures() if package == "surgeval" and name.startswith("score_")]
    assert scoring and all(given["out"].default is None for given in scoring if "out" in given)


def commands(command: Any, name: str = "surgeval") -> Iterator[tuple[str, set[str]]]:
    for inner, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{name} {inner}")
    yield name, {option for parameter in command.params for option in getattr(parameter, "opts", ())}


def test_commands_call_them_the_same() -> None:
    every = dict(commands(typer.main.get_command(app)))
    assert {name for name, options in every.items() if "--n-boot" in options} == set()
    hands = ("surgeval detect", "surgeval train ")
    assert {name for name, options in every.items() if "--workers" in options and not name.startswith(hands)} == set()
    asking = {name for name, options in every.items() if "--concurrency" in options}
    assert {"surgeval run focus", "surgeval score focus", "surgeval run intent"} < asking
