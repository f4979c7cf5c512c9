"""Protocol `intent`: multiple-choice questions about what the clinician does and why, traps among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.intent.asking._run import IntentRun, run_intent
    from surgeval.protocols.intent.compare import compare_intent
    from surgeval.protocols.intent.method import score_intent
    from surgeval.protocols.intent.result import IntentScores, load_intent, outcomes

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it understand what the surgeon is doing and why, and can it be talked into seeing what is not there?",
    offers=("run", "score", "outcomes", "chapter"), ranks_by="mean over dimensions and traps", several=True, order=25,
)  # fmt: skip

_HOMES = {
    "asking._run": "IntentRun run_intent",
    "compare": "compare_intent",
    "method": "score_intent",
    "result": "IntentScores load_intent outcomes",
}

__all__ = [
    "DESCRIPTOR",
    "IntentRun",
    "IntentScores",
    "compare_intent",
    "load_intent",
    "outcomes",
    "run_intent",
    "score_intent",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
