"""The report on one scored FOCUS submission: page, tables, and the facts that a ranking reads.

`OUT/tables/results.csv` has one row per question and is what `surgeval rank` takes; `OUT/scores.json` holds every
number and whether the submission may be ranked at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.errors import BadInput
from surgeval.figures import Bars, Figure, Heatmap, Series, save_figure
from surgeval.pages import Fact, Plot, Section, Table, save_tables, write_page
from surgeval.protocols.focus._summary import BucketScore
from surgeval.protocols.focus.result import FocusScores
from surgeval.protocols.focus.tables import FocusReport, focus_json, judge_table
from surgeval.stats import Interval

__all__ = ["focus_sections", "write_focus_report"]

_FLAT, _MACRO = "flat_accuracy", "accuracy_mean_of_video_means"
_STATUS = {
    "ok": "read and decided",
    "missing": "no response: wrong",
    "late": "after the latency limit: wrong",
    "invalid": "no answer of the asked format: wrong",
    "bad_reference": "the question cannot be scored: set aside for every model",
    "flagged": "tries to steer the judges",
    "judge_error": "no verdict yet: ask again",
}
_METHOD = (
    "Flat accuracy counts every question the same, the mean of video means every video. The pre-evaluation score is "
    "the plain mean of the flat accuracies of the buckets; a bucket is a capability group, in or out of distribution. "
    "A question without correctness (bad reference, no verdict) takes part in no accuracy."
)
_SCHEMES = {
    "cluster": "Intervals (95 %): whole videos are drawn with replacement, because questions of one video are not "
    "independent.",
    "two_level": "Intervals (95 %): videos are drawn with replacement, and inside each its questions, as the "
    "challenge's package does; such intervals are wider than they should be.",
}


def write_focus_report(report: FocusReport, out: Path) -> Path:
    """Write page, tables, figures and `scores.json` below `out`; returns the page's path."""
    save_tables(report.tables, out / "tables")
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, figure in _figures(report.scores).items():
            save_figure(figure, out / "figures" / name)
        text = json.dumps(focus_json(report), indent=2, ensure_ascii=False, allow_nan=False)
        (out / "scores.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{out}: the report cannot be written: {error.strerror or error}") from error
    scores = report.scores
    details = {
        "Protocol": "focus" if scores.compat is None else f"focus, as {scores.compat} scores it",
        "Track": scores.track or "none named",
        "Latency limit": "none" if scores.limit is None else f"{scores.limit:g} s",
        "Judges": ", ".join(tally.judge for tally in report.judges.judges) or "none asked",
    }
    return write_page(
        out / "report.html", report.name, focus_sections(report), kind="focus", lead=_lead(scores), details=details
    )


def focus_sections(report: FocusReport) -> tuple[Section, ...]:
    """The chapters."""
    scores = report.scores
    figures = {
        name: Plot(figure, _REMARK.get(name, ""), (f"figures/{name}.svg", f"figures/{name}.png"))
        for name, figure in _figures(scores).items()
    }
    sections = [
        Section("Overview", _warnings(report), facts=_facts(scores), tables=(_statuses(scores),)),
        Section("Buckets", "Each capability group in and out of distribution: the units of the ranking.",
                tables=_level(scores, "bucket", "Buckets"),
                figures=tuple(figures[name] for name in ("buckets",) if name in figures)),
        Section("Capabilities", "",
                tables=(*_level(scores, "group", "Groups"), *_level(scores, "leaf", "Leaves of the taxonomy")),
                figures=tuple(figures[name] for name in ("leaves",) if name in figures)),
        Section("Kinds of questions", "",
                tables=(*_level(scores, "answer_format", "Answer formats"),
                        *_level(scores, "robustness", "In and out of distribution"),
                        *_level(scores, "clinical", "Clinical questions"))),
        _judging(report),
        _unusual(scores),
        _problems(scores),
        Section("Each question", "", tables=(
            Table("Every question with its status and reason", scores.results, file="tables/results.csv", folded=True),
        )),
        Section("How it was computed", "\n\n".join(filter(None, (_METHOD, _scheme(scores))))),
    ]  # fmt: skip
    return tuple(one for one in sections if one is not None and (one.text or one.tables or one.figures))


