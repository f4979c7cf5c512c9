"""The page about runs of one protocol: what all of them have in common, around the sections of the protocol.

`RunPage` saves tables and figures, makes the scorecard from verdict and headlines, the findings from the reasons, and
ends with how it was computed; a protocol adds its own sections. Grade, claim and findings come from one verdict, so
they cannot disagree.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import polars as pl

from surgeval.arrays import Image
from surgeval.figures import Figure
from surgeval.pages import (
    CardNumber,
    Evidence,
    Finding,
    IntervalBar,
    Picture,
    Plot,
    Scorecard,
    Section,
    Table,
    distinct,
    figure_plots,
    save_tables,
    unbroken,
    write_page,
)
from surgeval.protocols.contract import Headline
from surgeval.protocols.recipes import recipe_table
from surgeval.protocols.result import RunResult, names_on_page
from surgeval.protocols.verdict import Reason, Verdict
from surgeval.stats import Measure, NumberUnit, number_text

__all__ = ["RunPage", "as_sentence", "case_pictures", "claims", "evidence_of", "finding_sections", "headline_bar",
           "runs_table", "scorecard_of", "side_by_side"]  # fmt: skip

_MOST_NUMBERS = 4  # beside the main one
# Boxes on a case as the case browser draws them, by kind: colour and words.
_BOX_KINDS = {"label": ("#46dc5a", "green: label"), "missed": ("#ffd60a", "yellow: missed"),
              "hit": ("#4cc9ff", "blue: found"), "wrong": ("#ff7a45", "orange: wrong")}  # fmt: skip
_COMPARED = 3  # numbers of each run on a page about several
_ROOM = 1.15  # a line for a number without bounds ends this much beyond it


class RunPage:
    """A page in the making: `plots` are its figures; `write` puts the sections together and saves the figures.

    >>> RunPage([], Path("page"), {})
    Traceback (most recent call last):
    surgeval.errors.BadInput: A page needs at least one run.
    """

    def __init__(
        self,
        results: Sequence[RunResult],
        out: str | Path,
        tables: Mapping[str, pl.DataFrame],
        figures: Mapping[str, Figure] | None = None,
        *,
        remarks: Mapping[str, str] | None = None,
    ) -> None:
        """Save the tables of the runs below `out`; `remarks` stand below figures, by name."""
        self.results, self.names, self.out = results, names_on_page(results), Path(out)
        save_tables(tables, self.out / "tables", best=_directions(results) if len(results) > 1 else None)
        self.plots: Mapping[str, Plot] = figure_plots(figures or {}, notes=remarks)

    def write(
        self,
        sections: Sequence[Section],
        method: str,
        *,
        title: str = "",
        facts: Sequence[str] = (),
        warnings: Sequence[str] = (),
        notes: Sequence[str] = (),
        findings: Sequence[Finding] = (),
        pictures: Sequence[Picture] = (),
        details: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the page and return its path.

        `facts` say in a few words what was measured, `warnings` what to know before any number. `notes` and `findings`
        stand below the reasons. Of several runs the first section compares them. Sections with nothing in them are
        left out.
        """
        one = self.results[0] if len(self.results) == 1 else None
        verdicts = {run.name: run.verdict() for run in self.results}
        recipes = recipe_table({run.name: run.recipes for run in self.results})
        first = () if one is not None else (_models(self.results, verdicts),)
        chapters = (
            *first,
            *finding_sections(verdicts, notes, findings),
            *(section for section in sections if _filled(section)),
            Section("How it was computed", method, tables=recipes),
        )
        return write_page(
            self.out / "report.html", title or " and ".join(self.names), chapters, kind=self.results[0].protocol,
            lead=" · ".join(filter(None, facts)), warnings=[f"Warning: {as_sentence(text)}" for text in warnings],
            scorecard=None if one is None else scorecard_of(one, pictures), details=details,
            measures=tuple(measure for run in self.results for measure in run.measures),
        )  # fmt: skip


def _filled(section: Section) -> bool:
    return any((section.tables, section.figures, section.images, section.cards, section.evidence,
                section.findings, section.links))  # fmt: skip


def _directions(results: Sequence[RunResult]) -> dict[str, bool]:
    """By column, whether more is better: of the numbers that the runs declare."""
    directions: dict[str, bool] = {}
    for run in results:
        known: list[Measure | Headline] = [*run.measures, *run.headlines()]
        for one in known:
            if one.higher_is_better is not None:
                directions |= {one.key: one.higher_is_better, one.label: one.higher_is_better}
    return directions


def as_sentence(note: str) -> str:
    """A note as a sentence; one that begins with a file name keeps it.

    >>> as_sentence("two videos have no boxes"), as_sentence("boxes.csv: line 2: no number")
    ('Two videos have no boxes.', 'boxes.csv: line 2: no number.')
    """
    starts_with_file = note.partition(" ")[0].endswith(":")
    text = note if starts_with_file else f"{note[:1].upper()}{note[1:]}"
    return unbroken(text if text.endswith((".", "!", "?", "…")) else f"{text}.")


