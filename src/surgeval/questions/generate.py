"""Generate questions: source records, templates and a chat model give items that pass every automatic check.

A batch is one record with one template: six questions. If a reply cannot be read or questions fail a check, the model
is asked again and gets the list of faults; what still fails is stored with its raw text. The result is computed from
the stored replies, so a killed run asks nothing twice and the same replies give the same files.
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
from surgeval.questions.checks import Fault, check_question
from surgeval.questions.drafts import (
    Draft,
    Facts,
    UnreadableReply,
    draft_to_item,
    read_drafts,
    reorder_options,
    reply_schema,
)
from surgeval.questions.prompt_templates import Template, assemble_prompt, fitting_templates, repair_text, templates
from surgeval.questions.question_set import write_set
from surgeval.questions.set_checks import check_batch
from surgeval.questions.source_records import SourceRecord, encode_media
from surgeval.records import IntentQuestion

__all__ = ["MADE_BY", "GenerationResult", "GenerationSettings", "Refusal", "generate_questions"]

MADE_BY = "surgeval questions"
_SHOWN_REPLY = 20_000  # characters of a faulty reply that are sent back to the model


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """Settings of generation. `keep_partial` keeps the sound questions of a batch that stays incomplete.

    >>> GenerationSettings(options=4).frames
    8
    >>> GenerationSettings(options=9)
    Traceback (most recent call last):
    surgeval.errors.BadInput: options is 9; it must be between 2 and 8
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
                raise BadInput(f"{name} is {getattr(self, name)}; it must be between {low} and {high}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply or a record with refused questions: the checks that failed, and the raw text.

    `mended`: a later reply to the same prompt replaced the refused questions.

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
class GenerationResult:
    """Result of generation: items, refusals, batches without a reply, usage, and the number of stored replies.

    >>> GenerationResult().items
    ()
    """

    items: tuple[IntentQuestion, ...] = ()
    refused: tuple[Refusal, ...] = ()
    failed: tuple[str, ...] = ()
    spent: Usage = field(default_factory=Usage)
    stored: int = 0


def generate_questions(
    records: Iterable[SourceRecord],
    folder: str | Path,
    chat: SchemaChat,
    out: str | Path,
    settings: GenerationSettings | None = None,
    *,
    use: Sequence[Template] = (),
    traps: bool = False,
    concurrency: int = 4,
) -> GenerationResult:
    """Generate questions from records with media in `folder`, and write the set to `out`.

    `use` are the templates to use; by default each record gets the one that fits it. `traps` adds both trap templates.

    >>> import tempfile
    >>> class Silent:
    ...     identity, sees = "silent", False
    ...     def complete(self, messages, schema=None):
    ...         return Reply("I would rather not.")
    >>> from surgeval.records import Gaze
    >>> record = SourceRecord("x1", "chest_xray", "p1", (), gaze=(Gaze(0, 0.2, 0.8, 1.0),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = generate_questions([record], Path(folder), Silent(), Path(folder) / "set")
    >>> outcome.refused[0].faults[0].reason
    'no diagnosis, which the template chest_xray needs'
    """
    folder, out = Path(folder), Path(out)
    settings = settings or GenerationSettings()
    every = tuple(records)
    batches = [(record, template) for record in every for template in _templates(record, use, traps)]
    out.mkdir(parents=True, exist_ok=True)
    with CachedChat(chat, out, "reply") as cached:
        calls = [
            partial(_try_batch, cached, chat.sees, record, template, folder, settings) for record, template in batches
        ]
        done = run_in_threads(calls, concurrency)
    outcome = GenerationResult(
        tuple(item for batch in done for item in batch.items),
        tuple(refusal for batch in done for refusal in batch.refused),
        tuple(text for batch in done for text in batch.failed),
        cached.spent, cached.stored,
    )  # fmt: skip
    facts = {"made_by": MADE_BY, "model": chat.identity, "settings": asdict(settings),
                "templates": sorted({f"{t.name} {t.version}" for _, t in batches if t}),
                "records": len(every), "items": len(outcome.items), "refused": len(outcome.refused),
                "failed": list(outcome.failed)}  # fmt: skip
    write_set(out, folder, every, outcome.items, [_format_refusal(refusal) for refusal in outcome.refused], use, facts)
    return outcome


def _templates(record: SourceRecord, use: Sequence[Template], traps: bool) -> list[Template | None]:
    """The templates for a record; None if no template fits."""
    wanted: list[Template | None] = [*(use or fitting_templates(record))]
    more = [template for template in templates().values() if traps and template.trap and template not in use]
    return [*wanted, *more] or [None]


def _try_batch(
    chat: CachedChat,
    sees: bool,
    record: SourceRecord,
    template: Template | None,
    folder: Path,
    settings: GenerationSettings,
) -> GenerationResult:
    try:
        if template is None:
            raise BadInput(f"record {record.id!r}: no template fits the scenario {record.scenario!r}")
        return _generate_batch(
            chat, _messages(record, template, folder if sees else None, settings), record, template, settings
        )
    except ChatError as error:
        name = template.name if template else ""
        return GenerationResult(failed=(f"{record.id} {name}: {error}",))
    except RunStopped:
        raise
    except SurgevalError as error:  # the record is unusable
        _, _, reason = str(error).partition(f"record {record.id!r}: ")
        fault = Fault("usable-record", f"record {record.id}", reason or str(error))
        return GenerationResult(
            refused=(Refusal(record.id, template.name if template else "", 0, (fault,), "", False),)
        )
    finally:
        advance("batches")


def _messages(
    record: SourceRecord, template: Template, folder: Path | None, settings: GenerationSettings
) -> list[Message]:
    prompt = assemble_prompt(template, record, settings.options)
    if folder is None or not settings.frames or not record.media:
        return [{"role": "user", "content": prompt}]
    window = record.start, record.end
    pictures = encode_media(folder, record.media, window, most=settings.frames, longest_edge=settings.longest_edge)
    return [{"role": "user", "content": [*pictures, {"type": "text", "text": prompt}]}]


def _generate_batch(
    chat: CachedChat, prompt: list[Message], record: SourceRecord, template: Template, settings: GenerationSettings
) -> GenerationResult:
    """Ask for six questions, and ask again with the list of faults until they are sound or the repairs are used up."""
    schema = reply_schema(template, settings.options)
    sound: dict[str, Draft] = {}
    refused: list[Refusal] = []
    messages, complete = prompt, False
    for attempt in range(1, settings.repairs + 2):
        reply = chat.ask(messages, schema)
        drafts, faults = _check_reply(reply, record, template, settings)
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
    usable = sound if complete or settings.keep_partial else {}
    items = [draft_to_item(draft, record, template, record.media) for draft in usable.values()]
    return GenerationResult(tuple(_balance_positions(items, settings.seed)), tuple(refused))


def _check_reply(
    reply: Reply, record: SourceRecord, template: Template, settings: GenerationSettings
) -> tuple[dict[str, Draft], list[Fault]]:
    """The sound questions of a reply by skill, and the faults of the others."""
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
        wrong = check_question(draft, template.rules, facts, options=settings.options, where=where)
        if not wrong and draft.skill in sound:
            wrong = [Fault("six-skills", where, "a second question for this skill")]
        if not wrong:
            sound[draft.skill] = draft
        faults += wrong
    return sound, faults


def _balance_positions(items: Sequence[IntentQuestion], seed: int) -> list[IntentQuestion]:
    """The items with their right options in random positions: each position once per batch before any is repeated.

    Positions depend on the batch only, so adding a record does not change other items.
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
        moved.append(reorder_options(item, tuple(others)))
    return moved


def _format_refusal(refusal: Refusal) -> str:
    line: dict[str, Any] = {**asdict(refusal), "faults": [asdict(fault) for fault in refusal.faults]}
    return json.dumps(line, ensure_ascii=False)
