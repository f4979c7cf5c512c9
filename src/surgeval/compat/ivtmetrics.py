"""ivtmetrics' `Recognition`, same calls: change `import ivtmetrics` to `from surgeval.compat import ivtmetrics`."""

from surgeval.compat._recognition import Recognition

__all__ = ["Recognition"]
