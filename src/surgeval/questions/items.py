"""Drafts and items: a draft that passed becomes an item, and an item of any file is checked as a draft."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from surgeval.questions.checks import Facts
from surgeval.questions.checks.imaging import site_word
from surgeval.questions.draft import Draft
from surgeval.questions.records import SourceRecord, facts_named
from surgeval.questions.template import Rules, Template, fitting_templates, skills, templates
from surgeval.records import IntentQuestion, OptionLabel

__all__ = ["draft_of", "facts_of", "item_of", "reordered", "rules_of"]

_YEAR = re.compile(r"\b(\d{4})$")
_RARE = "rare: "


def item_of(draft: Draft, record: SourceRecord, template: Template, media: tuple[str, ...]) -> IntentQuestion:
    """The item of a sound draft. Of the scene it carries only what a reader of the question may know."""
    told = {"procedure": record.procedure, "phase": record.phase, "view": facts_named(record, "view"),
            "diagnosis": facts_named(record, "diagnosis"), "birads": facts_named(record, "birads"),
            "site": "" if template.rules.hides_site else record.site}  # fmt: skip
    context = {**record.context, **{key: text for key, text in told.items() if text}}
    if template.rules.hides_site:  # "small left effusion" would tell what the question must not
        facts = Facts.of(record)
        context = {key: text for key, text in context.items() if key == "view" or not site_word(text, facts)}
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


def draft_of(item: IntentQuestion) -> Draft:
    """An item as the checks see it; a trap without labels is checked as a plain question."""
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
    """The rules of an item's template (or trap, or scenario), as far as an item can show that it keeps them."""
    template = _template_of(item, known)
    rules = template.rules if template else Rules()
    return replace(
        rules, habit=False,  # an item does not keep which option its draft called the older habit
        gaze_dependent=rules.gaze_dependent if item.gaze_dependent is not None else 0,
        look_alone=rules.look_alone and item.observable is not None,
    )  # fmt: skip


def _template_of(item: IntentQuestion, known: Mapping[str, Template]) -> Template | None:
    named = str(item.context.get("template", "")).partition(" ")[0]
    if named in known:
        return known[named]
    if item.trap is not None:
        return templates()[f"{item.trap}_trap"]
    alike = SourceRecord(item.id, item.scenario, item.cluster, (), phase=str(item.context.get("phase", "")))
    return next(iter(fitting_templates(alike)), None)


def facts_of(item: IntentQuestion, record: SourceRecord | None) -> Facts:
    """What is known of an item's scene: its record, else what its context tells."""
    if record is not None:
        return Facts.of(record)
    procedure, phase, site, view = (str(item.context.get(key, "")) for key in ("procedure", "phase", "site", "view"))
    return Facts(procedure, phase, site, view)


def reordered(item: IntentQuestion, order: tuple[int, ...]) -> IntentQuestion:
    """The item with these of its options, in this order; the right one must be among them."""
    return replace(
        item, options=tuple(item.options[k] for k in order), answer=order.index(item.answer),
        labels=tuple(item.labels[k] for k in order) if item.labels else (),
    )  # fmt: skip
