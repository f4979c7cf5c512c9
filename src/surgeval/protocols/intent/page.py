"""The page on one model, or several on the same items: verdict, two levels, interventions, pictures, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from surgeval.pages import Plot, Section
from surgeval.protocols.intent import page_tables as readable
from surgeval.protocols.intent import page_words as words
from surgeval.protocols.intent.ceiling import gaze_ceiling
from surgeval.protocols.intent.figures import intent_figures
from surgeval.protocols.intent.gallery import failed_traps, same_question_sections
from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.scoring.weights import SKILLS
from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of
from surgeval.results import counted, percent
from surgeval.stats import number_text

__all__ = ["intent_sections", "write_page_of"]


def write_page_of(results: Sequence[IntentScores], out: str | Path) -> Path:
    """Write page, tables and figures of one or several runs below `out`; returns the page's path."""
    page = RunPage(results, out, _tables(results), intent_figures(results) if results else {}, remarks=_NOTES)
    several = len(results) > 1
    warnings = [f"{result.name}: {text}" if several else text for result in results for text in result.reply_warnings]
    return page.write(
        intent_sections(results, page.plots), f"{words.METHOD}\n\n{words.METRIC}",
        title="The same questions" if several else "", facts=_facts(results), warnings=warnings,
        notes=_notes(results), pictures=case_pictures(results[0]), details=_details(results),
    )  # fmt: skip


def _tables(results: Sequence[IntentScores]) -> Mapping[str, pl.DataFrame]:
    """The tables of one run; those of several one below the other, the model in the first column."""
    if len(results) == 1:
        return results[0].tables
    every = [{name: table.select(pl.lit(result.name).alias("model"), pl.all()) for name, table in result.tables.items()}
             for result in results]  # fmt: skip
    names = dict.fromkeys(name for tables in every for name in tables)
    return {
        name: pl.concat([tables[name] for tables in every if name in tables], how="diagonal_relaxed") for name in names
    }


_NOTES = {
    "scatter": "Published points are other models on other items. Where trap and twin are counted together, whoever "
    "only rejects falls to the bottom.",
    "set": "The paper's Figure 3 for this set. Twins measure no competency.",
}


def intent_sections(results: Sequence[IntentScores], plots: Mapping[str, Plot]) -> tuple[Section, ...]:
    """The chapters."""

    def plot(*names: str) -> tuple[Plot, ...]:
        return tuple(plots[name] for name in names if name in plots)

    twins = any(result.set_has_twins for result in results)
    several = len(results) > 1
    sections = [
        Section("Two levels", figures=plot("scatter")),
        Section("Competency", words.LEVEL_1, figures=plot("skills"), tables=readable.competency_tables(results)),
        Section("Reliability", f"{words.LEVEL_2}\n\n{words.TWINS if twins else words.NO_TWINS}",
                figures=plot("reliability"), tables=readable.reliability_tables(results)),
        Section("Does it look where the surgeon looks?", f"{words.GAZE}{_ceiling(results)}", figures=plot("gaze"),
                tables=readable.gaze_tables(results)),
        Section("Without the pictures", words.TEXT, figures=plot("text_only"),
                tables=readable.text_only_tables(results)),
        Section("The trap taken away", words.REMOVAL, tables=readable.removal_tables(results)),
        Section("Another order, another gaze", words.ORDER, tables=readable.order_tables(results)),
        Section("Scenarios", "", figures=plot("scenarios", "set"), tables=readable.scenario_tables(results)),
        *same_question_sections(results),
        *(Section(f"Failed traps: {result.name}" if several else "Failed traps",
                  f"What it chose and what is right{words.CIRCLE if any(item.gaze for item in result.items) else ''}.",
                  cards=cards)
          for result in results if (cards := failed_traps(result))),
        Section("Reading the replies", words.READING, tables=readable.reading_tables(results)),
        Section("Each answer", "", evidence=evidence_of(results)),
    ]  # fmt: skip
    return tuple(sections)


def _ceiling(results: Sequence[IntentScores]) -> str:
    known = gaze_ceiling(results[0].items)
    if known is None:
        return ""
    return (
        f" The ceiling, where it is known: of {known.items} items that ask for a quarter of the picture, the quarter "
        f"of the gaze is the right answer of {percent(known.share)}; following the gaze can give no more on these."
    )


def _facts(results: Sequence[IntentScores]) -> tuple[str, ...]:
    """What was measured, in a few words."""
    result = results[0]
    replied = result.answers.filter(pl.col("status") == "ok")
    videos = counted(len({item.cluster for item in result.items}), "video")
    subset = f"a subset: {result.subset}" if result.subset else ""
    if replied.is_empty():
        return counted(len(result.items), "item"), videos, "no item was answered", subset
    unreadable = f"{number_text(result.unreadable, 'share')} unreadable" if result.unreadable else ""
    replies = counted(replied.height, "reply", "replies")
    return counted(len(result.items), "item"), videos, replies if len(results) == 1 else "", unreadable, subset


def _notes(results: Sequence[IntentScores]) -> list[str]:
    subsets = {result.subset for result in results}
    warnings = [f"A subset of the items, not the set: {text}." for text in subsets if text and len(results) > 1]
    for result in results:
        own = f"{result.name}: " if len(results) > 1 else ""
        warnings += [f"{own}{warning}" for warning in result.warnings]
        if result.invalid == "drop":
            lost = percent(result.unreadable)
            warnings.append(f"{own}Unreadable replies are left out ({lost} of all); by default they count as wrong.")
        warnings += [f"{own}{sentence}" for sentence in _skills_missing(result)]
        warnings += [f"{own}{note}." for note in result.notes]
    if len({tuple(item.id for item in result.items) for result in results}) > 1:
        warnings.append("These runs were asked different items: compare with care.")
    return warnings


def _skills_missing(result: IntentScores) -> list[str]:
    """Which skills are in no mean: those that the set lacks, and those of which every request failed."""
    scored = set(result.plain["cell"])
    if not scored & set(SKILLS):
        return []
    competency = set(result.answers.filter(pl.col("role") == "competency")["skill"])
    lacking = [skill for skill in SKILLS if skill not in competency]
    failed = [skill for skill in SKILLS if skill in competency and skill not in scored]
    parts = {"No item of": lacking, "No answer to an item of": failed}
    return [f"{what} {', '.join(names)}: means are over the other skills." for what, names in parts.items() if names]


def _details(results: Sequence[IntentScores]) -> dict[str, str]:
    choices = [_choices(result) for result in results]
    return {key: "; ".join(dict.fromkeys(choice[key] for choice in choices)) for key in choices[0]}


def _choices(result: IntentScores) -> dict[str, str]:
    config = result.settings
    known = {"Prompt": "prompt", "Gaze": "gaze", "Frames": "frames", "Temperature": "temperature"}
    recorded = {label: str(config[key])[:80] for label, key in known.items() if config.get(key) is not None}
    return {
        "Model": result.name,
        "Items": f"{len(result.items)} of {counted(len({item.cluster for item in result.items}), 'video')}",
        "Subset": result.subset or "none: all",
        **{label: recorded.get(label, "not said") for label in known},
        "Unreadable replies": "wrong" if result.invalid == "wrong" else "left out",
    }  # fmt: skip
