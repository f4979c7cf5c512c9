"""The report on a ranking: who is where, what supports it, and what it hangs on.

The pictures are those that challenge organisers expect: podium, significance map, blobs, stability lines. What they
show is computed by `study_ranking`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surgeval.errors import BadInput
from surgeval.figures import Figure, Heatmap, Podium, RankBlobs, SignificanceMap, StabilityLines
from surgeval.files import write_atomically
from surgeval.pages import Fact, Plot, Section, Table, distinct, save_figures, save_tables, write_page
from surgeval.report.ranking._study import RankingStudy
from surgeval.stats import Ranking, Stability

__all__ = ["ranking_sections", "write_ranking_report"]

_SCHEMES = {
    "cluster": "whole videos are drawn with replacement",
    "two_level": "videos are drawn with replacement, and inside each its questions",
    "question": "questions are drawn with replacement as if videos did not matter",
}


def write_ranking_report(study: RankingStudy, out: Path, *, title: str = "Ranking") -> Path:
    """Write page, tables, figures and `ranking.json` below `out`; returns the page's path.

    >>> import tempfile
    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8}
    >>> places = rank(right, buckets=["verb|id"] * 16, videos=[v for v in "abcdefgh" for _ in range(2)], n_boot=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_ranking_report(study_ranking(places, outer=0), Path(folder))
    ...     page.name, (Path(folder) / "ranking.json").exists()
    ('report.html', True)
    """
    ranking = study.ranking
    save_tables(study.tables, out / "tables")
    try:
        save_figures(_figures(study), out)
        text = json.dumps(study.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(out / "ranking.json", f"{text}\n".encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{out}: the report cannot be written: {error.strerror or error}") from error
    options = ranking.options
    details = {
        "Models": str(len(ranking.models)),
        "Questions": str(sum(ranking.questions)),
        "Videos": str(len(ranking.outcomes.videos)),
        "Level": f"alpha {options.alpha:g}, {options.sided}-sided, correction {options.correction}",
        "Resamples": f"{options.n_boot} (scheme {options.scheme}, seed {options.seed})",
        "Rule": f"collapse {options.collapse}, ties resolved {options.resolve} by win rate ({options.win_ties})",
    }
    return write_page(
        out / "report.html", title, ranking_sections(study), kind="ranking", lead=_lead(study), details=details
    )


def ranking_sections(study: RankingStudy) -> tuple[Section, ...]:
    """The chapters.

    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank({"net": [1] * 16, "prior": [1, 0] * 8}, buckets=["verb|id"] * 16, videos=videos, n_boot=100)
    >>> [section.title for section in ranking_sections(study_ranking(places, outer=0))][:2]
    ['Places', 'Who is better than whom']
    """
    plots = {
        name: Plot(figure, _REMARKS.get(name, ""), (f"figures/{name}.svg", f"figures/{name}.png"), wide=True)
        for name, figure in _figures(study).items()
    }

    def drawn(*names: str) -> tuple[Plot, ...]:
        return tuple(plots[name] for name in names if name in plots)

    notes = "\n\n".join(f"{note[:1].upper()}{note[1:]}." for note in study.ranking.notes)
    sections = [
        Section("Places", notes, facts=_facts(study), tables=(_place_table(study), *_gate_table(study.ranking))),
        Section("Who is better than whom", "A claim is made only where resampled videos support it. A pair without one "
                "is not equal: these videos do not tell it apart.", figures=drawn("significance"),
                tables=(Table("Every pair in every bucket", study.ranking.pair_table(), file="tables/pairs.csv",
                              folded=True),)),
        Section("Buckets", "A bucket is a capability group, in (id) or out of distribution (ood).",
                figures=drawn("podium", "accuracy"),
                tables=(Table("Accuracy, and the rank in brackets", _bucket_table(study.ranking),
                              file="tables/buckets.csv"),)),
        Section("On other videos", _stability_text(study.places), figures=drawn("blobs"),
                tables=_stability(study.places)),
        Section("What it hangs on", "Parallel lines: the ranking does not hang on the choice. Crossings show where it "
                "does.", figures=drawn("without_bucket", "without_model", "variants"), tables=_sensitivity(study)),
        _unknown(study),
        Section("How it was made", _method(study.ranking)),
    ]  # fmt: skip
    return tuple(one for one in sections if one.text or one.tables or one.figures)


_REMARKS = {
    "significance": "Blue: the row's model is better in more buckets than the column's. White: not told apart.",
    "podium": "Above each place the accuracies of the models in the buckets where they took it; bars count how often. "
    "Buckets with too few videos to decide are left out.",
    "blobs": "A blob's area is the share of resamples, the cross the median place, the line the 95 % interval.",
    "variants": "The first rule is the one used; the last is the order by mean accuracy alone.",
}


def _lead(study: RankingStudy) -> str:
    first, *_ = study.ranking.final_order
    names = _listed(first)
    if len(first) == len(study.ranking.models):
        return "These videos tell none of the models apart: all share the first place."
    ranking = study.ranking
    if len(ranking.untestable) == len(ranking.buckets):
        least = ranking.options.min_clusters
        return f"No bucket has the {least} videos that a claim needs: the order is that of the tie-break, no evidence."
    claim = f"{names} {'is' if len(first) == 1 else 'share the place'} first."
    if len(first) == 1 and np.isfinite(ranking.win_rate[ranking.models.index(first[0])]):
        claim = f"{names} is first by the tie-break; in the buckets' tests another model does as well."
    if study.places is None or len(first) > 1:
        return claim
    kept = study.places.share[study.ranking.models.index(first[0]), 0]
    return f"{claim} On resampled videos it stays there in {100 * kept:.0f} % of the cases."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _facts(study: RankingStudy) -> tuple[Fact, ...]:
    ranking = study.ranking
    pairs = len(ranking.models) * (len(ranking.models) - 1) // 2
    decided = int((ranking.wins > ranking.wins.T).sum())
    facts = [
        Fact("models", str(len(ranking.models)), f"on {len(ranking.final_order)} different places"),
        Fact("pairs decided", f"{decided} of {pairs}", "in more buckets than the other way round"),
        Fact("buckets that can decide", f"{len(ranking.buckets) - len(ranking.untestable)} of {len(ranking.buckets)}",
             f"with at least {ranking.options.min_clusters} videos"),
    ]  # fmt: skip
    if study.places is not None and np.isfinite(study.places.mean_tau):
        facts.append(Fact("Kendall's tau on other videos", f"{study.places.mean_tau:.2f}", "1 is the same order"))
    return tuple(facts)


def _place_table(study: RankingStudy) -> Table:
    table = study.ranking.to_frame()
    rates = [
        "–" if rate is None else f"{rate:.3f} ± {error:.3f}"
        for rate, error in table.select("win_rate", "win_rate_error").iter_rows()
    ]
    shown = table.select(
        "place", "model", pl.col("copeland").alias("Copeland score"), pl.Series("win rate in the tie", rates),
        pl.Series("mean accuracy", [f"{value:.3f}" for value in table["mean_accuracy"]]),
    )  # fmt: skip
    if study.places is not None:
        models, ends = study.ranking.models, study.places.interval()
        kept = (study.places.places == study.ranking.final_rank).mean(axis=0)
        index = [models.index(name) for name in table["model"]]
        shown = shown.with_columns(
            pl.Series("place on other videos (95 %)", [f"{ends[m, 0]} to {ends[m, 2]}" for m in index]),
            pl.Series("keeps its place", [f"{100 * kept[m]:.0f} %" for m in index]),
        )
    note = "The win rate breaks ties at the top; it is no evidence. ± is the error of its resampling alone."
    return Table("The ranking", shown, note, file="tables/ranking.csv")


def _gate_table(ranking: Ranking) -> tuple[Table, ...]:
    gate = ranking.gate
    if gate is None:
        return ()
    words = {True: "yes", False: "no"}
    rows = [
        (name, words[gate.final[name]], words[gate.pre_evaluation[name]], words[gate.dominates[name]])
        for name in (ranking.models[m] for m in ranking.order)
        if name not in gate.baselines
    ]
    heads = ["model", "better place", "higher mean accuracy", "better in more buckets"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
    note = "A model is admitted when it takes a better place than every baseline."
    several = "s" if len(gate.baselines) > 1 else ""
    return (Table(f"Against the baseline{several} {_listed(list(gate.baselines))}", frame, note),)


def _bucket_table(ranking: Ranking) -> pl.DataFrame:
    """One row per bucket, one column per model: accuracy and, in brackets, the rank where one was decided."""
    order = ranking.order
    columns: list[list[Any]] = [list(ranking.buckets), list(ranking.questions), list(ranking.videos)]
    for m in order:
        ranks = [
            "–" if name in ranking.untestable else place
            for name, place in zip(ranking.buckets, ranking.bucket_rank[:, m], strict=True)
        ]
        columns.append([f"{a:.3f}\u00a0({place})" for a, place in zip(ranking.accuracy[:, m], ranks, strict=True)])
    heads = distinct(["bucket", "questions", "videos", *(ranking.models[m] for m in order)])
    return pl.DataFrame([pl.Series(head, column) for head, column in zip(heads, columns, strict=True)])


def _stability_text(places: Stability | None) -> str:
    if places is None:
        return ""
    return (
        f"The whole ranking, tests and tie-breaks included, was repeated on {len(places.places)} resamples of the "
        "videos. A place that a model keeps in six of ten resamples is little more than a coin's toss."
    )


def _stability(places: Stability | None) -> tuple[Table, ...]:
    if places is None:
        return ()
    table = places.to_frame()
    shares = {"first": "first", "top_three": "among three", "same_place": "same place"}
    shown = table.select(
        "model", "place", "low", "median", "high",
        *(pl.Series(head, [f"{100 * value:.0f} %" for value in table[name]]) for name, head in shares.items()),
    )  # fmt: skip
    return (Table("Places on resampled videos", shown, file="tables/stability.csv"),)


def _sensitivity(study: RankingStudy) -> tuple[Table, ...]:
    tables = []
    for name, part in (("bucket", study.without_bucket), ("model", study.without_model)):
        if part is not None:
            swaps = ["; ".join(f"{a} passes {b}" for a, b in pairs) or "none" for pairs in part.swaps]
            frame = part.to_frame().select(
                pl.nth(0).alias(f"without {name}"), "tau", pl.Series("order that turns round", swaps)
            )
            tables.append(Table(f"Without each {name}", frame, "Tau compares with the full ranking.",
                                file=f"tables/without_{name}.csv", folded=frame.height > 12))  # fmt: skip
    return tuple(tables)


def _unknown(study: RankingStudy) -> Section:
    ranking, detectable = study.ranking, study.detectable
    text = (
        f"The smallest difference of two accuracies that a bucket's test finds with {100 * detectable.power:.0f} % "
        "power. What is smaller is unknown, not equal."
    )
    if ranking.untestable:
        text += (
            f"\n\nNothing is decided in {_listed(list(ranking.untestable))}: fewer than {ranking.options.min_clusters} "
            "videos."
        )
    table = detectable.to_frame().rename(
        {"median": "median pair", "easiest": "easiest pair", "hardest": "hardest pair"}
    )  # fmt: skip
    state = ["untestable" if name in ranking.untestable else "" for name in ranking.buckets]
    fixed = [
        pl.Series(column.name, [None if value is None else f"{value:.3f}" for value in column], dtype=pl.String)
        for column in table.get_columns()
        if column.dtype == pl.Float64
    ]
    shown = table.with_columns(*fixed, *([pl.Series("note", state)] if any(state) else []))
    return Section(
        "What these videos cannot tell",
        text,
        tables=(Table("Detectable differences", shown, file="tables/detectable.csv"),),
    )


def _method(ranking: Ranking) -> str:
    options = ranking.options
    return (
        f"First, in each bucket every pair of models is tested: {_SCHEMES[options.scheme]}, the same for all models "
        f"({options.n_boot} times). A model is better than another where its accuracy is higher and p is at most "
        f"{options.alpha:g} ({options.sided}-sided, correction {options.correction}). Second, a model dominates "
        "another when it is better in more buckets than the other way round; its Copeland score is how many it "
        f"dominates minus how many dominate it. Third, ties ({options.resolve}) are broken by how often a model has "
        "the most right answers of the group on resampled videos, averaged over buckets; equal rates share the place."
    )


def _figures(study: RankingStudy) -> dict[str, Figure]:
    ranking = study.ranking
    order = ranking.order
    names = tuple(ranking.models[m] for m in order)
    made: dict[str, Figure] = {
        "significance": SignificanceMap(
            "Buckets in which one model is better", names, _rows(ranking.wins[np.ix_(order, order)]),
            len(ranking.buckets),
        ),
        "accuracy": Heatmap("Accuracy by bucket", names, ranking.buckets,
                            _rows(np.round(100 * ranking.accuracy[:, order].T, 1)), "% right", whole=100),
    }  # fmt: skip
    decided = [k for k, name in enumerate(ranking.buckets) if name not in ranking.untestable]
    if decided:  # elsewhere all share the first rank, which would put the weakest on the podium
        made["podium"] = Podium(
            "Places by bucket", names, tuple(ranking.buckets[k] for k in decided),
            _rows(ranking.accuracy[np.ix_(decided, order)]), _rows(ranking.bucket_rank[np.ix_(decided, order)]),
            "accuracy", "buckets",
        )  # fmt: skip
    if study.places is not None:
        share, ends = study.places.share[order], study.places.interval()[order]
        made["blobs"] = RankBlobs("Places on resampled videos", names, _rows(share), _rows(ends))
    for name, part in (("without_bucket", study.without_bucket), ("without_model", study.without_model)):
        if part is not None:
            kind = f"{part.kind} left out"
            each = order if part.kind == "model" else list(range(len(part.left_out)))
            places = np.vstack([part.full, part.final_rank[each]])[:, order].T
            rows = tuple(tuple(place or None for place in row) for row in places.tolist())
            conditions = ("none", *(part.left_out[k] for k in each))
            made[name] = StabilityLines(f"One {part.kind} left out", names, conditions, rows, kind)
    rules = np.array(list(study.variants.values()))[:, order].T
    made["variants"] = StabilityLines("Other rules", names, tuple(study.variants), _rows(rules), "rule")
    return made


def _rows(array: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, np.asarray(array).tolist()))
