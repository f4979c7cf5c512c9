"""Who can propose: the embedded detectors, those the server was started with, and what lies in the project's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from surgeval.errors import BadInput, visible
from surgeval.files import leads_out
from surgeval.models import embedded_names

__all__ = ["Proposer", "ProposerKind", "offered_proposers", "path_in_project", "proposers"]

ProposerKind: TypeAlias = Literal["embedded", "started", "project", "predictions"]
_WEIGHTS = (".safetensors", ".onnx")
_TABLES = (".csv", ".parquet", ".json")
_RTDETR = "surgeval.json"  # beside the weights in a folder of RT-DETR
_DEPTH = 3
_MOST_ENTRIES = 100_000  # that are looked at
_MOST_LISTED = 100  # of a kind


@dataclass(frozen=True)
class Proposer:
    """Something that proposes: `name` is what a person sees and a request says."""

    kind: ProposerKind
    name: str


def offered_proposers(started: Sequence[str] = ()) -> tuple[Proposer, ...]:
    """The embedded detectors and those that the server was started with.

    >>> [proposer.name for proposer in offered_proposers(["/models/best"])]
    ['tdnet-p', '/models/best']
    """
    return (
        *(Proposer("embedded", name) for name in embedded_names("detector")),
        *(Proposer("started", detector) for detector in started),
    )


def proposers(folder: str | Path, started: Sequence[str] = ()) -> tuple[Proposer, ...]:
    """All that can be chosen from.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "runs").mkdir()
    ...     for name in ("runs/mine.onnx", "found.csv", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     [(proposer.kind, proposer.name) for proposer in proposers(Path(folder), ["/models/best"])]
    [('embedded', 'tdnet-p'), ('started', '/models/best'), ('project', 'runs/mine.onnx'), ('predictions', 'found.csv')]
    """
    known = list(offered_proposers(started))
    files = sorted(_files(Path(folder)))
    packed = {path.parent for path in files if path.name == _RTDETR}
    weights = [str(path) for path in sorted(packed) if str(path) != "."]
    weights += [str(path) for path in files if path.suffix.lower() in _WEIGHTS and path.parent not in packed]
    tables = [str(path) for path in files if path.suffix.lower() in _TABLES and path.parent not in packed]
    known += [Proposer("project", name) for name in weights[:_MOST_LISTED]]
    known += [Proposer("predictions", name) for name in tables[:_MOST_LISTED]]
    return tuple(known)


def path_in_project(folder: str | Path, name: str) -> Path:
    """The file or folder of that name inside a project's folder; a way out of it is refused.

    >>> path_in_project(Path("videos"), "../weights.onnx")
    Traceback (most recent call last):
    surgeval.errors.BadInput: path: found '../weights.onnx', expected a file or folder inside the project's folder
    """
    folder = Path(folder)
    relative = PurePosixPath(name.replace("\\", "/"))
    wrong = BadInput(f"path: found {visible(repr(name[:120]))}, expected a file or folder inside the project's folder")
    if not name or "\0" in name or relative.is_absolute() or ".." in relative.parts or ":" in name:
        raise wrong
    path = folder.joinpath(*relative.parts)
    if path == folder or leads_out(path, folder) or not os.path.exists(path):  # noqa: PTH110 (`Path.exists` may raise)
        raise wrong
    return path


def _files(folder: Path) -> Iterator[PurePosixPath]:
    """Files that may propose, as names below the folder; a folder of a hundred thousand images is not walked on."""
    waiting, seen = [PurePosixPath()], 0
    while waiting:
        subfolder = waiting.pop(0)
        try:
            entries = os.scandir(folder / subfolder)
        except OSError:
            continue  # gone, or not ours to look into
        with entries:
            for entry in entries:
                seen += 1
                if seen > _MOST_ENTRIES:
                    return
                if entry.name.startswith(".") or visible(entry.name) != entry.name:
                    continue
                below = subfolder / entry.name
                if entry.is_dir(follow_symlinks=False) and len(below.parts) < _DEPTH:
                    waiting.append(below)
                elif below.suffix.lower() in (*_WEIGHTS, *_TABLES) and entry.is_file(follow_symlinks=False):
                    yield below
