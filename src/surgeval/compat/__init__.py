"""Drop-in classes for users of other packages, thin shells over `surgeval.metrics`.

`from surgeval.compat.ivtmetrics import Recognition` and `from surgeval.compat.ivtd import Detection, Recognition` keep
the calls and result keys of ivtmetrics and ivtdmetrics. `mode="fixed"` (the default) repairs their defects,
`mode="legacy"` reproduces the numbers they print.
"""

from surgeval.compat import ivtd, ivtmetrics

__all__ = ["ivtd", "ivtmetrics"]
