"""The page of a comparison: two runs of one protocol on the same videos, number by number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from surgeval.pages import (
    CardNumber,
    Evidence,
    Finding,
    IntervalBar,
    Scorecard,
    Section,
    Table,
    figure_plots,
    save_tables,
    write_page,
)
from surgeval.protocols.comparison import Compared, Comparison
from surgeval.protocols.recipes import recipe_table
from surgeval.protocols.run_page import as_sentence, claims, side_by_side
from surgeval.protocols.verdict import Verdict, listed
from surgeval.results import counted
from surgeval.stats import gap_unit, number_text

__all__ = ["own_verdicts", "readable_comparison", "tally", "write_comparison_page"]

_FIRST = 6  # numbers that get a sentence; the table has them all
_OTHERS = 3  # differences beside the main one
_RULE = "Better where p is at most 0.05, over six videos or more."
_COMMON = (
    "Both runs are measured on the same videos, so the difficulty of the videos cancels out. The p-values are "
    "two-sided and not adjusted for their number; below six videos there is none, because no test could reach 0.05."
)
_SAME = "no difference in any of these videos; other videos may show one"
_SAME_METHOD = (
    "An interval [0, 0] is no estimate: both runs scored the same in every one of these videos. It does not say that "
    "they are one model. Of six such videos up to 46 % of other videos may yet show a difference, of twenty up to 17 %."
)
_METHOD = {
    "exchange": "p is that of the exchange test: if the runs were equally good, their results on any video could have "
    "been swapped, and p is the share of such swaps whose difference is at least as large. The interval leaves out "
    "each video in turn (t, effective number of videos); its end is moved to 0 where it would contradict the test.",
    "t": "Each video is left out of both runs in turn; how much the difference moves gives its standard error, and "
    "interval and p are those of Student's t at the effective number of videos.",
    "bootstrap": "p and the interval come from the same resamples of whole videos for both runs. The fewer the "
    "videos, the more often this claims too much: two equal detectors differed significantly in 13 of 100 simulated "
    "comparisons over 6 videos.",
}


def write_comparison_page(
    comparison: Comparison,
    out: str | Path,
    evidence: Sequence[Evidence] = (),
    *,
    verdicts: Mapping[str, Verdict] | None = None,
) -> Path:
    """Write page, table and figure below `out`; returns the page's path. `evidence` of both stands side by side.

    `verdicts` are what each run says of itself, by its name: two models can be right equally often, and only one of
    them for the right reason.

    >>> import tempfile
    >>> from surgeval.stats import paired_difference
    >>> gap = paired_difference([1, 1, 1, 0] * 4, [1, 0, 1, 0] * 4, [v for v in "abcdefgh" for _ in range(2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numbers = (Compared("accuracy", "accuracy", gap),)
    ...     compared = Comparison(protocol="focus", a="gaze", b="none", numbers=numbers)
    ...     page = write_comparison_page(compared, Path(folder))
    ...     page.name, sorted(path.name for path in Path(folder).iterdir() if path.is_dir())
    ('report.html', ['figures', 'tables'])
    """
    out = Path(out)
    save_tables(comparison.tables, out / "tables")
    plots = figure_plots(comparison.figures)
    tables = [
        Table(title, frame, file="tables/differences.csv") for title, frame in readable_comparison(comparison).items()
    ]
    findings = tuple(
        Finding(verdict(number, comparison.a, comparison.b), rule=_RULE if number is comparison.numbers[0] else "",
                bar=difference_bar(number))
        for number in comparison.numbers[:_FIRST]
    )  # fmt: skip
    notes = tuple(Finding(as_sentence(note)) for note in comparison.notes)
    judged = (_verdict_table(verdicts),) if verdicts else ()
    sections = (
        Section("Findings", findings=(*findings, *notes), tables=judged),
        Section("Every number", figures=tuple(plots.values()), tables=tuple(tables)),
        *comparison.sections,
        *((side_by_side(evidence),) if evidence else ()),
        Section("How it was computed", "\n\n".join([_COMMON, *_methods(comparison)]),
                tables=recipe_table({"both": comparison.recipes})),
    )  # fmt: skip
    return write_page(
        out / "report.html", f"{comparison.a} and {comparison.b}", sections, kind=f"{comparison.protocol}, compared",
        lead=_lead(comparison, verdicts or {}), scorecard=comparison_card(comparison),
        details={"Protocol": comparison.protocol, "A": comparison.a, "B": comparison.b,
                 "Videos": str(comparison.clusters), **_drawing(comparison)},
        measures=comparison.measures,
    )  # fmt: skip


def _drawing(comparison: Comparison) -> dict[str, str]:
    """How many exchanges of videos were drawn at most, and from which seed."""
    resamples, seed = (comparison.settings.get(key) for key in ("resamples", "seed"))
    return {} if resamples is None else {"Exchanges": f"at most {resamples} (seed {seed})"}


def own_verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """The runs' own grades where they differ; empty where they are equal.

    >>> own_verdicts({"clip": Verdict("passes", "It looks."), "tint": Verdict("fails", "It does not.")})
    'Their own grades differ. clip: passes; tint: fails.'
    >>> own_verdicts({"clip": Verdict("passes", "It looks."), "other": Verdict("passes", "It looks.")})
    ''
    """
    if len({verdict.grade for verdict in verdicts.values()}) < 2:
        return ""
    grades = [f"{name}: {verdict.grade}" for name, verdict in verdicts.items()]
    return f"Their own grades differ. {'; '.join(grades)}."


def _verdict_table(verdicts: Mapping[str, Verdict]) -> Table:
    rows = [(name, verdict.grade, verdict.sentence) for name, verdict in verdicts.items()]
    heads = dict.fromkeys(("run", "grade", "because"), pl.String)
    return Table("Grade of each run", pl.DataFrame(rows, schema=heads, orient="row"), claims(verdicts))


def readable_comparison(comparison: Comparison) -> dict[str, pl.DataFrame]:
    """The tables as people read them: both values, and the difference with its interval in one cell.

    Numbers that fewer videos make up than others, such as those over right answers, say how many.

    >>> from surgeval.stats import paired_difference
    >>> gap = paired_difference([1, 1, 1, 0] * 4, [1, 0, 1, 0] * 4, [v for v in "abcdefgh" for _ in range(2)])
    >>> comparison = Comparison(protocol="focus", a="gaze", b="none", numbers=(Compared("accuracy", "accuracy", gap),))
    >>> {title: table.row(0)[:4] for title, table in readable_comparison(comparison).items()}
    {'gaze − none, paired over 8 videos': ('accuracy', '0.750', '0.500', '0.250 [0.000, 0.473]')}
    """
    rows = [
        (number.label, number_text(number.difference.a, number.unit), number_text(number.difference.b, number.unit),
         number.difference.interval.cell(gap_unit(number.unit)),
         "" if math.isnan(number.difference.p) else f"{number.difference.p:.4f}",
         str(number.difference.interval.clusters),
         "; ".join(filter(None, (who(number, comparison.a, comparison.b), "" if _few(comparison) else reason(number)))))
        for number in comparison.numbers
    ]  # fmt: skip
    heads = ["number", f"A: {comparison.a}", f"B: {comparison.b}", "A − B", "p", "videos", "better"]
    table = pl.DataFrame(rows, schema=dict.fromkeys(heads, pl.String), orient="row")
    title = f"{comparison.a} − {comparison.b}, paired over {counted(comparison.clusters, 'video')}"
    return {title: table if table["videos"].n_unique() > 1 else table.drop("videos")}


def tally(comparison: Comparison) -> str:
    """The verdict on the main number, which is the first with a better direction, then how many others agree.

    >>> tally(Comparison(protocol="focus", a="gaze", b="none", numbers=()))
    'The runs share no number.'
    """
    judged = [number for number in comparison.numbers if number.higher_is_better is not None]
    if not judged:
        return "None of the numbers says which is better." if comparison.numbers else "The runs share no number."
    if _few(comparison):
        return f"No significant difference: {_too_few(comparison.clusters)} about videos in general."
    main, a, b = judged[0], comparison.a, comparison.b
    better = who(main, a, b)
    claim = f"{better} is better" if better else "No significant difference"
    return f"{claim}: {_main_number(main, a, b, better)}.{_others(comparison, main)}"


def _main_number(main: Compared, a: str, b: str, better: str) -> str:
    gap = main.difference
    of_a, of_b = ("", "") if better == a else (f" ({a})", f" ({b})")
    values = f"{number_text(gap.a, main.unit)}{of_a} against {number_text(gap.b, main.unit)}{of_b}"
    result = f"{main.label} {values}, difference {gap.interval.cell(gap_unit(main.unit))}"
    if not gap.testable:
        return f"{result}, not testable"
    videos = gap.interval.clusters
    least = f" (the least that {videos} videos allow)" if gap.p <= 2.0 ** (1 - videos) * (1 + 1e-9) else ""
    return f"{result}, p = {gap.p:.2g}{least}"


def _others(comparison: Comparison, main: Compared) -> str:
    """How many of the other rows of the table say that one of the runs is better."""
    others = [number for number in comparison.numbers if number is not main]
    if not others:
        return ""
    names = (comparison.a, comparison.b)
    wins = {name: [number.label for number in others if who(number, *names) == name] for name in names}
    labelled = {name: listed(labels, between="; ") for name, labels in wins.items()}  # labels have commas of their own
    tallies = [f"{name} is better in {len(labels)} ({labelled[name]})" for name, labels in wins.items() if labels]
    count = f"the {len(others)} other numbers" if len(others) > 1 else "the other number"
    neither = sum(number.higher_is_better is None for number in others)
    rest = f"; {neither} of them {'has' if neither == 1 else 'have'} no better direction" if neither else ""
    claims = "; ".join(tallies) or "none differs significantly"
    return f" Of {count}, {claims}{rest} (p not adjusted for their number)."


def _few(comparison: Comparison) -> bool:
    """Whether no number has enough videos: said once, not in every row."""
    judged = [number for number in comparison.numbers if number.higher_is_better is not None]
    return all(number.difference.interval.few_clusters for number in judged or comparison.numbers)


def _too_few(videos: int) -> str:
    return f"{counted(videos, 'video')} {'is' if videos == 1 else 'are'} too few for a claim"


def reason(number: Compared) -> str:
    """Why nobody is called better where the interval leaves 0 out, is none or has no width, or somebody is at 0."""
    gap = number.difference
    low, high = gap.interval.low, gap.interval.high
    if math.isnan(low):
        return gap.interval.note
    if gap.significant:
        if number.higher_is_better is None:
            return "they differ, but neither more nor less is better"
        return "p decides, although the interval reaches 0" if low <= 0 <= high else ""
    if low == high == 0:
        return _SAME
    if not (low > 0 or high < 0):
        return ""
    if gap.interval.few_clusters:
        return _too_few(gap.interval.clusters)
    return "the interval leaves 0 out, but " + (f"p = {gap.p:.2g} decides" if gap.testable else "there is no test")


def who(number: Compared, a: str, b: str) -> str:
    """The better of the two where the difference is significant, else empty."""
    if not number.difference.significant or number.higher_is_better is None:
        return ""
    return a if (number.difference.estimate > 0) == number.higher_is_better else b


def verdict(number: Compared, a: str, b: str) -> str:
    """One sentence on one number."""
    interval = number.difference.interval
    first, second = (number_text(value, number.unit) for value in (number.difference.a, number.difference.b))
    values = f"{number.label}: {first} against {second}"
    gap = interval.cell(gap_unit(number.unit))
    if interval.few_clusters:
        return f"{values}; {_too_few(interval.clusters)} about videos in general."
    why = f" ({reason(number)})" if reason(number) else ""
    if not number.difference.significant:
        return f"{values}; no significant difference, {gap}{why}."
    better = who(number, a, b)
    return f"{values}; {f'{better} is better' if better else 'they differ'}, difference {gap}{why}."


def _methods(comparison: Comparison) -> list[str]:
    used = dict.fromkeys(number.difference.test for number in comparison.numbers)
    same = any(reason(number) == _SAME for number in comparison.numbers)
    return [*(_METHOD[test] for test in used if test in _METHOD), *[_SAME_METHOD] * same]


def _lead(comparison: Comparison, verdicts: Mapping[str, Verdict]) -> str:
    judged = [number for number in comparison.numbers if number.higher_is_better is not None]
    others = _others(comparison, judged[0]).strip() if judged and not _few(comparison) else ""
    return " ".join(filter(None, (own_verdicts(verdicts), others)))


def comparison_card(comparison: Comparison) -> Scorecard:
    """Which run is better by the main number, that difference on a line, and the next ones."""
    known = [number for number in comparison.numbers if math.isfinite(number.difference.estimate)]
    main = next((number for number in known if number.higher_is_better is not None), None)
    others = [number for number in known if number is not main][:_OTHERS]
    return Scorecard(
        None, _claim(comparison), None if main is None else _measured(main, _main_note(main, comparison)),
        tuple(_measured(number, number.difference.interval.ends(gap_unit(number.unit))) for number in others),
    )  # fmt: skip


def _claim(comparison: Comparison) -> str:
    claim, colon, _ = tally(comparison).partition(": ")
    main = next((number for number in comparison.numbers if number.higher_is_better is not None), None)
    return f"{claim}, by {main.label}." if colon and main is not None and not _few(comparison) else tally(comparison)


def _main_note(main: Compared, comparison: Comparison) -> str:
    gap, unit = main.difference, gap_unit(main.unit)
    values = (f"{comparison.a} {number_text(gap.a, main.unit)}", f"{comparison.b} {number_text(gap.b, main.unit)}")
    return "; ".join([*values, gap.interval.ends(unit), *([f"p = {gap.p:.2g}"] if gap.testable else [])])


def _measured(number: Compared, note: str) -> CardNumber:
    return CardNumber(f"{number.label}, A − B", _signed(number), note, difference_bar(number))


def difference_bar(number: Compared) -> IntervalBar | None:
    """A difference on a line around 0, which is its baseline."""
    gap, unit = number.difference.interval, gap_unit(number.unit)
    if not math.isfinite(gap.estimate):
        return None
    known = [abs(value) for value in (gap.estimate, gap.low, gap.high) if math.isfinite(value)]
    reach = max(1.0 if unit == "points" or (number.unit == "score" and max(known) <= 1) else 0.0, *known) or 1.0
    return IntervalBar(value=gap.estimate, low=gap.low, high=gap.high, text=gap.cell(unit),
                       baselines={"no difference": 0.0}, span=(-reach, reach))  # fmt: skip


def _signed(number: Compared) -> str:
    text = number_text(number.difference.estimate, gap_unit(number.unit))
    return text.replace("-", "−") if text.startswith("-") or not number.difference.estimate else f"+{text}"
