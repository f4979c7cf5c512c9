"""LLaVA from a transformers folder: an image becomes a grid of tokens in front of a language model.

Attention is eager, and only the last decoder layer's is kept. The grid is read from the configuration; a model that
lays out images differently (tiles, several sizes, a class token among the patches) is refused by name.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from surgeval.errors import BadInput, DataError
from surgeval.files import format_value
from surgeval.models.chat_template import ChatTemplate
from surgeval.models.generative import Generated, Replayed
from surgeval.models.preparation import read_preparation
from surgeval.models.tokenizers import FolderTokens, check_prompts, raise_tokenizer_errors
from surgeval.models.towers import TYPES, LoadedModel, read_patch_grid
from surgeval.models.weights import build_network, digest, first_line, make_config, read_config, read_folder

if TYPE_CHECKING:
    from surgeval.models.generative import ImageInput

__all__ = ["Decoder", "Dialogue", "Llava", "load_network", "open_llava"]

_DECODERS = ("llama", "mistral", "qwen2")  # the first is meant by a configuration without a name
# The strategy that makes tokens of the patches alone: CLIP's has a class token to leave out, SigLIP's has none.
_TOWERS = {"clip_vision_model": "default", "siglip_vision_model": "full"}
_RENAMED = (  # tensor names of files written before transformers 4.52, and names that transformers still changes
    (re.compile(r"^language_model\.lm_head\."), "lm_head."),
    (re.compile(r"^language_model\.model\."), "model.language_model."),
    (re.compile(r"^(vision_tower|multi_modal_projector)\."), r"model.\1."),
    (re.compile(r"^model\.vision_tower\.vision_model\."), "model.vision_tower."),
)
_TEMPLATES = ("chat_template.jinja", "chat_template.json")
_LONGEST_TEXT = 1 << 20  # characters of a question with what the template adds
_MOST_TOKENS = 4096  # of a reply
_MOST_CONTEXT = 1 << 15  # tokens of question, images and reply: the memory of attention grows with their square


class Llava(LoadedModel):
    """A `Generative` model. If a folder has no tokenizer, `dialogue` is None and replies can only be replayed."""

    def __init__(
        self, network: Any, dialogue: Dialogue | None, grid: tuple[int, int], ends: Sequence[int] = (), **about: Any
    ) -> None:
        super().__init__(network, **about)
        self.dialogue, self.grid, self._ends = dialogue, grid, tuple(ends)
        self._decoder = Decoder(self.network)

    def unknown(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Words of the questions that the tokenizer does not know: all become the same unknown token."""
        return self._require_dialogue().unknown(texts)

    def word(self, token: int) -> str:
        """The text of one token of a question or a reply; empty without a tokenizer."""
        return self.dialogue.pieces([token])[0] if self.dialogue is not None else ""

    def reply(
        self, images: Sequence[Sequence[ImageInput]], texts: Sequence[str], max_tokens: int = 128
    ) -> list[Generated]:
        """Answer each question about its images, all in one batch; each token is the most likely one."""
        if not 1 <= max_tokens <= _MOST_TOKENS:
            raise BadInput(f"max_tokens must be between 1 and {_MOST_TOKENS}, not {max_tokens}.")
        questions = [self._make_question(text, shown) for text, shown in _pair_with_images(images, texts)]
        if not questions:
            return []
        self._check_context(max(len(question.prompt) for question in questions) + max_tokens)
        with self._raise_failures():
            tokens, probabilities = self._decoder.generate(self._features(images), questions, max_tokens, self._ends)
        replies = []
        for question, ids, chances in zip(questions, tokens, probabilities, strict=True):
            size = next((at for at, token in enumerate(ids) if token in self._ends), len(ids))
            finished = size < len(ids) or len(ids) < max_tokens
            replies.append(self._make_reply(question, ids[:size], chances[:size], finished))
        return replies

    def force(
        self, images: Sequence[Sequence[ImageInput]], texts: Sequence[str], answers: Sequence[str]
    ) -> list[Generated]:
        """Make replies of these given answers to the questions, for `replay`."""
        questions = [self._make_question(text, shown) for text, shown in _pair_with_images(images, texts)]
        if len(answers) != len(questions):
            raise BadInput(f"{len(answers)} answers for {len(questions)} questions. Give one answer for each question.")
        dialogue = self._require_dialogue()
        return [
            self._make_reply(question, dialogue.encode(answer), (), True)
            for question, answer in zip(questions, answers, strict=True)
        ]

    def replay(self, images: Sequence[Sequence[ImageInput]], replies: Sequence[Generated]) -> Replayed:
        """Run the model over questions and replies; gradients start at the input of the last decoder layer."""
        for reply, shown in _pair_with_images(images, replies):
            if len(reply.prompt) != reply.prompt_length or len(reply.spans) != len(shown):
                raise BadInput(f"The reply does not belong to this question: it has {len(reply.prompt)} of "
                               f"{reply.prompt_length} prompt tokens and places for {len(reply.spans)} of "
                               f"{len(shown)} images.")  # fmt: skip
        self._check_context(max((reply.prompt_length + len(reply.tokens) for reply in replies), default=0))
        with self._raise_failures():
            return self._decoder.replay(self._features(images), replies)

    def _require_dialogue(self) -> Dialogue:
        if self.dialogue is None:
            raise BadInput(f"{self.name} has no tokenizer, so it cannot be asked questions.")
        return self.dialogue

    def _make_question(self, text: str, images: Sequence[ImageInput]) -> Generated:
        prompt, spans = self._require_dialogue().question(text, len(images))
        return Generated("", (), (), len(prompt), prompt, spans)

    def _make_reply(
        self, question: Generated, ids: Sequence[int], chances: Sequence[float], finished: bool
    ) -> Generated:
        words = self._require_dialogue().pieces(ids)
        return Generated("".join(words), tuple(ids), words, question.prompt_length, question.prompt, question.spans,
                         tuple(chances), finished)  # fmt: skip

    def _check_context(self, tokens: int) -> None:
        most = min(self.network.config.text_config.max_position_embeddings, _MOST_CONTEXT)
        if tokens > most:
            raise BadInput(f"Question and reply may have {tokens} tokens; {self.name} reads at most {most}.")

    @contextmanager
    def _raise_failures(self) -> Iterator[None]:
        """Raise torch's errors about an unusable configuration or too little memory as `BadInput`."""
        try:
            yield
        except (RuntimeError, ValueError, LookupError, ArithmeticError) as error:
            raise BadInput(f"{self.name} cannot compute an answer: {first_line(error)}") from error

    def _features(self, images: Sequence[Sequence[ImageInput]]) -> torch.Tensor:
        """The tokens of all images, in order: (images, patches, width)."""
        every = [self._prepare(image) for some in images for image in some]
        width = self.network.config.text_config.hidden_size
        if not every:
            return torch.zeros(0, math.prod(self.grid), width, device=self.device, dtype=TYPES[self.dtype])
        with torch.no_grad():
            features = self.network.get_image_features(self._place_pixels(torch.stack(every))).pooler_output
        return torch.stack(tuple(features))

    def _prepare(self, image: ImageInput) -> torch.Tensor:
        ready = torch.from_numpy(self.preparation(image)) if isinstance(image, np.ndarray) else image
        return ready.to(self.device)


