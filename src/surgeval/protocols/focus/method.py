"""Protocol `focus`: score answers to surgical questions as the FOCUS challenge does, and say why.

`score_focus` reads the challenge's requests, references and a submission's responses, checks all of them first, and
gives a status and a reason for every question. `compat="orena-focus-0.4"` reproduces the challenge's own package; the
default repairs it, and every difference shows in the status column. `docs/focus.md` lists them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl

from surgeval.console import progress_bar
from surgeval.console.commands import NO_OPTION, Help, common
from surgeval.console.panels import JUDGING, READING, SCORING
from surgeval.engine import load_cases, load_record
from surgeval.errors import BadInput, printable
from surgeval.protocols.asked import count_models
from surgeval.protocols.focus.reading.files import FocusFiles, FocusProblems, Source, read_focus
from surgeval.protocols.focus.reading.ood import mark_ood, note_ood
from surgeval.protocols.focus.reading.records import FocusQuestion, FocusResponse
from surgeval.protocols.focus.reading.sources import DataSets, scored_sources
from surgeval.protocols.focus.result import (
    FocusScores,
    admission_gate,
    load_focus,
    pictured_in,
)
from surgeval.protocols.focus.scoring.blind_baseline import score_blind_baseline
from surgeval.protocols.focus.scoring.judge import Judged, Judging, Progress, ask_judges
from surgeval.protocols.focus.scoring.panel import Judges, Prices, open_panel, read_prices
from surgeval.protocols.focus.scoring.pooled import Batches, apply_budgets, read_batches
from surgeval.protocols.focus.scoring.rules import STATUSES, Outcome, TimeRule, off_track_groups, outcome, time_limit
from surgeval.protocols.focus.scoring.summary import ResultRow, SaidRow, Scheme, focus_numbers, small_buckets
from surgeval.protocols.focus.stored import SCORES
from surgeval.protocols.pictures import load_pictures
from surgeval.protocols.result import check_output
from surgeval.qa import FlagPolicy, Panel, TiePolicy, check_compat, read_verdicts
from surgeval.results import counted

__all__ = ["JUDGE", "OOD", "PREFIX", "RESAMPLES", "SPLIT", "Track", "folder_name", "results_table", "score_focus"]

Track: TypeAlias = Literal["frame", "segment", "procedure"]  # whose latency limit applies: 5, 15 or 30 seconds
Flags: TypeAlias = Literal["report", "incorrect", "disqualify", "off"]
# Shared by `run_focus` and `score_focus`.
JUDGE = Help(
    "exact, openai:MODEL@URL, hf:PATH, table:FILE (qID → true/false/null) or manual; several make a panel.",
    metavar="SPEC",
)
SPLIT = Help("Of a dataset: train, test, … or all. Default: test of published rows that have one.", READING)
PREFIX = Help("Goes before the ids of a dataset, one for each --data, in their order.", READING, metavar="TEXT")
OOD = Help(
    "Questions out of distribution: data:NAME, procedure:TEXT or list:FILE (repeatable).", READING, metavar="SPEC"
)

RESAMPLES = 2000
_LONGEST = 2000  # characters of an answer that a run keeps beside its score
JUDGE_ERRORS = 0.01  # of the judged answers; with more missing verdicts a rank would be an accident


def score_focus(
    responses: Annotated[Source, Help("The answers: JSON, or a .eval log of Inspect AI.")],
    requests: Annotated[Source | None, Help("The questions (JSON list).")] = None,
    references: Annotated[Source | None, Help("Their references.")] = None,
    out: Annotated[str | Path | None, Help("Folder for report.html, tables, scores.", required=True)] = None,
    *,
    data: Annotated[
        DataSets | None, Help("In place of these two: a dataset, as for run (repeatable).", kind=list[str])
    ] = None,
    split: Annotated[str | None, SPLIT] = None,
    prefix: Annotated[Sequence[str], PREFIX] = (),
    ood: Annotated[Sequence[str], OOD] = (),
    judge: Annotated[Judges | None, JUDGE] = None,
    track: Annotated[Track | None, Help("Sets the latency limit: 5, 15 or 30 s.")] = None,
    max_latency: Annotated[float | None, Help("A latency limit in seconds.", SCORING)] = None,
    time: Annotated[
        TimeRule,
        Help("question: a limit for each; pooled: 120 s + B × 5, 15 or 30 s for a batch of B questions.", SCORING),
    ] = "question",
    batches: Annotated[
        Batches | None,
        Help("batch.json of a batch (repeatable). Default: all questions are one batch.", SCORING, metavar="FILE"),
    ] = None,
    compat: Annotated[
        str | None, Help("orena-focus-0.4: score and vote as the challenge's package does.", SCORING)
    ] = None,
    strict: Annotated[bool, Help("Refuse files with any problem, naming all.", SCORING)] = False,
    retry: Annotated[bool, Help("Ask again what has no verdict; stored verdicts are never asked twice.")] = False,
    flags: Annotated[FlagPolicy | Flags | None, Help("The cost of an answer that steers judges.", JUDGING)] = "report",
    max_judge_errors: Annotated[
        float, Help("Share of judged answers without a verdict that may be ranked.", JUDGING)
    ] = JUDGE_ERRORS,
    tie: Annotated[TiePolicy, Help("What an even vote of the panel means.", JUDGING)] = "judge_error",
    quorum: Annotated[int | None, Help("Valid votes a verdict needs. Default: half.", JUDGING)] = None,
    ask_all: Annotated[bool, Help("Ask every judge, to compare judges.", JUDGING)] = False,
    baseline: Annotated[
        Sequence[str | Path], Help("A scored run to be beaten for admission (repeatable).", metavar="DIR")
    ] = (),
    human: Annotated[
        str | Path | None, Help("Verdicts of people (qID → true/false/null) to compare judges with.", JUDGING)
    ] = None,
    price: Annotated[
        Prices | None,
        Help("A judge's cost per million prompt and completion tokens.", JUDGING, metavar="JUDGE=P,C"),
    ] = None,
    cache: Annotated[
        str | Path | None, Help("Folder of stored verdicts that runs share. Default: OUT.", JUDGING)
    ] = None,
    concurrency: Annotated[int, Help("Answers judged at a time.", JUDGING, least=1)] = 8,
    scheme: Annotated[
        Scheme | None, Help("What is resampled. Default: videos; with --compat two_level.", SCORING)
    ] = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    name: Annotated[str | None, common("name", panel=SCORING)] = None,
    pictured: Annotated[bool | None, NO_OPTION] = None,
    progress: bool = False,
) -> FocusScores:
    """Score answers as the FOCUS challenge does, with a status and a reason for every question.

    The questions are `requests` with their `references` (the challenge's JSON files, or the lists they hold), or those
    of a dataset (`data`, with `split`, `prefix` and `ood` as in `run_focus`). With `out` the scores are saved there; in
    the folder of a run they join its answers.

    `judge` decides answers that no parser can: names (`exact`, `openai:MODEL@URL`, `hf:PATH`, `table:FILE`, `manual`),
    several for a panel, or any `Judging`. Their verdicts are kept in the folder `cache`. `track` or `max_latency` sets
    the latency limit of a question; responses that all lack a latency have none. With the time rule `pooled` the track
    sets a budget for each batch instead (`docs/focus.md`): `batches` are files or objects with `qIDs`, and without them
    all questions are one batch. `ood` (data:NAME, procedure:TEXT or list:FILE) says which questions are out of
    distribution, in place of the files. `strict` refuses files with any problem, naming all. `flags` says what an
    answer that tries to steer the judges costs. When more than the share `max_judge_errors` of the judged answers has
    no verdict, the submission is scored but not to be ranked. Intervals resample videos; the scheme `two_level`, the
    default of compat mode, also the questions inside each. `concurrency` answers are judged at a time. `pictured` says
    whether the model saw pictures (None: not known). A dataset's questions and a model's answers become sources by
    `as_sources`.

    >>> ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    >>> truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    >>> scores = score_focus([{"qID": "q1", "content": "three"}], ask, truth)
    >>> scores.results.select("status", "correctness", "reason").row(0)
    ('invalid', False, "the answer cannot be read as number: 'three' is not a whole number in digits")
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        if retry and not (folder / SCORES).is_file():
            raise BadInput(
                f"{folder} has no scores to retry. Name a folder that was scored before, or leave retry out."
            )
        check_output(folder, "focus", own=SCORES)
    people = read_verdicts(human) if human is not None else None
    with open_panel(judge, cache=cache or folder, tie=tie, quorum=quorum, ask_all=ask_all, compat=compat) as panel:
        judges = panel.judges if isinstance(panel, Panel) else ()
        prices = read_prices(price, [one.name for one in judges])
        shown = progress and not any(one.interactive for one in judges)  # a person needs the screen
        with progress_bar("answers", show=shown) as bar:
            bar.phase("reading")
            *sources, notes = scored_sources(
                data, requests, references, responses, track=track, split=split, prefix=prefix, ood=ood
            )
            known = pictured_in(folder, responses) if pictured is None and folder is not None else pictured
            scores = _score(
                *sources, judge=panel, track=track, max_latency=max_latency, time=time, batches=batches,
                ood=() if data else ood, compat=compat, strict=strict,
                flags=None if flags in (None, "off") else FlagPolicy(flags), max_judge_errors=max_judge_errors,
                scheme=scheme, resamples=resamples, seed=seed, concurrency=concurrency, progress=bar.reach,
                name=name or (folder_name(folder) if folder is not None else "submission"), pictured=known,
            )  # fmt: skip
    scores = replace(scores, notes=(*notes, *scores.notes), human=people, prices=prices)
    if baseline:
        scores = replace(scores, admission=admission_gate(scores, {str(run): load_focus(run) for run in baseline}))
    if folder is not None:
        if (folder / "parts").is_dir():  # what the model was shown when it was asked in this folder
            scores = replace(scores, pictures=load_pictures(folder)[0], **_models_of(folder, responses))
        scores.save(folder)
    return scores


def folder_name(folder: Path) -> str:
    """What a run in this folder is called.

    >>> folder_name(Path("runs/net"))
    'net'
    """
    return folder.name or folder.resolve().name


def _models_of(folder: Path, responses: Source) -> dict[str, Any]:
    """The model that this run folder asked for, and answers by the model name that its server returned."""
    if not isinstance(responses, str | Path) or Path(responses).resolve() != (folder / "responses.json").resolve():
        return {}
    model = load_record(folder, "focus").model
    return {"asked_model": str(model), "answered_by": count_models(load_cases(folder).collect())}


def _score(
    responses: Source, requests: Source, references: Source, *, judge: Judging | None, track: str | None,
    max_latency: float | None, time: TimeRule, batches: Batches | None, ood: Sequence[str], compat: str | None,
    strict: bool, flags: FlagPolicy | None, max_judge_errors: float, scheme: Scheme | None, resamples: int, seed: int,
    concurrency: int, progress: Progress, name: str, pictured: bool | None,
) -> FocusScores:  # fmt: skip
    check_compat(compat)
    limit, pooled_limit = time_limit(track, max_latency, time, compat)
    if batches is not None and pooled_limit is None:
        raise BadInput("batches: used with the time rule pooled only")
    if not 0 <= max_judge_errors <= 1:
        raise BadInput(f"max_judge_errors: found {max_judge_errors!r}, expected a share from 0 to 1")
    limited = limit is not None or pooled_limit is not None
    files = read_focus(requests, references, responses, timed=limited, compat=compat)
    if strict and files.problems:
        raise FocusProblems(files.problems)
    marked, flagged = mark_ood([question for question, _ in files.questions], ood)
    questions = list(marked)
    notes: list[str] = [*flagged, *note_ood(questions, ood)]
    members = () if pooled_limit is None else read_batches(batches, [question.id for question in questions])
    if limited and files.untimed:
        limit = pooled_limit = None
        notes.append("no response has a latency, so no time limit was applied")
    pairs = [(question, response) for question, (_, response) in zip(questions, files.questions, strict=True)]
    outcomes = [outcome(question, response, limit, compat) for question, response in pairs]
    judged = ask_judges(
        questions, outcomes, judge, policy=flags, compat=compat, concurrency=concurrency, progress=progress
    )
    results = results_table(questions, judged.outcomes)
    pooled = None
    if pooled_limit is not None:
        results, pooled = apply_budgets(results, members, pooled_limit, seed)
        notes += pooled.notes(seed)
        untimed = sum(response is not None and bool(response.untimed) for _, response in files.questions)
        notes += [f"{counted(untimed, 'answer')} without a usable latency, counted as 0 s"] if untimed else []
    drawn = scheme or ("cluster" if compat is None else "two_level")
    numbers = focus_numbers(
        results, limit=limit, scheme=drawn, drop_videoless=compat is not None, resamples=resamples, seed=seed
    )
    counts = _counts(files, results, judged)
    odd = off_track_groups(track, {question.group for question in questions if question.group})
    notes += [f"groups outside the frame track's taxonomy: {', '.join(odd)}"] if odd else []
    if limit is not None and counts["late"] == counts["scored"] > 1:
        notes.append(
            f"every answer came after the limit of {limit:g} s for a question: check that latency is in seconds; "
            "the time rule pooled gives a batch one budget instead"
        )
    notes += small_buckets(numbers.buckets)
    rule = "pooled" if pooled is not None else "none" if limit is None else "question"
    return FocusScores(
        name=printable(name), results=results, summary=numbers.summary, verdicts=judged.verdicts,
        buckets=numbers.buckets, said=_said(files.questions), flat=numbers.flat,
        video_mean=numbers.video_mean, pre_evaluation=numbers.pre_evaluation, counts=counts,
        problems=files.problems, notes=tuple(notes), track=track, limit=limit, compat=compat, time=pooled,
        settings={"flags": flags.value if flags else "off", "max_judge_errors": max_judge_errors, "scheme": drawn,
                  "resamples": resamples, "seed": seed, "time": rule},
        blind=score_blind_baseline(questions), questions=_fingerprint(questions),
        unrankable=_unrankable(counts, judged, flags, max_judge_errors), pictured=pictured,
    )  # fmt: skip


def _fingerprint(questions: list[FocusQuestion]) -> str:
    """The same for the same questions with the same references, in any order."""
    digest = hashlib.sha256()
    for q in sorted(questions, key=lambda question: question.id):
        options = sorted(map(repr, q.options.items())) if isinstance(q.options, dict) else q.options
        digest.update(repr((q.id, q.text, q.video, q.primary, q.ood, q.format, options, q.answer)).encode())
    return digest.hexdigest()[:32]


def results_table(questions: Sequence[FocusQuestion], outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """A row per question: what it is about, its status, whether it is right, and why."""
    rows = [
        (question.id, question.video, question.group or "unknown", question.primary or "unknown", question.ood,
         question.clinical, printable(question.format) if isinstance(question.format, str) else "unknown",
         outcome.latency, outcome.status, outcome.correct, printable(outcome.reason))
        for question, outcome in zip(questions, outcomes, strict=True)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ResultRow.dtypes(), orient="row")


def _said(pairs: Sequence[tuple[FocusQuestion, FocusResponse | None]]) -> pl.DataFrame:
    """Question, answer and reference as text, each shortened for the page."""
    rows = [
        (question.id, _when(question), _text(question.text), _text(response.content if response else ""),
         _text(question.answer))
        for question, response in pairs
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SaidRow.dtypes(), orient="row")


def _when(question: FocusQuestion) -> str:
    if question.start is None or question.end is None:
        return ""
    return f"{question.start:g} s" if question.start == question.end else f"{question.start:g} to {question.end:g} s"


def _text(value: object) -> str:
    text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text)} characters)"


def _counts(files: FocusFiles, results: pl.DataFrame, judged: Judged) -> dict[str, int]:
    statuses = dict(results.group_by("status").len().iter_rows())
    return {
        "questions": len(results), "scored": int(results["correctness"].is_not_null().sum()),
        **{status: int(statuses.get(status, 0)) for status in STATUSES},
        "flags": len(judged.flags), "judged": judged.pending,
        "orphan": files.n_orphan, "unreferenced": files.n_unreferenced, "duplicate": files.n_duplicate,
    }  # fmt: skip


def _unrankable(counts: dict[str, int], judged: Judged, flags: FlagPolicy | None, allowed: float) -> str:
    if flags is FlagPolicy.DISQUALIFY and judged.flags:
        first = next(iter(judged.flags))
        steering = f"{counted(len(judged.flags), 'answer')} {'tries' if len(judged.flags) == 1 else 'try'}"
        return f"{steering} to steer the judges (first {first}: {judged.flags[first]})"
    if counts["judge_error"] > allowed * judged.pending:
        return f"{counts['judge_error']} of {judged.pending} judged answers have no verdict, {allowed:.1%} are allowed"
    return "" if counts["scored"] else "no question could be scored"
