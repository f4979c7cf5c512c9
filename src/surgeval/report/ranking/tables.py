"""The tables of a ranking that page and terminal share: places, places on resampled videos, accuracies by bucket.

Columns are called the same in both, so that who read the one finds the other's numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from surgeval.pages import IntervalBar, Table, distinct
from surgeval.protocols.run_page import claims
from surgeval.report.ranking.entries import troubles
from surgeval.report.ranking.study import RankingStudy
from surgeval.report.ranking.words import NARROW, percent, place_by_tests, place_span, points
from surgeval.stats import Ranking, Stability, shown_bucket

__all__ = [
    "bucket_order",
    "bucket_table",
    "place_table",
    "score_table",
    "stability_table",
    "terminal_tables",
    "weakest_bucket",
]

_AHEAD = (
    "Ahead by tests: better than the next in more buckets. By tests with others: no significant difference between "
    "these two, third models put them in order. By tie-break only: no evidence."
)
_COUNTED = ("missing", "late", "invalid", "flagged")


def terminal_tables(study: RankingStudy) -> tuple[Table, ...]:
    """What the terminal shows: the ranking, places on resampled videos, and answers that were not in order.

    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=100)
    >>> (table,) = terminal_tables(study_ranking(places, outer=0, challenges=0))
    >>> table.frame.select("place", "model", "ahead of the next by").rows()
    [('1', 'net', 'tests'), ('2', 'prior', '–')]
    """
    ranking = study.ranking
    columns = {**_first_columns(ranking), "Copeland score": [int(ranking.copeland[m]) for m in ranking.order]}
    rates = ["–" if np.isnan(rate) else f"{rate:.3f}" for rate in ranking.win_rate[ranking.order]]
    if np.isfinite(ranking.win_rate).any():
        columns["win rate in the tie"] = rates
    tables = [Table("ranking", pl.DataFrame({**columns, **_against_baselines(ranking)}), _AHEAD)]
    if study.places is not None:
        title = f"places on resampled videos ({len(study.places.places)} resamples)"
        tables.append(Table(title, stability_table(study.places)))
    if (counts := troubles(study.statuses)) is not None:
        tables.append(Table("answers that were not in order", counts.rename(lambda name: name.replace("_", " "))))
    return tuple(Table(table.title, _with_plain_spaces(table.frame), table.note) for table in tables)


def place_table(study: RankingStudy) -> Table:
    """The page's first table: who is where, by what, and how that holds on resampled videos."""
    ranking, order = study.ranking, study.ranking.order
    columns = _first_columns(ranking)
    if study.verdicts:
        own_verdicts = [study.verdicts.get(ranking.models[m]) for m in order]
        columns["own grade"] = ["–" if verdict is None else verdict.grade for verdict in own_verdicts]
    if study.places is not None:
        span = study.places.interval()
        same_place = (study.places.places == ranking.final_rank).mean(axis=0)
        columns["place on resampled videos (95 %)"] = [
            str(span[m, 0]) if span[m, 0] == span[m, 2] else f"{span[m, 0]}{NARROW}to{NARROW}{span[m, 2]}"
            for m in order
        ]
        columns["keeps its place"] = [percent(float(same_place[m])) for m in order]
    counts = troubles(study.statuses)
    if counts is not None:
        rows = {row["model"]: row for row in counts.iter_rows(named=True)}
        for status in (name for name in _COUNTED if name in counts.columns):
            columns[status] = [rows.get(ranking.models[m], {}).get(status) for m in order]
    if len(ranking.buckets) > 1:
        columns["weakest bucket"] = [_weakest(ranking, m) for m in order]
    note = (
        f"Shared places show as a span, on resampled videos as its first. {_AHEAD} "
        f"{_capital(ranking.score_name)}: mean over buckets of the share of right answers, its interval from "
        "leaving out each video in turn (Student's t)."
    )
    if study.places is not None:
        note += f" Resampled videos: {len(study.places.places)} resamples of these very videos."
    if about := claims(study.verdicts):
        note += f" Its own {about[0].lower()}{about[1:]}"
    if "weakest bucket" in columns and ranking.untestable:
        note += f" Weakest bucket: of those with {ranking.options.min_clusters} videos or more."
    if np.isnan(ranking.mean_interval()).any():
        note += " No interval: leaving out a video changes nothing or too little is left, so other videos may differ."
    if absent := [name for name in _COUNTED if study.statuses is not None and name not in columns]:
        note += f" No answer is known to be {_either(absent)}."
    bars = {_score_head(ranking): _score_bars(ranking)}
    return Table("The ranking", pl.DataFrame(columns, strict=False), note, file="tables/ranking.csv", bars=bars)