_REMARK = {
    "buckets": "Where a bar is missing there is no question, or no right answer: the table says which.",
    "leaves": "Rows are groups, columns how the answer is given; a blank cell has no questions.",
}


def _lead(scores: FocusScores) -> str:
    if scores.flat is None:
        return "No question could be scored."
    score = f"Pre-evaluation score {_shown(scores.pre_evaluation)}. " if scores.pre_evaluation else ""
    counts = scores.counts
    return f"{score}{counts['scored']} of {counts['questions']} questions scored, {scores.flat.clusters} videos."


def _facts(scores: FocusScores) -> tuple[Fact, ...]:
    facts = []
    for label, interval in (
        ("pre-evaluation score", scores.pre_evaluation),
        ("flat accuracy", scores.flat),
        ("mean of video means", scores.video_mean),
    ):
        if interval is not None:
            ends = (
                "no interval"
                if math.isnan(interval.low)
                else f"95 % interval {interval.low:.3f} to {interval.high:.3f}"
            )
            facts.append(Fact(label, f"{interval.estimate:.3f}", ends))
    counts = scores.counts
    videos = f" in {scores.flat.clusters} videos" if scores.flat is not None else ""
    return (*facts, Fact("questions scored", str(counts["scored"]), f"of {counts['questions']}{videos}"))


def _warnings(report: FocusReport) -> str:
    scores, gate = report.scores, report.admission
    said = (
        []
        if gate is None or scores.unrankable
        else [f"{'Admitted' if gate.admitted else 'Not admitted'}: {gate.reason}."]
    )
    said += [f"Not to be ranked: {scores.unrankable}."] if scores.unrankable else []
    if scores.counts["judge_error"]:
        said.append(f"{scores.counts['judge_error']} answers have no verdict; the same command asks again.")
    if scores.flat is not None and scores.flat.few_clusters:
        said.append(f"Only {scores.flat.clusters} videos: too few for a claim about videos in general.")
    return "\n\n".join([*said, *(f"{note[:1].upper()}{note[1:]}." for note in scores.notes)])


def _statuses(scores: FocusScores) -> Table:
    rows = [(name, scores.counts[name], meaning) for name, meaning in _STATUS.items() if scores.counts[name]]
    schema: list[tuple[str, Any]] = [("status", pl.String), ("questions", pl.Int64), ("meaning", pl.String)]
    return Table("What became of the answers", pl.DataFrame(rows, schema=schema, orient="row"))


