"""A question before anybody vouches for it, and the reply of a generator that holds six of them.

A draft can be wrong in every way that a check can name; only what passes becomes an item. What is no question at all
(broken JSON, a missing field) is an `UnreadableReply` whose message is shown to the generator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surgeval.errors import printable
from surgeval.files import BrokenJson, parse_json
from surgeval.qa import remove_reasoning
from surgeval.questions.records import LONGEST_TEXT
from surgeval.questions.template import Template, skill_named, skills

__all__ = ["Draft", "UnreadableReply", "read_drafts", "reply_schema"]

LETTERS = "ABCDEFGH"
_MOST_QUESTIONS = 24
_LABELS = {"perceptual": ("visible", "absent"), "cognitive": ("accepts", "rejects")}


class UnreadableReply(ValueError):
    """A reply that holds no questions; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One question as written. `answers` are the options called right: a sound draft has exactly one.

    >>> Draft("relative", "What do I see?", ("hook", "clip"), answers=(0,)).options[0]
    'hook'
    """

    skill: str  # ours; "" where it is none of the six
    question: str
    options: tuple[str, ...]
    answers: tuple[int, ...]
    labels: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    trap: str | None = None
    gaze_dependent: bool | None = None
    observable: bool | None = None
    source_kind: str = ""  # guideline, rare, none; "" where nothing is told
    source: str = ""
    year: int | None = None
    habit: int | None = None
    called: str = ""  # the skill as the generator wrote it
    scene: str = ""  # which pictures it is about


def read_drafts(reply: str, template: Template) -> tuple[Draft, ...]:
    """The questions of a reply, whatever stands around the JSON object or the bare array of questions.

    >>> from surgeval.questions.template import templates
    >>> text = '{"questions": [{"skill": "Causal Intent", "question": "Why do I look here?", "options": ["a", "b"]}]}'
    >>> read_drafts(text, templates()["open_surgery"])[0].skill
    'retrospective'
    >>> read_drafts("I cannot do that.", templates()["open_surgery"])
    Traceback (most recent call last):
    surgeval.questions.draft.UnreadableReply: no JSON object in the reply
    """
    value = _json(remove_reasoning(reply) or reply)
    rows = value.get("questions") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise UnreadableReply('no list "questions" in the object')
    if not rows or len(rows) > _MOST_QUESTIONS:
        raise UnreadableReply(f'{len(rows)} entries in "questions", expected six')
    return tuple(_draft(row, f"question {number}", template) for number, row in enumerate(rows, start=1))


def _json(text: str) -> Any:
    start, end = text.find("{"), text.rfind("}")
    if start < 0:
        raise UnreadableReply("no JSON object in the reply")
    before = text[:start].rstrip()
    if before.endswith("["):
        start, end = len(before) - 1, text.rfind("]")
    try:
        return parse_json(text[start : end + 1] if end > start else text[start:], finite=True)
    except BrokenJson as error:
        raise UnreadableReply(f"broken JSON: {error}") from None


def _draft(row: Any, where: str, template: Template) -> Draft:
    if not isinstance(row, dict):
        raise UnreadableReply(f"{where}: no object")
    options = row.get("options")
    if not isinstance(options, list) or not 1 <= len(options) <= 26:
        raise UnreadableReply(f'{where}: "options" is no list of options')
    entries: list[Mapping[str, Any]] = [o if isinstance(o, dict) else {"text": o} for o in options]
    texts = tuple(_text(entry.get("text"), f"{where}: an option") for entry in entries)
    told = row.get("source") if template.rules.sources else None  # nobody asked the others for one
    source: Mapping[str, Any] = told if isinstance(told, dict) else {}
    called = _text(row.get("skill"), f'{where}: "skill"')
    return Draft(
        skill_named(called),
        _text(row.get("question"), f'{where}: "question"'),
        texts,
        _answers(row.get("answer"), texts),
        tuple(_word(entry.get("label")) for entry in entries) if template.trap else (),
        tuple(_optional(entry.get("reason")) for entry in entries),
        template.trap,
        _flag(row.get("gaze_dependent")),
        _flag(row.get("observable")),
        _word(source.get("kind")),
        _optional(source.get("name")),
        _year(source.get("year")),
        next(iter(_answers(row.get("habit"), texts)), None),
        called,
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnreadableReply(f"{where} is no text")
    if len(value) > LONGEST_TEXT:
        raise UnreadableReply(f"{where} has {len(value)} characters, at most {LONGEST_TEXT} are taken")
    return printable(" ".join(value.split()))


def _optional(value: Any) -> str:
    return printable(" ".join(value.split())[:LONGEST_TEXT]) if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return _optional(value).casefold()[:40]


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _year(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d{4}", value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000 else None


def _answers(value: Any, options: tuple[str, ...]) -> tuple[int, ...]:
    """The options that an answer names: by letter, or by an option's full text."""
    several = value if isinstance(value, list) else [value]
    named: list[int] = []
    for entry in several[:26]:
        text = " ".join(entry.split()) if isinstance(entry, str) else ""
        if text in options:
            named.append(options.index(text))
            continue
        letters = (
            re.findall(r"[A-H]", text) if re.fullmatch(r"\(?[A-H]\)?\.?(\s*(,|and|&)\s*\(?[A-H]\)?)*", text) else []
        )
        named += [LETTERS.index(letter) for letter in letters]
    return tuple(dict.fromkeys(named))


def reply_schema(template: Template, options: int = 5) -> dict[str, Any]:
    """The JSON schema of a generator's reply, for servers that hold a model to one.

    >>> from surgeval.questions.template import templates
    >>> schema = reply_schema(templates()["cognitive_trap"])
    >>> schema["properties"]["questions"]["items"]["properties"]["options"]["items"]["properties"]["label"]["enum"]
    ['accepts', 'rejects']
    """
    letter = {"type": "string", "enum": list(LETTERS[:options])}
    option: dict[str, Any] = {"text": {"type": "string"}, "reason": {"type": "string"}}
    if template.trap:
        option["label"] = {"type": "string", "enum": list(_LABELS[template.trap])}
    question: dict[str, Any] = {
        "skill": {"type": "string", "enum": list(skills())},
        "question": {"type": "string"},
        "options": {"type": "array", "items": _object(option), "minItems": options, "maxItems": options},
        "answer": letter,
        "gaze_dependent": {"type": "boolean"},
        "observable": {"type": "boolean"},
    }
    if template.rules.sources:
        kinds = {"type": "string", "enum": ["guideline", "rare", "none"]}
        source = {"kind": kinds, "name": {"type": "string"}, "year": {"type": ["integer", "null"]}}
        question["source"] = _object(source)
    if template.rules.habit:
        question["habit"] = letter
    return _object({"questions": {"type": "array", "items": _object(question), "minItems": 6, "maxItems": 6}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
