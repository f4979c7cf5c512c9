"""The words of the embedded LLaVAs: a tokenizer of whole words, and the template that turns messages into text.

Words keep the space before them, so that joining tokens gives the text back. Letters of options ("A)", "A." at the
start of a line) and whole answers ("Answer: A") are tokens of their own: a letter never reads as the article.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from surgeval.files import write_atomically
from surgeval.vocab import load_labels

__all__ = ["ANSWERS", "END", "IMAGE", "MARKERS", "PAD", "TEMPLATE", "UNKNOWN", "dialogue", "make_tokenizer",
           "save_speech"]  # fmt: skip

PAD, UNKNOWN, END, IMAGE = "<pad>", "<unk>", "</s>", "<image>"
_LETTERS = "ABCDEFGH"
MARKERS = (*(f"{letter})" for letter in _LETTERS), *(f"\n{letter}." for letter in _LETTERS))
ANSWERS = tuple(f"Answer: {letter}" for letter in _LETTERS)
_SPECIALS = (PAD, UNKNOWN, END, IMAGE)
_PIECES = r"\n| ?[a-z_]+| ?\d| ?[^\sa-z_\d]|\s"
_LENGTH = 2048

# What a model this small cannot follow (a system message) is left out: the template is part of the model.
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'user' %}USER: "
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% elif message['role'] == 'assistant' %}{{ '\\nASSISTANT:' }}{{ message['content'] }}</s>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '\\nASSISTANT:' }}{% endif %}"
)


def dialogue(parts: Sequence[str]) -> str:
    r"""A user's message of texts and pictures as the template writes it, up to the reply.

    >>> dialogue((IMAGE, "What do you see?"))
    'USER: <image>What do you see?\nASSISTANT:'
    """
    return f"USER: {''.join(parts)}\nASSISTANT:"


def make_tokenizer(texts: Iterable[str]) -> Any:
    """A tokenizer that knows every word of the texts and of the phantom's label space.

    >>> tokenizer = make_tokenizer(["not a hook"])
    >>> tokenizer.encode("A) a hook").tokens
    ['A)', ' a', ' hook']
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    split = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    lower = normalizers.Lowercase()
    labels = load_labels("phantom")
    names = [*labels.instruments, *labels.verbs, *labels.targets, "bag"]
    names += [name.replace("_", " ") for name in names]
    known: set[str] = set(".,?!:;-'()%\n") | {f" {digit}" for digit in range(10)} | {str(d) for d in range(10)}
    for text in {*texts, *names, *(f" {name}" for name in names)}:
        for marked in (*MARKERS, *ANSWERS, IMAGE):
            text = text.replace(marked, "\n")  # a word behind a marker keeps its space, as where it is read
        known.update(piece for piece, _ in split.pre_tokenize_str(lower.normalize_str(text)))
    fixed = (*_SPECIALS, *MARKERS, *ANSWERS)
    ids = {word: number for number, word in enumerate((*fixed, *sorted(known - set(fixed))))}
    tokenizer = Tokenizer(models.WordLevel(ids, UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = lower, split, decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in _SPECIALS])
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in (*MARKERS, *ANSWERS)])
    return tokenizer


def save_speech(tokenizer: Any, folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and chat_template.jinja, as `AutoProcessor` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": _LENGTH, "padding_side": "left",
        "pad_token": PAD, "unk_token": UNKNOWN, "eos_token": END, "image_token": IMAGE,
        "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE,
    }  # fmt: skip
    write_atomically(folder / "tokenizer_config.json", (json.dumps(config, indent=1) + "\n").encode())
    write_atomically(folder / "chat_template.jinja", TEMPLATE.encode())
