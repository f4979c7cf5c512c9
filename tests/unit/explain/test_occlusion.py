"""Occlusion: what is blacked out, its controls, and curves that know a good map from a bad one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from tests.unit.explain.small_models import Small, bank, images, small_vit

from surgeval.errors import BadInput
from surgeval.explain import fill_colour, occlude, occlusion_curves
from surgeval.explain.occlusion import _average_along, attention_order, least_attended, occlusion, shifted
from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import Preparation

NAMES = [f"frame {n}" for n in range(4)]


@dataclass
class CornerReader(Small):
    """A model whose first prompt is how bright the top left quarter is, and nothing else."""

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        corner = pixels[:, :, :16, :16].mean(dim=(1, 2, 3))
        return torch.stack([corner, torch.zeros_like(corner)], dim=1)


def _corner_map(count: int = 4) -> torch.Tensor:
    heat = torch.zeros(count, 4, 4)
    heat[:, 0, 0] = 1
    return heat


def test_black_is_black_before_normalisation() -> None:
    prep = Preparation(resize=(8, 8), mean=(0.5, 0.4, 0.3), std=(0.5, 0.5, 0.1))
    assert fill_colour(prep).tolist() == pytest.approx([-1.0, -0.8, -3.0])
    assert fill_colour(prep, "mean").tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(BadInput, match="Use black or mean"):
        fill_colour(prep, "white")  # type: ignore[arg-type]


def test_only_the_masked_pixels_change() -> None:
    pixels, mask = images(2), torch.zeros(2, 32, 32, dtype=torch.bool)
    mask[1, 3:5, 7] = True
    dark = occlude(pixels, mask, torch.tensor([1.0, 2.0, 3.0]))
    assert torch.equal(dark[0], pixels[0])
    assert dark[1, :, 3, 7].tolist() == [1.0, 2.0, 3.0]
    assert int((dark != pixels).sum()) == 6


def test_occluding_where_a_model_looks_hurts_more_than_elsewhere() -> None:
    model, pixels = CornerReader(None), torch.ones(4, 3, 32, 32)
    found = occlusion(model, pixels, bank(2), _corner_map(), NAMES)
    loss = {name: (found.before - getattr(found, name))[:, 0] for name in ("attended", "random", "least")}
    assert (loss["attended"] > loss["least"] + 0.1).all()
    assert float(loss["attended"].mean()) > float(loss["random"].mean()) + 0.1
    assert not found.empty.any()


def test_both_controls_black_out_as_much_as_the_region() -> None:
    maps = torch.rand(4, 32, 32)
    masks = attention_order(maps) < 200
    moved = shifted(masks, 0, NAMES)
    assert moved.sum(dim=(1, 2)).tolist() == [200] * 4
    assert not any(torch.equal(a, b) for a, b in zip(moved, masks, strict=True))
    least = least_attended(maps, masks.sum(dim=(1, 2)))
    assert least.sum(dim=(1, 2)).tolist() == [200] * 4
    assert not (least & masks).any()
    assert float(maps[least].max()) < float(maps[~least & ~masks].max())
    assert all(float(one[low].max()) <= float(one[~low].min()) for one, low in zip(maps, least, strict=True))


def test_the_random_place_depends_on_the_image_and_the_seed_not_on_the_batch() -> None:
    masks = torch.rand(4, 32, 32) > 0.8
    whole = shifted(masks, 3, NAMES)
    assert torch.equal(shifted(masks[2:3], 3, NAMES[2:3])[0], whole[2])
    assert not torch.equal(shifted(masks, 4, NAMES), whole)
    with pytest.raises(BadInput, match="1 names for 4 images"):
        shifted(masks, 0, ["x"])


def test_the_zeros_of_a_sparse_map_are_deleted_from_everywhere_not_from_one_corner() -> None:
    order = attention_order(_corner_map(1).repeat_interleave(8, 1).repeat_interleave(8, 2))
    assert sorted(order.flatten().tolist()) == list(range(1024))
    assert int((order[0] < 64).sum()) == int((order[0, :8, :8] < 64).sum()) == 64  # the patch goes first
    last = order[0] >= 1024 - 200
    quarters = [int(last[r : r + 16, c : c + 16].sum()) for r in (0, 16) for c in (0, 16)]
    assert min(quarters) > 20


def test_the_least_attended_pixels_of_a_sparse_map_are_a_place_far_from_the_region_not_a_speckle() -> None:
    sparse = _corner_map(1).repeat_interleave(8, 1).repeat_interleave(8, 2)
    least = least_attended(sparse, torch.tensor([200]))[0].int()
    assert int(least.sum()) == 200 and not least[:12, :12].any()
    borders = int((least[1:] != least[:-1]).sum() + (least[:, 1:] != least[:, :-1]).sum())
    assert borders < 200  # scattered, nearly every pixel would have four


def test_a_map_without_a_region_blacks_out_nothing() -> None:
    model, pixels = small_vit(), images(2)
    found = occlusion(model, pixels, bank(), torch.zeros(2, 4, 4), NAMES[:2])
    assert found.empty.all() and found.area.tolist() == [0, 0]
    assert torch.equal(found.attended, found.before) and torch.equal(found.least, found.before)


def test_a_good_map_falls_early_and_rises_early() -> None:
    model, pixels, which = CornerReader(None), torch.ones(4, 3, 32, 32), torch.zeros(4, dtype=torch.long)
    good = occlusion_curves(model, pixels, bank(2), _corner_map(), which, steps=8)
    bad = occlusion_curves(model, pixels, bank(2), 1 - _corner_map(), which, steps=8)
    assert good.deletion.shape == (4, 9)
    assert (good.deletion_area < bad.deletion_area).all()
    assert (good.insertion_area > bad.insertion_area).all()
    whole = model.scores(pixels, bank(2))[:, 0]
    for curve in (good.deletion[:, 0], good.insertion[:, -1]):
        assert torch.allclose(curve, whole)
    assert torch.allclose(good.deletion[:, -1], good.insertion[:, 0])  # all gone = nothing there yet


def test_the_area_under_a_constant_score_is_that_score() -> None:
    found = occlusion_curves(
        CornerReader(None), torch.ones(2, 3, 32, 32), bank(2), _corner_map(2), torch.ones(2), steps=3
    )
    assert found.deletion_area.tolist() == [0, 0]
    with pytest.raises(BadInput, match="steps must be"):
        occlusion_curves(CornerReader(None), torch.ones(2, 3, 32, 32), bank(2), _corner_map(2), torch.ones(2), steps=0)


def test_one_map_for_each_image_is_expected() -> None:
    with pytest.raises(BadInput, match="needs one map"):
        occlusion(small_vit(), images(2), bank(), torch.rand(3, 4, 4), NAMES[:2])


def test_surroundings_are_the_mean_of_the_square_that_lies_inside_the_map() -> None:
    maps = torch.rand(2, 24, 40, generator=torch.Generator().manual_seed(1))
    reach = 3  # 24 // 8
    means = [[[float(one[max(0, y - reach) : y + reach + 1, max(0, x - reach) : x + reach + 1].mean())
               for x in range(40)] for y in range(24)] for one in maps]  # fmt: skip
    torch.testing.assert_close(_average_along(_average_along(maps, reach).mT, reach).mT, torch.tensor(means))
