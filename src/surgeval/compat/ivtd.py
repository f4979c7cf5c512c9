"""ivtdmetrics' `Detection` and `Recognition`, same calls: import them from here instead."""

from surgeval.compat.detection import Detection
from surgeval.compat.recognition import Recognition

__all__ = ["Detection", "Recognition"]
