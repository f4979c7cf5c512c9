"""Class names of a YOLO folder: `names` and `nc` of its YAML file, or one name per line of `classes.txt`.

YAML is read as text only: `no`, `null` and `01` stay the names they are. Class numbers are positions, so a gap, a
number or a name that occurs twice, and a count that differs from `nc` are errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from surgeval.datasets.formats.labels import name_key
from surgeval.datasets.io.files import is_there
from surgeval.datasets.io.json import read_text
from surgeval.datasets.io.layout import names
from surgeval.files import Location, OnProblem, format_value

__all__ = ["ClassNames", "read_class_names"]

MAX_BYTES = 1 << 20  # of a file of class names
MAX_CLASSES = 10_000  # as many as a label space can have
_MAX_DEPTH = 32  # libyaml's time grows with the square of the nesting, and yaml.compose is recursive
_LISTS = ("classes.txt", "obj.names", "names.txt")
_SCALARS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null"))
_SEQUENCE, _MAPPING = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"


@dataclass(frozen=True)
class ClassNames:
    """The names by class number, or without names only the number of classes (`nc`)."""

    file: Path
    names: tuple[str, ...] = ()
    count: int | None = None


def read_class_names(root: Path, on_problem: OnProblem) -> ClassNames | None:
    """The class names of a YOLO folder; None where no file has any, or after reporting what is wrong with them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "data.yaml").write_text("names: {0: hook, 1: no}")
    ...     read_class_names(Path(folder), print).names
    ('hook', 'no')
    """
    counted: ClassNames | None = None
    for name in names(root):
        if name.endswith((".yaml", ".yml")):
            text = read_text(root / name, on_problem, MAX_BYTES)
            found = _parse_yaml(text, root / name, on_problem) if text else None
            if isinstance(found, _Refused):
                return None
            if found and found.names:
                return found
            counted = counted or found
    for name in _LISTS:
        for folder in (root, root / "labels"):
            if is_there(folder / name):
                text = read_text(folder / name, on_problem, MAX_BYTES)
                place = Location(str(folder / name), on_problem)
                listed = _parse_lines(text or "", place)
                if listed and counted and counted.count != len(listed):
                    _report_count(len(listed), counted.count, place)
                    return None
                return ClassNames(folder / name, listed) if listed else counted
    return counted


class _Refused:
    """The class names of a file cannot be used; the problem has been reported."""


def _parse_yaml(text: str, path: Path, on_problem: OnProblem) -> ClassNames | _Refused | None:
    place = Location(str(path), on_problem)
    try:
        document = _compose(text)
    except yaml.YAMLError as error:
        if "names" not in text:  # some other tool's file
            return None
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        place.error(
            "file-broken",
            f"found broken YAML{where} ({getattr(error, 'problem', None) or error}), expected a YAML file",
        )
        return _Refused()
    if not isinstance(document, yaml.MappingNode):
        return None
    entries: dict[str, yaml.Node] = {}
    for key, value in document.value:
        if key.value in ("names", "nc"):
            if key.value in entries:
                place.error("key-duplicate", f"found the key {key.value!r} twice, expected each key once", key.value)
                return _Refused()
            entries[key.value] = value
    count = _count(entries["nc"], place) if "nc" in entries else None
    if isinstance(count, _Refused):
        return count
    listed = _names(entries["names"], place) if "names" in entries else ()
    if listed is None:
        return _Refused()
    if listed and count not in (None, len(listed)):
        _report_count(len(listed), count, place)
        return _Refused()
    return ClassNames(path, listed, count) if listed or count else None


def _compose(text: str) -> yaml.Node | None:
    """The document as nodes: no Python object is constructed from it, and aliases are not expanded."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CBaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise yaml.YAMLError(f"more than {_MAX_DEPTH} levels of nesting")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return yaml.compose(text, Loader=yaml.CBaseLoader)


def _count(node: yaml.Node, place: Location) -> int | _Refused | None:
    text = _scalar(node)
    if text in ("", "null", "~"):
        return None
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 7 and int(text) <= MAX_CLASSES):
        place.error("wrong-value", f"found {format_value(text)}, expected a whole number from 0 to {MAX_CLASSES}", "nc")
        return _Refused()
    return int(text)


def _names(node: yaml.Node, place: Location) -> tuple[str, ...] | None:
    """The names in the order of their numbers; None after reporting what is wrong."""
    if _scalar(node) in ("", "null", "~"):
        return ()
    if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
        rows = list(enumerate(node.value))
    elif isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
        numbered = _read_numbered(node, place)
        if numbered is None:
            return None
        rows = sorted(numbered.items())
    else:
        tagged = not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALARS
        place.error(
            "wrong-shape",
            f"found {(f'the tag {format_value(node.tag)}' if tagged else format_value(node.value))}, "
            "expected a list of names, or a name for each class number",
            "names",
        )
        return None
    listed: list[str] = []
    for number, value in rows:
        name = (_scalar(value) or "").strip()
        if place.text(name, f"names, class {number}") is None:
            return None
        listed.append(name)
    return _refuse_duplicates(listed, place)


def _read_numbered(node: yaml.MappingNode, place: Location) -> dict[int, yaml.Node] | None:
    numbered: dict[int, yaml.Node] = {}
    for key, value in node.value:
        text = _scalar(key)
        if text is None or not (text.isascii() and text.isdigit() and len(text) < 7):
            place.error("wrong-value", f"found {format_value(text)}, expected class numbers from 0", "names")
            return None
        if int(text) in numbered:
            place.error("key-duplicate", f"found class {int(text)} twice, expected each class number once", "names")
            return None
        numbered[int(text)] = value
    gap = next((number for number in range(len(numbered)) if number not in numbered), None)
    if gap is not None:
        place.error(
            "class-names", f"found no name for class {gap}, expected names for classes 0 to {max(numbered)}", "names"
        )
        return None
    return numbered


def _report_count(listed: int, count: int | None, place: Location) -> None:
    place.error("class-names", f"found {listed} names and nc: {count}, expected as many names as nc", "names")


def _scalar(node: yaml.Node) -> str | None:
    """The text of a scalar as written; None for anything else."""
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        return str(node.value)
    return None


def _parse_lines(text: str, place: Location) -> tuple[str, ...]:
    lines = [line.strip() for line in text.rstrip().splitlines()]
    if "" in lines:
        place.at(f"line {lines.index('') + 1}").error(
            "class-names", "found an empty line, expected a class name in each line"
        )
        return ()
    return _refuse_duplicates(lines, place) or ()


def _refuse_duplicates(listed: list[str], place: Location) -> tuple[str, ...] | None:
    """The names; None after reporting that two are the same up to case, spaces, `-`, `_` and commas."""
    if len(listed) > MAX_CLASSES:
        place.error("class-names", f"found {len(listed)} names, expected at most {MAX_CLASSES}", "names")
        return None
    first: dict[str, int] = {}
    for number, name in enumerate(listed):
        other = first.setdefault(name_key(name), number)
        if other != number:
            same = f"classes {other} and {number} named {format_value(listed[other])} and {format_value(name)}"
            place.error(
                "class-names",
                f"found {same}, expected names that differ in more than case, spaces, - and _",
                "names",
            )
            return None
    return tuple(listed)
