"""A set of questions: a folder with items, their records, refusals and settings; or an `items.jsonl` alone.

SET/set.json  items.jsonl  records.jsonl  refused.jsonl  media/  templates/  answers/  probe.jsonl  reviews/
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surgeval.datasets import Problem, intent_record, keep_warnings, read_intent_items
from surgeval.errors import BadInput, DataError
from surgeval.files import (
    DistinctNames,
    copy_atomically,
    leads_out,
    make_folder,
    path_inside,
    safe_name,
    write_atomically,
)
from surgeval.questions.prompt_templates import Template, open_template, templates
from surgeval.questions.source_records import SourceRecord, read_source_records, write_source_records
from surgeval.records import IntentQuestion

__all__ = ["ITEMS", "QuestionSet", "copy_media", "item_fingerprint", "open_set", "write_items", "write_set"]

ITEMS, RECORDS, TEMPLATES = "items.jsonl", "records.jsonl", "templates"
_MOST_TEMPLATES = 100


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The items of a set in file order, their source records as far as they are known, and the folder.

    >>> QuestionSet(Path("set"), (), {}).folder.name
    'set'
    """

    folder: Path
    items: tuple[IntentQuestion, ...]
    records: Mapping[str, SourceRecord]
    templates: Mapping[str, Template] = field(default_factory=templates)  # packaged ones, and those in the set
    warnings: tuple[str, ...] = ()  # from reading items and records

    def record_of(self, item: IntentQuestion) -> SourceRecord | None:
        """The source record of an item; None if it is not known."""
        return self.records.get(str(item.context.get("record", "")))


def open_set(path: str | Path, records: str | Path | None = None) -> QuestionSet:
    """Open the folder of a set or an items file; `records` is the file of its records, if not beside it.

    >>> import json, tempfile
    >>> item = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
    ...         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.jsonl").write_text(json.dumps(item))
    ...     [item.question for item in open_set(folder).items]
    ['Where is it?']
    >>> open_set(Path("no/such/set"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: no/such/set: not a set of questions: it has no items.jsonl
    """
    path = Path(path)
    records = None if records is None else Path(records)
    file = path / ITEMS if path.is_dir() else path
    if not file.is_file():
        raise BadInput(f"{path}: not a set of questions: it has no {ITEMS}")
    problems: list[Problem] = []
    items = tuple(read_intent_items(file, keep_warnings(problems)))
    beside = records or file.parent / RECORDS
    scenes = read_source_records(beside, keep_warnings(problems)) if records or beside.is_file() else ()
    known = {record.id: record for record in scenes}
    own = [open_template(str(path)) for path in sorted((file.parent / TEMPLATES).glob("*.toml"))[:_MOST_TEMPLATES]]
    known_templates = {**templates(), **{template.name: template for template in own}}
    return QuestionSet(file.parent, items, known, known_templates, tuple(map(str, problems)))


def write_items(path: Path, items: Sequence[IntentQuestion]) -> None:
    """Write `items.jsonl` atomically."""
    text = "".join(json.dumps(intent_record(item), ensure_ascii=False) + "\n" for item in items)
    write_atomically(path, text.encode())


def write_set(
    out: Path,
    folder: Path,
    records: Sequence[SourceRecord],
    items: Sequence[IntentQuestion],
    refused: Sequence[str],
    used: Sequence[Template],
    settings: Mapping[str, Any],
) -> None:
    """Write a set with the media of its items and the templates that are not packaged."""
    for template in used:
        if template.name not in templates():
            file = path_inside(out, TEMPLATES, f"{template.name}.toml")
            make_folder(file.parent)
            write_atomically(file, template.text.encode())
    media = copy_media(folder, out, {name for item in items for name in item.media})
    write_items(out / ITEMS, [replace(item, media=tuple(media[name] for name in item.media)) for item in items])
    write_source_records(
        out / RECORDS, [replace(r, media=tuple(media.get(name, name) for name in r.media)) for r in records]
    )
    write_atomically(out / "refused.jsonl", "".join(f"{line}\n" for line in refused).encode())
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    write_atomically(out / "set.json", f"{text}\n".encode())


def copy_media(folder: Path, out: Path, names: set[str]) -> dict[str, str]:
    """Copy media to another folder and return their new names; a file is not copied onto itself."""
    if os.path.realpath(folder) == os.path.realpath(out):
        return {name: name for name in names}
    claimed: dict[str, DistinctNames] = {}
    copies: dict[str, str] = {}
    for name in sorted(names):
        source = Path(os.path.normpath(folder / name))
        if leads_out(source, folder):
            raise DataError(source, "the link leads out of its folder")
        if not source.is_file():
            raise DataError(source, "no such file, but a question needs it")
        parent = Path(name).parent.as_posix()
        group = "all" if parent == "." else safe_name(parent.removeprefix("media/"))
        target = claimed.setdefault(group, DistinctNames()).claim(source.stem, source.suffix)
        copy = path_inside(out, "media", group, target)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or not filecmp.cmp(source, copy, shallow=False):
            copy_atomically(source, copy)
        copies[name] = f"media/{group}/{target}"
    return copies


def item_fingerprint(item: IntentQuestion) -> str:
    """A hash of an item's content: judgements and probes count only for the content they were made with.

    >>> item = IntentQuestion("q", "chest", "p", (), "spatial", "absolute", "Where do I look?", ("a", "b"), 0)
    >>> item_fingerprint(item)
    '7a7e862e5c476f26'
    """
    content = [item.question, list(item.options), item.answer, item.trap, item.skill, list(item.media)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
