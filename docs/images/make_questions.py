"""Make docs/images/question-checks.png: `python docs/images/make_questions.py`."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

from PIL import Image

from surgeval.figures.image_overlay import Sheet
from surgeval.phantom import Footage, make_gaze, make_procedure, plan_videos
from surgeval.questions import Draft, Facts, check_question, templates

SECOND = 13
SCENE = Facts(
    "cholecystectomy", "gallbladder dissection", "gallbladder bed", visible=("hook", "grasper"),
    absent=("scissors", "clip applier", "irrigator", "bipolar forceps"),
)  # fmt: skip
SOUND = Draft(
    "relative",
    "During cholecystectomy, while I dissect the gallbladder at the gallbladder bed: which instrument is at work on "
    "the tissue I am looking at?",
    ("the scissors, which divide tissue", "the irrigator, which rinses the field", "the hook, which dissects by heat",
     "the clip applier, which closes ducts", "the bipolar forceps, which seal it"),
    (2,), ("absent", "absent", "visible", "absent", "absent"), ("usual at this moment",) * 5, "perceptual", True, True,
)  # fmt: skip
FAULTY = replace(
    SOUND,
    question="Which instrument works on the tissue at x=0.44, y=0.47?",
    options=(SOUND.options[0], "the grasper, which holds tissue", *SOUND.options[2:4], SOUND.options[0]),
)  # fmt: skip


def main() -> None:
    """A scene of the phantom with the gaze; one question about it as it must not be, and as it may be."""
    plan = plan_videos(7, 2)[0]
    procedure = make_procedure(plan.seed, 20, plan.procedure)
    footage = Footage(procedure, plan.source)
    image = footage.shoot(SECOND * 25).image
    gaze = make_gaze(procedure, footage.width, footage.height)
    fixation = min(gaze, key=lambda fix: abs(fix.t + fix.duration / 2 - SECOND))
    height, width = image.shape[:2]
    wide = 460
    scale = wide / width
    sheet = Sheet(1100, 500)
    top = (500 - height * scale) / 2
    sheet.paste(image, 12, top, wide, height * scale)
    radius = 0.06 * (width**2 + height**2) ** 0.5 * scale
    sheet.ring((12 + fixation.x * wide, top + fixation.y * height * scale), radius, "#ff00ff", 2)
    line = 14.0
    for title, draft in (("refused", FAULTY), ("accepted", SOUND)):
        line = _write_question(sheet, title, draft, line) + 14
    Image.fromarray(sheet.image()).save(Path(__file__).with_name("question-checks.png"), optimize=True)


def _write_question(sheet: Sheet, title: str, draft: Draft, top: float) -> float:
    faults = check_question(draft, templates()["perceptual_trap"].rules, SCENE, options=5)
    colour = "#b00020" if faults else "#00695c"
    rows = [(title, colour, True), *((text, "#000000", False) for text in textwrap.wrap(draft.question, 80))]
    rows += [(f"{'→' if k in draft.answers else '   '} {'ABCDE'[k]}. {option}  [{draft.labels[k]}]", "#333333", False)
             for k, option in enumerate(draft.options)]  # fmt: skip
    rows += [(part, colour, False) for fault in faults for part in textwrap.wrap(str(fault), 84)]
    for text, shade, bold in rows:
        sheet.text((492, top), text, 12, shade, bold=bold)
        top += 21
    return top


if __name__ == "__main__":
    main()
