"""Every number on the page "Which mAP?" is computed when the tests run."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "which-map.md"


def test_the_page_shows_what_the_code_gives() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 20
    assert result.failed == 0
