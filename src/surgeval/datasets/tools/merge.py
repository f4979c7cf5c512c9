"""Label consolidation in two stages, as ProstaTD's appendix A.4.

First, equivalent classes are merged by a map: whole triplets (`"grasper,retract,DVC": "grasper,retract,prostate"`),
then instruments, verbs and targets by name. Second, marginal triplets are dropped: those named, and those with fewer
than `min_count` instances. Instances before = instances after + dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from surgeval.datasets.base import Dataset, left_out
from surgeval.datasets.io.json import read_mapping
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, format_value, raise_errors
from surgeval.records import UNKNOWN, Frame, Instance, Question, Triplet, Video
from surgeval.vocab import LabelSpace

Names = tuple[str, str, str]
_PARTS = ("instruments", "verbs", "targets")


@dataclass(frozen=True)
class MergeMap:
    """What becomes of each name and triplet. Names are matched without regard to case, spaces, '-' and '_'."""

    instruments: Mapping[str, str]
    verbs: Mapping[str, str]
    targets: Mapping[str, str]
    triplets: Mapping[str, str]
    drop: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> MergeMap:
        """From a JSON file."""
        return cls.from_json(read_mapping(path, raise_errors) or {}, str(path))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str = "merge map") -> MergeMap:
        """From parsed JSON: objects `instruments`, `verbs`, `targets`, `triplets` and a list `drop`, all optional."""
        place = Location(file, raise_errors)
        unknown = data.keys() - {*_PARTS, "triplets", "drop"}
        if unknown:
            place.error(
                "key-unknown",
                f"found {format_value(min(unknown))}, expected instruments, verbs, targets, triplets or drop",
            )
        maps: dict[str, dict[str, str]] = {}
        for key in (*_PARTS, "triplets"):
            group = place.mapping(data.get(key, {}), key) or {}
            for name, value in group.items():
                place.text(value, f"{key}.{name}")
            maps[key] = dict(group)
        drop = place.items(data.get("drop", []), "drop") or []
        for name in drop:
            place.text(name, "drop")
        return cls(**maps, drop=tuple(drop))


class Merge:
    """A merge map applied to a label space: the merged space, and where each old triplet goes.

    >>> space = LabelSpace("raw", ("grasper",), ("retract",), ("prostate", "DVC"), ((0, 0, 0), (0, 0, 1)))
    >>> merge = Merge(space, MergeMap.from_json({"targets": {"DVC": "prostate"}}))
    >>> merge.space.triplet_names, merge(Triplet(0, 0, 1))
    (('grasper,retract,prostate',), Triplet(instrument=0, verb=0, target=0))
    """

    def __init__(self, space: LabelSpace, rules: MergeMap, marginal: frozenset[Names] = frozenset()) -> None:
        self._old = space
        self._names = tuple(self._component(space, k, rules) for k in range(3))
        self._rules = {self._parse(key, "triplets"): self._target(value) for key, value in rules.triplets.items()}
        self._dropped = {self.names(self._parse(name, "drop")) for name in rules.drop} | marginal
        triplets = [row for ids in space.triplets if (row := self.names(ids)) not in self._dropped]
        self.space = self._merged(list(dict.fromkeys(triplets)))
        self._new = [{name: k for k, name in enumerate(part)}
                     for part in (self.space.instruments, self.space.verbs, self.space.targets)]  # fmt: skip

    @staticmethod
    def _component(space: LabelSpace, part: int, rules: MergeMap) -> tuple[str, ...]:
        """The new name of each class of a component."""
        own = (space.instruments, space.verbs, space.targets)[part]
        mapping = (rules.instruments, rules.verbs, rules.targets)[part]
        component = _PARTS[part][:-1]
        result = list(own)
        for name, new in mapping.items():
            number = space.find_name(component, name)
            if number < 0:
                raise BadInput(f"merge map: {_PARTS[part]}.{name}: found no such {component} in {space.name}, "
                               f"expected one of {', '.join(own)}")  # fmt: skip
            known = space.find_name(component, new)
            result[number] = own[known] if known >= 0 else new
        return tuple(result)

    def _parse(self, text: str, field: str) -> tuple[int, int, int]:
        words = [word.strip() for word in text.split(",")]
        ids = [self._old.find_name(part[:-1], word) for part, word in zip(_PARTS, words, strict=False)]
        if len(words) != 3 or self._old.find(ids[0], ids[1], ids[2]) < 0:
            raise BadInput(f"merge map: {field}.{text}: found no such triplet in {self._old.name}, expected "
                           "'instrument,verb,target' of one of its triplets")  # fmt: skip
        return ids[0], ids[1], ids[2]

    def _target(self, text: str) -> Names:
        """The triplet that a rule leads to; its names may be new."""
        words = [word.strip() for word in text.split(",")]
        if len(words) != 3 or not all(words):
            raise BadInput(f"merge map: triplets: found {text!r}, expected 'instrument,verb,target'")
        spelled = []
        for k, word in enumerate(words):
            number = self._old.find_name(_PARTS[k][:-1], word)
            spelled.append(self._names[k][number] if number >= 0 else word)
        return spelled[0], spelled[1], spelled[2]

    def names(self, ids: tuple[int, int, int]) -> Names:
        """The new names of an old triplet, before anything is dropped."""
        if ids in self._rules:
            return self._rules[ids]
        parts = [self._names[k][number] if number != UNKNOWN else "" for k, number in enumerate(ids)]
        return parts[0], parts[1], parts[2]

    def _merged(self, rows: list[Names]) -> LabelSpace:
        old = self._old
        parts = []
        for k, own in enumerate((old.instruments, old.verbs, old.targets)):
            before = {ids[k] for ids in old.triplets}
            used = {row[k] for row in rows}
            # A name that only vanished triplets used goes with them; one that no triplet ever used stays.
            stay = [name for number, name in enumerate(self._names[k]) if name in used or number not in before]
            parts.append(tuple(dict.fromkeys([*stay, *(row[k] for row in rows)])) if own else ())
        ids = tuple((parts[0].index(i), parts[1].index(v), parts[2].index(t)) for i, v, t in rows)
        return LabelSpace(f"{old.name}-merged", parts[0], parts[1], parts[2], ids, old.phases)

    def __call__(self, triplet: Triplet) -> Triplet | None:
        """An instance's triplet in the merged space; None when it is dropped."""
        names = self.names((triplet.instrument, triplet.verb, triplet.target))
        if names in self._dropped:
            return None
        ids = [self._new[k].get(name, UNKNOWN) if name else UNKNOWN for k, name in enumerate(names)]
        return None if ids[0] == UNKNOWN and triplet.instrument != UNKNOWN else Triplet(ids[0], ids[1], ids[2])


