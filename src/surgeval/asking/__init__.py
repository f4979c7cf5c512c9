"""Asking models questions: answerers and reference rows, answers that are stored at once, the frames that are shown.

`open_answerer(name, …)` opens a chat model or a reference row, `Asking` is the worker of an engine run that asks blocks
of questions (`question_units`), `DatasetFrames` and `VideoFiles` hold the pictures.
"""

from surgeval.asking._answerers import Answered, Answerer, ShownFrame, Unanswered
from surgeval.asking._blocks import BLOCK, Asking, question_units
from surgeval.asking._chat_answerer import ChatAnswerer, Prompt
from surgeval.asking._choices import Rejections, say_choice
from surgeval.asking._guess import object_classes, options_of, random_answer
from surgeval.asking._media import DatasetFrames, Media, Shown, VideoFiles, pictures
from surgeval.asking._model_spec import open_answerer
from surgeval.asking._question import Asked, Timed
from surgeval.asking._reference_rows import AlwaysAccept, AlwaysReject, Oracle, PriorAnswerer, RandomAnswerer
from surgeval.asking._replay import Replay
from surgeval.asking._store import AnswerStore

__all__ = [
    "BLOCK",
    "AlwaysAccept",
    "AlwaysReject",
    "AnswerStore",
    "Answered",
    "Answerer",
    "Asked",
    "Asking",
    "ChatAnswerer",
    "DatasetFrames",
    "Media",
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
    "object_classes",
    "open_answerer",
    "options_of",
    "pictures",
    "question_units",
    "random_answer",
    "say_choice",
]