def _pair_with_images(
    images: Sequence[Sequence[ImageInput]], asked: Sequence[Any]
) -> list[tuple[Any, Sequence[ImageInput]]]:
    if len(images) != len(asked):
        raise BadInput(f"{len(asked)} questions but {len(images)} lists of images. Give one list for each question.")
    return list(zip(asked, images, strict=True))


def open_llava(folder: Path, name: str, dtype: str = "float32") -> Llava:
    """Load a transformers folder with `model_type: llava`."""
    path = folder / "config.json"
    preparation = read_preparation(folder)
    network, files, notes = load_network(folder, dtype)
    config = network.config
    grid = read_patch_grid(path, config.vision_config, preparation)
    _check_patch_size(folder, config)
    dialogue = Dialogue(folder, image_token=config.image_token_id, patches=math.prod(grid),
                        words=config.text_config.vocab_size)  # fmt: skip
    ends = _read_end_tokens(folder, config, dialogue)
    identity = digest([*files, path, *dialogue.files], preparation, ends, "llava", dtype)
    return Llava(network, dialogue, grid, ends, name=name, family="llava", identity=identity, preparation=preparation,
                 dtype=dtype, notes=notes)  # fmt: skip


def load_network(folder: Path, dtype: str = "float32") -> tuple[Any, list[Path], tuple[str, ...]]:
    """Load a folder's network: the network, the files of its weights, and notes on changes made to fit them."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    if dtype not in TYPES:
        raise BadInput(f"Unknown dtype {dtype!r}. Use {' or '.join(TYPES)}.")
    path = folder / "config.json"
    stored = read_config(path)
    _check_layout(path, stored)
    config = make_config(LlavaConfig.from_dict, stored, path)
    _check_config(path, config)
    tensors, files = read_folder(folder)
    tied = config.tie_word_embeddings or config.text_config.tie_word_embeddings
    make = partial(LlavaForConditionalGeneration._from_config, copy.deepcopy(config), attn_implementation="eager",
                   dtype=TYPES[dtype])  # fmt: skip
    network, notes = build_network(make, _rename_tensors(tensors, tied=bool(tied)), files[0])
    return network, files, notes


def _check_layout(path: Path, config: Mapping[str, Any]) -> None:
    """Raise `DataError` for a decoder, an image tower or a layout of image tokens that is not supported."""
    for part, known in (("text_config", _DECODERS), ("vision_config", tuple(_TOWERS))):
        inner = config.get(part)
        kind = inner.get("model_type", known[0]) if isinstance(inner, Mapping) else None
        if kind not in known:
            sentence = f"expected {' or '.join(known)}, got {format_value(kind)}"
            raise DataError(path, sentence, field=f"{part}.model_type", code="wrong-value")
    tower = config["vision_config"].get("model_type", next(iter(_TOWERS)))
    strategy = config.get("vision_feature_select_strategy", "default")
    if strategy != _TOWERS[tower]:
        sentence = f"expected {_TOWERS[tower]!r} for a {tower}, got {format_value(strategy)}"
        raise DataError(path, sentence, field="vision_feature_select_strategy", code="wrong-value")


def _check_config(path: Path, config: Any) -> None:
    layers = config.vision_config.num_hidden_layers
    chosen = config.vision_feature_layer
    for layer in chosen if isinstance(chosen, list | tuple) and chosen else [chosen]:
        if not isinstance(layer, int) or isinstance(layer, bool) or not -layers - 1 <= layer <= layers:
            sentence = f"expected layers from {-layers - 1} to {layers}, got {format_value(chosen)}"
            raise DataError(path, sentence, field="vision_feature_layer", code="wrong-value")
    words, placeholder = config.text_config.vocab_size, config.image_token_id
    if not isinstance(placeholder, int) or not 0 <= placeholder < words:
        sentence = f"expected the number of the image token, below {words}, got {format_value(placeholder)}"
        raise DataError(path, sentence, field="image_token_index", code="wrong-value")


def _rename_tensors(tensors: Mapping[str, torch.Tensor], *, tied: bool) -> dict[str, torch.Tensor]:
    named = {}
    for name, value in tensors.items():
        for pattern, new in _RENAMED:
            name = pattern.sub(new, name)
        named[name] = value
    words = named.get("model.language_model.embed_tokens.weight")
    if tied and words is not None:
        named.setdefault("lm_head.weight", words)
    return named


def _check_patch_size(folder: Path, config: Any) -> None:
    """Raise `DataError` if the processor, which also lays out an image's tokens, has another patch size."""
    path = folder / "processor_config.json"
    patch = read_config(path).get("patch_size") if path.is_file() else None
    if patch is not None and patch != config.vision_config.patch_size:
        sentence = f"expected {config.vision_config.patch_size} as in config.json, got {format_value(patch)}"
        raise DataError(path, sentence, field="patch_size", code="wrong-value")


