"""What a generative model offers: replies to pictures and a question, and what explaining a reply needs.

A loader returns one object that satisfies `Generative`. Explanation code takes a reply (`Generated`) and has it read
again (`replay`): the input of the last decoder layer, its attention, and the logits, all inside the graph. Positions
count from the first token of the prompt; generated token k was predicted at position `prompt_length - 1 + k`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from surgeval.arrays import Image
from surgeval.errors import BadInput

if TYPE_CHECKING:
    import torch

    from surgeval.models.preparation import Preparation

    # A frame (height, width, 3) in 8-bit RGB, or a model's own input (3, rows, columns), as `preparation` makes it.
    Picture: TypeAlias = Image | torch.Tensor

__all__ = ["Generated", "Generative", "Replayed"]

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


@dataclass(frozen=True)
class Generated:
    """A reply, token by token. `words` are the pieces of `text` that the tokens stand for, in order."""

    text: str
    tokens: tuple[int, ...]  # without the one that ends the reply
    words: tuple[str, ...]
    prompt_length: int  # tokens before the reply, those of the pictures included
    prompt: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # first and last + 1 position of each picture's tokens
    probabilities: tuple[float, ...] = ()  # of each token, given those before it
    finished: bool = True  # False: cut off at the most tokens allowed

    @property
    def image_span(self) -> tuple[int, int]:
        """First and last + 1 position of the image tokens, where there is one picture.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20, spans=((3, 19),)).image_span
        (3, 19)
        """
        if len(self.spans) != 1:
            raise BadInput(f"reply: found {len(self.spans)} pictures in its question, expected one to look at")
        return self.spans[0]

    def predicted_at(self, token: int) -> int:
        """The position whose output was generated token number `token`.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20).predicted_at(1)
        20
        """
        if not 0 <= token < len(self.tokens):
            raise BadInput(f"reply: found token {token}, expected 0 to {len(self.tokens) - 1}")
        return self.prompt_length - 1 + token

    def tokens_of(self, start: int, stop: int) -> tuple[int, ...]:
        """The numbers of the tokens that wrote characters `start` to `stop` of the text.

        >>> Generated("a hook", (7, 8, 9), ("a", " ho", "ok"), 20).tokens_of(2, 6)
        (1, 2)
        """
        touched, at = [], 0
        for number, word in enumerate(self.words):
            if at < stop and at + len(word) > start:
                touched.append(number)
            at += len(word)
        return tuple(touched)

    def spelled(self) -> list[tuple[str, tuple[int, ...]]]:
        """The words of the text, each with the numbers of its tokens; marks between them are no words.

        >>> Generated("a clip-applier, no", (7, 8, 9, 10), ("a", " clip-", "applier,", " no"), 20).spelled()
        [('a', (0,)), ('clip-applier', (1, 2)), ('no', (3,))]
        """
        return [(match[0], self.tokens_of(*match.span())) for match in _WORD.finditer(self.text)]

    def forced(self, tokens: Sequence[int], words: Sequence[str] = ()) -> Generated:
        """The same question with these tokens in the place of the reply.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20).forced([9], ["bag"]).text
        'bag'
        """
        texts = tuple(words) or ("",) * len(tokens)
        if len(texts) != len(tokens):
            raise BadInput(f"reply: found {len(texts)} words for {len(tokens)} tokens, expected as many")
        return replace(self, text="".join(texts), tokens=tuple(tokens), words=texts, probabilities=())


@dataclass(frozen=True, eq=False)
class Replayed:
    """Replies read again at once. Shorter ones are filled up behind their end: `rows` says how far each goes."""

    hidden: torch.Tensor  # (replies, positions, width) the input of the last decoder layer; gradients end here
    logits: torch.Tensor  # (replies, tokens, words) where each token was predicted, inside the graph
    attention: torch.Tensor  # (replies, heads, positions, positions) the last decoder layer's, after the softmax
    rows: tuple[int, ...]  # positions that were read: the prompt and all generated tokens but the last

    def attention_of(self, reply: int) -> torch.Tensor:
        """(heads, rows, rows) of one reply."""
        size = self.rows[reply]
        return self.attention[reply, :, :size, :size]


@runtime_checkable
class Generative(Protocol):
    """A model that answers a question about pictures, one token after the other, always the most likely."""

    name: str
    identity: str  # a hash of weights and settings: what a run records
    family: str  # llava
    preparation: Preparation  # frame → pixels, and which part of the frame they show
    grid: tuple[int, int]  # rows and columns of a picture's tokens

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        ...

    def to(self, device: str) -> Generative:
        """The same model elsewhere."""
        ...

    def reply(
        self, images: Sequence[Sequence[Picture]], texts: Sequence[str], max_tokens: int = 128
    ) -> list[Generated]:
        """A reply to each question about its pictures, all in one batch."""
        ...

    def forced(self, images: Sequence[Sequence[Picture]], texts: Sequence[str], answers: Sequence[str],
               ) -> list[Generated]:  # fmt: skip
        """The questions with these answers in the place of replies, for `replay`."""
        ...

    def replay(self, images: Sequence[Sequence[Picture]], replies: Sequence[Generated]) -> Replayed:
        """Read questions and replies again, inside a graph that begins at the last decoder layer."""
        ...
