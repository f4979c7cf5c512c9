"""The demo's chapters in processes of their own: two at a time, told in their order.

Each chapter has stretches in which one core works (pages, loading), and others in which both do; side by side they fill
each other's gaps.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeval.console import progress_bar
from surgeval.errors import MissingExtra, RunError, SurgevalError
from surgeval.processes import WorkerDied, WorkerPool
from surgeval.progress import quiet

if TYPE_CHECKING:
    import polars as pl

    from surgeval.protocols.contract import Chapter, Demo
    from surgeval.protocols.descriptor import Descriptor

__all__ = ["RankedRuns", "ToldChapter", "ranking_of", "telling", "told_or_left_out"]

_AT_ONCE = 2


@dataclass(frozen=True)
class RankedRuns:
    """The runs of a chapter in their order."""

    table: pl.DataFrame
    page: Path
    feedback: Path
    plain: dict[str, Any]


@dataclass(frozen=True)
class ToldChapter:
    """A chapter with its ranking, where it has one; or why it was left out, and whether it `failed` at that."""

    name: str
    chapter: Chapter | str
    ranked: RankedRuns | None = None
    failed: bool = False


@contextmanager
def telling(protocols: Sequence[Descriptor], data: Path, edition: str, out: Path) -> Iterator[Iterator[ToldChapter]]:
    """Begin every protocol's chapter about the phantom in `data`; inside the `with` they come in the given order."""
    from surgeval.pages import library_inside

    # The last of our chapters takes longest: begun first, it is not waited for alone at the end.
    longest = [protocol for protocol in protocols if protocol.is_ours("chapter")][-1:]
    names = [protocol.name for protocol in (*longest, *(other for other in protocols if other not in longest))]
    try:
        with WorkerPool(partial(_tell, data, edition, out, library_inside()), names, _AT_ONCE) as pool:
            yield _in_order([protocol.name for protocol in protocols], names, pool)
    except WorkerDied as error:
        raise RunError(f"{out}: a process of the demo died; the same command does the rest") from error


def _in_order(names: Sequence[str], begun: Sequence[str], pool: WorkerPool[str, ToldChapter]) -> Iterator[ToldChapter]:
    told: dict[str, ToldChapter] = {}
    finished = iter(pool)
    for name in names:
        with progress_bar("chapters") as bar:
            bar.phase(name)
            while name not in told:
                number, chapter = next(finished)
                told[begun[number]] = chapter
        yield told.pop(name)


def _tell(data: Path, edition: str, out: Path, inside: bool, name: str) -> ToldChapter:
    """One chapter and its ranking, in a process of its own; a part of another package that fails costs its chapter."""
    from surgeval.datasets import open_dataset
    from surgeval.pages import single_file
    from surgeval.protocols.contract import Demo
    from surgeval.protocols.registry import descriptors

    with quiet(True), single_file(inside):
        return told_or_left_out(descriptors()[name], Demo(dataset=open_dataset(data), edition=edition, out=out / name))


def told_or_left_out(protocol: Descriptor, demo: Demo) -> ToldChapter:
    """The protocol's chapter, or what the light install lacks for it, or why another package's cannot be had."""
    try:
        with protocol.answers_for("chapter"):
            chapter: Chapter = protocol.part("chapter")(demo)
            ranked = None if chapter.ranking is None else ranking_of(chapter, demo.out / "ranking")
            told = ToldChapter(protocol.name, chapter, ranked)
            json.dumps(chapter.to_json())  # what cannot be said, or sent to the process that asked, fails here
            pickle.dumps(told)
            return told
    except MissingExtra as missing:
        return ToldChapter(protocol.name, str(missing))
    except SurgevalError as error:
        if protocol.is_ours("chapter"):
            raise
        return ToldChapter(protocol.name, str(error), failed=True)


def ranking_of(chapter: Chapter, out: Path) -> RankedRuns:
    """The chapter's runs, ranked as `surgeval rank` does."""
    from surgeval.report import (
        rank,
        read_entrants,
        study_ranking,
        terminal_tables,
        write_feedback,
        write_ranking_page,
    )

    options = dict(chapter.ranking or {})
    study_options = {key: options.pop(key) for key in ("outer", "resamples") if key in options}
    entrants = read_entrants(chapter.runs)
    ranking = rank(entrants, **options)
    study = study_ranking(ranking, **study_options, tables=entrants.tables)
    page = write_ranking_page(study, out, title=f"Ranking: {chapter.title}")
    feedback = write_feedback(study, entrants.tables, out / "feedback")
    shown = ("models", "copeland", "final_rank", "final_order", "bucket_rank", "win_rate")
    plain = ranking.to_json()
    table = terminal_tables(study)[0].frame
    return RankedRuns(table, page, feedback, {key: plain[key] for key in shown if key in plain})
