"""The demo's chapter on where models look: two that name instruments equally well, one of them for the wrong reason.

The six test operations are filmed again with a tint of the tissue that betrays the instrument at work:
`phantom-shortcut` reads the tint, `phantom-clip` looks at the tools, and only the grounding numbers tell.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.console import require_models
from surgeval.errors import RunError
from surgeval.processes import WorkerDied, WorkerPool, report
from surgeval.progress import advance, forwarded, phases
from surgeval.protocols.contract import DEMO_IMPORTS, Chapter, Demo

if TYPE_CHECKING:
    import polars as pl

    from surgeval.protocols.surgxbench.result import SurgXScores

MODELS = ("phantom-clip", "phantom-clip-resnet", "phantom-shortcut")
EVERY = 5  # one frame in five is filmed: enough to tell the models apart; a study of your own deserves them all
CHECKED = 3  # frames for the curves and the randomised weights, which take longest
_ROWS = {
    "accuracy": "names an instrument that is there",
    "tp_ac": "of what it looks at when right, is an instrument",
    "tp_lift": "times chance",
    "grounded_when_right": "right predictions that are grounded",
    "lost_boxes_minus_moved": "lost by hiding the instrument, more than elsewhere",
}


def chapter(demo: Demo) -> Chapter:
    """Film the test operations with the betraying tint, look at them with three models, and write one page."""
    require_models("surgxbench")
    from surgeval import phantom
    from surgeval.protocols.surgxbench.page import write_page_of
    from surgeval.protocols.surgxbench.result import load_surgxbench

    out = demo.out
    out.mkdir(parents=True, exist_ok=True)
    pinned = phantom.edition(demo.edition)
    data = phantom.write_phantom(
        out / "tinted", seed=pinned.seed, videos=pinned.videos, seconds=pinned.seconds,
        fps_labels=pinned.fps_labels / EVERY, width=pinned.width, height=pinned.height, tint="by_instrument",
        split="test", processes=1,  # another chapter has the other core
    )  # fmt: skip
    # Opening torch twice costs less than the small networks gain from a second thread.
    workers = min(2, os.cpu_count() or 1)
    with phases() as shown:
        shown.phase("looking", frames=_frames(data) * len(MODELS), checks=CHECKED * len(MODELS))
        try:
            with WorkerPool(
                partial(look, data, out), MODELS, workers, on_report=lambda step: advance(*step), preload=DEMO_IMPORTS
            ) as pool:
                for _ in pool:
                    pass
        except WorkerDied as error:
            raise RunError(f"{out}: a process that looked at frames died; the same command does the rest") from error
    scores = [load_surgxbench(out / name) for name in MODELS]
    page = write_page_of(scores, out)
    return Chapter(
        title="three small models: right, and right for the right reason?",
        page=page,
        runs=tuple(out / run.name for run in scores),
        table=_table(scores),
        sentences=_sentences(scores),
    )


def _frames(data: Path) -> int:
    """The frames that each model looks at."""
    from surgeval.datasets import open_dataset
    from surgeval.protocols.surgxbench.measuring.worker import labelled_frames

    dataset = open_dataset(data)
    return sum(len(labelled_frames(dataset, video.name, 1)) for video in dataset.videos())


def look(data: Path, out: Path, name: str) -> None:
    """One model's run with its own page; in a process of its own."""
    import torch

    from surgeval.protocols.surgxbench.method import run_surgxbench
    from surgeval.protocols.surgxbench.page import write_page_of
    from surgeval.protocols.surgxbench.settings import profile_settings

    torch.set_num_threads(1)
    tasks = ("instruments", "triplets") if name == MODELS[0] else ("instruments",)
    settings = profile_settings("surgxbench", tasks=tasks, curves=CHECKED, sanity=CHECKED)
    with forwarded(lambda *step: report(step)):
        run = run_surgxbench(data, name, out=out / name, settings=settings, gallery=12, progress=False)
    write_page_of([run.loaded], out / name)


def _table(scores: list[SurgXScores]) -> pl.DataFrame:
    import polars as pl

    rows = [
        {"": text, **{run.name: _shown(run, key) for run in scores}}
        for key, text in _ROWS.items()
    ]  # fmt: skip
    return pl.DataFrame(rows)


def _shown(run: SurgXScores, key: str) -> str:
    from surgeval.protocols.surgxbench.numbers import MEASURES
    from surgeval.stats import find_measure

    interval = run.numbers.get(key)
    return "" if interval is None else interval.cell(find_measure(MEASURES, key).unit)


def _sentences(scores: list[SurgXScores]) -> tuple[str, ...]:
    from surgeval.results import percent

    honest, shortcut = (next(run for run in scores if run.name == name) for name in (MODELS[0], MODELS[2]))
    a, b = (run.numbers["tp_lift"] for run in (honest, shortcut))
    right = [run.numbers["accuracy"].estimate for run in (honest, shortcut)]
    if a.low <= b.high:
        return ()
    return (
        f"{honest.name} is right in {percent(right[0])} of the frames, {shortcut.name} in {percent(right[1])}; "
        f"only the first looks at the instruments ({a.estimate:.1f} times chance against {b.estimate:.1f}).",
    )
