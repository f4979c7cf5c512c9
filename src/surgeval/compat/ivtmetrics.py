"""ivtmetrics' classes, same calls: change `import ivtmetrics` to `from surgeval.compat import ivtmetrics`."""

from surgeval.compat._disentangle import Disentangle
from surgeval.compat._ivt_detection import Detection
from surgeval.compat._recognition import Recognition

__all__ = ["Detection", "Disentangle", "Recognition"]
