"""`surgeval run intent` and `surgeval score intent`: ask a model the items, or score replies made elsewhere."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from surgeval.console import (
    claim_folder,
    keep_times,
    print_json,
    print_table,
    progress_bar,
    require_models,
    rich_console,
)
from surgeval.console.options import JsonOption, SeedOption
from surgeval.console.panels import READING, RUNNING, SCORING, grouped
from surgeval.errors import BadInput, visible
from surgeval.progress import phases
from surgeval.qa import ANSWERER_FORMS, REJECTING_FORMS

if TYPE_CHECKING:
    from surgeval.protocols.intent.asking.run import IntentRun
    from surgeval.protocols.intent.result import IntentScores

_BLOCK = 32  # questions in flight at most: a run stores blocks of this size

# How gaze is shown: a circle, coordinates in words, both, or the path.
GazeName: TypeAlias = Literal["mark", "text", "both", "trail"]
# Which frames of a clip are shown.
SamplingName: TypeAlias = Literal["uniform", "gaze", "question"]
# What a reply counts as in which no choice can be read.
Invalid: TypeAlias = Literal["wrong", "drop"]

DataOption = Annotated[
    Path, typer.Option("--data", help="An items.jsonl, a folder that holds one, or a phantom.", show_default=False)
]
InvalidOption = Annotated[
    Invalid, typer.Option("--invalid", help="What a reply without a readable choice counts as; both are printed.")
]
PicturesOption = Annotated[
    int, typer.Option("--pictures", min=0, max=20_000, help="Items the page keeps a picture of, failed traps first.")
]


@grouped(
    {
        READING: "gaze frames sampling longest_edge jpeg_quality",
        RUNNING: "concurrency max_tokens timeout retry",
        SCORING: "invalid reader pictures seed",
    }
)
def run(
    data: DataOption,
    model: Annotated[
        str,
        typer.Option(
            metavar="SPEC", show_default=False,
            help=f"One of {', '.join((*ANSWERER_FORMS, *REJECTING_FORMS))}.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run's folder: new, or one to resume.", show_default=False)],
    interventions: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="gaze, text-only, again, order, wrong-gaze with commas; or all, or none.",
        ),
    ] = "gaze,text-only,again",
    split: Annotated[
        str | None, typer.Option(help="Only the items of the videos of this split.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask at most so many items, evenly from skills and traps.")
    ] = None,
    gaze: Annotated[
        GazeName, typer.Option(help="How gaze is shown: a circle, in words, both, or the path.")
    ] = "mark",
    frames: Annotated[int, typer.Option(min=1, max=100, help="Frames of a clip.")] = 8,
    sampling: Annotated[
        SamplingName, typer.Option(help="Which frames: evenly spaced, around the gaze, or the last.")
    ] = "uniform",
    longest_edge: Annotated[
        int, typer.Option(min=32, max=8192, help="Pixels; larger pictures are made smaller.")
    ] = 1024,
    jpeg_quality: Annotated[int, typer.Option(min=1, max=100, help="Of the pictures sent.")] = 90,
    concurrency: Annotated[
        int, typer.Option(min=1, max=_BLOCK, help="Questions at a time; local weights: one batch.")
    ] = 8,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply of a chat model.")] = 1024,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one reply.")] = 120.0,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again what failed; nothing else.")] = False,
    invalid: InvalidOption = "wrong",
    reader: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="A second model that reads replies in which no choice is found."),
    ] = None,
    pictures: PicturesOption = 120,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Ask a model what the clinician is doing and why, with traps; stopped runs are resumed by the same command.

    Items are asked as they are, with gaze, without their pictures, and failed traps again; the number of questions is
    told first. Exit code 1 when a question has no answer: --retry asks those again.

    Example: [bold]surgeval run intent --data items.jsonl --model openai:vlm@http://localhost:8000/v1
    --out runs/vlm[/bold]

    Example: [bold]surgeval run intent --data phantom --model always-reject --out runs/reject[/bold]
    """
    from surgeval.protocols.intent.asking.conditions import chosen_interventions

    if retry and not (out / "run.json").is_file():
        raise BadInput(f"--retry: {out}: found no run.json, expected the folder of a run")
    named = chosen_interventions(interventions)
    if model.startswith(("hf:", "phantom-")):
        require_models(f"--model {model.partition(':')[0]}")
    with phases(show=not json) as shown:
        shown.phase("reading items")
        from surgeval.models.chat import ChatOptions
        from surgeval.protocols.intent.asking.run import run_intent
        from surgeval.protocols.intent.result import load_intent

        asked = run_intent(
            data, model, out, interventions=named, gaze=gaze, frames=frames, sampling=sampling,
            longest_edge=longest_edge, quality=jpeg_quality, split=split, limit=limit, seed=seed, invalid=invalid,
            concurrency=concurrency,
            options=ChatOptions(max_tokens=max_tokens, timeout=timeout, seed=seed), reader=reader,
            pictures=pictures, retry=retry, progress=not json,
            announce=None if json else lambda text: shown.note(f"asking {text}"),
        )  # fmt: skip
    scores = load_intent(out)
    page = _page(scores, out)
    if json:
        print_json(_json(asked, scores, page))
    else:
        _say(asked, scores, page)
        keep_times(shown.times, out)
    return 1 if asked.summary.failed else 0


