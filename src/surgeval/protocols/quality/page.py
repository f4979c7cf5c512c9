"""The page of a quality run: how many frames to drop and why, the measures, and the frames themselves by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.pages import Fact, Finding, Section, Table, save_figures, save_tables, write_page
from surgeval.protocols.evidence_page import evidence_of
from surgeval.protocols.quality.result import QualityScores
from surgeval.protocols.quality.tables import MEASURES
from surgeval.protocols.verdict_page import verdict_lead, verdict_sections

__all__ = ["write_page_of"]

_METHOD = (
    "Each frame is measured once, 320 pixels wide, inside the central ellipse that an endoscope always lights. A frame "
    "is proposed for its first reason: black, too dark, too bright, out of body (little tissue colour), blurred "
    "(sharpness far below the median of its own video). These are proposals: a person decides.\n\n"
    "Intervals (95 %) leave out each video in turn."
)


def write_page_of(results: Sequence[QualityScores], out: str | Path) -> Path:
    """Write page, tables and figures of one run below `out`.

    >>> write_page_of([], Path("page"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: report: found 0 runs of quality, expected one
    """
    out = Path(out)
    if len(results) != 1:
        raise BadInput(f"report: found {len(results)} runs of quality, expected one")
    (scores,) = results
    tables = scores.tables
    save_tables(tables, out / "tables")
    plots = save_figures(scores.figures, out)
    numbers = pl.DataFrame(
        [(headline.label, headline.cell) for headline in scores.headlines()],
        schema={"number": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    bare = [name for name in ("reasons", "unreadable") if name in tables and tables[name].height]
    verdict = scores.verdict()
    sections = (
        *verdict_sections({scores.name: verdict}, scores.notes, _findings(scores)),
        Section("Frames to drop", "" if scores.proposals else "None.",
                tables=(Table(_TITLES["drop"], tables["drop"], file="tables/drop.csv"),) if scores.proposals else ()),
        *((Section("Each frame", "What cannot be used comes first.", evidence=shown),)
          if (shown := evidence_of([scores])) else ()),
        Section("Overview", facts=_facts(scores),
                tables=(*(Table(_TITLES[name], tables[name], file=f"tables/{name}.csv") for name in bare),
                        Table("Numbers, with 95 % intervals over videos", numbers)),
                figures=tuple(plot for name, plot in plots.items() if name == "reasons")),
        Section("Measures", "", figures=tuple(plot for name, plot in plots.items() if name != "reasons"),
                tables=(Table(_TITLES["videos"], tables["videos"].sort("to drop", descending=True, maintain_order=True),
                              file="tables/videos.csv"),), paired=True),
        Section("How it was computed", _METHOD),
    )  # fmt: skip
    lead = verdict_lead({scores.name: verdict}) or "No frame could be read."
    details = {name: f"{value:g}" for name, value in _limits(scores).items()}
    return write_page(
        out / "report.html", scores.name, sections, kind="quality", lead=lead, details=details, measures=MEASURES
    )


_TITLES = {
    "reasons": "Why frames are proposed to drop",
    "unreadable": "Frames that could not be read",
    "videos": "Each video: frames, how many to drop, and the mean of each measure",
    "drop": "The frames to drop, with the measure that speaks against each and its limit",
}


def _findings(scores: QualityScores) -> tuple[Finding, ...]:
    """Why frames go, and what could not be read at all."""
    tables, findings = scores.tables, []
    reasons = ", ".join(f"{count} {reason}" for reason, count in tables["reasons"].iter_rows())
    if reasons:
        findings.append(Finding(f"Proposed to drop: {reasons}. These are proposals: a person decides.", "fails"))
    elif scores.cases.height:
        findings.append(Finding("No frame is proposed to drop.", "passes"))
    if scores.unreadable.height:
        video, frame, reason = scores.unreadable.row(0)
        many = f"{scores.unreadable.height} frame{'s' if scores.unreadable.height > 1 else ''}"
        findings.append(Finding(f"{many} could not be read; the first: {video} / {frame}: {reason}.", "fails"))
    return tuple(findings)


def _limits(scores: QualityScores) -> dict[str, float]:
    limits = scores.limits
    return {"Black below": limits.black, "Blurred below (of the median)": limits.blur,
            "Out of body below": limits.tissue, "Too bright above": limits.saturated,
            "Too dark above": limits.dark}  # fmt: skip


def _facts(scores: QualityScores) -> tuple[Fact, ...]:
    counts = {
        "frames": scores.cases.height + scores.unreadable.height,
        "to drop": len(scores.proposals),
        "unreadable": scores.unreadable.height,
    }
    return tuple(Fact(label, str(count)) for label, count in counts.items())
