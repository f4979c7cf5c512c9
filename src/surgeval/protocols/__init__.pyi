from .evaluation import compare as compare
from .evaluation import evaluate as evaluate
from .evaluation import score_answers as score_answers
from .registry import load_run as load_run
