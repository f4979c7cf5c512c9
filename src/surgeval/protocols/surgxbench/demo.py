"""The demo's chapter on where models look: two that name instruments equally well, one of them for the wrong reason.

The six test operations are filmed again with a tint of the tissue that betrays the instrument at work:
`phantom-shortcut` reads the tint, `phantom-clip` looks at the tools, and only the grounding numbers tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval.console import progress
from surgeval.protocols.contract import Chapter, Demo

if TYPE_CHECKING:
    import polars as pl

    from surgeval.protocols.surgxbench.result import SurgXScores

MODELS = ("phantom-clip", "phantom-clip-resnet", "phantom-shortcut")
EVERY = 4  # one labelled frame in four: enough to tell the models apart; a study of your own deserves them all
RESAMPLES = 1000
_ROWS = {
    "accuracy": "names an instrument that is there",
    "tp_ac": "of what it looks at when right, is an instrument",
    "tp_lift": "times chance",
    "grounded_when_right": "right predictions that are grounded",
    "lost_boxes_minus_moved": "lost by hiding the instrument, more than elsewhere",
}


def chapter(demo: Demo) -> Chapter:
    """Film the test operations with the betraying tint, look at them with three models, and write one page."""
    from surgeval import phantom
    from surgeval.protocols.surgxbench._settings import profile_settings
    from surgeval.protocols.surgxbench.method import run_surgxbench
    from surgeval.protocols.surgxbench.page import write_page_of

    out = demo.out
    out.mkdir(parents=True, exist_ok=True)
    data = phantom.write_edition(demo.edition, out / "tinted", tint="by_instrument", split="test")
    scores = []
    with progress("models") as bar:
        for name in bar.track(MODELS, description="looking"):
            tasks = ("instruments", "triplets") if name == "phantom-clip" else ("instruments",)
            settings = profile_settings("surgxbench", tasks=tasks, every=EVERY, curves=6, sanity=6)
            run = run_surgxbench(data, name, folder=out / name, settings=settings, progress=False)
            scores.append(run.result(gallery=12, resamples=RESAMPLES))
    page = write_page_of(scores, out)
    return Chapter(
        title="three small models: right, and right for the right reason?",
        page=page,
        runs=tuple(out / one.name for one in scores),
        table=_table(scores),
        sentences=_sentences(scores),
    )


def _table(scores: list[SurgXScores]) -> pl.DataFrame:
    import polars as pl

    rows = [
        {"": text, **{one.name: _shown(one, key) for one in scores}}
        for key, text in _ROWS.items()
    ]  # fmt: skip
    return pl.DataFrame(rows)


def _shown(one: SurgXScores, key: str) -> str:
    found = one.numbers.get(key)
    return "" if found is None else f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _sentences(scores: list[SurgXScores]) -> tuple[str, ...]:
    honest, shortcut = (next(one for one in scores if one.name == name) for name in (MODELS[0], MODELS[2]))
    a, b = (one.numbers["tp_lift"] for one in (honest, shortcut))
    right = [one.numbers["accuracy"].estimate for one in (honest, shortcut)]
    if a.low <= b.high:
        return ()
    return (
        f"{honest.name} is right in {right[0]:.0%} of the frames, {shortcut.name} in {right[1]:.0%}; "
        f"only the first looks at the instruments ({a.estimate:.1f} times chance against {b.estimate:.1f}).",
    )
