"""Protocol `focus`: answers to surgical questions, scored and ranked as the FOCUS challenge does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.focus.asking._run import FocusRun, run_focus
    from surgeval.protocols.focus.compare import compare_focus
    from surgeval.protocols.focus.method import RESAMPLES, score_focus
    from surgeval.protocols.focus.reading._files import FocusProblems, as_sources
    from surgeval.protocols.focus.result import Admission, FocusScores, admission_gate, load_focus, outcomes
    from surgeval.protocols.focus.scoring._agreement import judge_agreement
    from surgeval.protocols.focus.scoring._judge import Judging
    from surgeval.protocols.focus.scoring._summary import BucketScore

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it answer questions about the operation, better than one who never looked?",
    offers=("run", "score", "outcomes", "chapter"), ranks_by="pre-evaluation score", order=20,
)  # fmt: skip

_HOMES = {
    "asking._run": "FocusRun run_focus",
    "compare": "compare_focus",
    "method": "RESAMPLES score_focus",
    "reading._files": "FocusProblems as_sources",
    "result": "Admission FocusScores admission_gate load_focus outcomes",
    "scoring._agreement": "judge_agreement",
    "scoring._judge": "Judging",
    "scoring._summary": "BucketScore",
}

__all__ = [
    "DESCRIPTOR",
    "RESAMPLES",
    "Admission",
    "BucketScore",
    "FocusProblems",
    "FocusRun",
    "FocusScores",
    "Judging",
    "admission_gate",
    "as_sources",
    "compare_focus",
    "judge_agreement",
    "load_focus",
    "outcomes",
    "run_focus",
    "score_focus",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
