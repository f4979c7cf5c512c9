import surgeval.protocols.descriptor

from .method import QualityRun as QualityRun
from .method import run_quality as run_quality
from .result import QualityScores as QualityScores
from .result import load_quality as load_quality

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
