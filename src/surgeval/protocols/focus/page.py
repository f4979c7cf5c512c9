"""The page on one scored FOCUS submission, with its tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.pages import Plot, Section, Table
from surgeval.protocols.focus.result import FocusScores
from surgeval.protocols.focus.scoring.pooled import SETUP
from surgeval.protocols.focus.tables import judge_table
from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of
from surgeval.results import counted
from surgeval.stats import with_ends

__all__ = ["focus_sections", "write_page_of"]

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
    "A question without correctness (bad reference, no verdict) takes part in no accuracy.\n\n"
    "Blind baseline: the most frequent answer to the same question, over other videos or over all, whichever scores "
    "higher. For judged formats only exact matches count."
)
_SCHEMES = {
    "cluster": "Intervals (95 %): each video is left out in turn, because questions of one video are not independent.",
    "two_level": "Intervals (95 %): videos are drawn with replacement, and inside each its questions, as the "
    "challenge's package does; such intervals are wider than they should be.",
}


def write_page_of(results: Sequence[FocusScores], out: str | Path) -> Path:
    """Write page, tables and figures of a result below `out`; returns the page's path."""
    scores = results[0]
    page = RunPage(results[:1], out, scores.tables, scores.figures, remarks=_REMARK)
    details = {
        "Protocol": "focus" if scores.compat is None else f"focus, as {scores.compat} scores it",
        "Track": scores.track or "none named",
        "Latency limit": _time_limit(scores),
        "Judges": ", ".join(tally.judge for tally in scores.judges.judges) or "none asked",
    }
    if scores.answered_by:
        details["Named by its server"] = ", ".join(scores.answered_by)
    return page.write(
        focus_sections(scores, page.plots), "\n\n".join(filter(None, (_METHOD, _scheme(scores)))), facts=_facts(scores),
        warnings=scores.reply_warnings, notes=_notes(scores), pictures=case_pictures(scores), details=details,
    )  # fmt: skip


def focus_sections(scores: FocusScores, plots: Mapping[str, Plot]) -> tuple[Section, ...]:
    """The chapters, with the plots of the figures `buckets` and `leaves` where there are any."""
    sections = [
        Section("Answers", tables=(_statuses(scores),)),
        Section("Buckets", "Each capability group in and out of distribution: the units of the ranking. "
                "Here and below the weakest stand first.",
                tables=_level(scores, "bucket", "Buckets"),
                figures=tuple(plots[name] for name in ("buckets",) if name in plots)),
        Section("Capabilities", "",
                tables=(*_level(scores, "group", "Groups"), *_level(scores, "leaf", "Leaves of the taxonomy")),
                figures=tuple(plots[name] for name in ("leaves",) if name in plots)),
        Section("Kinds of questions", "",
                tables=(*_level(scores, "answer_format", "Answer formats"),
                        *_level(scores, "robustness", "In and out of distribution"),
                        *_level(scores, "clinical", "Clinical questions"))),
        _judging(scores),
        _unusual(scores),
        _problems(scores),
        Section("Each question", "", evidence=evidence_of([scores]), tables=(
            Table("Every question with its status and reason", scores.results, file="tables/results.csv", folded=True),
        )),
    ]  # fmt: skip
    return tuple(section for section in sections if section is not None)


_REMARK = {
    "buckets": "Undefined: no question of that kind could be scored.",
    "leaves": "Rows are groups, columns how the answer is given; a blank cell has no questions.",
}


def _time_limit(scores: FocusScores) -> str:
    if scores.time is not None:
        return f"pooled: {SETUP:g} s for a batch and {scores.time.seconds:g} s for each of its questions"
    return "none" if scores.limit is None else f"{scores.limit:g} s for a question"


def _facts(scores: FocusScores) -> tuple[str, ...]:
    """What was measured, in a few words."""
    videos = counted(scores.flat.clusters, "video") if scores.flat is not None else "no question could be scored"
    buckets = counted(len(scores.buckets), "bucket") if scores.buckets else ""
    return f"{scores.counts['scored']} of {counted(scores.counts['questions'], 'question')} scored", videos, buckets


