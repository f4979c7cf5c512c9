import surgeval.protocols.descriptor

from .ablation.method import run_ablation as run_ablation
from .ablation.result import ABLATIONS as ABLATIONS
from .ablation.result import AblationScores as AblationScores
from .ablation.result import Configuration as Configuration
from .ablation.result import load_ablation as load_ablation
from .all_folds import TrainedFolds as TrainedFolds
from .all_folds import train_folds as train_folds
from .curves import Training as Training
from .curves import is_training as is_training
from .curves import load_training_folder as load_training_folder
from .detectors import FoldDetections as FoldDetections
from .detectors import TrainableDetector as TrainableDetector
from .detectors import trainable_rtdetr as trainable_rtdetr
from .detectors import trainable_tdnet as trainable_tdnet
from .method import run_training as run_training
from .overview import trainings_section as trainings_section
from .published import published as published
from .published import published_notes as published_notes
from .result import TrainingScores as TrainingScores
from .result import load_training as load_training
from .scheme import Fold as Fold
from .scheme import Scheme as Scheme
from .scheme import choose_folds as choose_folds
from .train import train as train
from .training_page import write_training_page as write_training_page

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