def _score_head(ranking: Ranking) -> str:
    return f"{ranking.score_name}, % [95 %]"


def _score_bars(ranking: Ranking) -> list[IntervalBar | None]:
    """The scores as interval bars, with the best baseline of the ranking on each."""
    mean, ends = ranking.mean_accuracy, ranking.mean_interval()
    known = [ranking.models.index(name) for name in ranking.gate.baselines] if ranking.gate is not None else []
    best = max(known, key=lambda m: mean[m], default=None)
    level = {} if best is None else {ranking.models[best]: float(mean[best])}
    return [
        IntervalBar(value=float(mean[m]), low=float(ends[m, 0]), high=float(ends[m, 1]),
                    text=f"{points(mean[m])} %", baselines=level)
        for m in ranking.order
    ]  # fmt: skip


def score_table(ranking: Ranking) -> Table:
    """How tests and tie-break give the places."""
    order, rate, error = ranking.order, ranking.win_rate, ranking.win_rate_error
    above = ranking.wins > ranking.wins.T
    columns = {
        "place": [place_span(ranking.final_rank, m) for m in order],
        "model": [ranking.models[m] for m in order],
        "dominates": [int(above[m].sum()) for m in order],
        "dominated by": [int(above[:, m].sum()) for m in order],
        "Copeland score": [int(ranking.copeland[m]) for m in order],
        "win rate in the tie": [f"{rate[m]:.3f} ± {error[m]:.3f}" if np.isfinite(rate[m]) else "–" for m in order],
    }
    note = (
        "A model dominates another when it is better in more buckets than the other way round; the Copeland score is "
        "how many it dominates minus how many dominate it. The win rate breaks ties at the top and is no evidence; "
        "± is the error of its resampling alone."
    )
    return Table("How the places come about", pl.DataFrame(columns), note, file="tables/ranking.csv")


def stability_table(places: Stability) -> pl.DataFrame:
    """How often each model is where on resampled videos; among three only where there are more models than that."""
    table = places.to_frame()
    shares = {"first": "first", "top_three": "among three", "same_place": "same place"}
    if len(places.models) <= 3:
        del shares["top_three"]
    return table.select(
        "model",
        pl.Series("place", [place_span(places.final_rank, places.models.index(name)) for name in table["model"]]),
        "low", "median", "high",
        *(pl.Series(head, [percent(value) for value in table[name]]) for name, head in shares.items()),
    )  # fmt: skip


def bucket_order(ranking: Ranking) -> list[int]:
    """Bucket numbers: in distribution first, then out of it, each by name."""
    return sorted(range(len(ranking.buckets)), key=lambda k: (ranking.buckets[k].endswith("|ood"), ranking.buckets[k]))


