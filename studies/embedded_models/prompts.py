"""The texts of the embedded models: prompts and tokenizer of the CLIPs, dialogue template and tokenizer of the LLaVAs.

The first wordings of a kind are the benchmark's own; the others are paraphrases that keep a CLIP from depending on one
sentence. Its tokenizer reads underscores as spaces and capitals as small letters; unknown words become one token.

Words of the LLaVAs' tokenizer keep the space before them, so that joined tokens give the text back. Letters of options
("A)", or "A." at the start of a line) and whole answers ("Answer: A") are tokens of their own, so that an option "A" is
never read as the article.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from surgeval.files import write_atomically
from surgeval.vocab import LabelSpace, load_labels

LENGTH = 24  # tokens, begin and end included
PAD, UNKNOWN, BEGIN, END = "<pad>", "<unk>", "<s>", "</s>"
SPECIALS = (PAD, UNKNOWN, BEGIN, END)  # ids 0 … 3

INSTRUMENT_WORDINGS = (
    "an image showing a {i} in use",
    "The {i} is in the image",
    "there is a {i} in the image",
    "a {i} is visible",
    "this frame shows the {i}",
    "a photo of a {i}",
    "laparoscopic view with a {i}",
    "the surgeon works with a {i}",
    "{i}",
)
TRIPLET_WORDINGS = (
    "I use a {i} to {v} the {t}",
    "a {i} is used to {v} the {t}",
    "the surgeon uses the {i} to {v} the {t}",
    "an image showing a {i} to {v} the {t}",
    "{i} {v} {t}",
)
VERB_WORDINGS = ("I am performing {v}", "the surgeon performs {v}", "this frame shows the action {v}", "{v}")
SYNONYMS = {
    "grasper": ("grasping forceps",),
    "bipolar": ("bipolar forceps",),
    "hook": ("hook electrode",),
    "clipper": ("clip applier",),
    "irrigator": ("suction irrigator",),
    "specimen_bag": ("bag", "retrieval bag"),
}
PLAIN = 0.5  # share of the steps whose wordings are the benchmark's own, with the label space's names


@dataclass(frozen=True, slots=True)
class Sentences:
    """One wording of every class."""

    instruments: tuple[str, ...]
    verbs: tuple[str, ...]
    triplets: tuple[str, ...]
    others: tuple[str, ...]  # triplets that never occur


def space() -> LabelSpace:
    """The label space of the models."""
    return load_labels("phantom")


def benchmark_sentences(profile: str = "surgxbench") -> Sentences:
    """Return the prompts used in the examination.

    >>> benchmark_sentences().instruments[0], benchmark_sentences("early").verbs[0]
    ('The grasper is in the image', 'I am performing grasp')
    """
    wording = INSTRUMENT_WORDINGS[0 if profile == "early" else 1]
    return _sentences(wording, TRIPLET_WORDINGS[0], VERB_WORDINGS[0], space().instruments, ())


def draw_sentences(rng: random.Random, others: int = 64) -> Sentences:
    """Draw the wordings of one training step: the benchmark's in half of the steps, else paraphrases and synonyms."""
    label = space()
    plain = rng.random() < PLAIN
    names = [name if plain else rng.choice((name, *SYNONYMS.get(name, ()))) for name in label.instruments]
    absent: list[tuple[int, int, int]] = []
    while len(absent) < others:
        triplet = (
            rng.randrange(len(label.instruments)),
            rng.randrange(len(label.verbs)),
            rng.randrange(len(label.targets)),
        )
        if label.find(*triplet) < 0:
            absent.append(triplet)
    return _sentences(
        rng.choice(INSTRUMENT_WORDINGS[:2] if plain else INSTRUMENT_WORDINGS),
        TRIPLET_WORDINGS[0] if plain else rng.choice(TRIPLET_WORDINGS),
        VERB_WORDINGS[0] if plain else rng.choice(VERB_WORDINGS),
        names,
        absent,
    )


def _sentences(
    instrument: str,
    triplet: str,
    verb: str,
    names: tuple[str, ...] | list[str],
    absent: tuple[tuple[int, int, int], ...] | list[tuple[int, int, int]],
) -> Sentences:
    label = space()

    def fill(i: int, v: int, t: int) -> str:
        return triplet.format(i=names[i], v=label.verbs[v], t=label.targets[t])

    return Sentences(
        tuple(instrument.format(i=name) for name in names),
        tuple(verb.format(v=name) for name in label.verbs),
        tuple(fill(*ids) for ids in label.triplets),
        tuple(fill(*ids) for ids in absent),
    )


