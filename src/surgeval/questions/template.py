"""Prompt templates: TOML files with placeholders, assembled in four stages for one source record.

Role and context, purpose, rules of content, form. The files hold all wording and the rules that the checks apply, so a
new kind of question is a new file. Values of a record are put in literally: a brace in them means nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput, printable
from surgeval.files import read_bounded
from surgeval.questions.gaze_words import gaze_in_words
from surgeval.questions.records import SourceRecord, facts_named

__all__ = [
    "Rules",
    "Skill",
    "Template",
    "assemble",
    "fitting_templates",
    "open_template",
    "repair_text",
    "skills",
    "templates",
]

_LARGEST_FILE = 1 << 18
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ALIGNED = {"dwell": "How long I looked where (tell nobody)",
            "dictation": "Where I looked while naming a finding (tell nobody)"}  # fmt: skip
_SHIPPED = ("open_surgery", "breech_waiting", "breech_pushing", "chest_xray", "mammography", "perceptual_trap",
            "cognitive_trap")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Skill:
    """One of the six: our name, its dimension, the generator's own name, what it means.

    >>> Skill("relative", "spatial", "Relative Positioning", "how things lie to one another", "What is beside it?").name
    'relative'
    """

    name: str
    dimension: str
    printed: str
    definition: str
    example: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What the checks ask of a template's questions beyond what they ask of all.

    >>> Rules(gaze_dependent=4).hides_site
    False
    """

    gaze_dependent: int = 0  # of six questions, at least
    sources: int = 0  # of six questions that rest on a guideline or a rare lethal detail, at least
    years: tuple[int, int] | None = None  # of a guideline
    habit: bool = False  # an older habit is among the wrong options
    stem_names: tuple[str, ...] = ()  # what the stem must name
    hides_site: bool = False
    where_only: bool = False
    view_words: bool = False
    birads: tuple[int, int] | None = None
    no_traction: bool = False
    look_alone: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of questions. `origin` is `adapted` (from the prompt that the paper prints) or `ours`.

    >>> templates()["breech_waiting"].origin
    'ours'
    """

    name: str
    version: int
    origin: str
    scenarios: tuple[str, ...]
    phases: tuple[str, ...]
    trap: str | None
    placeholders: Mapping[str, str]
    role: str
    purpose: str
    content: tuple[str, ...]
    examples: tuple[str, ...]
    rules: Rules
    text: str = field(default="", repr=False)  # the file itself: a set keeps the templates that are not ours


@cache
def templates() -> Mapping[str, Template]:
    """The templates that come with surgeval, by name.

    >>> list(templates())[:3], templates()["perceptual_trap"].trap
    (['open_surgery', 'breech_waiting', 'breech_pushing'], 'perceptual')
    """
    return {name: parse_template(_shipped(name), f"{name}.toml") for name in _SHIPPED}


def parse_template(text: str, file: str) -> Template:
    """A template from its file; an undeclared or unused placeholder is refused.

    >>> parse_template("name = 1", "mine.toml")
    Traceback (most recent call last):
    surgeval.errors.BadInput: mine.toml: found no prompt, expected a template of questions
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: found broken TOML ({error}), expected a template of questions") from None
    try:
        prompt, rules = data["prompt"], dict(data.get("rules", {}))
        for key in ("years", "birads", "stem_names"):
            if key in rules:
                rules[key] = tuple(rules[key])
        template = Template(
            str(data["name"]), int(data["version"]), str(data.get("origin", "yours")), tuple(data["scenarios"]),
            tuple(data.get("phases", ())), data.get("trap"), dict(data["placeholders"]), str(prompt["role"]).strip(),
            str(prompt["purpose"]).strip(), tuple(prompt["content"]), tuple(prompt.get("examples", ())),
            Rules(**rules), text,
        )  # fmt: skip
    except KeyError as error:
        raise BadInput(f"{file}: found no {error.args[0]}, expected a template of questions") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{file}: found a wrong value ({error}), expected a template of questions") from None
    _check_kinds(template, file)
    _check_placeholders(template, file)
    return template