# Scorecard


def scorecard_of(result: RunResult, pictures: Sequence[Picture] = ()) -> Scorecard:
    """The one answer of a run: its grade and claim, its first number, at most four more."""
    verdict = result.verdict()
    known = [headline for headline in result.headlines() if math.isfinite(headline.interval.estimate)]
    numbers = [_measured(headline, main=headline is known[0]) for headline in known[: 1 + _MOST_NUMBERS]]
    claim = verdict.statement if verdict is not None else "There is nothing to grade in this run."
    return Scorecard(
        verdict.grade if verdict is not None else None, unbroken(claim), numbers[0] if numbers else None,
        others=tuple(numbers[1:]), pictures=tuple(pictures[:2]),
    )  # fmt: skip


def _measured(headline: Headline, *, main: bool) -> CardNumber:
    """The main number says its interval in words and has its baselines on the bar; the others are short."""
    unit, ends = headline.unit, headline.interval.ends(headline.unit)
    levels = [f"{name} {number_text(value, unit)}" for name, value in _baselines(headline).items() if value]
    note = ends if main else "; ".join([ends.removeprefix("95 % interval "), *levels])
    return CardNumber(headline.label, number_text(headline.interval.estimate, unit), note, headline_bar(headline))


def _baselines(headline: Headline) -> dict[str, float]:
    levels = {"chance": headline.chance, "baseline": headline.baseline}
    return {name: value for name, value in levels.items() if value is not None and math.isfinite(value)}


def headline_bar(headline: Headline) -> IntervalBar | None:
    """A headline as an interval bar; None where it has no value."""
    number, unit = headline.interval, headline.unit
    if not math.isfinite(number.estimate):
        return None
    levels = _baselines(headline)
    texts = [headline.cell, *(f"{name} {number_text(value, unit)}" for name, value in levels.items())]
    span = _span(unit, [number.estimate, number.low, number.high, *levels.values()])
    baselines = {f"{name} {number_text(value, unit)}": value for name, value in levels.items()}
    return IntervalBar(value=number.estimate, low=number.low, high=number.high, text="; ".join(texts),
                       baselines=baselines, span=span)  # fmt: skip


def _span(unit: NumberUnit, values: Sequence[float]) -> tuple[float, float]:
    """The line a number is drawn on: 0 to 1 for shares and scores, around 0 for differences, else up to the number."""
    known = [value for value in values if math.isfinite(value)]
    if unit == "points":
        return (-1.0, 1.0)
    if unit in ("share", "score") and max(known) <= 1:
        return (-1.0 if known[0] < 0 else 0.0, 1.0)
    return (0.0, _ROOM * max(known)) if known[0] >= 0 else (_ROOM * min(known), max(0.0, _ROOM * max(known)))


# Findings


def claims(verdicts: Mapping[str, Verdict | None]) -> str:
    """The claims that the grades beside these runs are about; empty where no run has a verdict.

    >>> claims({"net": Verdict("passes", "It sees.", claim="It sees."), "file": None})
    'Claim: “It sees.”'
    >>> claims({"a": Verdict("fails", "…", claim="It sees."), "b": Verdict("fails", "…", claim="It hears.")})
    'Claim: “It sees.” (a); “It hears.” (b)'
    """
    runs: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        if verdict is not None and verdict.claim:
            runs.setdefault(verdict.claim, []).append(name)
    texts = [f"“{claim}”" + (f" ({', '.join(names)})" if len(runs) > 1 else "") for claim, names in runs.items()]
    return f"Claim: {'; '.join(texts)}" if texts else ""


def finding_sections(
    verdicts: Mapping[str, Verdict | None], notes: Sequence[str] = (), more: Sequence[Finding] = ()
) -> tuple[Section, ...]:
    """The reasons of each run as rows; `more` findings and `notes` about the data stand below them.

    >>> from surgeval.protocols.verdict import Rule
    >>> reason = Reason(Rule("right", "Right more often than not."), "It is right in 90 % of the frames.", True)
    >>> net = Verdict("inconclusive", "Unclear whether it sees.", (reason,))
    >>> [section.title for section in finding_sections({"net": net})]
    ['Findings']
    """
    below = (*more, *(Finding(as_sentence(text)) for text in dict.fromkeys(notes)))
    known = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(verdicts) == 1:
        rows = (*(row for verdict in known.values() for row in _findings(verdict)), *below)
        said = all(verdict.statement == verdict.claim for verdict in known.values())
        return (Section("Findings", "" if said else claims(verdicts), findings=rows),) if rows else ()
    each = (Section(f"{name}: {verdict.grade}", findings=_findings(verdict)) for name, verdict in known.items())
    return (*((Section("Notes", findings=below),) if below else ()), *each)


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    graded = verdict.grade != "not applicable"  # nothing is claimed of a reference row
    return tuple(
        Finding(
            unbroken(reason.text), reason.grade if graded else None, unbroken(reason.rule.text), _reason_bar(reason)
        )
        for reason in verdict.reasons
    )


