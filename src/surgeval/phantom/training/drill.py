"""Steps of training; on a GPU a step of each kind is recorded once and then replayed.

The embedded LLaVAs are so small that a GPU waits for the next of a thousand short orders most of the time. A CUDA
graph gives them all at once: the draw from the shelf, both passes, the clipping and the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from surgeval.phantom.training.classroom import Classroom

__all__ = ["Drill"]

Loss = Callable[[], torch.Tensor]
_WARM = 2  # steps of a kind before it is recorded: libraries choose their kernels and workspaces in them


class Drill:
    """Takes steps by losses that draw their own batches and never wait for the device; adds up what they were."""

    def __init__(self, pupil: torch.nn.Module, optimiser: torch.optim.Optimizer, room: Classroom) -> None:
        self.pupil, self.optimiser, self.room = pupil, optimiser, room
        self.graphs = room.device.type == "cuda"
        self.total = torch.zeros((), device=room.device)
        self.taken: dict[Loss, int] = {}
        self.recorded: dict[Loss, torch.cuda.CUDAGraph] = {}
        if self.graphs:
            self.pool, self.aside = torch.cuda.graph_pool_handle(), torch.cuda.Stream()

    def step(self, loss: Loss, rate: float) -> None:
        """One step by this loss."""
        for group in self.optimiser.param_groups:
            if self.graphs:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.taken[loss] = self.taken.get(loss, 0) + 1
        if not self.graphs:
            self._step(loss)
        elif self.taken[loss] <= _WARM:
            self.aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.aside):
                self._step(loss)
            torch.cuda.current_stream().wait_stream(self.aside)
        else:
            if loss not in self.recorded:
                self.recorded[loss] = self._record(loss)
            self.recorded[loss].replay()

    def mean_loss(self, steps: int) -> float:
        """The mean of the last steps, which is then forgotten."""
        mean = float(self.total) / steps
        self.total.zero_()
        return mean

    def _record(self, loss: Loss) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.room.random)
        with torch.cuda.graph(graph, pool=self.pool, stream=self.aside):
            self._step(loss)
        return graph

    def _step(self, loss: Loss) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        # Weights cast to bfloat16 are not kept from step to step: a recorded step would read those of its recording.
        with torch.autocast(self.room.device.type, torch.bfloat16, enabled=self.graphs, cache_enabled=False):
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.pupil.parameters(), 1.0)
        self.optimiser.step()
        self.total += value.detach()
