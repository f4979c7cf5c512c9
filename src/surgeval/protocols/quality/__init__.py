"""Protocol `quality`: measure every frame and propose the ones nobody can use (ProstaTD, appendix A.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.quality.compare import compare_quality
    from surgeval.protocols.quality.method import QualityRun, run_quality
    from surgeval.protocols.quality.result import QualityScores, load_quality

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Which frames can nobody use?",
    offers=("run",),
    order=90,
)

_HOMES = {
    "compare": "compare_quality",
    "method": "QualityRun run_quality",
    "result": "QualityScores load_quality",
}

__all__ = ["DESCRIPTOR", "QualityRun", "QualityScores", "compare_quality", "load_quality", "run_quality"]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
