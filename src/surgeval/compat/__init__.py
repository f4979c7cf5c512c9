"""Drop-in replacements for the classes of ivtmetrics and ivtdmetrics.

`from surgeval.compat.ivtmetrics import Recognition` and `from surgeval.compat.ivtd import Detection, Recognition` have
the calls and result keys of those packages. `mode="fixed"` (the default) repairs their faults, `mode="legacy"`
reproduces the numbers they print.
"""

from surgeval.compat import ivtd, ivtmetrics

__all__ = ["ivtd", "ivtmetrics"]
