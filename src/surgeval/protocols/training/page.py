"""The page about detectors trained on folds: ours beside the published rows, which are other data, and every fold.

One run, or several side by side with their paired differences; an ablation has a page of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput, SurgevalError
from surgeval.figures import Figure
from surgeval.pages import Link, Plot, Section, Table
from surgeval.protocols.comparison import Comparison, compare_pair
from surgeval.protocols.result import names_on_page
from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of
from surgeval.protocols.training.ablation.page import write_ablation_page
from surgeval.protocols.training.ablation.result import AblationScores
from surgeval.protocols.training.compare import pair_training
from surgeval.protocols.training.figures import class_bars, difference_forest
from surgeval.protocols.training.paper_page import paper_section
from surgeval.protocols.training.result import TrainingScores
from surgeval.protocols.training.settings import setting_rows
from surgeval.protocols.training.stored import SCORES
from surgeval.protocols.training.tables import fold_table, paper_tables
from surgeval.results import counted
from surgeval.stats import with_ends

__all__ = ["write_page_of"]

_METHOD = (
    "Every fold is a training of its own. Each video's boxes come from the model that did not see it, each fold is "
    "scored on its own test videos, and a number is the mean over folds; ± is the standard deviation over them with "
    "ddof = 1.\n\nEvery detector is evaluated alike: confidence from 0.001, several labels per box, class-wise "
    "non-maximum suppression at an IoU of 0.7, at most 300 boxes per frame, unless its settings say otherwise.\n\n"
    "Frames per second are those of detecting in the test videos, end to end with reading the pictures; the paper "
    "does not say what it timed."
)


def write_page_of(results: Sequence[TrainingScores | AblationScores], out: str | Path) -> Path:
    """Write page, tables and figures below `out`: of folds, several side by side, or of one ablation.

    >>> write_page_of([], Path("page"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: A page needs at least one run.
    """
    out = Path(out)
    names_on_page(results)
    ablations = [result for result in results if isinstance(result, AblationScores)]
    if ablations:
        if len(results) > 1:
            raise BadInput(f"report: found the ablation {ablations[0].name} beside other runs, expected it alone")
        return write_ablation_page(ablations[0], out)
    return _write(tuple(result for result in results if isinstance(result, TrainingScores)), out)


def _write(results: Sequence[TrainingScores], out: Path) -> Path:
    papers = paper_tables(results)
    comparisons, refused = _comparisons(results)
    figures = _figures(results, comparisons)
    tables: dict[str, pl.DataFrame] = {f"table_{table.paper.number}": table.frame() for table in papers}
    one_run = len(results) == 1
    tables |= {f"folds_{k}" if not one_run else "folds": fold_table(result) for k, result in enumerate(results, 1)}
    tables |= {f"differences_{k}": comparison.to_frame() for k, comparison in enumerate(comparisons.values(), 1)}
    page = RunPage(results, out, tables, figures)
    sections = [
        Section("Classes", figures=_some(page.plots, "classes", "differences"),
                tables=_difference_tables(comparisons), links=_links(results, out)),
        paper_section(papers),
        *_fold_sections(results, page.plots),
        Section("Settings", tables=tuple(_settings_tables(results))),
        Section("Each frame", "What is labelled in each scored frame, what was predicted, and what became of it.",
                evidence=evidence_of(results)),
    ]  # fmt: skip
    return page.write(
        sections, _METHOD, facts=_facts(results[0]), pictures=case_pictures(results[0]) if one_run else (),
        notes=[*(note for result in results for note in result.notes), *refused], details=_details(results),
    )  # fmt: skip


def _comparisons(results: Sequence[TrainingScores]) -> tuple[dict[str, Comparison], list[str]]:
    """The first detector against every other; pairs that cannot be compared are named."""
    comparisons: dict[str, Comparison] = {}
    refused: list[str] = []
    for other in results[1:]:
        try:
            comparisons[f"{results[0].name} − {other.name}"] = compare_pair(
                results[0], other, pair_training(results[0], other)
            )
        except SurgevalError as error:  # other data or other folds: both still have their rows
            refused.append(f"No differences: {error}.")
    return comparisons, refused


def _figures(results: Sequence[TrainingScores], comparisons: Mapping[str, Comparison]) -> dict[str, Figure]:
    if len(results) == 1:
        return results[0].figures
    figures: dict[str, Figure] = {"classes": class_bars(results)}
    forest = difference_forest(comparisons)
    if forest is not None:
        figures["differences"] = forest
    for k, result in enumerate(results, 1):
        figures |= {f"{name}_{k}": figure for name, figure in result.figures.items() if name != "classes"}
    return figures


def _fold_sections(results: Sequence[TrainingScores], plots: Mapping[str, Plot]) -> list[Section]:
    sections = []
    for k, result in enumerate(results, 1):
        end = "" if len(results) == 1 else f"_{k}"
        drawn = _some(plots, f"folds_by_epoch{end}", f"folds{end}")
        title = "Each fold" if len(results) == 1 else f"Each fold of {result.name}"
        table = Table(
            "Test videos of each fold, scored on their own", fold_table(result), file=f"tables/folds{end}.csv"
        )
        sections.append(Section(title, tables=(table,), figures=drawn, paired=True))
    return sections


def _settings_tables(results: Sequence[TrainingScores]) -> list[Table]:
    schema = {"setting": pl.String, "value": pl.String}
    return [
        Table(result.name, pl.DataFrame(setting_rows(result.plan.method), schema=schema, orient="row"), folded=True)
        for result in results
    ]


def _difference_tables(comparisons: Mapping[str, Comparison]) -> tuple[Table, ...]:
    tables = []
    for k, (title, comparison) in enumerate(comparisons.items(), 1):
        rows = [
            (number.label, with_ends(d.estimate, d.interval.low, d.interval.high), "yes" if d.significant else "no")
            for number in comparison.numbers[:12] for d in (number.difference,)
        ]  # fmt: skip
        heads = ("number", "difference", "significant")
        frame = pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
        tables.append(Table(f"{title}, 95 % intervals over videos", frame, file=f"tables/differences_{k}.csv"))
    return tuple(tables)


def _facts(result: TrainingScores) -> tuple[str, ...]:
    """What was trained and scored, in a few words."""
    folds = len(result.scores.settings["scheme"]["groups"])
    return f"{folds} {result.scheme}", counted(len(result.scores.settings["videos"]), "test video")


def _links(results: Sequence[TrainingScores], out: Path) -> tuple[Link, ...]:
    """The scores' own page, where this page lies beside it."""
    known = [
        result
        for result in results
        if result.folder is not None
        and result.folder.resolve() == out.resolve()
        and (out / SCORES / "report.html").is_file()
    ]
    return tuple(Link(f"All numbers of {result.name}, with intervals", f"./{SCORES}/report.html") for result in known)


def _details(results: Sequence[TrainingScores]) -> dict[str, str]:
    result = results[0]
    return {"Scheme": result.plan.scheme.name[:80],
            "Label space": result.scores.settings["label_space"], "Convention": result.scores.settings["convention"],
            "Videos": str(len(result.scores.settings["videos"]))}  # fmt: skip


def _some(plots: Mapping[str, Plot], *names: str) -> tuple[Plot, ...]:
    return tuple(plots[name] for name in names if name in plots)
