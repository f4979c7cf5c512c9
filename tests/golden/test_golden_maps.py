"""Golden maps under `--golden DIR`: rollout (`xai/rollout*.npz`), Grad-CAM (`xai/gradcam*.npz`), a tiny CLIP.

Files are found by pattern; an absent kind is not a failure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surgeval.explain import Method, cam, rollout_rows, whole
from surgeval.explain.heatmaps import heatmaps
from surgeval.models import TextBank, open_contrastive


def _cases(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as stored:
        return sorted({key.rsplit("/", 1)[0] for key in stored.files})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    folder = (Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden") / "xai"
    for fixture, pattern in (("rollout_case", "rollout*.npz"), ("gradcam_case", "gradcam*.npz")):
        if fixture in metafunc.fixturenames:
            found = [(path, case) for path in sorted(folder.glob(pattern)) for case in _cases(path)]
            metafunc.parametrize(fixture, found, ids=[f"{path.stem}-{case}" for path, case in found])
    if "clip_folder" in metafunc.fixturenames:
        folders = sorted(path.parent for path in folder.glob("*/expected.npz"))
        metafunc.parametrize("clip_folder", folders, ids=[path.name for path in folders])


def _load(path: Path, case: str) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as stored:
        return {key.rsplit("/", 1)[1]: stored[key] for key in stored.files if key.rsplit("/", 1)[0] == case}


def test_rollout_gives_what_the_file_says(rollout_case: tuple[Path, str]) -> None:
    golden = _load(*rollout_case)
    A, G = ([*torch.from_numpy(golden[name])[:, None]] for name in "AG")
    blocks = len(A)
    for expected, options in {
        "row_chefer": {},
        "row_seed": {"order": "seed"},
        "row_last_layer_only": {"start_layer": -1},
        "row_chefer_last3": {"start_layer": max(blocks - 3, 0)},
        "lastquery_chefer": {"read": -1},
        "lastquery_seed": {"read": -1, "order": "seed"},
    }.items():
        found = rollout_rows(A, G, **options)[0].numpy()  # type: ignore[arg-type]
        np.testing.assert_allclose(found, golden[expected], rtol=1e-10, atol=1e-14, err_msg=expected)
    for order in ("chefer", "seed"):  # every row of R, each read without its own entry
        R = golden[f"R_{order}"]
        for token in range(len(R)):
            found = rollout_rows(A, G, order, 0, token)[0].numpy()
            np.testing.assert_allclose(found, np.delete(R[token], token), rtol=1e-10, atol=1e-14)


def test_gradcam_gives_what_the_file_says(gradcam_case: tuple[Path, str]) -> None:
    golden = _load(*gradcam_case)
    found = cam(torch.from_numpy(golden["act"]), torch.from_numpy(golden["grad"])).numpy()
    np.testing.assert_allclose(found, golden["cam"], rtol=1e-12, atol=1e-14)
    large = whole(found.shape, *golden["up"].shape).upsample(found)
    scale = max(float(golden["up"].max()), 1e-12)
    np.testing.assert_allclose(large, golden["up"], atol=2e-6 * scale)
    spread = large.max() - large.min()
    scaled = (large - large.min()) / spread if spread else np.zeros_like(large)
    np.testing.assert_allclose(scaled, golden["up_then_norm"], atol=2e-6)


def test_a_tiny_clip_is_explained_as_the_file_says(clip_folder: Path) -> None:
    with np.load(clip_folder / "expected.npz", allow_pickle=False) as stored:
        golden = {key: stored[key] for key in stored.files}
    facts = json.loads((clip_folder / "expected.json").read_text("utf-8"))
    model = open_contrastive(str(clip_folder))
    pixels = torch.from_numpy(golden["pixel_values"])
    vectors = torch.nn.functional.normalize(torch.from_numpy(golden["text_embeds"]), dim=-1)
    texts = TextBank(tuple(f"prompt {n}" for n in range(len(vectors))), vectors=vectors)
    which = torch.arange(len(texts))[None]
    settings = {
        "row_chefer": Method("rollout"),
        "row_seed": Method("rollout", order="seed"),
        "row_last_layer_only": Method("rollout", start_layer=-1),
    }
    for name, method in settings.items():
        maps = heatmaps(model, pixels, texts, which, method)
        np.testing.assert_allclose(maps.scores[0].numpy(), golden["cosine"], atol=1e-5)
        for prompt in range(len(texts)):
            found = maps.values[0, prompt].flatten().numpy()
            np.testing.assert_allclose(found, golden[f"p{prompt}/{name}"], rtol=1e-4, atol=1e-6)
            if name == "row_chefer":
                picture = golden[f"p{prompt}/map_chefer"]
                large = whole(maps.values.shape[2:], *picture.shape).upsample(maps.values[0, prompt].numpy())
                np.testing.assert_allclose(large, picture, rtol=1e-4, atol=1e-6)
    for order in ("chefer", "seed"):
        key = f"row_{order}_scale100"
        if key in golden:
            predicted = [[facts["predicted"]]]
            maps = heatmaps(model, pixels, texts, predicted, Method("rollout", order=order, score_scale=100.0))
            found = maps.values[0, 0].flatten().numpy()
            np.testing.assert_allclose(found, golden[key], rtol=1e-3, atol=1e-5 * float(golden[key].max()))