def _reason_bar(reason: Reason) -> IntervalBar | None:
    number, baseline = reason.interval, reason.baseline
    if number is None or not math.isfinite(number.estimate):
        return None
    text = number.cell() if baseline is None else f"{number.cell()}; baseline {number_text(baseline)}"
    return IntervalBar(value=number.estimate, low=number.low, high=number.high, text=text, span=reason.span,
                       baselines={} if baseline is None else {"baseline": baseline})  # fmt: skip


# Several runs


def _models(results: Sequence[RunResult], verdicts: Mapping[str, Verdict | None]) -> Section:
    """The runs of a page about several, beside each other."""
    runs = [(run.name, verdicts[run.name], run.headlines()) for run in results]
    labels = list(dict.fromkeys(headline.label for run in results for headline in run.headlines()[:_COMPARED]))
    frame, bars = runs_table(runs, labels[:_COMPARED], "model")
    return Section("Models", tables=(Table("Grade and first numbers", frame, claims(verdicts), bars=bars),))


def runs_table(
    runs: Sequence[tuple[str, Verdict | None, Sequence[Headline]]], labels: Sequence[str], head: str
) -> tuple[pl.DataFrame, dict[str, list[IntervalBar | None]]]:
    """A row per run with its grade and these headlines, and the bars that stand below the numbers.

    >>> frame, bars = runs_table([("net", Verdict("passes", "It sees."), ())], ["F1"], "run")
    >>> frame.row(0), bars
    (('net', 'passes', '–'), {'F1': [None]})
    """
    graded = any(verdict is not None for _, verdict, _ in runs)
    heads = distinct([head, *["grade"] * graded, *labels])
    rows, bars = [], {name: list[IntervalBar | None]() for name in heads[1 + graded :]}
    for name, verdict, headlines in runs:
        known = {headline.label: headline for headline in headlines}
        found = [known.get(label) for label in labels]
        grade = [verdict.grade if verdict is not None else "–"] * graded
        rows.append([name, *grade, *("–" if headline is None else headline.cell for headline in found)])
        for column, headline in zip(bars.values(), found, strict=True):
            column.append(None if headline is None else headline_bar(headline))
    same = {name: _on_one_line(column) for name, column in bars.items()}
    return pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row"), same


def _on_one_line(bars: Sequence[IntervalBar | None]) -> list[IntervalBar | None]:
    """The bars of a column over the span of all of them."""
    spans = [bar.span for bar in bars if bar is not None]
    whole = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else (0.0, 1.0)
    return [None if bar is None else replace(bar, span=whole) for bar in bars]


# Cases


def evidence_of(results: Sequence[RunResult]) -> tuple[Evidence, ...]:
    """What those of the results have that have any.

    >>> evidence_of([])
    ()
    """
    return tuple(cases for result in results if (cases := result.evidence()) is not None and cases.cases.height)


def side_by_side(evidence: Sequence[Evidence]) -> Section:
    """The section for models on the same cases.

    >>> side_by_side([]).title
    'Case by case'
    """
    text = "Each case with the answer of every model; “models disagree” lists those with different verdicts."
    return Section("Case by case", text, evidence=tuple(evidence))


def case_pictures(result: RunResult) -> tuple[Picture, ...]:
    """The first right and the first wrong case that has a picture, with its boxes, for the scorecard."""
    evidence = result.evidence()
    if evidence is None:
        return ()
    shown = evidence.cases.filter(pl.col("id").is_in(list(evidence.pictures)))
    chosen = {
        "Right": shown.filter(pl.col("verdict").is_in(list(evidence.right - evidence.doubtful))),
        "Wrong": shown.filter(~pl.col("verdict").is_in([*evidence.right, *evidence.open])),
    }
    return tuple(_case_picture(evidence, row, word) for word, rows in chosen.items() for row in rows.head(1).to_dicts())


def _case_picture(evidence: Evidence, row: Mapping[str, Any], word: str) -> Picture:
    where, data = f"{row['video']}, {row['frame']}", evidence.pictures[row["id"]]
    boxes = evidence.boxes.filter(pl.col("id") == row["id"])
    if not boxes.height or not row["width"]:
        return Picture(data, where, f"{word}: {where}")
    kinds = [words for kind, (_, words) in _BOX_KINDS.items() if kind in boxes["kind"]]
    return Picture(_draw_boxes(data, boxes, row["width"]), where, f"{word}: {where} ({', '.join(kinds)})")


def _draw_boxes(data: bytes, boxes: pl.DataFrame, width: float) -> Image:
    """The picture of a frame of this width, which may be smaller, with boxes in the colours of the case browser."""
    with PIL.Image.open(io.BytesIO(data), formats=["JPEG"]) as stored:
        image = stored.convert("RGB")
    scale, draw = image.width / width, PIL.ImageDraw.Draw(image)
    for kind, x, y, w, h in boxes.select("kind", "x", "y", "w", "h").iter_rows():
        corners = (scale * x, scale * y, scale * (x + w), scale * (y + h))
        draw.rectangle(corners, outline=_BOX_KINDS[kind][0], width=2)
    return np.asarray(image)
