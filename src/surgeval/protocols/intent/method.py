"""Protocol `intent`: multiple-choice questions about what a clinician does and why, and traps among them.

`run_intent` asks a model, `score_intent` takes replies that were made elsewhere. Both leave a case per item and
condition; competency, reliability and what the interventions show are computed from those (`result`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

from surgeval.console.commands import Help, common
from surgeval.console.panels import SCORING
from surgeval.protocols.asked import UNKNOWN_MEDIA
from surgeval.protocols.intent.asking.look import Eyes, Seeing
from surgeval.protocols.intent.asking.responses import Responses, Source
from surgeval.protocols.intent.asking.run import INVALID, ITEMS, KEPT, IntentRun, ask_items, run_intent
from surgeval.protocols.intent.items import open_items
from surgeval.protocols.pictures import PICTURES

if TYPE_CHECKING:
    from surgeval.protocols.intent.result import IntentScores

__all__ = ["IntentRun", "run_intent", "score_intent"]


def score_intent(
    responses: Annotated[
        Source,
        Help("The replies: JSON lines with id, content and, where it is not plain, condition; or a .eval log."),
    ],
    data: Annotated[str | Path, ITEMS],
    out: Annotated[str | Path | None, Help("Folder for report.html, tables, cases.", required=True)] = None,
    *,
    invalid: Annotated[Literal["wrong", "drop"], INVALID] = "wrong",
    name: Annotated[str | None, common("name", panel=SCORING)] = None,
    pictures: Annotated[int, KEPT] = PICTURES,
    progress: bool = False,
) -> IntentScores:
    """Score replies to multiple-choice items that were made elsewhere.

    `responses` are a file of JSON lines, or the objects (`id`, `content`, `condition`). With `out` the scores are
    saved there as a run, as by `.save(folder)`. A log of Inspect AI (`.eval`) is scored on the items that it asked.
    An item without a reply is `missing` and counts as wrong; a reply to an unknown item is an error. `name` is what
    the model is called.

    >>> import json
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> item = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
    ...         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> _ = (folder / "items.jsonl").write_text(json.dumps(item))
    >>> scores = score_intent([{"id": "i1", "content": "It is on the right. Answer: B"}], folder)
    >>> scores.answers.select("condition", "choice", "strict", "right").row(0)
    ('plain', 1, None, True)
    """
    from surgeval.protocols.intent.result import check_scores_folder, load_intent

    folder = None if out is None else Path(out)
    if folder is not None:
        check_scores_folder(folder)
    called = name or (folder.resolve().name if folder is not None else "submission")
    replies = Responses(responses)
    whole = open_items(data)
    replies.check_ids(whole)
    item_set, subset = replies.part(whole)
    config = {
        "prompt": 0,
        "interventions": [],
        "media": UNKNOWN_MEDIA,
        "subset": subset,
        "limit": None,
        "invalid": invalid,
    }
    eyes = Eyes(item_set.dataset, item_set.items, Seeing())
    with TemporaryDirectory(prefix="surgeval-intent-") as scratch:
        run = Path(scratch) / "run"
        ask_items(
            item_set, replies, run, first=replies.asked(item_set), again=False, config=config, name=called,
            subset=subset, eyes=eyes, pictures=pictures, progress=progress,
        )  # fmt: skip
        scores = load_intent(run)
    scores = replace(scores, notes=(*scores.notes, *whole.warnings))
    if folder is not None:
        scores.save(folder)
    return scores
