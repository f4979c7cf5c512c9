"""Areas under deletion and insertion curves are in units of the score: areas of shapes that anybody can draw."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from tests.unit.explain.small_models import Small, bank

from surgeval.explain import occlusion_curves
from surgeval.models.contrastive import TextBank
from surgeval.models.preparation import Preparation

RAW = Preparation(resize=(32, 32), mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))  # black is 0


@dataclass
class BrightnessReader(Small):
    """Prompt 0 is the brightness of the picture, 1 that of its upper half, 2 always says 0.8."""

    preparation: Preparation = field(default_factory=lambda: RAW)

    def scores(self, pixels: torch.Tensor, texts: TextBank) -> torch.Tensor:
        whole, upper = pixels.mean(dim=(1, 2, 3)), pixels[:, :, :16].mean(dim=(1, 2, 3))
        return torch.stack([whole, upper, torch.full_like(whole, 0.8)], dim=1)


UPPER = torch.tensor([[[1.0], [0.0]]]).expand(1, 2, 2)  # a map of the upper half
WHITE = torch.ones(1, 3, 32, 32)


@pytest.mark.parametrize("steps", [1, 4, 16])
def test_a_score_that_falls_evenly_encloses_a_triangle_whatever_the_number_of_steps(steps: int) -> None:
    found = occlusion_curves(BrightnessReader(None), WHITE, bank(3), UPPER, torch.tensor([0]), steps=steps)
    assert found.fractions.tolist() == pytest.approx([step / steps for step in range(steps + 1)])
    assert found.deletion[0].tolist() == pytest.approx([1 - step / steps for step in range(steps + 1)])
    assert found.deletion_area.item() == pytest.approx(1 / 2)
    assert found.insertion_area.item() == pytest.approx(1 / 2)


def test_a_map_of_what_counts_loses_the_score_in_the_first_half() -> None:
    """The upper half goes in the first two of four steps: 1, ½, 0, 0, 0 is a triangle of base ½ and height 1."""
    found = occlusion_curves(BrightnessReader(None), WHITE, bank(3), UPPER, torch.tensor([1]), steps=4)
    assert found.deletion[0].tolist() == pytest.approx([1, 0.5, 0, 0, 0])
    assert found.insertion[0].tolist() == pytest.approx([0, 0.5, 1, 1, 1])
    assert found.deletion_area.item() == pytest.approx(1 / 4)
    assert found.insertion_area.item() == pytest.approx(3 / 4)


@pytest.mark.parametrize("steps", [1, 5])
def test_the_area_under_a_score_that_nothing_changes_is_that_score(steps: int) -> None:
    found = occlusion_curves(BrightnessReader(None), WHITE, bank(3), UPPER, torch.tensor([2]), steps=steps)
    assert found.deletion_area.item() == found.insertion_area.item() == pytest.approx(0.8)


def test_each_image_has_the_area_of_its_own_curve() -> None:
    pixels, maps = torch.cat([WHITE, 2 * WHITE]), torch.cat([UPPER, 1 - UPPER])
    found = occlusion_curves(BrightnessReader(None), pixels, bank(3), maps, torch.tensor([1, 1]), steps=4)
    # The second picture is twice as bright and its map points at the half that does not count: 2, 2, 2, 1, 0.
    assert found.deletion[1].tolist() == pytest.approx([2, 2, 2, 1, 0])
    assert found.deletion_area.tolist() == pytest.approx([0.25, 1.5])