def _level(scores: FocusScores, level: str, title: str) -> tuple[Table, ...]:
    chosen = scores.summary.filter(pl.col("level") == level)
    rows = [
        (row["name"].replace("_", " "), row["count"], row["scored"], row["videos"], _cell(row, _FLAT),
         _cell(row, _MACRO), "too few videos" if row["few_videos"] else "")
        for row in chosen.iter_rows(named=True)
    ]  # fmt: skip
    if not rows:
        return ()
    schema: list[tuple[str, Any]] = [
        (level.replace("_", " "), pl.String), ("questions", pl.Int64), ("scored", pl.Int64), ("videos", pl.Int64),
        ("flat accuracy", pl.String), ("mean of video means", pl.String), ("note", pl.String),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if not any(frame["note"]):
        frame = frame.drop("note")
    return (Table(title, frame, file="tables/summary.csv"),)


def _judging(report: FocusReport) -> Section | None:
    verdicts = report.scores.verdicts
    if not verdicts:
        return None
    judges = report.judges
    calls = report.scores.judge_calls
    text = f"{judges.answers} answers went to {'the judge' if len(calls) == 1 else 'the judges'}."
    if len(calls) > 1:
        asked = f"{', '.join(map(str, calls[:-1]))} and {calls[-1]}"
        text += f" They were asked about {asked} of them, in this order: a judge is spared what is decided."
    tally = judge_table(judges)
    agreement = report.agreement
    if not any(agreement["note"]):
        agreement = agreement.drop("note")
    return Section(
        "Judges", text, tables=(
            *((Table("What each judge said", tally, file="tables/judges.csv"),) if tally.width else ()),
            *((Table("How far they agree (Cohen's kappa, intervals over videos)", agreement,
                     "A judge who is asked only when others differ looks worse than it is; ask all before comparing.",
                     file="tables/judge_agreement.csv"),) if agreement.height else ()),
        ),
    )  # fmt: skip


def _unusual(scores: FocusScores) -> Section | None:
    rows = scores.results.filter(pl.col("status") != "ok")
    if not rows.height:
        return None
    order = {
        name: k for k, name in enumerate(("flagged", "judge_error", "bad_reference", "invalid", "late", "missing"))
    }
    rows = rows.sort(pl.col("status").replace_strict(order, default=9), maintain_order=True)
    frame = rows.select("qID", "video", "status", "answer_format", "correctness", "reason")
    title = f"{rows.height} of {scores.results.height} questions whose answer was not simply read and decided"
    return Section("What was not in order", tables=(Table(title, frame, folded=rows.height > 30),))


def _problems(scores: FocusScores) -> Section | None:
    if not scores.problems:
        return None
    frame = pl.DataFrame([asdict(problem) for problem in scores.problems], infer_schema_length=None)
    kinds = frame.group_by("kind", "level").len("problems").sort("problems", "kind", descending=[True, False])
    return Section(
        "Problems in the files", "All three files are checked before the first answer is read.",
        tables=(Table("By kind", kinds),
                Table("Each problem", frame.select("kind", "level", "record", "field", "found", "expected", "file"),
                      file="tables/problems.csv", folded=True)),
    )  # fmt: skip


def _figures(scores: FocusScores) -> dict[str, Figure]:
    if not scores.buckets:
        return {}
    groups = tuple(dict.fromkeys(bucket.group for bucket in scores.buckets))
    found: dict[tuple[str, bool], BucketScore] = {(bucket.group, bucket.ood): bucket for bucket in scores.buckets}
    series = [
        Series(name, tuple(100 * found[group, ood].accuracy if (group, ood) in found else 0.0 for group in groups))
        for name, ood in (("in distribution", False), ("out of distribution", True))
        if any((group, ood) in found for group in groups)
    ]
    labels = tuple(group.replace("_", " ") for group in groups)
    made: dict[str, Figure] = {
        "buckets": Bars("Accuracy by bucket", labels, tuple(series), "% right", mode="grouped", axis="capability group")
    }
    scored = scores.results.filter(pl.col("correctness").is_not_null())
    formats = tuple(sorted(scored["answer_format"].unique()))
    share = {
        (group, name): 100 * right
        for group, name, right in scored.group_by("group", "answer_format")
        .agg(pl.col("correctness").mean())
        .iter_rows()
    }
    cells = tuple(tuple(_tenth(share.get((group, name))) for name in formats) for group in groups)
    columns = tuple(name.replace("_", " ") for name in formats)
    made["leaves"] = Heatmap("Accuracy by capability and answer format", labels, columns, cells, "% right", whole=100)
    return made


def _tenth(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _scheme(scores: FocusScores) -> str:
    return _SCHEMES.get(scores.flat.scheme, "") if scores.flat is not None else ""


def _cell(row: Mapping[str, Any], column: str) -> str:
    if row[column] is None:
        return "–"
    if row[f"{column}_low"] is None:
        return f"{row[column]:.3f} [no\u00a0interval]"
    return f"{row[column]:.3f} [{row[f'{column}_low']:.3f},\u00a0{row[f'{column}_high']:.3f}]"


def _shown(interval: Interval) -> str:
    ends = "no interval" if math.isnan(interval.low) else f"{interval.low:.3f}, {interval.high:.3f}"
    return f"{interval.estimate:.3f} [{ends}]"
