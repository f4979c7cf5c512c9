"""The interface of generative models: replies to images and a question, and what explaining a reply needs.

A loader returns one object that satisfies `Generative`. To explain a reply (`Generated`), run the model over question
and reply once more with `replay`: it returns the input of the last decoder layer, its attention, and the logits, with
gradients. Positions count from the first token of the prompt; generated token k was predicted at position
`prompt_length - 1 + k`.
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
    ImageInput: TypeAlias = Image | torch.Tensor

__all__ = ["Generated", "Generative", "Replayed"]

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


@dataclass(frozen=True)
class Generated:
    """A reply, token by token. `words` are the pieces of `text` that the tokens wrote, in order."""

    text: str
    tokens: tuple[int, ...]  # without the one that ends the reply
    words: tuple[str, ...]
    prompt_length: int  # tokens before the reply, including those of the images
    prompt: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()  # first and last + 1 position of each image's tokens
    probabilities: tuple[float, ...] = ()  # of each token, given those before it
    finished: bool = True  # False: cut off at the largest number of tokens

    @property
    def image_span(self) -> tuple[int, int]:
        """First and last + 1 position of the image tokens, for a question about one image.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20, spans=((3, 19),)).image_span
        (3, 19)
        """
        if len(self.spans) != 1:
            raise BadInput(f"The question of this reply has {len(self.spans)} images; this needs exactly one.")
        return self.spans[0]

    def predicted_at(self, token: int) -> int:
        """The position whose output was generated token number `token`.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20).predicted_at(1)
        20
        """
        if not 0 <= token < len(self.tokens):
            raise BadInput(f"The reply has no token {token}: its tokens are 0 to {len(self.tokens) - 1}.")
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

    def split_words(self) -> list[tuple[str, tuple[int, ...]]]:
        """The words of the text, each with the numbers of its tokens; punctuation is left out.

        >>> Generated("a clip-applier, no", (7, 8, 9, 10), ("a", " clip-", "applier,", " no"), 20).split_words()
        [('a', (0,)), ('clip-applier', (1, 2)), ('no', (3,))]
        """
        return [(match[0], self.tokens_of(*match.span())) for match in _WORD.finditer(self.text)]

    def with_reply(self, tokens: Sequence[int], words: Sequence[str] = ()) -> Generated:
        """The same question with these tokens as the reply.

        >>> Generated("a hook", (7, 8), ("a", " hook"), 20).with_reply([9], ["bag"]).text
        'bag'
        """
        texts = tuple(words) or ("",) * len(tokens)
        if len(texts) != len(tokens):
            raise BadInput(f"{len(texts)} words for {len(tokens)} tokens. Give one word for each token.")
        return replace(self, text="".join(texts), tokens=tuple(tokens), words=texts, probabilities=())


@dataclass(frozen=True, eq=False)
class Replayed:
    """The model's states for a batch of replies. Shorter replies are padded at the end: `rows` are their lengths."""

    hidden: torch.Tensor  # (replies, positions, width) the input of the last decoder layer; gradients start here
    logits: torch.Tensor  # (replies, tokens, words) at the position that predicted each token, with gradients
    attention: torch.Tensor  # (replies, heads, positions, positions) of the last decoder layer, after the softmax
    rows: tuple[int, ...]  # positions of each: the prompt and all generated tokens but the last

    def attention_of(self, reply: int) -> torch.Tensor:
        """The attention (heads, rows, rows) of one reply, without padding."""
        size = self.rows[reply]
        return self.attention[reply, :, :size, :size]


@runtime_checkable
class Generative(Protocol):
    """A model that answers questions about images, token by token; each time the most likely token."""

    name: str
    identity: str  # a hash of weights and settings, which a run records
    family: str  # llava, …
    preparation: Preparation  # frame → pixels, and which part of the frame they show
    grid: tuple[int, int]  # rows and columns of an image's tokens

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        ...

    def to(self, device: str) -> Generative:
        """Move the model to a device and return it."""
        ...

    def reply(
        self, images: Sequence[Sequence[ImageInput]], texts: Sequence[str], max_tokens: int = 128
    ) -> list[Generated]:
        """Answer each question about its images, all in one batch."""
        ...

    def force(
        self, images: Sequence[Sequence[ImageInput]], texts: Sequence[str], answers: Sequence[str]
    ) -> list[Generated]:
        """Make replies of these given answers to the questions, for `replay`."""
        ...

    def replay(self, images: Sequence[Sequence[ImageInput]], replies: Sequence[Generated]) -> Replayed:
        """Run the model over questions and replies; gradients start at the input of the last decoder layer."""
        ...
