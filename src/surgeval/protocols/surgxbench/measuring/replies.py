"""Questions to a model that answers in words, and what its replies name, with the tokens that name it.

What counts as said is everything generated. How sure the model was of a class is the probability of the tokens of its
first mention together, each given the words before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import torch

from surgeval.explain import Method, token_maps
from surgeval.models import Generated, Generative
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.qa import Mentions
from surgeval.records import Case

__all__ = ["NamingReply", "Question", "answer_maps", "ask", "certainties", "reply_case"]

T = TypeVar("T")
Read: TypeAlias = "Callable[[str], Mentions[T]]"
_LONGEST_REPLY = 2000  # characters that a run stores


@dataclass(frozen=True)
class Question(Generic[T]):
    """What is asked, and how the reply is read."""

    task: str
    text: str
    read: Read[T]


@dataclass(frozen=True)
class NamingReply(Generic[T]):
    """A reply, what it names, and which of its tokens name it."""

    reply: Generated
    mentions: Mentions[T]
    tokens: tuple[tuple[int, ...], ...]  # of the first mention of each class

    @property
    def scores(self) -> list[float]:
        """How sure the model was of each class that it named."""
        return [float(np.prod([self.reply.probabilities[token] for token in row])) for row in self.tokens]


def ask(net: Generative, pixels: torch.Tensor, question: Question[T], most: int, batch: int) -> list[NamingReply[T]]:
    """The question about each image (images, 3, rows, columns), `batch` of them at a time."""
    answers = []
    for at in range(0, len(pixels), batch):
        images = [[image] for image in pixels[at : at + batch]]
        for reply in net.reply(images, [question.text] * len(images), most):
            mentions = question.read(reply.text)
            answers.append(NamingReply(reply, mentions, tuple(reply.tokens_of(*span) for span in mentions.spans)))
    return answers


def answer_maps(
    net: Generative, pixels: torch.Tensor, answers: Sequence[NamingReply[Any]], method: Method, batch: int
) -> torch.Tensor:
    """(images, most, rows, columns): the map of each class that a reply names; zeros where it names fewer."""
    most = max([1, *(len(answer.tokens) for answer in answers)])
    maps = torch.zeros(len(answers), most, *net.grid, device=net.device)
    for at in range(0, len(answers), batch):
        part = answers[at : at + batch]
        wanted = [sorted({token for row in answer.tokens for token in row}) for answer in part]
        images = [[image] for image in pixels[at : at + batch]]
        maps_of = token_maps(net, images, [answer.reply for answer in part], wanted)
        for b, (answer, own) in enumerate(zip(part, maps_of, strict=True), start=at):
            for k, tokens in enumerate(answer.tokens):
                maps[b, k] = own.of(tokens, method.words)
    return maps


def certainties(
    net: Generative, pixels: torch.Tensor, replies: Sequence[Generated], tokens: Sequence[Sequence[int]], batch: int
) -> torch.Tensor:
    """(images,): the probability of these tokens of a reply if it were given to each of the images instead."""
    values = torch.ones(len(replies))
    for at in range(0, len(replies), batch):
        part = replies[at : at + batch]
        with torch.no_grad():
            logits = net.replay([[image] for image in pixels[at : at + batch]], part).logits.detach().float().cpu()
        chances = torch.softmax(logits, dim=-1)
        for b, reply in enumerate(part):
            for token in tokens[at + b]:
                values[at + b] *= chances[b, token, reply.tokens[token]]
    return values


def reply_case(prepared: PreparedFrame, question: Question[Any], answer: NamingReply[Any]) -> Case:
    """What was said about a frame, and how much of it the label space does not hold."""
    text, unparsed = answer.reply.text, answer.mentions.unparsed
    values = {
        "task": "replies", "frame": prepared.frame.name, "asked": question.task, "reply": text.strip()[:_LONGEST_REPLY],
        "named": len(answer.mentions.classes), "unparsed": len(unparsed),
        "unparsed_words": "; ".join(unparsed)[:_LONGEST_REPLY], "finished": answer.reply.finished,
        "tokens": len(answer.reply.tokens),
    }  # fmt: skip
    return Case(
        f"{prepared.frame.video}/{prepared.frame.name}/reply/{question.task}", prepared.frame.video, values=values
    )
