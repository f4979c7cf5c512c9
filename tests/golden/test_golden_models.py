"""Every golden geometry file and CLIP folder under `--golden DIR`: windows of the frame, and one whole forward pass.

A geometry file is a list of frames with `…_window_xyxy`; a CLIP folder holds config.json beside expected.npz.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from surgeval.models import Preparation, open_contrastive
from surgeval.models.clip import Clip
from surgeval.models.surgvlp import PREPARATION as SURGVLP
from surgeval.models.towers import unit

CLIP = Preparation(224, (224, 224))


def _geometry(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    cases = []
    for file in sorted(folder.glob("*.json")):
        rows = json.loads(file.read_bytes())
        if isinstance(rows, list):
            named = [row for row in rows if isinstance(row, dict) and "surgvlp_window_xyxy" in row]
            cases += [(f"{file.stem}-{row['frame'][0]}x{row['frame'][1]}", row) for row in named]
    return cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    folder = (Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden") / "xai"
    if "frame_case" in metafunc.fixturenames:
        cases = _geometry(folder)
        metafunc.parametrize("frame_case", [row for _, row in cases], ids=[name for name, _ in cases])
    if "clip_case" in metafunc.fixturenames:
        found = sorted(path.parent for path in folder.rglob("config.json") if (path.parent / "expected.npz").is_file())
        metafunc.parametrize("clip_case", found, ids=[path.name for path in found])


def test_the_window_that_surgvlp_and_clip_see_is_the_golden_one(frame_case: dict[str, Any]) -> None:
    width, height = frame_case["frame"]
    for prep, name in ((SURGVLP, "surgvlp"), (CLIP, "clip")):
        view = prep.view(height, width)
        window = frame_case["surgvlp_window_xyxy" if name == "surgvlp" else "clip224_window_xyxy"]
        np.testing.assert_allclose(view.window, window, atol=1e-6)
        assert view.fraction == pytest.approx(frame_case[f"{name}_visible_fraction"], abs=1e-9)


@pytest.fixture
def clip(clip_case: Path) -> tuple[Clip, dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    model = open_contrastive(clip_case)
    assert isinstance(model, Clip)
    with np.load(clip_case / "expected.npz", allow_pickle=False) as arrays:
        expected = {name: arrays[name] for name in arrays.files}
    return model, expected, json.loads((clip_case / "expected.json").read_bytes())


def test_a_golden_image_becomes_the_golden_pixels(clip: Any, clip_case: Path) -> None:
    model, expected, _ = clip
    pictures = sorted(clip_case.glob("*.png"))
    frames = [np.asarray(Image.open(picture).convert("RGB")) for picture in pictures]
    pixels = np.stack([model.preparation(frame) for frame in frames])
    np.testing.assert_allclose(pixels, expected["pixel_values"], atol=1e-6, rtol=0)


def test_a_golden_clip_scores_attends_and_differentiates_as_expected(clip: Any) -> None:
    model, expected, about = clip
    pixels = torch.from_numpy(expected["pixel_values"])
    with torch.no_grad():
        tokens = {name: torch.from_numpy(expected[name]) for name in ("input_ids", "attention_mask")}
        prompts = unit(model.token_vectors(tokens))
    vectors, attentions = model.attend(pixels)
    cosines = vectors @ prompts.T
    np.testing.assert_allclose(cosines[0].detach(), expected["cosine"], atol=1e-5)
    np.testing.assert_allclose(cosines.detach() * model.logit_scale, expected["logits_per_image"], atol=1e-4, rtol=1e-4)
    assert model.logit_scale == pytest.approx(about["logit_scale"], rel=1e-5)
    assert int(cosines[0].argmax()) == about["predicted"]
    assert len(attentions) == about["n_layers"]
    assert model.grid == (about["image_size"] // about["patch"],) * 2
    gradients = torch.autograd.grad(cosines[0, about["predicted"]], attentions)
    for layer, (attention, gradient) in enumerate(zip(attentions, gradients, strict=True)):
        np.testing.assert_allclose(attention[0].detach(), expected[f"att{layer}"], atol=1e-5)
        wanted = expected[f"grad{layer}"]
        np.testing.assert_allclose(gradient[0], wanted, atol=1e-4 * float(np.abs(wanted).max()), rtol=1e-4)
