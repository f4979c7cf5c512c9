"""`run_intent`: ask a model every item, as it is and under conditions, in a folder that can be killed and resumed.

The folder ends with a case per item and condition, the items as they were asked, and small pictures of what went wrong,
so that everything after it needs neither model nor dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl

from surgeval.asking import (
    BLOCK,
    Answerer,
    FrameOptions,
    FrameSampling,
    QuestionWorker,
    answerer_forms,
    open_answerer,
    question_units,
)
from surgeval.console import require_models
from surgeval.console.commands import Help, common
from surgeval.console.panels import READING, RUNNING, SCORING
from surgeval.engine import Manifest, RunSummary, Unit, fingerprint, run
from surgeval.errors import BadInput, DataError, printable
from surgeval.models.chat import ChatOptions, open_chat
from surgeval.progress import phases
from surgeval.protocols.asked import NO_MEDIA, UNKNOWN_MEDIA, AskedRun, check_limit
from surgeval.protocols.intent.asking.conditions import (
    DEFAULT_INTERVENTIONS,
    INTERVENTIONS,
    Intervention,
    asked_again,
    asked_first,
    chosen_interventions,
    has_gaze,
    numbers_asked,
    of_split,
    posed,
    stratified,
)
from surgeval.protocols.intent.asking.gaze import GazeMode
from surgeval.protocols.intent.asking.look import Eyes, Seeing
from surgeval.protocols.intent.asking.prompt import PROMPT_VERSION, item_messages
from surgeval.protocols.intent.asking.reader import ModelReader
from surgeval.protocols.intent.asking.reading import ReadingWorker
from surgeval.protocols.intent.asking.responses import Responses
from surgeval.protocols.intent.cases import load_intent_cases
from surgeval.protocols.intent.items import ItemSet, OpenedItems, open_items, save_items
from surgeval.protocols.intent.result import IntentScores, load_intent
from surgeval.protocols.pictures import PICTURES, film_strip, save_pictures
from surgeval.protocols.result import refuse_dataset
from surgeval.qa import public_name
from surgeval.records import IntentQuestion

__all__ = ["INVALID", "ITEMS", "KEPT", "MAX_TOKENS", "IntentRun", "ask_items", "run_intent"]

_BESIDE = 4  # frames of an item that its kept picture shows
MAX_TOKENS = 1024  # of a reply: a model may reason before it chooses
# Shared by `run_intent` and `score_intent`.
ITEMS = Help("An items.jsonl, a folder that holds one, or a phantom.")
INVALID = Help("What a reply without a readable choice counts as; both are printed.", SCORING)
KEPT = common("pictures", "Items the page keeps a picture of, failed traps first.", SCORING)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IntentRun(AskedRun):
    """A finished run: `answers` has a row per item and condition. `subset` says which part of the items was asked."""

    subset: str = ""

    @cached_property
    def loaded(self) -> IntentScores:
        """Competency, reliability and what the conditions show."""
        return load_intent(self.folder)

    @property
    def exit_code(self) -> int:
        """1 when a question has no answer."""
        return self.summary.exit_code

    def to_json(self) -> dict[str, Any]:
        """How the run went, and its scores."""
        scores = self.loaded
        return {
            "folder": str(self.folder), "model": self.model, "questions": self.answers.height,
            "counts": dict(self.counts), "usage": asdict(self.usage), "failures": self.summary.to_frame().to_dicts(),
            "scores": scores.to_json(), "warnings": [*scores.reply_warnings, *scores.warnings],
            "answered_by": dict(scores.answered_by), "notes": list(self.notes),
        }  # fmt: skip


def run_intent(
    data: Annotated[str | Path, ITEMS],
    model: Annotated[
        str | Answerer[IntentQuestion],
        Help(f"One of {', '.join(answerer_forms(premises=True))}.", metavar="SPEC"),
    ],
    out: str | Path,
    *,
    interventions: Annotated[
        Iterable[Intervention] | str,
        Help("gaze, text-only, again, order, wrong-gaze with commas; or all, or none.", kind=str, metavar="LIST"),
    ] = ",".join(DEFAULT_INTERVENTIONS),
    split: Annotated[str | None, Help("Only the items of the videos of this split.")] = None,
    limit: Annotated[int | None, Help("Most items to ask, drawn evenly from skills and traps.", least=1)] = None,
    gaze: Annotated[GazeMode, Help("How gaze is shown: a circle, in words, both, or the path.", READING)] = "mark",
    frames: Annotated[int, Help("Frames of a clip.", READING, least=1, most=100)] = 8,
    sampling: Annotated[
        FrameSampling, Help("Which frames: evenly spaced, around the gaze, or the last.", READING)
    ] = "uniform",
    longest_edge: Annotated[int, Help("Pixels; larger images are made smaller.", READING, least=32, most=8192)] = 1024,
    jpeg_quality: Annotated[int, Help("Of the images sent.", READING, least=1, most=100)] = 90,
    concurrency: Annotated[
        int, Help("Questions at a time; local weights: one batch.", RUNNING, least=1, most=BLOCK)
    ] = 8,
    max_tokens: Annotated[int, Help("Longest reply of a chat model.", RUNNING, least=1)] = MAX_TOKENS,
    timeout: Annotated[float, Help("Seconds to wait for one reply.", RUNNING, least=0.1)] = 120.0,
    options: ChatOptions | None = None,
    retry: Annotated[bool, common("retry", "Ask again what failed; nothing else.")] = False,
    invalid: Annotated[Literal["wrong", "drop"], INVALID] = "wrong",
    reader: Annotated[
        str | None, Help("A second model that reads replies in which no choice is found.", SCORING, metavar="SPEC")
    ] = None,
    pictures: Annotated[int, KEPT] = PICTURES,
    seed: int = 0,
    progress: bool = True,
) -> IntentRun:
    """Ask a model what the clinician is doing and why, with traps; stopped runs are resumed by the same command.

    `data` is an `items.jsonl`, a folder that holds one, or a phantom. `model` is a name (`openai:MODEL@URL`, `hf:PATH`,
    `replay:FILE`, `prior[:TRAIN]`, `random[:SEED]`, `oracle`, `always-reject`, `always-accept`, an embedded model) or
    any `Answerer`. `interventions` says under which conditions items are asked beside the plain one (`all`, `none`, or
    their names). `gaze` says how gaze is shown: a circle (`mark`), in words (`text`), `both`, or as a path (`trail`).
    Of a clip up to `frames` frames are shown (`sampling`: `uniform`, around the `gaze`, or just before the `question`),
    made smaller to `longest_edge` and sent as JPEGs of quality `jpeg_quality`. `split` asks only the items of the
    videos of that split, `limit` only so many items, drawn evenly from skills and traps. `invalid` is what a reply
    without a readable choice counts as; with `reader`, a second model reads those. `max_tokens` and `timeout` hold for
    chat models, unless `options` has more to say. The same call resumes a run that was stopped; `retry` asks again what
    failed.

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> item = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
    ...         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> _ = (folder / "items.jsonl").write_text(json.dumps(item))
    >>> run_intent(folder, "oracle", folder / "run", progress=False)
    IntentRun of oracle: 1 answered
    """
    if isinstance(model, str) and model.startswith(("hf:", "phantom-")):
        require_models(f"model {model.partition(':')[0]}")
    _check(concurrency, limit, invalid)
    if isinstance(interventions, str):
        interventions = chosen_interventions(interventions)
    ordered = tuple(name for name in INTERVENTIONS if name in set(interventions))
    shown = FrameOptions(frames=frames, sampling=sampling, longest_edge=longest_edge, quality=jpeg_quality)
    seeing = Seeing(shown, gaze)
    with phases(show=progress) as display:
        display.phase("reading items")
        whole = open_items(data)
    part, part_label = of_split(whole, split)
    item_set, drawn_label = stratified(part, limit, seed)
    subset = "; ".join(filter(None, (part_label, drawn_label)))
    options = options or ChatOptions(max_tokens=max_tokens, timeout=timeout, seed=seed)
    answerer = _open(model, item_set, whole, gaze, options) if isinstance(model, str) else model
    eyes = Eyes(item_set.dataset, item_set.items, seeing)
    reading = ModelReader(open_chat(reader, options, role="reader"), Path(out)) if reader else None
    if isinstance(answerer, Responses):
        answerer.check_ids(whole)
        first, again = answerer.asked(item_set), False
    else:
        first = asked_first(item_set, ordered, looks=answerer.uses_images)
        again = "again" in ordered
    config = {
        "prompt": PROMPT_VERSION if answerer.cache_answers else 0, "interventions": list(ordered), "gaze": gaze,
        "gaze_style": asdict(seeing.style), "media": _media(answerer, eyes),
        "sampling": sampling, "frames": frames, "longest_edge": longest_edge, "jpeg_quality": jpeg_quality,
        "temperature": options.temperature, "max_tokens": options.max_tokens, "seed": seed, "subset": subset,
        "split": split, "limit": limit, "invalid": invalid, "reader": reading.identity if reading else "",
    }  # fmt: skip
    name = public_name(model) if isinstance(model, str) else answerer.identity
    try:
        with phases(show=progress) as display:
            display.note(f"asking {numbers_asked(first, len(item_set.traps), again=again)}")
            return ask_items(
                item_set, answerer, Path(out), first=first, again=again, config=config, name=name, subset=subset,
                eyes=eyes, reader=reading, concurrency=concurrency, pictures=pictures, retry=retry, progress=progress,
                notes=(*whole.warnings, *_notes(item_set, answerer, ordered)),
            )  # fmt: skip
    finally:
        if reading is not None:
            reading.close()


def _media(answerer: Answerer[IntentQuestion], eyes: Eyes) -> str:
    if isinstance(answerer, Responses):
        return UNKNOWN_MEDIA
    return eyes.media.identity if answerer.uses_images else NO_MEDIA


def _check(concurrency: int, limit: int | None, invalid: str) -> None:
    if not 1 <= concurrency <= BLOCK:
        raise BadInput(f"concurrency: found {concurrency}, expected 1 to {BLOCK}")
    check_limit(limit)
    if invalid not in ("wrong", "drop"):
        raise BadInput(f"invalid: found {invalid!r}, expected wrong or drop")


def _open(
    model: str, item_set: ItemSet, whole: ItemSet, gaze: GazeMode, options: ChatOptions
) -> Answerer[IntentQuestion]:
    """A model or reference row; what learns from items learns from the whole set's training split."""
    kind, _, rest = model.partition(":")
    if kind == "replay" and rest:
        return Responses(rest)
    return open_answerer(
        model, partial(item_messages, gaze=gaze),
        lambda source: (open_items(source, media=False) if source else whole).learnable,
        options, asked=item_set.items,
    )  # fmt: skip


