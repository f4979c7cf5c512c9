"""Prompt templates: TOML files with placeholders that become the prompt for one source record.

A prompt has four stages: role and context, purpose, rules of content, form. The files have all wording and the rules
that the checks apply, so a new kind of question is a new file. Values of a record are inserted literally; braces in
them have no meaning. `describe_gaze` writes fixations in words, for generators and for probes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from surgeval.errors import BadInput, DataError, printable
from surgeval.files import Location, raise_errors, read_bounded, validate
from surgeval.questions.source_records import SourceRecord, read_fact
from surgeval.records import Gaze

__all__ = ["Rules", "Skill", "Template", "assemble_prompt", "describe_gaze", "find_skill", "fitting_templates",
           "open_template", "parse_template", "region_of", "repair_text", "skills", "templates"]  # fmt: skip

_LARGEST_FILE = 1 << 18
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ALIGNED = {"dwell": "How long I looked where (tell nobody)",
            "dictation": "Where I looked while naming a finding (tell nobody)"}  # fmt: skip
_SHIPPED = ("open_surgery", "breech_waiting", "breech_pushing", "chest_xray", "mammography", "perceptual_trap",
            "cognitive_trap")  # fmt: skip


_Range: TypeAlias = Annotated[tuple[int, int] | None, Field(strict=False)]
_Texts: TypeAlias = Annotated[tuple[str, ...], Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Skill:
    """One of the six skills: its name, dimension, the generator's name for it, definition and example.

    >>> Skill("relative", "spatial", "Relative Positioning", "how things lie to one another", "What is beside it?").name
    'relative'
    """

    name: str
    dimension: str
    printed: str
    definition: str
    example: str


class Rules(BaseModel):
    """Rules of a template that its checks apply, in addition to those for all questions.

    >>> Rules(gaze_dependent=4).hides_site
    False
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    options: int | None = None  # number of options; 2 to 8 if None
    gaze_dependent: int = 0  # of six questions, at least
    sources: int = 0  # of six questions that rest on a guideline or a rare lethal detail, at least
    years: _Range = None  # of a guideline
    habit: bool = False  # an older habit is among the wrong options
    stem_names: Annotated[
        tuple[Literal["procedure", "phase", "site"], ...], Field(strict=False)
    ] = ()  # what the stem must name
    hides_site: bool = False
    where_only: bool = False
    view_words: bool = False
    birads: _Range = None
    no_traction: bool = False
    look_alone: bool = False


class _PromptTable(BaseModel):
    model_config = ConfigDict(strict=True)

    role: str
    purpose: str
    content: _Texts
    examples: _Texts = ()


