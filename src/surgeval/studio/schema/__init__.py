"""Label schemas: what may be said about an instrument, another instance or a whole frame, read from JSON or JSONC.

`read_schema` and `builtin_schema` give a `Schema`; `standing` tells admissible from inadmissible and classes from
other admissible triplets; `mismatches` lists what a switch of schema would leave unknown; `SchemaRule`s merge labels.
"""

from surgeval.studio.schema.aliases import attribute_name, folded, spelled
from surgeval.studio.schema.builtin import builtin_schema, builtin_schema_names, space_schema
from surgeval.studio.schema.jsonc import parse_jsonc
from surgeval.studio.schema.model import IMAGE, MAX_TEXT, Attribute, Member, Schema, instrument_group
from surgeval.studio.schema.parse import parse_schema, read_schema, schema_from
from surgeval.studio.schema.refine import (
    Counts,
    RuleCounts,
    SchemaRule,
    builtin_refinement,
    parse_refinement,
    read_refinement,
    refine,
    refined,
    rule_counts,
    rules_from,
)
from surgeval.studio.schema.standing import LabelledValues, Mismatch, Standing, mismatches, standing, standings

__all__ = [
    "IMAGE",
    "MAX_TEXT",
    "Attribute",
    "Counts",
    "LabelledValues",
    "Member",
    "Mismatch",
    "RuleCounts",
    "Schema",
    "SchemaRule",
    "Standing",
    "attribute_name",
    "builtin_refinement",
    "builtin_schema",
    "builtin_schema_names",
    "folded",
    "instrument_group",
    "mismatches",
    "parse_jsonc",
    "parse_refinement",
    "parse_schema",
    "read_refinement",
    "read_schema",
    "refine",
    "refined",
    "rule_counts",
    "rules_from",
    "schema_from",
    "space_schema",
    "spelled",
    "standing",
    "standings",
]