def ask_items(
    item_set: OpenedItems,
    answerer: Answerer[IntentQuestion],
    out: Path,
    *,
    first: Sequence[IntentQuestion],
    again: bool,
    config: Mapping[str, Any],
    name: str,
    subset: str = "",
    eyes: Eyes,
    reader: ModelReader | None = None,
    concurrency: int = 8,
    pictures: int = PICTURES,
    retry: bool = False,
    progress: bool = True,
    notes: tuple[str, ...] = (),
) -> IntentRun:
    """Ask what is posed, then the failed traps again, and store what a page needs."""
    if not (out / "run.json").exists():
        refuse_dataset(out)
    manifest = Manifest("intent", config, _fingerprint(item_set.items), {"name": name, "identity": answerer.identity})
    posable = {question.id: question for question in first}
    posable |= {question.id: question for question in (posed(item, "again") for item in item_set.traps)}
    looking = eyes if answerer.uses_images else None
    asking = QuestionWorker(answerer, posable, out, read_frames=looking, concurrency=concurrency)
    worker = ReadingWorker(asking, posable, item_set.by_id, looking, reader)

    def do(units: Sequence[Unit], retry: bool, *, continued: bool = False) -> RunSummary:
        try:
            return run(units, worker, folder=out, manifest=manifest, retry=retry, progress=progress,
                       continued=continued)  # fmt: skip
        finally:
            asking.close()

    units = question_units(first)
    summary = do(units, retry)
    failed = asked_again(item_set, _choices(load_intent_cases(out))) if again else ()
    if failed:
        more = [replace(unit, key=f"again, {unit.key}") for unit in question_units(failed)]
        once_more = retry and not summary.failed  # what has just failed is not asked a third time
        whole = do([*units, *more], once_more, continued=True)
        summary = replace(
            whole, done=summary.done + whole.done, resumed=whole.units - summary.done - whole.done,
            damaged=summary.damaged + whole.damaged, seconds=summary.seconds + whole.seconds,
        )  # fmt: skip
    cases = load_intent_cases(out)
    save_items(out, item_set.items)
    save_pictures(out, _pictures(item_set, cases, eyes, pictures))
    return IntentRun(folder=out, model=name, answers=cases, summary=summary, notes=notes, subset=subset)


