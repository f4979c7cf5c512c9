"""The pictures of a ranking: podium, significance map, blobs, stability lines, accuracies."""

from __future__ import annotations

from typing import Any

import numpy as np

from surgeval.figures import Figure, Series, estimates, heatmap, podium, significance_map, stability_lines
from surgeval.report.ranking.study import RankingStudy
from surgeval.report.ranking.tables import bucket_order
from surgeval.stats import shown_bucket

__all__ = ["ranking_figures"]


def ranking_figures(study: RankingStudy) -> dict[str, Figure]:
    """Return the figures of a ranking by name."""
    ranking = study.ranking
    order, buckets = ranking.order, bucket_order(ranking)
    names = tuple(ranking.models[m] for m in order)
    figures: dict[str, Figure] = {
        "significance": significance_map(
            "Buckets in which one model is better", names, _rows(ranking.wins[np.ix_(order, order)]),
            len(ranking.buckets),
        ),
        "accuracy": heatmap("Accuracy by bucket", names, tuple(shown_bucket(ranking.buckets[k]) for k in buckets),
                            _rows(np.round(100 * ranking.accuracy[np.ix_(buckets, order)].T, 1)), "% right", whole=100),
    }  # fmt: skip
    if len(ranking.outcomes.videos) > 1:
        numbers = np.column_stack([ranking.mean_accuracy, ranking.mean_interval()])[order]
        rows = np.round(100 * numbers, 1).tolist()
        figures["mean_accuracy"] = estimates(
            "Mean of the buckets' accuracies", names, [Series(ranking.score_name, rows)], "% right", span=(0, 100)
        )
    decided = [k for k, name in enumerate(ranking.buckets) if name not in ranking.untestable]
    if decided:  # elsewhere all share the first rank, which would put the weakest on the podium
        figures["podium"] = podium(
            "Places by bucket", names, tuple(shown_bucket(ranking.buckets[k]) for k in decided),
            _rows(ranking.accuracy[np.ix_(decided, order)]), _rows(ranking.bucket_rank[np.ix_(decided, order)]),
            "accuracy", "buckets",
        )  # fmt: skip
    if study.places is not None:
        figures["blobs"] = study.places.draw_blobs(order).draw()
    for name, part in (("without_bucket", study.without_bucket), ("without_model", study.without_model)):
        if part is not None:
            figures[name] = part.draw_lines(order).draw()
    rules = np.array(list(study.variants.values()))[:, order].T
    figures["variants"] = stability_lines("Other rules", names, tuple(study.variants), _rows(rules), "rule")
    return figures


def _rows(array: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, np.asarray(array).tolist()))
