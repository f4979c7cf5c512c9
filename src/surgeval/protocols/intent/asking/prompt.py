"""What a chat model is asked: the pictures in order, where the clinician looks, the stem, and its lettered options.

What belongs to the question is in the user's message; the context of the item is said before it. The answer takes no
part in it. A changed wording is another run: `PROMPT_VERSION` is recorded with every run.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import islice

from surgeval.asking import ModelFrame
from surgeval.datasets import clock
from surgeval.errors import printable
from surgeval.protocols.intent.asking.gaze import GazeMode, gaze_in_words
from surgeval.protocols.intent.asking.look import GazePicture
from surgeval.qa import Message, choice_prompt
from surgeval.records import IntentQuestion

__all__ = ["PROMPT_VERSION", "item_messages"]

PROMPT_VERSION = 1

_SYSTEM = (
    "You answer multiple-choice questions that a clinician asks in the first person about what they see and do. "
    "Exactly one option is right."
)
_LONGEST, _MOST = 400, 20  # characters of one entry of the context; entries


def item_messages(
    question: IntentQuestion, pictures: Sequence[ModelFrame] = (), *, gaze: GazeMode = "mark"
) -> tuple[Message, Message]:
    r"""System and user message; with pictures the user message is a list of parts, the text last.

    >>> item = IntentQuestion("i1@plain", "laparoscopy", "v", (), "spatial", "absolute", "Where is the tip?",
    ...                       ("left", "right"), 0, context={"phase": "dissection"})
    >>> system, user = item_messages(item)
    >>> print(system["content"].splitlines()[1], user["content"], sep="\n")
    Scenario: laparoscopy; phase: dissection.
    Where is the tip?
    A. left
    B. right
    Choose exactly one option. End your reply with "Answer: X", where X is its letter.
    """
    seen = [picture for picture in pictures if isinstance(picture, GazePicture)]
    asked = choice_prompt(question.question, question.options)
    pointing = gaze_in_words([picture.spot for picture in seen], gaze)
    text = printable(f"{pointing}\n{asked}" if pointing else asked)
    system: Message = {"role": "system", "content": printable(f"{_SYSTEM}\n{_context(question)}\n{_told(seen)}")}
    if not pictures:
        return system, {"role": "user", "content": text}
    parts: list[dict[str, object]] = []
    for picture in pictures:
        url = f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    parts.append({"type": "text", "text": text})
    return system, {"role": "user", "content": parts}


def _context(question: IntentQuestion) -> str:
    """The scenario and what else is known, one line."""
    known = {"Scenario": question.scenario, **question.context}
    facts = (f"{_line(key)}: {_line(value)}" for key, value in known.items() if value not in ("", None))
    return f"{'; '.join(islice(facts, _MOST))}."


def _line(value: object) -> str:
    return " ".join(str(value).split())[:_LONGEST]


def _told(pictures: Sequence[GazePicture]) -> str:
    if not pictures:
        return "No picture is given: choose the option that is most likely."
    times = [picture.time for picture in pictures if picture.time is not None]
    if len(times) < len(pictures):
        return f"{len(pictures)} pictures, in order." if len(pictures) > 1 else "One picture."
    moments = ", ".join(map(clock, times))
    return (
        f"{len(pictures)} frames of a video, in order, at {moments}." if len(pictures) > 1 else f"A frame at {moments}."
    )
