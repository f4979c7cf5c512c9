import surgeval.protocols.descriptor

from .method import SurgXRun as SurgXRun
from .method import run_surgxbench as run_surgxbench
from .one_image.causes import ExplainedCauses as ExplainedCauses
from .one_image.causes import explain_causes as explain_causes
from .one_image.single import Explained as Explained
from .one_image.single import ExplainedReply as ExplainedReply
from .one_image.single import explain_image as explain_image
from .options import choose_settings as choose_settings
from .result import SurgXScores as SurgXScores
from .result import join_runs as join_runs
from .result import load_surgxbench as load_surgxbench
from .result import outcomes as outcomes
from .settings import PROFILES as PROFILES
from .settings import SURGX_TASKS as SURGX_TASKS
from .settings import SurgXSettings as SurgXSettings
from .settings import profile_settings as profile_settings

DESCRIPTOR: surgeval.protocols.descriptor.Descriptor