def _notes(scores: FocusScores) -> list[str]:
    gate, notes = scores.admission, []
    if gate is not None and not scores.unrankable:
        notes.append(f"{'Admitted' if gate.admitted else 'Not admitted'}: {gate.reason}.")
    if scores.unrankable:
        notes.append(f"Not to be ranked: {scores.unrankable}.")
    if scores.counts["judge_error"]:
        notes.append(
            f"{counted(scores.counts['judge_error'], 'answer')} without a verdict; the same command asks again."
        )
    return [*notes, *([_name_problems(scores)] if scores.problems else []), *scores.notes]


def _name_problems(scores: FocusScores) -> str:
    """How many of which kind, and the first in full."""
    kinds = Counter(problem.kind for problem in scores.problems).most_common()
    named = ", ".join(f"{kind} ({count})" for kind, count in kinds[:3])
    rest = f" and {len(kinds) - 3} other kinds" if len(kinds) > 3 else ""
    many = f"{len(scores.problems)} problem{'s' if len(scores.problems) > 1 else ''}"
    return f"{many} in the files: {named}{rest}. The first: {scores.problems[0]}."


def _statuses(scores: FocusScores) -> Table:
    rows = [(name, scores.counts[name], meaning) for name, meaning in _STATUS.items() if scores.counts[name]]
    schema: list[tuple[str, Any]] = [("status", pl.String), ("questions", pl.Int64), ("meaning", pl.String)]
    return Table("What became of the answers", pl.DataFrame(rows, schema=schema, orient="row"))


def _level(scores: FocusScores, level: str, title: str) -> tuple[Table, ...]:
    of_level = scores.summary.filter(pl.col("level") == level).sort(_FLAT, nulls_last=True, maintain_order=True)
    rows = [
        (row["name"].replace("_", " "), row["count"], row["scored"], row["videos"], _cell(row, _FLAT),
         _cell(row, _MACRO), "too few videos" if row["few_videos"] else "")
        for row in of_level.iter_rows(named=True)
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


def _judging(scores: FocusScores) -> Section | None:
    if not scores.verdicts:
        return None
    judges, calls = scores.judges, scores.judge_calls
    text = f"{counted(judges.answers, 'answer')} went to {'the judge' if len(calls) == 1 else 'the judges'}."
    if len(calls) > 1:
        asked = f"{', '.join(map(str, calls[:-1]))} and {calls[-1]}"
        text += f" They were asked about {asked} of them, in this order: a judge is spared what is decided."
    tally = judge_table(judges)
    agreement = scores.agreement
    if not any(agreement["note"]):
        agreement = agreement.drop("note")
    return Section(
        "Judges", text, tables=(
            *((Table("What each judge said", tally, file="tables/judges.csv"),) if tally.width else ()),
            *((Table("How far they agree (Cohen's kappa, intervals over videos)", agreement,
                     "A judge asked only when others differ looks worse than it is; ask all before comparing.",
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
    frame = scores.tables["problems"]
    listed = frame.select("kind", "level", "record", "field", "sentence", "path")
    kinds = frame.group_by("kind", "level").len("problems").sort("problems", "kind", descending=[True, False])
    return Section(
        "Problems in the files", "All three files are checked before the first answer is read.",
        tables=(Table("By kind", kinds),
                Table("The first of each kind", listed.filter(pl.int_range(pl.len()).over("kind") < 3)),
                Table("Each problem", listed,
                      file="tables/problems.csv", folded=True)),
    )  # fmt: skip


def _scheme(scores: FocusScores) -> str:
    return _SCHEMES.get(scores.flat.scheme, "") if scores.flat is not None else ""


def _cell(row: Mapping[str, Any], column: str) -> str:
    return with_ends(*(row[f"{column}{end}"] for end in ("", "_low", "_high")))
