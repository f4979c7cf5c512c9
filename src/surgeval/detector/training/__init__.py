"""Training TDnet: teacher, then student, in a folder that can be killed at any moment and gone on with.

`train_tdnet(train, validation, classes, out, settings)` is the whole interface; `load_train_record` and `read_curves`
look at a training, also while it runs. Names load on first use; nothing here needs more than torch and the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector.training._curves import read_curves
    from surgeval.detector.training._folder import TrainRecord, load_train_record
    from surgeval.detector.training._rehearsal import Rehearsal, rehearse
    from surgeval.detector.training._schedule import Schedule
    from surgeval.detector.training._settings import PRESETS, TrainSettings
    from surgeval.detector.training._tally import NotFinite
    from surgeval.detector.training._tdnet import Trained, train_tdnet

_HOMES = {
    "_curves": "read_curves",
    "_folder": "TrainRecord load_train_record",
    "_rehearsal": "Rehearsal rehearse",
    "_schedule": "Schedule",
    "_settings": "PRESETS TrainSettings",
    "_tally": "NotFinite",
    "_tdnet": "Trained train_tdnet",
}

__all__ = [
    "PRESETS",
    "NotFinite",
    "Rehearsal",
    "Schedule",
    "TrainRecord",
    "TrainSettings",
    "Trained",
    "load_train_record",
    "read_curves",
    "rehearse",
    "train_tdnet",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
