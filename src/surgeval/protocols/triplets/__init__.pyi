import surgeval.protocols.descriptor

from .compare import pair_triplets as pair_triplets
from .from_arrays import score_detection as score_detection
from .from_arrays import score_recognition as score_recognition
from .method import score_triplets as score_triplets
from .metrics import MEASURES as MEASURES
from .result import TripletScores as TripletScores
from .result import load_triplets as load_triplets

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
