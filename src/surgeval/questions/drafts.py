"""Generated questions before review: the parser for a reply of six, and the conversion between drafts and items.

A draft may fail any check; only drafts that pass become items. A reply that is not a list of questions (broken JSON, a
missing field) raises `UnreadableReply`, whose message is sent to the generator. Items of any file are checked as
drafts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from surgeval.errors import printable
from surgeval.files import BrokenJson, parse_json
from surgeval.qa import remove_reasoning
from surgeval.questions.prompt_templates import Rules, Template, find_skill, fitting_templates, skills, templates
from surgeval.questions.source_records import LONGEST_TEXT, SourceRecord, read_fact
from surgeval.records import IntentQuestion, OptionLabel

__all__ = ["LETTERS", "Draft", "Facts", "UnreadableReply", "draft_to_item", "find_site_word", "item_to_draft",
           "normalise_text", "read_drafts", "reorder_options", "reply_schema", "rules_of", "scene_facts"]  # fmt: skip

LETTERS = "ABCDEFGH"
_MOST_QUESTIONS = 24
_LABELS = {"perceptual": ("visible", "absent"), "cognitive": ("accepts", "rejects")}


class UnreadableReply(ValueError):
    """A reply without questions; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One question as the generator wrote it. `answers` are the options it calls right; a sound draft has one.

    >>> Draft("relative", "What do I see?", ("hook", "clip"), answers=(0,)).options[0]
    'hook'
    """

    skill: str  # one of the six, or ""
    question: str
    options: tuple[str, ...]
    answers: tuple[int, ...]
    labels: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    trap: str | None = None
    gaze_dependent: bool | None = None
    observable: bool | None = None
    source_kind: str = ""  # guideline, rare, none, or "" if not stated
    source: str = ""
    year: int | None = None
    habit: int | None = None
    called: str = ""  # the skill as the generator wrote it
    scene: str = ""  # identifies the images and the time window


def read_drafts(reply: str, template: Template) -> tuple[Draft, ...]:
    """Read the questions of a reply: a JSON object or array, with any text around it.

    >>> from surgeval.questions.prompt_templates import templates
    >>> text = '{"questions": [{"skill": "Causal Intent", "question": "Why do I look here?", "options": ["a", "b"]}]}'
    >>> read_drafts(text, templates()["open_surgery"])[0].skill
    'retrospective'
    >>> read_drafts("I cannot do that.", templates()["open_surgery"])
    Traceback (most recent call last):
    surgeval.questions.drafts.UnreadableReply: no JSON object in the reply
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
    stated = row.get("source") if template.rules.sources else None  # other templates ask for none
    source: Mapping[str, Any] = stated if isinstance(stated, dict) else {}
    called = _text(row.get("skill"), f'{where}: "skill"')
    return Draft(
        find_skill(called),
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
    """The options that an answer names, by letter or by an option's full text."""
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
    """The JSON schema of a generator's reply, for servers that support one.

    >>> from surgeval.questions.prompt_templates import templates
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


_SITE = re.compile(
    r"\bleft\b(?! (?:to|for|over|out)\b)"
    r"|\bright\b(?! (?:now|away|after|before|answer|option|one|here|at)\b)"
    r"|\b(?:upper|lower|mid(?:dle)?|apical|apex|apices|basal|basilar|bibasilar|bases|hilar|hilum|perihilar|retrocardiac"
    r"|costophrenic|cardiophrenic|lingul\w+|lobes?|lobar|quadrants?|axillary|retroareolar|subareolar|peripheral"
    r"|superior|inferior|medial|lateral|anterior|posterior|inner|outer|bilateral(?:ly)?"
    r"|(?:supero|infero|antero|postero)(?:superior|inferior|medial|lateral)(?:ly)?)\b"
    r"|\b\d{1,2} ?o'?clock\b"
)
_COMMON = frozenset(
    [
        "lung",
        "lungs",
        "breast",
        "chest",
        "area",
        "region",
        "zone",
        "side",
        "field",
        "image",
        "view",
        "tissue",
        "wall",
        "left",
        "right",
    ]  # the sides are part of `_SITE`, where other meanings are excluded
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the scene of a question; empty where nothing is known.

    >>> Facts(view="CC").visible
    ()
    """

    procedure: str = ""
    phase: str = ""
    site: str = ""
    view: str = ""
    locations: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: SourceRecord) -> Facts:
        """The facts of a source record."""
        scene = record.scene
        return cls(record.procedure, record.phase, record.site, read_fact(record, "view"), scene.locations,
                   scene.visible, scene.absent, scene.actions)  # fmt: skip


