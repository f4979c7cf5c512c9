"""Make docs/images/phantom-sheet.jpg: `python docs/images/make_sheet.py`."""

from __future__ import annotations

from pathlib import Path

import cv2

from surgeval.phantom import Footage, caption_sheet, edition, make_procedure, plan_videos

MOMENTS = {"A1": (14, 28), "B2": (22, 40), "C3": (22, 50), "C2": (20, 44), "A5": (33, 48), "B4": (12, 54)}


def main() -> None:
    """Twelve frames of phantom-v1, two of each chosen operation."""
    fixed = edition("phantom-v1")
    plans = {plan.name: plan for plan in plan_videos(fixed.seed, fixed.videos)}
    images = []
    for name, moments in MOMENTS.items():
        plan = plans[name]
        footage = Footage(make_procedure(plan.seed, fixed.seconds, plan.procedure), plan.source)
        images += [footage.shoot(second * 25).image for second in moments]
    sheet = caption_sheet(images, 4)
    cv2.imwrite(str(Path(__file__).with_name("phantom-sheet.jpg")), sheet[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 82])


if __name__ == "__main__":
    main()
