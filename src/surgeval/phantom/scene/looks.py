"""The three sources of the phantom: how each hospital's camera, light and instruments look.

A is an older scope with a tight round field and insulated black shafts, B a wide field with bright cool light and
bare steel, C an almost full frame with warm light and pale shafts.
"""

from __future__ import annotations

from surgeval.phantom.script.state import Look

LOOKS: dict[str, Look] = {
    "A": Look("A", tissue_seed=11, hue=0, saturation=1.06, brightness=0.98, vignette=0.60, shaft="black", warmth=1.06),
    "B": Look("B", tissue_seed=23, hue=-4, saturation=0.84, brightness=1.08, vignette=0.78, shaft="steel", warmth=0.97),
    "C": Look("C", tissue_seed=37, hue=1, saturation=0.94, brightness=1.02, vignette=1.25, shaft="white", warmth=1.08),
}
