"""The demo's chapter on clinical intent: a model that looks, a sister that believes all premises, one who rejects.

`phantom-llava` and `phantom-sycophant` are equally able; only trap and twin together tell them apart. `always-reject`
looks at nothing and passes every cognitive trap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.console import progress, require_models
from surgeval.protocols.contract import Chapter, Demo

if TYPE_CHECKING:
    import polars as pl

    from surgeval.protocols.intent._conditions import Intervention
    from surgeval.protocols.intent.result import IntentScores

MODELS = ("phantom-llava", "phantom-sycophant")
REFERENCE = "always-reject"
SPLIT = "test"  # operations that the models have not seen
INTERVENTIONS: tuple[Intervention, ...] = ("gaze", "text-only")
PICTURES = 40
_ROWS = ("overall", "cognitive", "twin", "paired", "over_rejection", "perceptual")


def chapter(demo: Demo) -> Chapter:
    """Ask the three the questions of the test operations; a page each, and one on which they stand side by side."""
    require_models("intent")
    from surgeval.protocols.intent._run import run_intent
    from surgeval.protocols.intent.page import write_page_of
    from surgeval.protocols.intent.result import load_intent

    names = (*_embedded(), REFERENCE)
    scores: dict[str, IntentScores] = {}
    pages: dict[str, Path] = {}
    with progress("models") as bar:
        for name in bar.track(names, "asking", len(names)):
            run_intent(demo.dataset.root, name, demo.out / name, interventions=INTERVENTIONS, split=SPLIT,
                       pictures=PICTURES, progress=False)  # fmt: skip
            scores[name] = load_intent(demo.out / name)
            pages[name] = write_page_of([scores[name]], demo.out / name)
    page = write_page_of(list(scores.values()), demo.out)
    return Chapter(
        title="can it be fooled? questions with false premises",
        page=page,
        runs=tuple(demo.out / name for name in names),
        table=_table(scores),
        sentences=_sentences(scores),
        pages={f"Questions and traps: {name}": path for name, path in pages.items()},
    )


def _embedded() -> tuple[str, ...]:
    """Those of the models whose weights this installation holds."""
    from surgeval.errors import BadInput
    from surgeval.models import embedded_folder

    held = []
    for name in MODELS:
        with suppress(BadInput):
            embedded_folder(name)
            held.append(name)
    return tuple(held)


def _table(scores: Mapping[str, IntentScores]) -> pl.DataFrame:
    import polars as pl

    from surgeval.protocols.intent._weights import LABELS

    rows: Sequence[Mapping[str, str]] = [
        {"": LABELS[number], **{name: _cell(one, number) for name, one in scores.items()}} for number in _ROWS
    ]
    gains = {name: one.gains["overall"].interval.cell("share") if one.gains else "" for name, one in scores.items()}
    return pl.DataFrame([*rows, {"": "gain by gaze", **gains}])


def _cell(one: IntentScores, number: str) -> str:
    return one.numbers[number].cell("share") if number in one.numbers else ""


def _sentences(scores: Mapping[str, IntentScores]) -> tuple[str, ...]:
    from surgeval.results import percent

    def said(name: str, number: str) -> str:
        return percent(scores[name].numbers[number].estimate)

    made = [
        f"{REFERENCE} passes {said(REFERENCE, 'cognitive')} of the cognitive traps and gets "
        f"{said(REFERENCE, 'paired')} of them right together with their true twin: it rejects, and tells nothing apart"
    ]
    if set(MODELS) <= set(scores):
        looking, believing = MODELS
        made.append(
            f"{looking} and {believing} are right in {said(looking, 'overall')} and {said(believing, 'overall')} of "
            f"the plain questions, and on trap and twin together in {said(looking, 'paired')} and "
            f"{said(believing, 'paired')}"
        )
    return tuple(made)
