"""The same state gives the same bytes: twice in a process, and with the CPU's vector units switched off."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys

import cv2
import numpy as np
import pytest

from surgeval.phantom.scene.corruptions import KINDS, corrupt
from surgeval.phantom.scene.looks import LOOKS
from surgeval.phantom.scene.render import Renderer
from surgeval.phantom.script.anatomy import build_anatomy
from surgeval.phantom.script.state import (
    CameraPose,
    Corruption,
    Mark,
    ObjectState,
    Pull,
    SceneState,
    Spot,
    ToolState,
    displaced,
)

SLUGS = ("sponge", "clip", "specimen_bag", "silicone_loop", "external_drain", "needle", "gallstone", "specimen", "mesh")


def lively(step: int) -> SceneState:
    """Everything at once: six tools, a pull, smoke, spots, marks, objects, a camera on the move."""
    pulls = (Pull(-10.0, -20.0, -3.7 * step, -2.9 * step, 31.0),)
    held = displaced((-10.0, -20.0), pulls)
    names = ("grasper", "hook", "bipolar", "scissors", "clipper", "irrigator", "specimen_bag")
    tools = tuple(
        ToolState(
            k, names[(k + step) % 7], (300.0 * (-1) ** k, 40.0 * k - 80), (held[0] + 25 * k, held[1] + 13 * k),
            jaw=0.17 * step, active=k == 1, verb="irrigate", depth=float(k),
        )
        for k in range(4)
    )  # fmt: skip
    objects = (
        ObjectState(0, SLUGS[step % 9], -60.0, 40.0, 0.3 * step, 1.1),
        ObjectState(1, SLUGS[(step + 4) % 9], 70.0, 60.0, 1.7),
        ObjectState(2, "absorbable_hemostatic_agent", 90.0, -30.0),
    )
    state = ("attached", "attached", "detached", "bagged", "gone", "attached")[step]
    return SceneState(
        0.04 * step, "x", CameraPose(3.3 * step, -1.7 * step, 1.0 + 0.07 * step, 0.03 * step), tools, objects, pulls,
        blood=(Spot(30.0, 30.0, 18.0, 0.9),), fluid=(Spot(-20.0, 50.0, 22.0, 0.6),), burns=(Spot(10.0, 0.0, 9.0, 0.8),),
        marks=(Mark("clip", 40.0, 40.0, 0.7), Mark("cut", 48.0, 46.0, 0.7)), smoke=0.1 * step,
        gallbladder=state, gallbladder_at=(20.0, 30.0), detached=0.15 * step, wobble=0.4 * step,
    )  # fmt: skip


def fingerprint() -> list[str]:
    digests = []
    renderers = [
        Renderer(LOOKS[name], build_anatomy(5 + k, procedure), tint=tint)
        for k, (name, procedure, tint) in enumerate(
            (
                ("A", "cholecystectomy", "none"),
                ("B", "adhesiolysis", "random"),
                ("C", "cholecystectomy", "by_instrument"),
            )
        )
    ]
    for step in range(6):
        rendered = renderers[step % 3].render(lively(step), tint_key="hook")
        digest = hashlib.sha256(rendered.image.tobytes())
        for masks in (rendered.masks, rendered.object_masks):
            for key in sorted(masks):
                digest.update(masks[key].tobytes())
        digest.update(rendered.organ_map.tobytes())
        for kind in KINDS:
            digest.update(corrupt(rendered.image, Corruption(kind, 1 + step % 5), step).tobytes())
        digests.append(digest.hexdigest())
    return digests


def test_the_same_state_gives_the_same_bytes_in_any_order() -> None:
    renderer = Renderer(LOOKS["B"], build_anatomy(8))
    forwards = [renderer.render(lively(step)).image for step in range(6)]
    backwards = [renderer.render(lively(step)).image for step in reversed(range(6))][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(forwards, backwards, strict=True))
    again = Renderer(LOOKS["B"], build_anatomy(8)).render(lively(3)).image
    assert np.array_equal(forwards[3], again)


def vector_units() -> dict[str, str]:
    """The environment that switches off every vector unit numpy and OpenCV would choose at run time on this machine."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    numpy_names = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    opencv_names = [name.strip("*?") for name in cv2.getCPUFeaturesLine().split() if name.startswith("*")]
    return {"OPENCV_CPU_DISABLE": ",".join(opencv_names), "NPY_DISABLE_CPU_FEATURES": " ".join(numpy_names)}


@pytest.mark.long  # a whole edition without vector units: test_edition.py
@pytest.mark.parametrize(
    "switched_off",
    [vector_units() | {"OPENCV_IPP": "disabled", "OPENCV_FOR_THREADS_NUM": "1"}, vector_units()],
    ids=["vector units, IPP and threads", "vector units"],
)
def test_pixels_do_not_depend_on_the_cpu(switched_off: dict[str, str]) -> None:
    found = subprocess.run(
        [sys.executable, __file__], env=os.environ | switched_off, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == fingerprint()


if __name__ == "__main__":
    print("\n".join(fingerprint()))
