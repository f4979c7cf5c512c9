"""The page of a quality run: how many frames to drop and why, the measures, and the frames themselves by name."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import polars as pl

from surgeval.errors import BadInput
from surgeval.pages import Fact, Finding, Section, Table, save_figures, save_tables, write_page
from surgeval.protocols.contract import Headline
from surgeval.protocols.evidence_page import evidence_of
from surgeval.protocols.quality.result import QualityScores
from surgeval.protocols.verdict_page import verdict_lead, verdict_sections
from surgeval.stats import with_ends

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
    (one,) = results
    tables = one.tables
    save_tables(tables, out / "tables")
    plots = save_figures(one.figures, out)
    numbers = pl.DataFrame(
        [(headline.label, _cell(headline)) for headline in one.headlines()],
        schema={"number": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    bare = [name for name in ("reasons", "unreadable") if name in tables and tables[name].height]
    verdict = one.verdict()
    sections = (
        *verdict_sections({one.name: verdict}, one.notes, _findings(one)),
        Section("Frames to drop", "" if one.proposals else "None.",
                tables=(Table(_TITLES["drop"], tables["drop"], file="tables/drop.csv"),) if one.proposals else ()),
        *((Section("Each frame", "What cannot be used comes first.", evidence=shown),)
          if (shown := evidence_of([one])) else ()),
        Section("Overview", facts=_facts(one),
                tables=(*(Table(_TITLES[name], tables[name], file=f"tables/{name}.csv") for name in bare),
                        Table("Numbers, with 95 % intervals over videos", numbers)),
                figures=tuple(plot for name, plot in plots.items() if name == "reasons")),
        Section("Measures", "", figures=tuple(plot for name, plot in plots.items() if name != "reasons"),
                tables=(Table(_TITLES["videos"], tables["videos"].sort("to drop", descending=True, maintain_order=True),
                              file="tables/videos.csv"),), paired=True),
        Section("How it was computed", _METHOD),
    )  # fmt: skip
    lead = verdict_lead({one.name: verdict}) or "No frame could be read."
    details = {name: f"{value:g}" for name, value in _limits(one).items()}
    return write_page(out / "report.html", one.name, sections, kind="quality", lead=lead, details=details)


_TITLES = {
    "reasons": "Why frames are proposed to drop",
    "unreadable": "Frames that could not be read",
    "videos": "Each video: frames, how many to drop, and the mean of each measure",
    "drop": "The frames to drop, with the measure that speaks against each and its limit",
}


def _findings(one: QualityScores) -> tuple[Finding, ...]:
    """Why frames go, and what could not be read at all."""
    tables, said = one.tables, []
    reasons = ", ".join(f"{count} {reason}" for reason, count in tables["reasons"].iter_rows())
    if reasons:
        said.append(Finding(f"Proposed to drop: {reasons}. These are proposals: a person decides.", False))
    elif one.cases.height:
        said.append(Finding("No frame is proposed to drop.", True))
    if one.unreadable.height:
        video, frame, reason = one.unreadable.row(0)
        many = f"{one.unreadable.height} frame{'s' if one.unreadable.height > 1 else ''}"
        said.append(Finding(f"{many} could not be read; the first: {video} / {frame}: {reason}.", False))
    return tuple(said)


def _cell(headline: Headline) -> str:
    """Brightness and sharpness reach hundreds: a decimal is enough."""
    number = headline.interval
    if headline.unit != "score" or not isfinite(number.low):
        return headline.cell
    return with_ends(number.estimate, number.low, number.high, "measure")


def _limits(one: QualityScores) -> dict[str, float]:
    limits = one.limits
    return {"Black below": limits.black, "Blurred below (of the median)": limits.blur,
            "Out of body below": limits.tissue, "Too bright above": limits.saturated,
            "Too dark above": limits.dark}  # fmt: skip


def _facts(one: QualityScores) -> tuple[Fact, ...]:
    counts = {
        "frames": one.cases.height + one.unreadable.height,
        "to drop": len(one.proposals),
        "unreadable": one.unreadable.height,
    }
    return tuple(Fact(label, str(count)) for label, count in counts.items())
