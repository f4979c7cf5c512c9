"""A public name means one thing: whoever reads it in one part is not misled by what it is in another."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import surgeval

_ROOM = "what every protocol has in this room, found by its descriptor or met beside the protocol's name"
# Names that several modules have on purpose, and why.
TWINS = {
    "DESCRIPTOR": _ROOM,
    "outcomes": _ROOM,
}


def public_modules() -> list[str]:
    """The packages: what their `__init__` exports is public."""
    found = [module.name for module in pkgutil.walk_packages(surgeval.__path__, "surgeval.") if module.ispkg]
    return ["surgeval", *found]


def meanings() -> dict[str, list[tuple[Any, str]]]:
    """Every exported name with the different objects behind it, each with one module that exports it.

    Modules are left out: `surgeval.console` is a part, and may hold a function of its name.
    """
    found: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for module in public_modules():
        home = import_module(module)
        for name in getattr(home, "__all__", ()):
            value = getattr(home, name)
            if not inspect.ismodule(value) and all(value is not other for other, _ in found[name]):
                found[name].append((value, module))
    return found


def test_a_public_name_means_one_thing() -> None:
    several = {name: [home for _, home in known] for name, known in meanings().items() if len(known) > 1}
    assert {name: homes for name, homes in several.items() if name not in TWINS} == {}
    assert set(several) == set(TWINS)  # none is allowed that is not needed


def test_rooms_alone_share_the_names_of_rooms() -> None:
    known = meanings()
    shared = [home for name, why in TWINS.items() if why is _ROOM for _, home in known[name]]
    assert shared and all(home.startswith("surgeval.protocols.") for home in shared)


# Classes that share a name inside, private ones too, and why.
HOMONYMS = {
    "Detection": "compat stands in for two packages that both call their class so",
}


def test_a_class_name_means_one_thing_inside_too() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    source = Path(surgeval.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(source)))
    several = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in HOMONYMS} == {}
    assert set(several) == set(HOMONYMS)  # none is allowed that is not needed
