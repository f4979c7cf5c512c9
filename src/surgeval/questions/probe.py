"""Probes: a chat model answers the items without pictures, with pictures, and with pictures and gaze.

Without pictures nobody should know the answer: an item that is right under every order of its options is guessable.
An answer that depends on the gaze is right with it and not without. Choices are kept in the item's own order.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from surgeval.datasets import raise_errors
from surgeval.datasets.io import read_lines
from surgeval.errors import BadInput, DataError
from surgeval.files import BrokenJson, parse_json, write_atomically
from surgeval.progress import advance
from surgeval.qa import CachedChat, ChatError, Message, SchemaChat, Usage, choice_prompt, read_choice, run_in_threads
from surgeval.questions.folder import QuestionSet
from surgeval.questions.gaze_words import gaze_in_words
from surgeval.questions.judgements import item_fingerprint
from surgeval.questions.pictures import picture_parts
from surgeval.records import IntentQuestion

__all__ = ["CONDITIONS", "Condition", "ProbeRow", "Probed", "gaze_confirmed", "guessable", "least_chosen",
           "probe_items", "read_probe"]  # fmt: skip

Condition: TypeAlias = Literal["text-only", "plain", "gaze"]
CONDITIONS: tuple[str, ...] = get_args(Condition)
PROBE = "probe.jsonl"
_FRAMES, _LONGEST_EDGE = 8, 1024


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One reply: which option it chose (None: no clear choice), and whether that is right.

    >>> ProbeRow("q", "5f", "text-only", 0, 2, True, "m").right
    True
    """

    item: str
    content: str  # fingerprint of the item as it was asked
    condition: str
    rotation: int
    choice: int | None
    right: bool
    model: str


@dataclass(frozen=True, slots=True)
class Probed:
    """The replies of a probe, the items that got none, what it took, and how many replies were there already."""

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
) -> Probed:
    """Ask every item under each condition, its options rotated so that a favourite letter wins nothing.

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
            raise BadInput(f"probe: found the condition {name!r}, expected one of {', '.join(CONDITIONS)}")
    if not 1 <= rotations <= 8:
        raise BadInput(f"rotations: found {rotations}, expected 1 to 8")
    if not chat.sees and set(conditions) - {"text-only"}:
        raise BadInput("probe: found a model that takes no pictures, expected the condition text-only alone")
    asked = [
        (item, name, turn) for item in questions.items for name in conditions
        for turn in range(min(rotations, len(item.options)))
    ]  # fmt: skip
    with CachedChat(chat, questions.folder, "reply") as cached:
        done = run_in_threads([partial(_asked, cached, questions.folder, *each) for each in asked], concurrency)
    rows = tuple(row for row in done if isinstance(row, ProbeRow))
    others = [
        row for row in read_probe(questions) if (row.model, row.condition) not in {(r.model, r.condition) for r in rows}
    ]
    lines = [json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in (*others, *rows)]
    write_atomically(questions.folder / PROBE, "".join(lines).encode())
    return Probed(rows, tuple(text for text in done if isinstance(text, str)), cached.spent, cached.stored)


def _asked(chat: CachedChat, folder: Path, item: IntentQuestion, condition: str, turn: int) -> ProbeRow | str:
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
    parts = picture_parts(folder, item.media, (item.start, item.end), most=_FRAMES, longest_edge=_LONGEST_EDGE)
    if condition == "gaze":
        told = gaze_in_words(item.gaze) or "not known"
        prompt = f"Where I look (x from the left, y from the top, of 1):\n{told}\n\n{prompt}"
    return [{"role": "user", "content": [*parts, {"type": "text", "text": prompt}]}]


def read_probe(questions: QuestionSet) -> list[ProbeRow]:
    """What probes of this set have shown, without rows of items that have changed since.

    >>> read_probe(QuestionSet(Path("no/such/folder"), (), {}))
    []
    """
    path = questions.folder / PROBE
    if not path.is_file():
        return []
    current = {item.id: (item_fingerprint(item), len(item.options)) for item in questions.items}
    rows = []
    for number, line in read_lines(path, raise_errors):
        row = _row(line, path, number)
        content, count = current.get(row.item, ("", 0))
        if row.content == content and (row.choice is None or 0 <= row.choice < count):
            rows.append(row)
    return rows


def _row(line: str, path: Path, number: int) -> ProbeRow:
    try:
        row = ProbeRow(**parse_json(line))
    except (BrokenJson, TypeError) as error:
        raise DataError(path, f"found {error}, expected a reply of a probe", record=f"line {number}") from None
    texts: tuple[object, ...] = (row.item, row.content, row.condition, row.model)
    right: object = row.right
    whole = row.choice is None or type(row.choice) is int
    if not all(isinstance(text, str) for text in texts) or not isinstance(right, bool) or not whole:
        raise DataError(path, "found values of another kind, expected a reply of a probe", record=f"line {number}")
    return row


def guessable(rows: Iterable[ProbeRow]) -> list[str]:
    """The items that a model answered without pictures, right under every order of the options it was asked in.

    >>> guessable([ProbeRow("q", "", "text-only", 0, 1, True, "m"), ProbeRow("q", "", "text-only", 1, 1, True, "m")])
    ['q']
    """
    turns: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        if row.condition == "text-only":
            turns[row.item, row.model].append(row.right)
    return list(dict.fromkeys(item for (item, _), right in turns.items() if len(right) > 1 and all(right)))


def gaze_confirmed(rows: Sequence[ProbeRow]) -> set[str]:
    """The items that a model mostly answered with the gaze and mostly did not without it.

    >>> with_gaze, without = ProbeRow("q", "", "gaze", 0, 1, True, "m"), ProbeRow("q", "", "plain", 0, 0, False, "m")
    >>> gaze_confirmed([with_gaze, without])
    {'q'}
    """
    shares: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in rows:
        shares[row.item, row.model, row.condition].append(row.right)
    confirmed = set()
    for item, model, condition in shares:
        told, untold = shares[item, model, condition], shares.get((item, model, "plain"))
        if condition == "gaze" and untold and sum(told) * 2 > len(told) and sum(untold) * 2 <= len(untold):
            confirmed.add(item)
    return confirmed


def least_chosen(rows: Iterable[ProbeRow], item: IntentQuestion) -> list[int]:
    """The wrong options that probes without pictures chose least; () where nobody probed the item.

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
