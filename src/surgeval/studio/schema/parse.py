"""A label schema from parsed JSON: group → member → attribute → list; `image` → attribute → list.

Whatever is wrong is named with its path (`tools.scissors.actions[3]`); anything deeper than a list of values is wrong.
Free text is the word "text" in place of a list; `guideline` and `guideline_picture` are a member's instructions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surgeval.errors import DataError, visible
from surgeval.studio.schema.aliases import attribute_name, folded
from surgeval.studio.schema.jsonc import parse_jsonc, read_jsonc
from surgeval.studio.schema.model import IMAGE, Attribute, Member, Schema

__all__ = ["parse_schema", "read_schema", "schema_from"]

_MAX_NAMES = 2000  # of one list or group
_MAX_LENGTH = 200  # characters of a name
_MAX_GUIDELINE = 4000
_GUIDELINE, _PICTURE = "guideline", "guideline_picture"


def read_schema(path: Path | str) -> Schema:
    """The schema of a JSON or JSONC file; its name is the file's.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.jsonc").write_text('{"tools": {"hook": {"actions": ["cut"]}}} // one tool')
    ...     schema = read_schema(f"{folder}/mine.jsonc")
    >>> schema.name, [member.name for member in schema.members]
    ('mine', ['hook'])
    >>> read_schema("nowhere.jsonc")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere.jsonc: no such file
    """
    path = Path(path)
    return schema_from(read_jsonc(path), path.stem, str(path))


def parse_schema(text: str, name: str = "schema") -> Schema:
    """The schema of a JSON or JSONC text.

    >>> parse_schema('{"image": {"phase": ["suturing", null]}}').image.attributes[0].values
    ('suturing', 'null')
    >>> parse_schema('{"tools": {"hook": {"actions": ["cut", 7]}}}')
    Traceback (most recent call last):
    surgeval.errors.DataError: schema: tools.hook.actions[1]: found 7, expected a value as text
    """
    return schema_from(parse_jsonc(text, name), name, name)


def schema_from(data: Any, name: str, source: str) -> Schema:
    """The schema in parsed JSON; `source` is named in errors.

    >>> schema_from({"tools": {"hook": {"actions": ["cut"]}}}, "mine", "mine.json").members[0].name
    'hook'
    >>> schema_from({"tools": {"hook": {"actions": {"cut": ["deep"]}}}}, "mine", "mine.json")
    Traceback (most recent call last):
    surgeval.errors.DataError: mine.json: tools.hook.actions: found an object, expected a list of values or "text"
    """
    return _Parser(source).schema(data, name)


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source

    def schema(self, data: Any, name: str) -> Schema:
        groups = self.mapping(data, "", "an object with tools, image or other groups")
        if not groups:
            raise self.error("", "nothing", "at least one group")
        members: list[Member] = []
        for group, content in groups.items():
            if group == IMAGE:
                members.append(self.member(content, IMAGE, IMAGE, IMAGE))
                continue
            inside = self.mapping(content, group, "an object of classes")
            members += [self.member(inside[key], group, key, f"{group}.{key}") for key in inside]
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return Schema(name, tuple(members), text)

    def member(self, content: Any, group: str, name: str, path: str) -> Member:
        inside = self.mapping(content, path, "an object of attributes")
        texts = {}
        for key, longest in ((_GUIDELINE, _MAX_GUIDELINE), (_PICTURE, _MAX_LENGTH)):
            value = inside.get(key, "")
            if not isinstance(value, str) or len(value) > longest:
                raise self.error(f"{path}.{key}", _shown(value), f"text of at most {longest} characters")
            texts[key] = value
        attributes = [
            self.attribute(inside[key], key, f"{path}.{key}") for key in inside if key not in (_GUIDELINE, _PICTURE)
        ]
        names = [attribute.name for attribute in attributes]
        twice = next((candidate for candidate in names if names.count(candidate) > 1), None)
        if twice is not None:
            raise self.error(path, f"the attribute {twice!r} twice", "each attribute once")
        return Member(group, name, tuple(attributes), texts[_GUIDELINE], texts[_PICTURE])

    def attribute(self, content: Any, key: str, path: str) -> Attribute:
        if content == "text":
            return Attribute(attribute_name(key))
        if not isinstance(content, list):
            raise self.error(path, _shown(content), 'a list of values or "text"')
        if not content:
            raise self.error(path, "an empty list", 'at least one value, or "text" for free text')
        if len(content) > _MAX_NAMES:
            raise self.error(path, f"{len(content)} values", f"at most {_MAX_NAMES}")
        values: list[str] = []
        forms: dict[str, int] = {}
        for number, value in enumerate(content):
            value_path = f"{path}[{number}]"
            text = "null" if value is None else value
            if not isinstance(text, str):
                raise self.error(value_path, _shown(value), "a value as text")
            self.name(text, value_path)
            if folded(text) in forms:
                raise self.error(value_path, f"{text!r} again (as in [{forms[folded(text)]}])", "each value once")
            forms[folded(text)] = number
            values.append(text)
        return Attribute(attribute_name(key), tuple(values))

    def mapping(self, content: Any, path: str, expected: str) -> dict[str, Any]:
        if not isinstance(content, dict):
            raise self.error(path, _shown(content), expected)
        if len(content) > _MAX_NAMES:
            raise self.error(path, f"{len(content)} names", f"at most {_MAX_NAMES}")
        for key in content:
            self.name(key, f"{path}.{key}" if path else key)
        return content

    def name(self, text: str, path: str) -> None:
        if not text.strip() or len(text) > _MAX_LENGTH or visible(text) != text:
            raise self.error(path, repr(text[:60]), f"a printable name of 1 to {_MAX_LENGTH} characters")

    def error(self, path: str, found: str, expected: str) -> DataError:
        return DataError(self.source, f"found {found}, expected {expected}", field=path or None)


def _shown(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", type(None): "null"}
    return kinds.get(type(value)) or json.dumps(value, ensure_ascii=False)[:60]
