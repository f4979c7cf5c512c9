"""The documentation shows the toy protocol as the tests install it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOY = ROOT / "tests" / "data" / "toy_protocol"
PAGE = (ROOT / "docs" / "protocols.md").read_text("utf-8")


@pytest.mark.parametrize(("kind", "file"), [("toml", "pyproject.toml"), ("python", "toy_protocol/crowd.py")])
def test_the_page_about_protocols_shows_the_toy_whole(kind: str, file: str) -> None:
    shown = PAGE.split("## The toy, whole")[1].split(f"```{kind}\n")[1].split("\n```")[0]
    assert shown == (TOY / file).read_text("utf-8").rstrip()


def test_the_descriptor_is_shown_but_for_its_remarks() -> None:
    shown = PAGE.split("## Adding one")[1].split("```python\n")[1].split("\n```")[0]
    plain = "\n".join(line.partition("  #")[0].rstrip() for line in shown.splitlines())
    assert (TOY / "toy_protocol" / "__init__.py").read_text("utf-8").endswith(f"{plain}\n")
