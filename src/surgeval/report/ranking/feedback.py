"""What each team of a challenge is told: a folder per team with its page and answers, and the organiser's index.

A team's folder holds that team's data and anonymous aggregates only: how many took part, the field's median where
four or more did, and how far the next place is, in points and in right answers. No other team's name or answer is in
it, save those of the baselines, which are the organiser's own. References are the organiser's too: they, and the
reasons that quote them, are left out unless asked for. The answers are evidence of the page, so that a hundred
thousand of them stay a page one can open and search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.files import DistinctNames, path_inside
from surgeval.pages import Evidence, Link, Section, Table, save_tables, write_page
from surgeval.protocols.registry import ranked_measures
from surgeval.report.ranking.entries import TROUBLES, status_of
from surgeval.report.ranking.study import RankingStudy
from surgeval.report.ranking.tables import weakest_bucket
from surgeval.report.ranking.words import NARROW, listed, percent, place_span, points
from surgeval.stats import distance_to_next_place, shown_bucket

__all__ = ["write_feedback"]

_FIELD = 4  # entries from which on a median does not give a single other one away
_LONGEST = 2000  # characters of a text on the page; the CSV has the whole one
_NEITHER = "not counted"
_LOST = ("missing", "late", "invalid")
_RULE = "a place is given by the tests in the buckets and by the tie-break, not by the score"
_SAME = 0.0005  # scores that do not differ in what is printed


def write_feedback(
    study: RankingStudy,
    tables: Mapping[str, pl.DataFrame],
    out: str | Path,
    *,
    references: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Write `index.html` and a folder per team with `feedback.html` and `answers.csv`; returns the index.

    `tables` are the results behind the ranking. Baselines get no page.

    >>> import tempfile
    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> def results(right):
    ...     row = {"video": [f"v{k // 2}" for k in range(16)], "group": "verb", "ood": False, "correctness": right}
    ...     return pl.DataFrame({"qID": [f"q{k}" for k in range(16)], **row})
    >>> tables = {"net": results([True] * 16), "../prior": results([True, False] * 8)}
    >>> study = study_ranking(rank_outcomes(tables, resamples=100), outer=0, challenges=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = write_feedback(study, tables, Path(folder))
    ...     sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.*"))
    ['index.html', 'net/answers.csv', 'net/feedback.html', 'prior/answers.csv', 'prior/feedback.html']
    """
    out = Path(out)
    ranking = study.ranking
    baselines = ranking.gate.baselines if ranking.gate else ()
    teams = [m for m in ranking.order if ranking.models[m] not in baselines]
    names = DistinctNames("index.html")
    rows, links, measures = [], [], ranked_measures()
    for number, m in enumerate(teams):
        progress(number, len(teams))
        team = ranking.models[m]
        folder = names.claim(team)
        home = path_inside(out, folder)
        answers = _answers(tables[team], references=references)
        save_tables({"answers": answers}, home)
        write_page(
            home / "feedback.html", team, _sections(study, m, answers), kind="feedback", lead=_place(study, m),
            details={"Entries": str(len(ranking.models)), "Questions": str(sum(ranking.questions)),
                     "Videos": str(len(ranking.outcomes.videos))},
            measures=measures,
        )  # fmt: skip
        rows.append((place_span(ranking.final_rank, m), team, folder))
        links.append(Link(f"{team}: place {place_span(ranking.final_rank, m)}", f"{folder}/feedback.html"))
    progress(len(teams), len(teams))
    with_or_without = "with" if references else "without"
    text = (
        "For the organiser: this page names every team, so it is not for the teams. Each folder holds one team's own "
        f"answers and page, {with_or_without} the reference answers, and can be sent as it is."
    )
    frame = pl.DataFrame(rows, schema=["place", "team", "folder"], orient="row")
    section = Section("Teams", text, links=tuple(links), tables=(Table("Folders", frame),))
    return write_page(out / "index.html", "Feedback to the teams", [section], kind="feedback")


def _sections(study: RankingStudy, m: int, answers: pl.DataFrame) -> list[Section]:
    return [
        Section("The place", "\n\n".join((*_sure(study, m), _distance(study, m), *_baselines(study, m)))),
        Section("By bucket", _bucket_text(study, m), tables=(_bucket_table(study, m),)),
        _troubles(answers),
        Section("The answers", "What was not in order first, then wrong answers, then right ones.",
                links=(Link("All of them as a table (CSV)", "answers.csv"),),
                evidence=(_evidence(study.ranking.models[m], answers),)),
    ]  # fmt: skip


def _place(study: RankingStudy, m: int) -> str:
    ranking = study.ranking
    count = int((ranking.final_rank == ranking.final_rank[m]).sum())
    shared = "" if count == 1 else f"; {count} share the places {place_span(ranking.final_rank, m)}"
    return f"Place {ranking.final_rank[m]} of {len(ranking.models)} entries{shared}."


