"""Evidence of results as a section of a page takes it: of one run, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.pages import Evidence, Section
from surgeval.protocols.result import RunResult

__all__ = ["evidence_of", "side_by_side"]


def evidence_of(results: Sequence[RunResult]) -> tuple[Evidence, ...]:
    """What those of the results have that have any.

    >>> evidence_of([])
    ()
    """
    return tuple(shown for result in results if (shown := result.evidence()) is not None and shown.cases.height)


def side_by_side(shown: Sequence[Evidence]) -> Section:
    """The section for models on the same cases.

    >>> side_by_side([]).title
    'Case by case'
    """
    text = "Each case with what every model said; “models disagree” lists those on which their verdicts differ."
    return Section("Case by case", text, evidence=tuple(shown))