class Merged:
    """A dataset seen through a merge. Dropped instances disappear; their frames stay."""

    format: ClassVar[str] = "merged"

    def __init__(self, source: Dataset, merge: Merge) -> None:
        self.root, self.space = source.root, merge.space
        self._source, self._merge = source, merge
        self.media_root = getattr(source, "media_root", None)
        self.before = self.dropped = 0

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """Those of the source."""
        return self._source.videos(on_problem)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Those of the source with merged triplets."""
        for frame in self._source.frames(video, on_problem):
            instances = tuple(new for instance in frame.instances if (new := self._instance(instance)))
            self.before += len(frame.instances)
            self.dropped += len(frame.instances) - len(instances)
            yield replace(frame, instances=instances)

    def _instance(self, instance: Instance) -> Instance | None:
        triplet = self._merge(instance.triplet)
        return replace(instance, triplet=triplet) if triplet else None

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """Those of the source."""
        return self._source.questions(on_problem)

    def left_out(self) -> tuple[str, ...]:
        """What the source does not give."""
        return left_out(self._source)


def merged(source: Dataset, rules: MergeMap, min_count: int = 0, on_problem: OnProblem = raise_errors) -> Merged:
    """The dataset with merged labels; with `min_count` its instances are counted first (one more pass).

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> frame = Frame("VID01", "000001", 0, None, None, 854, 480, (Instance(Triplet(*space.triplets[17])),))
    >>> rules = MergeMap.from_json({"verbs": {"grasp": "hold", "retract": "hold"}})
    >>> dataset = merged(MemoryDataset(space, [frame]), rules)
    >>> len(space.verbs), len(dataset.space.verbs), "hold" in dataset.space.verbs
    (10, 9, True)
    """
    merge = Merge(source.space, rules)
    if min_count > 1:
        counts: Counter[Names] = Counter()
        for video in source.videos(on_problem):
            for frame in source.frames(video.name, on_problem):
                for instance in frame.instances:
                    triplet = instance.triplet
                    if source.space.find(triplet.instrument, triplet.verb, triplet.target) >= 0:
                        counts[merge.names((triplet.instrument, triplet.verb, triplet.target))] += 1
        rare = [row for ids in source.space.triplets if counts[row := merge.names(ids)] < min_count]
        merge = Merge(source.space, rules, frozenset(rare))
    return Merged(source, merge)
