"""`GazeTrack`: where somebody looked during one video or at one image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from surgeval.arrays import Bools, Floats
from surgeval.records import Gaze

__all__ = ["GazeTrack"]


@dataclass(frozen=True, eq=False)
class GazeTrack:
    """Gaze in the order of time: seconds, and parts of the frame from the top left corner (NaN: no gaze).

    Of `fixations`, `duration` is how long each lasts; of `samples` it is 0.

    >>> track = GazeTrack("VID01", "fixations", *map(np.array, ([0.0, 0.4], [0.5, 1.2], [0.5, 0.1], [0.3, 0.2])))
    >>> track.on_frame()
    (Gaze(t=0.0, x=0.5, y=0.5, duration=0.3),)
    """

    recording: str
    kind: Literal["fixations", "samples"]
    t: Floats
    x: Floats
    y: Floats
    duration: Floats

    def __len__(self) -> int:
        return len(self.t)

    def on_frame(self) -> tuple[Gaze, ...]:
        """The gaze that lies on the frame, as items of the `intent` kind hold it."""
        columns = (self.t, self.x, self.y, self.duration)
        return tuple(Gaze(*row) for row in zip(*(column[self._inside].tolist() for column in columns), strict=True))

    @property
    def off_frame(self) -> int:
        """Number of points outside the frame, which `on_frame` leaves out; moments without gaze do not count."""
        return int((~self._inside & ~np.isnan(self.x) & ~np.isnan(self.y)).sum())

    @property
    def _inside(self) -> Bools:
        with np.errstate(invalid="ignore"):
            return (self.x >= 0) & (self.x <= 1) & (self.y >= 0) & (self.y <= 1)