def open_template(name: str) -> Template:
    """A template of ours by its name, or one of yours by the path of its file (`….toml`).

    >>> open_template("mammography").scenarios
    ('mammography',)
    >>> open_template("dentistry")
    Traceback (most recent call last):
    surgeval.errors.BadInput: template 'dentistry': expected a TOML file, or open_surgery, breech_waiting, ...
    """
    if name in templates():
        return templates()[name]
    if not name.endswith(".toml"):
        raise BadInput(f"template {name!r}: expected a TOML file, or {', '.join(templates())}")
    data = read_bounded(Path(name), _LARGEST_FILE)
    try:
        template = parse_template(data.decode(), name)
    except UnicodeDecodeError:
        raise BadInput(f"{name}: found bytes that are no text, expected a template of questions") from None
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", template.name) or template.name in templates():
        raise BadInput(f"{name}: name: found {template.name!r}, expected a new name in small letters")
    return template


def _check_kinds(template: Template, file: str) -> None:
    """Every value of the kind that its use expects: a set of somebody else may hold templates."""
    texts: list[object] = [*template.scenarios, *template.phases, *template.content, *template.examples]
    texts += [*template.placeholders, *template.placeholders.values()]
    rules = template.rules
    counts: list[object] = [rules.gaze_dependent, rules.sources, *(rules.years or ()), *(rules.birads or ())]
    flags: list[object] = [rules.habit, rules.hides_site, rules.where_only, rules.view_words, rules.no_traction]
    pairs = [pair for pair in (rules.years, rules.birads) if pair is not None]
    sound = all(isinstance(text, str) for text in texts) and all(type(count) is int for count in counts)
    sound &= all(isinstance(flag, bool) for flag in (*flags, rules.look_alone)) and all(
        len(pair) == 2 for pair in pairs
    )
    if not sound or set(map(str, rules.stem_names)) - {"procedure", "phase", "site"}:
        raise BadInput(f"{file}: found a value of another kind, expected texts, counts and flags as in the templates")


def _check_placeholders(template: Template, file: str) -> None:
    if template.trap not in (None, "perceptual", "cognitive"):
        raise BadInput(f"{file}: trap: found {template.trap!r}, expected perceptual, cognitive or none")
    used = set(_PLACEHOLDER.findall("\n".join((template.role, template.purpose, *template.content))))
    declared = set(template.placeholders)
    if used != declared:
        unpaired = ", ".join(sorted(used ^ declared))
        raise BadInput(f"{file}: placeholders: found {unpaired} used or declared alone, expected each to be both")
    blank = SourceRecord("", "", "", ())
    for key in template.placeholders.values():
        if key != "gaze":
            facts_named(blank, key)  # refuses a field that records do not have


@cache
def skills() -> Mapping[str, Skill]:
    """The six skills in the order of the framework, by our names.

    >>> [skill.name for skill in skills().values()]
    ['relative', 'absolute', 'prospective', 'retrospective', 'discrete', 'continuous']
    """
    rows = (Skill(**row) for row in _common()["skills"])
    return {skill.name: skill for skill in rows}


def skill_named(text: str) -> str:
    """Our name of a skill, from ours or the generator's own; "" for any other word.

    >>> skill_named("Causal Intent"), skill_named(" Absolute "), skill_named("balance")
    ('retrospective', 'absolute', '')
    """
    word = " ".join(text.split()).casefold()
    word = re.sub(r"^[123]\.[12]:?\s*", "", word)
    return next((skill.name for skill in skills().values() if word in (skill.name, skill.printed.casefold())), "")


def fitting_templates(record: SourceRecord) -> tuple[Template, ...]:
    """The template of ours that a record's scenario and phase call for; none where they call for none.

    >>> record = SourceRecord("b1", "breech_delivery", "b", ("1.jpg",), phase="Waiting for active labour")
    >>> [template.name for template in fitting_templates(record)]
    ['breech_waiting']
    """
    fitting = [template for template in templates().values() if record.scenario in template.scenarios]
    if len(fitting) > 1:
        phase = record.phase.casefold()
        first = {t.name: min((phase.find(word) for word in t.phases if word in phase), default=-1) for t in fitting}
        named = [template for template in fitting if first[template.name] >= 0]
        fitting = sorted(named, key=lambda template: first[template.name])[:1]
    return tuple(fitting)


