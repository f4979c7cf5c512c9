"""Every public function shows how it is called: its docstring holds an example that succeeds, run as a doctest."""

from __future__ import annotations

import ast
import doctest
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import surgeval

MODULES = ("surgeval.models.weights",)  # not a package, and yet what other packages import from

# Functions whose success no doctest can show, and why; most of their examples show what they refuse.
NOT_SHOWN = {
    "surgeval.asking.recorded_answers.read_eval_log": "importing Inspect AI takes seconds, and it is an extra",
    "surgeval.cli.main": "it ends the process: its example starts it in one of its own",
    "surgeval.detector.inference.export.export_onnx": "tracing a network takes seconds",
    "surgeval.models.registry.hub_folder": "it asks the hub, which no test may",
    "surgeval.phantom.dataset.write.write_edition": "18 minutes of film; `write_phantom` shows a short one",
}

# Functions that the example of another one shows, which makes what they need; that example is looked at.
SHOWN_BY = {
    "surgeval.protocols.surgxbench.result.join_runs": "surgxbench.run_surgxbench",
    "surgeval.protocols.surgxbench.result.load_surgxbench": "surgxbench.run_surgxbench",
    "surgeval.protocols.training.ablation.result.load_ablation": "training.run_ablation",
    "surgeval.protocols.training.curves.load_training_folder": "training.write_training_page",
    "surgeval.protocols.training.result.load_training": "training.run_training",
}


def packages() -> Iterator[str]:
    """`surgeval` and every package below it."""
    yield surgeval.__name__
    for module in pkgutil.walk_packages(surgeval.__path__, "surgeval."):
        if module.ispkg:
            yield module.name


def exported(package: str) -> dict[str, Any]:
    """What a package exports of surgeval's own, lazily or not, by the place where it is defined."""
    home = import_module(package)
    values = [getattr(home, name) for name in getattr(home, "__all__", ())]
    return {
        f"{value.__module__}.{value.__qualname__}": value
        for value in values
        if (inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)))
        and str(value.__module__).startswith("surgeval")
    }


def public_functions(package: str) -> dict[str, Callable[..., Any]]:
    """The functions among them."""
    return {name: value for name, value in exported(package).items() if not inspect.isclass(value)}


def examples(documented: object) -> list[doctest.Example]:
    """The examples of a function, or of a class and its own methods and properties."""
    parts: list[object] = [documented]
    if inspect.isclass(documented):
        parts += [getattr(part, "__func__", part) for part in vars(documented).values()]
    texts = [
        part.__doc__ for part in parts if isinstance(part, property) or inspect.isroutine(part) or part is documented
    ]
    return [example for text in texts for example in doctest.DocTestParser().get_examples(text or "")]


def called(source: str) -> set[str]:
    """The names of what an example calls.

    >>> sorted(called("print(surgeval.load_run(folder).name)"))
    ['load_run', 'print']
    """
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {func.attr if isinstance(func, ast.Attribute) else func.id for func in calls
            if isinstance(func, ast.Attribute | ast.Name)}  # fmt: skip


def succeeds(function: Callable[..., Any], name: str = "") -> bool:
    """Whether an example of the function (or of the one that shows it) calls it, and ends without an exception."""
    home, _, shows = SHOWN_BY.get(name, "").rpartition(".")
    shown_in = getattr(import_module(f"surgeval.protocols.{home}"), shows) if shows else function
    return any(
        example.exc_msg is None and function.__name__ in called(example.source) for example in examples(shown_in)
    )


@pytest.mark.parametrize("package", sorted([*packages(), *MODULES]))
def test_every_exported_function_has_an_example_that_succeeds(package: str) -> None:
    shown = {name: succeeds(function, name) for name, function in public_functions(package).items()}
    bare = [name for name, right in shown.items() if not right and name not in NOT_SHOWN]
    assert not bare, f"without an example that calls it and does not raise: {', '.join(sorted(bare))}"
    listed = [name for name, right in shown.items() if right and name in NOT_SHOWN]
    assert not listed, f"listed as not showing a success, but shows one: {', '.join(sorted(listed))}"


@pytest.mark.parametrize("name", sorted(NOT_SHOWN))
def test_what_cannot_show_a_success_is_exported_and_shows_something(name: str) -> None:
    known = {name: value for package in (*packages(), *MODULES) for name, value in public_functions(package).items()}
    assert examples(known[name])


@pytest.mark.parametrize("package", sorted(packages()))
def test_every_exported_class_with_an_example_has_one_that_succeeds(package: str) -> None:
    # Most classes are results: the functions that make them show them. An exception succeeds by being raised.
    classes = {
        name: examples(value)
        for name, value in exported(package).items()
        if inspect.isclass(value) and not issubclass(value, BaseException)
    }
    bare = [name for name, found in classes.items() if found and not any(one.want and not one.exc_msg for one in found)]
    assert not bare, f"with errors for examples only: {', '.join(sorted(bare))}"


def test_an_example_that_only_raises_is_no_success() -> None:
    def halve(number: int) -> float:
        """Half.

        >>> number = int("4")
        >>> halve("x")
        Traceback (most recent call last):
        TypeError: ...
        """
        return number / 2

    assert not succeeds(halve)
    halve.__doc__ = f"{halve.__doc__}\n        >>> halve(number)\n        2.0\n"
    assert succeeds(halve)


def test_lazily_exported_functions_are_among_them() -> None:
    assert "surgeval.explain.reference_maps.baseline" in public_functions("surgeval.explain")
    assert "surgeval.stats.bootstrap.bootstrap_mean" in public_functions("surgeval.stats")


def test_every_exported_name_exists() -> None:
    for package in packages():
        home = import_module(package)
        for name in getattr(home, "__all__", ()):
            assert hasattr(home, name), f"{package}.{name}"


def test_every_part_is_an_attribute_of_surgeval() -> None:
    parts = {module.name for module in pkgutil.iter_modules(surgeval.__path__) if not module.name.startswith("_")}
    assert parts == {name for name in dir(surgeval) if inspect.ismodule(getattr(surgeval, name))}
