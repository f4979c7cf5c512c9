"""Make docs/images/surgxbench-*: `python docs/images/make_surgxbench.py RUN ALL`.

RUN is a folder that `surgeval run surgxbench` made; the gallery of its page is photographed with Chromium. ALL is the
report of several models (`surgeval report A B`), whose figures are made smaller. One more picture is what `surgeval
explain` draws for two of the embedded models.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from surgeval.phantom import Footage, edition, make_procedure, plan_videos
from surgeval.protocols.surgxbench import explain_image

HERE = Path(__file__).parent
PROMPTS = ("The bipolar is in the image", "The grasper is in the image")


def explained() -> None:
    """One tinted frame, two prompts, two models."""
    fixed = edition("phantom-v1")
    plan = {plan.name: plan for plan in plan_videos(fixed.seed, fixed.videos)}["C2"]
    operation = make_procedure(plan.seed, fixed.seconds, plan.procedure)
    with TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.png"
        Image.fromarray(Footage(operation, plan.source, tint="by_instrument").shoot(21 * 25).image).save(frame)
        rows = [explain_image(frame, model, PROMPTS).picture for model in ("phantom-clip", "phantom-shortcut")]
    _save(Image.fromarray(np.vstack(rows)), 1000, "surgxbench-explain.jpg")


def gallery(run: Path) -> None:
    """The first pictures of a page's gallery, as a browser shows them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1250, "height": 900})
        page.goto((run / "report.html").resolve().as_uri())
        section = page.locator("section").filter(has=page.get_by_role("heading", name="Gallery", exact=True))
        section.scroll_into_view_if_needed()
        shot = Image.open(BytesIO(section.screenshot()))
        browser.close()
    _save(shot.crop((0, 0, shot.width, min(shot.height, 820))), 1000, "surgxbench-gallery.jpg")


def figures(report: Path) -> None:
    """Two figures of the report of all three models."""
    for name, out in (("occlusion", "surgxbench-occlusion.png"), ("grounding_tp_ac", "surgxbench-tp-ac.png")):
        image = Image.open(report / "figures" / f"{name}.png").convert("RGB")
        small = image.resize((1000, round(image.height * 1000 / image.width)), Image.Resampling.LANCZOS)
        small.quantize(64, dither=Image.Dither.NONE).save(HERE / out, optimize=True)


def _save(image: Image.Image, width: int, name: str) -> None:
    size = (width, round(image.height * width / image.width))
    image.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(HERE / name, quality=80, optimize=True)


if __name__ == "__main__":
    explained()
    gallery(Path(sys.argv[1]))
    figures(Path(sys.argv[2]))
