"""The run rules: from a question and its response to a status, before any judge is asked.

The order matters: by default a question that cannot be scored is set aside whoever answered what, then comes what the
response did wrong (missing, unusable, late, unreadable). Compat follows the original's order; an item on which the
original stops is `invalid` without correctness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from surgeval.errors import BadInput
from surgeval.files import format_value
from surgeval.protocols.focus.reading.records import FocusQuestion, FocusResponse
from surgeval.qa import AnswerVerdict, judge_format
from surgeval.vocab import track_limits

__all__ = ["STATUSES", "Outcome", "Status", "TimeRule", "latency_limit", "off_track_groups", "outcome", "time_limit"]

Status: TypeAlias = Literal["ok", "missing", "late", "invalid", "bad_reference", "flagged", "judge_error"]
STATUSES: tuple[Status, ...] = ("ok", "missing", "late", "invalid", "bad_reference", "flagged", "judge_error")
TimeRule: TypeAlias = Literal["question", "pooled"]
# The reduced taxonomy of the frame track: one image shows objects and counts, not times, events or reasons.
_FRAME_GROUPS = frozenset({"object_recognition", "aggregation"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about one answer; `pending` when judges must decide about `candidate`."""

    status: Status
    correct: bool | None
    reason: str
    latency: float | None = None
    pending: bool = False
    candidate: str = ""


def latency_limit(track: str | None, max_latency: float | None) -> float | None:
    """The limit in seconds of a track or as given; None for no limit.

    >>> latency_limit("segment", None), latency_limit(None, 2.5), latency_limit(None, None)
    (15.0, 2.5, None)
    """
    limits = track_limits()
    if track is not None and max_latency is not None:
        raise BadInput(f"max_latency: found {max_latency!r} beside track {track!r}, expected one of the two")
    if track is not None:
        if track not in limits:
            raise BadInput(f"track: found {track!r}, expected one of {', '.join(limits)}")
        return limits[track]
    if max_latency is not None and not (math.isfinite(max_latency) and max_latency >= 0):
        raise BadInput(f"max_latency: found {max_latency!r}, expected seconds, finite and at least 0")
    return max_latency


def time_limit(
    track: str | None, max_latency: float | None, time: TimeRule, compat: str | None
) -> tuple[float | None, float | None]:
    """The seconds of a question under the rule `question`, and under the rule `pooled`; None under the other one.

    >>> time_limit("frame", None, "question", None), time_limit("frame", None, "pooled", None)
    ((5.0, None), (None, 5.0))
    """
    limit = latency_limit(track, max_latency)
    if time == "question":
        return limit, None
    if time != "pooled":
        raise BadInput(f"time: found {time!r}, expected one of question, pooled")
    if compat is not None:
        raise BadInput(f"time: 'pooled' cannot be combined with {compat}, which times each question")
    if track is None:
        raise BadInput("time: 'pooled' without a track has no budget; name the track")
    return None, limit


def off_track_groups(track: str | None, groups: set[str]) -> tuple[str, ...]:
    """Groups that the track's taxonomy does not have: worth a note, no error."""
    return tuple(sorted(groups - _FRAME_GROUPS)) if track == "frame" else ()


def outcome(
    question: FocusQuestion, response: FocusResponse | None, limit: float | None, compat: str | None
) -> Outcome:
    """The status of one answer by the default rules or the original's."""
    return (_default if compat is None else _compat)(question, response, limit, compat)


def _default(
    question: FocusQuestion, response: FocusResponse | None, limit: float | None, compat: str | None
) -> Outcome:
    latency = response.latency if response and not response.untimed else None
    if question.unusable:
        return Outcome("bad_reference", None, question.unusable, latency)
    if response is None:
        return Outcome("missing", False, "no response was given")
    if response.unusable:
        return Outcome("invalid", False, response.unusable, latency)
    if limit is not None and response.untimed:
        return Outcome("invalid", False, f"{response.untimed}, because a limit of {limit:g} s applies")
    if limit is not None and latency is not None and latency > limit:
        return Outcome("late", False, _late(latency, limit), latency)
    verdict = judge_format(question.format, question.options, question.answer, response.content)
    return _of_format(verdict, response, latency)


def _compat(
    question: FocusQuestion, response: FocusResponse | None, limit: float | None, compat: str | None
) -> Outcome:
    latency = response.latency if response and response.stated else 0.0
    aborts = question.aborts or (response.aborts if response else "")
    if not aborts and response is not None:
        if limit is not None and latency is None:
            aborts = "a latency that is no number"
        elif not isinstance(response.content, str):
            aborts = f"the answer is {format_value(response.content)}, not text"
    if aborts:
        return Outcome("invalid", None, f"orena-focus 0.4.0 aborts here: {aborts}", latency)
    if response is None:  # the original looks at neither format nor options of what is not answered in time
        return Outcome("missing", False, "no response was given", 0.0)
    if limit is not None and latency is not None and latency > limit:
        return Outcome("late", False, _late(latency, limit), latency)
    verdict = judge_format(question.format, question.options, question.answer, response.content, compat)
    if verdict.state == "crash":
        return Outcome("invalid", None, verdict.reason, latency)
    return _of_format(verdict, response, latency)


def _of_format(verdict: AnswerVerdict, response: FocusResponse, latency: float | None) -> Outcome:
    if verdict.state == "judge":
        return Outcome("judge_error", None, "no verdict yet", latency, True, str(response.content))
    status: dict[str, Status] = {"invalid": "invalid", "reference_invalid": "bad_reference"}
    return Outcome(status.get(verdict.state, "ok"), verdict.correct, verdict.reason, latency)


def _late(latency: float, limit: float) -> str:
    return f"answered after {latency:g} s, {limit:g} s are allowed"
