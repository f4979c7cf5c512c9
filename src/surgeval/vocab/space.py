"""`LabelSpace`: the classes of a dataset. Component ids are positions in the name lists; a triplet's id is its
position in `triplets`. Compact `iv`/`it`/`vt` ids are the k-th smallest pair present, as the reference metrics number
them (CholecT50: iv 26, it 59; ProstaTD: iv 25, it 51).
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from surgeval.arrays import Ints
from surgeval.errors import BadInput, DataError, did_you_mean
from surgeval.files import read_json_file
from surgeval.vocab.packaged import packaged

COMPONENTS = ("i", "v", "t", "iv", "it", "vt", "ivt")
MAX_CLASSES = 10_000  # of each kind: tables of frames × classes are held in memory


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
                    f"label space {self.name}: {kind}: found {len(getattr(self, kind))}, expected at most {MAX_CLASSES}"
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
        """The id of a triplet by names; names or combinations outside the space raise `BadInput`."""
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
            raise BadInput(
                f"{name!r} is not a {component} of {self.name}: expected one of {', '.join(self._names(component))}"
            )
        return number

    def find_name(self, component: str, name: str) -> int:
        """Like `id`, with −1 instead of an error."""
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
        """For each triplet id, its compact class id in a component (`i`, `v`, `t`, `iv`, `it`, `vt`, `ivt`).

        `i`, `v`, `t` are the plain component ids; the pairs are numbered by rank among the pairs present.
        """
        table = np.asarray(self.triplets, dtype=np.int64).reshape(-1, 3)
        if component == "ivt":
            return np.arange(len(table))
        if component in ("i", "v", "t"):
            return table[:, "ivt".index(component)].copy()
        if component not in COMPONENTS:
            raise BadInput(f"component {component!r}: expected one of {', '.join(COMPONENTS)}")
        first, second = (table[:, "ivt".index(letter)] for letter in component)
        return np.unique(first * (second.max(initial=0) + 1) + second, return_inverse=True)[1].astype(np.int64)

    def num_classes(self, component: str) -> int:
        """Number of classes in a component."""
        if component in ("i", "v", "t"):
            return len({"i": self.instruments, "v": self.verbs, "t": self.targets}[component])
        return int(self.component_ids(component).max(initial=-1)) + 1

    def to_json(self) -> dict[str, Any]:
        """The form `load` reads back: a user's label space file."""
        return {
            "name": self.name,
            "instruments": list(self.instruments),
            "verbs": list(self.verbs),
            "targets": list(self.targets),
            "triplets": [list(t) for t in self.triplets],
            "phases": list(self.phases),
        }


def _key(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in " -_")


def label_space_names() -> tuple[str, ...]:
    """The packaged label spaces.

    >>> label_space_names()
    ('cholect50', 'cholec80', 'prostatd', 'phantom')
    """
    return ("cholect50", "cholec80", "prostatd", "phantom")


def load_labels(name: str | Path) -> LabelSpace:
    """A packaged label space by name, or the user's own from a JSON file (see `from_json`).

    >>> space = load_labels("cholect50")
    >>> space.instruments[:3], len(space.triplets)
    (('grasper', 'bipolar', 'hook'), 100)
    """
    if str(name) in label_space_names():
        return _packaged_space(str(name))
    path = Path(name)
    if not path.is_file():
        raise BadInput(
            f"label space {str(name)!r}: found neither name nor file, "
            f"expected {', '.join(label_space_names())} or a JSON file{did_you_mean(name, label_space_names())}"
        )
    return from_json(read_json_file(path), path)


@cache
def _packaged_space(name: str) -> LabelSpace:
    if name == "cholec80":
        data = packaged("cholec80")
        return LabelSpace("cholec80", tuple(data["instruments"]), phases=tuple(data["phases"]))
    if name == "prostatd":
        data = packaged("prostatd_triplets")
        return LabelSpace(
            "prostatd",
            tuple(data["instruments"]),
            tuple(data["verbs"]),
            tuple(data["targets"]),
            _triples(data),
            (),
            _prostatd_counts(data),
        )
    data = packaged("cholect50_map")
    space = LabelSpace(
        "cholect50",
        tuple(data["instruments"]),
        tuple(data["verbs"]),
        tuple(data["targets"]),
        _triples(data),
        tuple(packaged("cholec80")["phases"]),
    )
    if name == "phantom":
        # The bag is an instrument in Cholec80's sense and takes part in no triplet.
        return LabelSpace(
            "phantom", (*space.instruments, "specimen_bag"), space.verbs, space.targets, space.triplets, space.phases
        )
    return space