class _TemplateFile(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    version: int
    origin: str = "yours"
    scenarios: _Texts
    phases: _Texts = ()
    trap: Literal["perceptual", "cognitive"] | None = None
    placeholders: dict[str, str]
    prompt: _PromptTable
    rules: Rules = Rules()


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
    """The packaged templates, by name.

    >>> list(templates())[:3], templates()["perceptual_trap"].trap
    (['open_surgery', 'breech_waiting', 'breech_pushing'], 'perceptual')
    """
    return {name: parse_template(_read_packaged_file(name), f"{name}.toml") for name in _SHIPPED}


def parse_template(text: str, file: str) -> Template:
    """Parse a template file; undeclared and unused placeholders are errors.

    >>> parse_template("name = 1", "mine.toml")
    Traceback (most recent call last):
    surgeval.errors.DataError: mine.toml: name: expected text, got 1
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(file, f"not valid TOML: {error}", code="file-broken") from None
    checked = validate(_TemplateFile, data, Location(file, raise_errors))
    if checked is None:
        raise AssertionError("raise_errors has raised")
    prompt = checked.prompt
    template = Template(
        checked.name, checked.version, checked.origin, checked.scenarios, checked.phases, checked.trap,
        checked.placeholders, prompt.role.strip(), prompt.purpose.strip(), prompt.content, prompt.examples,
        checked.rules, text,
    )  # fmt: skip
    _check_placeholders(template, file)
    return template


def open_template(name: str) -> Template:
    """A packaged template by its name, or your own by the path of its file (`….toml`).

    >>> open_template("mammography").scenarios
    ('mammography',)
    >>> open_template("dentistry")
    Traceback (most recent call last):
    surgeval.errors.BadInput: Unknown template 'dentistry'. Use a TOML file or one of open_surgery, breech_waiting, ...
    """
    if name in templates():
        return templates()[name]
    if not name.endswith(".toml"):
        raise BadInput(f"Unknown template {name!r}. Use a TOML file or one of {', '.join(templates())}.")
    data = read_bounded(Path(name), _LARGEST_FILE)
    try:
        template = parse_template(data.decode(), name)
    except UnicodeDecodeError:
        raise DataError(name, "not valid UTF-8", code="file-broken") from None
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", template.name) or template.name in templates():
        sentence = f"{template.name!r} is taken, or has other characters than lower-case letters, digits and '_'"
        raise DataError(name, sentence, field="name", code="wrong-value")
    return template


def _check_placeholders(template: Template, file: str) -> None:
    used = set(_PLACEHOLDER.findall("\n".join((template.role, template.purpose, *template.content))))
    declared = set(template.placeholders)
    if used != declared:
        unpaired = ", ".join(sorted(used ^ declared))
        sentence = f"{unpaired}: used but not declared, or declared but not used"
        raise DataError(file, sentence, field="placeholders", code="wrong-value")
    blank = SourceRecord("", "", "", ())
    for key in template.placeholders.values():
        if key != "gaze":
            read_fact(blank, key)  # raises for a field that records do not have


@cache
def skills() -> Mapping[str, Skill]:
    """The six skills by name, in the order of the framework.

    >>> [skill.name for skill in skills().values()]
    ['relative', 'absolute', 'prospective', 'retrospective', 'discrete', 'continuous']
    """
    rows = (Skill(**row) for row in _read_common()["skills"])
    return {skill.name: skill for skill in rows}


def find_skill(text: str) -> str:
    """The name of a skill, from its name or the generator's name for it; "" for any other word.

    >>> find_skill("Causal Intent"), find_skill(" Absolute "), find_skill("balance")
    ('retrospective', 'absolute', '')
    """
    word = " ".join(text.split()).casefold()
    word = re.sub(r"^[123]\.[12]:?\s*", "", word)
    return next((skill.name for skill in skills().values() if word in (skill.name, skill.printed.casefold())), "")


def fitting_templates(record: SourceRecord) -> tuple[Template, ...]:
    """The packaged template for a record's scenario and phase; empty if there is none.

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


def assemble_prompt(template: Template, record: SourceRecord, options: int = 5) -> str:
    """The prompt for a record, in its four stages; raises `BadInput` if the record lacks the value of a placeholder.

    >>> from surgeval.questions import Scene
    >>> from surgeval.records import Gaze
    >>> known = Scene(facts={"diagnosis": "effusion"})
    >>> record = SourceRecord("x1", "chest_xray", "p1", ("x1.png",), gaze=(Gaze(0, 0.7, 0.8, 1.5),), scene=known)
    >>> "Diagnosis: effusion" in assemble_prompt(templates()["chest_xray"], record)
    True
    >>> assemble_prompt(templates()["chest_xray"], SourceRecord("x2", "chest_xray", "p1", ("x2.png",)))
    Traceback (most recent call last):
    surgeval.errors.BadInput: record 'x2': no diagnosis, which the template chest_xray needs
    """
    values = {name: _read_value(template, record, key) for name, key in template.placeholders.items()}
    values["options"] = str(options)
    common = _read_common()
    stages = common["stages"]
    rules = [*common["content"]["rules"], *template.content]
    team = "".join(
        f"\n{_clean(key)}: {_clean(text)}" for key, text in record.context.items() if key not in ("view", "birads")
    )
    known = _describe_scene(record)
    examples = "".join(f"\nFor instance: {text}" for text in template.examples)
    definitions = "\n".join(
        f"- {s.name} ({s.dimension}): {s.definition} For instance: {s.example}" for s in skills().values()
    )
    parts = [
        f"{stages['role']}\n{_fill(template.role, values)}{team}{known}",
        f"{stages['purpose']}\n{_fill(template.purpose, values)}{examples}",
        f"{stages['content']}\n" + "\n".join(f"- {_fill(rule, values)}" for rule in rules),
        f"{stages['form']}\nThe six skills:\n{definitions}\n\n{_describe_form(template, options)}",
    ]  # fmt: skip
    return printable("\n\n".join(parts))


def repair_text(faults: Sequence[str]) -> str:
    """The message to the generator after a reply with faults.

    >>> "two options are equal" in repair_text(["question 2: two options are equal"])
    True
    """
    return _fill(
        _read_common()["repair"]["text"].strip(), {"faults": "\n".join(f"- {_clean(fault)}" for fault in faults)}
    )


def _describe_form(template: Template, options: int) -> str:
    form = _read_common()["form"]
    values = {
        "options": str(options),
        "labelled": form[f"labelled_{template.trap}"] if template.trap else "",
        "sourced": (form["sourced"] if template.rules.sources else "")
        + (form["habit"] if template.rules.habit else ""),
    }
    return _fill(form["text"].strip(), values)


def _describe_scene(record: SourceRecord) -> str:
    """The facts of the scene, for the generator only."""
    scene = record.scene
    rows = {"Seen in the pictures": scene.visible, "Not in any picture": scene.absent,
            "Done in the pictures": scene.actions, "Where the finding is (tell nobody)": scene.locations}  # fmt: skip
    for key, title in _ALIGNED.items():
        rows[title] = (scene.facts[key],) if key in scene.facts else ()
    return "".join(
        f"\n{title}: {', '.join(_clean(name) for name in names[:60])}" for title, names in rows.items() if names
    )


def _read_value(template: Template, record: SourceRecord, key: str) -> str:
    text = describe_gaze(record.gaze) if key == "gaze" else _clean(read_fact(record, key))
    if not text:
        raise BadInput(f"record {record.id!r}: no {key}, which the template {template.name} needs")
    if key == "birads" and template.rules.birads is not None:
        low, high = template.rules.birads
        category = re.search(r"\d", text)
        if category is None or not low <= int(category[0]) <= high:
            raise BadInput(f"record {record.id!r}: birads is {text[:60]!r}; it must be a category from {low} to {high}")
    return text


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _clean(text: str) -> str:
    return " ".join(text.split())[:2_000]


@cache
def _read_common() -> dict[str, Any]:
    return tomllib.loads(_read_packaged_file("common"))


def _read_packaged_file(name: str) -> str:
    return (files("surgeval.questions") / "templates" / f"{name}.toml").read_text(encoding="utf-8")


def region_of(x: float, y: float) -> str:
    """The ninth of the image that contains a point.

    >>> region_of(0.1, 0.2), region_of(0.5, 0.5), region_of(0.9, 0.5)
    ('upper left', 'centre', 'right')
    """
    row = ("upper", "", "lower")[min(int(y * 3), 2)]
    column = ("left", "", "right")[min(int(x * 3), 2)]
    return f"{row} {column}".strip() or "centre"


def describe_gaze(gaze: Sequence[Gaze], most: int = 24) -> str:
    """One line per fixation in order of time; the longest ones if there are many.

    >>> print(describe_gaze([Gaze(0.4, 0.9, 0.1, 0.35)]))
    at 0.40 s for 0.35 s: upper right (x 0.90, y 0.10)
    """
    longest = sorted(gaze, key=lambda fixation: -fixation.duration)[:most]
    lines = [
        f"at {g.t:.2f} s for {g.duration:.2f} s: {region_of(g.x, g.y)} (x {g.x:.2f}, y {g.y:.2f})"
        for g in sorted(longest, key=lambda fixation: fixation.t)
    ]
    left = len(gaze) - len(longest)
    return "\n".join([*lines, f"and {left} shorter fixations"] if left else lines)
