"""Judges by name: `openai:MODEL@URL`, `hf:PATH`, `table:FILE`, `exact`, `manual`.

The server is always named: an answer about a patient never goes to a default address. Models are opened by the function
handed in (`surgeval.models.chat.open_chat`), because `qa` knows no client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from surgeval.errors import BadInput
from surgeval.qa.chat import Chat, close_kind, parse_server, public_name
from surgeval.qa.judging.kinds import ChatJudge, ExactJudge, Judge, TableJudge
from surgeval.qa.judging.manual import ManualJudge

__all__ = ["JudgeSpec", "open_judges", "parse_judge"]

_SPECS = ("openai:MODEL@URL", "hf:PATH", "table:FILE", "exact", "manual")
_EXPECTED = f"{', '.join(_SPECS[:-1])} or {_SPECS[-1]}"


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A judge as the user named it: `target` is the model, the path or the person, `url` the server.

    `name` is how reports call it: `text` without what is secret in the server's address.

    >>> parse_judge("openai:judge@https://host/v1?key=abc123").name
    'openai:judge@https://host/v1?key=…'
    """

    text: str
    kind: Literal["openai", "hf", "table", "exact", "manual"]
    target: str = ""
    url: str = ""

    @property
    def name(self) -> str:
        """The text without secrets."""
        return public_name(self.text)


def parse_judge(text: str) -> JudgeSpec:
    """Read a judge's name.

    >>> parse_judge("openai:org/judge-7b@http://localhost:8000/v1").url
    'http://localhost:8000/v1'
    >>> parse_judge("gpt")
    Traceback (most recent call last):
    surgeval.errors.BadInput: judge 'gpt': found no kind, expected openai:MODEL@URL, hf:PATH, table:FILE, exact or ...
    """
    kind, colon, rest = text.partition(":")
    if kind == "manual":
        return JudgeSpec(text, "manual", rest)
    if text == "exact":
        return JudgeSpec(text, "exact")
    if not colon or kind not in ("openai", "hf", "table"):
        found = f"the kind {kind!r}" if colon else "no kind"
        raise BadInput(f"judge {public_name(text)!r}: found {found}, expected {_EXPECTED}{close_kind(kind, _SPECS)}")
    if not rest:
        raise BadInput(f"judge {text!r}: found nothing after the colon, expected {_EXPECTED}")
    if kind == "table":
        return JudgeSpec(text, "table", rest)
    if kind == "hf":
        return JudgeSpec(text, "hf", rest)
    return JudgeSpec(text, "openai", *parse_server(text, rest, "judge"))


def open_judges(
    specs: Sequence[str], open_chat: Callable[[str], Chat] | None = None, *, original: bool = False
) -> tuple[Judge, ...]:
    """The judges of a panel in the given order; the same name twice gets a number.

    >>> [judge.name for judge in open_judges(["exact", "exact", "manual:Ada"])]
    ['exact', 'exact #2', 'manual:Ada']
    """
    judges: list[Judge] = []
    for spec in map(parse_judge, specs):
        name = spec.name
        repeats = sum(judge.name == name or judge.name.startswith(f"{name} #") for judge in judges)
        name = f"{name} #{repeats + 1}" if repeats else name
        if spec.kind == "table":
            judges.append(TableJudge(spec.target, name))
        elif spec.kind == "exact":
            judges.append(ExactJudge(name))
        elif spec.kind == "manual":
            judges.append(ManualJudge(name=name))
        elif open_chat is None:
            raise BadInput(
                f"judge {spec.name!r}: found no way to open a model here, expected table:FILE, exact or manual"
            )
        else:
            judges.append(ChatJudge(name, open_chat(spec.text), original=original))
    return tuple(judges)
