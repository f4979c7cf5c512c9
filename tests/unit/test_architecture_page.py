"""docs/architecture.md tells the truth: its tree is the source's, and its two flows follow real imports downwards."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def _block(title: str) -> list[str]:
    """The indented or fenced lines below a heading."""
    text = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [line for line in text.split("```text\n", 1)[1].split("```", 1)[0].splitlines() if line.strip()]


def _packages() -> set[str]:
    folder = ROOT / "src" / "surgeval"
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("__init__.py")} - {"."}


def test_the_tree_names_every_package_and_no_other() -> None:
    named: list[str] = []
    above: list[str] = []
    for line in _block("The tree"):
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0].rstrip("/")
        above = [*above[:depth], name]
        if line.split()[0].endswith("/"):
            named.append("/".join(above))
    assert sorted(named) == sorted(_packages())


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    # An import for types alone is no call.
    return grimp.build_graph("surgeval", include_external_packages=False, exclude_type_checking_imports=True)


def _rows() -> dict[str, int]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    return {name.strip(): number for number, row in enumerate(layers) for name in row.split("|")}


@pytest.mark.parametrize("title", ["Flow: score triplets", "Flow: run surgxbench"])
def test_a_flow_follows_imports_and_never_goes_up_a_layer(title: str, graph: grimp.ImportGraph) -> None:
    rows = _rows()
    callers: list[str] = []
    steps = 0
    for line in _block(title):
        depth = (len(line) - len(line.lstrip())) // 2
        module = f"surgeval.{line.split()[0]}"
        assert module in graph.modules, module
        callers = [*callers[:depth], module]
        if depth == 0:
            continue
        caller = callers[depth - 1]
        assert rows[module.split(".")[1]] >= rows[caller.split(".")[1]], f"{caller} → {module} goes up"
        by_name = re.search(r"\(by name\)", line)  # parts of a descriptor, and lazy exports: imported when used
        assert by_name or module in graph.find_modules_directly_imported_by(caller), (
            f"{caller} does not import {module}"
        )
        steps += 1
    assert steps >= 10