def _sure(study: RankingStudy, m: int) -> list[str]:
    if study.places is None:
        return []
    low, _, high = study.places.interval()[m]
    share = float((study.places.places[:, m] == study.ranking.final_rank[m]).mean())
    span = f"on place {low}" if low == high else f"between places {low} and {high}"
    return [
        f"How sure is that? All was ranked again on {len(study.places.places)} resamples of the videos: in at "
        f"least {percent(0.95)} of them the entry was {span}, and in {percent(share)} on place "
        f"{study.ranking.final_rank[m]} as here. A shared place counts as the best of the places it takes up."
    ]


def _distance(study: RankingStudy, m: int) -> str:
    ranking = study.ranking
    away = distance_to_next_place(ranking, ranking.models[m])
    if away is None:
        return "No place is better."
    lead = f"How far is the next place? The {ranking.score_name} of the nearest entry on place {away.place} is "
    lead += f"{points(away.behind)} points higher. " if away.behind > _SAME else "not higher. "
    if away.answers is None or away.gain is None:
        return f"{lead}Not even all answers right would have given place {away.place}: {_RULE}."
    several = "s" if away.answers > 1 else ""
    text = f"{away.answers} more right answer{several}, {points(away.gain)} points, would have given that place. "
    if away.behind <= _SAME:
        text += f"They are needed because {_RULE}. "
    elif abs(away.gain - away.behind) > _SAME:
        more = "more" if away.gain > away.behind else "less"
        text += f"That is {more} than the distance in points, because {_RULE}. "
    return (
        f"{lead}{text}It was found by turning wrong answers into right ones, evenly over buckets and videos, and "
        "ranking again with the same draws; one fewer is not enough. Other answers may need fewer or more."
    )


def _baselines(study: RankingStudy, m: int) -> list[str]:
    gate = study.ranking.gate
    if gate is None:
        return []
    state = gate.state[study.ranking.models[m]]
    which = f"the baseline{'s' if len(gate.baselines) > 1 else ''} {listed(gate.baselines)}"
    sentence_of = {
        "clearly better": f"Clearly better than {which}.",
        "inconclusive": f"No significant difference from {'some of ' if len(gate.baselines) > 1 else ''}{which}.",
        "worse": f"Worse than at least one of {which}." if len(gate.baselines) > 1 else f"Worse than {which}.",
    }
    return [sentence_of[state]]


def _bucket_table(study: RankingStudy, m: int) -> Table:
    ranking = study.ranking
    own = ranking.accuracy[:, m]
    columns: dict[str, object] = {
        "bucket": [shown_bucket(name) for name in ranking.buckets],
        "questions": list(ranking.questions),
        "videos": list(ranking.videos),
        "accuracy, %": [points(value) for value in own],
    }
    order = np.argsort(own, kind="stable")
    note = "Lowest accuracy first."
    if len(ranking.models) >= _FIELD:
        median = np.median(ranking.accuracy, axis=1)
        columns["median of all entries, %"] = [points(value) for value in median]
        columns["difference, points"] = [f"{100 * value:+.1f}" for value in own - median]
        order = np.argsort(own - median, kind="stable")
        note = "Farthest below the median first."
    return Table("Accuracy by bucket", pl.DataFrame(columns)[order.tolist()], note)


def _bucket_text(study: RankingStudy, m: int) -> str:
    ranking = study.ranking
    worst, least = weakest_bucket(ranking, m), ranking.options.min_clusters
    if worst is not None:
        among = f" of those with {least} videos or more" if ranking.untestable else ""
        right = f"{points(ranking.accuracy[worst, m])}{NARROW}%"
        text = f"The weakest bucket{among} is {shown_bucket(ranking.buckets[worst])} with {right} right."
    elif len(ranking.untestable) == len(ranking.buckets):
        text = f"No bucket is called the weakest: a claim needs {least} videos, and none has them."
    else:
        where = f"every bucket with {least} videos or more" if ranking.untestable else "every bucket"
        text = f"Every answer is right in {where}."
    if len(ranking.models) < _FIELD:
        text += f" A median of the field is shown from {_FIELD} entries on: with fewer it would give another one away."
    return text


def _troubles(answers: pl.DataFrame) -> Section:
    title = "What was not in order"
    if "status" not in answers.columns:
        return Section(title, "The results say nothing about late, missing or unreadable answers.")
    counts = dict(answers.group_by("status").len().iter_rows())
    rows = [(kind, counts[kind], words) for kind, words in TROUBLES.items() if counts.get(kind)]
    if not rows:
        return Section(title, "Every answer came, in time and in a form that could be read.")
    frame = pl.DataFrame(rows, schema=["status", "answers", "meaning"], orient="row").sort("answers", descending=True)
    lost = sum(counts.get(kind, 0) for kind in _LOST)
    text = f"{lost} of {answers.height} answers counted as wrong whatever they say." if lost else ""
    return Section(title, text, tables=(Table("Answers that lost or were set aside", frame),))


