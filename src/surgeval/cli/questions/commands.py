"""`surgeval questions`: have a model write questions, check and probe them, have people judge them, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surgeval.cli.group import command_group
from surgeval.cli.questions.records import records
from surgeval.cli.questions.review import review
from surgeval.console import claim_folder, print_frame, print_json, print_table, progress_bar, rich_console
from surgeval.console.options import JsonOption, ResamplesOption, SeedOption
from surgeval.console.panels import RUNNING, grouped
from surgeval.errors import BadInput, visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.datasets import Problem
    from surgeval.qa import Price, SchemaChat, Usage
    from surgeval.questions import GenerationResult, SetReport

app = command_group("Make questions: generate, check, probe, review, export.", "surgeval questions check items.jsonl")

SetArgument = Annotated[Path, typer.Argument(help="A set's folder, or an items.jsonl.", show_default=False)]
ModelOption = Annotated[
    str, typer.Option("--model", metavar="SPEC", help="openai:MODEL@URL or hf:PATH.", show_default=False)
]
PriceOption = Annotated[
    str | None, typer.Option("--price", metavar="P,C", help="Cost per million prompt and completion tokens.")
]
ConcurrencyOption = Annotated[int, typer.Option("--concurrency", min=1, max=64, help="Requests at a time.")]
TimeoutOption = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for one reply.")]


def register(root: typer.Typer) -> None:
    """Add `questions` to the command."""
    root.add_typer(app, name="questions")


app.command("records")(records)


@app.command()
def template(
    name: Annotated[
        str | None, typer.Argument(help="Ours, or a TOML file; without it a list.", show_default=False)
    ] = None,
    scenes: Annotated[
        Path | None, typer.Option("--records", help="Print the prompt for the first of these records instead.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the templates, print one (to change a copy of it), or show the prompt it makes of a record.

    Example: [bold]surgeval questions template chest_xray --records records.jsonl[/bold]
    """
    from surgeval.questions import assemble_prompt, open_template, read_source_records, templates

    if name is None:
        rows = [(t.name, t.version, t.origin, ", ".join(t.scenarios), t.trap or "") for t in templates().values()]
        heads = ("template", "version", "origin", "scenarios", "trap")
        if json:
            print_json([dict(zip(heads, row, strict=True)) for row in rows])
        else:
            print_table("", heads, rows)
        return
    text = open_template(name).text
    if scenes is not None:
        first = next(iter(read_source_records(scenes)), None)
        if first is None:
            raise BadInput(f"{scenes}: found no record, expected at least one")
        text = assemble_prompt(open_template(name), first)
    if json:
        print_json({"name": name, "text": text})
    else:
        rich_console().print(text, soft_wrap=True)


