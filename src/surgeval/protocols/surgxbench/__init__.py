"""Protocol `surgxbench`: does a model look where it should? (SurgXBench, two papers)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench._settings import PROFILES, SURGX_TASKS, SurgXSettings, profile_settings
    from surgeval.protocols.surgxbench.compare import RESAMPLES, compare_surgxbench
    from surgeval.protocols.surgxbench.measuring._prompts import instrument_prompts, triplet_prompts
    from surgeval.protocols.surgxbench.method import SurgXRun, run_surgxbench
    from surgeval.protocols.surgxbench.one_image._causes import ExplainedCauses, explain_causes
    from surgeval.protocols.surgxbench.one_image._single import Explained, ExplainedReply, explain_image
    from surgeval.protocols.surgxbench.result import SurgXScores, join_runs, load_surgxbench, outcomes

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "When it is right, is it right for the right reason?",
    offers=("run", "outcomes", "chapter"),
    ranks_by="top-1 right",
    several=True,
    order=30,
)

_HOMES = {
    "_settings": "PROFILES SurgXSettings SURGX_TASKS profile_settings",
    "compare": "RESAMPLES compare_surgxbench",
    "measuring._prompts": "instrument_prompts triplet_prompts",
    "method": "SurgXRun run_surgxbench",
    "one_image._causes": "ExplainedCauses explain_causes",
    "one_image._single": "Explained ExplainedReply explain_image",
    "result": "SurgXScores join_runs load_surgxbench outcomes",
}

__all__ = [
    "DESCRIPTOR",
    "PROFILES",
    "RESAMPLES",
    "SURGX_TASKS",
    "Explained",
    "ExplainedCauses",
    "ExplainedReply",
    "SurgXRun",
    "SurgXScores",
    "SurgXSettings",
    "compare_surgxbench",
    "explain_causes",
    "explain_image",
    "instrument_prompts",
    "join_runs",
    "load_surgxbench",
    "outcomes",
    "profile_settings",
    "run_surgxbench",
    "triplet_prompts",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
