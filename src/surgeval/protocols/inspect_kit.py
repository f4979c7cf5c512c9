"""What the question protocols share as tasks of Inspect AI: its messages, a solver that shows our pictures, its errors.

Only the tasks import this, and only Inspect imports the tasks: it comes with the extra `inspect`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from anyio import to_thread
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, Content, ContentImage, ContentText
from inspect_ai.solver import Generate, Solver, TaskState, solver

from surgeval.asking import ModelFrame, describe_frames
from surgeval.errors import BadInput, SurgevalError
from surgeval.qa import Message

__all__ = ["Pose", "asking", "chat_messages", "names_in", "one_sentence", "required"]

# The id of a sample → what the model is asked, and the frames among it.
Pose: TypeAlias = Callable[[str], tuple[Sequence[Message], Sequence[ModelFrame]]]


def asking(pose: Pose) -> Solver:
    """A solver that asks each sample as `surgeval run` would, and records the frames under `shown`.

    Pictures are made when a sample is asked, one sample at a time: all of a set would not fit into memory.
    """
    lock = threading.Lock()

    def posed(name: str) -> tuple[list[ChatMessage], list[dict[str, Any]]]:
        with lock:  # films are read in one thread
            messages, frames = pose(name)
        return chat_messages(messages), json.loads(describe_frames(frames))

    @solver(name="ask")
    def ask() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.messages, state.metadata["shown"] = await to_thread.run_sync(posed, str(state.sample_id))
            return await generate(state)

        return solve

    return ask()


def chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages as Inspect has them: pictures stay the `data:` addresses that they are.

    >>> chat_messages([{"role": "user", "content": [{"type": "text", "text": "Is a clip visible?"}]}])[0].text
    'Is a clip visible?'
    """
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [kinds[str(message["role"])](content=_content(message["content"])) for message in messages]


def _content(content: Any) -> str | list[Content]:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Mapping[str, Any]) -> Content:
    if part["type"] == "image_url":
        return ContentImage(image=part["image_url"]["url"])
    return ContentText(text=part["text"])


@contextmanager
def one_sentence() -> Iterator[None]:
    """Bad input as Inspect shows it: the sentence, without a traceback."""
    try:
        yield
    except SurgevalError as error:
        raise PrerequisiteError(str(error)) from None


def required(data: object, task: str) -> str:
    """The dataset that a task was given.

    >>> required("", "focus")
    Traceback (most recent call last):
    surgeval.errors.BadInput: data: found none, expected a dataset: inspect eval surgeval/focus -T data=FOLDER
    """
    if not data:
        raise BadInput(f"data: found none, expected a dataset: inspect eval surgeval/{task} -T data=FOLDER")
    return str(data)


def names_in(value: str | Sequence[str] | None) -> list[str]:
    """Names with commas; Inspect's command line has made a list of them already.

    >>> names_in("gaze,text-only"), names_in(["gaze"]), names_in(None)
    (['gaze', 'text-only'], ['gaze'], [])
    """
    names = value.split(",") if isinstance(value, str) else [str(name) for name in value or ()]
    return [name.strip() for name in names]
