"""`surgeval score focus` and `surgeval run focus`: score answers to surgical questions, or ask a model for them first.

A run scores its answers at once where nobody has to judge them or judges are named.
"""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from surgeval.console import (
    claim_folder,
    keep_times,
    print_frame,
    print_json,
    print_table,
    progress_bar,
    require_models,
    rich_console,
)
from surgeval.console.options import JsonOption, ResamplesOption, SeedOption
from surgeval.console.panels import JUDGING, READING, RUNNING, SCORING, grouped
from surgeval.errors import BadInput, visible
from surgeval.progress import phases
from surgeval.qa import ANSWERER_FORMS
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.protocols.focus.asking.run import FocusRun
    from surgeval.protocols.focus.result import Admission, FocusScores
    from surgeval.qa import Panel, Price, TiePolicy

_MANUAL_BESIDE_JSON = "--judge manual: found beside --json, expected one of them: a person needs the screen"
_LISTED = 10
_BLOCK = 32  # questions in flight at most: a run stores blocks of this size


# Whose latency limit applies: 5, 15 or 30 seconds.
Track: TypeAlias = Literal["frame", "segment", "procedure"]
# What an answer that tries to steer the judges costs.
Flags: TypeAlias = Literal["report", "incorrect", "disqualify", "off"]
# What an even vote means.
Tie: TypeAlias = Literal["judge_error", "incorrect", "correct"]
# What the track's seconds limit: the answer to a question, or with a setup allowance the answers of a batch.
Time: TypeAlias = Literal["question", "pooled"]
SchemeName: TypeAlias = Literal["cluster", "two_level"]  # what is resampled for intervals

JudgeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", metavar="SPEC",
        help="exact, openai:MODEL@URL, hf:PATH, table:FILE (qID → true/false/null) or manual; several make a panel.",
    ),
]  # fmt: skip


SplitOption = Annotated[
    str | None,
    typer.Option(help="Of a dataset: train, test, … or all. Default: test of published rows that have one."),
]
PrefixOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="Goes before the ids of a dataset, one for each --data, in their order."),
]
OodOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ood",
        metavar="SPEC",
        help="Questions out of distribution: data:NAME, procedure:TEXT or list:FILE (repeatable).",
    ),
]


