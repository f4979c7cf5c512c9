"""Agreement of reviewers: Cohen's kappa of every pair, Fleiss' kappa of all, with intervals over clusters.

Two things are compared: the verdicts (correct, wrong, unclear), and the options that reviewers consider right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from surgeval.questions.question_set import QuestionSet
from surgeval.questions.review import Judgement, read_judgements
from surgeval.records import IntentQuestion
from surgeval.stats import Agreement, cohen_kappa, count_ratings, fleiss_kappa

__all__ = ["AgreementRow", "agreement"]


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One coefficient: the reviewers, what is compared, the number of items, and the share of equal judgements.

    >>> from surgeval.stats import cohen_kappa
    >>> AgreementRow("A and B", "verdict", 4, 0.75, cohen_kappa("ccwc", "ccwu")).items
    4
    """

    who: str
    about: str
    items: int
    same: float
    kappa: Agreement

    def to_json(self) -> dict[str, Any]:
        """Plain values; an undefined coefficient is null with its reason."""
        ends = (self.kappa.value, self.kappa.interval.low, self.kappa.interval.high)
        value, low, high = (None if end != end else end for end in ends)
        return {"who": self.who, "about": self.about, "items": self.items, "same": self.same,
                "coefficient": self.kappa.coefficient, "kappa": value, "low": low, "high": high,
                "note": self.kappa.reason or self.kappa.interval.note}  # fmt: skip


def agreement(questions: QuestionSet, *, resamples: int = 2_000, seed: int = 0) -> list[AgreementRow]:
    """Agreement of every pair with common items, then of all reviewers if there are more than two.

    >>> from pathlib import Path
    >>> agreement(QuestionSet(Path("no/such/folder"), (), {}))
    []
    """
    judged: dict[str, dict[str, Judgement]] = defaultdict(dict)
    for judgement in read_judgements(questions):
        judged[judgement.reviewer][judgement.item] = judgement
    rows: list[AgreementRow] = []
    drawing: dict[str, Any] = {"resamples": resamples, "seed": seed}
    for about in ("verdict", "answer"):
        for first, second in combinations(sorted(judged), 2):
            common = [item for item in questions.items if item.id in judged[first] and item.id in judged[second]]
            if common:
                columns = [[_label(judged[name][item.id], item, about) for item in common] for name in (first, second)]
                same = sum(a == b for a, b in zip(*columns, strict=True)) / len(common)
                clusters = [item.cluster for item in common]
                kappa = cohen_kappa(*columns, clusters=clusters, **drawing)
                rows.append(AgreementRow(f"{first} and {second}", about, len(common), same, kappa))
        if len(judged) > 2:
            rows += _compare_all(questions, judged, about, drawing)
    return rows


def _compare_all(
    questions: QuestionSet, judged: dict[str, dict[str, Judgement]], about: str, drawing: dict[str, Any]
) -> list[AgreementRow]:
    """Fleiss' kappa over the items with the most frequent number of ratings, since it needs equally many per item."""
    ratings = {
        item.id: [_label(own[item.id], item, about) for own in judged.values() if item.id in own]
        for item in questions.items
    }
    counts = Counter(len(row) for row in ratings.values() if len(row) > 1)
    if not counts:
        return []
    usual = max(counts, key=lambda count: (counts[count], count))
    rated = [item for item in questions.items if len(ratings[item.id]) == usual]
    table, labels = count_ratings([ratings[item.id] for item in rated])
    same = sum((row * (row - 1)).sum() for row in table) / (usual * (usual - 1) * len(rated))
    kappa = fleiss_kappa(table, categories=labels, clusters=[item.cluster for item in rated], **drawing)
    return [AgreementRow(f"all {len(judged)}, {usual} per item", about, len(rated), float(same), kappa)]


def _label(judgement: Judgement, item: IntentQuestion, about: str) -> str:
    if about == "verdict":
        return judgement.verdict
    answer = item.answer if judgement.verdict == "correct" else judgement.answer
    return "none" if answer is None else str(answer)


def agreement_frame(rows: list[AgreementRow]) -> pl.DataFrame:
    """The rows as a table.

    >>> from surgeval.stats import cohen_kappa
    >>> row = AgreementRow("A and B", "verdict", 4, 0.75, cohen_kappa("ccwc", "ccwu"))
    >>> agreement_frame([row]).select("who", "items").row(0)
    ('A and B', 4)
    """
    schema = {"who": pl.String, "about": pl.String, "items": pl.Int64, "same": pl.Float64, "kappa": pl.String}
    values = [(row.who, row.about, row.items, row.same, str(row.kappa)) for row in rows]
    return pl.DataFrame(values, schema=schema, orient="row")
