"""The page of a quality run: how many frames to drop and why, the measures, and the frames themselves by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.pages import Finding, Section, Table
from surgeval.protocols.quality.result import QualityScores
from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of
from surgeval.results import counted

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
    if len(results) != 1:
        raise BadInput(f"report: found {len(results)} runs of quality, expected one")
    (scores,) = results
    tables = scores.tables
    page = RunPage(results, out, tables, scores.figures)
    numbers = pl.DataFrame(
        [(headline.label, headline.cell) for headline in scores.headlines()],
        schema={"number": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    bare = [name for name in ("reasons", "unreadable") if name in tables and tables[name].height]
    sections = (
        Section("Frames to remove",
                tables=(Table(_TITLES["drop"], tables["drop"], file="tables/drop.csv"),) if scores.proposals else ()),
        Section("Each frame", "Unusable frames come first.", evidence=evidence_of(results)),
        Section("Why", tables=(*(Table(_TITLES[name], tables[name], file=f"tables/{name}.csv") for name in bare),
                               Table("Numbers, with 95 % intervals over videos", numbers)),
                figures=tuple(plot for name, plot in page.plots.items() if name == "reasons")),
        Section("Measures", "", figures=tuple(plot for name, plot in page.plots.items() if name != "reasons"),
                tables=(Table(_TITLES["videos"], tables["videos"].sort("to drop", descending=True, maintain_order=True),
                              file="tables/videos.csv"),), paired=True),
    )  # fmt: skip
    return page.write(
        sections, _METHOD, facts=_facts(scores), notes=scores.notes, findings=_findings(scores),
        pictures=case_pictures(scores), details={name: f"{value:g}" for name, value in _limits(scores).items()},
    )  # fmt: skip


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


def _facts(scores: QualityScores) -> tuple[str, ...]:
    """What was measured, in a few words."""
    videos = {*scores.cases["video"].to_list(), *scores.unreadable["video"].to_list()}
    frames = scores.cases.height + scores.unreadable.height
    unreadable = f"{scores.unreadable.height} unreadable" if scores.unreadable.height else ""
    return counted(len(videos), "video"), counted(frames, "frame"), f"{len(scores.proposals)} to remove", unreadable
