"""Probes: a chat model answers the items without images, with images, and with images and gaze.

Without images the answer should not be known: an item that is answered rightly in every order of its options is
guessable. An answer that depends on the gaze is right with it and wrong without. Choices are stored in the item's own
order of options.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from surgeval.datasets import raise_errors
from surgeval.datasets.io import read_lines
from surgeval.errors import BadInput, DataError
from surgeval.files import describe_error, format_field, write_atomically
from surgeval.progress import advance
from surgeval.qa import CachedChat, ChatError, Message, SchemaChat, Usage, choice_prompt, read_choice, run_in_threads
from surgeval.questions.prompt_templates import describe_gaze
from surgeval.questions.question_set import QuestionSet, item_fingerprint
from surgeval.questions.source_records import encode_media
from surgeval.records import IntentQuestion

__all__ = [
    "CONDITIONS",
    "Condition",
    "ProbeResult",
    "ProbeRow",
    "gaze_confirmed",
    "guessable",
    "least_chosen",
    "probe_items",
    "read_probe",
]  # fmt: skip

Condition: TypeAlias = Literal["text-only", "plain", "gaze"]
CONDITIONS: tuple[str, ...] = get_args(Condition)
PROBE = "probe.jsonl"
_FRAMES, _LONGEST_EDGE = 8, 1024


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One reply: the option it chose (None: no clear choice), and whether it is right.

    >>> ProbeRow("q", "5f", "text-only", 0, 2, True, "m").right
    True
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    item: str
    content: str  # fingerprint of the item as it was asked
    condition: str
    rotation: int
    choice: int | None
    right: bool
    model: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a probe: replies, items without one, usage, and the number of replies that were stored before."""

    rows: tuple[ProbeRow, ...]
    failed: tuple[str, ...]
    spent: Usage
    stored: int


def probe_items(
    questions: QuestionSet,
    chat: SchemaChat,
    conditions: Collection[str] = ("text-only",),
    *,
    rotations: int = 3,
    concurrency: int = 4,
) -> ProbeResult:
    """Ask every item under each condition, with rotated options, so that preferring a letter does not help.

    >>> import tempfile
    >>> from surgeval.qa import Reply
    >>> class AlwaysA:
    ...     identity, sees = "always A", False
    ...     def complete(self, messages, schema=None):
    ...         return Reply("Answer: A")
    >>> item = IntentQuestion("q", "laparoscopy", "v", (), "spatial", "relative", "What do I see?", ("a", "b"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     probed = probe_items(QuestionSet(Path(folder), (item,), {}), AlwaysA(), rotations=2)
    >>> [row.choice for row in probed.rows], guessable(probed.rows)
    ([0, 1], [])
    """
    for name in conditions:
        if name not in CONDITIONS:
            raise BadInput(f"Unknown condition {name!r} of a probe. Use one of {', '.join(CONDITIONS)}.")
    if not 1 <= rotations <= 8:
        raise BadInput(f"rotations is {rotations}; it must be between 1 and 8.")
    if not chat.sees and set(conditions) - {"text-only"}:
        raise BadInput("The model accepts no images. Probe it with the condition text-only alone.")
    asked = [
        (item, name, turn) for item in questions.items for name in conditions
        for turn in range(min(rotations, len(item.options)))
    ]  # fmt: skip
    with CachedChat(chat, questions.folder, "reply") as cached:
        done = run_in_threads([partial(_ask_item, cached, questions.folder, *each) for each in asked], concurrency)
    rows = tuple(row for row in done if isinstance(row, ProbeRow))
    others = [
        row for row in read_probe(questions) if (row.model, row.condition) not in {(r.model, r.condition) for r in rows}
    ]
    lines = [json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in (*others, *rows)]
    write_atomically(questions.folder / PROBE, "".join(lines).encode())
    return ProbeResult(rows, tuple(text for text in done if isinstance(text, str)), cached.spent, cached.stored)


