"""Learning rate, momentum and accumulation at every step, and when mosaics end.

A step is one batch. The rate rises over max(3 epochs, 100 steps) and then falls with every epoch to 1 % (linearly, or
along a cosine). Gradients of several batches add up to those of 64 images; while the rate rises, that number rises too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Schedule", "StepSettings", "plain_epochs"]

FINAL = 0.01  # of the highest rate
MOMENTUM, FIRST_MOMENTUM = 0.937, 0.8
BIAS_RATE = 0.1  # where the rate of biases begins
WARM_EPOCHS, WARM_STEPS = 3, 100


@dataclass(frozen=True, slots=True)
class StepSettings:
    """What the optimiser uses in one step."""

    rate: float
    bias_rate: float
    momentum: float
    accumulate: int  # batches whose gradients are added up


@dataclass(frozen=True)
class Schedule:
    """The plan of one stage of training; `epochs` may be planned anew while it runs.

    >>> plan = Schedule(rate=0.01, epochs=100, steps=50, batch=16)
    >>> plan.at(epoch=0, step=0)
    StepSettings(rate=0.0, bias_rate=0.1, momentum=0.8, accumulate=1)
    >>> plan.at(epoch=3, step=150).accumulate, round(plan.at(epoch=99, step=4999).rate, 6)
    (4, 0.000199)
    """

    rate: float
    epochs: int
    steps: int  # in an epoch
    batch: int
    nominal: int = 64  # images whose gradients make one update
    cosine: bool = False
    bias_rate: float = BIAS_RATE

    @property
    def warm_steps(self) -> int:
        """Steps during which the rate rises."""
        return max(WARM_EPOCHS * self.steps, WARM_STEPS)

    @property
    def accumulate(self) -> int:
        """Batches in one update, once the rate has risen."""
        return max(1, round(self.nominal / self.batch))

    @property
    def decay_scale(self) -> float:
        """Weight decay is meant for updates of that many images; others scale it."""
        return self.batch * self.accumulate / self.nominal

    def at(self, epoch: int, step: int) -> StepSettings:
        """The step with this number (over all epochs), which lies in this epoch."""
        rate = self.rate * self._factor(epoch)
        if step >= self.warm_steps:
            return StepSettings(rate, rate, MOMENTUM, self.accumulate)
        share = step / self.warm_steps
        return StepSettings(
            share * rate,
            self.bias_rate + share * (rate - self.bias_rate),
            FIRST_MOMENTUM + share * (MOMENTUM - FIRST_MOMENTUM),
            max(1, round(1 + share * (self.nominal / self.batch - 1))),
        )

    def _factor(self, epoch: int) -> float:
        share = min(epoch / self.epochs, 1.0)
        falling = (1 + math.cos(math.pi * share)) / 2 if self.cosine else 1 - share
        return FINAL + (1 - FINAL) * falling


def plain_epochs(epochs: int) -> int:
    """How many epochs at the end have no mosaics: ten, or a tenth where there are fewer than a hundred.

    >>> [plain_epochs(n) for n in (300, 100, 25, 5, 1)]
    [10, 10, 3, 1, 0]
    """
    return 0 if epochs < 2 else min(10, math.ceil(epochs / 10))
