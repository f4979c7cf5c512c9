"""Generation: source records through templates and a chat model to items that passed every automatic check.

A batch is one record under one template: six questions. A reply that cannot be read, or questions that fail a check,
are asked for again with the faults shown; what still fails is kept aside with its raw text. Everything is computed
from the stored replies, so a killed run asks nothing twice and the same replies give the same files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, RunStopped, SurgevalError
from surgeval.progress import advance
from surgeval.qa import CachedChat, ChatError, Message, Reply, SchemaChat, Usage, run_in_threads
from surgeval.questions.checks import Facts, Fault, check_batch, check_question
from surgeval.questions.draft import Draft, UnreadableReply, read_drafts, reply_schema
from surgeval.questions.folder import write_set
from surgeval.questions.items import item_of, reordered
from surgeval.questions.pictures import picture_parts
from surgeval.questions.records import SourceRecord
from surgeval.questions.template import Template, assemble, fitting_templates, repair_text, templates
from surgeval.records import IntentQuestion

__all__ = ["MADE_BY", "Made", "Making", "Refusal", "make_questions"]

MADE_BY = "surgeval questions"
_SHOWN_REPLY = 20_000  # characters of a bad reply that its writer is shown again


@dataclass(frozen=True, slots=True)
class Making:
    """How questions are made. `keep_partial` keeps the sound questions of a batch that never came to six.

    >>> Making(options=4).frames
    8
    >>> Making(options=9)
    Traceback (most recent call last):
    surgeval.errors.BadInput: options: found 9, expected 2 to 8
    """

    options: int = 5
    repairs: int = 2
    frames: int = 8
    longest_edge: int = 1024
    keep_partial: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("options", 2, 8), ("repairs", 0, 10), ("frames", 0, 64), ("longest_edge", 64, 8192)):
            if not low <= getattr(self, name) <= high:
                raise BadInput(f"{name}: found {getattr(self, name)}, expected {low} to {high}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply (or a record) of which something was refused: which checks failed for what, and the raw text.

    `mended` says that a later reply to the same prompt gave what was missing here.

    >>> Refusal("op1", "open_surgery", 1, (Fault("six-skills", "", "5 questions"),), "{…}", False).attempt
    1
    """

    record: str
    template: str
    attempt: int
    faults: tuple[Fault, ...]
    raw: str
    mended: bool


@dataclass(frozen=True, slots=True)
class Made:
    """What came of it: items, refusals, batches that got no reply, and what it took.

    >>> Made().items
    ()
    """

    items: tuple[IntentQuestion, ...] = ()
    refused: tuple[Refusal, ...] = ()
    failed: tuple[str, ...] = ()
    spent: Usage = field(default_factory=Usage)
    stored: int = 0


def make_questions(
    records: Iterable[SourceRecord],
    folder: str | Path,
    chat: SchemaChat,
    out: str | Path,
    making: Making | None = None,
    *,
    use: Sequence[Template] = (),
    traps: bool = False,
    concurrency: int = 4,
) -> Made:
    """Make questions from records whose media lie in `folder`, and write the set to `out`.

    `use` are the templates to use; without them each record gets the one that fits it. `traps` adds both trap ones.

    >>> import tempfile
    >>> class Mute:
    ...     identity, sees = "mute", False
    ...     def complete(self, messages, schema=None):
    ...         return Reply("I would rather not.")
    >>> from surgeval.records import Gaze
    >>> record = SourceRecord("x1", "chest_xray", "p1", (), gaze=(Gaze(0, 0.2, 0.8, 1.0),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = make_questions([record], Path(folder), Mute(), Path(folder) / "set")
    >>> outcome.refused[0].faults[0].found
    'found no diagnosis, expected it for the template chest_xray'
    """
    folder, out = Path(folder), Path(out)
    making = making or Making()
    every = tuple(records)
    batches = [(record, template) for record in every for template in _templates(record, use, traps)]
    out.mkdir(parents=True, exist_ok=True)
    with CachedChat(chat, out, "reply") as cached:
        calls = [partial(_counted, cached, chat.sees, record, template, folder, making) for record, template in batches]
        done = run_in_threads(calls, concurrency)
    outcome = Made(
        tuple(item for batch in done for item in batch.items),
        tuple(refusal for batch in done for refusal in batch.refused),
        tuple(text for batch in done for text in batch.failed),
        cached.spent, cached.stored,
    )  # fmt: skip
    settings = {"made_by": MADE_BY, "model": chat.identity, "making": asdict(making),
                "templates": sorted({f"{t.name} {t.version}" for _, t in batches if t}),
                "records": len(every), "items": len(outcome.items), "refused": len(outcome.refused),
                "failed": list(outcome.failed)}  # fmt: skip
    write_set(out, folder, every, outcome.items, [_line(refusal) for refusal in outcome.refused], use, settings)
    return outcome


