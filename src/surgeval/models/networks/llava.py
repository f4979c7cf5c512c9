"""LLaVA from a transformers folder: a picture becomes a grid of tokens in front of a language model.

Attention is eager, and only the last decoder layer's is kept. The grid is read from the configuration; a model whose
pictures are laid out in any other way (tiles, several sizes, a class token among the patches) is refused by name.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surgeval.errors import BadInput, DataError
from surgeval.models.generative import Generated, Replayed
from surgeval.models.io.checkpoint import first_line
from surgeval.models.io.weights import build, configured, digest, read_config, read_folder
from surgeval.models.networks.clip import fitting_size, read_preparation
from surgeval.models.networks.decoder import Decoder
from surgeval.models.networks.two_towers import TYPES, Placed
from surgeval.models.text.dialogue import Dialogue

if TYPE_CHECKING:
    from surgeval.models.generative import Picture

__all__ = ["Llava", "load_network", "open_llava"]

_DECODERS = ("llama", "mistral", "qwen2")  # the first of each is what a configuration without a name means
_TOWERS = {"clip_vision_model": "default", "siglip_vision_model": "full"}  # with and without a class token to leave out
_NAMES = (  # of files written before transformers 4.52, and of its own until today
    (re.compile(r"^language_model\.lm_head\."), "lm_head."),
    (re.compile(r"^language_model\.model\."), "model.language_model."),
    (re.compile(r"^(vision_tower|multi_modal_projector)\."), r"model.\1."),
    (re.compile(r"^model\.vision_tower\.vision_model\."), "model.vision_tower."),
)
_MOST_TOKENS = 4096  # of a reply
_MOST_CONTEXT = 1 << 15  # of question, pictures and reply: attention takes memory in their square


class Llava(Placed):
    """A `Generative` model. `dialogue` is None where a folder has no tokenizer: then replies can only be replayed."""

    def __init__(
        self, network: Any, dialogue: Dialogue | None, grid: tuple[int, int], ends: Sequence[int] = (), **about: Any
    ) -> None:
        super().__init__(network, **about)
        self.dialogue, self.grid, self._ends = dialogue, grid, tuple(ends)
        self._decoder = Decoder(self.network)

    def unknown(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Words of the questions that the tokenizer does not know: the model reads each as the same nothing."""
        return self._asked.unknown(texts)

    def word(self, token: int) -> str:
        """What a token of a question or a reply stands for; nothing where there is no tokenizer."""
        return self.dialogue.pieces([token])[0] if self.dialogue is not None else ""

    def reply(
        self, images: Sequence[Sequence[Picture]], texts: Sequence[str], max_tokens: int = 128
    ) -> list[Generated]:
        """A reply to each question about its pictures, all in one batch: at each step the most likely token."""
        if not 1 <= max_tokens <= _MOST_TOKENS:
            raise BadInput(f"max_tokens: found {max_tokens}, expected 1 to {_MOST_TOKENS}")
        questions = [self._question(text, pictures) for text, pictures in _paired(images, texts)]
        if not questions:
            return []
        longest = max(len(question.prompt) for question in questions) + max_tokens
        self._fits(longest)
        with self._computing():
            tokens, probabilities = self._decoder.greedy(self._features(images), questions, max_tokens, self._ends)
        return [
            self._worded(question, ids[:size], chances[:size], size < len(ids) or len(ids) < max_tokens)
            for question, ids, chances in zip(questions, tokens, probabilities, strict=True)
            for size in [next((at for at, token in enumerate(ids) if token in self._ends), len(ids))]
        ]

    def forced(
        self, images: Sequence[Sequence[Picture]], texts: Sequence[str], answers: Sequence[str]
    ) -> list[Generated]:
        """The questions with these answers in the place of replies."""
        questions = [self._question(text, pictures) for text, pictures in _paired(images, texts)]
        if len(answers) != len(questions):
            raise BadInput(f"answers: found {len(answers)}, expected {len(questions)}, as many as questions")
        return [self._worded(question, self._asked.encode(answer), (), True)
                for question, answer in zip(questions, answers, strict=True)]  # fmt: skip

    def replay(self, images: Sequence[Sequence[Picture]], replies: Sequence[Generated]) -> Replayed:
        """Read questions and replies again, inside a graph that begins at the last decoder layer."""
        for reply, pictures in _paired(images, replies):
            if len(reply.prompt) != reply.prompt_length or len(reply.spans) != len(pictures):
                raise BadInput(f"reply: found {len(pictures)} pictures and {len(reply.spans)} places for them in "
                               f"{len(reply.prompt)} tokens, expected a reply of this model")  # fmt: skip
        self._fits(max((reply.prompt_length + len(reply.tokens) for reply in replies), default=0))
        with self._computing():
            return self._decoder.replay(self._features(images), replies)

    @property
    def _asked(self) -> Dialogue:
        if self.dialogue is None:
            raise BadInput(f"{self.name}: found no tokenizer, expected one to ask questions with")
        return self.dialogue

    def _question(self, text: str, pictures: Sequence[Picture]) -> Generated:
        prompt, spans = self._asked.question(text, len(pictures))
        return Generated("", (), (), len(prompt), prompt, spans)

    def _worded(self, question: Generated, ids: Sequence[int], chances: Sequence[float], done: bool) -> Generated:
        words = self._asked.pieces(ids)
        return Generated("".join(words), tuple(ids), words, question.prompt_length, question.prompt, question.spans,
                         tuple(chances), done)  # fmt: skip

    def _fits(self, tokens: int) -> None:
        most = min(self.network.config.text_config.max_position_embeddings, _MOST_CONTEXT)
        if tokens > most:
            raise BadInput(f"{self.name}: found a question and reply of {tokens} tokens, expected at most {most}")

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """What torch says of a configuration that cannot be computed with, or of too little memory, as one sentence."""
        try:
            yield
        except (RuntimeError, ValueError, LookupError, ArithmeticError) as error:
            raise BadInput(f"{self.name}: found that it cannot compute ({first_line(error)}), expected a configuration "
                           "and memory for this question") from error  # fmt: skip

    def _features(self, images: Sequence[Sequence[Picture]]) -> torch.Tensor:
        """The tokens of all pictures, in order: (pictures, patches, width)."""
        every = [self._prepared(picture) for pictures in images for picture in pictures]
        width = self.network.config.text_config.hidden_size
        if not every:
            return torch.zeros(0, math.prod(self.grid), width, device=self.device, dtype=TYPES[self.dtype])
        with torch.no_grad():
            features = self.network.get_image_features(self._pixels(torch.stack(every))).pooler_output
        return torch.stack(tuple(features))

    def _prepared(self, picture: Picture) -> torch.Tensor:
        ready = torch.from_numpy(self.preparation(picture)) if isinstance(picture, np.ndarray) else picture
        return ready.to(self.device)


