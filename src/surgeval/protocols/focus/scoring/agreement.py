"""How far judges agree with each other and with people: Cohen's kappa over the answers that both decided.

A judge who is asked only when the others differ looks worse than it is: build the panel with `short_circuit=False`
before comparing more than the judges that are always asked. Intervals resample videos.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl

from surgeval.stats import cohen_kappa

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["judge_agreement"]

HUMAN = "human"
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "first": pl.String, "second": pl.String, "answers": pl.Int64, "agreement": pl.Float64, "kappa": pl.Float64,
    "low": pl.Float64, "high": pl.Float64, "note": pl.String,
}  # fmt: skip


def judge_agreement(
    scores: FocusScores, human: Mapping[str, bool | None] | None = None, *, resamples: int = 2000, seed: int = 0
) -> pl.DataFrame:
    """One row per pair of judges, the panel and, where people decided (`human`: qID → verdict), each against them.

    >>> from surgeval.protocols.focus import score_focus
    >>> from surgeval.qa import ExactJudge, Panel
    >>> ask = [{"qID": q, "videoID": q, "start_time": 0, "end_time": 0, "procedure_type": "", "question": "Why?"}
    ...        for q in "abcd"]
    >>> truth = [{"qID": q, "primary": "5a", "format": "open_ended", "answer": "to cut"} for q in "abcd"]
    >>> said = [{"qID": q, "content": text} for q, text in zip("abcd", ("to cut", "to cut", "cutting", "to sew"))]
    >>> scores = score_focus(said, ask, truth, judge=Panel([ExactJudge()]), resamples=50)
    >>> people = {"a": True, "b": True, "c": True, "d": False}  # "cutting" means the same
    >>> judge_agreement(scores, people, resamples=50).select("first", "second", "answers", "agreement", "kappa").row(0)
    ('exact', 'human', 4, 0.75, 0.5)
    """
    votes = scores.votes()
    panel = {verdict.qid: verdict.correct for verdict in scores.verdicts}
    columns = {name: dict(zip(votes["qID"], votes[name], strict=True)) for name in votes.columns if name != "qID"}
    pairs = list(combinations(columns, 2))
    if human is not None:
        columns |= {"panel": panel, HUMAN: dict(human)}
        pairs += [(name, HUMAN) for name in columns if name != HUMAN]
    video = {qid: name or f"question {qid}" for qid, name in scores.results.select("qID", "video").iter_rows()}
    rows = []
    for first, second in pairs:
        shared = [
            qid for qid in panel
            if columns[first].get(qid) is not None and columns[second].get(qid) is not None
        ]  # fmt: skip
        rows.append((first, second, *_pair(columns[first], columns[second], shared, video, resamples, seed)))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _pair(
    first: Mapping[str, bool | None],
    second: Mapping[str, bool | None],
    shared: list[str],
    video: Mapping[str, str],
    resamples: int,
    seed: int,
) -> tuple[int, float | None, float | None, float | None, float | None, str]:
    if not shared:
        return 0, None, None, None, None, "no answer was decided by both"
    left, right = [first[qid] for qid in shared], [second[qid] for qid in shared]
    same = sum(a == b for a, b in zip(left, right, strict=True)) / len(shared)
    clusters = [video[qid] for qid in shared]
    agreement = cohen_kappa(left, right, categories=[False, True], clusters=clusters, resamples=resamples, seed=seed)
    ends = (agreement.value, agreement.interval.low, agreement.interval.high)
    kappa, low, high = (None if value != value else value for value in ends)
    return len(shared), same, kappa, low, high, agreement.reason or agreement.interval.note
