"""The layers of pyproject.toml hold, and each row of them is really checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.contracts.layers import LayersContract

LINTER = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]
OPTIONS: dict[str, Any] = next(one for one in LINTER["contracts"] if one["type"] == "layers")
ROWS = [[name.strip() for name in row.split("|") if not name.strip().startswith("(")] for row in OPTIONS["layers"]]


def forbidden() -> Iterator[tuple[str, str]]:
    """For each row one import of the row above, and one of a row mate where there is one."""
    for above, row in pairwise(ROWS):
        yield row[0], above[0]
    yield from ((row[0], row[1]) for row in ROWS if len(row) > 1)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("surgeval", include_external_packages=True)


def is_kept(graph: grimp.ImportGraph) -> bool:
    options = {key: str(value) if isinstance(value, bool) else value for key, value in OPTIONS.items()}
    contract = LayersContract(
        name=OPTIONS["name"], session_options={"root_packages": ["surgeval"]}, contract_options=options
    )
    return contract.check(graph, verbose=False).kept


def test_the_layers_hold(graph: grimp.ImportGraph) -> None:
    assert is_kept(graph)


@pytest.mark.parametrize(("importer", "imported"), list(forbidden()))
def test_an_import_of_a_row_mate_or_of_the_row_above_is_found(
    graph: grimp.ImportGraph, importer: str, imported: str
) -> None:
    importer, imported = f"surgeval.{importer}", f"surgeval.{imported}"
    assert not graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
    graph.add_import(importer=importer, imported=imported)
    try:
        assert not is_kept(graph)
    finally:
        graph.remove_import(importer=importer, imported=imported)
