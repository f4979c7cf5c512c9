"""The report on a ranking: who is where, what supports it, and what it hangs on.

The pictures are those that challenge organisers expect: podium, significance map, blobs, stability lines. What they
show is computed by `study_ranking`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.errors import BadInput
from surgeval.files import failure_reason, write_atomically
from surgeval.pages import CardNumber, Finding, Plot, Scorecard, Section, Table, save_tables, write_page
from surgeval.protocols.registry import ranked_measures
from surgeval.report.ranking.findings import equal_models, findings, leading
from surgeval.report.ranking.study import RankingStudy
from surgeval.report.ranking.tables import bucket_table, place_table, score_table, stability_table
from surgeval.report.ranking.words import listed, percent, place_by_tests
from surgeval.stats import STEADY, Ranking, Stability, shown_bucket

__all__ = ["ranking_card", "ranking_sections", "write_ranking_page"]

_SCHEMES = {
    "cluster": "whole videos are drawn with replacement",
    "two_level": "videos are drawn with replacement, and inside each its questions",
    "question": "questions are drawn with replacement as if videos did not matter",
}


def write_ranking_page(study: RankingStudy, out: str | Path, *, title: str = "Ranking") -> Path:
    """Write page, tables, figures and `ranking.json` below `out`; returns the page's path.

    >>> import tempfile
    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 16, "prior": [1, 0] * 8}
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> places = rank_outcomes(right, buckets=["verb|id"] * 16, videos=videos, resamples=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_ranking_page(study_ranking(places, outer=0), Path(folder))
    ...     page.name, (Path(folder) / "ranking.json").exists()
    ('report.html', True)
    """
    out = Path(out)
    ranking = study.ranking
    save_tables(study.tables, out / "tables")
    try:
        text = json.dumps(study.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(out / "ranking.json", f"{text}\n".encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{out}: the report cannot be written: {failure_reason(error)}") from error
    details = {
        "Models": str(len(ranking.models)),
        "Questions": str(sum(ranking.questions)),
        "Videos": str(len(ranking.outcomes.videos)),
    }
    return write_page(
        out / "report.html",
        title,
        ranking_sections(study),
        kind="ranking",
        details=details,
        measures=ranked_measures(),
        scorecard=ranking_card(study),
    )


def ranking_sections(study: RankingStudy) -> tuple[Section, ...]:
    """The chapters.

    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> videos = [v for v in "abcdefgh" for _ in range(2)]
    >>> right, buckets = {"net": [1] * 16, "prior": [1, 0] * 8}, ["verb|id"] * 16
    >>> places = rank_outcomes(right, buckets=buckets, videos=videos, resamples=100)
    >>> [section.title for section in ranking_sections(study_ranking(places, outer=0))][:2]
    ['Places', 'Who is better than whom']
    """
    remarks = {**_REMARKS, "podium": _podium_remark(study.ranking)}
    plots = {
        name: Plot(figure, remarks.get(name, ""), (f"figures/{name}.svg", f"figures/{name}.png"), wide=True)
        for name, figure in study.figures.items()
    }

    def drawn(*names: str) -> tuple[Plot, ...]:
        return tuple(plots[name] for name in names if name in plots)

    sections = [
        Section("Places", findings=tuple(map(Finding, findings(study))),
                tables=(place_table(study), *_gate_table(study.ranking))),
        Section("Who is better than whom", "A claim is made only where the test over videos supports it. A pair "
                "without one is not equal: these videos show no significant difference.",
                figures=drawn("significance"),
                tables=(score_table(study.ranking), _pair_table(study.ranking))),
        Section("Buckets", "A bucket is a capability group, in (id) or out of distribution (ood).",
                figures=drawn("mean_accuracy", "accuracy", "podium"),
                tables=(bucket_table(study.ranking),)),
        *_equal(study),
        Section("On resampled videos", _stability_text(study.places), figures=drawn("blobs"),
                tables=_stability(study.places)),
        Section("What it depends on", "Parallel lines: the choice does not change the ranking. Crossing lines: it "
                "does.",
                figures=drawn("without_bucket", "without_model", "variants"), tables=_sensitivity(study)),
        _unknown(study),
        Section("How it was made", _method(study.ranking), tables=(_settings(study),)),
    ]  # fmt: skip
    return tuple(section for section in sections if section.text or section.tables or section.figures)


_REMARKS = {
    "significance": "Blue: the row's model is better in more buckets than the column's. White: no significant "
    "difference.",
    "mean_accuracy": "The line is the 95 % interval over videos (each left out in turn, Student's t).",
    "blobs": "A blob's area is the share of resamples, the cross the median place, the line the 95 % interval.",
    "variants": "The first rule is the one used; the last is the order by the mean of bucket accuracies alone.",
}


def _podium_remark(ranking: Ranking) -> str:
    remark = (
        "Above each place the accuracies of the models in the buckets where they took it; bars count how often. "
        f"{place_by_tests(ranking.options)}"
    )
    if ranking.untestable:
        remark += f" Buckets with fewer than {ranking.options.min_clusters} videos decide nothing and are left out."
    return remark


def ranking_card(study: RankingStudy) -> Scorecard:
    """Who is first and what that rests on, with four numbers."""
    ranking = study.ranking
    pairs = len(ranking.models) * (len(ranking.models) - 1) // 2
    decided = int((ranking.wins > ranking.wins.T).sum())
    able = len(ranking.buckets) - len(ranking.untestable)
    facts = [
        CardNumber("models", str(len(ranking.models)), f"on {len(ranking.final_order)} different places"),
        CardNumber("pairs decided", f"{decided} of {pairs}", "in more buckets than the other way round"),
        CardNumber("buckets that can decide", f"{able} of {len(ranking.buckets)}",
                 f"with at least {ranking.options.min_clusters} videos"),
    ]  # fmt: skip
    if study.places is not None and np.isfinite(study.places.mean_tau):
        note = f"mean of {len(study.places.places)} resamples; 1 is the same order"
        facts.append(CardNumber("Kendall's tau on resampled videos", f"{study.places.mean_tau:.2f}", note))
    return Scorecard(None, leading(study), others=tuple(facts))


def _gate_table(ranking: Ranking) -> tuple[Table, ...]:
    gate = ranking.gate
    if gate is None:
        return ()
    words = {True: "yes", False: "no"}
    rows = []
    for name in (ranking.models[m] for m in ranking.order):
        if name in gate.baselines:
            continue
        ahead = "–" if gate.ahead is None else percent(min(gate.ahead[name].values()))
        parts = (gate.final, gate.pre_evaluation, gate.dominates)
        rows.append((name, gate.state[name], *(words[part[name]] for part in parts), ahead))
    heads = [
        "model",
        "in all",
        "better place",
        f"higher {ranking.score_name}",
        "better in more buckets",
        "ahead on resampled videos",
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
    note = (
        "Clearly better: all three against every baseline, and ahead of each in at least "
        f"{percent(STEADY)} of the resamples. Worse: the same the other way round for some baseline. Else inconclusive."
    )
    several = "s" if len(gate.baselines) > 1 else ""
    return (Table(f"Against the baseline{several} {listed(gate.baselines)}", frame, note),)


def _shown(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with its buckets as pages write them."""
    return frame.with_columns(pl.Series("bucket", [shown_bucket(name) for name in frame["bucket"]], pl.String))


def _pair_table(ranking: Ranking) -> Table:
    """Claims first, the largest differences before the smaller."""
    frame = ranking.pair_table().sort(
        pl.col("better").is_null(), pl.col("difference").abs(), descending=[False, True], maintain_order=True
    )
    return Table("Every pair in every bucket", _shown(frame), file="tables/pairs.csv", folded=True)


def _equal(study: RankingStudy) -> tuple[Section, ...]:
    equal = study.equal
    if equal is None:
        return ()
    text = (
        "Equal models are made from these very answers: each model's answers are taken around its own accuracy, and in "
        "every video a coin decides whether the signs of all of them turn. Number and sizes of the videos and how the "
        "models err together stay as they are, but no model is better than another, so every claim is false. "
        f"{equal.challenges} such challenges were ranked with the same test and rules."
    )
    shown = equal.to_frame().sort("false_claims", descending=True, nulls_last=True).rename(
        {"false_claims": "equal pairs called different"}
    )  # fmt: skip
    shares = [None if value is None else f"{100 * value:.1f} %" for value in shown["equal pairs called different"]]
    shown = shown.with_columns(pl.Series("equal pairs called different", shares, dtype=pl.String))
    return (
        Section("How often equal models would be separated", f"{' '.join(equal_models(study))}\n\n{text}",
                tables=(Table("False claims by bucket", _shown(shown), "Most false claims first.",
                              file="tables/calibration.csv"),)),
    )  # fmt: skip


def _settings(study: RankingStudy) -> Table:
    options = study.ranking.options.to_json()
    meaning = {
        "test": "what decides in a bucket: bootstrap (the FOCUS challenge's rule) or exchange",
        "scheme": "what is resampled", "alpha": "level of a test", "sided": "directions that a test looks at",
        "correction": "for the pairs of a bucket",
        "resamples": "resamples, or exchanges, of each test", "collapse": "from pairs to ranks",
        "resolve": "which ties are broken", "win_ties": "what joint winners of a resample get",
        "point": "flat: questions count the same; macro: videos do", "min_clusters": "videos a bucket needs to decide",
        "seed": "of the random streams",
    }  # fmt: skip
    rows = [(name, str(options[name]), words) for name, words in meaning.items()]
    return Table("Settings", pl.DataFrame(rows, schema=["setting", "value", "is"], orient="row"), folded=True)


def _stability_text(places: Stability | None) -> str:
    if places is None:
        return ""
    return (
        f"The whole ranking, tests and tie-breaks included, was repeated on {len(places.places)} resamples of the "
        "videos: the same videos, drawn again with replacement, so that some come twice and others not at all. That "
        "shows how much hangs on which of them are there; it is no test on other videos. A place that a model keeps in "
        "six of ten resamples is little more than a coin's toss."
    )


def _stability(places: Stability | None) -> tuple[Table, ...]:
    if places is None:
        return ()
    return (Table("Places on resampled videos", stability_table(places), file="tables/stability.csv"),)


def _sensitivity(study: RankingStudy) -> tuple[Table, ...]:
    tables = []
    for name, part in (("bucket", study.without_bucket), ("model", study.without_model)):
        if part is not None:
            swaps = ["; ".join(f"{a} passes {b}" for a, b in pairs) or "none" for pairs in part.swaps]
            frame = part.to_frame().select(
                pl.Series(f"without {name}", part.shown), "tau", pl.Series("order that turns round", swaps)
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
        names = listed([shown_bucket(name) for name in ranking.untestable])
        text += f"\n\nNothing is decided in {names}: fewer than {ranking.options.min_clusters} videos."
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
        tables=(Table("Detectable differences", _shown(shown), file="tables/detectable.csv"),),
    )


def _method(ranking: Ranking) -> str:
    options = ranking.options
    how = _SCHEMES[options.scheme]
    if options.test == "exchange":
        how = "the two models' answers to whole videos are swapped in all ways, or in many random ones"
    return (
        f"First, in each bucket every pair of models is tested: {how}, the same for all models "
        f"(up to {options.resamples} times). A model is better than another where its accuracy is higher and p is at "
        f"most {options.alpha:g} ({options.sided}-sided, correction {options.correction}). Second, a model dominates "
        "another when it is better in more buckets than the other way round; its Copeland score is how many it "
        f"dominates minus how many dominate it. Third, ties ({options.resolve}) are broken by how often a model has "
        "the most right answers of the group on resampled videos, averaged over buckets; equal rates share the place."
    )
