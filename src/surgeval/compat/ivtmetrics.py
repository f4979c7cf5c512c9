"""ivtmetrics' classes, same calls: change `import ivtmetrics` to `from surgeval.compat import ivtmetrics`."""

from surgeval.compat.disentangle import Disentangle
from surgeval.compat.ivt_detection import Detection
from surgeval.compat.recognition import Recognition

__all__ = ["Detection", "Disentangle", "Recognition"]
