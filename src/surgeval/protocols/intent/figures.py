"""The figures: competency against reliability, skills, scenarios, gaze, pictures, and what the set holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from surgeval.figures import Cloud, Estimate, Figure, Series, estimates, heatmap, scatter
from surgeval.protocols.intent.published import published
from surgeval.protocols.intent.scoring.numbers import LABELS
from surgeval.protocols.intent.scoring.weights import DIMENSIONS, SKILLS
from surgeval.protocols.intent.tables import scenario_table, set_table
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.protocols.intent.result import IntentScores

__all__ = ["intent_figures"]

_LEVEL_2 = ("perceptual", "cognitive", "twin", "paired", "over_rejection")


def intent_figures(results: Sequence[IntentScores]) -> dict[str, Figure]:
    """Every figure that the runs have numbers for; `scatter` first."""
    figures: dict[str, Figure | None] = {
        "scatter": _scatter(results),
        "skills": _bars(results, "Competency by skill", SKILLS, "% right"),
        "reliability": _bars(results, _traps_title(results), _LEVEL_2, "%"),
        "gaze": _gaze(results),
        "text_only": _text_only(results),
        "scenarios": _scenarios(results),
        "set": _set(results[0]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _traps_title(results: Sequence[IntentScores]) -> str:
    return "Traps, their twins, and both together" if any(result.has_twins for result in results) else "Traps"


def _per_cent(interval: Interval | None) -> Estimate:
    if interval is None:
        return Estimate(None)
    return Estimate.of(interval.estimate, interval.low, interval.high, scale=100)


def _scatter(results: Sequence[IntentScores]) -> Figure | None:
    both = [result for result in results if {"overall", "reliability"} <= set(result.numbers)]
    if not both:
        return None
    rows = published()
    clouds = [
        _cloud("average reliability", "reliability", both),
        _cloud("trap and twin both right", "paired", [result for result in both if result.has_twins]),
        Cloud("published, other data", tuple(row.name for row in rows), tuple(float(row.overall) for row in rows),
              tuple(float(row.reliability) for row in rows)),
    ]  # fmt: skip
    shown = tuple(cloud for cloud in clouds if cloud.x)
    return scatter("Competency and reliability", "competency, %", "reliability, %", shown)


def _cloud(name: str, number: str, results: Sequence[IntentScores]) -> Cloud:
    across, up = (tuple(100 * result.numbers[key].estimate for result in results) for key in ("overall", number))
    return Cloud(name, tuple(result.name for result in results), across, up, named=True)


def _bars(results: Sequence[IntentScores], title: str, numbers: Sequence[str], unit: str) -> Figure | None:
    known = [number for number in numbers if any(number in result.numbers for result in results)]
    if not known:
        return None
    groups = [
        Series(result.name, tuple(_per_cent(result.numbers.get(number)) for number in known)) for result in results
    ]
    labels = tuple(LABELS[number] for number in known)
    guessed = tuple(_guessing([result.chances.get(number) for result in results]) for number in known)
    return estimates(title, labels, tuple(groups), unit, span=(0, 100), baselines=guessed)


def _guessing(chances: Sequence[float | None]) -> float | None:
    """What guessing reaches; nothing where the runs were asked other questions, so that it differs."""
    known = {round(100 * chance, 6) for chance in chances if chance is not None}
    return known.pop() if len(known) == 1 else None


def _gaze(results: Sequence[IntentScores]) -> Figure | None:
    asked = [result for result in results if result.gains]
    if not asked:
        return None
    numbers = (*DIMENSIONS, "overall")
    groups = tuple(
        Series(result.name, tuple(_per_cent(result.gains[number].interval if number in result.gains else None)
                                      for number in numbers))
        for result in asked
    )  # fmt: skip
    return estimates("What the gaze adds", tuple(LABELS[number] for number in numbers), groups, "points")


def _text_only(results: Sequence[IntentScores]) -> Figure | None:
    asked = [result for result in results if result.text_only]
    if not asked:
        return None
    numbers = [
        number
        for number in ("overall", "perceptual", "cognitive")
        if any(number in result.text_only for result in asked)
    ]
    groups = []
    for result in asked:
        own = f" ({result.name})" if len(asked) > 1 else ""
        rows = [result.text_only.get(number) for number in numbers]
        groups.append(Series(f"text only{own}", tuple(_per_cent(row.text if row else None) for row in rows)))
        groups.append(Series(f"with the pictures{own}", tuple(_per_cent(row.full if row else None)
                                                                      for row in rows)))  # fmt: skip
    guessed = tuple(_guessing([result.text_only[number].chance for result in asked if number in result.text_only])
                    for number in numbers)  # fmt: skip
    return estimates("Without and with the pictures", tuple(LABELS[number] for number in numbers), tuple(groups),
                        "% right", span=(0, 100), baselines=guessed)  # fmt: skip


def _scenarios(results: Sequence[IntentScores]) -> Figure | None:
    """The forest: a row per scenario and number."""
    every = {result.name: scenario_table(result) for result in results}
    tables = {name: table for name, table in every.items() if table.height}
    if not tables:
        return None
    rows = pl.concat([table.select("scenario", "number") for table in tables.values()]).unique(maintain_order=True)
    groups = []
    for name, table in tables.items():
        known = {(row["scenario"], row["number"]): row for row in table.iter_rows(named=True)}
        groups.append(Series(name, tuple(_stored(known.get(key)) for key in rows.iter_rows())))
    labels = tuple(f"{scenario.replace('_', ' ')}: {LABELS[number]}" for scenario, number in rows.iter_rows())
    return estimates("By scenario", labels, tuple(groups), "% right", span=(0, 100))


def _stored(row: dict[str, float | None] | None) -> Estimate:
    if row is None or row["estimate"] is None:
        return Estimate(None)
    ends = [None if row[f"estimate_{end}"] is None else 100 * row[f"estimate_{end}"] for end in ("low", "high")]  # type: ignore[operator]
    return Estimate(100 * row["estimate"], *ends)


def _set(scores: IntentScores) -> Figure:
    table = set_table(scores.items)
    names = [name for name in table.columns if name not in ("scenario", "videos", "items")]
    words = {"perceptual": "perceptual traps", "cognitive": "cognitive traps", "twin": "true-premise twins",
             "untrapped": "traps taken away"}  # fmt: skip
    return heatmap(
        "What the set holds", tuple(text.replace("_", " ") for text in table["scenario"]),
        tuple(words.get(name, name) for name in names), tuple(table.select(names).iter_rows()), "items",
    )  # fmt: skip
