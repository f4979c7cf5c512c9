"""How a ranking is put into words: shares that are never rounded up to certainty, lists, places."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval import results
from surgeval.arrays import Ints
from surgeval.stats import RankOptions

__all__ = ["NARROW", "listed", "percent", "place_by_tests", "place_span", "points"]

NARROW = "\u00a0"  # between a number and its sign: a line must not break there
_BY_TESTS = {
    "pairwise": "1 + how many models the tests show to be better there",
    "upper_bound": "1 + how many models the tests show to be better there",
    "wins": "1 + how many models have more wins by tests there",
    "leader": "in the order of the accuracies, a new one where a model is worse than the leader of the last",
    "chain": "in the order of the accuracies, a new one where a model is worse than the one before it",
    "closure": "in the order of the accuracies, a new one where every model above is better than every one below",
}


def place_by_tests(options: RankOptions) -> str:
    """What a model's number in one bucket is: not its position by accuracy.

    >>> place_by_tests(RankOptions(collapse="wins"))
    'Place by tests: 1 + how many models have more wins by tests there.'
    """
    text = f"Place by tests: {_BY_TESTS[options.collapse]}."
    if options.collapse in ("pairwise", "upper_bound"):
        text += " Several can share one, and a lower accuracy has the better place where fewer are shown to be better."
    return text


def percent(share: float) -> str:
    r"""A share in a sentence, as every page rounds it, with its sign on the same line.

    >>> [percent(share) for share in (0, 0.002, 0.5, 0.995, 1)]
    ['0\xa0%', 'under 1\xa0%', '50\xa0%', 'over 99\xa0%', '100\xa0%']
    """
    return results.percent(share).replace(" %", f"{NARROW}%")


def points(share: float) -> str:
    """An accuracy or a difference of two in per cent with one decimal, never rounded up to all.

    >>> points(0.123), points(0.9999), points(1)
    ('12.3', '99.9', '100.0')
    """
    shown = f"{100 * share:.1f}"
    return "99.9" if shown == "100.0" and share < 1 else shown


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def place_span(final_rank: Ints, model: int) -> str:
    """A place, or the places that a shared one takes up.

    >>> import numpy as np
    >>> [place_span(np.array([1, 2, 2, 4]), m) for m in range(4)]
    ['1', '2–3', '2–3', '4']
    """
    first = int(final_rank[model])
    last = first + int((final_rank == first).sum()) - 1
    return str(first) if first == last else f"{first}–{last}"
