"""Many maps at once give exactly what one map at a time gives in `metrics.grounding`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.metrics.grounding import ground, pixel_window
from surgeval.models.preparation import View
from surgeval.protocols.surgxbench import SurgXSettings, profile_settings
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.measuring.measure import LabelledScene
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet

HEIGHT, WIDTH, CLASSES = 12, 18, 3
coordinate = st.floats(-4, 22, width=16)


@st.composite
def instances(draw: st.DrawFn) -> tuple[Instance, ...]:
    """Boxes anywhere: outside, across the border, thinner than a pixel."""
    found = []
    for _ in range(draw(st.integers(0, 3))):
        x, y = draw(coordinate), draw(coordinate)
        w, h = draw(st.sampled_from([0.0, 0.2, 1.0, 5.0, 30.0])), draw(st.sampled_from([0.3, 2.0, 9.0]))
        found.append(Instance(Triplet(draw(st.integers(0, CLASSES - 1)), 0, 0), Box(x, y, w, h)))
    return tuple(found)


@st.composite
def scenes(draw: st.DrawFn) -> dict[str, Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    window = draw(st.sampled_from([(0.0, 0.0, 18.0, 12.0), (4.5, 0.0, 13.5, 12.0), (6.2, 3.1, 11.0, 9.9)]))
    frames = draw(st.lists(instances(), min_size=1, max_size=3))
    each = draw(st.integers(1, 2))
    seen = []
    for number, row in enumerate(frames):
        kind = draw(st.sampled_from(["none", "still", "corner", "noise"]))
        motion = {"none": None, "still": np.zeros((HEIGHT, WIDTH), bool)}.get(kind, rng.random((HEIGHT, WIDTH)) < 0.3)
        if kind == "corner":  # moves only where a small window does not look
            motion = np.zeros((HEIGHT, WIDTH), bool)
            motion[0, 0] = True
        frame = Frame("v", f"{number}", number, None, ImageRef(Path("x.png")), WIDTH, HEIGHT, row)
        image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        seen.append(PreparedFrame(frame, image, np.zeros((3, 2, 2), np.float32), View((HEIGHT, WIDTH), window), motion))
    maps = rng.normal(size=(len(seen), each, 3, 4)).round(draw(st.integers(0, 3))).astype(np.float32)
    maps[rng.random(maps.shape[:2]) < 0.2] = draw(st.sampled_from([0.0, 1.0]))
    return {
        "seen": seen,
        "maps": torch.from_numpy(maps),
        "predicted": rng.integers(0, CLASSES, (len(seen), each)).tolist(),
        "strict": draw(st.booleans()),
        "matched": draw(st.sampled_from([None, True, False])),
        "settings": profile_settings(
            "surgxbench",
            region=draw(st.sampled_from(["top", "fixed"])),
            positive=draw(st.booleans()),
            geometry=draw(st.sampled_from(["window", "stretch"])),
        ),
    }


@settings(max_examples=60)
@given(scenes())
def test_a_batch_gives_what_each_map_alone_gives(drawn: dict[str, Any]) -> None:
    seen, maps, chosen = drawn["seen"], drawn["maps"], drawn["settings"]
    scene = LabelledScene.of(seen, (3, 4), CLASSES, chosen, torch.device("cpu"))
    found = scene.ground(maps, drawn["predicted"], strict=drawn["strict"], matched=drawn["matched"])
    pixels = scene.paste.upsample_torch(maps).numpy()
    rows, columns = scene.paste.visible
    for b, one in enumerate(seen):
        for k, predicted in enumerate(drawn["predicted"][b]):
            alone = ground(
                pixels[b, k],
                [item.box.corners for item in one.frame.instances],
                [item.triplet.instrument for item in one.frame.instances],
                predicted,
                positive=chosen.positive,
                fixed=chosen.threshold if chosen.region == "fixed" else None,
                strict=drawn["strict"],
                motion=None if one.motion is None else one.motion[rows, columns],
                matched=drawn["matched"],
                window=scene.paste.pixels,
                frame=(HEIGHT, WIDTH),
            )
            assert found[b][k] == alone


def test_a_labelled_instrument_without_a_box_is_present_and_has_no_pixel() -> None:
    boxed, bare = Instance(Triplet(0, 0, 0), Box(2, 2, 4, 4)), Instance(Triplet(1, 0, 0), None)
    frame = Frame("v", "0", 0, None, None, WIDTH, HEIGHT, (boxed, bare))
    view = View((HEIGHT, WIDTH), (0.0, 0.0, float(WIDTH), float(HEIGHT)))
    seen = PreparedFrame(frame, np.zeros((HEIGHT, WIDTH, 3), np.uint8), np.zeros((3, 2, 2), np.float32), view)
    scene = LabelledScene.of([seen], (1, 2), CLASSES, SurgXSettings(), torch.device("cpu"))
    (value,) = scene.ground(torch.tensor([[[[1.0, 2.0]]]]), [[1]])[0]
    assert value.present
    assert "class_empty" in value.flags
    assert pixel_window(boxed.box.corners, HEIGHT, WIDTH) == (2, 2, 6, 6)  # type: ignore[union-attr]
    assert value.chance == pytest.approx(16 / (HEIGHT * WIDTH))
