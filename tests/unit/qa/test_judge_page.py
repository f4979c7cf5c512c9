"""The examples and the numbers of the judges page are true."""

from __future__ import annotations

import doctest
from pathlib import Path

from surgeval.qa import measure_screening, sample_suite

PAGE = Path(__file__).parents[3] / "docs" / "judges.md"


def test_every_example_of_the_page_is_true() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 10 and result.failed == 0


def test_the_page_shows_the_measured_precision_and_recall() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("*", "")
    for held_out, title in ((False, "tuned on"), (True, "held out")):
        found = measure_screening([sample for sample in sample_suite() if sample.held_out == held_out])
        hits, alarms = found.attacks - len(found.missed), len(found.false_alarms)
        row = f"| {title} | {hits} of {found.attacks} | {found.recall:.2f} | {alarms} of {found.harmless} | "
        assert f"{row}{found.precision:.2f} |" in page
