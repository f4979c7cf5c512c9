"""Protocols: each asks a model about a dataset, or scores what a model said, and leaves a run folder.

One package per protocol, with the same rooms: `method` (reads like its paper), `result` (what is loaded from a run),
`page` and `compare` (what two runs share) in each; `tables`, `figures`, `evidence`, `verdict` and `demo` where it has
them. `evaluation` holds the functions that work for every protocol, `comparison` takes two runs apart number by number,
`contract` says what the rest of surgeval expects of a protocol, and `registry` which ones are installed.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
