"""Prompts and questions about the classes of a label space, from the templates in `vocab/data/prompts.json`.

Models that score prompts get one prompt per class, in the order of the classes. Models that answer in words get a
question about all classes. `surgeval run surgxbench`, weak boxes and `explain_image` use the same texts.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

from surgeval.errors import BadInput
from surgeval.vocab.label_space import LabelSpace, read_packaged

__all__ = ["TripletPrompts", "format_class_name", "instrument_prompts", "tools_question", "triplet_prompts",
           "triplets_question", "verb_prompt"]  # fmt: skip

_CAPITAL_INSIDE = re.compile(r"(?<=[a-z])(?=[A-Z])")


def format_class_name(name: str) -> str:
    """A class name with spaces between its words, as prompts write it.

    >>> format_class_name("specimen_bag"), format_class_name("SpecimenBag")
    ('specimen bag', 'Specimen Bag')
    """
    return " ".join(_CAPITAL_INSIDE.sub(" ", name).replace("_", " ").split())


def instrument_prompts(space: LabelSpace, profile: str) -> tuple[str, ...]:
    """One prompt per instrument, in the words of a profile: `surgxbench` or `early`.

    >>> from surgeval.vocab import load_labels
    >>> instrument_prompts(load_labels("cholect50"), "surgxbench")[2]
    'The hook is in the image'
    """
    template = _templates()["instrument"][profile]
    return tuple(template.format(instrument=format_class_name(name)) for name in space.instruments)


def verb_prompt(name: str) -> str:
    """The prompt for a verb; the profile `early` scores verbs on their own.

    >>> verb_prompt("null_verb")
    'I am performing null verb'
    """
    return str(_templates()["verb"].format(verb=format_class_name(name)))


@dataclass(frozen=True, slots=True)
class TripletPrompts:
    """Prompts about triplets, and the ids of instrument, verb and target of each."""

    texts: tuple[str, ...]
    ids: tuple[tuple[int, int, int], ...]


def triplet_prompts(space: LabelSpace, pool: str) -> TripletPrompts:
    """Prompts for the triplets of a label space (`valid`) or for all combinations of its components (`all`).

    >>> from surgeval.vocab import load_labels
    >>> triplet_prompts(load_labels("cholect50"), "valid").texts[17]
    'I use a grasper to retract the gallbladder'
    """
    if not space.triplets:
        raise BadInput(f"Label space {space.name} has no triplets, so there are no prompts for task triplets.")
    components = (space.instruments, space.verbs, space.targets)
    if pool == "valid":
        ids = tuple((int(i), int(v), int(t)) for i, v, t in space.triplets)
    else:
        ids = tuple((i, v, t) for i, v, t in itertools.product(*(range(len(names)) for names in components)))
    instruments, verbs, targets = ([format_class_name(name) for name in names] for names in components)
    template = _templates()["triplet"]
    texts = tuple(template.format(instrument=instruments[i], verb=verbs[v], target=targets[t]) for i, v, t in ids)
    return TripletPrompts(texts, ids)


def tools_question(space: LabelSpace) -> str:
    """The question about visible tools of the SurgXBench paper, with the instruments of the label space.

    >>> from surgeval.vocab import load_labels
    >>> tools_question(load_labels("phantom"))
    'What surgical tools do you see? Choose from: Grasper, Bipolar, Hook, Scissors, Clipper, Irrigator, Bag'
    """
    short = _templates()["short names"]
    names = (short.get(name, name).replace("_", " ").capitalize() for name in space.instruments)
    return str(_templates()["tools question"].format(instruments=", ".join(names)))


def triplets_question(space: LabelSpace) -> str:
    """A question about triplets: the verbs of each instrument, all targets, and the form of the answer.

    >>> from surgeval.vocab import load_labels
    >>> print(triplets_question(load_labels("phantom")).splitlines()[1])
    grasper: dissect, grasp, pack, retract, null_verb
    """
    head, row, targets, form = _templates()["triplets question"]
    rows = []
    for number, instrument in enumerate(space.instruments):
        verbs = dict.fromkeys(space.verbs[verb] for tool, verb, _ in space.triplets if tool == number)
        if verbs:
            rows.append(row.format(instrument=instrument, verbs=", ".join(verbs)))
    return "\n".join((head, *rows, targets.format(targets=", ".join(space.targets)), form))


def _templates() -> dict[str, Any]:
    templates: dict[str, Any] = read_packaged("prompts")
    return templates