@app.command("make")
@grouped({RUNNING: "repairs frames longest_edge keep_partial concurrency max_tokens temperature timeout seed"})
def make_set(
    scenes: Annotated[
        Path, typer.Argument(metavar="RECORDS", help="records.jsonl: the scenes to ask about.", show_default=False)
    ],
    model: ModelOption,
    out: Annotated[Path, typer.Option(help="Folder of the set; the same command resumes it.")],
    template: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Templates to use (repeatable), ours or a TOML file; default: what fits."),
    ] = None,
    traps: Annotated[bool, typer.Option("--traps", help="Both trap templates, beside those that fit.")] = False,
    options: Annotated[int, typer.Option(min=2, max=8, help="Options of a question.")] = 5,
    price: PriceOption = None,
    repairs: Annotated[int, typer.Option(min=0, max=10, help="Times a bad reply is sent back.")] = 2,
    frames: Annotated[int, typer.Option(min=0, max=64, help="Pictures of a scene that are shown.")] = 8,
    longest_edge: Annotated[int, typer.Option(min=64, max=8192, help="Pixels of a picture.")] = 1024,
    keep_partial: Annotated[
        bool, typer.Option("--keep-partial", help="Keep sound questions of a batch that never came to six.")
    ] = False,
    concurrency: ConcurrencyOption = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply.")] = 8_000,
    temperature: Annotated[float, typer.Option(min=0, help="Of the generator.")] = 0.0,
    timeout: TimeoutOption = 300.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the order of options.")] = 0,
    json: JsonOption = False,
) -> int:
    """Have a chat model write six questions per scene and template, and keep those that pass every check.

    Faults are shown to the model and it tries again; what still fails is in refused.jsonl with its raw text and the
    names of the checks. Replies are stored at once: the same command goes on where it was stopped.

    Example: [bold]surgeval questions make records.jsonl --model openai:vlm@http://localhost:8000/v1 --out set[/bold]
    """
    from surgeval.datasets import keep_warnings
    from surgeval.questions import (
        GenerationSettings,
        fitting_templates,
        generate_questions,
        open_template,
        read_source_records,
    )

    cost = _price(price)
    making = GenerationSettings(options, repairs, frames, longest_edge, keep_partial, seed)
    problems: list[Problem] = []
    every = tuple(read_source_records(scenes, keep_warnings(problems)))
    if not every:
        raise BadInput(f"{scenes}: found no record, expected at least one")
    use = [open_template(name) for name in template or []]
    if not (use or traps or any(fitting_templates(record) for record in every)):
        known = ", ".join(sorted({repr(record.scenario) for record in every}))
        raise BadInput(f"{scenes}: found no template for the scenario {known}, expected --template NAME "
                       "(surgeval questions template lists them)")  # fmt: skip
    if out.resolve() == scenes.parent.resolve():
        raise BadInput(f"--out {out}: found the folder of the records, expected one of its own for the set")
    claim_folder(out, "set.json")
    chat = _chat(model, max_tokens, timeout, temperature)
    with progress_bar("batches", show=not json) as bar:
        bar.phase("asking", len(every) * (max(len(use), 1) + 2 * traps))
        outcome = generate_questions(
            every, scenes.parent, chat, out, making, use=use, traps=traps, concurrency=concurrency
        )
    for problem in problems if not json else ():
        rich_console().print(f"warning: {visible(str(problem))}")
    _tell_made(outcome, out, cost, json)
    return 1 if outcome.failed else 0


def _tell_made(outcome: GenerationResult, out: Path, price: Price | None, json: bool) -> None:
    from collections import Counter

    counts = Counter(fault.check for refusal in outcome.refused for fault in refusal.faults)
    lost = sum(not refusal.mended for refusal in outcome.refused)
    if json:
        print_json({"out": str(out), "items": len(outcome.items), "refused_replies": len(outcome.refused),
                    "not_mended": lost, "refused_by": dict(counts), "failed": list(outcome.failed),
                    **_spent(outcome.spent, price), "from_store": outcome.stored})  # fmt: skip
        return
    say = rich_console().print
    say(f"{counted(len(outcome.items), 'question')} in {out / 'items.jsonl'}")
    say(f"{len(outcome.refused)} replies or records refused, {lost} of them for good: {out / 'refused.jsonl'}")
    if counts:
        print_table("", ("check", "failed"), counts.most_common())
    for text in outcome.failed[:10]:
        say(f"no reply: {text}")
    say(_spent_line(outcome.spent, outcome.stored, price))


@app.command()
def check(
    questions: SetArgument,
    records: Annotated[Path | None, typer.Option(help="The records, if not beside the items.")] = None,
    options: Annotated[int | None, typer.Option(min=2, max=8, help="Options each must have.")] = None,
    every: Annotated[bool, typer.Option("--all", help="List every fault, not one per check.")] = False,
    json: JsonOption = False,
) -> int:
    """Apply every automatic check to a set, or to any items.jsonl; exit code 1 when one fails.

    Example: [bold]surgeval questions check set[/bold]
    """
    from surgeval.questions import inspect_set, open_set

    opened = open_set(questions, records)
    report = inspect_set(opened, options=options)
    for warning in opened.warnings if not json else ():
        rich_console().print(f"warning: {visible(warning)}")
    if json:
        print_json(report.to_json())
    else:
        _tell_report(report, every)
    return 0 if report.sound else 1


