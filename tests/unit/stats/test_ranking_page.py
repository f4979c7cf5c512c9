"""The examples of the ranking page give what the page shows."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "ranking.md"


def test_every_example_of_the_ranking_page_is_true() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 25 and result.failed == 0
