"""Trainings among runs: a section of the index, with how far each is and a link to its page."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from surgeval.errors import SurgevalError
from surgeval.pages import Link, Section, Table
from surgeval.protocols.contract import FolderKind
from surgeval.protocols.registry import is_run
from surgeval.protocols.training.curves import is_training, load_training_folder
from surgeval.protocols.training.training_page import write_training_page

__all__ = ["folder_kind", "trainings_section"]

_HEADS = ("training", "network", "state", "epochs", "best mAP50")


def folder_kind() -> FolderKind:
    """The folder of a training: no run, but its page is wanted while it still trains."""
    return FolderKind(
        noun="training", to_compare="detect with it and score that, then compare", holds=is_training,
        write_page=write_training_page, section=trainings_section,
    )  # fmt: skip


def trainings_section(folder: str | Path, out: str | Path | None = None) -> Section | None:
    """The trainings directly in a folder, each with its page written, for an index in `out`; None where there are none.

    What a link leads to is not in the folder, and a training that cannot be read hides no other.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     trainings_section(Path(place)) is None
    True
    """
    folder = Path(folder)
    out = None if out is None else Path(out)
    trainings = [path for path in sorted(folder.iterdir()) if not path.is_symlink() and is_training(path)]
    rows, links, problems = list[tuple[str, ...]](), list[Link](), list[str]()
    for path in (path for path in trainings if not is_run(path)):
        try:
            training = load_training_folder(path)
            page = write_training_page(path)
        except SurgevalError as error:
            problems.append(str(error))
            continue
        stage = training.stages[-1] if training.stages else ""
        best = training.best(stage)
        done = f"{len(training.of(stage))} ({stage})" if stage else "0"
        number = "–" if best is None else f"{best.numbers['mAP50']:.3f} (epoch {best.number})"
        rows.append((path.name, training.record.model, training.record.status, done, number))
        links.append(Link(path.name, f"./{Path(os.path.relpath(page, out or folder)).as_posix()}"))
    if not rows and not problems:
        return None
    table = Table("How far they are", pl.DataFrame(rows, schema=dict.fromkeys(_HEADS, pl.String), orient="row"))
    return Section("Trainings", "\n\n".join(problems), tables=(table,) if rows else (), links=tuple(links))
