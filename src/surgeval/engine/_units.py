"""What a run consists of: units, and the names that make their parts safe to reuse.

A unit's name is a hash of everything that determines its content (protocol, settings, data, model, versions, shard),
so a part found on disk is the right one or has another name; no clock and no machine enters it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surgeval.engine._canonical import fingerprint
from surgeval.engine._manifest import Manifest
from surgeval.errors import BadInput

__all__ = ["Job", "Unit", "name_jobs"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One shard of work for one model: usually a video, or a block of frames or questions.

    `key` is its readable, unique name; `payload` is the JSON-like value its worker receives. `cases` names the cases
    it is expected to yield, as `(id, cluster)`: then a unit that fails, or forgets one, keeps every case in its place
    with the reason. Without it a failed unit is stored as one case that has the unit's key as id. `steps` says how
    many things of each kind (`{"frames": 90}`) its worker will report by `surgeval.progress.advance`; it is for the
    eyes only and no part of the unit's identity.
    """

    key: str
    payload: Any = None
    cases: tuple[tuple[str, str], ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Job:
    """A unit with its content name: what an executor hands to a worker."""

    name: str
    unit: Unit


def name_jobs(manifest: Manifest, units: Sequence[Unit]) -> list[Job]:
    """The units with their names, in their order; refuses none at all and two with the same key."""
    if not units:
        raise BadInput("there are no units to run: the selection of data is empty")
    identity, jobs, seen = manifest.identity(), [], set()
    for unit in units:
        if unit.key in seen:
            raise BadInput(f"unit {unit.key}: found two units with this key, expected each key once")
        seen.add(unit.key)
        for text in (unit.key, *(text for case in unit.cases for text in case)):
            if any("\ud800" <= letter <= "\udfff" for letter in text):  # half a character: no table can hold it
                raise BadInput(f"unit {unit.key!r}: found {text!r}, expected keys, ids and clusters to be valid text")
        jobs.append(Job(_name(identity, unit), unit))
    return jobs


def _name(identity: object, unit: Unit) -> str:
    content = {"run": identity, "key": unit.key, "payload": unit.payload, "cases": unit.cases}
    return fingerprint(content, f"unit {unit.key}")
