"""What a model that answers in words is asked about a frame: which tools it sees, and what they do to what."""

from __future__ import annotations

from surgeval.vocab.space import LabelSpace

__all__ = ["tools_question", "triplets_question"]

_SHORT = {"specimen_bag": "bag", "SpecimenBag": "bag"}


def tools_question(labels: LabelSpace) -> str:
    """The tools question of the paper, with the label space's instruments.

    >>> from surgeval.vocab import load_labels
    >>> tools_question(load_labels("phantom"))
    'What surgical tools do you see? Choose from: Grasper, Bipolar, Hook, Scissors, Clipper, Irrigator, Bag'
    """
    names = (_SHORT.get(name, name).replace("_", " ").capitalize() for name in labels.instruments)
    return f"What surgical tools do you see? Choose from: {', '.join(names)}"


def triplets_question(labels: LabelSpace) -> str:
    """What each instrument can do, all targets, and the form of an answer: three words a line.

    >>> from surgeval.vocab import load_labels
    >>> print(triplets_question(load_labels("phantom")).splitlines()[1])
    grasper: dissect, grasp, pack, retract, null_verb
    """
    lines = []
    for number, instrument in enumerate(labels.instruments):
        verbs = dict.fromkeys(labels.verbs[verb] for tool, verb, _ in labels.triplets if tool == number)
        if verbs:
            lines.append(f"{instrument}: {', '.join(verbs)}")
    return "\n".join(
        (
            "What does each instrument do? An instrument can do the following.",
            *lines,
            f"Targets: {', '.join(labels.targets)}",
            "Answer with three words a line: instrument verb target",
        )
    )