def _templates(record: SourceRecord, use: Sequence[Template], traps: bool) -> list[Template | None]:
    """What a record is asked about; None stands for a record that no template fits."""
    wanted: list[Template | None] = [*(use or fitting_templates(record))]
    more = [template for template in templates().values() if traps and template.trap and template not in use]
    return [*wanted, *more] or [None]


def _counted(
    chat: CachedChat, sees: bool, record: SourceRecord, template: Template | None, folder: Path, making: Making
) -> Made:
    try:
        if template is None:
            raise BadInput(f"record {record.id!r}: found no template for the scenario {record.scenario!r}")
        return _batch(chat, _messages(record, template, folder if sees else None, making), record, template, making)
    except ChatError as error:
        name = template.name if template else ""
        return Made(failed=(f"{record.id} {name}: {error}",))
    except RunStopped:
        raise
    except SurgevalError as error:  # the record itself cannot be used
        _, _, reason = str(error).partition(f"record {record.id!r}: ")
        fault = Fault("usable-record", f"record {record.id}", reason or str(error))
        return Made(refused=(Refusal(record.id, template.name if template else "", 0, (fault,), "", False),))
    finally:
        advance("batches")


def _messages(record: SourceRecord, template: Template, folder: Path | None, making: Making) -> list[Message]:
    prompt = assemble(template, record, making.options)
    if folder is None or not making.frames or not record.media:
        return [{"role": "user", "content": prompt}]
    window = record.start, record.end
    pictures = picture_parts(folder, record.media, window, most=making.frames, longest_edge=making.longest_edge)
    return [{"role": "user", "content": [*pictures, {"type": "text", "text": prompt}]}]


def _batch(chat: CachedChat, prompt: list[Message], record: SourceRecord, template: Template, making: Making) -> Made:
    """Ask, check, and ask again with the faults shown, until six sound questions are there or patience ends."""
    schema = reply_schema(template, making.options)
    sound: dict[str, Draft] = {}
    refused: list[Refusal] = []
    messages, complete = prompt, False
    for attempt in range(1, making.repairs + 2):
        reply = chat.ask(messages, schema)
        drafts, faults = _judged(reply, record, template, making)
        alone = check_batch(list(drafts.values()), template.rules)
        sound = {**drafts, **sound} if alone else drafts
        complete = not check_batch(list(sound.values()), template.rules)
        if drafts:
            faults += alone
        if faults:
            refused.append(Refusal(record.id, template.name, attempt, tuple(faults), reply.text or "", complete))
        if complete:
            break
        answer: Message = {"role": "assistant", "content": (reply.text or "")[:_SHOWN_REPLY]}
        messages = [*messages, answer, {"role": "user", "content": repair_text([str(fault) for fault in faults])}]
    refused = [replace(refusal, mended=complete) for refusal in refused]
    usable = sound if complete or making.keep_partial else {}
    items = [item_of(draft, record, template, record.media) for draft in usable.values()]
    return Made(tuple(_balanced(items, making.seed)), tuple(refused))


def _judged(
    reply: Reply, record: SourceRecord, template: Template, making: Making
) -> tuple[dict[str, Draft], list[Fault]]:
    """The sound questions of a reply by skill, and what is wrong with the others."""
    try:
        drafts = read_drafts(reply.text or "", template)
    except UnreadableReply as error:
        cut = " (cut off at the token limit)" if reply.finish == "length" else ""
        return {}, [Fault("readable-reply", "", f"{error}{cut}")]
    sound: dict[str, Draft] = {}
    faults: list[Fault] = []
    facts = Facts.of(record)
    for number, draft in enumerate(drafts, start=1):
        where = f"question {number}" + (f" ({draft.skill})" if draft.skill else "")
        wrong = check_question(draft, template.rules, facts, options=making.options, where=where)
        if not wrong and draft.skill in sound:
            wrong = [Fault("six-skills", where, "a second question for this skill")]
        if not wrong:
            sound[draft.skill] = draft
        faults += wrong
    return sound, faults


def _balanced(items: Sequence[IntentQuestion], seed: int) -> list[IntentQuestion]:
    """The items with their right options in positions drawn per batch: each position once before any comes twice.

    The draw knows only the batch, so a record that is added later moves no answer of another.
    """
    if not items:
        return []
    batch = items[0].id.rpartition(".")[0]
    draw = random.Random(f"{seed} {batch}")
    positions: list[int] = []
    moved = []
    for item in items:
        if not positions:
            positions = draw.sample(range(len(item.options)), len(item.options))
        others = [k for k in range(len(item.options)) if k != item.answer]
        draw.shuffle(others)
        others.insert(positions.pop(), item.answer)
        moved.append(reordered(item, tuple(others)))
    return moved


def _line(refusal: Refusal) -> str:
    told: dict[str, Any] = {**asdict(refusal), "faults": [asdict(fault) for fault in refusal.faults]}
    return json.dumps(told, ensure_ascii=False)
