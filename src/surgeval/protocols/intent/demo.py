"""The demo's chapter on clinical intent: a model that looks, one that accepts every premise, one that always rejects.

`phantom-llava` and `phantom-sycophant` are equally able; only trap and twin together tell them apart. `always-reject`
looks at nothing and passes every cognitive trap.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.console import progress_bar, require_models
from surgeval.errors import RunError
from surgeval.processes import WorkerDied, WorkerPool
from surgeval.protocols.contract import DEMO_IMPORTS, Chapter, Demo

if TYPE_CHECKING:
    import polars as pl

    from surgeval.protocols.intent.result import IntentScores

MODELS = ("phantom-llava", "phantom-sycophant")
REFERENCE = "always-reject"
SPLIT = "test"  # operations that the models have not seen
PICTURES = 24
_ROWS = ("overall", "cognitive", "twin", "paired", "over_rejection", "perceptual")


def chapter(demo: Demo) -> Chapter:
    """Ask the three the questions of the test operations; a page each, and one on which they stand side by side."""
    require_models("intent")
    from surgeval.protocols.intent.page import write_page_of
    from surgeval.protocols.intent.result import load_intent

    models, out, data = _embedded(), demo.out, demo.dataset.root
    names = (*models, REFERENCE)
    # Opening torch twice costs less than the small networks gain from a second thread.
    workers = min(2, os.cpu_count() or 1)
    try:
        with (
            progress_bar("models") as bar,
            WorkerPool(partial(ask, data, out, SPLIT), models, workers, preload=DEMO_IMPORTS) as pool,
        ):
            ask(data, out, SPLIT, REFERENCE)
            for _ in bar.track(pool, "asking", len(models)):
                pass
    except WorkerDied as error:
        raise RunError(f"{out}: a process that asked questions died; the same command does the rest") from error
    scores = {name: load_intent(out / name) for name in names}
    return Chapter(
        title="can it be fooled? questions with false premises",
        page=write_page_of(list(scores.values()), out),
        runs=tuple(out / name for name in names),
        table=_table(scores),
        sentences=_sentences(scores),
    )


def ask(data: Path, out: Path, split: str | None, name: str) -> None:
    """One model's run with its own page."""
    from surgeval.protocols.intent.asking.run import run_intent
    from surgeval.protocols.intent.page import write_page_of
    from surgeval.protocols.intent.result import load_intent

    if name in MODELS:
        import torch

        torch.set_num_threads(1)
    # Enough to tell the three apart and to see what language alone answers; a study of your own deserves the rest.
    run_intent(data, name, out / name, interventions=("text-only",), split=split, pictures=PICTURES, progress=False)
    write_page_of([load_intent(out / name)], out / name)


def _embedded() -> tuple[str, ...]:
    """Those of the models whose weights this installation holds."""
    from surgeval.models import EMBEDDED

    return tuple(name for name in MODELS if EMBEDDED[name].installed)


def _table(scores: Mapping[str, IntentScores]) -> pl.DataFrame:
    import polars as pl

    from surgeval.protocols.intent.scoring.numbers import LABELS

    rows: Sequence[Mapping[str, str]] = [
        {"": LABELS[number], **{name: _cell(result, number) for name, result in scores.items()}} for number in _ROWS
    ]
    return pl.DataFrame(rows)


def _cell(result: IntentScores, number: str) -> str:
    return result.numbers[number].cell("share") if number in result.numbers else ""


def _sentences(scores: Mapping[str, IntentScores]) -> tuple[str, ...]:
    from surgeval.results import percent

    def share(name: str, number: str) -> str:
        return percent(scores[name].numbers[number].estimate)

    sentences = [
        f"{REFERENCE} passes {share(REFERENCE, 'cognitive')} of the cognitive traps and gets "
        f"{share(REFERENCE, 'paired')} of them right together with their true twin: it rejects, and tells nothing apart"
    ]
    if set(MODELS) <= set(scores):
        looking, believing = MODELS
        sentences.append(
            f"{looking} and {believing} are right in {share(looking, 'overall')} and {share(believing, 'overall')} of "
            f"the plain questions, and on trap and twin together in {share(looking, 'paired')} and "
            f"{share(believing, 'paired')}"
        )
    return tuple(sentences)
