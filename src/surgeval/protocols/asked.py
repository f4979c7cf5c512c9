"""What asking a model leaves, whatever was asked: the answers, how the run went, and what it cost."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from surgeval.engine import RunSummary
from surgeval.errors import BadInput
from surgeval.protocols.reply_warnings import find_other_models
from surgeval.protocols.result import FinishedRun
from surgeval.qa import Usage

__all__ = ["NO_MEDIA", "UNKNOWN_MEDIA", "AskedRun", "check_limit", "count_models", "draw_evenly", "was_shown"]

NO_MEDIA, UNKNOWN_MEDIA = "none", "unknown"  # what run.json says where nothing was shown, and of answers made elsewhere

_STATUS = {"ok": "answered", "missing": "without a response"}  # what a count of answers is called


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AskedRun(FinishedRun):
    """A finished run: `answers` has a row per question, with `status`, `content` and what the answer took."""

    folder: Path
    model: str
    answers: pl.DataFrame
    summary: RunSummary
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Questions by status."""
        return dict(self.answers.group_by("status").len().sort("status").iter_rows())

    @property
    def unasked(self) -> int:
        """Questions that a failure left without an answer; a file without a response is no failure of a model."""
        return sum(count for status, count in self.counts.items() if status not in ("ok", "missing"))

    @property
    def usage(self) -> Usage:
        """Requests and tokens of the answers; `usage.cost(Price(…))` is what they cost."""
        spent = self.answers.select(pl.col("requests", "prompt_tokens", "completion_tokens").sum())
        return Usage(*spent.row(0))

    @property
    def answered_by(self) -> Mapping[str, int]:
        """Answers by the model name that the server gave; empty where it gave none."""
        return count_models(self.answers)

    @property
    def server_notes(self) -> tuple[str, ...]:
        """Under which name the server answered; a warning where it is not the one asked for."""
        other = find_other_models(self.model, self.answered_by)
        named = [f"note: the server named its model {name!r}" for name in self.answered_by] if not other else []
        return tuple(named or [f"warning: {text}" for text in other])

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`answers` first, one row per question; then those of the run, and `failures`."""
        others = {name: table for name, table in super().tables.items() if name != "answers"}
        return {"answers": self.answers, **others}

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.model}: {self.said}"

    @property
    def said(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count} {_STATUS.get(status, status)}" for status, count in self.counts.items())

    def __str__(self) -> str:
        return "\n".join((str(self.summary), f"{self.model}: {self.said}", *self.server_notes, *self.notes))


def count_models(answers: pl.DataFrame) -> dict[str, int]:
    """Answers by the model name that the server gave.

    >>> count_models(pl.DataFrame({"answered_by": ["vlm", "", None, "vlm"]}))
    {'vlm': 2}
    """
    if "answered_by" not in answers.columns:
        return {}
    named = answers.filter(pl.col("answered_by").cast(pl.String).fill_null("") != "")
    return dict(named.group_by("answered_by").len().sort("answered_by").iter_rows())


def was_shown(media: object) -> bool | None:
    """Whether pictures were shown, by what run.json says of the media; None where that is unknown.

    >>> was_shown("dataset 3f1c"), was_shown(NO_MEDIA), was_shown(UNKNOWN_MEDIA)
    (True, False, None)
    """
    return None if not isinstance(media, str) or media == UNKNOWN_MEDIA else media != NO_MEDIA


def check_limit(limit: int | None) -> None:
    """Refuse to ask fewer questions than one.

    >>> check_limit(0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: limit: found 0, expected at least 1
    """
    if limit is not None and limit < 1:
        raise BadInput(f"limit: found {limit}, expected at least 1")


def draw_evenly(strata: Mapping[Hashable, Sequence[tuple[str, ...]]], limit: int, seed: int = 0) -> set[str]:
    """At most so many ids, one group from every stratum in turn; the ids of a group come together or not at all.

    The same strata and seed give the same draw, and a larger limit keeps what a smaller one drew of single ids.

    >>> sorted(draw_evenly({"v1": [("a",), ("b",), ("c",)], "v2": [("d",), ("e",)]}, 2))
    ['b', 'd']
    """
    left = {key: list(groups) for key, groups in strata.items()}
    for key, groups in left.items():
        random.Random(f"{seed}\0{key}").shuffle(groups)
    taken: set[str] = set()
    while any(left.values()) and len(taken) < limit:
        for groups in left.values():
            group = groups.pop() if groups else ()
            if len(taken.union(group)) <= limit:
                taken.update(group)
    return taken
