"""`run.json`: what a run is (its identity) and how far it came (its status).

The identity is compared key by key when a folder is met again; the status never takes part in that comparison.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from surgeval._version import __version__
from surgeval.engine.units import canonical_json, to_json_value
from surgeval.errors import DataError
from surgeval.files import make_folder, name_beside, read_json_object, write_atomically

__all__ = [
    "COMPLETE",
    "FORMAT",
    "Manifest",
    "RunRecord",
    "differences",
    "library_versions",
    "load_record",
    "now",
    "save_record",
    "save_scored",
]

FORMAT = 1
_STATUSES = ("running", "interrupted", "stopped", "failed", "done")
COMPLETE = ("done", "failed")  # the statuses of a run whose cases.parquet holds every unit


def library_versions(*distributions: str) -> dict[str, str]:
    """The versions that can change a number: surgeval, Python, numpy, polars and the distributions named.

    >>> sorted(library_versions("scipy"))
    ['numpy', 'polars', 'python', 'scipy', 'surgeval']
    """
    versions = {"surgeval": __version__, "python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("numpy", "polars", *distributions):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "absent"
    return versions


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that determines the cases of a run, as JSON values.

    `dataset` is its fingerprint and `model` its identity: text, or a map where there is more than one thing to say.
    """

    protocol: str
    config: Mapping[str, Any] = field(default_factory=dict)
    dataset: Any = ""
    model: Any = ""
    seeds: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=library_versions)

    def stored(self) -> dict[str, Any]:
        """The manifest as one map: what run.json holds."""
        return {key: to_json_value(getattr(self, key), key) for key in _IDENTITY}

    def identity(self) -> dict[str, Any]:
        """What unit names hash and what a folder met again must agree with.

        A model that states its `identity`, a hash of its weights, is that whatever it is called and wherever it lies.

        >>> one, other = (Manifest("surgxbench", model={"name": name, "identity": "5f"}) for name in ("clip", "copy"))
        >>> one.identity() == other.identity(), one.stored() == other.stored()
        (True, False)
        """
        manifest = self.stored()
        if isinstance(manifest["model"], dict) and manifest["model"].get("identity"):
            manifest["model"] = {"identity": manifest["model"]["identity"]}
        return manifest


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What run.json says: the manifest, and the run's state.

    `status` is `running` (also what a killed run leaves), `interrupted`, `stopped` (an error ended it), `failed`
    (complete, with failed cases) or `done`. Times (UTC) and seconds are those of the latest call; they are here so that
    no case has to hold one.
    """

    manifest: Manifest
    status: str
    units: int
    finished: int
    failed: int
    cases: int
    started: str
    updated: str
    seconds: float


def save_record(folder: str | Path, record: RunRecord) -> None:
    """Write run.json in one step.

    >>> import dataclasses, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = save_scored(folder, Manifest("triplets", model="net"), cases=120)
    ...     save_record(folder, dataclasses.replace(record, status="running"))
    ...     load_record(folder).status
    'running'
    """
    state = {key: getattr(record, key) for key in _STATE}
    text = json.dumps({"format": FORMAT, **record.manifest.stored(), **state}, indent=2, allow_nan=False)
    write_atomically(Path(folder) / "run.json", (text + "\n").encode())


def save_scored(folder: str | Path, manifest: Manifest, *, cases: int, seconds: float = 0.0) -> RunRecord:
    """Write run.json for cases that were scored in one go, without units of work; the folder is made where absent.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = save_scored(Path(folder) / "net", Manifest("triplets", model="net"), cases=120)
    >>> record.status, record.cases
    ('done', 120)
    """
    folder = Path(folder)
    make_folder(folder)
    time = now()
    record = RunRecord(manifest, "done", 1, 1, 0, cases, time, time, seconds)
    save_record(folder, record)
    return record


def now() -> str:
    """The time as run.json has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_STATE: dict[str, type | tuple[type, ...]] = {
    "status": str, "units": int, "finished": int, "failed": int, "cases": int, "started": str, "updated": str,
    "seconds": (int, float),
}  # fmt: skip
_IDENTITY: dict[str, type | tuple[type, ...]] = {
    "protocol": str, "config": dict, "dataset": object, "model": object, "seeds": dict, "versions": dict,
}  # fmt: skip


def load_record(folder: str | Path, protocol: str | None = None) -> RunRecord:
    """Read and check run.json; where a protocol is named, the run must be one of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_scored(Path(folder), Manifest("triplets", model="net"), cases=120)
    ...     record = load_record(folder)
    >>> record.manifest.protocol, record.manifest.model, record.status
    ('triplets', 'net', 'done')
    """
    path = Path(folder) / "run.json"
    if not Path(folder).is_dir():
        found, close = ("a file", "") if Path(folder).exists() else ("no such folder", name_beside(Path(folder)))
        raise DataError(Path(folder), f"found {found}, expected the folder of a run{close}")
    content = read_json_object(path)
    if content.get("format") != FORMAT:
        raise DataError(path, f"found {content.get('format')}, expected {FORMAT}", field="format")
    for key, kind in {**_IDENTITY, **_STATE}.items():
        if key not in content:
            raise DataError(path, "found nothing, expected a value", field=key)
        if not isinstance(content[key], kind) or (kind is int and isinstance(content[key], bool)):
            raise DataError(path, f"found {type(content[key]).__name__}, expected {_names(kind)}", field=key)
        if kind is int and content[key] < 0:
            raise DataError(path, f"found {content[key]}, expected a whole number of at least 0", field=key)
    if content["status"] not in _STATUSES:
        raise DataError(path, f"found {content['status']}, expected one of {', '.join(_STATUSES)}", field="status")
    manifest = Manifest(**{key: content[key] for key in _IDENTITY})
    if protocol is not None and manifest.protocol != protocol:
        raise DataError(path, f"found {manifest.protocol}, expected {protocol}", field="protocol")
    return RunRecord(manifest, **{key: content[key] for key in _STATE})


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Where two manifests differ, as `key: old → new`.

    >>> differences(Manifest("focus", seeds={"order": 1}), Manifest("focus", seeds={"order": 2}, model="clip"))
    ['model: "" → "clip"', 'seeds.order: 1 → 2']
    >>> one, other = (Manifest("surgxbench", model={"name": name, "identity": name * 9}) for name in ("clip", "blip"))
    >>> differences(one, other)
    ['model: "clip" → "blip"']
    """
    before, after = dict(_leaves(_named(old, new))), dict(_leaves(_named(new, old)))
    return [
        f"{key}: {_short(before.get(key, 'absent'))} → {_short(after.get(key, 'absent'))}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def _named(manifest: Manifest, other: Manifest) -> dict[str, Any]:
    """What makes the run this run; of two models with different names the name, which says more than its hash."""
    identity, models = manifest.identity(), (manifest.model, other.model)
    hashes = [model.get("identity") for model in models if isinstance(model, dict)]
    names = [model.get("name") for model in models if isinstance(model, dict)]
    if len(names) == 2 and all(names) and all(hashes) and len(set(names)) == len(set(hashes)) == 2:
        identity["model"] = names[0]
    return identity


def _leaves(value: object, where: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _leaves(value[key], f"{where}.{key}" if where else str(key))
    else:
        yield where, canonical_json(value)


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _names(kind: type | tuple[type, ...]) -> str:
    return " or ".join(accepted.__name__ for accepted in (kind if isinstance(kind, tuple) else (kind,)))
