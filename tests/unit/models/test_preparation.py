"""Preparation: the pixels of the transformers processors, and the window of the frame they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoImageProcessor

from surgeval.errors import SurgevalError
from surgeval.models import Preparation
from surgeval.models.surgvlp import PREPARATION as SURGVLP

CONFIGS: dict[str, dict[str, Any]] = {
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 48}, "resample": 3,
             "crop_size": {"height": 48, "width": 48}},
    "old clip": {"feature_extractor_type": "CLIPFeatureExtractor", "size": 33, "crop_size": 31},
    "blip": {"image_processor_type": "BlipImageProcessor", "size": {"height": 40, "width": 40}},
    "squash": {"image_processor_type": "CLIPImageProcessor", "size": {"height": 36, "width": 64}, "resample": 2,
               "do_center_crop": False, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.3]},
    "raw": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 51}, "resample": 2,
            "crop_size": {"height": 50, "width": 47}, "do_normalize": False, "rescale_factor": 1 / 128},
    "llava": {"image_processor_type": "LlavaImageProcessor", "size": {"shortest_edge": 42}, "crop_size": 42},
    "padded llava": {"image_processor_type": "LlavaImageProcessor", "size": {"shortest_edge": 42}, "do_pad": True,
                     "crop_size": {"height": 42, "width": 42}, "image_mean": [0.5, 0.3, 0.999]},
    "padded, not normalised": {"image_processor_type": "LlavaImageProcessor", "size": {"height": 40, "width": 60},
                               "do_pad": True, "do_center_crop": False, "do_normalize": False},
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_pixels_equal_the_transformers_processor_on_odd_sizes(kind: str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(CONFIGS[kind]))
    processor = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    prep = Preparation.from_processor(CONFIGS[kind])
    rng = np.random.default_rng(0)
    for height, width in ((480, 854), (101, 49), (49, 49), (31, 47), (57, 200), (48, 48)):
        frame = rng.integers(0, 256, (height, width, 3), np.uint8)
        theirs = processor(frame, return_tensors="np")["pixel_values"][0]
        ours = prep(frame)
        assert ours.dtype == np.float32
        assert ours.shape == (3, *prep.input_size)
        np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=0)


@given(
    frame=st.tuples(st.integers(8, 2000), st.integers(8, 2000)),
    resize=st.one_of(st.integers(8, 400), st.tuples(st.integers(8, 400), st.integers(8, 400))),
    data=st.data(),
)
def test_the_window_lies_in_the_frame_and_has_the_shape_of_the_crop(
    frame: tuple[int, int], resize: int | tuple[int, int], data: st.DataObject
) -> None:
    rows, columns = (resize, resize) if isinstance(resize, int) else resize
    crop = (data.draw(st.integers(1, rows)), data.draw(st.integers(1, columns)))
    prep = Preparation(resize, crop)
    view = prep.view(*frame)
    x1, y1, x2, y2 = view.window
    height, width = frame
    slack = 1e-9 * max(frame)
    assert -slack <= x1 < x2 <= width + slack
    assert -slack <= y1 < y2 <= height + slack
    resized = prep.resized(*frame)
    assert view.fraction == pytest.approx(crop[0] * crop[1] / (resized[0] * resized[1]))


@given(spot=st.tuples(st.integers(60, 260), st.integers(220, 420)))
def test_a_bright_spot_appears_where_the_window_says(spot: tuple[int, int]) -> None:
    frame = np.zeros((360, 640, 3), np.uint8)
    frame[spot[0] : spot[0] + 9, spot[1] : spot[1] + 9] = 255
    centre = (spot[1] + 4.5, spot[0] + 4.5)
    for prep in (
        Preparation(224, (224, 224)), Preparation((360, 640), (224, 224), "bilinear"), Preparation((384, 384)),
    ):  # fmt: skip
        x1, y1, x2, y2 = prep.view(360, 640).window
        if not (x1 + 8 < centre[0] < x2 - 8 and y1 + 8 < centre[1] < y2 - 8):
            continue
        light = prep(frame)[0].astype(float)
        light -= light.min()
        light[light < light.max() / 2] = 0
        rows, columns = np.nonzero(light)
        seen_x = x1 + (columns.mean() + 0.5) / light.shape[1] * (x2 - x1)
        seen_y = y1 + (rows.mean() + 0.5) / light.shape[0] * (y2 - y1)
        assert abs(seen_x - centre[0]) < 1.5 and abs(seen_y - centre[1]) < 1.5


def test_surgvlp_sees_a_fifth_of_a_widescreen_frame_and_blip_all_of_it() -> None:
    assert SURGVLP.view(1080, 1920).fraction == pytest.approx(0.2178, abs=1e-4)
    assert SURGVLP.view(360, 640).window == (208.0, 68.0, 432.0, 292.0)
    blip = Preparation.from_processor({"image_processor_type": "BlipImageProcessor"})
    assert blip.view(1080, 1920).fraction == 1.0


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"do_resize": False}, "do_resize"),
        ({"do_resize": "yes"}, "do_resize"),
        ({"size": {"shortest_edge": 224, "longest_edge": 300}}, "size"),
        ({"size": {"shortest_edge": 10**9}}, "shortest_edge"),
        ({"size": -3}, "size.edge"),
        ({"size": {"height": 3.5, "width": 2}}, "height"),
        ({"size": 100, "crop_size": 101}, "larger"),
        ({"size": {"shortest_edge": 224}, "do_center_crop": False}, "without a crop"),
        ({"resample": 1}, "resample"),
        ({"resample": True}, "resample"),
        ({"image_std": [1, 0, 1]}, "std must not be 0"),
        ({"image_mean": [float("nan")] * 3}, "image_mean"),
        ({"image_mean": "0.5"}, "image_mean"),
        ({"rescale_factor": "x"}, "rescale_factor"),
        ({"do_pad": True}, "do_pad"),
    ],
)
def test_a_processor_that_leaves_the_geometry_open_is_refused_in_one_sentence(
    config: dict[str, Any], word: str
) -> None:
    with pytest.raises(SurgevalError, match=word) as caught:
        Preparation.from_processor(config, "here/preprocessor_config.json")
    assert "here/preprocessor_config.json" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 4), (0, 4, 3)])
def test_only_rgb_frames_are_prepared(shape: tuple[int, ...]) -> None:
    with pytest.raises(SurgevalError, match="must be uint8"):
        Preparation((8, 8))(np.zeros(shape, np.uint8))
    with pytest.raises(SurgevalError, match="float64"):
        Preparation((8, 8))(np.zeros((4, 4, 3)))  # type: ignore[arg-type]
