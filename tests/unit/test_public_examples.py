"""Every public function shows how it is called: its docstring holds an example, which is run as a doctest."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import surgeval


def packages() -> Iterator[str]:
    """`surgeval` and every package below it."""
    yield surgeval.__name__
    for module in pkgutil.walk_packages(surgeval.__path__, "surgeval."):
        if module.ispkg:
            yield module.name


def public_functions(package: str) -> dict[str, Callable[..., Any]]:
    """The functions that a package exports, lazily or not, by the place where they are defined."""
    home = import_module(package)
    exported = {name: getattr(home, name) for name in getattr(home, "__all__", ())}
    return {
        f"{value.__module__}.{value.__qualname__}": value
        for value in exported.values()
        if inspect.isfunction(inspect.unwrap(value)) and str(value.__module__).startswith("surgeval")
    }


@pytest.mark.parametrize("package", sorted(packages()))
def test_every_exported_function_has_an_example(package: str) -> None:
    bare = [name for name, function in public_functions(package).items() if ">>>" not in (function.__doc__ or "")]
    assert not bare, f"without an example: {', '.join(sorted(bare))}"


def test_lazily_exported_functions_are_among_them() -> None:
    assert "surgeval.explain.baselines.baseline" in public_functions("surgeval.explain")
    assert "surgeval.stats.bootstrap.bootstrap_mean" in public_functions("surgeval.stats")


def test_every_exported_name_exists() -> None:
    for package in packages():
        home = import_module(package)
        for name in getattr(home, "__all__", ()):
            assert hasattr(home, name), f"{package}.{name}"


def test_no_exported_name_is_that_of_a_module_beside_it() -> None:
    # Once the module is imported it takes the name's place in a package that exports lazily.
    for package in set(packages()) - {"surgeval", "surgeval.compat"}:  # these export modules
        home = import_module(package)
        modules = {module.name for module in pkgutil.iter_modules(home.__path__)}
        assert not modules & set(getattr(home, "__all__", ())), package


def test_every_part_is_an_attribute_of_surgeval() -> None:
    parts = {module.name for module in pkgutil.iter_modules(surgeval.__path__) if not module.name.startswith("_")}
    assert parts == {name for name in surgeval.__all__ if inspect.ismodule(getattr(surgeval, name))}
