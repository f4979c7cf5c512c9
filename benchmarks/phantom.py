"""Frames per second and core of the phantom's renderer, and the ratio to the same renderer without its caches.

The naive peer makes its textures and sprites anew for each frame, as a renderer that draws every frame from scratch
does. Processor time is counted, not wall time, with one OpenCV thread.
"""

from __future__ import annotations

import argparse
import time

import cv2

from surgeval.phantom.scene import instruments as _instruments
from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.script.anatomy import Anatomy, build_anatomy
from surgeval.phantom.script.state import CameraPose, Pull, SceneState, Spot, ToolState, displaced

FRAMES = 150


def typical(anatomy: Anatomy, step: int) -> SceneState:
    """Three instruments at work, a pull, blood, a burn and smoke."""
    t = step / 25
    hold, work = anatomy.sites["gallbladder"][0], anatomy.sites["cystic_pedicle"][0]
    pulls = (Pull(*hold, -14 - t, -12.0, 34.0),)
    tools = (
        ToolState(0, "grasper", (-300.0, -40.0), displaced(hold, pulls), 0.1),
        ToolState(1, "hook", (300.0, 70.0), (work[0] + t, work[1]), active=step % 3 == 0, depth=1.0),
        ToolState(2, "irrigator", (-240.0, 190.0), (-40.0 + 3 * t, 60.0), depth=2.0),
    )
    return SceneState(
        t, "dissection", CameraPose(t, t, 1.1, 0.02), tools, pulls=pulls, smoke=0.25, wobble=t,
        blood=(Spot(work[0], work[1] + 8, 14.0, 0.8),), burns=(Spot(*work, 7.0, 0.6),),
    )  # fmt: skip


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    cv2.setNumThreads(1)
    anatomy = build_anatomy(1)
    start = time.process_time()
    renderer = Renderer(LOOKS["A"], anatomy)
    ready = time.process_time() - start
    for step in range(5):
        renderer.render(typical(anatomy, step))
    start = time.process_time()
    for step in range(FRAMES):
        renderer.render(typical(anatomy, step))
    cached = FRAMES / (time.process_time() - start)
    start = time.process_time()
    for step in range(3):
        for cache in (_instruments._drawn, _instruments._shaft):
            cache.cache_clear()
        Renderer(LOOKS["A"], anatomy).render(typical(anatomy, step))
    naive = 3 / (time.process_time() - start)
    print(f"phantom renderer, 448×256, 3 instruments and smoke: {cached:.0f} frames/s per core (target 50)")
    print(
        f"preparing a video's textures: {ready:.2f} s; without caches {naive:.2f} frames/s, ratio {cached / naive:.0f}×"
    )


if __name__ == "__main__":
    main()