def _paired(images: Sequence[Sequence[Picture]], asked: Sequence[Any]) -> list[tuple[Any, Sequence[Picture]]]:
    if len(images) != len(asked):
        raise BadInput(f"questions: found {len(asked)} beside {len(images)} lists of pictures, expected one for each")
    return list(zip(asked, images, strict=True))


def open_llava(folder: Path, name: str, dtype: str = "float32") -> Llava:
    """The model of a transformers folder with `model_type: llava`."""
    path = folder / "config.json"
    preparation = read_preparation(folder)
    network, files, notes = load_network(folder, dtype)
    config = network.config
    grid = fitting_size(path, config.vision_config, preparation)
    _same_patches(folder, config)
    dialogue = Dialogue(folder, image_token=config.image_token_id, patches=math.prod(grid),
                        words=config.text_config.vocab_size)  # fmt: skip
    ends = _ends(folder, config, dialogue)
    identity = digest([*files, path, *dialogue.files], preparation, ends, "llava", dtype)
    return Llava(network, dialogue, grid, ends, name=name, family="llava", identity=identity, preparation=preparation,
                 dtype=dtype, notes=notes)  # fmt: skip


def load_network(folder: Path, dtype: str = "float32") -> tuple[Any, list[Path], tuple[str, ...]]:
    """The network of a folder with its weights, the files they came from, and notes on what was done to fit them."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    if dtype not in TYPES:
        raise BadInput(f"dtype: found {dtype!r}, expected one of {', '.join(TYPES)}")
    path = folder / "config.json"
    stored = read_config(path)
    _understood(path, stored)
    config = configured(LlavaConfig.from_dict, stored, path)
    _checked(path, config)
    tensors, files = read_folder(folder)
    tied = config.tie_word_embeddings or config.text_config.tie_word_embeddings
    network, notes = build(
        partial(LlavaForConditionalGeneration._from_config, copy.deepcopy(config), attn_implementation="eager",
                dtype=TYPES[dtype]),
        _renamed(tensors, tied=bool(tied)), files[0],
    )  # fmt: skip
    return network, files, notes


def _understood(path: Path, config: Mapping[str, Any]) -> None:
    """Which layouts of a picture's tokens are known; any other is told by its name."""
    for part, known in (("text_config", _DECODERS), ("vision_config", tuple(_TOWERS))):
        inner = config.get(part)
        kind = inner.get("model_type", known[0]) if isinstance(inner, Mapping) else None
        if kind not in known:
            raise DataError(path, f"found {repr(kind)[:80]}, expected {', '.join(known)}", field=f"{part}.model_type")
    tower = config["vision_config"].get("model_type", next(iter(_TOWERS)))
    strategy = config.get("vision_feature_select_strategy", "default")
    if strategy != _TOWERS[tower]:
        raise DataError(
            path,
            f"found {repr(strategy)[:80]}, expected {_TOWERS[tower]!r}: of a {tower} just the patches become tokens",
            field="vision_feature_select_strategy",
        )


