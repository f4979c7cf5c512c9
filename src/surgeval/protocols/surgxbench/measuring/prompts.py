"""The sentences that stand for classes, in the papers' words.

A label space writes `specimen_bag` or `null_verb`; a sentence has a space there. The order of prompts is the order of
classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from surgeval.errors import BadInput
from surgeval.records import Triplet
from surgeval.vocab import LabelSpace

__all__ = ["TripletPrompts", "instrument_prompts", "spoken", "triplet_prompts", "verb_prompt"]

_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_INSTRUMENT = {
    "early": "an image showing a {} in use",
    "surgxbench": "The {} is in the image",
}


def spoken(name: str) -> str:
    """A class name as it is said.

    >>> spoken("specimen_bag"), spoken("SpecimenBag")
    ('specimen bag', 'Specimen Bag')
    """
    return " ".join(_JOINT.sub(" ", name).replace("_", " ").split())


def instrument_prompts(space: LabelSpace, profile: str) -> tuple[str, ...]:
    """One prompt per instrument, in the words of a profile: `surgxbench` or `early`.

    >>> from surgeval.vocab import load_labels
    >>> instrument_prompts(load_labels("cholect50"), "surgxbench")[2]
    'The hook is in the image'
    """
    return tuple(_INSTRUMENT[profile].format(spoken(name)) for name in space.instruments)


def verb_prompt(name: str) -> str:
    """The second prompt of the early profile."""
    return f"I am performing {spoken(name)}"


@dataclass(frozen=True, slots=True)
class TripletPrompts:
    """Prompts and the triplets they stand for, in the same order."""

    texts: tuple[str, ...]
    triplets: tuple[Triplet, ...]


def triplet_prompts(space: LabelSpace, pool: str) -> TripletPrompts:
    """`valid`: the label space's classes; `all`: every combination of its instruments, verbs and targets.

    >>> from surgeval.vocab import load_labels
    >>> triplet_prompts(load_labels("cholect50"), "valid").texts[17]
    'I use a grasper to retract the gallbladder'
    """
    if not space.triplets:
        raise BadInput(f"label space {space.name}: found no triplets, expected some for task triplets")
    if pool == "valid":
        triples = [(int(i), int(v), int(t)) for i, v, t in space.triplets]
    else:
        sizes = (len(space.instruments), len(space.verbs), len(space.targets))
        triples = [(i, v, t) for i in range(sizes[0]) for v in range(sizes[1]) for t in range(sizes[2])]
    texts = tuple(
        f"I use a {spoken(space.instruments[i])} to {spoken(space.verbs[v])} the {spoken(space.targets[t])}"
        for i, v, t in triples
    )
    return TripletPrompts(texts, tuple(Triplet(*triple) for triple in triples))
