"""Protocol `training`: detectors trained and tested on folds, ablations, the page of a training (ProstaTD, E and F)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports
from surgeval.protocols.descriptor import Descriptor

if TYPE_CHECKING:
    from surgeval.protocols.training._published import published, published_notes
    from surgeval.protocols.training.ablation.method import run_ablation
    from surgeval.protocols.training.ablation.result import ABLATIONS, AblationScores, Configuration, load_ablation
    from surgeval.protocols.training.compare import compare_training
    from surgeval.protocols.training.curves import Training, is_training, load_training_folder
    from surgeval.protocols.training.detectors import FoldDetections, TrainableDetector, rtdetr, tdnet
    from surgeval.protocols.training.method import train_folds
    from surgeval.protocols.training.overview import trainings_section
    from surgeval.protocols.training.result import TrainingScores, load_training
    from surgeval.protocols.training.scheme import Fold, Scheme, choose_folds
    from surgeval.protocols.training.training_page import write_training_page

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does a detector do on videos that it never saw?",
    offers=("run", "folders"),
    several=True,
    order=15,
)

_HOMES = {
    "_published": "published published_notes",
    "ablation.method": "run_ablation",
    "ablation.result": "ABLATIONS AblationScores Configuration load_ablation",
    "compare": "compare_training",
    "curves": "Training is_training load_training_folder",
    "detectors": "FoldDetections TrainableDetector rtdetr tdnet",
    "method": "train_folds",
    "overview": "trainings_section",
    "result": "TrainingScores load_training",
    "scheme": "Fold Scheme choose_folds",
    "training_page": "write_training_page",
}

__all__ = [
    "ABLATIONS",
    "DESCRIPTOR",
    "AblationScores",
    "Configuration",
    "Fold",
    "FoldDetections",
    "Scheme",
    "TrainableDetector",
    "Training",
    "TrainingScores",
    "choose_folds",
    "compare_training",
    "is_training",
    "load_ablation",
    "load_training",
    "load_training_folder",
    "published",
    "published_notes",
    "rtdetr",
    "run_ablation",
    "tdnet",
    "train_folds",
    "trainings_section",
    "write_training_page",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