def bucket_table(ranking: Ranking) -> Table:
    """One row per bucket, one column per model: accuracy in % and, in brackets, the place by tests if decided."""
    order = ranking.order
    names = [shown_bucket(name) for name in ranking.buckets]
    columns: list[list[Any]] = [names, list(ranking.questions), list(ranking.videos)]
    for m in order:
        ranks = [
            "–" if name in ranking.untestable else rank
            for name, rank in zip(ranking.buckets, ranking.bucket_rank[:, m], strict=True)
        ]
        columns.append([f"{points(a)}\u00a0({rank})" for a, rank in zip(ranking.accuracy[:, m], ranks, strict=True)])
    heads = distinct(["bucket", "questions", "videos", *(ranking.models[m] for m in order)])
    frame = pl.DataFrame([pl.Series(head, column) for head, column in zip(heads, columns, strict=True)])
    sides = any(name.endswith("|ood") for name in ranking.buckets)
    note = "In distribution (id) first, then out of distribution (ood), each by name." if sides else "By name."
    note = f"{place_by_tests(ranking.options)} {note}"
    if ranking.untestable:
        note += f" –: fewer than {ranking.options.min_clusters} videos decide nothing."
    title = "Accuracy in %, and in brackets the place by tests"
    return Table(title, frame[bucket_order(ranking)], note, file="tables/buckets.csv")


def _first_columns(ranking: Ranking) -> dict[str, list[Any]]:
    """Place, model, what puts it ahead of the next, and the score with its interval."""
    order, mean, ends = ranking.order, ranking.mean_accuracy, ranking.mean_interval()
    scores = [
        points(mean[m])
        if np.isnan(ends[m]).any()
        else f"{points(mean[m])}{NARROW}[{points(ends[m, 0])},{NARROW}{points(ends[m, 1])}]"
        for m in order
    ]
    return {
        "place": [place_span(ranking.final_rank, m) for m in order],
        "model": [ranking.models[m] for m in order],
        "ahead of the next by": _reasons(ranking),
        _score_head(ranking): scores,
    }


def _against_baselines(ranking: Ranking) -> dict[str, list[str]]:
    gate = ranking.gate
    if gate is None:
        return {}
    several = len(gate.baselines) > 1
    itself = "is a baseline" if several else "is the baseline"
    states = [gate.state.get(ranking.models[m], itself) for m in ranking.order]
    return {f"against the baseline{'s' if several else ''}": states}


def _reasons(ranking: Ranking) -> list[str]:
    """What puts each model ahead of the one in the next row."""
    reasons = []
    for own, following in pairwise(ranking.order):
        if ranking.final_rank[own] == ranking.final_rank[following]:
            reasons.append("nothing: shared")
        elif ranking.wins[own, following] > ranking.wins[following, own]:
            reasons.append("tests")
        else:
            equal = ranking.copeland[own] == ranking.copeland[following]
            reasons.append("tie-break only" if equal else "tests with others")
    return [*reasons, "–"]


def weakest_bucket(ranking: Ranking, model: int) -> int | None:
    """The number of the bucket with the model's lowest accuracy, of those that can decide; None where none is below 1.

    >>> from surgeval.stats import rank_outcomes
    >>> buckets, videos = ["few|id"] * 5 + ["b|id"] * 6 + ["c|id"] * 6, [*range(5), *range(6), *range(6)]
    >>> right = {"some": [0] * 5 + [1, 0, 1, 1, 1, 1] + [1] * 6, "all": [0] * 5 + [1] * 12}
    >>> ranking = rank_outcomes(right, buckets, videos, resamples=9)
    >>> ranking.buckets, [weakest_bucket(ranking, m) for m in (0, 1)]
    (('b|id', 'c|id', 'few|id'), [0, None])
    """
    own = ranking.accuracy[:, model]
    able = [k for k, name in enumerate(ranking.buckets) if name not in ranking.untestable and own[k] < 1]
    return min(able, key=lambda k: float(own[k]), default=None)


def _weakest(ranking: Ranking, model: int) -> str:
    worst = weakest_bucket(ranking, model)
    if worst is None:
        return "–"
    return f"{shown_bucket(ranking.buckets[worst])} ({points(ranking.accuracy[worst, model])}{NARROW}%)"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _with_plain_spaces(frame: pl.DataFrame) -> pl.DataFrame:
    """A terminal's table breaks its lines at plain spaces and spells others out; names stay as they are."""
    ours = cs.string() - cs.by_name("model")
    return frame.with_columns(ours.str.replace_all(NARROW, " ", literal=True))
