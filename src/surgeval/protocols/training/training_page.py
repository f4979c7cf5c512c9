"""The page of one training folder, finished or running: curves, what was learned from, and what it means in words."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image, UnidentifiedImageError

from surgeval.detector.training import TrainRecord
from surgeval.errors import DataError
from surgeval.figures import Curve, Figure, Series, bars, lines
from surgeval.files import read_bounded
from surgeval.pages import (
    CardNumber,
    Finding,
    IntervalBar,
    Picture,
    Scorecard,
    Section,
    Table,
    figure_plots,
    save_tables,
    write_page,
)
from surgeval.protocols.training.curves import Epoch, Training, load_training_folder
from surgeval.protocols.training.figures import loss_lines, metric_lines, placed
from surgeval.protocols.training.settings import setting_rows
from surgeval.protocols.triplets import MEASURES
from surgeval.results import Grade

__all__ = ["training_findings", "write_training_page"]

_STALE = 0.5  # of the epochs so far: longer without a better one is worth a sentence
_LOST = 0.005  # of mAP50: of a student that loses more, the drift is given
PICTURES = {
    "labels.png": "Frames with their labels.",
    "labels.jpg": "Frames with their labels.",
    "mosaic.jpg": "Frames with their labels as the network is shown them, augmented.",
}
_MOST_PICTURE, _LONGEST_SIDE = 40_000_000, 8000  # bytes, pixels
_MOST_BARS = 40
# What the table of best epochs shows: heading, name in the record, and how a number is written.
_RESULT: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("best epoch", "epoch", "{:.0f}".format),
    ("of", "epochs", "{:.0f}".format),
    *((name, name, "{:.3f}".format) for name in ("mAP50", "mAP50:95", "i mAP50", "v mAP50", "t mAP50")),
    ("minutes", "total_seconds", lambda seconds: f"{seconds / 60:.1f}"),
)
_METHOD = (
    "Curves are those of the moving average of the weights, on the validation videos, with the evaluation that all "
    "detectors share. The best epoch is the one with the highest 0.1 · mAP50 + 0.9 · mAP50:95.\n\n"
    "Losses: box is how far boxes overlap, dfl how sure their edges are; ivt, i, v and t are the classes of triplet, "
    "instrument, verb and target. Background is the mean score at points without an instrument, drift how much higher "
    "the student's is: the further it drifts, the more it finds where nothing is.\n\n"
    "Numbers on validation videos choose the epoch, so they flatter it; what counts are the test videos. A detector "
    "is a help for people who look themselves: its boxes are guesses with scores, and no score is a diagnosis."
)


def write_training_page(folder: str | Path, out: str | Path | None = None) -> Path:
    r"""Write `report.html` of a training folder into it (or `out`); may be called while the training runs.

    >>> import tempfile
    >>> from surgeval.detector.training import TrainRecord
    >>> from surgeval.protocols.training import load_training_folder
    >>> record = TrainRecord(
    ...     model="tdnet", settings={"epochs": 2}, classes={}, data={}, versions={}, status="running"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     record.save(folder)
    ...     _ = Path(folder, "curves.jsonl").write_text('{"epoch": 1, "loss": 2.5, "mAP50": 0.1}\n')
    ...     training = load_training_folder(folder)
    ...     write_training_page(folder).name
    'report.html'
    >>> training.record.status, len(training.epochs)
    ('running', 1)
    >>> write_training_page("no/such/folder")
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/such/folder: found no train.json, expected the folder of a training
    """
    training = load_training_folder(folder)
    home = Path(out) if out is not None else training.folder
    tables = {"epochs": epoch_table(training)} if training.epochs else {}
    counts = class_counts(training.record)
    if counts is not None:
        tables["classes"] = counts
    save_tables(tables, home / "tables")
    plots = figure_plots(_figures(training, counts))
    findings = training_findings(training)
    curves = tuple(plot for name, plot in plots.items() if name != "classes")
    sections = [
        Section("Where it stands", findings=findings, tables=_results(training.record.result)),
        Section("Curves", "" if curves else "No epoch is finished yet.", figures=curves, paired=True,
                tables=_shown(tables, "epochs", "Every epoch")),
        Section("What it learned from", figures=tuple(plots[name] for name in ("classes",) if name in plots),
                images=_pictures(training.folder), tables=(*_shown(tables, "classes", "Boxes of each class"),
                                                           *_pairs("Data", training.record.data))),
        Section("Settings", tables=(*_pairs("Settings", training.record.settings),
                                    *_pairs("Versions", training.record.versions))),
        Section("How to read it", _METHOD),
    ]  # fmt: skip
    filled = [s for s in sections if s.text or s.tables or s.figures or s.findings or s.images]
    name = training.folder.resolve().name
    return write_page(
        home / "report.html", name, filled, kind="training", scorecard=_scorecard(training, findings[0]),
        details={"Detector": training.record.model, "Status": _status(training)}, measures=MEASURES,
    )  # fmt: skip


def training_findings(training: Training) -> tuple[Finding, ...]:
    """What the curves say, in sentences; the first one stands at the top of the page."""
    findings = [_standing(training)]
    if training.epochs:
        findings += _learning(training)
        findings += _student(training)
    findings += [Finding(_sentence(note)) for note in training.record.notes]
    return tuple(findings)


def _status(training: Training) -> str:
    return training.record.status


def _standing(training: Training) -> Finding:
    status = _status(training)
    if not training.epochs:
        return Finding(f"The training is {status}; no epoch is finished yet.")
    last = training.epochs[-1]
    best = _best_of(training)
    reached = f"best mAP50 {best[1]:.3f} ({best[0].stage}, epoch {best[0].number})" if best else "nothing was validated"
    reason = training.record.reason[:300]
    if status == "done":
        return Finding(f"The training is finished: {reached}.", None if best is not None and best[1] == 0 else "passes")
    if status in ("stopped", "interrupted"):
        return Finding(f"The training is {status} after epoch {last.number} of the {last.stage}"
                       f"{f' ({reason})' if reason else ''}: {reached}.", "fails")  # fmt: skip
    return Finding(f"The training is {status}, after epoch {last.number} of the {last.stage}: {reached}.")


def _best_of(training: Training) -> tuple[Epoch, float] | None:
    stages = [training.best(stage) for stage in training.stages]
    known = [epoch for epoch in stages if epoch is not None]
    best = max(known, key=lambda epoch: epoch.numbers["mAP50"], default=None)
    return None if best is None else (best, best.numbers["mAP50"])


def _learning(training: Training) -> list[Finding]:
    stage = training.stages[0]
    epochs = training.of(stage)
    losses = [epoch.numbers["loss"] for epoch in epochs if "loss" in epoch.numbers]
    findings = []
    if len(losses) > 1:
        fell = min(losses[1:]) < losses[0]
        text = f"The loss of the {stage} went from {losses[0]:.3g} to {losses[-1]:.3g} in {len(losses)} epochs."
        findings.append(
            Finding(text, "passes" if fell else "fails", "Some later epoch has a lower loss than the first.")
        )
    best = training.best(stage)
    if best is None:
        findings.append(Finding("Nothing was validated, so the last epoch is the detector."))
    elif best.numbers["mAP50"] == 0:
        findings.append(Finding("It finds nothing yet: mAP50 is 0.", "fails"))
    elif epochs[-1].number - best.number >= max(5, _STALE * len(epochs)):
        text = f"No better since epoch {best.number} of {epochs[-1].number}: more of the same will not help."
        findings.append(Finding(text, "fails", "Half of the epochs, at least five, without a better one."))
    return findings


def _student(training: Training) -> list[Finding]:
    """The student beside its teacher, and what became of the background, which it never sees."""
    if len(training.stages) < 2:
        return []
    teacher, student = (training.best(stage) for stage in training.stages[:2])
    findings = []
    if teacher is not None and student is not None:
        own, other = student.numbers["mAP50"], teacher.numbers["mAP50"]
        points = f"{100 * (own - other):+.1f}".replace("-", "−")
        text = (f"The student reaches mAP50 {own:.3f}, its teacher {other:.3f}: {points} points on the validation "
                "videos, without an interval.")  # fmt: skip
        grade: Grade | None = None if abs(own - other) <= _LOST else "passes" if own > other else "fails"
        findings.append(Finding(text, grade, f"A difference beyond {100 * _LOST:g} points is reported."))
    drift = drift_of(training)
    if drift:
        means = "; ".join(f"{name} {value:.4g}" for name, value in drift.items())
        findings.append(Finding(f"The student is never shown the background. Mean scores there: {means}."))
    return findings


def drift_of(training: Training) -> dict[str, float]:
    """The latest numbers about background scores."""
    latest: dict[str, float] = {}
    for epoch in training.epochs:
        latest |= {name: value for name, value in epoch.numbers.items() if _about_background(name)}
    return latest


def _about_background(name: str) -> bool:
    return "background" in name.casefold() or "drift" in name.casefold()


def epoch_table(training: Training) -> pl.DataFrame:
    """One row per epoch."""
    rows = [
        {"stage": epoch.stage, "epoch": epoch.number, **epoch.numbers,
         **{f"loss {name}": value for name, value in epoch.losses.items()}}
        for epoch in training.epochs
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def class_counts(record: TrainRecord) -> pl.DataFrame | None:
    """Boxes of each class in the training and validation videos; None where the record does not count them."""
    names = _class_names(record.classes)
    columns: dict[str, list[int]] = {}
    for part in ("train", "validation"):
        part_data = record.data.get(part)
        counts = part_data.get("counts") if isinstance(part_data, Mapping) else None
        if isinstance(counts, list) and len(counts) == len(names) and all(type(n) is int and n >= 0 for n in counts):
            columns[part] = counts
    if "train" not in columns:
        return None
    return pl.DataFrame({"class": names, **columns}).sort("train", descending=True, maintain_order=True)


def _class_names(classes: Mapping[str, Any]) -> list[str]:
    heads = classes.get("heads")
    names = heads.get(classes.get("main")) if isinstance(heads, Mapping) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _figures(training: Training, counts: pl.DataFrame | None) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    scores = metric_lines(training)
    if scores is not None:
        figures["mAP"] = scores
    figures |= loss_lines(training)
    drift = _drift_lines(training)
    if drift is not None:
        figures["background"] = drift
    if counts is not None:
        met = counts.filter(pl.sum_horizontal(pl.exclude("class")) > 0)
        shown = met.head(_MOST_BARS)
        title = f"Boxes of each class that occurs ({met.height} of {counts.height})"
        title += f", the {_MOST_BARS} most frequent" if met.height > shown.height else ""
        series = tuple(Series(part, tuple(shown[part].to_list())) for part in shown.columns[1:])
        if met.height:
            figures["classes"] = bars(title, tuple(shown["class"].to_list()), series, "boxes")
    return figures


def _drift_lines(training: Training) -> Figure | None:
    rows = placed(training)
    names = dict.fromkeys(name for _, epoch in rows for name in epoch.numbers if _about_background(name))
    curves = []
    for name in names:
        points = [(x, epoch.numbers[name]) for x, epoch in rows if name in epoch.numbers]
        curves.append(Curve(name, tuple(x for x, _ in points), tuple(y for _, y in points)))
    return lines("Background scores while the student learns", "epoch", "score", tuple(curves)) if curves else None


def _scorecard(training: Training, standing: Finding) -> Scorecard:
    numbers = _numbers(training)
    return Scorecard(standing.grade, standing.text, numbers[0] if numbers else None, tuple(numbers[1:5]))


def _numbers(training: Training) -> list[CardNumber]:
    """The best number first, then epochs, speed and time."""
    facts = [CardNumber("epochs", str(len(training.of(stage))), stage) for stage in training.stages]
    best = _best_of(training)
    if best is not None:
        text, where = f"{best[1]:.3f}", f"{best[0].stage}, epoch {best[0].number}"
        facts.insert(0, CardNumber("best mAP50", text, where, IntervalBar(value=best[1], text=text)))
    speeds = [epoch.numbers["images_per_second"] for epoch in training.epochs if "images_per_second" in epoch.numbers]
    if speeds:
        facts.append(CardNumber("images per second", f"{sorted(speeds)[len(speeds) // 2]:.0f}", "training, median"))
    spent = sum(epoch.numbers.get("seconds", 0.0) for epoch in training.epochs)
    return [*facts, *([CardNumber("minutes", f"{spent / 60:.1f}", "all epochs")] if spent else [])]


def _pictures(folder: Path) -> tuple[Picture, ...]:
    """The labelled frames that the training or its rehearsal drew."""
    pictures = []
    for name, note in PICTURES.items():
        if (folder / name).is_file():
            pictures.append(Picture(_picture(folder / name), note.removesuffix("."), note))
    return tuple(pictures)


def _picture(path: Path) -> Any:
    data = read_bounded(path, _MOST_PICTURE)
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG", "PNG"]) as image:
            if max(image.size) > _LONGEST_SIDE:
                raise DataError(path, f"found {image.size} pixels, expected at most {_LONGEST_SIDE} on a side")
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:  # whose text names an object in memory
        raise DataError(path, "found no JPEG or PNG, expected a picture of labelled frames") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(path, f"found {str(error)[:80]}, expected a picture of labelled frames") from error


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:400].removesuffix('.')}."


def _shown(tables: Mapping[str, pl.DataFrame], name: str, title: str) -> tuple[Table, ...]:
    return (Table(title, tables[name], file=f"tables/{name}.csv", folded=True),) if name in tables else ()


def _results(result: Mapping[str, Any] | None) -> tuple[Table, ...]:
    """The best epoch of each stage in a row; losses and settings of that epoch stand elsewhere."""
    rows = [
        {"stage": str(stage)[:40]} | {head: _cell(row.get(name), show) for head, name, show in _RESULT}
        for stage, row in (result or {}).items()
        if isinstance(row, Mapping)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    columns = [name for name in frame.columns if frame[name].str.len_chars().sum()]
    return (Table("Best epochs", frame.select(columns)),) if rows else ()


def _cell(value: Any, show: Callable[[float], str]) -> str:
    known = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return show(value) if known else ""


def _pairs(title: str, value: Any) -> tuple[Table, ...]:
    """A map of the record as a table of names and values; counts of classes have a table of their own."""
    rows = setting_rows(value, without=("counts",)) if isinstance(value, Mapping) else []
    if not rows:
        return ()
    frame = pl.DataFrame(rows, schema={"name": pl.String, "value": pl.String}, orient="row")
    return (Table(title, frame, folded=True),)
