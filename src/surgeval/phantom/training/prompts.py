"""What the embedded models read: prompts about instruments, verbs and triplets, and a tokenizer of whole words.

The first wordings of a kind are the benchmark's own; the others are paraphrases that keep a model from learning one
sentence by heart. Underscores read as spaces, capitals as small letters, unknown words as one token.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

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
    others: tuple[str, ...]  # triplets that are no class: things that never happen


def space() -> LabelSpace:
    """The label space that the models speak."""
    return load_labels("phantom")


def benchmark_sentences(profile: str = "surgxbench") -> Sentences:
    """The prompts that the models are examined with.

    >>> benchmark_sentences().instruments[0], benchmark_sentences("early").verbs[0]
    ('The grasper is in the image', 'I am performing grasp')
    """
    wording = INSTRUMENT_WORDINGS[0 if profile == "early" else 1]
    return _sentences(wording, TRIPLET_WORDINGS[0], VERB_WORDINGS[0], space().instruments, ())


def draw_sentences(dice: random.Random, others: int = 64) -> Sentences:
    """Wordings for one training step: half the time the benchmark's, else any paraphrase and synonym."""
    label = space()
    plain = dice.random() < PLAIN
    names = [name if plain else dice.choice((name, *SYNONYMS.get(name, ()))) for name in label.instruments]
    strange: list[tuple[int, int, int]] = []
    while len(strange) < others:
        triplet = (
            dice.randrange(len(label.instruments)),
            dice.randrange(len(label.verbs)),
            dice.randrange(len(label.targets)),
        )
        if label.find(*triplet) < 0:
            strange.append(triplet)
    return _sentences(
        dice.choice(INSTRUMENT_WORDINGS[:2] if plain else INSTRUMENT_WORDINGS),
        TRIPLET_WORDINGS[0] if plain else dice.choice(TRIPLET_WORDINGS),
        VERB_WORDINGS[0] if plain else dice.choice(VERB_WORDINGS),
        names,
        strange,
    )


def _sentences(
    instrument: str,
    triplet: str,
    verb: str,
    names: tuple[str, ...] | list[str],
    strange: tuple[tuple[int, int, int], ...] | list[tuple[int, int, int]],
) -> Sentences:
    label = space()

    def say(i: int, v: int, t: int) -> str:
        return triplet.format(i=names[i], v=label.verbs[v], t=label.targets[t])

    return Sentences(
        tuple(instrument.format(i=name) for name in names),
        tuple(verb.format(v=name) for name in label.verbs),
        tuple(say(*ids) for ids in label.triplets),
        tuple(say(*ids) for ids in strange),
    )


def words(sentence: str) -> list[str]:
    """A sentence as the tokenizer splits it.

    >>> words("The specimen_bag, in use!")
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
    known = sorted({word for text in texts for word in words(text)} | {".", ",", "?", "!", "-"})
    return {word: number for number, word in enumerate((*SPECIALS, *known))}


def encode(sentences: tuple[str, ...] | list[str]) -> list[list[int]]:
    """Token ids, padded to `LENGTH`: what the saved tokenizer gives, without needing it."""
    return [list(_row(sentence)) for sentence in sentences]


@lru_cache(1 << 16)  # training says the same few thousand sentences again and again
def _row(sentence: str) -> tuple[int, ...]:
    ids = vocabulary()
    inside = [ids.get(word, ids[UNKNOWN]) for word in words(sentence)][: LENGTH - 2]
    row = (ids[BEGIN], *inside, ids[END])
    return row + (ids[PAD],) * (LENGTH - len(row))


def save_tokenizer(folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json, as `AutoTokenizer` reads them."""
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
