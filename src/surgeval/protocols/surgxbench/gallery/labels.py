"""Words in images: captions folded into lines, names on patches that do not hide each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from surgeval.arrays import Image
from surgeval.errors import visible
from surgeval.figures.image_overlay import draw_text, text_height, text_width

__all__ = ["fold", "name_patches"]


Colour = tuple[int, int, int]
Patch = tuple[int, int, int, int]  # x1, y1, x2, y2

_LONGEST = 600  # characters of a caption that are looked at
_NAMES = 24  # patches at most: a frame with more boxes is no longer read
_PAD = 3


def fold(text: str, size: int, width: int, lines: int) -> list[str]:
    """The text in at most so many lines of that width; what does not fit ends in an ellipsis.

    >>> fold("I use a hook to dissect the gallbladder", 14, 1000, 2)
    ['I use a hook to dissect the gallbladder']
    >>> fold("hook hook hook", 14, 60, 2)
    ['hook', 'hook…']
    """
    words = visible(" ".join(text[:_LONGEST].split())).split(" ")
    folded = [""]
    while words:
        longer = f"{folded[-1]} {words[0]}".strip()
        if text_width(longer, size) <= width:
            folded[-1] = longer
            words.pop(0)
        elif folded[-1] and len(folded) < lines:
            folded.append("")
        elif len(folded) < lines:  # one word that is wider than the line
            fitting = _fitting(words[0], size, width)
            folded[-1], words[0] = words[0][:fitting], words[0][fitting:]
            folded.append("")
        else:
            folded[-1] = longer[: _fitting(longer, size, width - text_width("…", size))].rstrip() + "…"
            break
    return folded


def _fitting(text: str, size: int, width: int) -> int:
    """How many characters fit, at least one."""
    count = 1
    while count < len(text) and text_width(text[: count + 1], size) <= width:
        count += 1
    return count


def name_patches(
    image: Image, names: Sequence[str], corners: Sequence[tuple[float, float]], size: int, fill: Colour
) -> list[Patch]:
    """Write each name on a filled patch at its corner, or as near as no other patch is hidden; where they are."""
    height, width = image.shape[:2]
    patches: list[Patch] = []
    for name, (x, y) in list(zip(names, corners, strict=True))[:_NAMES]:
        line = fold(name, size, width - 2 * _PAD, 1)[0]
        wide, high = text_width(line, size) + 2 * _PAD, text_height(size)
        start = (round(min(max(x, 0), max(width - wide, 0))), round(min(max(y, 0), max(height - high, 0))))
        spot = next(
            (patch for patch in _places(start, wide, high, patches, (width, height)) if _free(patch, patches)), None
        )
        if spot is None:
            continue  # no room left in the frame
        x1, y1, x2, y2 = spot
        image[y1 : y2 - 1, x1:x2] = fill  # a line between stacked patches stays free
        draw_text(image, line, (x1 + _PAD, y1 + 1), size)
        patches.append(spot)
    return patches


def _places(
    start: tuple[int, int], wide: int, high: int, patches: Sequence[Patch], frame: tuple[int, int]
) -> Iterator[Patch]:
    """Patches beside those that are taken, inside the frame: first below in the same column, then above, then aside."""
    x, y = start
    columns = {x, *(patch[2] for patch in patches), *(patch[0] - wide for patch in patches)}
    rows = {y, *(patch[3] for patch in patches), *(patch[1] - high for patch in patches)}
    inside = [(a, b) for a, b in product(columns, rows) if 0 <= a <= frame[0] - wide and 0 <= b <= frame[1] - high]
    for a, b in sorted(inside, key=lambda at: (at[0] != x, at[1] < y, abs(at[0] - x) + abs(at[1] - y), at)):
        yield a, b, a + wide, b + high


def _free(patch: Patch, patches: Sequence[Patch]) -> bool:
    x1, y1, x2, y2 = patch
    return all(x2 <= other[0] or other[2] <= x1 or y2 <= other[1] or other[3] <= y1 for other in patches)