def _tell_report(report: SetReport, every: bool) -> None:
    from surgeval.stats import number_text, with_ends

    say = rich_console().print
    faults = "no check failed" if report.sound else f"faults: {len(report.faults)}"
    say(f"{counted(report.items, 'question')}, {faults}")
    if every:
        print_table("", ("check", "where", "reason"), [(f.check, f.where, f.reason) for f in report.faults])
    elif not report.sound:
        print_frame("", report.to_frame())
    if report.positions:
        say("right options: " + ", ".join(f"{letter} {count}" for letter, count in report.positions.items()))
    if bias := report.longest:
        share, chance = with_ends(bias.share, *bias.interval, "share"), number_text(bias.chance, "share")
        say(f"the right option is the longest of {share}, by chance {chance}")
    for text in report.unchecked:
        say(f"not checked: {text}")


@app.command()
@grouped({RUNNING: "concurrency max_tokens timeout"})
def probe(
    questions: SetArgument,
    model: ModelOption,
    gaze: Annotated[bool, typer.Option("--gaze", help="Also with pictures, without and with the gaze.")] = False,
    rotations: Annotated[int, typer.Option(min=1, max=8, help="Orders of the options asked.")] = 3,
    price: PriceOption = None,
    concurrency: ConcurrencyOption = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply.")] = 1_024,
    timeout: TimeoutOption = 120.0,
    json: JsonOption = False,
) -> int:
    """Ask a model the questions without their pictures: what it answers every time can be guessed.

    With --gaze the questions that claim to depend on the gaze are tried with and without it. `surgeval questions
    check` then names both kinds. Replies are stored: the same command goes on where it was stopped.

    Example: [bold]surgeval questions probe set --model openai:vlm@http://localhost:8000/v1[/bold]
    """
    from surgeval.questions import gaze_confirmed, guessable, open_set, probe_items

    cost = _price(price)
    opened = open_set(questions)
    conditions = ("text-only", "plain", "gaze") if gaze else ("text-only",)
    chat = _chat(model, max_tokens, timeout, 0.0)
    with progress_bar("replies", show=not json) as bar:
        asked = sum(min(rotations, len(item.options)) for item in opened.items)
        bar.phase("asking", asked * len(conditions))
        probed = probe_items(opened, chat, conditions, rotations=rotations, concurrency=concurrency)
    known, needing = guessable(probed.rows), [item.id for item in opened.items if item.gaze_dependent]
    confirmed = sorted(gaze_confirmed(probed.rows) & set(needing))
    rows = []
    for condition in conditions:
        right = [row.right for row in probed.rows if row.condition == condition]
        rows.append((condition, len(right), sum(right) / len(right) if right else None))
    if json:
        print_json({"items": len(opened.items), "accuracy": {row[0]: row[2] for row in rows}, "guessable": known,
                    "gaze_confirmed": confirmed if gaze else None, "failed": list(probed.failed),
                    **_spent(probed.spent, cost), "from_store": probed.stored})  # fmt: skip
    else:
        say = rich_console().print
        print_table("", ("shown", "replies", "right"), rows)
        say(f"guessable without a picture: {len(known)} of {len(opened.items)}")
        if gaze:
            say(f"right with the gaze and not without: {len(confirmed)} of {len(needing)} that say they depend on it")
        for text in probed.failed[:10]:
            say(f"no reply: {text}")
        say(_spent_line(probed.spent, probed.stored, cost))
    return 1 if probed.failed else 0


app.command("review")(review)


