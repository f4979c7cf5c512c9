"""The H.264 clip of real material in the page: it plays and seeks to the very frame, by number and by time."""

from __future__ import annotations

import base64
import shutil
from io import BytesIO
from itertools import islice
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio

from surgeval.studio.server import serve

pytestmark = pytest.mark.browser

LEFT, TOP, WIDTH, HEIGHT = 300, 150, 120, 120  # a part of the picture, pixel by pixel
GRAB = f"""() => {{
  window.grabbed = {{}};
  const app = document.querySelector('[data-testid=app]');
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [{WIDTH}, {HEIGHT}];
  const paint = canvas.getContext('2d', {{willReadFrequently: true}});
  const grab = () => {{
    paint.drawImage(document.querySelector('[data-testid=stage] img'), -{LEFT}, -{TOP});
    return canvas.toDataURL('image/png').split(',')[1];
  }};
  new MutationObserver(() => {{ grabbed[app.dataset.shown] = grab() }})
    .observe(app, {{attributes: true, attributeFilter: ['data-shown']}});
}}"""


def _part(data: str) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(base64.b64decode(data))).convert("RGB"), dtype=float)


def test_the_clip_plays_and_seeks_to_the_very_frame(browser: Browser, real_data: Path, tmp_path: Path) -> None:
    source = next((real_data / "clip").glob("*.mp4"))
    (tmp_path / "op").mkdir()
    shutil.copyfile(source, tmp_path / "op" / "clip.mp4")
    part = slice(TOP, TOP + HEIGHT), slice(LEFT, LEFT + WIDTH)
    with av.open(str(source)) as film:  # every frame once, in order: what the file holds
        decoded = [
            (float(frame.time or 0), frame.to_ndarray(format="rgb24")[part])
            for frame in islice(film.decode(video=0), 420)
        ]
    times = np.array([time for time, _ in decoded])
    true = np.stack([pixels for _, pixels in decoded]).astype(float)
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    with serve(tmp_path / "op", author="amy") as running:
        studio = Studio(context.new_page(), running.entry).open()
        studio.page.evaluate(GRAB)
        for frame in (300, 299, 298, 412, 10, 240):
            studio.go(frame)
        studio.keys("d", "d", "a")
        studio.at_frame(241)
        typed = float(times[133] - times[0])
        studio.by_id("frame-number").fill(f"0:{typed:05.2f}")
        studio.by_id("frame-number").press("Enter")
        studio.at_frame(133)
        studio.go(100)
        studio.keys(" ")
        studio.eventually(lambda: studio.frame > 110)
        studio.keys(" ")
        studio.page.wait_for_timeout(100)
        grabbed: dict[str, str] = studio.page.evaluate("grabbed")
        studio.shot("clip")
        assert studio.complaints == []
        context.close()
    assert len(grabbed) > 12
    for name, data in grabbed.items():
        k, shown = int(name), _part(data)
        near = {j: float(np.abs(shown - true[j]).mean()) for j in range(max(0, k - 4), min(len(true), k + 5))}
        assert near[k] < 3, k  # JPEG
        others = {j for j in near if np.abs(true[j] - true[k]).mean() > 1}  # neighbours that do not look the same
        assert all(near[k] < near[j] for j in others), (k, near)
