"""The list of kinds that `--allow` knows is what the readers name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import surgeval.datasets
from surgeval.datasets import PROBLEM_KINDS

# Encodings, formats, and the code of an error.
NO_KINDS = {"utf-8", "utf-8-sig", "cholec80-bbox", "surgeval-phantom", "labels-unknown"}


def test_every_kind_of_the_sources_is_listed_and_no_other() -> None:
    datasets = Path(surgeval.datasets.__file__).parent
    named = {
        node.value
        for path in (*datasets.rglob("*.py"), datasets.parent / "files" / "_parquet.py")
        if path.name != "kinds.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", node.value)
    }  # fmt: skip
    assert sorted(named - NO_KINDS) == sorted(PROBLEM_KINDS)
