"""One image and a few prompts, or a question: scores or a reply, maps, and a picture to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
import torch
from PIL.Image import Image as Picture

from surgeval.arrays import Image, Singles
from surgeval.datasets import read_image
from surgeval.errors import BadInput, bounded
from surgeval.explain import Method, Paste, token_maps
from surgeval.explain.heatmaps import choose_method, heatmaps
from surgeval.models import Contrastive, Generative, open_model
from surgeval.models.preparation import View
from surgeval.protocols.surgxbench.one_image.panels import attend, enlarged, most_pixels, panels, reduced
from surgeval.protocols.surgxbench.one_image.pictured import Pictured
from surgeval.records import ImageRef

__all__ = ["Explained", "ExplainedPrompt", "ExplainedReply", "ExplainedWord", "explain_image", "read_pixels"]

_LARGEST = 20_000  # pixels a side, as of a file
_MOST_WORDS = 24  # panels of one reply: of a longer one the first words are drawn


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Explanation(Pictured):
    """The picture (the frame, then one panel per map), the maps and the numbers."""

    maps: Singles  # (maps, rows, columns) of the model's grid
    paste: Paste  # from the grid to the frame
    method: Mapping[str, object]

    @cached_property
    def heatmaps(self) -> Singles:
        """(maps, height, width) of the frame; NaN where the model saw nothing. Computed on first access."""
        return np.asarray(self.paste.full(self.paste.upsample(self.maps)), np.float32)

    @property
    def heatmap(self) -> Singles:
        """The first map, (height, width) of the frame; NaN where the model saw nothing."""
        if not len(self.maps):
            raise BadInput(f"{self.model}: found a reply without a word, expected one to have a map of")
        first: Singles = self.heatmaps[0]
        return first


@dataclass(frozen=True, slots=True)
class ExplainedPrompt:
    """What the model made of one prompt."""

    prompt: str
    score: float
    area: float  # attended share of what the model saw
    flags: frozenset[str]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained(_Explanation):
    """What a model that scores prompts sees: a map per prompt."""

    prompts: tuple[ExplainedPrompt, ...]

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`prompts`: score, attended share of what the model saw, and flags of each prompt."""
        rows = [
            (explained.prompt, explained.score, explained.area, " ".join(sorted(explained.flags)))
            for explained in self.prompts
        ]
        schema = {"prompt": pl.String, "score": pl.Float64, "area": pl.Float64, "flags": pl.String}
        return {"prompts": pl.DataFrame(rows, schema=schema, orient="row")}

    def __repr__(self) -> str:
        scores = "; ".join(f"{explained.score:+.3f} {explained.prompt!r}" for explained in self.prompts[:3])
        return f"Explained by {self.model}: {scores}{'; …' if len(self.prompts) > 3 else ''}"


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """A word of a reply: how sure the model was of it, and where it looked."""

    question: str
    word: str
    probability: float  # of its tokens together, given the words before
    area: float  # attended share of what the model saw
    flags: frozenset[str]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainedReply(_Explanation):
    """What a model that answers in words says about an image: a map per generated word."""

    replies: Mapping[str, str]  # question → reply, whole
    words: tuple[ExplainedWord, ...]  # those that were drawn

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`words`: question, word, its probability, attended share of what the model saw, and flags."""
        rows = [
            (word.question, word.word, word.probability, word.area, " ".join(sorted(word.flags))) for word in self.words
        ]
        schema = {"question": pl.String, "word": pl.String, "probability": pl.Float64, "area": pl.Float64,
                  "flags": pl.String}  # fmt: skip
        return {"words": pl.DataFrame(rows, schema=schema, orient="row")}

    def __repr__(self) -> str:
        replies = "; ".join(repr(reply[:80]) for reply in list(self.replies.values())[:3])
        return f"Explained by {self.model}: {replies}{'; …' if len(self.replies) > 3 else ''}"


def explain_image(
    image: str | Path | Image | Picture, model: str, prompts: str | Sequence[str], *, method: Method | None = None,
    keep_top: float = 0.2, device: str = "cpu", max_tokens: int = 64,
) -> Explained | ExplainedReply:  # fmt: skip
    """Put prompts to a model about an image (a file, an RGB array of uint8, a PIL image) and draw where it looks.

    A model that scores prompts has a map for each; one that answers in words is asked each prompt as a question, and
    has a map for each word it generates. For a picture of more than 4 million pixels, attended shares and drawings are
    those of a smaller copy; the model gets the picture at full size.

    >>> found = explain_image(np.zeros((64, 96, 3), np.uint8), "phantom-clip", "The hook is in the image")
    >>> found.heatmap.shape, found.to_frame().columns
    ((64, 96), ['prompt', 'score', 'area', 'flags'])
    """
    given: object = prompts  # of whatever type a program passed
    if not isinstance(given, Sequence) or not all(isinstance(prompt, str) for prompt in given):
        raise BadInput(f"prompts: found {bounded(repr(prompts))}, expected a sentence or a list of them")
    asked = (prompts,) if isinstance(prompts, str) else tuple(prompts)
    if not asked or not all(prompt.strip() for prompt in asked):
        raise BadInput("prompt: found an empty one, expected a sentence such as 'The hook is in the image'")
    frame = read_pixels(image)
    net = open_model(model, device=device)
    method = choose_method(net, method)
    if isinstance(net, Generative):
        asked = tuple(dict.fromkeys(asked))
    view, pixels = net.preparation.view(*frame.shape[:2]), torch.from_numpy(net.preparation(frame)).to(net.device)
    frame = reduced(frame, most_pixels(1 + (_MOST_WORDS if isinstance(net, Generative) else len(asked))))
    if isinstance(net, Generative):
        return _reply(frame, view, pixels, net, asked, method, keep_top, max_tokens)
    return _scored(frame, view, pixels, net, asked, method, keep_top)


def _scored(
    frame: Image, view: View, pixels: torch.Tensor, net: Contrastive, asked: Sequence[str], method: Method,
    keep_top: float,
) -> Explained:  # fmt: skip
    bank, pixels = net.texts(asked), pixels[None]
    maps = heatmaps(net, pixels, bank, torch.arange(len(bank))[None], method)
    attended = attend(frame, net.preparation, maps.values[0], keep_top)
    scores = net.scores(pixels, bank)[0].tolist()
    explained = tuple(
        ExplainedPrompt(prompt, float(score), seen.area, seen.flags)
        for prompt, score, seen in zip(asked, scores, attended, strict=True)
    )
    return Explained(
        picture=panels(
            [enlarged(frame), *(seen.overlay for seen in attended)],
            ["frame", *(f"{prompt.score:+.3f} · {prompt.prompt}" for prompt in explained)],
        ),
        prompts=explained,
        maps=maps.values[0].float().cpu().numpy(),
        paste=Paste.of(view, (maps.values.shape[2], maps.values.shape[3])),
        model=net.name,
        visible=view.fraction,
        method=dict(maps.method),
        unknown=bank.unknown,
    )


def _reply(
    frame: Image, view: View, pixels: torch.Tensor, net: Generative, asked: Sequence[str], method: Method,
    keep_top: float, max_tokens: int,
) -> ExplainedReply:  # fmt: skip
    images = [[pixels]] * len(asked)
    replies = net.reply(images, asked, max_tokens)
    spelled = [reply.split_words()[:_MOST_WORDS] for reply in replies]
    wanted = [sorted({token for _, tokens in row for token in tokens}) for row in spelled]
    maps = token_maps(net, images, replies, wanted)
    named = [(b, word, tokens) for b, row in enumerate(spelled) for word, tokens in row]
    grids = [maps[b].of(tokens, method.words) for b, _, tokens in named]
    values = torch.stack(grids) if grids else torch.zeros(0, *net.grid)
    shown = enlarged(frame)
    captions = [f"{question.partition(chr(10))[0]} → {reply.text or 'no word'}"
                for question, reply in zip(asked, replies, strict=True)]  # fmt: skip
    pictures, titles, words = [], [], []
    attended = attend(frame, net.preparation, values, keep_top)
    for b, caption in enumerate(captions):
        pictures.append(shown)
        titles.append(caption)
        for n, (_, word, tokens) in ((n, mention) for n, mention in enumerate(named) if mention[0] == b):
            sure = float(np.prod([replies[b].probabilities[token] for token in tokens]))
            words.append(ExplainedWord(asked[b], word, sure, attended[n].area, attended[n].flags))
            pictures.append(attended[n].overlay)
            nothing = " · no evidence: the map is empty" if "empty_region" in words[-1].flags else ""
            titles.append(f"{word} · probability {sure:.2f}{nothing}")
    return ExplainedReply(
        picture=panels(pictures, titles, "word"),
        replies={question: reply.text for question, reply in zip(asked, replies, strict=True)},
        words=tuple(words),
        maps=values.float().cpu().numpy(),
        paste=Paste.of(view, (values.shape[1], values.shape[2])),
        model=net.name,
        visible=view.fraction,
        method=dict(method.record()),
        unknown=tuple(getattr(net, "unknown", lambda _texts: ())(asked)),
    )


def read_pixels(image: str | Path | Image | Picture) -> Image:
    """The image as an RGB array, whatever it comes as."""
    if isinstance(image, str | Path):
        return read_image(ImageRef(Path(image)))
    if isinstance(image, Picture):
        image = np.asarray(image.convert("RGB"))
    if not isinstance(image, np.ndarray):
        raise BadInput(f"image: found {type(image).__name__}, expected a file, an RGB array or a PIL image")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise BadInput(f"image: found {image.dtype} of shape {image.shape}, expected uint8 of (height, width, 3), RGB")
    if max(image.shape) > _LARGEST:
        raise BadInput(f"image: found {image.shape[1]} × {image.shape[0]} pixels, expected at most {_LARGEST} a side")
    return np.ascontiguousarray(image)