@grouped(
    {
        JUDGING: "flags max_judge_errors tie quorum ask_all human price cache concurrency",
        READING: "split prefix ood",
        SCORING: "max_latency time batches compat strict scheme resamples seed name",
    }
)
def score(
    responses: Annotated[
        Path, typer.Option(help="The answers: JSON, or a .eval log of Inspect AI.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html, tables, scores.", show_default=False)],
    requests: Annotated[Path | None, typer.Option(help="The questions (JSON list).")] = None,
    references: Annotated[Path | None, typer.Option(help="Their references.")] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="In place of these two: a dataset, as for run (repeatable).")
    ] = None,
    split: SplitOption = None,
    prefix: PrefixOption = None,
    ood: OodOption = None,
    judge: JudgeOption = None,
    track: Annotated[Track | None, typer.Option(help="Sets the latency limit: 5, 15 or 30 s.")] = None,
    max_latency: Annotated[float | None, typer.Option(help="A latency limit in seconds.")] = None,
    time: Annotated[
        Time,
        typer.Option(help="question: a limit for each; pooled: 120 s + B × 5, 15 or 30 s for a batch of B questions."),
    ] = "question",
    batches: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="batch.json of a batch (repeatable). Default: all questions are one batch."),
    ] = None,
    compat: Annotated[
        str | None, typer.Option(help="orena-focus-0.4: score and vote as the challenge's package does.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse files with any problem, naming all.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again what has no verdict; stored verdicts are never asked twice.")
    ] = False,
    flags: Annotated[Flags, typer.Option(help="The cost of an answer that steers judges.")] = "report",
    max_judge_errors: Annotated[
        float, typer.Option(help="Share of judged answers without a verdict that may be ranked.")
    ] = 0.01,
    tie: Annotated[Tie, typer.Option(help="What an even vote of the panel means.")] = "judge_error",
    quorum: Annotated[int | None, typer.Option(help="Valid votes a verdict needs. Default: half.")] = None,
    ask_all: Annotated[bool, typer.Option("--ask-all", help="Ask every judge, to compare judges.")] = False,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A scored run to be beaten for admission (repeatable)."),
    ] = None,
    human: Annotated[
        Path | None, typer.Option(help="Verdicts of people (qID → true/false/null) to compare judges with.")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="JUDGE=P,C", help="A judge's cost per million prompt and completion tokens."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder of stored verdicts that runs share. Default: OUT.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Answers judged at a time.")] = 8,
    scheme: Annotated[
        SchemeName | None, typer.Option(help="What is resampled. Default: videos; with --compat two_level.")
    ] = None,
    resamples: ResamplesOption = 2000,
    seed: SeedOption = 0,
    name: Annotated[str | None, typer.Option(help="What to call the model. Default: the folder's.")] = None,
    json: JsonOption = False,
) -> int:
    """Score answers as the FOCUS challenge does, with a status and a reason for every question.

    Exit code 1 when answers are left without a verdict: the same command asks only those again.

    Example: [bold]surgeval score focus --requests requests.json --references references.json --responses answers.json
    --judge openai:judge-7b@http://localhost:8000/v1 --track segment --out runs/net[/bold]

    Example: [bold]surgeval score focus --data phantom --responses logs/focus.eval --out runs/net[/bold]
    """
    from surgeval.protocols.focus.method import score_focus
    from surgeval.protocols.focus.page import write_page_of
    from surgeval.protocols.focus.reading.sources import scored_sources
    from surgeval.protocols.focus.result import pictured_in
    from surgeval.protocols.pictures import load_pictures
    from surgeval.protocols.result import check_output
    from surgeval.qa import FlagPolicy, read_verdicts

    if retry and not (out / "scores.json").is_file():
        raise BadInput(f"--retry: {out}: found no scores.json, expected a folder that was scored before")
    check_output(out, "focus", own="scores.json")
    if not (out / "run.json").exists():
        claim_folder(out, "scores.json")
    people = read_verdicts(human) if human is not None else None
    with ExitStack() as stack:
        panel = _panel(stack, judge or [], cache or out, tie, quorum, ask_all, compat, json)
        prices = _prices(price or [], [judge.name for judge in panel.judges] if panel else [])
        bar = stack.enter_context(progress_bar("answers", show=not _interactive(panel)))  # a person needs the screen
        bar.phase("reading")
        *sources, parts = scored_sources(
            data, requests, references, responses, track=track, split=split, prefix=prefix or (), ood=ood or ()
        )
        scores = score_focus(
            *sources, judge=panel, track=track,
            max_latency=max_latency, time=time, batches=batches, ood=() if data else ood or (), compat=compat,
            strict=strict,
            flags=None if flags == "off" else FlagPolicy(flags), max_judge_errors=max_judge_errors,
            scheme=scheme, resamples=resamples, seed=seed, concurrency=concurrency,
            progress=bar.reach, name=name or _name(out), pictured=pictured_in(out, responses),
        )  # fmt: skip
    if parts:
        scores = replace(scores, notes=(*parts, *scores.notes))
    if (out / "parts").is_dir():  # what the model was shown, from when it was asked in this folder
        scores = replace(scores, pictures=load_pictures(out)[0], **_models_of(out, responses))
    scores = replace(scores, human=people, prices=prices, admission=_admission(scores, baseline or []))
    with progress_bar("answers") as bar:
        bar.phase("page")
        scores.save(out)
        page = write_page_of([scores], out)
    if json:
        print_json({**scores.to_json(), "results": scores.results.to_dicts(), "report": str(page)})
    else:
        _print(scores, page)
    return 1 if scores.counts["judge_error"] else 0