def _read_end_tokens(folder: Path, config: Any, dialogue: Dialogue) -> tuple[int, ...]:
    """Tokens that end a reply: of generation_config.json, the configuration and the tokenizer."""
    path = folder / "generation_config.json"
    stated = read_config(path).get("eos_token_id") if path.is_file() else None
    ends: list[object] = []
    for some in (stated, config.text_config.eos_token_id, dialogue.last):
        ends += some if isinstance(some, list) else [some]
    words = range(config.text_config.vocab_size)
    return tuple(
        sorted({token for token in ends if isinstance(token, int) and not isinstance(token, bool) and token in words})
    )


class Dialogue(FolderTokens):
    """The tokenizer and chat template of a model folder: questions about images to tokens, and tokens to text.

    The template decides where the images stand; each placeholder (token `image_token`) becomes `patches` tokens. A
    question cannot contain placeholders of its own.
    """

    def __init__(self, folder: Path, *, image_token: int, patches: int, words: int) -> None:
        super().__init__(folder, longest=0, words=words, fast=(folder / "tokenizer.json").is_file())
        self.image_token, self.patches = image_token, patches

    @property
    def files(self) -> list[Path]:
        """The files that decide how a question is tokenised."""
        return [*super().files, *(self.path / name for name in _TEMPLATES if (self.path / name).is_file())]

    @property
    def last(self) -> int | None:
        """The tokenizer's token for the end of a reply."""
        number: int | None = self._tokenizer.eos_token_id
        return number

    @cached_property
    def _template(self) -> ChatTemplate:
        stored = self._tokenizer.chat_template
        older = self.path / "chat_template.json"
        if not stored and older.is_file():
            stored = read_config(older).get("chat_template")
        if not isinstance(stored, str) or not stored:
            sentence = "no chat template; a model that answers questions has one in chat_template.jinja"
            raise DataError(self.path, sentence, code="file-missing")
        return ChatTemplate(stored, self._tokenizer.special_tokens_map, _LONGEST_TEXT)

    def question(self, text: str, images: int) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """The tokens of a question about this number of images, and the positions of each image's tokens."""
        (text,) = check_prompts([text])
        content = [*({"type": "image"} for _ in range(images)), {"type": "text", "text": text}]
        template = self._template
        with raise_tokenizer_errors(self.path, "a chat template for images and text"):
            (prompt,) = template.render([[{"role": "user", "content": content}]])
            start = self._tokenizer.bos_token
            ids = self._tokenizer(prompt, add_special_tokens=not (start and prompt.startswith(start)))["input_ids"]
        placeholders = ids.count(self.image_token)
        if placeholders != images:
            raise BadInput(f"The question {text[:60]!r} has {placeholders} image tokens for {images} images. Remove "
                           "image tokens from the question, or use a template that places every image.")  # fmt: skip
        return self._expand_images(self._check_vocabulary(ids))

    def _expand_images(self, ids: Sequence[int]) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        tokens: list[int] = []
        spans = []
        for number in ids:
            if number == self.image_token:
                spans.append((len(tokens), len(tokens) + self.patches))
                tokens += [number] * self.patches
            else:
                tokens.append(number)
        return tuple(tokens), tuple(spans)

    def unknown(self, prompts: Sequence[str]) -> tuple[str, ...]:
        """The words that become the unknown token, tokenised within their text: alone, a word may be another token."""
        unknown_ids = self._unknown_ids()
        missing: dict[str, None] = {}
        for text in prompts:
            with raise_tokenizer_errors(self.path, "a tokenizer that knows the positions of its tokens"):
                read = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            places = zip(read["input_ids"], read["offset_mapping"], strict=True)
            missing |= {text[first:stop].strip(): None for number, (first, stop) in places if number in unknown_ids}
        return tuple(word for word in missing if word)

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that is used as a reply."""
        with raise_tokenizer_errors(self.path, "a tokenizer"):
            return self._check_vocabulary(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def pieces(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """The text that each token adds; joined, they are the whole text."""
        pieces, before = [], ""
        with raise_tokenizer_errors(self.path, "a tokenizer"):
            for count in range(1, len(tokens) + 1):
                text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
                text = text.rstrip("\N{REPLACEMENT CHARACTER}") if count < len(tokens) else text
                # A token may end within a letter; the letter belongs to the token that completes it.
                whole = text if text.startswith(before) else before
                pieces.append(whole[len(before) :])
                before = whole
        return tuple(pieces)

    def _check_vocabulary(self, ids: Sequence[int]) -> tuple[int, ...]:
        if any(not 0 <= number < self.words for number in ids):
            worst = max(ids, key=lambda number: number if number >= 0 else self.words - number)
            sentence = f"gives token {worst}; the model knows only tokens below {self.words}"
            raise DataError(self.path, sentence, field="tokenizer", code="wrong-value")
        return tuple(ids)


class Decoder:
    """Runs a network's `language_model` on tokens, with the features of images at their positions."""

    def __init__(self, network: Any) -> None:
        self._network = network

    @property
    def _model(self) -> Any:
        return self._network.model.language_model

    def generate(
        self, features: torch.Tensor, questions: Sequence[Generated], most: int, ends: Sequence[int]
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Up to `most` tokens for each question and their probabilities; stops when every row has one of `ends`."""
        from transformers import DynamicCache

        length = max(question.prompt_length for question in questions)
        # Shorter questions are padded in front, so that all replies begin at the same position.
        before = [length - question.prompt_length for question in questions]
        state = self._embed(features, questions, before, [()] * len(questions), length)
        mask = torch.ones(state.shape[:2], dtype=torch.long, device=state.device)
        for row, empty in enumerate(before):
            mask[row, :empty] = 0
        cache = DynamicCache(config=self._network.config.text_config)
        stops = torch.tensor(ends, dtype=torch.long, device=state.device)
        going = torch.ones(len(questions), dtype=torch.bool, device=state.device)
        tokens, chances = [], []
        for _ in range(most):
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -state.shape[1] :]
            with torch.no_grad():
                out = self._model(inputs_embeds=state, attention_mask=mask, position_ids=places, past_key_values=cache,
                                  use_cache=True)  # fmt: skip
                logits = self._network.lm_head(out.last_hidden_state[:, -1]).float()
            if not bool(logits.isfinite().all()):
                raise RuntimeError("the scores of the next token are not finite")
            best = logits.argmax(-1)
            chances.append(functional.softmax(logits, -1).gather(1, best[:, None])[:, 0])
            tokens.append(best)
            going &= ~torch.isin(best, stops)
            if not bool(going.any()):
                break
            state = self._model.embed_tokens(best[:, None]).detach()
            mask = torch.cat([mask, mask.new_ones(len(questions), 1)], dim=1)
        return torch.stack(tokens, 1).tolist(), torch.stack(chances, 1).tolist()

    def replay(self, features: torch.Tensor, replies: Sequence[Generated]) -> Replayed:
        """Run all replies at once; gradients start at the input of the last decoder layer.

        The layers below run without gradients, and only the last one's attention is kept: that of all layers would
        take a gigabyte for a model with 7 billion weights.
        """
        inputs = [reply.tokens[:-1] for reply in replies]
        rows = [reply.prompt_length + len(tokens) for reply, tokens in zip(replies, inputs, strict=True)]
        # Shorter replies are padded at the end, which no earlier position attends to.
        state = self._embed(features, replies, [0] * len(replies), inputs, max(rows))
        hidden, options = self._run_below_last(state)
        hidden.requires_grad_(True)
        layer, attentions = self._model.layers[-1], []
        handle = layer.self_attn.register_forward_hook(lambda _module, _inputs, out: attentions.append(out[1]))
        try:
            with torch.enable_grad():
                last = self._model.norm(layer(hidden, **options))
                where = torch.zeros(len(replies), max(len(reply.tokens) for reply in replies), dtype=torch.long)
                for row, reply in enumerate(replies):
                    for token in range(len(reply.tokens)):
                        where[row, token] = reply.predicted_at(token)
                at = where.to(last.device)[:, :, None].expand(-1, -1, last.shape[2])
                logits = self._network.lm_head(last.gather(1, at)).float()
        finally:
            handle.remove()
        if len(attentions) != 1 or attentions[0] is None:
            raise RuntimeError("the last decoder layer returned no attention; it must be eager")
        return Replayed(hidden, logits, attentions[0].detach(), tuple(rows))

    def _run_below_last(self, state: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """The input of the last decoder layer, and the other arguments that it is called with."""
        stored: list[tuple[torch.Tensor, dict[str, Any]]] = []

        def store(_module: object, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
            stored.append((inputs[0] if inputs else options["hidden_states"], options))
            raise _StopForward

        handle = self._model.layers[-1].register_forward_pre_hook(store, with_kwargs=True)
        try:
            with torch.no_grad():
                self._model(inputs_embeds=state, use_cache=False)
        except _StopForward:
            hidden, options = stored[0]
            return hidden.detach(), {name: value for name, value in options.items() if name != "hidden_states"}
        finally:
            handle.remove()
        raise RuntimeError("the last decoder layer was not called")

    def _embed(
        self, features: torch.Tensor, asked: Sequence[Generated], before: Sequence[int],
        inputs: Sequence[Sequence[int]], length: int,
    ) -> torch.Tensor:  # fmt: skip
        """Token vectors (questions, length, width) with the images' features at their positions."""
        ids = torch.zeros(len(asked), length, dtype=torch.long)
        for row, (question, empty, tokens) in enumerate(zip(asked, before, inputs, strict=True)):
            sequence = [*question.prompt, *tokens]
            ids[row, empty : empty + len(sequence)] = torch.tensor(sequence)
        with torch.no_grad():
            state: torch.Tensor = self._model.embed_tokens(ids.to(features.device)).clone()
            image = 0
            for row, (question, empty) in enumerate(zip(asked, before, strict=True)):
                for first, stop in question.spans:  # by position: a model may also generate the image token
                    state[row, empty + first : empty + stop] = features[image].to(state.dtype)
                    image += 1
        return state


class _StopForward(Exception):
    """Ends a forward pass once the input of the last layer is known."""
