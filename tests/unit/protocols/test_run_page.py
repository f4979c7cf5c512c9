"""What pages of runs have in common: scorecard, finding rows, the picture of a case."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

from surgeval.pages import Evidence, jpeg_bytes
from surgeval.protocols.contract import Headline
from surgeval.protocols.result import RunResult
from surgeval.protocols.run_page import case_pictures, finding_sections, runs_table, scorecard_of
from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, reference_verdict, verdict_of
from surgeval.stats import Interval

RIGHT = Rule("right", "Right more often than not.", "decides")
HALF = Interval(estimate=0.5, low=0.4, high=0.6, clusters=9)
REASON = Reason(RIGHT, "Right in 50 %.", True, "right in 50 %", HALF, 0.25)
PASSES = verdict_of(Claim("It sees.", "It does not see."), [REASON], 9)


@dataclass(frozen=True)
class Run(RunResult):
    numbers: tuple[Headline, ...] = ()
    given: Verdict | None = PASSES
    cases: Evidence | None = None
    name: str = "net"
    protocol: str = "toy"
    notes: tuple[str, ...] = ()

    def headlines(self) -> tuple[Headline, ...]:
        return self.numbers

    def verdict(self) -> Verdict | None:
        return self.given

    def evidence(self) -> Evidence | None:
        return self.cases


def test_a_scorecard_has_the_grade_the_claim_and_at_most_five_numbers() -> None:
    numbers = tuple(Headline(f"n{k}", f"number {k}", HALF, chance=0.25) for k in range(7))
    undefined = Headline("none", "none", replace(HALF, estimate=float("nan")))
    card = scorecard_of(Run((undefined, *numbers)))
    assert (card.grade, card.claim, len(card.others)) == ("passes", "It sees.", 4)
    assert card.number is not None and card.number.bar is not None
    assert (card.number.label, card.number.bar.baselines) == ("number 0", {"chance 0.250": 0.25})
    assert scorecard_of(Run(given=None)).grade is None


def test_findings_carry_grade_rule_and_number_and_agree_with_the_card() -> None:
    (section,) = finding_sections({"net": PASSES}, ["one note"])
    finding, note = section.findings
    assert (finding.grade, finding.rule) == ("passes", RIGHT.text)
    assert finding.bar is not None and finding.bar.baselines == {"baseline": 0.25}
    assert (note.text, note.grade, section.text) == ("One note.", None, "")


def test_nothing_about_a_reference_row_is_graded() -> None:
    row = reference_verdict(Claim("It sees.", "It does not see."), [REASON], "It guesses.")
    (section,) = finding_sections({"random": row})
    assert [finding.grade for finding in section.findings] == [None]
    assert section.text == "Claim: “It sees.”"


@pytest.mark.parametrize(
    ("unit", "value", "span"),
    [("share", 0.5, (0, 1)), ("points", -0.2, (-1, 1)), ("score", 2.0, (0, 2.3)), ("measure", 100.0, (0, 115.0))],
)
def test_a_bar_is_drawn_over_the_values_its_unit_allows(unit: str, value: float, span: tuple[float, float]) -> None:
    number = Interval(estimate=value, low=value, high=value)
    headline = Headline("n", "n", number, unit=unit)  # type: ignore[arg-type]
    _, bars = runs_table([("net", PASSES, [headline])], ["n"], "run")
    (bar,) = bars["n"]
    assert bar is not None and bar.span == pytest.approx(span)


def test_the_picture_of_a_case_shows_its_boxes() -> None:
    row = {"video": "v", "frame": "1", "asked": "", "answer": "", "reference": "", "reason": "", "width": 200.0}
    cases = pl.DataFrame(
        [{"id": name, "verdict": verdict, **row} for name, verdict in (("a", "right"), ("b", "wrong"))]
    )
    boxes = pl.DataFrame({"id": ["b"], "kind": ["missed"], "label": ["hook"], "x": [20.0], "y": [20.0], "w": [100.0],
                          "h": [100.0]})  # fmt: skip
    black = jpeg_bytes(np.zeros((100, 100, 3), np.uint8))
    evidence = Evidence(model="net", cases=cases, boxes=boxes, pictures={"a": black, "b": black})
    right, wrong = case_pictures(Run(cases=evidence))
    assert (right.note, right.image) == ("Right: v, 1", black)
    assert wrong.note == "Wrong: v, 1 (yellow: missed)"
    assert isinstance(wrong.image, np.ndarray) and tuple(wrong.image[10, 30]) == (0xFF, 0xD6, 0x0A)
    assert case_pictures(Run()) == ()