def _ask_item(chat: CachedChat, folder: Path, item: IntentQuestion, condition: str, turn: int) -> ProbeRow | str:
    count = len(item.options)
    order = [(k + turn) % count for k in range(count)]
    options = [item.options[k] for k in order]
    try:
        reply = chat.ask(_messages(folder, item, condition, choice_prompt(item.question, options)))
        choice = read_choice(reply.text or "", options).index
    except (ChatError, DataError, BadInput) as error:
        return f"{item.id} {condition}: {error}"
    finally:
        advance("replies")
    own = None if choice is None else order[choice]
    return ProbeRow(item.id, item_fingerprint(item), condition, turn, own, own == item.answer, chat.identity)


def _messages(folder: Path, item: IntentQuestion, condition: str, prompt: str) -> list[Message]:
    if condition == "text-only":
        return [{"role": "user", "content": prompt}]
    parts = encode_media(folder, item.media, (item.start, item.end), most=_FRAMES, longest_edge=_LONGEST_EDGE)
    if condition == "gaze":
        gaze = describe_gaze(item.gaze) or "not known"
        prompt = f"Where I look (x from the left, y from the top, of 1):\n{gaze}\n\n{prompt}"
    return [{"role": "user", "content": [*parts, {"type": "text", "text": prompt}]}]


def read_probe(questions: QuestionSet) -> list[ProbeRow]:
    """The rows of earlier probes of this set, without those of items that have changed since.

    >>> read_probe(QuestionSet(Path("no/such/folder"), (), {}))
    []
    """
    path = questions.folder / PROBE
    if not path.is_file():
        return []
    current = {item.id: (item_fingerprint(item), len(item.options)) for item in questions.items}
    rows = []
    for number, line in read_lines(path, raise_errors):
        row = _parse_row(line, path, number)
        content, count = current.get(row.item, ("", 0))
        if row.content == content and (row.choice is None or 0 <= row.choice < count):
            rows.append(row)
    return rows


def _parse_row(line: str, path: Path, number: int) -> ProbeRow:
    try:
        return _probe_rows().validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = format_field(first["loc"]) or None
        raise DataError(path, describe_error(first), record=f"line {number}", field=field) from None


@cache
def _probe_rows() -> TypeAdapter[ProbeRow]:
    return TypeAdapter(ProbeRow)


def guessable(rows: Iterable[ProbeRow]) -> list[str]:
    """The items that a model answered rightly without images in every order of the options.

    >>> guessable([ProbeRow("q", "", "text-only", 0, 1, True, "m"), ProbeRow("q", "", "text-only", 1, 1, True, "m")])
    ['q']
    """
    turns: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        if row.condition == "text-only":
            turns[row.item, row.model].append(row.right)
    return list(dict.fromkeys(item for (item, _), right in turns.items() if len(right) > 1 and all(right)))


def gaze_confirmed(rows: Sequence[ProbeRow]) -> set[str]:
    """The items that a model mostly answered rightly with the gaze and mostly not without it.

    >>> with_gaze, without = ProbeRow("q", "", "gaze", 0, 1, True, "m"), ProbeRow("q", "", "plain", 0, 0, False, "m")
    >>> gaze_confirmed([with_gaze, without])
    {'q'}
    """
    shares: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in rows:
        shares[row.item, row.model, row.condition].append(row.right)
    confirmed = set()
    for item, model, condition in shares:
        given, without = shares[item, model, condition], shares.get((item, model, "plain"))
        if condition == "gaze" and without and sum(given) * 2 > len(given) and sum(without) * 2 <= len(without):
            confirmed.add(item)
    return confirmed


def least_chosen(rows: Iterable[ProbeRow], item: IntentQuestion) -> list[int]:
    """The wrong options that probes without images chose least; empty if the item was not probed.

    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b", "c"), 0)
    >>> least_chosen([ProbeRow("q", "", "text-only", 0, 2, False, "m")], item)
    [1]
    """
    choices = [row.choice for row in rows if row.item == item.id and row.condition == "text-only"]
    if not choices:
        return []
    counts = Counter(choices)
    wrong = [k for k in range(len(item.options)) if k != item.answer]
    fewest = min((counts[k] for k in wrong), default=0)
    return [k for k in wrong if counts[k] == fewest]
