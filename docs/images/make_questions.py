"""Make docs/images/question-checks.png: `python docs/images/make_questions.py`."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle

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
    figure = plt.figure(figsize=(11, 5.0), dpi=100, facecolor="white")
    left = figure.add_axes((0.01, 0.05, 0.42, 0.9))
    left.imshow(image)
    height, width = image.shape[:2]
    radius = 0.06 * (width**2 + height**2) ** 0.5
    left.add_patch(
        Circle((fixation.x * width, fixation.y * height), radius, fill=False, edgecolor="magenta", linewidth=2)
    )
    left.axis("off")
    right = figure.add_axes((0.45, 0.02, 0.54, 0.96))
    right.axis("off")
    line = 1.0
    for title, draft in (("refused", FAULTY), ("accepted", SOUND)):
        line = _written(right, title, draft, line) - 0.03
    figure.savefig(Path(__file__).with_name("question-checks.png"))


def _written(axes: Axes, title: str, draft: Draft, line: float) -> float:
    faults = check_question(draft, templates()["perceptual_trap"].rules, SCENE, options=5)
    colour = "#b00020" if faults else "#00695c"
    rows = [(title, colour, True), *((text, "black", False) for text in textwrap.wrap(draft.question, 80))]
    rows += [(f"{'→' if k in draft.answers else '   '} {'ABCDE'[k]}. {option}  [{draft.labels[k]}]", "#333333", False)
             for k, option in enumerate(draft.options)]  # fmt: skip
    rows += [(part, colour, False) for fault in faults for part in textwrap.wrap(str(fault), 84)]
    for text, shade, bold in rows:
        axes.text(
            0, line, text, color=shade, fontsize=8.5, va="top", weight="bold" if bold else "normal", parse_math=False
        )
        line -= 0.0435
    return line


if __name__ == "__main__":
    main()
