"""COCO's compressed run lengths as its own tool writes them: readers are handed such strings."""

from __future__ import annotations

from collections.abc import Sequence


def encode_counts(counts: Sequence[int]) -> str:
    """5 bits a character, differences to the count two before."""
    text = []
    for number, count in enumerate(counts):
        value = count - (counts[number - 2] if number > 2 else 0)
        more = True
        while more:
            code = value & 31
            value >>= 5
            more = value != (-1 if code & 16 else 0)
            text.append(chr((code | 32 if more else code) + 48))
    return "".join(text)