def _checked(path: Path, config: Any) -> None:
    layers = config.vision_config.num_hidden_layers
    asked = config.vision_feature_layer
    for layer in asked if isinstance(asked, list | tuple) and asked else [asked]:
        if not isinstance(layer, int) or isinstance(layer, bool) or not -layers - 1 <= layer <= layers:
            raise DataError(
                path,
                f"found {repr(asked)[:80]}, expected layers from {-layers - 1} to {layers}",
                field="vision_feature_layer",
            )
    words, placeholder = config.text_config.vocab_size, config.image_token_id
    if not isinstance(placeholder, int) or not 0 <= placeholder < words:
        raise DataError(
            path,
            f"found {repr(placeholder)[:80]}, expected the number of the image token, below {words}",
            field="image_token_index",
        )


def _renamed(tensors: Mapping[str, torch.Tensor], *, tied: bool) -> dict[str, torch.Tensor]:
    named = {}
    for name, value in tensors.items():
        for pattern, new in _NAMES:
            name = pattern.sub(new, name)
        named[name] = value
    words = named.get("model.language_model.embed_tokens.weight")
    if tied and words is not None:
        named.setdefault("lm_head.weight", words)
    return named


def _same_patches(folder: Path, config: Any) -> None:
    """The processor lays out a picture's tokens too; where it says how, it must say the same."""
    path = folder / "processor_config.json"
    patch = read_config(path).get("patch_size") if path.is_file() else None
    if patch is not None and patch != config.vision_config.patch_size:
        raise DataError(
            path,
            f"found {repr(patch)[:80]}, expected {config.vision_config.patch_size} as in config.json",
            field="patch_size",
        )


def _ends(folder: Path, config: Any, dialogue: Dialogue) -> tuple[int, ...]:
    """Tokens that end a reply: of generation_config.json, the configuration and the tokenizer."""
    path = folder / "generation_config.json"
    told = read_config(path).get("eos_token_id") if path.is_file() else None
    ends: list[object] = []
    for some in (told, config.text_config.eos_token_id, dialogue.last):
        ends += some if isinstance(some, list) else [some]
    words = range(config.text_config.vocab_size)
    return tuple(
        sorted({token for token in ends if isinstance(token, int) and not isinstance(token, bool) and token in words})
    )