def _answers(table: pl.DataFrame, *, references: bool) -> pl.DataFrame:
    """A team's rows as it is shown them, trouble first; the columns that its results hold."""
    flags = {name: table[name].cast(pl.String).str.strip_chars().str.to_lowercase() for name in ("correctness", "ood")}
    rows = table.with_columns(
        pl.col("qID", "video", "group").cast(pl.String),
        *(values.is_in(["true", "1", "1.0"]).alias(f"{name} ") for name, values in flags.items()),
        flags["correctness"].is_in(["false", "0", "0.0"]).alias("denied "),
        pl.Series("status ", status_of(table) if "status" in table.columns else ["ok"] * table.height),
    )  # names with a space at the end are ours: a results file's own are stripped
    rows = rows.with_columns(pl.Series("why ", _untold(rows), pl.String))
    lost = pl.col("status ").is_in(_LOST)
    columns = {
        "qID": pl.col("qID"),
        "video": pl.col("video"),
        "bucket": pl.col("group") + pl.when(pl.col("ood ")).then(pl.lit("|ood")).otherwise(pl.lit("|id")),
        "when": _text(table, "when"),
        "question": _text(table, "question"),
        "answer": _text(table, "answer"),
        "reference": _text(table, "reference") if references else None,
        "result": pl.when(pl.col("correctness ")).then(pl.lit("right")).when(pl.col("denied ") | lost)
        .then(pl.lit("wrong")).otherwise(pl.lit(_NEITHER)),
        "status": pl.col("status ") if "status" in table.columns else None,
        "why": _text(table, "reason") if references else pl.col("why "),
        "latency, s": _text(table, "latency"),
    }  # fmt: skip
    ordered = rows.sort(pl.col("status ") == "ok", pl.col("correctness "), maintain_order=True)
    return ordered.select(column.alias(name) for name, column in columns.items() if column is not None)


def _text(table: pl.DataFrame, name: str) -> pl.Expr | None:
    return pl.col(name).cast(pl.String) if name in table.columns else None


def _untold(rows: pl.DataFrame) -> list[str | None]:
    """The reasons without those that give a reference away.

    How an answer compares, and what is wrong with a reference, quotes it; of a flagged answer a judge may have said
    more than that it is flagged.
    """
    if not {"reason", "reference"} <= set(rows.columns):  # nobody knows what a stranger's reasons give away
        return [None] * rows.height
    reasons: list[str | None] = []
    texts = (rows[name].cast(pl.String) for name in ("reason", "reference"))
    for status, reason, truth in zip(rows["status "], *texts, strict=True):
        if reason is None or (status not in _LOST and status != "flagged"):
            reasons.append(None)
            continue
        flag = reason[reason.rfind("flagged: ") :] if status == "flagged" and "flagged: " in reason else reason
        reasons.append(None if truth and _quotes(flag, truth) else flag)
    return reasons


def _quotes(text: str, truth: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(truth.strip())}(?!\w)", text, re.IGNORECASE) is not None


def _evidence(team: str, answers: pl.DataFrame) -> Evidence:
    """A row per question. Verdicts say what became of the answer, and its status where that is not the usual one."""

    def text(name: str) -> pl.Expr:
        if name not in answers.columns:
            return pl.lit("")
        cut = pl.when(pl.col(name).str.len_chars() > _LONGEST).then(pl.col(name).str.slice(0, _LONGEST) + "…")
        return cut.otherwise(pl.col(name)).fill_null("")

    columns = {"id": "qID", "video": "video", "frame": "when", "asked": "question", "answer": "answer",
               "reference": "reference", "reason": "why"}  # fmt: skip
    verdict = pl.col("result")
    if "status" in answers.columns:
        verdict = pl.when(pl.col("status") == "ok").then(verdict).otherwise(verdict + ", " + pl.col("status"))
    cases = answers.select(
        *(text(own).alias(name) for name, own in columns.items()),
        verdict.alias("verdict"),
        pl.Series("bucket", [shown_bucket(name) for name in answers["bucket"]], pl.String),
        *([pl.col("latency, s").cast(pl.Float64, strict=False).alias("latency")] if "latency, s" in answers else []),
    )
    verdicts = set(cases["verdict"])
    return Evidence(
        model=team, cases=cases, case="question",
        facets={"bucket": "Bucket", "video": "Video"},
        numbers={"latency": "latency in s"} if "latency" in cases else {},
        right=frozenset({"right"} | {verdict for verdict in verdicts if verdict.startswith("right")}),
        open=frozenset(verdict for verdict in verdicts if verdict.startswith(_NEITHER)),
    )  # fmt: skip
