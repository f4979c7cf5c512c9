"""Records, and replies of a generator that keeps every rule: what the tests of question making start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from surgeval.questions import Scene, SourceRecord
from surgeval.records import Gaze

SKILLS = ("relative", "absolute", "prospective", "retrospective", "discrete", "continuous")
GAZE = (Gaze(0.0, 0.62, 0.41, 0.8), Gaze(0.9, 0.6, 0.45, 1.1))
OPERATION = SourceRecord(
    "op1-c1", "open_surgery", "op1", ("frame.png",), "open cholecystectomy", "Calot triangle dissection",
    "gallbladder neck", gaze=GAZE, context={"team": "anaesthetist and scrub nurse"},
    scene=Scene(("bipolar grasper", "hook"), ("clip applier", "suction", "stapler", "needle holder", "scissors")),
)  # fmt: skip
EFFUSION = Scene(locations=("left costophrenic angle",), facts={"diagnosis": "small pleural effusion"})
XRAY = SourceRecord("x1", "chest_xray", "p1", (), gaze=GAZE, scene=EFFUSION)
MAMMOGRAM = SourceRecord("m1", "mammography", "p2", (), gaze=GAZE,
                         scene=Scene(facts={"view": "CC", "findings": "a dense mass", "birads": "4"}))  # fmt: skip
BREECH = SourceRecord(
    "b1", "breech_delivery", "b", (), "vaginal breech birth", "active pushing", "pelvic outlet", gaze=GAZE
)
WHERE = {"op": "During open cholecystectomy, in the dissection of Calot's triangle at the gallbladder neck"}


def draw_frame(folder: Path) -> None:
    """The picture that the operation's record names."""
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((40, 60, 3), 90, np.uint8)).save(folder / "frame.png")


def questions(template: str, number: int = 0) -> list[dict[str, Any]]:
    """Six sound questions; `number` makes them differ from those of another batch."""
    return [question(template, skill, number) for skill in SKILLS]


def question(template: str, skill: str, number: int = 0) -> dict[str, Any]:
    """One sound question of a template."""
    right = SKILLS.index(skill) % 5
    told: dict[str, Any] = {"skill": skill, "answer": "ABCDE"[right], "gaze_dependent": True, "observable": True}
    if template == "perceptual_trap":
        things = ["the clip applier", "the suction", "the stapler", "the needle holder"]
        things.insert(right, "the hook")
        told["question"] = f"{WHERE['op']}, which instrument do I see where I am looking ({skill} {number})?"
        told["options"] = [
            {"text": f"{thing}, ready at the tissue", "reason": "usual at this moment",
             "label": "visible" if thing == "the hook" else "absent"} for thing in things
        ]  # fmt: skip
    elif template == "cognitive_trap":
        told["question"] = f"{WHERE['op']}, my assistant holds the suction: what do I ask next ({skill} {number})?"
        told["options"] = [
            {"text": f"{'No suction is there' if k == right else 'Ask for more suction'}, plan {k}",
             "reason": "it clears the view", "label": "rejects" if k == right else "accepts"} for k in range(5)
        ]  # fmt: skip
    else:
        ask = (
            "Where do I look for the evidence" if template == "chest_xray" else "What do I do in the area I am watching"
        )
        told["question"] = f"{ask} ({skill} {number})?"
        told["options"] = [
            {"text": f"deep place {'ABCDE'[k].lower()}", "reason": "it may hide there"} for k in range(5)
        ]
    if template in ("open_surgery", "breech_pushing", "breech_waiting"):
        told["source"] = {"kind": "guideline", "name": "Society guideline", "year": 2024}
        told["habit"] = "ABCDE"[(right + 1) % 5]
    return told


def reply(template: str, number: int = 0) -> str:
    """A sound reply."""
    return json.dumps({"questions": questions(template, number)})