@grouped({SCORING: "invalid name pictures"})
def score(
    data: DataOption,
    responses: Annotated[
        Path,
        typer.Option(
            show_default=False,
            help="The replies: JSON lines with id, content and, where it is not plain, condition; or a .eval log.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for report.html, tables, cases.", show_default=False)],
    invalid: InvalidOption = "wrong",
    name: Annotated[str | None, typer.Option(help="What to call the model. Default: the folder's.")] = None,
    pictures: PicturesOption = 120,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Score replies to multiple-choice items that were made elsewhere.

    A reply is read as a person would: a letter, an option's text, or the last choice after reasoning. An item without
    a reply counts as wrong, and the exit code is then 1.

    Example: [bold]surgeval score intent --data items.jsonl --responses replies.jsonl --out runs/vlm[/bold]
    """
    from surgeval.protocols.intent.method import score_intent
    from surgeval.protocols.intent.result import check_scores_folder

    check_scores_folder(out)
    if not (out / "run.json").exists():
        claim_folder(out, "report.html")  # written last
    called = name or out.resolve().name
    scores = score_intent(responses, data, invalid=invalid, name=called, pictures=pictures, progress=not json)
    scores.save(out)
    page = _page(scores, out)
    if json:
        print_json({**_numbers(scores), "warnings": [*scores.reply_warnings, *scores.warnings], "report": str(page)})
    else:
        _print(scores, page)
    return 1 if scores.failed or scores.missing else 0


def _page(scores: IntentScores, out: Path) -> Path:
    from surgeval.protocols.intent.page import write_page_of

    with progress_bar("items") as bar:
        bar.phase("page")
        page: Path = write_page_of([scores], out)
    return page


def _numbers(scores: IntentScores) -> dict[str, Any]:
    verdict = scores.verdict()
    headlines = [
        {"key": headline.key, "label": headline.label, **headline.interval.to_json(), "chance": headline.chance}
        for headline in scores.headlines()
    ]
    return {
        "name": scores.name, "items": len(scores.items), "cases": scores.answers.height, "missing": scores.missing,
        "failed": scores.failed, "invalid_rate": scores.unreadable, "subset": scores.subset,
        "verdict": verdict.to_json() if verdict else None, "numbers": headlines, "notes": list(scores.notes),
    }  # fmt: skip


def _json(run: IntentRun, scores: IntentScores, page: Path) -> dict[str, Any]:
    return {
        "folder": str(run.folder), "model": run.model, "questions": run.answers.height, "counts": run.counts,
        "usage": asdict(run.usage), "failures": run.summary.to_frame().to_dicts(), "scores": _numbers(scores),
        "warnings": [*scores.reply_warnings, *scores.warnings], "answered_by": dict(scores.answered_by),
        "notes": list(run.notes), "report": str(page),
    }  # fmt: skip


def _say(run: IntentRun, scores: IntentScores, page: Path) -> None:
    say = rich_console().print
    for line in str(run).splitlines():
        say(visible(line))
    say()
    _print(scores, page)


def _guessed(scores: IntentScores, name: str) -> str:
    """What guessing reaches, in whole per cent; "" where that is not known."""
    from surgeval.protocols.intent.scoring.weights import number_unit
    from surgeval.results import percent
    from surgeval.stats import number_text

    if name not in scores.chances:
        return ""
    unit, chance = number_unit(name), scores.chances[name]
    return percent(chance) if unit == "share" else number_text(chance, unit)


def _print(scores: IntentScores, page: Path) -> None:
    from surgeval.protocols.intent.scoring.weights import LABELS, number_unit

    say = rich_console().print
    for warning in scores.reply_warnings:
        say(f"warning: {visible(warning)}")
    for line in str(scores).splitlines():
        say(visible(line))
    rows = [
        (LABELS[name], interval.cell(number_unit(name)), _guessed(scores, name))
        for name, interval in scores.numbers.items()
    ]
    if rows:
        print_table("accuracy", ["number", "share", "guessing"], rows)
    for note in scores.notes:
        say(f"note: {visible(note)}")
    say(f"open {page}")
