"""The schemas that come with the studio: ProstaTD as its paper prints it, CholecT50 from its label space."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.studio.schema.jsonc import read_jsonc
from surgeval.studio.schema.model import Schema
from surgeval.studio.schema.parse import schema_from
from surgeval.vocab import LabelSpace, load_labels

__all__ = ["DATA", "builtin_schema", "builtin_schema_names", "space_schema"]

DATA = Path(__file__).parent / "data"


def builtin_schema_names() -> tuple[str, ...]:
    """The schemas that `builtin_schema` knows.

    >>> builtin_schema_names()
    ('prostatd', 'cholect50')
    """
    return ("prostatd", "cholect50")


@cache
def builtin_schema(name: str) -> Schema:
    """One of the built-in schemas.

    >>> len(builtin_schema("prostatd").pairs()), builtin_schema("cholect50").groups
    (239, ('tools',))
    """
    if name == "prostatd":
        return schema_from(read_jsonc(DATA / "prostatd.jsonc"), name, name)
    if name == "cholect50":
        return space_schema(load_labels("cholect50"))
    raise BadInput(f"schema {name!r}: found no such schema, expected {', '.join(builtin_schema_names())}")


def space_schema(space: LabelSpace) -> Schema:
    """A schema of the triplets and phases of a label space.

    >>> space_schema(load_labels("phantom")).admits("tools", "hook", "action", "dissect")
    True
    """
    tools: dict[str, object] = {}
    for number, instrument in enumerate(space.instruments):
        rows = [(verb, target) for i, verb, target in space.triplets if i == number]
        tools[instrument] = (
            {}
            if not rows
            else {
                "actions": [space.verbs[verb] for verb in sorted({verb for verb, _ in rows})],
                "targets": [space.targets[target] for target in sorted({target for _, target in rows})],
            }
        )
    image = {"image": {"phase": list(space.phases)}} if space.phases else {}
    return schema_from({"tools": tools, **image}, space.name, space.name)
