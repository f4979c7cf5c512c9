"""ivtdmetrics' `Detection` and `Recognition`, same calls: import them from here instead."""

from surgeval.compat._detection import Detection
from surgeval.compat._recognition import Recognition

__all__ = ["Detection", "Recognition"]