def split_words(sentence: str) -> list[str]:
    """Split a sentence into words as the tokenizer does.

    >>> split_words("The specimen_bag, in use!")
    ['the', 'specimen', 'bag', ',', 'in', 'use', '!']
    """
    spaced = "".join(c if c.isalnum() else " " if c in "_ \t\n" else f" {c} " for c in sentence.lower())
    return spaced.split()


@cache
def vocabulary() -> dict[str, int]:
    """Every word of every prompt, with its id."""
    label = space()
    texts = [*INSTRUMENT_WORDINGS, *TRIPLET_WORDINGS, *VERB_WORDINGS]
    texts = [text.replace("{i}", " ").replace("{v}", " ").replace("{t}", " ") for text in texts]
    texts += [*label.instruments, *label.verbs, *label.targets]
    texts += [synonym for group in SYNONYMS.values() for synonym in group]
    known = sorted({word for text in texts for word in split_words(text)} | {".", ",", "?", "!", "-"})
    return {word: number for number, word in enumerate((*SPECIALS, *known))}


def encode(sentences: tuple[str, ...] | list[str]) -> list[list[int]]:
    """Return token ids padded to `LENGTH`, equal to those of the saved tokenizer."""
    return [list(_encode_sentence(sentence)) for sentence in sentences]


@lru_cache(1 << 16)  # training repeats a few thousand sentences
def _encode_sentence(sentence: str) -> tuple[int, ...]:
    ids = vocabulary()
    inside = [ids.get(word, ids[UNKNOWN]) for word in split_words(sentence)][: LENGTH - 2]
    row = (ids[BEGIN], *inside, ids[END])
    return row + (ids[PAD],) * (LENGTH - len(row))


def save_prompt_tokenizer(folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json for `AutoTokenizer`."""
    ids = vocabulary()
    added = [
        {
            "id": ids[name], "content": name, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True,
        }
        for name in SPECIALS
    ]  # fmt: skip
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Lowercase"},
                {"type": "Replace", "pattern": {"String": "_"}, "content": " "},
            ],
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": BEGIN, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": END, "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {
                name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (BEGIN, END)
            },
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": UNKNOWN},
    }  # fmt: skip
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": LENGTH,
        "pad_token": PAD,
        "unk_token": UNKNOWN,
        "bos_token": BEGIN,
        "eos_token": END,
        "clean_up_tokenization_spaces": False,
    }
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        write_atomically(folder / name, (json.dumps(content, indent=1) + "\n").encode())


IMAGE = "<image>"
_LETTERS = "ABCDEFGH"
MARKERS = (*(f"{letter})" for letter in _LETTERS), *(f"\n{letter}." for letter in _LETTERS))
ANSWERS = tuple(f"Answer: {letter}" for letter in _LETTERS)
_DIALOGUE_SPECIALS = (PAD, UNKNOWN, END, IMAGE)
_PIECES = r"\n| ?[a-z_]+| ?\d| ?[^\sa-z_\d]|\s"
_CONTEXT_LENGTH = 2048

# A model this small cannot follow a system message, so the template leaves it out.
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'user' %}USER: "
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% elif message['role'] == 'assistant' %}{{ '\\nASSISTANT:' }}{{ message['content'] }}</s>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '\\nASSISTANT:' }}{% endif %}"
)


def format_dialogue(parts: Sequence[str]) -> str:
    r"""Format a user message of texts and images as the template does, up to the reply.

    >>> dialogue((IMAGE, "What do you see?"))
    'USER: <image>What do you see?\nASSISTANT:'
    """
    return f"USER: {''.join(parts)}\nASSISTANT:"


def make_tokenizer(texts: Iterable[str]) -> Any:
    """Build a tokenizer of every word of the texts and of the phantom's label space.

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
            text = text.replace(marked, "\n")  # a word after a marker keeps its space
        known.update(piece for piece, _ in split.pre_tokenize_str(lower.normalize_str(text)))
    fixed = (*_DIALOGUE_SPECIALS, *MARKERS, *ANSWERS)
    ids = {word: number for number, word in enumerate((*fixed, *sorted(known - set(fixed))))}
    tokenizer = Tokenizer(models.WordLevel(ids, UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = lower, split, decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in _DIALOGUE_SPECIALS])
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in (*MARKERS, *ANSWERS)])
    return tokenizer


def save_dialogue_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and chat_template.jinja for `AutoProcessor`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": _CONTEXT_LENGTH, "padding_side": "left",
        "pad_token": PAD, "unk_token": UNKNOWN, "eos_token": END, "image_token": IMAGE,
        "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE,
    }  # fmt: skip
    write_atomically(folder / "tokenizer_config.json", (json.dumps(config, indent=1) + "\n").encode())
    write_atomically(folder / "chat_template.jinja", TEMPLATE.encode())
