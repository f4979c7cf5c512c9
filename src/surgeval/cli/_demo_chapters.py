"""The demo's chapters in processes of their own: two at a time, told in their order.

Each chapter has stretches in which one core works (pages, loading), and others in which both do; side by side they fill
each other's gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeval.console import progress
from surgeval.errors import BadInput, MissingExtra, RunError
from surgeval.progress import quiet
from surgeval.protocols.workers import worker_pool

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
    """A chapter with its ranking, where it has one; or why it was left out."""

    name: str
    chapter: Chapter | str
    ranked: RankedRuns | None = None


@contextmanager
def telling(protocols: Sequence[Descriptor], data: Path, edition: str, out: Path) -> Iterator[Iterator[ToldChapter]]:
    """Begin every protocol's chapter about the phantom in `data`; inside the `with` they come in the given order."""
    from surgeval.pages import library_inside

    before = set(active_children())
    pool = worker_pool(_AT_ONCE, light=True)
    try:
        # The last chapter takes longest: begun first, it is not waited for alone at the end.
        begun = {
            protocol.name: pool.submit(_tell, protocol.name, data, edition, out / protocol.name, library_inside())
            for protocol in (*protocols[-1:], *protocols[:-1])
        }
        yield (_awaited(protocol.name, begun[protocol.name]) for protocol in protocols)
    except BrokenProcessPool as error:
        raise RunError(f"{out}: a process of the demo died; the same command does the rest") from error
    except BaseException:
        for child in set(active_children()) - before:
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _awaited(name: str, begun: Future[ToldChapter]) -> ToldChapter:
    with progress("chapters") as bar:
        bar.phase(name)
        return begun.result()


def _tell(name: str, data: Path, edition: str, out: Path, inside: bool) -> ToldChapter:
    """One chapter and its ranking, in a process of its own."""
    from surgeval.datasets import open_dataset
    from surgeval.pages import single_file
    from surgeval.protocols.contract import Demo
    from surgeval.protocols.registry import descriptors

    with quiet(True), single_file(inside):
        chapter = told_or_left_out(descriptors()[name], Demo(dataset=open_dataset(data), edition=edition, out=out))
        if isinstance(chapter, str) or chapter.ranking is None:
            return ToldChapter(name, chapter)
        return ToldChapter(name, chapter, ranking_of(chapter, out / "ranking"))


def told_or_left_out(protocol: Descriptor, demo: Demo) -> Chapter | str:
    """The protocol's chapter, or what the light install lacks for it, or why another package's cannot be imported."""
    try:
        tell = protocol.part("chapter")
    except BadInput as error:
        return str(error)
    try:
        chapter: Chapter = tell(demo)
    except MissingExtra as missing:
        return str(missing)
    return chapter


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
