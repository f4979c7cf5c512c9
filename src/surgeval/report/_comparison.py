"""The page of a comparison: two runs of one protocol on the same videos, number by number."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

from surgeval.pages import Fact, Section, Table, save_figures, save_tables, write_page
from surgeval.protocols.contract import Compared, Comparison

__all__ = ["readable_comparison", "write_comparison"]

_COMMON = (
    "Both runs are measured on the same videos, so the difficulty of the videos cancels out. Two runs are told apart "
    "when p is at most 0.05. The p-values are two-sided and not adjusted for their number; below six videos there is "
    "none, because no test could reach 0.05."
)
_METHOD = {
    "exchange": "p is that of the exchange test: if the runs were equally good, their results on any video could have "
    "been swapped, and p is the share of such swaps whose difference is at least as large. The interval leaves out "
    "each video in turn (t, effective number of videos); its end is moved to 0 where it would contradict the test.",
    "t": "Each video is left out of both runs in turn; how much the difference moves gives its standard error, and "
    "interval and p are those of Student's t at the effective number of videos.",
    "bootstrap": "p and the interval come from the same resamples of whole videos for both runs. With few videos this "
    "claims too much: two equal detectors were told apart in 13 of 100 simulated comparisons over 6 videos.",
}


def write_comparison(comparison: Comparison, out: str | Path) -> Path:
    """Write page, table and figure below `out`; returns the page's path.

    >>> import tempfile
    >>> from surgeval.stats import paired_difference
    >>> gap = paired_difference([1, 1, 1, 0] * 4, [1, 0, 1, 0] * 4, [v for v in "abcdefgh" for _ in range(2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numbers = (Compared("accuracy", "accuracy", gap),)
    ...     page = write_comparison(Comparison(protocol="focus", a="gaze", b="none", numbers=numbers), Path(folder))
    ...     page.name, sorted(path.name for path in Path(folder).iterdir())
    ('report.html', ['figures', 'report.html', 'tables'])
    """
    out = Path(out)
    save_tables(comparison.tables, out / "tables")
    plots = save_figures(comparison.figures, out)
    tables = [
        Table(title, frame, file="tables/differences.csv") for title, frame in readable_comparison(comparison).items()
    ]
    first = comparison.numbers[0] if comparison.numbers else None
    sections = (
        Section("Overview", "\n\n".join(_sentence(note) for note in comparison.notes), facts=_facts(comparison),
                figures=tuple(plots.values()), tables=tuple(tables)),
        Section("How it was computed", "\n\n".join([_COMMON, *_methods(comparison)])),
    )  # fmt: skip
    return write_page(
        out / "report.html", f"{comparison.a} and {comparison.b}", sections, kind=f"{comparison.protocol}, compared",
        lead=verdict(first, comparison.a, comparison.b) if first else "The runs share no number.",
        details={"Protocol": comparison.protocol, "A": comparison.a, "B": comparison.b,
                 "Videos": str(comparison.clusters)},
    )  # fmt: skip


def readable_comparison(comparison: Comparison) -> dict[str, pl.DataFrame]:
    """The tables as people read them: both values, and the difference with its interval in one cell.

    >>> from surgeval.stats import paired_difference
    >>> gap = paired_difference([1, 1, 1, 0] * 4, [1, 0, 1, 0] * 4, [v for v in "abcdefgh" for _ in range(2)])
    >>> comparison = Comparison(protocol="focus", a="gaze", b="none", numbers=(Compared("accuracy", "accuracy", gap),))
    >>> {title: table.row(0)[:4] for title, table in readable_comparison(comparison).items()}
    {'gaze − none, paired over 8 videos': ('accuracy', '0.750', '0.500', '0.250 [0.000, 0.473]')}
    """
    rows = [
        (one.label, _number(one.difference.a), _number(one.difference.b), one.difference.interval.cell(),
         "" if math.isnan(one.difference.p) else f"{one.difference.p:.4f}", who(one, comparison.a, comparison.b))
        for one in comparison.numbers
    ]  # fmt: skip
    heads = ["number", f"A: {comparison.a}", f"B: {comparison.b}", "A − B", "p", "better"]
    title = f"{comparison.a} − {comparison.b}, paired over {comparison.clusters} videos"
    return {title: pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")}


def who(one: Compared, a: str, b: str) -> str:
    """The better of the two where they are told apart, else nobody."""
    if not one.difference.told_apart or one.higher_is_better is None:
        return ""
    return a if (one.difference.estimate > 0) == one.higher_is_better else b


def verdict(one: Compared, a: str, b: str) -> str:
    """One sentence on one number."""
    interval = one.difference.interval
    values = f"{one.label}: {_number(one.difference.a)} against {_number(one.difference.b)}"
    if interval.few_clusters:
        return f"{values}; {interval.clusters} videos are too few for a claim about videos in general."
    if not one.difference.told_apart:
        return f"{values}; they are not told apart, difference {interval.cell()}."
    better = who(one, a, b)
    return f"{values}; {f'{better} is better' if better else 'they differ'}, difference {interval.cell()}."


def _methods(comparison: Comparison) -> list[str]:
    return [_METHOD[test] for test in dict.fromkeys(one.difference.test for one in comparison.numbers)]


def _facts(comparison: Comparison) -> tuple[Fact, ...]:
    return tuple(
        Fact(one.label, f"{one.difference.estimate:+.3f}", one.difference.interval.ends())
        for one in comparison.numbers[:3]
        if math.isfinite(one.difference.estimate)
    )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"
