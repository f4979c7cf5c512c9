"""Protocol `triplets`: action triplets ⟨instrument, verb, target⟩ that a model detected or recognised (ProstaTD)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.triplets.compare import RESAMPLES, TripletComparison, compare_triplets
    from surgeval.protocols.triplets.from_arrays import score_detection, score_recognition
    from surgeval.protocols.triplets.method import score_triplets
    from surgeval.protocols.triplets.result import TripletScores, load_triplets

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does it detect and recognise ⟨instrument, verb, target⟩?",
    offers=("score", "chapter"),
    order=10,
)

_HOMES = {
    "compare": "RESAMPLES TripletComparison compare_triplets",
    "from_arrays": "score_detection score_recognition",
    "method": "score_triplets",
    "result": "TripletScores load_triplets",
}

__all__ = [
    "DESCRIPTOR",
    "RESAMPLES",
    "TripletComparison",
    "TripletScores",
    "compare_triplets",
    "load_triplets",
    "score_detection",
    "score_recognition",
    "score_triplets",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
