import surgeval.protocols.descriptor

from .asking.run import IntentRun as IntentRun
from .asking.run import run_intent as run_intent
from .method import score_intent as score_intent
from .result import IntentScores as IntentScores
from .result import load_intent as load_intent
from .result import outcomes as outcomes

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
