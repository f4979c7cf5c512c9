import surgeval.protocols.descriptor

from .asking.run import FocusRun as FocusRun
from .asking.run import run_focus as run_focus
from .method import RESAMPLES as RESAMPLES
from .method import score_focus as score_focus
from .reading.files import FocusProblems as FocusProblems
from .reading.files import as_sources as as_sources
from .result import Admission as Admission
from .result import FocusScores as FocusScores
from .result import admission_gate as admission_gate
from .result import load_focus as load_focus
from .result import outcomes as outcomes
from .scoring.agreement import judge_agreement as judge_agreement
from .scoring.judge import Judging as Judging
from .scoring.summary import BucketScore as BucketScore

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
