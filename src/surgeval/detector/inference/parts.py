"""Detections in blocks of frames, each stored by the engine when it is done, so that an interrupted run resumes.

A block belongs to one video. Only one block's boxes are in memory, however long a film is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import polars as pl

from surgeval.detector.inference.frames import detect_frames
from surgeval.detector.inference.sources import Source
from surgeval.detector.inference.tables import Components, detection_table
from surgeval.detector.interface import Network
from surgeval.detector.nms import Found, Selecting
from surgeval.engine import PartStore, Unit
from surgeval.errors import DataError
from surgeval.records import Frame, Video

__all__ = ["Block", "Parts", "detect_parts"]

BLOCK = 512  # frames
Tell = Callable[[str], None]


@dataclass
class Block:
    """Frames of one video that are stored together. `path` is where, once they are."""

    video: Video
    unit: Unit
    store: PartStore
    path: Path | None = None
    tracked: bool = False

    def scan(self) -> pl.LazyFrame:
        """Its rows, read when they are needed; `seconds` is when the frame is shown."""
        if self.path is None:
            raise RuntimeError("a block is read after it is stored")
        rows = pl.scan_parquet(self.path.absolute(), glob=False)  # absolute: polars would expand `~`
        return rows if self.tracked else rows.drop("track", strict=False)  # of an earlier run

    def write(self, table: pl.DataFrame, seconds: float) -> None:
        """Store its rows, all or none."""
        self.path = self.store.write(self.unit, table, seconds)

    def write_tracks(self, table: pl.DataFrame) -> None:
        """Store its rows with their tracks, all or none."""
        self.path, self.tracked = self.store.rewrite(self.unit, table), True


@dataclass(frozen=True)
class Parts:
    """All blocks, in the order of videos and frames, and how much was done now."""

    blocks: tuple[Block, ...]
    frames: int  # looked at in this run
    earlier: int  # of an earlier run
    skipped: int
    untimed: bool  # nobody knows when the frames are shown

    def by_video(self) -> Iterator[tuple[Video, list[Block]]]:
        """The blocks of each video."""
        groups: dict[str, tuple[Video, list[Block]]] = {}
        for block in self.blocks:
            groups.setdefault(block.video.name, (block.video, []))[1].append(block)
        yield from groups.values()


def detect_parts(
    network: Network,
    source: Source,
    store: PartStore,
    *,
    selecting: Selecting,
    components: Components,
    probabilities: bool,
    batch: int,
    workers: int | None,
    tell: Tell,
    advance: Callable[[int], None],
) -> Parts:
    """Look at every frame whose block is not stored yet."""
    run = _BlockSorter(network, store, components, probabilities, tell, advance)
    looked = detect_frames(network, run.pending(source), selecting=selecting, batch=batch, workers=workers,
                           on_skip=run.skip)  # fmt: skip
    for frame, detections in looked:
        run.add(frame, detections)
        advance(1)
    run.end()
    return Parts(tuple(run.blocks), run.frames, run.earlier, run.skipped, run.untimed)


class _BlockSorter:
    """Sorts frames, which come back in order and may be missing, into their blocks."""

    def __init__(
        self, network: Network, store: PartStore, components: Components, probabilities: bool, tell: Tell,
        advance: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._network, self._store = network, store
        self._components, self._probabilities = components, probabilities
        self._clock = time.perf_counter()  # when the block before was stored
        self._tell, self._advance = tell, advance
        self.blocks: list[Block] = []
        self.frames = self.earlier = self.skipped = 0
        self.untimed = False
        self._open: deque[tuple[Block, dict[str, float], list[Frame]]] = deque()  # begun and not stored
        self._seen: list[tuple[Frame, Found]] = []

    def pending(self, source: Source) -> Iterator[Frame]:
        """The frames of all blocks that are not stored."""
        for number, video in enumerate(source.videos(self._tell)):
            frames = enumerate(source.frames(video.name, self._tell))
            while block_frames := list(islice(frames, BLOCK)):
                first = block_frames[0][0]
                unit = Unit(f"video {number}, frame {first}", {"frames": len(block_frames)})
                block = Block(video, unit, self._store, self._store.find(unit))
                self.blocks.append(block)
                self.untimed |= not video.fps and any(frame.time is None for _, frame in block_frames)
                if block.path is not None:
                    self.earlier += len(block_frames)
                    self._advance(len(block_frames))
                    continue
                seconds = {frame.name: source.seconds(frame, index, video) for index, frame in block_frames}
                self._open.append((block, seconds, [frame for _, frame in block_frames]))
                yield from (frame for _, frame in block_frames)

    def skip(self, frame: Frame, error: DataError) -> None:
        """A frame that cannot be read."""
        self.skipped += 1
        self._tell(f"{frame.video} frame {frame.name} is left out: {error}")

    def add(self, frame: Frame, detections: Found) -> None:
        """A frame that was looked at; blocks before its own are complete."""
        while all(frame is not waiting for waiting in self._open[0][2]):
            self._store_first()
        self._seen.append((frame, detections))
        self.frames += 1

    def end(self) -> None:
        """All frames are back."""
        while self._open:
            self._store_first()

    def _store_first(self) -> None:
        block, seconds, _ = self._open.popleft()
        table = detection_table(self._seen, self._network.classes, components=self._components,
                                probabilities=self._probabilities)  # fmt: skip
        times = pl.col("frame").replace_strict(seconds, return_dtype=pl.Float64).alias("seconds")
        now = time.perf_counter()
        block.write(table.with_columns(times), now - self._clock)
        self._clock, self._seen = now, []
