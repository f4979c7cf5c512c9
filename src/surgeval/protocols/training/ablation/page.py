"""The page about an ablation: the paper's table with ours below, differences to the reference, every seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Finding, Scorecard, Section, Table, figure_plots, save_tables, write_page
from surgeval.protocols.run_page import as_sentence
from surgeval.protocols.training.paper_page import paper_section
from surgeval.protocols.triplets import MEASURES
from surgeval.stats import with_ends

if TYPE_CHECKING:
    from surgeval.protocols.training.ablation.result import AblationScores

__all__ = ["write_ablation_page"]

_METHOD = (
    "Every configuration is trained with every seed on the same folds. A number is the mean over seeds of the mean "
    "over folds; ± is the standard deviation over seeds (ddof = 1), in the published rows over folds.\n\n"
    "Intervals of differences (95 %) are paired over videos: each video is left out of both sides in turn. They say "
    "how much a difference depends on the tested videos, not on the seed; the column beside them says that."
)


def write_ablation_page(ablation: AblationScores, out: str | Path) -> Path:
    """Write page, tables and figures of an ablation below `out`."""
    out = Path(out)
    table = ablation.paper()
    tables = {**ablation.tables, f"table_{table.paper.number}": table.frame()}
    save_tables(tables, out / "tables")
    plots = figure_plots(ablation.figures)
    findings = tuple(Finding(as_sentence(note)) for note in ablation.notes)
    sections = [
        Section("Differences", findings=findings, figures=tuple(plots.values()),
                tables=(Table(f"Differences to {ablation.reference}", _differences(ablation),
                              file="tables/differences.csv"),)),
        paper_section([table]),
        Section("Each seed", tables=(Table("Mean over folds", tables["seeds"], file="tables/seeds.csv", folded=True),)),
        Section("How it was computed", _METHOD),
    ]  # fmt: skip
    details = {
        "Seeds": ", ".join(map(str, ablation.seeds)),
        "Videos": str(len(ablation.videos)),
        "Reference": ablation.reference,
    }
    return write_page(
        out / "report.html",
        ablation.name,
        sections,
        kind="training",
        details=details,
        measures=MEASURES,
        scorecard=Scorecard(None, ablation.finding),
    )


def _differences(ablation: AblationScores) -> pl.DataFrame:
    rows = [
        (row["configuration"], row["number"], with_ends(row["difference"], row["low"], row["high"]),
         "–" if row["std over seeds"] is None else f"{row['std over seeds']:.3f}",
         "–" if row["p"] is None else f"{row['p']:.3f}")
        for row in ablation.tables["differences"].iter_rows(named=True)
    ]  # fmt: skip
    heads = ("configuration", "number", "difference", "std over seeds", "p")
    return pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
