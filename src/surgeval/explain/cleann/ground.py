"""Do the tokens that explain a word lie where they should? Counts behind the claim of the papers' Figures 5 and 9."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surgeval.arrays import Bools
from surgeval.errors import BadInput
from surgeval.explain.cleann.choice import Nodes
from surgeval.explain.cleann.explanation import Explanation

__all__ = ["Tally", "near_boxes", "tally_tokens"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Explaining tokens of one word in one head: all, those of the image, those of them near the relevant area.

    `chance` is the share of the image tokens the model was shown that are near it: what tokens drawn blindly give.
    `attended` are the image tokens in the graph, whether they explain or not: what attention alone gives.
    """

    nodes: int
    image: int
    near: int
    attended: int
    attended_near: int
    chance: float


def near_boxes(
    grid: tuple[int, int],
    window: tuple[float, float, float, float],
    boxes: Sequence[tuple[float, float, float, float]],
    margin: float = 1.0,
) -> Bools:
    """Which patches of a grid over `window` overlap a box that is grown by `margin` patches on every side.

    Window and boxes are x1, y1, x2, y2 in pixels of the frame.

    >>> near_boxes((4, 4), (0, 0, 40, 40), [(21, 21, 29, 29)], margin=0).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    >>> near_boxes((4, 4), (0, 0, 40, 40), [(21, 21, 29, 29)]).sum().item()
    9
    """
    rows, columns = grid
    x1, y1, x2, y2 = window
    if rows < 1 or columns < 1 or x2 <= x1 or y2 <= y1 or margin < 0:
        raise BadInput(f"patches: found a grid {grid} over {window} with margin {margin}, expected an area and ≥ 0")
    wide, high = (x2 - x1) / columns, (y2 - y1) / rows
    left, top = x1 + wide * np.arange(columns), y1 + high * np.arange(rows)
    near = np.zeros(grid, np.bool_)
    for bx1, by1, bx2, by2 in boxes:
        if bx2 <= bx1 or by2 <= by1:
            continue
        across = (left < bx2 + margin * wide) & (left + wide > bx1 - margin * wide)
        down = (top < by2 + margin * high) & (top + high > by1 - margin * high)
        near |= down[:, None] & across[None, :]
    return near


def tally_tokens(explanation: Explanation, nodes: Nodes, first_image_token: int, near: Bools, seen: Bools) -> Tally:
    """Count the explaining tokens; `near` and `seen` are grids: close to the relevant area, and no padding.

    >>> from surgeval.explain.cleann import Explanation, Nodes
    >>> near = np.array([[True, False], [False, False]])
    >>> tally_tokens(Explanation(7, 3, {2: 1, 3: 1, 6: 2}), Nodes((2, 3), (6,), 7), 2, near, np.ones((2, 2), bool))
    Tally(nodes=3, image=2, near=1, attended=2, attended_near=1, chance=0.25)
    """
    flat, shown = (near & seen).ravel(), int(seen.sum())
    attended = np.array(nodes.image, dtype=np.int64) - first_image_token
    explaining = attended[np.isin(nodes.image, explanation.nodes)]
    return Tally(
        nodes=len(explanation.nodes),
        image=len(explaining),
        near=int(flat[explaining].sum()),
        attended=len(attended),
        attended_near=int(flat[attended].sum()),
        chance=float(flat.sum() / shown) if shown else float("nan"),
    )
