"""Units of work and the names of their parts.

A unit's name is a hash of everything that determines its content (protocol, settings, data, model, versions, shard):
a part that has this name holds this unit's cases. No clock and no machine enters it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surgeval.errors import BadInput

__all__ = ["Job", "Unit", "canonical_json", "fingerprint", "name_jobs", "name_unit", "to_json_value"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One shard of work for one model: usually a video, or a block of frames or questions.

    `key` is its readable, unique name; `payload` is the JSON-like value its worker receives. `cases` lists the cases
    it should yield, as `(id, cluster)`: if the unit fails or leaves one out, that case is stored with the reason.
    Without it a failed unit is stored as one case that has the unit's key as id. `steps` says how many things of each
    kind (`{"frames": 90}`) its worker reports by `surgeval.progress.advance`; it is for the progress display only and
    not part of the unit's identity.
    """

    key: str
    payload: Any = None
    cases: tuple[tuple[str, str], ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Job:
    """A unit with its name: what an executor hands to a worker."""

    name: str
    unit: Unit


def name_jobs(identity: Mapping[str, Any], units: Sequence[Unit]) -> list[Job]:
    """The units of a run with this identity with their names, in their order; keys must be unique."""
    if not units:
        raise BadInput("there are no units to run: the selection of data is empty")
    jobs, seen = [], set()
    for unit in units:
        if unit.key in seen:
            raise BadInput(f"unit {unit.key}: two units have this key")
        seen.add(unit.key)
        for text in (unit.key, *(text for case in unit.cases for text in case)):
            if any("\ud800" <= letter <= "\udfff" for letter in text):  # Parquet cannot hold lone surrogates
                raise BadInput(f"unit {unit.key!r}: {text!r} is not valid text")
        jobs.append(Job(name_unit(identity, unit), unit))
    return jobs


def name_unit(identity: Mapping[str, Any], unit: Unit) -> str:
    """The name of the unit in a run with this identity."""
    content = {"run": identity, "key": unit.key, "payload": unit.payload, "cases": unit.cases}
    return fingerprint(content, f"unit {unit.key}")


# ── values that hash the same on every machine ──────────────────────────────────────────────────────────────────


def fingerprint(value: object, name: str = "value") -> str:
    """128 bits of SHA-256 over the canonical JSON, as 32 hexadecimal digits.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical_json(value, name).encode()).hexdigest()[:32]


def canonical_json(value: object, name: str = "value") -> str:
    """A JSON value in one spelling: sorted keys, no spaces, shortest floats. 1 and 1.0 differ; NaN is refused.

    >>> canonical_json({"b": (1, 0.1), "a": None})
    '{"a":null,"b":[1,0.1]}'
    >>> canonical_json({"tau": float("nan")}, "config")
    Traceback (most recent call last):
    surgeval.errors.BadInput: config.tau: nan is not a finite number
    """
    return json.dumps(to_json_value(value, name), sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json_value(value: object, name: str) -> object:
    """The value as JSON would give it back (tuples become lists); `BadInput` names a part that JSON cannot hold."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInput(f"{name}: {value} is not a finite number")
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise BadInput(f"{name}: the key {key!r} is not text")
        return {key: to_json_value(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [to_json_value(item, f"{name}[{i}]") for i, item in enumerate(value)]
    raise BadInput(f"{name}: {type(value).__name__} is not a JSON type (text, number, true, false, null, list or map)")
