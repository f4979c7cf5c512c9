"""What a detector learns from: labelled frames of any dataset, augmented, sampled and put into batches.

`TrainingSet.of(open_dataset(path), classes, image_size=640)` reads labels and images once and counts what it left out;
`batches` turns an `epoch_order` into tensors. Names load on first use: they need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.detector.data._augment import PLAIN, Augment, Sampling
    from surgeval.detector.data._batches import Batch, batches
    from surgeval.detector.data._overview import ClassRow, class_table, label_mosaic, told_problems
    from surgeval.detector.data._packed import load_packed, save_packed
    from surgeval.detector.data._pictures import CACHE_BYTES
    from surgeval.detector.data._problems import Problems
    from surgeval.detector.data._processes import PictureProcesses, can_fork, picture_processes
    from surgeval.detector.data._sampling import THRESHOLD, epoch_order, repeat_factors
    from surgeval.detector.data._toy import toy_set
    from surgeval.detector.data._training_set import TOLERANCE, TrainingPicture, TrainingSet

_HOMES = {
    "_augment": "PLAIN Augment Sampling",
    "_batches": "Batch batches",
    "_overview": "ClassRow class_table label_mosaic told_problems",
    "_packed": "load_packed save_packed",
    "_pictures": "CACHE_BYTES",
    "_problems": "Problems",
    "_processes": "PictureProcesses can_fork picture_processes",
    "_sampling": "THRESHOLD epoch_order repeat_factors",
    "_toy": "toy_set",
    "_training_set": "TOLERANCE TrainingPicture TrainingSet",
}

__all__ = [
    "CACHE_BYTES",
    "PLAIN",
    "THRESHOLD",
    "TOLERANCE",
    "Augment",
    "Batch",
    "ClassRow",
    "PictureProcesses",
    "Problems",
    "Sampling",
    "TrainingPicture",
    "TrainingSet",
    "batches",
    "can_fork",
    "class_table",
    "epoch_order",
    "label_mosaic",
    "load_packed",
    "picture_processes",
    "repeat_factors",
    "save_packed",
    "told_problems",
    "toy_set",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
