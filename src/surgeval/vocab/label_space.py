"""Label spaces: the names of a dataset's classes, packaged or read from the user's own JSON file.

The id of an instrument, verb, target or phase is its position in its list; the id of a triplet is its position in
`triplets`. The pairs `iv`, `it` and `vt` are numbered by rank among the pairs that occur, as in the reference metrics:
CholecT50 has 26 `iv` and 59 `it`, ProstaTD 25 and 51.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput, DataError, did_you_mean
from surgeval.files import format_value, read_json_file

__all__ = ["COMPONENTS", "MAX_CLASSES", "LabelSpace", "label_space_names", "load_labels", "read_packaged"]

COMPONENTS = ("i", "v", "t", "iv", "it", "vt", "ivt")
MAX_CLASSES = 10_000  # of a kind: tables of frames × classes are held in memory


@dataclass(frozen=True)
class LabelSpace:
    """Instruments, verbs, targets and the triplets among them.

    >>> space = load_labels("cholect50")
    >>> len(space.triplets), space.triplet_name(17)
    (100, 'grasper,retract,gallbladder')
    >>> space.triplet_id("hook", "dissect", "gallbladder") == space.triplet_names.index("hook,dissect,gallbladder")
    True
    """

    name: str
    instruments: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    triplets: tuple[tuple[int, int, int], ...] = ()  # (instrument, verb, target) ids, by triplet id
    phases: tuple[str, ...] = ()
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # source → published count per triplet id

    def __post_init__(self) -> None:
        for kind in ("instruments", "verbs", "targets", "triplets", "phases"):
            if len(getattr(self, kind)) > MAX_CLASSES:
                raise BadInput(
                    f"Label space {self.name} has {len(getattr(self, kind))} {kind}; at most {MAX_CLASSES} are allowed"
                )

    @cached_property
    def _ids(self) -> dict[tuple[int, int, int], int]:
        return {triplet: number for number, triplet in enumerate(self.triplets)}

    @cached_property
    def triplet_names(self) -> tuple[str, ...]:
        """`instrument,verb,target` by triplet id."""
        return tuple(f"{self.instruments[i]},{self.verbs[v]},{self.targets[t]}" for i, v, t in self.triplets)

    def triplet_name(self, number: int) -> str:
        """The name of one triplet class."""
        return self.triplet_names[number]

    def find(self, instrument: int, verb: int, target: int) -> int:
        """The id of a triplet of component ids, or −1 where the combination is not a class."""
        return self._ids.get((instrument, verb, target), -1)

    def triplet_id(self, instrument: str, verb: str, target: str) -> int:
        """The id of a triplet by names. Names and combinations outside the space raise `BadInput`."""
        ids = (self.id("instrument", instrument), self.id("verb", verb), self.id("target", target))
        number = self.find(*ids)
        if number < 0:
            raise BadInput(
                f"({instrument}, {verb}, {target}) is not one of the {len(self.triplets)} triplets of {self.name}"
            )
        return number

    def id(self, component: str, name: str) -> int:
        """The id of an instrument, verb, target or phase by name, ignoring case, spaces, '-' and '_'."""
        number = self.find_name(component, name)
        if number < 0:
            known = self._names(component)
            raise BadInput(
                f"{component} {name!r} is not in label space {self.name}: {', '.join(known) or 'it has none'}"
                f"{did_you_mean(name, known)}"
            )
        return number

    def find_name(self, component: str, name: str) -> int:
        """The same as `id`, but −1 for an unknown name."""
        return self._lookup[component].get(_key(name), -1)

    def _names(self, component: str) -> tuple[str, ...]:
        return {"instrument": self.instruments, "verb": self.verbs, "target": self.targets, "phase": self.phases}[
            component
        ]

    @cached_property
    def _lookup(self) -> dict[str, dict[str, int]]:
        return {
            component: {_key(name): number for number, name in enumerate(self._names(component))}
            for component in ("instrument", "verb", "target", "phase")
        }

    def component_ids(self, component: str) -> Ints:
        """For each triplet id, its class id in a component: `i`, `v`, `t`, `iv`, `it`, `vt` or `ivt`.

        `i`, `v` and `t` give the plain ids; pairs are numbered by rank among the pairs that occur.
        """
        table = np.asarray(self.triplets, dtype=np.int64).reshape(-1, 3)
        if component == "ivt":
            return np.arange(len(table))
        if component in ("i", "v", "t"):
            return table[:, "ivt".index(component)].copy()
        if component not in COMPONENTS:
            raise BadInput(f"Unknown component {component!r}. Use one of {', '.join(COMPONENTS)}.")
        first, second = (table[:, "ivt".index(letter)] for letter in component)
        return np.unique(first * (second.max(initial=0) + 1) + second, return_inverse=True)[1].astype(np.int64)

    def num_classes(self, component: str) -> int:
        """Number of classes in a component."""
        if component in ("i", "v", "t"):
            return len({"i": self.instruments, "v": self.verbs, "t": self.targets}[component])
        return int(self.component_ids(component).max(initial=-1)) + 1

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back, without the published counts."""
        return {
            "name": self.name,
            "instruments": list(self.instruments),
            "verbs": list(self.verbs),
            "targets": list(self.targets),
            "triplets": [list(t) for t in self.triplets],
            "phases": list(self.phases),
        }

    @classmethod
    def from_json(cls, data: Any, file: str | Path) -> LabelSpace:
        """A label space from parsed JSON: lists of names, and `triplets` as rows of ids or of names.

        Without `triplets`, no combination is a class; with `"all"`, every combination is one, ordered by instrument,
        then verb, then target. `file` is named in errors. `counts` may hold, per source, a number for each triplet.

        >>> names = {"instruments": ["hook"], "verbs": ["cut", "dissect"], "targets": ["liver"]}
        >>> LabelSpace.from_json({"name": "mine", **names, "triplets": "all"}, "my_labels.json").triplet_names
        ('hook,cut,liver', 'hook,dissect,liver')
        """
        if not isinstance(data, dict):
            sentence = f"expected an object with instruments, verbs, targets and triplets, got {format_value(data)}"
            raise DataError(file, sentence, code="wrong-shape")
        names = {key: _check_names(data.get(key, []), key, file) for key in _LISTS}
        if not names["instruments"]:
            raise DataError(file, "the list is empty", field="instruments", code="wrong-shape")
        triplets = _read_triplets(data.get("triplets", []), names, file)
        counts = data.get("counts", {})
        if not isinstance(counts, dict) or not all(_are_counts(row, len(triplets)) for row in counts.values()):
            sentence = f"expected, for each source, a list of {len(triplets)} whole numbers, one per triplet"
            raise DataError(file, sentence, field="counts", code="wrong-shape")
        return cls(
            str(data.get("name", Path(file).stem)), names["instruments"], names["verbs"], names["targets"], triplets,
            names["phases"], {source: tuple(row) for source, row in counts.items()},
        )  # fmt: skip


