"""Pictures of the page: failed traps, and the same question put to several models (the paper's Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from surgeval.pages import Card, Picture, Section, Table
from surgeval.protocols.intent.evidence import ROLES, lettered
from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.scoring.scores import PLAIN
from surgeval.protocols.intent.scoring.weights import SKILLS
from surgeval.records import IntentQuestion

__all__ = ["failed_traps", "same_question_sections"]

MOST_CARDS = 60
_HEADS = ("scenario", "skill", "question", "right")


def _picture(item: IntentQuestion, data: bytes) -> Picture:
    """What the run kept of an item: its frames with the gaze circled."""
    return Picture(data, f"{item.cluster}, {item.id}")


def failed_traps(result: IntentScores) -> tuple[Card, ...]:
    """A card per failed trap that has a picture: question, what was chosen, what is right."""
    items = {item.id: item for item in result.items}
    rows = result.answers.filter(
        (pl.col("condition") == PLAIN) & (pl.col("status") == "ok") & ~pl.col("right")
        & pl.col("role").is_in(["perceptual", "cognitive"]) & pl.col("item").is_in(list(result.pictures))
    ).head(MOST_CARDS)  # fmt: skip
    cards = []
    for row in rows.iter_rows(named=True):
        item = items[row["item"]]
        lines = (
            item.question, f"✗ chosen: {lettered(item, row['choice'])}", f"✓ right: {lettered(item, item.answer)}",
            f"{item.cluster} / {item.id}, {item.skill}",
        )  # fmt: skip
        cards.append(Card(_picture(item, result.pictures[item.id]), f"{ROLES[row['role']]}: failed", lines))
    return tuple(cards)


def _telling(results: Sequence[IntentScores]) -> list[tuple[IntentQuestion, list[tuple[str, int | None, bool]]]]:
    """One item per scenario and skill that all were asked: the one on which they differ most, pictured if possible."""
    answered = [
        {row["item"]: (row["choice"], row["right"]) for row in result.answers.filter(
            (pl.col("condition") == PLAIN) & (pl.col("status") == "ok")).iter_rows(named=True)}
        for result in results
    ]  # fmt: skip
    roles = dict(results[0].answers.select("item", "role").iter_rows())
    best: dict[tuple[str, str], tuple[tuple[int, bool], IntentQuestion]] = {}
    for item in results[0].items:
        if roles.get(item.id) != "competency" or not all(item.id in answers for answers in answered):
            continue
        right = sum(answers[item.id][1] for answers in answered)
        pictured = any(item.id in result.pictures for result in results)
        rank = (min(right, len(answered) - right), pictured)
        key = (item.scenario, item.skill)
        if key not in best or rank > best[key][0]:
            best[key] = (rank, item)
    order = sorted(best, key=lambda key: (key[0], SKILLS.index(key[1])))
    return [
        (item, [(name, *answers[item.id]) for name, answers in zip(_distinct_names(results), answered, strict=True)])
        for item in (best[key][1] for key in order)
    ]


def same_question_sections(results: Sequence[IntentScores]) -> tuple[Section, ...]:
    """The chapter on the same question put to several models; none for one model."""
    tables = _table(results) if len(results) > 1 else ()
    if not tables:
        return ()
    text = (
        "One question per skill and scenario, that on which the models differ most, with every model's answer: ✓ "
        "right, ✗ wrong. In the manner of the paper's Figure 4."
    )
    return (Section("The same question, several models", text, cards=_cards(results), tables=tables),)


def _distinct_names(results: Sequence[IntentScores]) -> list[str]:
    """Names that can head columns: numbered where two runs share one (a model asked twice) or one is a column's."""
    names = [result.name for result in results]
    if len({*_HEADS, *names}) == len(_HEADS) + len(names):
        return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


def _cards(results: Sequence[IntentScores]) -> tuple[Card, ...]:
    """The paper's Figure 4: one question per skill and scenario, every model's answer marked right or wrong."""
    pictures = {name: data for result in results for name, data in result.pictures.items()}
    cards = []
    for item, answers in _telling(results):
        if item.id in pictures:
            lines = (
                item.question, f"Right: {lettered(item, item.answer)}",
                *(f"{'✓' if right else '✗'} {name}: {lettered(item, choice)}" for name, choice, right in answers),
                f"{item.cluster} / {item.id}",
            )  # fmt: skip
            title = f"{item.scenario.replace('_', ' ')}: {item.skill}"
            cards.append(Card(_picture(item, pictures[item.id]), title, lines))
    return tuple(cards)


def _table(results: Sequence[IntentScores]) -> tuple[Table, ...]:
    """The same as a table, with the questions that have no picture."""
    rows = [
        (item.scenario.replace("_", " "), item.skill, item.question, lettered(item, item.answer),
         *(f"{'✓' if right else '✗'} {lettered(item, choice)}" for _, choice, right in answers))
        for item, answers in _telling(results)
    ]  # fmt: skip
    if not rows:
        return ()
    frame = pl.DataFrame(rows, schema=dict.fromkeys((*_HEADS, *_distinct_names(results)), pl.String), orient="row")
    return (Table("One question per skill and scenario", frame, folded=True),)
