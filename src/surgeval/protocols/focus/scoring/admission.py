"""The gate of the challenge: a submission must be strictly better than every baseline on the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["Admission", "admission_gate"]


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a submission passed the gate, against which scores, and why in words."""

    admitted: bool
    score: float
    baselines: Mapping[str, float]
    reason: str


def admission_gate(scores: FocusScores, baselines: Mapping[str, FocusScores | float]) -> Admission:
    """Admit a submission whose pre-evaluation score is strictly above every baseline's.

    Baselines are scores or numbers. Scored baselines must have answered the same questions.

    >>> from surgeval.protocols.focus import score_focus
    >>> ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    >>> truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    >>> admission_gate(score_focus([{"qID": "q1", "content": "3"}], ask, truth), {"prior": 0.25}).reason
    '1.0000 is above prior (0.2500)'
    """
    if not baselines:
        raise BadInput("baselines: found none, expected at least one to be beaten")
    own = scores.pre_evaluation_score
    others: dict[str, float] = {}
    for name, baseline in baselines.items():
        if not isinstance(baseline, int | float):
            _same_questions(scores, baseline, name)
        value = float(baseline) if isinstance(baseline, int | float) else baseline.pre_evaluation_score
        if value != value:
            raise BadInput(f"baseline {name}: found no pre-evaluation score, expected one to be beaten")
        others[name] = value
    beaten_by = [name for name, value in others.items() if not own > value]
    if scores.unrankable:
        reason = scores.unrankable
    elif own != own:
        reason = "no question could be scored"
    elif beaten_by:
        reason = f"{own:.4f} is not above {', '.join(f'{name} ({others[name]:.4f})' for name in beaten_by)}"
    else:
        reason = f"{own:.4f} is above {', '.join(f'{name} ({value:.4f})' for name, value in others.items())}"
    return Admission(not (scores.unrankable or beaten_by), own, others, reason)


def _same_questions(scores: FocusScores, baseline: FocusScores, name: str) -> None:
    odd = sorted(set(scores.results["qID"]) ^ set(baseline.results["qID"]))
    if odd:
        raise BadInput(
            f"baseline {name}: found other questions ({len(odd)} differ, first {odd[0]!r}), expected the same ones"
        )
