"""The documentation shows the toy protocol as the tests install it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
TOY = ROOT / "tests" / "data" / "toy_protocol" / "toy_protocol" / "crowd.py"


def test_the_page_about_protocols_shows_the_toy_whole() -> None:
    page = (ROOT / "docs" / "protocols.md").read_text("utf-8")
    shown = page.split("## The toy, whole")[1].split("```python\n")[1].split("\n```")[0]
    assert shown == TOY.read_text("utf-8").rstrip()
