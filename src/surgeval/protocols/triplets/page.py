"""The report on scored triplets: page, tables and figures of one prediction file.

`report.html` stands alone; it is made from a `TripletScores`, whether that was scored just now or loaded from a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from surgeval.pages import Plot, Section, Table
from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of
from surgeval.protocols.triplets.figures import MOST_CLASSES, title_of
from surgeval.protocols.triplets.readable import BASELINE, Readable, readable_scores
from surgeval.protocols.triplets.result import TripletScores
from surgeval.results import counted

__all__ = ["triplet_sections", "write_page_of"]

_METHOD = {
    "coco": "Convention coco, as pycocotools has it: each prediction takes the ground truth it overlaps best, matching "
    "is repeated for every IoU threshold, precision is read as a step curve at 101 recalls.",
    "ivtd": "Convention ivtd, what ivtdmetrics publishes with its defects repaired: the first ground truth that "
    "overlaps enough, matched once; precision points are joined by straight lines, so a perfect detector scores 0.995.",
    "ivtd-legacy": "Convention ivtd-legacy, bit for bit what ivtdmetrics computes, with its defects, for reproducing "
    "printed tables only: P, R and F1 interpolate over unsorted confidences.",
}
_TIES = {
    "free": "Equal scores: no number depends on the order of videos, frames and rows. Within a frame, boxes of a class "
    "with equal scores are matched together, the pair with the largest overlap first; over all frames they are one "
    "step of the curve.",
    "reference": "Equal scores are ranked as the convention's reference ranks them: by the order of videos, frames and "
    "rows.",
}
_RECOGNITION = (
    "Average precision without interpolation; tied scores are one threshold. A class without positives is left out, "
    "never counted as 0. Component scores are the maximum over the triplets of a component. The same "
    "answer in every frame earns each class's share of frames: that column is the baseline."
)
_BASELINE = (
    "Baseline of mAP50: the median box of each class, in every frame, with equal scores. It is computed from the test "
    "labels, so it is generous. I, V and T have baselines of their own: one box of each instrument, verb or target. "
    "Predictions of one box of every triplet hold several boxes of an instrument, verb or target, so their I, V and T "
    "may lie above that."
)
_EQUAL = {"free": "order-free", "reference": "in the reference's order"}
_NOTES = {
    "association": "Counts every true box and every predicted box, also those of low score: a detector that reports "
    "many such boxes has mostly false positives here. What becomes of the true boxes from the score threshold of P, R "
    "and F1 on stands in the verdict."
}
_INTERVALS = (
    "Intervals (95 %): each video is left out in turn and every number is computed anew, its best-F1 threshold too; "
    "how much the number moves gives its standard error, and Student's t at the effective number of videos the ends."
)


def write_page_of(results: Sequence[TripletScores], out: str | Path) -> Path:
    """Write page, tables and figures of one result, new or loaded, below `out`; returns the page's path."""
    (scores,) = results
    page = RunPage(results, out, scores.tables, scores.figures)
    settings = scores.settings
    details = {
        "Task": scores.task,
        "Label space": settings["label_space"],
        "Convention": settings.get("convention", "average precision"),
        **({"Equal scores": _EQUAL[settings["ties"]]} if "ties" in settings else {}),
        "Videos": str(len(settings["videos"])),
        "Scored": settings["scheme"]["kind"] if settings["scheme"]["kind"] != "all" else "all videos together",
    }
    return page.write(
        triplet_sections(scores, page.plots), f"{_how(scores)}\n\n{_INTERVALS}", facts=_facts(scores),
        notes=scores.notes, pictures=case_pictures(scores), details=details,
    )  # fmt: skip


def triplet_sections(scores: TripletScores, figures: Mapping[str, Plot]) -> tuple[Section, ...]:
    """The chapters; `figures` are the plots of `scores.figures`."""
    tables = {table.name: table for table in readable_scores(scores)}
    sections = [
        Section("Numbers", tables=_shown(tables, "components", "video_wise", "video_first")),
        Section("Precision and recall", "The mean over classes is heavy; the area under it is COCO's mAP at IoU 0.5."
                if scores.task == "detection" else "The mean over classes is heavy.",
                figures=_plots(figures, "curves_"), paired=True),
        Section("Classes", "", tables=(*_shown(tables, "rare"), *_class_tables(scores)),
                figures=_plots(figures, "ap_by_frequency")),
        Section("Errors", "A column of a matrix says what became of a true class: rows are what was predicted where it "
                f"is, or that it was missed. Triplets beyond the {MOST_CLASSES} most frequent stand together. Matrices "
                "and cost-aware F1 count predictions from the score threshold of P, R and F1 on.",
                tables=_shown(tables, "association", "cost_aware"), figures=_plots(figures, "confusion_")),
        Section("Each frame", "Every scored frame: what is labelled, what was said, and what became of each object.",
                evidence=evidence_of([scores])),
        Section("Convention", "", tables=_shown(tables, "conventions", "ties"), figures=_plots(figures, "conventions")),
        Section("Highest scores", "", tables=_shown(tables, "top")),
        Section("Videos", "Where leaving out a video changes the number much, that video carries it. A video alone "
                "often scores higher than all together: it shows fewer classes, and the rare and hard ones of other "
                "videos are not asked of it. Each group is scored on its own videos; std has ddof = 1.",
                tables=_shown(tables, "videos", "folds", "sources")),
    ]  # fmt: skip
    return tuple(sections)


def _how(scores: TripletScores) -> str:
    if scores.task != "detection":
        return _RECOGNITION
    return "\n\n".join((_METHOD[scores.settings["convention"]], _TIES[scores.settings["ties"]], _BASELINE))


def _facts(scores: TripletScores) -> tuple[str, ...]:
    """What was measured, in a few words."""
    return counted(
        len(scores.settings["videos"]), "video"
    ), f"{scores.task} of {title_of(scores.main, scores.settings)}"


def _shown(tables: dict[str, Readable], *names: str) -> tuple[Table, ...]:
    return tuple(
        Table(tables[name].title, tables[name].frame, _NOTES.get(name, ""), f"tables/{name}.csv",
              explained=name != "association")
        for name in names
        if name in tables
    )  # fmt: skip


def _class_tables(scores: TripletScores) -> tuple[Table, ...]:
    order = [scores.main, *(component for component in scores.settings["components"] if component != scores.main)]
    heads = {"constant AP50": f"AP50 of the {BASELINE}", "constant AP": f"AP of the {BASELINE}"}
    sheets = {component: scores.sheets[f"classes_{component}"].drop("class") for component in order}
    return tuple(
        Table(
            f"Each of the {title_of(component, scores.settings)}",
            sheet.sort("instances", descending=True, maintain_order=True).rename(heads, strict=False),
            file=f"tables/classes_{component}.csv",
            folded=True,
        )
        for component, sheet in sheets.items()
    )


def _plots(figures: Mapping[str, Plot], start: str) -> tuple[Plot, ...]:
    return tuple(
        replace(plot, wide=not name.startswith("curves_")) for name, plot in figures.items() if name.startswith(start)
    )