def _choices(cases: pl.DataFrame) -> dict[str, int | None]:
    """What every item that was answered chose in the plain condition."""
    rows = cases.filter((pl.col("condition") == "plain") & (pl.col("status") == "ok"))
    return dict(rows.select("item", "choice").iter_rows())


def _notes(
    item_set: ItemSet, answerer: Answerer[IntentQuestion], interventions: Sequence[Intervention]
) -> tuple[str, ...]:
    notes = []
    if answerer.cache_answers and not answerer.uses_images:
        notes.append("warning: the model takes no pictures: it was asked in text alone")
    unseen = [item for item in item_set.items if item.gaze and not has_gaze(item)]
    if unseen and {"gaze", "wrong-gaze"} & set(interventions):
        notes.append(
            f"note: {len(unseen)} items have a gaze and several pictures but no start and end: nobody knows where to "
            f"draw it, and they were not asked with gaze (first: {unseen[0].id})"
        )
    return tuple(notes)


def _pictures(item_set: OpenedItems, cases: pl.DataFrame, eyes: Eyes, count: int) -> dict[str, bytes]:
    """Small pictures by item, the gaze drawn: failed traps first, then what else was wrong, then the rest."""
    choices = _choices(cases)

    def rank(item: IntentQuestion) -> int:
        right = choices.get(item.id, item.answer) == item.answer
        return 2 if right else 0 if item.trap is not None else 1

    circled = replace(eyes.seeing, shown=replace(eyes.seeing.shown, frames=_BESIDE), gaze="mark")
    look = Eyes(item_set.dataset, (), circled)
    pictures = {}
    for item in sorted(item_set.items, key=rank)[:count]:
        try:
            shown = look(posed(item, "gaze"))
        except DataError:
            continue  # the case says what was wrong with the picture
        picture = film_strip([frame.jpeg for frame in shown[-_BESIDE:]])
        if picture is not None:
            pictures[item.id] = picture
    return pictures


def _fingerprint(items: Sequence[IntentQuestion]) -> str:
    return fingerprint([printable(json.dumps(asdict(item), sort_keys=True, default=str)) for item in items], "items")
