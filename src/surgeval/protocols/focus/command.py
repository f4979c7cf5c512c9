"""`surgeval score focus`: score answers to surgical questions that were given elsewhere."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.console import JsonOption, console, print_frame, print_json, print_table, progress
from surgeval.errors import BadInput, DataError, visible

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import Admission, FocusScores
    from surgeval.protocols.focus.tables import FocusReport
    from surgeval.qa.chat import Price
    from surgeval.qa.judging import Panel, TiePolicy

MANUAL_BESIDE_JSON = "--judge manual: found beside --json, expected one of them: a person needs the screen"
_LISTED = 10


class Track(StrEnum):
    """Whose latency limit applies: 5, 15 or 30 seconds."""

    frame = "frame"
    segment = "segment"
    procedure = "procedure"


class Flags(StrEnum):
    """What an answer that tries to steer the judges costs."""

    report = "report"
    incorrect = "incorrect"
    disqualify = "disqualify"
    off = "off"


class Tie(StrEnum):
    """What an even vote means."""

    judge_error = "judge_error"
    incorrect = "incorrect"
    correct = "correct"


class SchemeName(StrEnum):
    """What is resampled for intervals."""

    cluster = "cluster"
    two_level = "two_level"


def score(
    requests: Annotated[Path, typer.Option("--requests", help="The questions (JSON list).", show_default=False)],
    references: Annotated[Path, typer.Option("--references", help="Their references.", show_default=False)],
    responses: Annotated[Path, typer.Option("--responses", help="The answers to score.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder for report.html, tables, scores.", show_default=False)],
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge", metavar="SPEC",
            help="openai:MODEL@URL, hf:PATH, table:FILE (qID → true/false/null), exact, manual; several make a panel.",
        ),
    ] = None,
    track: Annotated[Track | None, typer.Option("--track", help="Sets the latency limit: 5, 15 or 30 s.")] = None,
    max_latency: Annotated[float | None, typer.Option("--max-latency", help="A latency limit in seconds.")] = None,
    compat: Annotated[
        str | None, typer.Option("--compat", help="orena-focus-0.4: score and vote as the challenge's package does.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse files with any problem, naming all.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again what has no verdict; stored verdicts are never asked twice.")
    ] = False,
    flags: Annotated[Flags, typer.Option("--flags", help="The cost of an answer that steers judges.")] = Flags.report,
    max_judge_errors: Annotated[
        float, typer.Option("--max-judge-errors", help="Share of judged answers without a verdict that may be ranked.")
    ] = 0.01,
    tie: Annotated[Tie, typer.Option("--tie", help="What an even vote of the panel means.")] = Tie.judge_error,
    quorum: Annotated[int | None, typer.Option("--quorum", help="Valid votes a verdict needs. Default: half.")] = None,
    ask_all: Annotated[bool, typer.Option("--ask-all", help="Ask every judge, to compare judges.")] = False,
    baseline: Annotated[
        list[Path] | None,
        typer.Option("--baseline", metavar="DIR", help="A scored run to be beaten for admission (repeatable)."),
    ] = None,
    human: Annotated[
        Path | None, typer.Option("--human", help="Verdicts of people (qID → true/false/null) to compare judges with.")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option("--price", metavar="JUDGE=P,C", help="A judge's cost per million prompt and completion tokens."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", help="File of stored verdicts. Default: OUT/verdicts.sqlite.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Answers judged at a time.")] = 8,
    scheme: Annotated[
        SchemeName | None, typer.Option("--scheme", help="What is resampled. Default: videos; with --compat two_level.")
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, max=1_000_000, help="Resamples for intervals.")
    ] = 2000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resamples.")] = 0,
    name: Annotated[str | None, typer.Option("--name", help="What to call the model. Default: the folder's.")] = None,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Score answers as the FOCUS challenge does, with a status and a reason for every question.

    Exit code 1 when answers are left without a verdict: the same command asks only those again.

    Example: [bold]surgeval score focus --requests requests.json --references references.json --responses answers.json
    --judge openai:judge-7b@http://localhost:8000/v1 --track segment --out runs/net[/bold]
    """
    from surgeval.protocols.focus.method import score_focus
    from surgeval.protocols.focus.page import write_focus_report
    from surgeval.protocols.focus.tables import FocusReport, focus_json
    from surgeval.qa.judging import read_verdicts
    from surgeval.qa.screening import FlagPolicy

    if retry and not (out / "scores.json").is_file():
        raise BadInput(f"--retry: {out}: found no scores.json, expected a folder that was scored before")
    people = read_verdicts(human) if human is not None else None
    with ExitStack() as stack:
        panel = _panel(stack, judge or [], cache or out / "verdicts.sqlite", tie.value, quorum, ask_all, compat, json)
        prices = _prices(price or [], [one.name for one in panel.judges] if panel else [])
        bar = progress("answers")
        bar.disable = bar.disable or _interactive(panel)  # a person needs the screen
        stack.enter_context(bar)
        task = bar.add_task("judging", total=None)
        scores = score_focus(
            requests, references, responses, judge=panel, track=track.value if track else None,
            max_latency=max_latency, compat=compat, strict=strict,
            flags=None if flags is Flags.off else FlagPolicy(flags.value), max_judge_errors=max_judge_errors,
            scheme=scheme.value if scheme else None, resamples=resamples, seed=seed, workers=workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    gate = _admission(scores, baseline or [])
    report = FocusReport(scores, name or out.name or out.resolve().name, people, prices, gate)
    page = write_focus_report(report, out)
    if json:
        print_json({**focus_json(report), "results": scores.results.to_dicts(), "report": str(page)})
    else:
        _print(report, page)
    return 1 if scores.counts["judge_error"] else 0


def _panel(
    stack: ExitStack, specs: list[str], cache: Path, tie: TiePolicy, quorum: int | None, ask_all: bool,
    compat: str | None, json: bool,
) -> Panel | None:  # fmt: skip
    from surgeval.models.chat import open_chat
    from surgeval.qa.judging import Panel, VerdictCache, open_judges, parse_judge

    if not specs:
        return None
    kinds = {parse_judge(spec).kind for spec in specs}
    if json and "manual" in kinds:
        raise BadInput(MANUAL_BESIDE_JSON)
    judges = open_judges(specs, open_chat, original=compat is not None)
    stored = stack.enter_context(VerdictCache(cache)) if kinds - {"table", "exact"} else None
    return Panel(judges, tie=tie, quorum=quorum, cache=stored, short_circuit=not ask_all, compat=compat)


def _admission(scores: FocusScores, folders: list[Path]) -> Admission | None:
    """The gate against runs that were scored before, on the same questions."""
    from surgeval.protocols.focus._results_file import read_results, read_scores
    from surgeval.protocols.focus.result import admission_gate

    baselines: dict[str, FocusScores | float] = {}
    for folder in folders:
        value = read_scores(folder / "scores.json").get("pre_evaluation_score")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DataError(folder, field="pre_evaluation_score", found=value, expected="a number")
        odd = sorted(set(read_results(folder)["qID"]) ^ set(scores.results["qID"]))
        if odd:
            raise DataError(
                folder, record=f"qID {odd[0]}", found=f"other questions ({len(odd)} differ)", expected="the same ones"
            )
        baselines[str(folder)] = float(value)
    return admission_gate(scores, baselines) if baselines else None


def _interactive(panel: Panel | None) -> bool:
    return panel is not None and any(one.interactive for one in panel.judges)


def _prices(texts: list[str], judges: list[str]) -> dict[str, Price]:
    from surgeval.qa.chat import Price, public_name

    found: dict[str, Price] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        name = public_name(name)  # as reports call the judge
        try:
            prompt, completion = (float(part) for part in numbers.split(","))
        except ValueError:
            prompt = completion = -1.0
        if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
            raise BadInput(f"--price {name!r}: expected JUDGE=PROMPT,COMPLETION, two costs per million tokens")
        if name not in judges:
            raise BadInput(f"--price: found the judge {name!r}, expected one of {', '.join(judges) or 'none'}")
        found[name] = Price(prompt, completion)
    return found


def _print(report: FocusReport, page: Path) -> None:
    from surgeval.protocols.focus.tables import judge_table

    scores, say = report.scores, console().print
    say(visible(report.name))
    say(str(scores))
    if report.admission is not None:
        say(f"{'admitted' if report.admission.admitted else 'not admitted'}: {visible(report.admission.reason)}")
    say()
    rows: list[tuple[Any, ...]] = [(bucket.name, bucket.count, str(bucket.interval)) for bucket in scores.buckets]
    print_table("flat accuracy by bucket", ["bucket", "scored", "accuracy"], rows)
    if scores.verdicts:
        say()
        print_frame("judges", judge_table(report.judges))
    _print_problems(scores)
    for note in scores.notes:
        say(f"note: {note}")
    say(f"open {page}")


def _print_problems(scores: FocusScores) -> None:
    say = console().print
    unheard = scores.results.filter(scores.results["status"] == "judge_error")
    for qid, reason in unheard.select("qID", "reason").head(_LISTED).iter_rows():
        say(f"no verdict: {visible(qid)}: {visible(reason)}")
    if unheard.height > _LISTED:
        say(f"no verdict: … and {unheard.height - _LISTED} more, in tables/results.csv")
    if scores.problems:
        say(f"{len(scores.problems)} problems in the files, first: {scores.problems[0]}")
