"""The schedule of the code that the paper builds on, step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from surgeval.detector.assign import ASSIGNMENT_RULES
from surgeval.detector.losses import LossSettings
from surgeval.detector.training import TrainSettings
from surgeval.detector.training.ema import Ema
from surgeval.detector.training.optimiser import CLIP, DECAY, Optimiser
from surgeval.detector.training.plan import planned_epochs
from surgeval.detector.training.schedule import Schedule, StepSettings, plain_epochs
from surgeval.errors import BadInput


@pytest.mark.parametrize(("steps", "warm"), [(10, 100), (33, 100), (34, 102), (500, 1500)])
def test_the_rate_rises_over_three_epochs_and_at_least_a_hundred_steps(steps: int, warm: int) -> None:
    plan = Schedule(rate=0.01, epochs=100, steps=steps, batch=16)
    assert plan.warm_steps == warm
    before, after = plan.at(warm // steps, warm - 1), plan.at(warm // steps, warm)
    assert before.rate < after.rate == after.bias_rate
    assert after.momentum == 0.937


def test_halfway_up_everything_is_halfway() -> None:
    plan = Schedule(rate=0.01, epochs=10**9, steps=100, batch=16)  # so many epochs: the fall is not yet felt
    moment = plan.at(1, 150)
    assert moment.rate == pytest.approx(0.005)
    assert moment.bias_rate == pytest.approx((0.1 + 0.01) / 2)
    assert moment.momentum == pytest.approx((0.8 + 0.937) / 2)
    assert moment.accumulate == round((1 + 4) / 2)


def test_the_rate_falls_to_one_per_cent() -> None:
    line = Schedule(rate=0.01, epochs=100, steps=50, batch=16)
    curve = Schedule(rate=0.01, epochs=100, steps=50, batch=16, cosine=True)
    for plan in (line, curve):
        assert plan.at(50, 2500).rate == pytest.approx(0.01 * (0.01 + 0.99 / 2))
        assert plan.at(100, 5000).rate == pytest.approx(0.0001)
    assert line.at(25, 1250).rate == pytest.approx(0.01 * (1 - 0.25 * 0.99))
    assert curve.at(25, 1250).rate == pytest.approx(0.01 * (0.01 + 0.99 * (1 + math.cos(math.pi / 4)) / 2))


@pytest.mark.parametrize(
    ("batch", "accumulate", "scale"), [(16, 4, 1.0), (64, 1, 1.0), (4, 16, 1.0), (128, 1, 2.0), (24, 3, 72 / 64)]
)
def test_updates_are_of_64_images_and_decay_is_scaled_by_what_they_are(
    batch: int, accumulate: int, scale: float
) -> None:
    plan = Schedule(rate=0.01, epochs=10, steps=50, batch=batch)
    assert plan.accumulate == accumulate
    assert plan.decay_scale == pytest.approx(scale)


def test_only_weights_of_convolutions_decay() -> None:
    network = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(1.0)
            parameter.grad = torch.zeros_like(parameter)
    optimiser = Optimiser(network, decay=DECAY)
    optimiser.set(StepSettings(rate=0.5, bias_rate=0.5, momentum=0.9, accumulate=1))
    optimiser.update()
    values = [float(parameter.detach()) for parameter in network.parameters()]  # weight, bias, scale, offset
    # Nesterov: the first step moves by rate · gradient · (1 + momentum).
    assert values == [pytest.approx(1 - 0.5 * DECAY * 1.9), 1.0, 1.0, 1.0]


def test_gradients_are_cut_at_a_norm_of_ten() -> None:
    layer = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(0.0)
    layer.weight.grad = torch.full_like(layer.weight, 1000.0)
    optimiser = Optimiser(layer, decay=0.0)
    optimiser.set(StepSettings(rate=1.0, bias_rate=1.0, momentum=0.0, accumulate=1))
    # Nesterov wants a momentum; with one of 0 a step is the plain gradient.
    assert float(optimiser.update()) == pytest.approx(1000.0)
    assert float(layer.weight.detach()) == pytest.approx(-10.0, rel=1e-4)


def test_the_average_follows_by_the_written_formula() -> None:
    layer = nn.Linear(1, 1, bias=False)
    average = Ema(layer)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        average.network.weight.fill_(1.0)
    average.update(layer, 2000)
    decay = 0.9999 * (1 - math.exp(-1))
    assert float(average.network.weight) == pytest.approx(decay * 1.0 + (1 - decay) * 2.0)
    assert not average.network.training


def test_with_a_limit_of_time_the_number_of_epochs_follows_the_rate() -> None:
    planned, done, seconds, clock = 100_000, 0, [], 0.0
    while done < planned:
        spent = 30.0 if done == 0 else 10.0 + done % 2  # the first epoch is slow
        done, clock = done + 1, clock + spent
        seconds.append(spent)
        planned = planned_epochs(done, planned, seconds[-3:], 600.0 - clock, 100_000)
    assert 590 - 11 <= clock <= 600
    assert plain_epochs(planned) == 6


@pytest.mark.parametrize("most", [1, 2, 7, 100_000])
def test_on_a_machine_of_any_mood_the_last_epoch_has_no_mosaics_and_passes_the_limit_by_one(most: int) -> None:
    chance = np.random.default_rng(most)
    for _ in range(300):
        planned, done, seconds, clock, plain, begun = most, 0, [], 0.0, False, 0.0
        while done < planned:
            plain, begun = done >= planned - plain_epochs(planned), clock
            seconds.append(float(chance.lognormal(0.0, 1.5)))  # now and then ten times slower than before
            done, clock = done + 1, clock + seconds[-1]
            planned = planned_epochs(done, planned, seconds[-3:], 20.0 - clock, most)
        assert done <= most
        assert plain or most == 1
        assert begun - seconds[-2] < 20.0 if done > 1 else True  # all but the last two were over in time


def test_the_last_epochs_are_not_put_off_once_they_have_begun() -> None:
    assert planned_epochs(91, 100, [1.0], left=1000.0, most=10**6) == 100
    assert planned_epochs(91, 100, [1.0], left=3.5, most=10**6) == 94
    assert planned_epochs(80, 100, [1.0], left=1000.0, most=10**6) == 1080
    assert planned_epochs(80, 100, [1.0], left=-5.0, most=10**6) == 81  # one without mosaics, whatever the clock says


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"image_size": 100}, "image_size: found 100, expected a multiple of 32"),
        ({"fusion": 1.5}, "fusion: found 1.5, expected a number from 0 to 1"),
        ({"rate": float("nan")}, "rate: found nan, expected a number above 0"),
        ({"minutes": 0}, "minutes: found 0, expected a number above 0"),
        ({"sampling": "rare"}, "sampling: found 'rare', expected one of all, repeat-factor, balanced"),
        ({"epochs": True}, "epochs: found True, expected a whole number from 1"),
        ({"epochs": 10**20}, f"epochs: found {10**20}, expected at most {2**53 - 1}"),
        ({"seed": 10**20}, f"seed: found {10**20}, expected at most {2**53 - 1}"),
        ({"minutes": 1e308}, f"minutes: found 1e+308, expected a number above 0 and at most {2**53 - 1}"),
        ({"minutes": [1]}, "minutes: found [1], expected a number above 0"),
        ({"rate": "a"}, "rate: found 'a', expected a number above 0"),
        ({"student_rate": True}, "student_rate: found True, expected a number above 0"),
        ({"mosaic": "x"}, "mosaic: found 'x', expected a number from 0 to 1"),
        ({"fusion": None}, "fusion: found None, expected a number from 0 to 1"),
        ({"aux_weight": "x"}, "aux_weight: found 'x', expected a number from 0 to 1000"),
        ({"aux": "maybe"}, "aux: found 'maybe', expected true or false"),
        ({"cosine": 1}, "cosine: found 1, expected true or false"),
        ({"workers": "x"}, "workers: found 'x', expected a whole number from 0"),
        ({"device": 5}, "device: found 5, expected a name such as cpu or cuda"),
    ],
)
def test_settings_that_make_no_training_are_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        TrainSettings(**changed)
    assert str(refused.value) == sentence


def test_presets_are_rates_and_a_given_rate_wins() -> None:
    assert TrainSettings().learning_rate == 1e-2
    assert TrainSettings(preset="paper").learning_rate == 1e-4
    assert TrainSettings(preset="paper", rate=0.5).learning_rate == 0.5


def test_what_is_not_said_is_as_the_paper_has_it() -> None:
    usual = TrainSettings()
    assert (usual.batch, usual.image_size, usual.nominal, usual.patience, usual.seed) == (16, 640, 64, 100, 0)
    assert (usual.student_rate, usual.fusion, usual.mosaic, usual.cosine) == (1e-4, 0.8, 1.0, False)
    assert 20 <= usual.student_epochs <= 50
    loss = usual.loss
    assert loss == LossSettings()
    assert (loss.box, loss.dfl, loss.cls, loss.aux) == (7.5, 1.5, 0.5, 0.1)
    assert (loss.hard, loss.literal, loss.aux_background, loss.rule) == (False, False, False, ASSIGNMENT_RULES["paper"])
    assert (DECAY, CLIP) == (5e-4, 10.0)


def test_biases_have_their_own_rate_and_what_is_frozen_none() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1).requires_grad_(False))
    optimiser = Optimiser(network, decay=DECAY)
    optimiser.set(StepSettings(rate=0.5, bias_rate=0.25, momentum=0.9, accumulate=1))
    rates = {name: group["lr"] for group in optimiser.torch_optimiser.param_groups for p in group["params"]
             for name, other in network.named_parameters() if other is p}  # fmt: skip
    assert rates == {"0.weight": 0.5, "0.bias": 0.25, "1.weight": 0.5, "1.bias": 0.25}
    assert set(optimiser.tensors()) == set(rates)


def test_an_update_forgets_the_gradients_that_it_used() -> None:
    network = nn.Conv2d(1, 1, 1)
    optimiser = Optimiser(network, decay=0.0)
    optimiser.set(StepSettings(rate=0.1, bias_rate=0.1, momentum=0.9, accumulate=1))
    for _ in range(2):
        network(torch.ones(1, 1, 1, 1)).sum().backward()
        assert float(network.weight.grad) == 1.0
        optimiser.update()
        assert network.weight.grad is None and network.bias is not None and network.bias.grad is None


def test_momentum_that_was_kept_goes_on_as_if_nothing_had_happened() -> None:
    def step(network: nn.Conv2d, optimiser: Optimiser) -> None:
        optimiser.set(StepSettings(rate=0.1, bias_rate=0.1, momentum=0.9, accumulate=1))
        network(torch.ones(1, 1, 1, 1)).square().sum().backward()
        optimiser.update()

    one, two = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)
    first, second = Optimiser(one, decay=DECAY), Optimiser(two, decay=DECAY)
    assert not any(bool(value.any()) for value in first.tensors().values())  # before any gradient
    step(one, first)
    two.load_state_dict(one.state_dict())
    second.restore({name: value.clone() for name, value in first.tensors().items()}, "last.safetensors")
    step(one, first)
    step(two, second)
    assert torch.equal(one.weight, two.weight)
