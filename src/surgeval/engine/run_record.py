"""`run.json`: what determines a run's cases (its manifest), and how far it is (its status).

When a folder is used again, the manifests are compared key by key; the status does not take part in the comparison.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import NonNegativeInt

from surgeval._version import __version__
from surgeval.engine.units import canonical_json, to_json_value
from surgeval.errors import DataError, RunError
from surgeval.files import LOCK, StoredFile, folder_lock, make_folder, name_beside, remove_temporary, spell_surrogates

__all__ = [
    "Manifest",
    "RecordKeeper",
    "RunInterrupted",
    "RunRecord",
    "RunStatus",
    "differences",
    "hold_folder",
    "library_versions",
    "load_record",
    "now",
    "save_scored",
    "scored_record",
]

RunStatus: TypeAlias = Literal["running", "interrupted", "stopped", "failed", "done"]


class RunInterrupted(RunError):
    """A run that its user stopped: everything finished is kept, the same command does the rest."""

    exit_code = 130


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
    versions: Mapping[str, str] = field(default_factory=lambda: library_versions())

    def stored(self) -> dict[str, Any]:
        """The manifest as one map, as run.json holds it: half of a surrogate pair in a path is spelled out."""
        content = {key: to_json_value(getattr(self, key), key) for key in self.__slots__}
        stored: dict[str, Any] = json.loads(spell_surrogates(json.dumps(content, ensure_ascii=False)))
        return stored

    def identity(self) -> dict[str, Any]:
        """The part of the manifest that unit names are made from and that a folder used again must agree with.

        A model with an `identity`, a hash of its weights, is the same model under any name and path.

        >>> one, other = (Manifest("surgxbench", model={"name": name, "identity": "5f"}) for name in ("clip", "copy"))
        >>> one.identity() == other.identity(), one.stored() == other.stored()
        (True, False)
        """
        manifest = self.stored()
        if isinstance(manifest["model"], dict) and manifest["model"].get("identity"):
            manifest["model"] = {"identity": manifest["model"]["identity"]}
        return manifest


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


class RunRecord(StoredFile, name="run.json", format=1):
    """The content of run.json.

    `status` is `running` (also after a kill), `interrupted`, `stopped` (an error ended the run), `failed` (complete,
    with failed cases) or `done`. Times (UTC) and seconds are those of the latest call; they are here so that no case
    has to hold one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = save_scored(folder, Manifest("triplets", model="net"), cases=120)
    ...     record.model_copy(update={"status": "running"}).save(folder)
    ...     RunRecord.load(folder).complete
    False
    """

    protocol: str
    config: dict[str, Any]
    dataset: Any
    model: Any
    seeds: dict[str, int]
    versions: dict[str, str]
    status: RunStatus
    units: NonNegativeInt
    finished: NonNegativeInt
    failed: NonNegativeInt
    cases: NonNegativeInt
    started: str = ""
    updated: str = ""
    seconds: float = 0.0

    @property
    def manifest(self) -> Manifest:
        """Everything that determines the cases of the run."""
        return Manifest(self.protocol, self.config, self.dataset, self.model, self.seeds, self.versions)

    @property
    def complete(self) -> bool:
        """Whether cases.parquet holds the cases of every unit; some of them may have failed."""
        return self.status in ("done", "failed")


def save_scored(folder: str | Path, manifest: Manifest, *, cases: int, seconds: float = 0.0) -> RunRecord:
    """Write run.json for cases that were scored in one go, without units; creates the folder if it does not exist.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record = save_scored(Path(folder) / "net", Manifest("triplets", model="net"), cases=120)
    >>> record.status, record.cases
    ('done', 120)
    """
    make_folder(folder)
    record = scored_record(manifest, cases=cases, seconds=seconds)
    record.save(folder)
    return record


def scored_record(manifest: Manifest, *, cases: int, seconds: float = 0.0) -> RunRecord:
    """The content of run.json for cases that were scored in one go, without units.

    >>> scored_record(Manifest("triplets", model="net"), cases=120).complete
    True
    """
    moment = now()
    return RunRecord(
        **manifest.stored(), status="done", units=1, finished=1, failed=0, cases=cases, started=moment, updated=moment,
        seconds=seconds,
    )  # fmt: skip


class UnitCounts(Protocol):
    """The counts of a run in progress."""

    @property
    def units(self) -> int: ...
    @property
    def finished(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def cases(self) -> int: ...


class RecordKeeper:
    """Writes run.json: with the status `running` at the start, and with the way the run ended at its end.

    `status` is what it will say if no error ends the run.
    """

    def __init__(self, folder: Path, manifest: Manifest, counts: UnitCounts, status: RunStatus = "running") -> None:
        self._folder, self._manifest, self._counts = folder, manifest, counts
        self._started, self._clock = now(), time.perf_counter()
        self.status = status

    def __enter__(self) -> RecordKeeper:
        self._save("running")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._save(self.status)
            return
        interrupted = isinstance(error, KeyboardInterrupt | RunInterrupted)
        with suppress(OSError):  # on a full disk the status stays "running", which can be resumed as well
            self._save("interrupted" if interrupted else "stopped")

    def _save(self, status: RunStatus) -> None:
        counts = self._counts
        RunRecord(
            **self._manifest.stored(), status=status, units=counts.units, finished=counts.finished,
            failed=counts.failed, cases=counts.cases, started=self._started, updated=now(),
            seconds=round(time.perf_counter() - self._clock, 3),
        ).save(self._folder)  # fmt: skip


def load_record(folder: str | Path, protocol: str | None = None) -> RunRecord:
    """Read run.json; if a protocol is named, the run must belong to it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_scored(Path(folder), Manifest("triplets", model="net"), cases=120)
    ...     record = load_record(folder)
    >>> record.protocol, record.model, record.status
    ('triplets', 'net', 'done')
    """
    folder = Path(folder)
    if not folder.is_dir():
        problem = "a file, not the folder of a run" if folder.exists() else f"no such folder{name_beside(folder)}"
        raise DataError(folder, problem)
    record = RunRecord.load(folder)
    if protocol is not None and record.protocol != protocol:
        raise DataError(
            folder / RunRecord.file_name, f"a run of {record.protocol}, not of {protocol}", field="protocol"
        )
    return record


def now() -> str:
    """The time as run.json has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# ── holding the folder ──────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def hold_folder(folder: str | Path, record: str, inner: str, own: Collection[str] = ()) -> Iterator[None]:
    """Lock a new folder, or one that has the file `record`, and remove the temporary files of a killed process.

    A folder that holds other files is refused. `inner` is the folder in it that also has temporary files; `own` names
    files that may be there before the record is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with hold_folder(f"{folder}/first", "run.json", "parts"):
    ...         sorted(path.name for path in Path(folder, "first").iterdir())
    ['run.lock']
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file, not a folder")
    _refuse_foreign_files(folder, record, {LOCK, f".{record}.tmp", inner, *own})
    make_folder(folder)
    with folder_lock(folder):
        remove_temporary(folder, folder / inner)
        yield


def _refuse_foreign_files(folder: Path, record: str, own: Collection[str]) -> None:
    if not folder.is_dir() or (folder / record).exists():
        return
    other = sorted(path.name for path in folder.iterdir() if path.name not in own)
    if other and not (folder / record).exists():  # another process may have created it just now
        raise RunError(f"{folder}: holds {other[0]!r} but no {record}; name a new or empty folder")


# ── comparing manifests ─────────────────────────────────────────────────────────────────────────────────────────


def differences(old: Manifest, new: Manifest) -> list[str]:
    """The differences of two manifests, as `key: old → new`.

    >>> differences(Manifest("focus", seeds={"order": 1}), Manifest("focus", seeds={"order": 2}, model="clip"))
    ['model: "" → "clip"', 'seeds.order: 1 → 2']
    >>> one, other = (Manifest("surgxbench", model={"name": name, "identity": name * 9}) for name in ("clip", "blip"))
    >>> differences(one, other)
    ['model: "clip" → "blip"']
    """
    before, after = dict(_leaves(_with_name(old, new))), dict(_leaves(_with_name(new, old)))
    return [
        f"{key}: {_shorten(before.get(key, 'absent'))} → {_shorten(after.get(key, 'absent'))}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


def _with_name(manifest: Manifest, other: Manifest) -> dict[str, Any]:
    """The manifest's identity; of two models with different names the name, which says more than its hash."""
    identity, models = manifest.identity(), (manifest.model, other.model)
    hashes = [model.get("identity") for model in models if isinstance(model, dict)]
    names = [model.get("name") for model in models if isinstance(model, dict)]
    if len(names) == 2 and all(names) and all(hashes) and len(set(names)) == len(set(hashes)) == 2:
        identity["model"] = names[0]
    return identity


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    else:
        yield path, canonical_json(value)


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
