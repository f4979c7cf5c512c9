"""Make docs/images/intent-*: `python docs/images/make_intent.py DEMO`.

DEMO is the folder `intent` of what `surgeval demo` made: a report of several models with their figures, photographed
with Chromium where a picture is a part of the page.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SECTIONS = {"The same question, several models": "intent-same.jpg", "Failed traps": "intent-traps.jpg"}
FIGURES = {"scatter": "intent-scatter.png", "reliability": "intent-reliability.png", "set": "intent-set.png"}


def sections(report: Path) -> None:
    """The first rows of the page's two galleries, as a browser shows them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1250, "height": 900})
        page.goto((report / "report.html").resolve().as_uri())
        for heading, name in SECTIONS.items():
            section = page.locator("section").filter(has=page.get_by_role("heading", name=heading)).first
            section.scroll_into_view_if_needed()
            shot = Image.open(BytesIO(section.screenshot())).convert("RGB")
            shot = shot.crop((0, 0, shot.width, min(shot.height, 980)))
            small = shot.resize((1000, round(shot.height * 1000 / shot.width)), Image.Resampling.LANCZOS)
            small.save(HERE / name, quality=80, optimize=True)
        browser.close()


def figures(report: Path) -> None:
    """Figures of the page, made smaller."""
    for name, out in FIGURES.items():
        image = Image.open(report / "figures" / f"{name}.png").convert("RGB")
        small = image.resize((1000, round(image.height * 1000 / image.width)), Image.Resampling.LANCZOS)
        small.save(HERE / out, optimize=True)


if __name__ == "__main__":
    sections(Path(sys.argv[1]))
    figures(Path(sys.argv[1]))