def normalise_text(text: str) -> str:
    """Normalise text for comparison: NFKC, hyphens and underscores as spaces, lower case.

    >>> normalise_text("Calot-Triangle_dissection")
    'calot triangle dissection'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\-_‐-―]", " ", folded).split())


def find_site_word(text: str, facts: Facts) -> str:
    """The first word of a text that says where a finding is; "" if there is none."""
    normal = normalise_text(text)
    if match := _SITE.search(normal):
        return match[0]
    for location in (*facts.locations, facts.site):
        words = [word for word in normalise_text(location).split() if word not in _COMMON and len(word) > 3]
        if known := next((word for word in words if re.search(rf"\b{re.escape(word)}\b", normal)), ""):
            return known
    return ""


_YEAR = re.compile(r"\b(\d{4})$")
_RARE = "rare: "


def draft_to_item(draft: Draft, record: SourceRecord, template: Template, media: tuple[str, ...]) -> IntentQuestion:
    """The item of a sound draft. Its context has only facts that do not give the answer away."""
    known = {"procedure": record.procedure, "phase": record.phase, "view": read_fact(record, "view"),
            "diagnosis": read_fact(record, "diagnosis"), "birads": read_fact(record, "birads"),
            "site": "" if template.rules.hides_site else record.site}  # fmt: skip
    context = {**record.context, **{key: text for key, text in known.items() if text}}
    if template.rules.hides_site:  # "small left effusion" would give the site away
        facts = Facts.of(record)
        context = {key: text for key, text in context.items() if key == "view" or not find_site_word(text, facts)}
    context |= {"record": record.id, "template": f"{template.name} {template.version}"}
    labels = tuple(
        OptionLabel(cast(Literal["visible", "absent", "accepts", "rejects"], label), reason)
        for label, reason in zip(draft.labels, draft.reasons, strict=False)
    )
    return IntentQuestion(
        f"{record.id}.{template.name}.{draft.skill}", record.scenario, record.cluster, media,
        skills()[draft.skill].dimension, draft.skill, draft.question, draft.options, draft.answers[0],
        record.start, record.end, record.gaze, context, cast(Literal["perceptual", "cognitive"] | None, draft.trap),
        labels=labels if draft.trap else (), source=_source_text(draft), gaze_dependent=draft.gaze_dependent,
        observable=draft.observable,
    )  # fmt: skip


def _source_text(draft: Draft) -> str | None:
    if draft.source_kind == "guideline":
        return f"{draft.source}, {draft.year}"
    return f"{_RARE}{draft.source}" if draft.source_kind == "rare" and draft.source else None


def item_to_draft(item: IntentQuestion) -> Draft:
    """An item as a draft, for the checks; a trap without labels is checked as an ordinary question."""
    source, year = item.source or "", _YEAR.search(item.source or "")
    rare = source.startswith(_RARE)
    kind = "rare" if rare else "guideline" if source else ""
    return Draft(
        item.skill, item.question, item.options, (item.answer,), tuple(label.label for label in item.labels),
        tuple(label.reason for label in item.labels), item.trap if item.labels else None, item.gaze_dependent,
        item.observable, kind, source.removeprefix(_RARE), int(year[1]) if year else None, None, item.skill,
        f"{' '.join(item.media)} {item.start} {item.end}",
    )  # fmt: skip


def rules_of(item: IntentQuestion, known: Mapping[str, Template]) -> Rules:
    """The rules of an item's template, trap or scenario, without those that an item does not record."""
    template = _template_of(item, known)
    rules = template.rules if template else Rules()
    known_of_item: dict[str, object] = {
        "habit": False,  # items do not record which option is the older habit
        "gaze_dependent": rules.gaze_dependent if item.gaze_dependent is not None else 0,
        "look_alone": rules.look_alone and item.observable is not None,
    }
    return rules.model_copy(update=known_of_item)


def _template_of(item: IntentQuestion, known: Mapping[str, Template]) -> Template | None:
    named = str(item.context.get("template", "")).partition(" ")[0]
    if named in known:
        return known[named]
    if item.trap is not None:
        return templates()[f"{item.trap}_trap"]
    alike = SourceRecord(item.id, item.scenario, item.cluster, (), phase=str(item.context.get("phase", "")))
    return next(iter(fitting_templates(alike)), None)


def scene_facts(item: IntentQuestion, record: SourceRecord | None) -> Facts:
    """The facts about an item's scene, from its record or else from its context."""
    if record is not None:
        return Facts.of(record)
    procedure, phase, site, view = (str(item.context.get(key, "")) for key in ("procedure", "phase", "site", "view"))
    return Facts(procedure, phase, site, view)


def reorder_options(item: IntentQuestion, order: tuple[int, ...]) -> IntentQuestion:
    """The item with the given options in the given order; the right one must be among them."""
    return replace(
        item, options=tuple(item.options[k] for k in order), answer=order.index(item.answer),
        labels=tuple(item.labels[k] for k in order) if item.labels else (),
    )  # fmt: skip
