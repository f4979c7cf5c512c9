"""Multiple-choice items as reference rows see them: how a choice is said, and which option rejects the premise.

The option that rejects is known where an item's labels say so, and else from the set: the right option of a cognitive
trap rejects its premise, and so does the same text in the trap's twin. Items are recognised by their words, so that one
whose options were put in another order is still the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_uppercase

from surgeval.records import IntentQuestion, Question

__all__ = ["Rejections", "say_choice"]


def say_choice(index: int) -> str:
    """A choice in the form that items ask for.

    >>> say_choice(2)
    'Answer: C'
    """
    return f"Answer: {ascii_uppercase[index]}"


class Rejections:
    """Which option of an item rejects what its stem asserts.

    >>> media, options = ("a.jpg",), ("to seal it", "nothing is being cut")
    >>> trap = IntentQuestion("t", "laparoscopy", "v", media, "temporal", "prospective", "I cut. Why?", options, 1,
    ...                       trap="cognitive", twin="u")
    >>> twin = IntentQuestion("u", "laparoscopy", "v", media, "temporal", "prospective", "I cut. Why?", options, 0)
    >>> known = Rejections([trap, twin])
    >>> known.option(twin), Rejections([]).option(twin)
    (1, None)
    """

    def __init__(self, items: Iterable[Question]) -> None:
        self._texts: dict[tuple[str, frozenset[str]], str] = {}
        intent = {item.id: item for item in items if isinstance(item, IntentQuestion)}
        for trap in intent.values():
            if trap.trap != "cognitive":
                continue
            labelled = _labelled(trap)
            rejecting = trap.options[trap.answer if labelled is None else labelled]
            self._texts[_words(trap)] = rejecting
            twin = intent.get(trap.twin or "")
            if twin is not None and rejecting in twin.options:
                self._texts[_words(twin)] = rejecting

    def option(self, item: IntentQuestion) -> int | None:
        """The index of the rejecting option in the item's own order; None where it has none, or none is known."""
        labelled = _labelled(item)
        text = self._texts.get(_words(item))
        return labelled if text is None or labelled is not None else item.options.index(text)


def _labelled(item: IntentQuestion) -> int | None:
    rejecting = [index for index, stated in enumerate(item.labels) if stated.label == "rejects"]
    return rejecting[0] if len(rejecting) == 1 else None


def _words(item: IntentQuestion) -> tuple[str, frozenset[str]]:
    return item.question, frozenset(item.options)
