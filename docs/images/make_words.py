"""Make docs/images/words-explain.jpg: what `surgeval explain` draws for the words of phantom-llava."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from surgeval.phantom import Footage, edition, make_procedure, plan_videos
from surgeval.protocols.surgxbench import explain_image
from surgeval.vocab import load_labels, tools_question


def main() -> None:
    """Second 21 of phantom video C2, as in the pictures of the other pages."""
    fixed = edition("phantom-v1")
    plan = {plan.name: plan for plan in plan_videos(fixed.seed, fixed.videos)}["C2"]
    operation = make_procedure(plan.seed, fixed.seconds, plan.procedure)
    frame = Footage(operation, plan.source).shoot(21 * 25).image
    shown = explain_image(frame, "phantom-llava", tools_question(load_labels("phantom")))
    picture = Image.fromarray(shown.picture)
    size = (1000, round(picture.height * 1000 / picture.width))
    picture.resize(size, Image.Resampling.LANCZOS).save(Path(__file__).parent / "words-explain.jpg", quality=85)


if __name__ == "__main__":
    main()
