"""Asking models questions: answerers and reference rows, answers that are stored at once, the frames that are shown.

`open_answerer(name, …)` opens a chat model or a reference row, `Asking` is the worker of an engine run that asks blocks
of questions (`question_units`), `DatasetFrames` and `VideoFiles` hold the pictures.
"""

from surgeval.asking._answerers import Answered, Answerer, Batching, ShownFrame, Unanswered
from surgeval.asking._blocks import BLOCK, Asking, question_units
from surgeval.asking._chat_answerer import ChatAnswerer, Prompt
from surgeval.asking._choices import Rejections, say_choice
from surgeval.asking._eval_log import EvalAnswers, answer_of_output, is_eval_log, read_eval_log
from surgeval.asking._guess import object_classes, options_of, random_answer
from surgeval.asking._media import DatasetFrames, ItemFiles, Media, VideoFiles
from surgeval.asking._model_spec import open_answerer
from surgeval.asking._pictures import Decorate, Moment, moments, picture, pictures, shown_record
from surgeval.asking._question import Asked, Timed
from surgeval.asking._reference_rows import AlwaysAccept, AlwaysReject, Oracle, PriorAnswerer, RandomAnswerer
from surgeval.asking._replay import Replay
from surgeval.asking._sampling import POLICIES, FrameSampling, FrameTimeline, Shown

__all__ = [
    "BLOCK",
    "POLICIES",
    "AlwaysAccept",
    "AlwaysReject",
    "Answered",
    "Answerer",
    "Asked",
    "Asking",
    "Batching",
    "ChatAnswerer",
    "DatasetFrames",
    "Decorate",
    "EvalAnswers",
    "FrameSampling",
    "FrameTimeline",
    "ItemFiles",
    "Media",
    "Moment",
    "Oracle",
    "PriorAnswerer",
    "Prompt",
    "RandomAnswerer",
    "Rejections",
    "Replay",
    "Shown",
    "ShownFrame",
    "Timed",
    "Unanswered",
    "VideoFiles",
    "answer_of_output",
    "is_eval_log",
    "moments",
    "object_classes",
    "open_answerer",
    "options_of",
    "picture",
    "pictures",
    "question_units",
    "random_answer",
    "read_eval_log",
    "say_choice",
    "shown_record",
]