def assemble(template: Template, record: SourceRecord, options: int = 5) -> str:
    """The prompt in its four stages; a record that lacks what a placeholder stands for is refused.

    >>> from surgeval.questions import Scene
    >>> from surgeval.records import Gaze
    >>> known = Scene(facts={"diagnosis": "effusion"})
    >>> record = SourceRecord("x1", "chest_xray", "p1", ("x1.png",), gaze=(Gaze(0, 0.7, 0.8, 1.5),), scene=known)
    >>> "Diagnosis: effusion" in assemble(templates()["chest_xray"], record)
    True
    >>> assemble(templates()["chest_xray"], SourceRecord("x2", "chest_xray", "p1", ("x2.png",)))
    Traceback (most recent call last):
    surgeval.errors.BadInput: record 'x2': found no diagnosis, expected it for the template chest_xray
    """
    values = {name: _value(template, record, key) for name, key in template.placeholders.items()}
    values["options"] = str(options)
    common = _common()
    stages = common["stages"]
    rules = [*common["content"]["rules"], *template.content]
    team = "".join(
        f"\n{_clean(key)}: {_clean(text)}" for key, text in record.context.items() if key not in ("view", "birads")
    )
    known = _known(record)
    examples = "".join(f"\nFor instance: {text}" for text in template.examples)
    definitions = "\n".join(
        f"- {s.name} ({s.dimension}): {s.definition} For instance: {s.example}" for s in skills().values()
    )
    parts = [
        f"{stages['role']}\n{_filled(template.role, values)}{team}{known}",
        f"{stages['purpose']}\n{_filled(template.purpose, values)}{examples}",
        f"{stages['content']}\n" + "\n".join(f"- {_filled(rule, values)}" for rule in rules),
        f"{stages['form']}\nThe six skills:\n{definitions}\n\n{_form(template, options)}",
    ]  # fmt: skip
    return printable("\n\n".join(parts))


def repair_text(faults: Sequence[str]) -> str:
    """What the generator is told after a reply that cannot be used.

    >>> "two options are equal" in repair_text(["question 2: two options are equal"])
    True
    """
    return _filled(_common()["repair"]["text"].strip(), {"faults": "\n".join(f"- {_clean(fault)}" for fault in faults)})


def _form(template: Template, options: int) -> str:
    form = _common()["form"]
    values = {
        "options": str(options),
        "labelled": form[f"labelled_{template.trap}"] if template.trap else "",
        "sourced": (form["sourced"] if template.rules.sources else "")
        + (form["habit"] if template.rules.habit else ""),
    }
    return _filled(form["text"].strip(), values)


def _known(record: SourceRecord) -> str:
    """What the record knows of the scene, for the generator's eyes."""
    scene = record.scene
    rows = {"Seen in the pictures": scene.visible, "Not in any picture": scene.absent,
            "Done in the pictures": scene.actions, "Where the finding is (tell nobody)": scene.locations}  # fmt: skip
    for key, title in _ALIGNED.items():
        rows[title] = (scene.facts[key],) if key in scene.facts else ()
    return "".join(
        f"\n{title}: {', '.join(_clean(name) for name in names[:60])}" for title, names in rows.items() if names
    )


def _value(template: Template, record: SourceRecord, key: str) -> str:
    text = gaze_in_words(record.gaze) if key == "gaze" else _clean(facts_named(record, key))
    if not text:
        raise BadInput(f"record {record.id!r}: found no {key}, expected it for the template {template.name}")
    if key == "birads" and template.rules.birads is not None:
        low, high = template.rules.birads
        category = re.search(r"\d", text)
        if category is None or not low <= int(category[0]) <= high:
            raise BadInput(
                f"record {record.id!r}: birads: found {text[:60]!r}, expected a category from {low} to {high}"
            )
    return text


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _clean(text: str) -> str:
    return " ".join(text.split())[:2_000]


@cache
def _common() -> dict[str, Any]:
    return tomllib.loads(_shipped("common"))


def _shipped(name: str) -> str:
    return (files("surgeval.questions") / "templates" / f"{name}.toml").read_text(encoding="utf-8")