@grouped(
    {
        READING: "requests references split prefix ood",
        RUNNING: "frames overlay_time concurrency max_tokens timeout seed",
    }
)
def run(
    model: Annotated[
        str,
        typer.Option(metavar="SPEC", show_default=False, help=f"One of {', '.join(ANSWERER_FORMS)}."),
    ],
    out: Annotated[Path, typer.Option(help="The run's folder: new, or one to resume.", show_default=False)],
    data: Annotated[
        list[str] | None,
        typer.Option(help="A phantom, a requests/references folder, published rows, or hub:OWNER/NAME (repeatable)."),
    ] = None,
    requests: Annotated[Path | None, typer.Option(help="The questions, in place of --data.")] = None,
    references: Annotated[Path | None, typer.Option(help="Their references.")] = None,
    split: SplitOption = None,
    prefix: PrefixOption = None,
    ood: OodOption = None,
    media: Annotated[Path | None, typer.Option(help="Folder with a video file for every video.")] = None,
    frames: Annotated[int, typer.Option(min=1, help="Frames a question may show.")] = 8,
    overlay_time: Annotated[bool, typer.Option("--overlay-time", help="Burn the time (hh:mm:ss) into frames.")] = False,
    track: Annotated[
        Track | None, typer.Option(help="frame: one frame a question. Also sets the latency limit.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=_BLOCK, help="Questions at a time.")] = 8,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only so many, evenly from all videos.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply of a chat model.")] = 512,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one reply.")] = 120.0,
    judge: JudgeOption = None,
    pictures: Annotated[
        int, typer.Option(min=0, max=20_000, help="Questions the page keeps a picture of, wrong first.")
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="Draws the questions of --limit.")] = 0,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again what failed; nothing else.")] = False,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Ask a model FOCUS questions and store every answer; stopped runs are resumed by the same command.

    Writes responses.json beside requests.json and references.json. Scores at once when no answer needs a judge or
    --judge names one. Exit code 1 when a question has no answer or no verdict: --retry asks those again.

    Example: [bold]surgeval run focus --data phantom --model openai:vlm@http://localhost:8000/v1 --out runs/vlm[/bold]

    Example: [bold]surgeval run focus --data phantom --model prior --judge exact --out runs/prior[/bold]
    """
    if retry and not (out / "run.json").is_file():
        raise BadInput(f"--retry: {out}: found no run.json, expected the folder of a run")
    if model.startswith("hf:"):
        require_models("--model hf:…")
    with phases(show=not json) as shown:
        shown.phase("reading questions")
        from surgeval.models.chat import ChatOptions
        from surgeval.protocols.focus.asking.run import run_focus

        _check_judges(judge or [], json)  # before hours of asking
        asked = run_focus(
            data, model, out, requests=requests, references=references, split=split, prefix=prefix or (),
            ood=ood or (), media=media, frames=frames,
            overlay=overlay_time, track=track, concurrency=concurrency, limit=limit, seed=seed,
            options=ChatOptions(max_tokens=max_tokens, timeout=timeout), retry=retry, progress=not json,
        )  # fmt: skip
    scores, page = _scored(asked, judge or [], track, json, pictures)
    if json:
        print_json(_json(asked, scores, page, track))
    else:
        _say(asked, scores, page, track)
        keep_times(shown.times, out)
    return 1 if asked.summary.failed or (scores and scores.counts["judge_error"]) else 0


def _models_of(folder: Path, responses: Path) -> dict[str, Any]:
    """The model that this run folder asked for, and answers by the model name that its server returned."""
    from surgeval.engine import load_cases, load_record
    from surgeval.protocols.asked import count_models

    if responses.resolve() != (folder / "responses.json").resolve():
        return {}
    model = load_record(folder, "focus").model
    return {"asked_model": str(model), "answered_by": count_models(load_cases(folder).collect())}


def _panel(
    stack: ExitStack, specs: list[str], cache: Path, tie: TiePolicy, quorum: int | None, ask_all: bool,
    compat: str | None, json: bool,
) -> Panel | None:  # fmt: skip
    from surgeval.models.chat import open_chat
    from surgeval.qa import Panel, VerdictCache, open_judges, parse_judge

    if not specs:
        return None
    kinds = {parse_judge(spec).kind for spec in specs}
    if json and "manual" in kinds:
        raise BadInput(_MANUAL_BESIDE_JSON)
    judges = open_judges(specs, open_chat, original=compat is not None)
    stored = stack.enter_context(VerdictCache(cache)) if kinds - {"table", "exact"} else None
    return Panel(judges, tie=tie, quorum=quorum, cache=stored, short_circuit=not ask_all, compat=compat)


def _admission(scores: FocusScores, folders: list[Path]) -> Admission | None:
    """The gate against runs that were scored before, on the same questions."""
    from surgeval.protocols.focus.result import admission_gate, load_focus

    return admission_gate(scores, {str(folder): load_focus(folder) for folder in folders}) if folders else None


def _name(folder: Path) -> str:
    return folder.name or folder.resolve().name


def _interactive(panel: Panel | None) -> bool:
    return panel is not None and any(judge.interactive for judge in panel.judges)


def _prices(texts: list[str], judges: list[str]) -> dict[str, Price]:
    from surgeval.qa import Price, public_name

    prices: dict[str, Price] = {}
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
        prices[name] = Price(prompt, completion)
    return prices


def _check_judges(specs: list[str], json: bool) -> None:
    """Refuse what would fail once the answers are there: no such kind, no such verdict file, nobody at the screen."""
    from surgeval.qa import open_judges, parse_judge

    kinds = [parse_judge(spec).kind for spec in specs]
    if json and "manual" in kinds:
        raise BadInput(_MANUAL_BESIDE_JSON)
    open_judges([spec for spec, kind in zip(specs, kinds, strict=True) if kind == "table"])


def _scored(
    run: FocusRun, judge: list[str], track: Track | None, json: bool, pictures: int
) -> tuple[FocusScores | None, Path | None]:
    """The scores, unless a failed question would count as wrong or an answer would be left without a verdict."""
    from surgeval.protocols.asked import was_shown
    from surgeval.protocols.focus.method import score_focus
    from surgeval.protocols.focus.page import write_page_of

    if run.unasked or (run.judged and not judge):
        run.keep_pictures(pictures)
        return None, None
    with ExitStack() as stack:
        panel = _panel(stack, judge, run.folder, "judge_error", None, False, None, json)
        bar = stack.enter_context(progress_bar("answers", show=not _interactive(panel)))
        bar.phase("scoring")
        scores = score_focus(
            *run.sources, judge=panel, track=track, name=_name(run.folder), pictured=was_shown(run.media),
            progress=bar.reach,
        )  # fmt: skip
        bar.phase("page")
        asked = [note for note in run.notes if not note.startswith("warning: ")]  # the split, and what is ood
        asked += [f"a subset was asked: {run.subset}"] if run.subset else []
        scores = replace(
            scores, notes=(*scores.notes, *asked), pictures=run.pictures(pictures, scores.results),
            asked_model=run.model, answered_by=run.answered_by,
        )  # fmt: skip
        scores.save(run.folder)
        return scores, write_page_of([scores], run.folder)


def _command(run: FocusRun, track: Track | None) -> str:
    """The command that scores this run, ready for a shell."""
    words = ["surgeval", "score", "focus"]
    for option, path in zip(("--responses", "--requests", "--references"), run.sources, strict=True):
        words += [option, str(path)]
    words += ["--track", track] if track else []
    words += ["--judge", "SPEC"] if run.judged else []
    return shlex.join([*words, "--out", str(run.folder)])


def _json(run: FocusRun, scores: FocusScores | None, page: Path | None, track: Track | None) -> dict[str, Any]:
    return {
        "folder": str(run.folder), "model": run.model, "media": run.media, "questions": run.answers.height,
        "subset": run.subset, "counts": run.counts, "usage": asdict(run.usage), "notes": list(run.notes),
        "failures": run.summary.to_frame().to_dicts(),
        "responses": str(run.sources[0]), "score_command": _command(run, track),
        "scores": scores.to_json() if scores else None, "report": str(page) if page else None,
    }  # fmt: skip


def _say(run: FocusRun, scores: FocusScores | None, page: Path | None, track: Track | None) -> None:
    say = rich_console().print
    for line in str(run).splitlines():
        say(visible(line))
    if scores is not None and page is not None:
        say()
        _print(scores, page)
    elif run.unasked:
        waiting = counted(run.unasked, "question")
        say(f"not scored: {waiting} without an answer yet; the same command with --retry asks only those")
    else:
        say("some answers need a judge (SPEC: openai:MODEL@URL, hf:PATH, table:FILE, exact or manual):")
        say(f"  {visible(_command(run, track))}")


def _print(scores: FocusScores, page: Path) -> None:
    from surgeval.protocols.focus.tables import judge_table
    from surgeval.stats import shown_bucket

    say = rich_console().print
    say(visible(scores.name))
    for warning in scores.reply_warnings:
        say(f"warning: {visible(warning)}")
    say(str(scores))
    if scores.admission is not None:
        say(f"{'admitted' if scores.admission.admitted else 'not admitted'}: {visible(scores.admission.reason)}")
    say()
    rows: list[tuple[Any, ...]] = [
        (shown_bucket(bucket.name), bucket.count, str(bucket.interval)) for bucket in scores.buckets
    ]
    print_table("flat accuracy by bucket", ["bucket", "scored", "accuracy"], rows)
    if scores.verdicts:
        say()
        print_frame("judges", judge_table(scores.judges))
    _print_problems(scores)
    for note in scores.notes:
        say(f"note: {note}")
    say(f"open {page}")


def _print_problems(scores: FocusScores) -> None:
    say = rich_console().print
    unheard = scores.results.filter(scores.results["status"] == "judge_error")
    for qid, reason in unheard.select("qID", "reason").head(_LISTED).iter_rows():
        say(f"no verdict: {visible(qid)}: {visible(reason)}")
    if unheard.height > _LISTED:
        say(f"no verdict: … and {unheard.height - _LISTED} more, in tables/results.csv")
    if scores.problems:
        say(f"{counted(len(scores.problems), 'problem')} in the files, first: {scores.problems[0]}")
