"""The losses of an epoch, added up on the device and read back once in a while: reading every step would stop a GPU."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from surgeval.errors import RunError

__all__ = ["LossTally", "NotFinite"]

READ_EVERY = 20  # steps
_NAMED = 8  # frames in a message


class NotFinite(RunError):
    """A loss or a gradient that is no number; the weights of the last finished epoch are still there."""


class LossTally:
    """Sums of the parts of the loss; a step whose loss is no finite number ends the training by name."""

    def __init__(self) -> None:
        self._waiting: list[tuple[tuple[str, ...], torch.Tensor]] = []
        self._names: tuple[str, ...] = ()
        self._sums: torch.Tensor | None = None
        self._images = 0
        self._steps = 0

    def add(
        self, losses: Mapping[str, torch.Tensor], frames: tuple[str, ...], extra: torch.Tensor | None = None
    ) -> None:
        """One step: the parts of its loss, its frames, and a number that must be finite too (the gradient's norm)."""
        self._names = tuple(losses)
        row = torch.stack([value.detach().float().reshape(()) for value in losses.values()])
        self._sums = row.clone() if self._sums is None else self._sums + row
        self._images += len(frames)
        self._steps += 1
        checked = row.sum() if extra is None else row.sum() + extra.float()
        self._waiting.append((frames, checked))
        if len(self._waiting) >= READ_EVERY:
            self.check()

    def check(self) -> None:
        """Read back what has gathered; raise where one of the steps was no number."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        finite = torch.isfinite(torch.stack([checked for _, checked in waiting])).tolist()
        for (frames, checked), fine in zip(waiting, finite, strict=True):
            if not fine:
                more = f" and {len(frames) - _NAMED} more" if len(frames) > _NAMED else ""
                raise NotFinite(
                    f"loss: found {float(checked)} in the batch of {', '.join(frames[:_NAMED])}{more}, expected a "
                    "finite number; the last finished epoch is kept: look at these frames, or use a lower rate"
                )

    def means(self) -> dict[str, float]:
        """Each part, averaged over the steps so far."""
        self.check()
        if self._sums is None:
            return {}
        return dict(zip(self._names, (self._sums / max(self._steps, 1)).tolist(), strict=True))
