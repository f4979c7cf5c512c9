"""A verdict on a page: its grade as the heading, then every reason with its rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from surgeval.pages import Finding, IntervalBar, Section, Table, unbroken
from surgeval.protocols.verdict import Reason, Verdict
from surgeval.stats import number_text

__all__ = ["claims", "verdict_lead", "verdict_sections", "warning_lead"]


def claims(verdicts: Mapping[str, Verdict | None]) -> str:
    """The claims that the grades beside these runs are about; empty where no run has a verdict.

    >>> claims({"net": Verdict("passes", "It sees.", claim="It sees."), "file": None})
    'Claim: “It sees.”'
    >>> claims({"a": Verdict("fails", "…", claim="It sees."), "b": Verdict("fails", "…", claim="It hears.")})
    'Claim: “It sees.” (a); “It hears.” (b)'
    """
    runs: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        if verdict is not None and verdict.claim:
            runs.setdefault(verdict.claim, []).append(name)
    told = [f"“{claim}”" + (f" ({', '.join(names)})" if len(runs) > 1 else "") for claim, names in runs.items()]
    return f"Claim: {'; '.join(told)}" if told else ""


def verdict_sections(
    verdicts: Mapping[str, Verdict | None], warnings: Sequence[str] = (), more: Sequence[Finding] = ()
) -> tuple[Section, ...]:
    """The first chapter of a page about these runs.

    `more` findings and `warnings`, sentences about the data, stand below the reasons.

    >>> from surgeval.protocols.verdict import Reason, Rule
    >>> reason = Reason(Rule("right", "Right more often than not."), "It is right in 90 % of the frames.", True)
    >>> [one.title for one in verdict_sections({"net": Verdict("inconclusive", "Unclear whether it sees.", (reason,))})]
    ['Verdict: inconclusive']
    """
    notes = (*more, *(Finding(_unbroken(text)) for text in dict.fromkeys(warnings)))
    known = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if not known:
        return (Section("Warnings", findings=notes),) if notes else ()
    if len(verdicts) == 1:
        (verdict,) = known.values()
        return (Section(f"Verdict: {verdict.grade}", claims(verdicts), findings=(*_findings(verdict), *notes)),)
    rows = [(name, verdict.grade, _unbroken(verdict.sentence)) for name, verdict in known.items()]
    table = pl.DataFrame(rows, schema=dict.fromkeys(("model", "verdict", "because"), pl.String), orient="row")
    return (
        Section("Verdicts", findings=notes, tables=(Table("What the numbers say together", table, claims(known)),)),
        *(Section(f"{name}: {verdict.grade}", findings=_findings(verdict)) for name, verdict in known.items()),
    )


def verdict_lead(verdicts: Mapping[str, Verdict | None]) -> str:
    """The sentence of one run; of several, their grades."""
    known = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
    if len(verdicts) == 1:
        return "".join(_unbroken(verdict.sentence) for verdict in known.values())
    return " ".join(f"{name}: {verdict.grade}." for name, verdict in known.items())


def warning_lead(warnings: Sequence[str]) -> tuple[str, ...]:
    """Warnings as sentences to stand before the verdict, so that they are read before any number.

    >>> warning_lead(["the judge j gave the verdict correct to all 12 answers"])
    ('Warning: the judge j gave the verdict correct to all 12 answers.',)
    """
    return tuple(f"Warning: {_unbroken(text)}." for text in warnings)


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    return tuple(
        Finding(_unbroken(reason.text), reason.grade, _unbroken(reason.rule.text), _bar(reason))
        for reason in verdict.reasons
    )


def _bar(reason: Reason) -> IntervalBar | None:
    number, baseline = reason.interval, reason.baseline
    if number is None or not math.isfinite(number.estimate):
        return None
    text = number.cell() if baseline is None else f"{number.cell()}; baseline {number_text(baseline)}"
    return IntervalBar(value=number.estimate, low=number.low, high=number.high, text=text, span=reason.span,
                       baselines={} if baseline is None else {"baseline": baseline})  # fmt: skip


def _unbroken(text: str) -> str:
    """No line ends between a number and its sign."""
    return unbroken(text).replace(" points [", "\u00a0points\u00a0[")
