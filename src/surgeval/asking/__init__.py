"""Asking models questions: answerers and reference rows, answers that are stored at once, the frames that are shown.

`open_answerer(name, …)` opens a chat model or a reference row, `Asking` is the worker of an engine run that asks blocks
of questions (`question_units`), `DatasetFrames` and `VideoFiles` hold the pictures.
"""

from surgeval.asking.answerers import Answered, Answerer, Batching, ShownFrame, Unanswered
from surgeval.asking.blocks import BLOCK, Asking, question_units
from surgeval.asking.chat_answerer import ChatAnswerer, Prompt
from surgeval.asking.choices import Rejections, say_choice
from surgeval.asking.eval_log import EvalAnswers, answer_of_output, is_eval_log, read_eval_log
from surgeval.asking.media import DatasetFrames, ItemFiles, Media, VideoFiles
from surgeval.asking.model_spec import open_answerer
from surgeval.asking.pictures import Decorate, Moment, moments, picture, pictures, shown_record
from surgeval.asking.question import Asked, Timed
from surgeval.asking.reference_rows import (
    AlwaysAccept,
    AlwaysReject,
    Oracle,
    PriorAnswerer,
    RandomAnswerer,
    random_answer,
    reference_row,
)
from surgeval.asking.replay import Replay
from surgeval.asking.sampling import POLICIES, FrameSampling, FrameTimeline, Shown

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
    "open_answerer",
    "picture",
    "pictures",
    "question_units",
    "random_answer",
    "read_eval_log",
    "reference_row",
    "say_choice",
    "shown_record",
]
