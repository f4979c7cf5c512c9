"""The pictures of the page on where models look: the gallery, and frames with their attended region hidden (Figure 6).

What stands under a picture and is not in the item comes from the run's cases: attended share, labelled triplets.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from surgeval.pages import Card, Picture
from surgeval.protocols.surgxbench.item import Hiding, Item
from surgeval.protocols.surgxbench.result import SurgXScores
from surgeval.stats import number_text
from surgeval.vocab import format_class_name

__all__ = ["gallery_cards", "hiding_cards", "match_level"]

_MARKS = {"IVT": "✓ IVT", "IV": "IV", "IT": "IT", "I": "I only", "": "none"}


def gallery_cards(run: SurgXScores) -> tuple[Card, ...]:
    """A card per prediction, sortable by what is right but ungrounded."""
    rows = run.cases.filter(pl.col("task") == "instruments")
    values = [] if rows.is_empty() else rows.select("cluster", "frame", "class", "area").rows()
    areas = {(video, frame, name): area for video, frame, name, area in values}
    return tuple(_card(item, areas.get((item.video, item.frame, item.predicted))) for item in run.items)


def _card(item: Item, area: float | None) -> Card:
    numbers = [f"AC {number_text(item.ac, 'share')}"]
    for name, value in (("chance", item.chance), ("AA", item.aa), ("|A|/HW", area)):
        numbers += [] if value is None else [f"{name} {number_text(value, 'share')}"]
    keys = {
        # All right ones, the least grounded first; one below chance is ungrounded however high its AC.
        "right but ungrounded": None if item.ac is None or not item.right else 1 - item.ac + (not item.grounded),
        "wrong but grounded": None if item.ac is None or item.right else item.ac + bool(item.grounded),
        "most grounded": item.ac,
        "least grounded": None if item.ac is None else -item.ac,
        "highest score": item.score,
    }
    lines = (f"{', '.join(numbers)}, score {item.score:.3f}", f"labelled: {', '.join(item.present) or 'nothing'}",
             f"{item.video} / {item.frame}" + (f" ({item.flags})" if item.flags else ""))  # fmt: skip
    alt = f"{item.video} frame {item.frame}: boxes and heatmap of {item.predicted}"
    return Card(Picture(item.picture, alt), f"{item.predicted}: {item.kind}", lines, keys)


def hiding_cards(scores: Sequence[SurgXScores]) -> tuple[Card, ...]:
    """Figure 6: what is labelled, and the top prompts before and after the attended region was hidden."""
    cards = []
    for run in scores:
        for hiding in run.extras.hidings:
            rows = run.cases.filter(pl.col("task") == "triplets")
            here = (pl.col("cluster") == hiding.video) & (pl.col("frame") == hiding.frame)
            labelled = [] if rows.is_empty() else rows.filter(here)["triplet"].to_list()
            words = run.settings["method"]["name"] == "token-gradcam"
            cards.append(_hiding(run.name, hiding, tuple(dict.fromkeys([hiding.truth, *labelled])), words=words))
    return tuple(cards)


def _hiding(model: str, hiding: Hiding, labelled: tuple[str, ...], *, words: bool) -> Card:
    """`words`: the model answers in words, so what stands below is what it said, not prompts."""

    def listed(heading: str, prompts: Sequence[tuple[str, float]]) -> tuple[str, ...]:
        return heading, *(
            f"{number}. {_MARKS[match_level(prompt, labelled)]} · {score:.3f} · "
            f"{_named(prompt) if words else _sentence(prompt)}"
            for number, (prompt, score) in enumerate(prompts, start=1)
        )

    lines = (
        f"Labelled: {'; '.join(_named(name) for name in labelled)}",
        *listed(f"{'Said' if words else 'Top prompts'}, whole frame (left):", hiding.before),
        *listed(f"{'Said' if words else 'Top prompts'}, region hidden (right):", hiding.after),
        f"{model}, {hiding.video} / {hiding.frame}",
    )
    title = f"{_named(hiding.truth)}: {hiding.outcome(labelled)} when the attended region is hidden"
    alt = f"{hiding.video} frame {hiding.frame} with and without the attended region"
    return Card(Picture(hiding.picture, alt), title, lines)


def match_level(prompt: str, labelled: Sequence[str]) -> str:
    """The best match of a prompt with any labelled triplet: IVT, IV, IT, I, or nothing.

    >>> labelled = ["hook,dissect,gallbladder", "grasper,retract,liver"]
    >>> [match_level(f"hook,{rest}", labelled) for rest in ("dissect,gallbladder", "dissect,liver", "clip,gallbladder")]
    ['IVT', 'IV', 'IT']
    >>> match_level("hook,retract,liver", labelled), match_level("clipper,retract,liver", labelled)
    ('I', '')
    """
    if prompt in labelled:
        return "IVT"
    prompted = prompt.split(",")
    best = ""
    for parts in (name.split(",") for name in labelled):
        # A class name with a comma in it cannot be taken apart: such a pair matches whole or not at all.
        if len(parts) == len(prompted) == 3 and parts[0] == prompted[0]:
            best = max(
                best, "IV" if parts[1] == prompted[1] else "IT" if parts[2] == prompted[2] else "I", key=_ORDER.index
            )
    return best


_ORDER = ("", "I", "IT", "IV", "IVT")


def _named(triplet: str) -> str:
    """`grasper, null verb, null target`."""
    return ", ".join(format_class_name(part) for part in triplet.split(","))


def _sentence(triplet: str) -> str:
    """The prompt's words."""
    parts = triplet.split(",")
    if len(parts) != 3:
        return triplet
    instrument, verb, target = map(format_class_name, parts)
    return f"I use a {instrument} to {verb} the {target}"
