"""Which label space a dataset's files speak of.

In this order: the one the caller gives, `labels.json` beside the files, a packaged one that knows every name in them,
and last a space made of the names themselves.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from surgeval.datasets.io.json import UNREAD, read_json
from surgeval.errors import DataError, SurgevalError
from surgeval.files import OnProblem, Problem
from surgeval.records import Triplet
from surgeval.vocab import LabelSpace, load_labels

FILE = "labels.json"


def space_from_json(data: Any, file: str, on_problem: OnProblem) -> LabelSpace | None:
    """A label space from parsed JSON, or None after telling what is wrong."""
    try:
        return LabelSpace.from_json(data, file)
    except DataError as error:
        on_problem(Problem("file-broken", error.path, error.sentence, error.record, error.field))
    except (SurgevalError, ValueError, TypeError) as error:
        on_problem(Problem("file-broken", file, f"found {error}, expected a label space"))
    return None


def space_beside(root: Path, on_problem: OnProblem) -> LabelSpace | None:
    """The label space of `labels.json` in the dataset's folder, if it is there."""
    path = root / FILE
    if not os.path.lexists(path):
        return None
    data = read_json(path, on_problem)
    return None if data is UNREAD else space_from_json(data, str(path), on_problem)


def packaged_with(
    instruments: Iterable[str],
    verbs: Iterable[str] = (),
    targets: Iterable[str] = (),
    candidates: tuple[str, ...] = ("prostatd", "cholect50", "phantom", "cholec80"),
) -> LabelSpace | None:
    """The first packaged space that knows all these names."""
    wanted = [("instrument", name) for name in instruments]
    wanted += [(part, name) for part, group in (("verb", verbs), ("target", targets)) for name in group]
    for candidate in candidates:
        space = load_labels(candidate)
        if wanted and all(space.find_name(component, name) >= 0 for component, name in wanted):
            return space
    return None


def space_of_triplet_names(names: list[str], known: LabelSpace | None = None) -> LabelSpace | None:
    """The space in which the k-th of these `instrument_verb_target` names is triplet k, or None."""
    keys = [name_key(name) for name in names]
    for space in [*([known] if known else []), *(load_labels(name) for name in ("prostatd", "cholect50"))]:
        if [name_key(name) for name in space.triplet_names] == keys and keys:
            return space
    rows = [[part.strip() for part in name.split(",")] if name.count(",") == 2 else name.replace(",", "_").split("_")
            for name in names]  # fmt: skip
    if not rows or any(len(row) != 3 or not all(row) for row in rows) or len(set(keys)) != len(keys):
        return None
    parts = [tuple(dict.fromkeys(row[k] for row in rows)) for k in range(3)]
    if any(len({name_key(name) for name in part}) != len(part) for part in parts):
        return None
    first, second, third = ({name: number for number, name in enumerate(part)} for part in parts)
    triplets = tuple((first[i], second[v], third[t]) for i, v, t in rows)
    return LabelSpace("categories", parts[0], parts[1], parts[2], triplets)


def space_of_names(name: str, instruments: Iterable[str], phases: Iterable[str] = ()) -> LabelSpace:
    """A space of instruments only, one class per distinct name."""
    distinct = {name_key(label): label for label in reversed(list(instruments))}
    return LabelSpace(name, tuple(reversed(distinct.values())) or ("instrument",), phases=tuple(phases))


def space_seen(name: str, triplets: Iterable[tuple[str, str, str]], instruments: Iterable[str]) -> LabelSpace:
    """A space of the names and the combinations that occur in the files, in alphabetical order.

    Rows that lack a part ('') give names and no combination.
    """
    named = set(triplets)
    rows = sorted(row for row in named if all(row))
    parts = [tuple(sorted({row[k] for row in named if row[k]})) for k in range(3)]
    tools = tuple(sorted({*parts[0], *instruments})) or ("instrument",)
    first, second, third = ({label: number for number, label in enumerate(part)} for part in (tools, *parts[1:]))
    ids = tuple((first[i], second[v], third[t]) for i, v, t in rows)
    return LabelSpace(name, tools, parts[1], parts[2], ids)


def null_of(space: LabelSpace, component: str) -> int:
    """The id of 'no action' or 'no target' (`null`, `null_verb`, `null_target`), or −1."""
    for name in ("null", f"null_{component}"):
        number = space.find_name(component, name)
        if number >= 0:
            return number
    return -1


def without_null_pair(space: LabelSpace, triplet: Triplet) -> Triplet:
    """The instrument alone where verb and target are both null and that is no class: it takes part in no triplet.

    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("phantom")
    >>> without_null_pair(space, Triplet(6, 9, 14)), without_null_pair(space, Triplet(0, 9, 14))
    (Triplet(instrument=6, verb=-1, target=-1), Triplet(instrument=0, verb=9, target=14))
    """
    nothing = triplet.verb == null_of(space, "verb") and triplet.target == null_of(space, "target")
    if nothing and space.find(triplet.instrument, triplet.verb, triplet.target) < 0:
        return Triplet(triplet.instrument)
    return triplet


def same_names(space: LabelSpace, categories: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether named classes are this space's, up to case, spaces, '-' and '_'."""
    own = {"instrument": space.instruments, "verb": space.verbs, "target": space.targets,
           "triplet": space.triplet_names}  # fmt: skip
    return all([name_key(name) for name in own[part]] == [name_key(name) for name in group]
               for part, group in categories.items() if part in own)  # fmt: skip


def name_key(name: str) -> str:
    """Return a class name without case, spaces, `-`, `_` and commas, to compare spellings."""
    return "".join(character for character in name.casefold() if character not in " -_,")
