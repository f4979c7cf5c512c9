"""`surgeval run focus`: ask a model surgical questions, and score its answers where nobody has to judge them."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.console import JsonOption, console, print_json
from surgeval.errors import BadInput, visible
from surgeval.protocols.focus.command import MANUAL_BESIDE_JSON, Track, _panel, _print

if TYPE_CHECKING:
    from surgeval.protocols.focus._run import FocusRun
    from surgeval.protocols.focus.tables import FocusReport

_BLOCK = 32  # questions in flight at most: a run stores blocks of this size


def run(
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="SPEC", show_default=False,
            help="openai:MODEL@URL, hf:PATH, replay:FILE, prior[:TRAIN], random[:SEED] or oracle.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The run's folder: new, or one to resume.", show_default=False)],
    data: Annotated[
        str | None,
        typer.Option("--data", help="A phantom, a requests/references folder, published rows, or hub:OWNER/NAME."),
    ] = None,
    requests: Annotated[Path | None, typer.Option("--requests", help="The questions, in place of --data.")] = None,
    references: Annotated[Path | None, typer.Option("--references", help="Their references.")] = None,
    media: Annotated[Path | None, typer.Option("--media", help="Folder with a video file for every video.")] = None,
    frames: Annotated[int, typer.Option("--frames", min=1, help="Frames a question may show.")] = 8,
    overlay_time: Annotated[bool, typer.Option("--overlay-time", help="Burn the time (hh:mm:ss) into frames.")] = False,
    track: Annotated[
        Track | None, typer.Option("--track", help="frame: one frame a question. Also sets the latency limit.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, max=_BLOCK, help="Questions at a time.")] = 8,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Ask only the first questions.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest reply of a chat model.")] = 512,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for one reply.")] = 120.0,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge", metavar="SPEC",
            help="Judge and score at once: exact, openai:MODEL@URL, hf:PATH, table:FILE or manual (repeatable).",
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again what failed; nothing else.")] = False,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Ask a model FOCUS questions and store every answer; stopped runs are resumed by the same command.

    Writes responses.json beside requests.json and references.json. Scores at once when no answer needs a judge or
    --judge names one. Exit code 1 when a question has no answer or no verdict: --retry asks those again.

    Example: [bold]surgeval run focus --data phantom --model openai:vlm@http://localhost:8000/v1 --out runs/vlm[/bold]

    Example: [bold]surgeval run focus --data phantom --model prior --judge exact --out runs/prior[/bold]
    """
    from surgeval.models.chat import ChatOptions
    from surgeval.protocols.focus._run import run_focus

    if retry and not (out / "run.json").is_file():
        raise BadInput(f"--retry: {out}: found no run.json, expected the folder of a run")
    _check_judges(judge or [], json)  # before hours of asking
    found = run_focus(
        data, model, out, requests=requests, references=references, media=media, frames=frames, overlay=overlay_time,
        track=track.value if track else None, concurrency=concurrency, limit=limit,
        options=ChatOptions(max_tokens=max_tokens, timeout=timeout), retry=retry, progress=not json,
    )  # fmt: skip
    report, page = _scored(found, judge or [], track, json)
    if json:
        print_json(_json(found, report, page, track))
    else:
        _say(found, report, page, track)
    return 1 if found.summary.failed or (report and report.scores.counts["judge_error"]) else 0


def _check_judges(specs: list[str], json: bool) -> None:
    """Refuse what would fail once the answers are there: no such kind, no such verdict file, nobody at the screen."""
    from surgeval.qa.judging import open_judges, parse_judge

    kinds = [parse_judge(spec).kind for spec in specs]
    if json and "manual" in kinds:
        raise BadInput(MANUAL_BESIDE_JSON)
    open_judges([spec for spec, kind in zip(specs, kinds, strict=True) if kind == "table"])


def _scored(run: FocusRun, judge: list[str], track: Track | None, json: bool) -> tuple[FocusReport | None, Path | None]:
    """The scores, unless a failed question would count as wrong or an answer would be left without a verdict."""
    from surgeval.protocols.focus.method import score_focus
    from surgeval.protocols.focus.page import write_focus_report
    from surgeval.protocols.focus.tables import FocusReport

    if run.unasked or (run.judged and not judge):
        return None, None
    with ExitStack() as stack:
        panel = _panel(stack, judge, run.folder / "verdicts.sqlite", "judge_error", None, False, None, json)
        scores = score_focus(*run.sources, judge=panel, track=track.value if track else None)
    report = FocusReport(scores, run.folder.name or run.folder.resolve().name)
    return report, write_focus_report(report, run.folder)


def _command(run: FocusRun, track: Track | None) -> str:
    """The command that scores this run, ready for a shell."""
    words = ["surgeval", "score", "focus"]
    for option, path in zip(("--requests", "--references", "--responses"), run.sources, strict=True):
        words += [option, str(path)]
    words += ["--track", track.value] if track else []
    words += ["--judge", "SPEC"] if run.judged else []
    return shlex.join([*words, "--out", str(run.folder)])


def _json(run: FocusRun, report: FocusReport | None, page: Path | None, track: Track | None) -> dict[str, Any]:
    from surgeval.protocols.focus.tables import focus_json

    return {
        "folder": str(run.folder), "model": run.model, "media": run.media, "questions": run.answers.height,
        "counts": run.counts, "failures": run.summary.to_frame().to_dicts(), "notes": list(run.notes),
        "responses": str(run.sources[2]), "score_command": _command(run, track),
        "scores": focus_json(report) if report else None, "report": str(page) if page else None,
    }  # fmt: skip


def _say(run: FocusRun, report: FocusReport | None, page: Path | None, track: Track | None) -> None:
    say = console().print
    for line in str(run).splitlines():
        say(visible(line))
    if report is not None and page is not None:
        say()
        _print(report, page)
    elif run.unasked:
        say(f"not scored: {run.unasked} questions have no answer yet; the same command with --retry asks only those")
    else:
        say("some answers need a judge (SPEC: openai:MODEL@URL, hf:PATH, table:FILE, exact or manual):")
        say(f"  {visible(_command(run, track))}")
