"""How well the top prompts name the labelled triplets of a frame: IVT > IV > IT > I > missed, and the RAS of each.

`I` (instrument right, verb and target wrong) is a row of its own: without it the paper's four rows do not sum to 100 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surgeval.errors import BadInput
from surgeval.records import UNKNOWN, Triplet

__all__ = ["MATCH_LEVELS", "Match", "match_breakdown", "match_ras", "triplet_match"]

MATCH_LEVELS = ("IVT", "IV", "IT", "I", "missed")


@dataclass(frozen=True, slots=True)
class Match:
    """How well the top prompts name one labelled triplet, and which prompt (its place) does; None when missed."""

    truth: Triplet
    level: Literal["IVT", "IV", "IT", "I", "missed"]
    prompt: int | None


def triplet_match(prompts: Sequence[Triplet], scores: Sequence[float], truth: Sequence[Triplet]) -> tuple[Match, ...]:
    """For each labelled triplet the best level among the prompts: IVT > IV > IT > I > missed.

    Of several prompts at that level the highest-scoring one, of equal scores the first. An unknown component (−1)
    agrees with nothing.

    >>> top = [Triplet(0, 1, 2), Triplet(0, 1, 9), Triplet(3, 4, 5)]
    >>> [(m.level, m.prompt) for m in triplet_match(top, [0.3, 0.4, 0.2], [Triplet(0, 1, 7), Triplet(6, 1, 2)])]
    [('IV', 1), ('missed', None)]
    """
    if len(prompts) != len(scores):
        raise BadInput(f"scores: found {len(scores)} values, expected {len(prompts)} as prompts")
    if not np.isfinite(np.asarray(scores, dtype=np.float64)).all():
        raise BadInput("scores: found a value that is not finite, expected finite scores")
    matches = []
    for wanted in truth:
        levels = [_level(prompt, wanted) for prompt in prompts]
        best = min(levels, default=len(MATCH_LEVELS) - 1)
        if best == len(MATCH_LEVELS) - 1:
            matches.append(Match(wanted, "missed", None))
            continue
        highest = max((k for k, level in enumerate(levels) if level == best), key=lambda k: (scores[k], -k))
        matches.append(Match(wanted, MATCH_LEVELS[best], highest))  # type: ignore[arg-type]
    return tuple(matches)


def _level(prompt: Triplet, truth: Triplet) -> int:
    i, v, t = (
        prompted == true != UNKNOWN
        for prompted, true in (
            (prompt.instrument, truth.instrument), (prompt.verb, truth.verb), (prompt.target, truth.target),
        )
    )  # fmt: skip
    return 4 if not i else 0 if v and t else 1 if v else 2 if t else 3


def match_ras(
    match: Match, ras_local: Sequence[float | None], ras_global: Sequence[float | None]
) -> tuple[Literal["local", "global"], float | None]:
    """The RAS of one labelled triplet: local of the prompt that matches, or the mean global of all prompts if missed.

    Both sequences have one value per prompt; prompts without a region (None) are left out of the mean.

    >>> match_ras(Match(Triplet(0), "missed", None), [0.1, 0.2], [0.4, None])
    ('global', 0.4)
    """
    if match.prompt is not None:
        return "local", ras_local[match.prompt]
    known = [value for value in ras_global if value is not None]
    return "global", sum(known) / len(known) if known else None


def match_breakdown(levels: Iterable[str]) -> Mapping[str, int]:
    """How many labelled triplets reached each level (`Match.level`); the five counts sum to all.

    >>> match_breakdown(["IV", "missed", "IV"])
    {'IVT': 0, 'IV': 2, 'IT': 0, 'I': 0, 'missed': 1}
    """
    counted = Counter(levels)
    return {level: counted[level] for level in MATCH_LEVELS}
