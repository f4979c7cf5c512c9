"""What a GPU computes is what a CPU computes; these need one, and say so where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from surgeval.explain.flow import open_flow
from surgeval.explain.heatmaps import choose_method, heatmaps
from surgeval.explain.regions import box_masks, count_pixels, fixed_regions, overlap, select_by_bracket, top_regions
from surgeval.models import open_contrastive
from surgeval.phantom import write_phantom
from surgeval.protocols.surgxbench import load_surgxbench, profile_settings, run_surgxbench

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="found no CUDA device, expected one")

PROMPTS = ("a photo of a grasper", "a photo of a hook", "a photo of scissors")


def _maps(kind: str, size: tuple[int, int]) -> torch.Tensor:
    noise = torch.Generator().manual_seed(3)
    small = torch.rand(12, 1, 7, 7, generator=noise)
    smooth = torch.nn.functional.interpolate(small, size=size, mode="bilinear")[:, 0]
    if kind == "smooth":
        return smooth
    if kind == "sparse":
        return (smooth - 0.8).clamp(min=0)
    if kind == "levels":  # few values, many ties
        return (smooth * 4).round()
    return torch.cat([torch.zeros(4, *size), torch.full((4, *size), -2.5), smooth[:4] - 5])


@pytest.mark.parametrize("size", [(97, 131), (224, 224), (480, 854)])
@pytest.mark.parametrize("kind", ["smooth", "sparse", "levels", "flat"])
def test_regions_of_the_same_maps_are_the_same_pixels(kind: str, size: tuple[int, int]) -> None:
    maps = _maps(kind, size)
    for positive in (True, False):
        here, there = top_regions(maps, 0.2, positive), top_regions(maps.cuda(), 0.2, positive)
        for name, value in vars(here).items():
            if name == "fractions":  # CUDA multiplies by the inverse where a CPU divides
                assert torch.allclose(value, there.fractions.cpu(), rtol=1e-15, atol=0)
            else:
                assert torch.equal(value, getattr(there, name).cpu()), name
    here, there = fixed_regions(maps), fixed_regions(maps.cuda())
    assert torch.equal(here.masks, there.masks.cpu())


def test_counts_selection_and_boxes_are_the_same() -> None:
    noise = torch.Generator().manual_seed(4)
    masks = torch.rand(5, 480 * 854, generator=noise) > 0.7
    assert torch.equal(count_pixels(masks), count_pixels(masks.cuda()).cpu())
    rows = torch.randn(5, 480 * 854, generator=noise)
    assert torch.equal(select_by_bracket(rows, 321_000), select_by_bracket(rows.cuda(), 321_000).cpu())
    corners = torch.rand(9, 6, 2, 2, generator=noise).mul(500).sort(dim=2).values.flatten(2)
    corners[:, 4:] = torch.nan
    here, there = (box_masks(boxes, (10, 20, 410, 340)) for boxes in (corners, corners.cuda()))
    assert torch.equal(here, there.cpu())
    kept = torch.rand(9, 320, 400, generator=noise) > 0.5
    assert torch.equal(overlap(kept, here[:, None]), overlap(kept.cuda(), there[:, None]).cpu())


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_maps_of_a_model_are_the_same(name: str) -> None:
    noise = torch.Generator().manual_seed(5)
    found = []
    for device in ("cpu", "cuda"):
        model = open_contrastive(name, device=device)
        bank = model.texts(PROMPTS)
        pixels = torch.randn(6, 3, *model.preparation.input_size, generator=noise.manual_seed(5)).to(model.device)
        which = torch.arange(3).repeat(6, 1)
        maps = heatmaps(model, pixels, bank, which, choose_method(model))
        found.append((model.scores(pixels, bank).cpu(), maps.values.cpu()))
    (scores, maps_here), (scores_there, maps_there) = found
    assert torch.allclose(scores, scores_there, atol=2e-2)
    # cuDNN rounds the factors of convolutions to TF32 (10 bits) unless told otherwise.
    limit = 2e-3 if name == "phantom-clip-resnet" else 1e-4
    assert float((maps_here - maps_there).abs().max() / maps_here.abs().max()) < limit


@pytest.mark.parametrize("profile", ["surgxbench", "early"])
def test_a_whole_run_gives_the_same_cases(profile: str, tmp_path: Path) -> None:
    data = write_phantom(tmp_path / "data", seed=11, videos=2, seconds=12, processes=1)
    settings = profile_settings(profile, batch=8)
    cases = []
    for device in ("cpu", "cuda"):
        run_surgxbench(
            data, "phantom-clip", out=tmp_path / device, settings=settings, device=device, gallery=0, progress=False
        )
        cases.append(load_surgxbench(tmp_path / device).cases.sort("id"))
    here, there = cases
    assert here["id"].to_list() == there["id"].to_list()
    compared = 0
    for column in sorted({"ac", "aa", "ras", "ars", "chance", "score"} & set(here.columns)):
        one, other = (table[column].to_numpy().astype(float) for table in (here, there))
        assert np.array_equal(np.isnan(one), np.isnan(other)), column
        known = np.isfinite(one)
        assert np.all(np.abs(one - other)[known] < 5e-3), column
        compared += int(known.sum())
    assert compared > 100


@pytest.mark.parametrize("size", ["raft_small", "raft_large"])
def test_raft_gives_what_torchvision_gives(size: str, tmp_path: Path) -> None:
    networks = pytest.importorskip("torchvision.models.optical_flow")
    torch.manual_seed(6)
    network = getattr(networks, size)(weights=None).eval()
    torch.save(network.state_dict(), tmp_path / "raft.pth")
    noise = np.random.default_rng(7)
    first, second = noise.integers(0, 256, (2, 136, 168, 3), dtype=np.uint8)
    method = open_flow("raft", weights=tmp_path / "raft.pth", device="cuda")
    found = method.pair(first, second)
    scaled = [torch.from_numpy(image).permute(2, 0, 1)[None].float().cuda() / 127.5 - 1 for image in (first, second)]
    with torch.inference_mode():
        expected = network.cuda()(*scaled)[-1][0].permute(1, 2, 0).cpu().numpy()
    assert found.forward.shape == (136, 168, 2)
    assert found.backward is not None
    assert np.abs(found.forward - expected).max() <= 1e-2 * np.abs(expected).max()
