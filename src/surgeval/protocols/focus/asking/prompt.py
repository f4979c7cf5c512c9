"""What a chat model is asked: the question, its window, the frames with their times, and the form of the answer.

The reference takes no part in it. A changed wording is another run: `PROMPT_VERSION` is recorded with every run.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from surgeval.asking import ModelFrame
from surgeval.datasets import clock
from surgeval.errors import printable
from surgeval.qa import Message, object_classes
from surgeval.records import VqaQuestion

__all__ = ["PROMPT_VERSION", "question_messages"]

PROMPT_VERSION = 1

_SYSTEM = (
    "You answer questions about surgical videos, above all about foreign objects in the patient. Reply with the answer "
    "alone, in the form that is asked for: no explanation, no introduction."
)
_FORMS = {
    "binary": "Answer with one word: yes or no.",
    "number": "Answer with one whole number in digits.",
    "percentage": "Answer with a number from 0 to 100, followed by %.",
    "fo_class": "Answer with names of classes, separated by commas, or with the word none. The classes are: {names}.",
    "time": "Answer with the time as hh:mm:ss; if there are several, separate them by commas.",
    "multiple_choice": "Answer with one of the options, its letter and its text, as the question writes it.",
    "open_ended": "Answer in one short sentence of at most {length} characters.",
    "matching": "Answer with text that this regular expression matches as a whole: {pattern}",
}


def question_messages(question: VqaQuestion, pictures: Sequence[ModelFrame] = ()) -> tuple[Message, Message]:
    """System and user message; with pictures the user message is a list of parts, each picture after its time.

    >>> question = VqaQuestion("q", "v", 3, 3, "cholecystectomy", "Is a clip visible?", "1a", "binary", "Yes")
    >>> print(question_messages(question)[1]["content"])
    Procedure: cholecystectomy
    Moment of the video: 00:00:03
    <BLANKLINE>
    Is a clip visible?
    <BLANKLINE>
    Answer with one word: yes or no.
    """
    at = f"Moment of the video: {clock(question.start)}"
    if question.end > question.start:
        at = f"Part of the video: {clock(question.start)} to {clock(question.end)}"
    head = f"Procedure: {question.procedure or 'not given'}\n{at}"
    text = printable(f"{head}\n\n{question.text}\n\n{_form(question)}")
    if not pictures:
        return {"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}
    parts: list[dict[str, object]] = []
    for picture in pictures:
        url = f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}"
        parts.append({"type": "text", "text": _caption(picture)})
        parts.append({"type": "image_url", "image_url": {"url": url}})
    parts.append({"type": "text", "text": text})
    return {"role": "system", "content": _SYSTEM}, {"role": "user", "content": parts}


def _caption(picture: ModelFrame) -> str:
    return "Frame:" if picture.time is None else f"Frame at {clock(picture.time)}:"


def _form(question: VqaQuestion) -> str:
    options = question.format_options
    return _FORMS.get(question.format, "Answer as shortly as possible.").format(
        names=", ".join(object_classes(question)),
        length=options.get("max_length", 300),
        pattern=options.get("pattern", ""),
    )
