"""What each organ is made of: colours, relief, wetness, vessels. Edit here to change how tissue looks.

Colours are RGB under full light; lengths and heights are world units; heights make the relief that the light sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from surgeval.phantom.scene.texture import Colour


class Relief(TypedDict, total=False):
    """Heights of the bumps, by the noise that makes them: its size in world units, from the coarsest on."""

    n30: float
    n11: float
    n4: float
    n2: float
    lumps: float
    small_lumps: float


@dataclass(frozen=True, slots=True)
class OrganRecipe:
    """How to paint an organ."""

    dark: Colour
    pale: Colour
    round: float  # how far from its edge the surface still falls off
    bulge: float  # height of that rounding relative to its width
    relief: Relief
    swell: float = 0.0  # slope of a wide gentle dome on top of it
    ambient: float = 0.3
    gain: float = 1.0
    wet: float = 0.6
    opacity: float = 1.0
    speckle: float = 0.0  # fine mottling of the colour
    crevice: float = 0.6  # darkness of the shadow it leaves around itself
    furrow: Colour | None = None
    patches: Colour | None = None
    vessel: Colour | None = None
    vessel_ink: float = 0.7
    vessel_count: int = 0
    vessel_width: float = 1.0
    vessel_heading: float = 0.0
    ragged: float = 0.0
    feather: float = 0.0  # how far from its edge it is still see-through
    strands: int = 0  # fibres of a web that is otherwise see-through


RECIPES: dict[str, OrganRecipe] = {
    "abdominal_wall_cavity": OrganRecipe(
        (96, 44, 46), (140, 78, 74), 60, 0.02, relief=Relief(n30=3.4, n11=0.5, n4=0.06), gain=0.6, wet=0.14,
        patches=(168, 112, 100), vessel=(112, 28, 34), vessel_ink=0.6, vessel_count=30, vessel_width=1.1,
        vessel_heading=0.7,
    ),
    "peritoneum": OrganRecipe(
        (150, 88, 84), (194, 138, 126), 16, 0.3, relief=Relief(n30=5.0, n11=1.3, n4=0.12), gain=0.8, wet=0.55,
        patches=(214, 172, 110), vessel=(150, 40, 46), vessel_ink=0.7, vessel_count=12, vessel_width=0.9,
        vessel_heading=1.2, ragged=0.35, crevice=0.25, feather=12,
    ),
    "liver": OrganRecipe(
        (92, 33, 29), (124, 50, 42), 46, 0.5, swell=0.6, relief=Relief(n30=1.2, n11=0.10, n4=0.045, n2=0.035),
        wet=1.0, patches=(106, 44, 44), crevice=0.8, speckle=0.22,
    ),
    "cystic_plate": OrganRecipe(
        (132, 66, 58), (176, 114, 100), 18, 0.06, relief=Relief(n30=1.5, n11=0.7, n4=0.2), wet=0.4,
        patches=(206, 166, 118), vessel=(140, 36, 40), vessel_count=12, vessel_width=0.7, ragged=0.6, crevice=0.1,
        feather=12,
    ),
    "cystic_pedicle": OrganRecipe(
        (178, 104, 86), (226, 182, 136), 18, 0.5, relief=Relief(n30=3.0, n11=2.2, n4=0.45, n2=0.06, small_lumps=0.9),
        wet=0.75, patches=(168, 66, 60), vessel=(134, 24, 28), vessel_count=22, vessel_width=0.7, vessel_heading=0.8,
        ragged=0.9, crevice=0.3, feather=6,
    ),
    "gut": OrganRecipe(
        (186, 98, 92), (230, 156, 142), 52, 0.75, relief=Relief(n30=1.4, n11=0.3, n4=0.06), wet=0.85,
        vessel=(172, 40, 44), vessel_ink=0.75, vessel_count=26, vessel_width=1.1, vessel_heading=1.35, crevice=0.75,
    ),
    "omentum": OrganRecipe(
        (198, 138, 68), (228, 180, 106), 40, 0.6, relief=Relief(n30=5.0, n11=0.5, n4=0.06, lumps=4.6, small_lumps=0.5),
        wet=0.5, furrow=(182, 112, 58), patches=(206, 132, 76), vessel=(168, 54, 36), vessel_ink=0.65,
        vessel_count=46, vessel_width=0.7, vessel_heading=1.1, crevice=0.65, ragged=0.4,
    ),
    "blood_vessel": OrganRecipe(
        (140, 36, 34), (176, 70, 56), 3.0, 0.7, relief=Relief(n11=0.4), wet=0.4, crevice=0.15, opacity=0.78,
        ragged=0.12,
    ),
    "adhesion": OrganRecipe(
        (184, 128, 110), (220, 182, 160), 6, 0.3, relief=Relief(n11=0.7, n4=0.3, n2=0.06), wet=0.55,
        vessel=(160, 44, 46), vessel_ink=0.7, vessel_count=5, vessel_width=0.6, vessel_heading=1.57, strands=38,
        crevice=0.15, patches=(214, 164, 110),
    ),
    "cystic_artery": OrganRecipe(
        (168, 66, 56), (206, 112, 94), 2.7, 0.85, relief=Relief(n11=0.5), wet=0.6, crevice=0.3, opacity=0.92, ragged=0.1
    ),
    "cystic_duct": OrganRecipe(
        (188, 138, 108), (220, 184, 146), 6, 0.8, relief=Relief(n30=0.8, n11=1.0, n4=0.12), wet=0.6, crevice=0.4,
        vessel=(160, 50, 46), vessel_ink=0.6, vessel_count=8, vessel_width=0.5, vessel_heading=0.8, ragged=0.15,
    ),
    "gallbladder": OrganRecipe(
        (122, 102, 116), (172, 152, 160), 62, 0.72, relief=Relief(n30=1.5, n11=0.18, n4=0.03), wet=1.0,
        patches=(192, 146, 136), vessel=(112, 26, 44), vessel_ink=0.8, vessel_count=40, vessel_width=0.62,
        vessel_heading=0.95, crevice=0.8,
    ),
}  # fmt: skip