def _triples(data: dict[str, Any]) -> tuple[tuple[int, int, int], ...]:
    return tuple((row["i"], row["v"], row["t"]) for row in sorted(data["triplets"], key=lambda row: row["id"]))


_SHORT = {"driver": "needle driver", "applier": "clip applier", "vesicle": "seminal vesicle"}


def _prostatd_counts(data: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    published = packaged("prostatd_counts")
    by_name = {
        tuple(_SHORT.get(part, part) for part in key.split(",")): values for key, values in published["counts"].items()
    }
    rows = [
        by_name[row["instrument"], row["verb"], row["target"]]
        for row in sorted(data["triplets"], key=lambda row: row["id"])
    ]
    return {source: tuple(row[k] for row in rows) for k, source in enumerate(published["columns"])}


def from_json(data: Any, file: str | Path) -> LabelSpace:
    """A label space from parsed JSON: name lists plus `triplets` as rows of ids or of names.

    `triplets` may be left out (every combination that occurs is then outside the space) or be `"all"` (every
    combination is a class, numbered instrument-first).

    >>> names = {"instruments": ["hook"], "verbs": ["cut", "dissect"], "targets": ["liver"]}
    >>> space = from_json({"name": "mine", **names, "triplets": "all"}, "my_labels.json")
    >>> space.triplet_names
    ('hook,cut,liver', 'hook,dissect,liver')
    """
    if not isinstance(data, dict):
        raise DataError(
            file, f"found {type(data).__name__}, expected a JSON object with instruments, verbs, targets, triplets"
        )
    lists = {key: _name_list(data, key, file) for key in ("instruments", "verbs", "targets", "phases")}
    if not lists["instruments"]:
        raise DataError(file, "found nothing, expected a list of instrument names", field="instruments")
    rows = data.get("triplets", [])
    counts = [len(lists[key]) for key in ("instruments", "verbs", "targets")]
    total = math.prod(counts) if rows == "all" else len(rows) if isinstance(rows, list) else 0
    if total > MAX_CLASSES:
        raise DataError(file, f"found {total} triplets, expected at most {MAX_CLASSES}", field="triplets")
    if rows == "all":
        rows = [list(row) for row in itertools.product(*map(range, counts))]
    if not isinstance(rows, list):
        raise DataError(
            file,
            f'found {type(rows).__name__}, expected a list of [instrument, verb, target] rows, or "all"',
            field="triplets",
        )
    ids = {key: {_key(name): number for number, name in enumerate(lists[key])} for key in lists}
    triplets = tuple(_triplet_row(row, number, ids, file) for number, row in enumerate(rows))
    twice = [triplet for triplet, count in Counter(triplets).items() if count > 1]
    if twice:
        raise DataError(file, f"found {list(twice[0])} twice, expected each triplet once", field="triplets")
    return LabelSpace(
        str(data.get("name", Path(file).stem)),
        lists["instruments"],
        lists["verbs"],
        lists["targets"],
        triplets,
        lists["phases"],
    )


def _name_list(data: dict[str, Any], key: str, file: str | Path) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise DataError(file, f"found {json.dumps(value)[:60]}, expected a list of names", field=key)
    if len(value) > MAX_CLASSES:
        raise DataError(file, f"found {len(value)} names, expected at most {MAX_CLASSES}", field=key)
    if len({_key(name) for name in value}) != len(value):
        raise DataError(
            file, "found a name twice, expected distinct names (case, space, '-' and '_' do not count)", field=key
        )
    return tuple(value)


def _triplet_row(row: Any, number: int, known: dict[str, dict[str, int]], file: str | Path) -> tuple[int, int, int]:
    if isinstance(row, str):
        row = row.split(",")
    if not isinstance(row, list) or len(row) != 3:
        raise DataError(
            file, f"found {json.dumps(row)[:60]}, expected [instrument, verb, target]", record=f"triplet {number}"
        )
    ids = []
    for value, key in zip(row, ("instruments", "verbs", "targets"), strict=True):
        code = known[key].get(_key(value), value) if isinstance(value, str) else value
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < len(known[key]):
            raise DataError(
                file,
                f"found {value!r}, expected a name or an id below {len(known[key])}",
                record=f"triplet {number}",
                field=key[:-1],
            )
        ids.append(code)
    return ids[0], ids[1], ids[2]