@app.command()
def agreement(
    questions: SetArgument, resamples: ResamplesOption = 2_000, seed: SeedOption = 0, json: JsonOption = False
) -> None:
    """How far the reviewers of a set agree: Cohen's kappa per pair, Fleiss' kappa of all, intervals over clusters.

    Example: [bold]surgeval questions agreement set[/bold]
    """
    from collections import Counter

    from surgeval.questions import agreement, agreement_frame, decide, open_set

    opened = open_set(questions)
    rows = agreement(opened, resamples=resamples, seed=seed)
    status = Counter(decision.status for decision in decide(opened).values())
    if json:
        print_json({"agreement": [row.to_json() for row in rows], "decisions": dict(status)})
        return
    if rows:
        print_frame("", agreement_frame(rows))
    else:
        rich_console().print("no two people have judged the same item yet")
    rich_console().print(", ".join(f"{count} {name}" for name, count in status.most_common()))


@app.command()
def export(
    questions: SetArgument,
    out: Annotated[Path, typer.Option(help="Folder for items.jsonl, media and export.json.")],
    options: Annotated[int | None, typer.Option(min=2, max=8, help="Options to keep, for instance 4 of 5.")] = None,
    reviewers: Annotated[int, typer.Option(min=1, max=20, help="Reviews that an item needs.")] = 2,
    drop_guessable: Annotated[bool, typer.Option("--drop-guessable", help="Leave out what a probe guessed.")] = False,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Reviewers by number, not by name.")] = False,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Write the items that the reviewers accepted, with the trail of their review.

    Example: [bold]surgeval questions export set --options 4 --out benchmark[/bold]
    """
    from collections import Counter

    from surgeval.questions import export_set, open_set, skills_by_scenario

    opened = open_set(questions)
    if out.resolve() == opened.folder.resolve():
        raise BadInput(f"--out {out}: found the set itself, expected a folder of its own for the export")
    claim_folder(out, "export.json")
    done = export_set(
        opened, out, options=options, reviewers=reviewers, drop_guessable=drop_guessable, anonymous=anonymous, seed=seed
    )
    reasons = Counter(why.partition(":")[0] for why in done.left.values())
    table = skills_by_scenario(done.items)
    if json:
        told: dict[str, Any] = {"out": str(out), "items": len(done.items), "not_exported": done.left}
        print_json({**told, "skills_by_scenario": table.to_dicts()})
        return
    say = rich_console().print
    say(f"{counted(len(done.items), 'question')} in {out / 'items.jsonl'}")
    for why, count in reasons.most_common():
        say(f"{count} not exported: {why}")
    print_frame("", table)


def _chat(model: str, max_tokens: int, timeout: float, temperature: float) -> SchemaChat:
    from surgeval.console import require_models
    from surgeval.models.chat import ChatOptions, open_chat

    if model.startswith("hf:"):
        require_models("--model hf:…")
    return open_chat(model, ChatOptions(max_tokens=max_tokens, timeout=timeout, temperature=temperature))


def _price(text: str | None) -> Price | None:
    from surgeval.qa import Price

    if text is None:
        return None
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--price {text!r}: expected PROMPT,COMPLETION, two costs per million tokens") from None
    if not (0 <= prompt < 1e9 and 0 <= completion < 1e9):
        raise BadInput(f"--price {text!r}: expected PROMPT,COMPLETION, two costs of 0 or more")
    return Price(prompt, completion)


def _spent(spent: Usage, price: Price | None) -> dict[str, Any]:
    return {"requests": spent.requests, "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens, "cost": spent.cost(price)}  # fmt: skip


def _spent_line(spent: Usage, stored: int, price: Price | None) -> str:
    cost = spent.cost(price)
    told = "" if cost is None else f", cost {cost:.4g}"
    tokens = f"{spent.prompt_tokens} + {spent.completion_tokens} tokens"
    return f"{spent.requests} requests ({tokens}{told}), {stored} replies from the store"