_LISTS = ("instruments", "verbs", "targets", "phases")


def label_space_names() -> tuple[str, ...]:
    """The packaged label spaces.

    >>> label_space_names()
    ('cholect50', 'cholec80', 'prostatd', 'phantom')
    """
    return ("cholect50", "cholec80", "prostatd", "phantom")


def load_labels(name: str | Path) -> LabelSpace:
    """A packaged label space by name, or the user's own from a JSON file (see `LabelSpace.from_json`).

    >>> space = load_labels("cholect50")
    >>> space.instruments[:3], len(space.triplets)
    (('grasper', 'bipolar', 'hook'), 100)
    """
    if str(name) in label_space_names():
        return _packaged_space(str(name))
    path = Path(name)
    if not path.is_file():
        raise BadInput(
            f"{str(name)!r} is neither a label space ({', '.join(label_space_names())}) nor a JSON file"
            f"{did_you_mean(name, label_space_names())}"
        )
    return LabelSpace.from_json(read_json_file(path), path)


@cache
def _packaged_space(name: str) -> LabelSpace:
    return LabelSpace.from_json(read_packaged(name), f"{name}.json")


@cache
def read_packaged(name: str) -> Any:
    """The parsed content of `vocab/data/NAME.json`."""
    return json.loads((files("surgeval.vocab") / "data" / f"{name}.json").read_text(encoding="utf-8"))


def _key(name: str) -> str:
    """A name without case, spaces, '-' and '_': two names with the same key are the same."""
    return "".join(character for character in name.casefold() if character not in " -_")


def _check_names(value: object, key: str, file: str | Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise DataError(file, f"expected a list of names, got {format_value(value)}", field=key, code="wrong-shape")
    if len(value) > MAX_CLASSES:
        raise DataError(file, f"{len(value)} names; at most {MAX_CLASSES} are allowed", field=key, code="wrong-shape")
    if len({_key(name) for name in value}) != len(value):
        sentence = "the same name twice (case, spaces, '-' and '_' do not distinguish names)"
        raise DataError(file, sentence, field=key, code="wrong-value")
    return tuple(value)


def _read_triplets(
    rows: object, names: Mapping[str, tuple[str, ...]], file: str | Path
) -> tuple[tuple[int, int, int], ...]:
    sizes = [len(names[key]) for key in _LISTS[:3]]
    if rows != "all" and not isinstance(rows, list):
        sentence = f'expected a list of [instrument, verb, target] or "all", got {format_value(rows)}'
        raise DataError(file, sentence, field="triplets", code="wrong-shape")
    total = len(rows) if isinstance(rows, list) else math.prod(sizes)
    if total > MAX_CLASSES:
        sentence = f"{total} triplets; at most {MAX_CLASSES} are allowed"
        raise DataError(file, sentence, field="triplets", code="wrong-shape")
    if not isinstance(rows, list):
        return tuple((i, v, t) for i, v, t in itertools.product(*map(range, sizes)))
    ids = [{_key(name): number for number, name in enumerate(names[key])} for key in _LISTS[:3]]
    triplets = tuple(_read_triplet(row, number, ids, file) for number, row in enumerate(rows))
    if repeated := [triplet for triplet, count in Counter(triplets).items() if count > 1]:
        raise DataError(file, f"triplet {list(repeated[0])} occurs twice", field="triplets", code="wrong-value")
    return triplets


def _read_triplet(row: object, number: int, ids: list[dict[str, int]], file: str | Path) -> tuple[int, int, int]:
    parts = row.split(",") if isinstance(row, str) else row
    if not isinstance(parts, list) or len(parts) != 3:
        sentence = f"expected [instrument, verb, target], got {format_value(row)}"
        raise DataError(file, sentence, record=f"triplet {number}", code="wrong-shape")
    found = []
    for value, known, field_ in zip(parts, ids, ("instrument", "verb", "target"), strict=True):
        code = known.get(_key(value), value) if isinstance(value, str) else value
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < len(known):
            sentence = f"{format_value(value)} is neither a name of the list nor an id below {len(known)}"
            raise DataError(file, sentence, record=f"triplet {number}", field=field_, code="wrong-value")
        found.append(code)
    return found[0], found[1], found[2]


def _are_counts(row: object, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(type(count) is int for count in row)
