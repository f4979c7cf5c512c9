"""Detections on their way: blocks of frames, each stored when it is done, so an interrupted run goes on where it was.

A block belongs to one video and one set of settings; the folder names these, and blocks of other settings are thrown
away. Only one block's boxes are in memory, however long a film is.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.detector.inference.frames import detect_frames
from surgeval.detector.inference.sources import Source
from surgeval.detector.inference.tables import Components, detection_table
from surgeval.detector.interface import Network
from surgeval.detector.nms import Found, Selecting
from surgeval.errors import DataError
from surgeval.files import LOCK, read_json_file, scan_parquet_file, write_atomically, write_parquet_file
from surgeval.records import Frame, Video

__all__ = ["Block", "Parts", "detect_parts", "empty_work"]

BLOCK = 512  # frames
_SETTINGS = "settings.json"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Block:
    """Frames of one video that are stored together."""

    video: Video
    path: Path

    def scan(self) -> pl.LazyFrame:
        """Its rows, read when they are needed; `seconds` is when the frame is shown."""
        return scan_parquet_file(self.path)

    def store(self, table: pl.DataFrame) -> None:
        """Write its rows, all or none."""
        write_parquet_file(table, self.path)


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
    folder: Path,
    settings: Mapping[str, Any],
    *,
    selecting: Selecting,
    components: Components,
    probabilities: bool,
    batch: int,
    workers: int | None,
    tell: Tell,
    advance: Callable[[int], None],
) -> Parts:
    """Look at every frame whose block is not stored yet. `settings` is all that determines what is found."""
    _claim(folder, settings)
    run = _BlockSorter(network, components, probabilities, tell, advance)
    looked = detect_frames(network, run.pending(source, folder), selecting=selecting, batch=batch, workers=workers,
                           on_skip=run.skip)  # fmt: skip
    for frame, detections in looked:
        run.add(frame, detections)
        advance(1)
    run.end()
    return Parts(tuple(run.blocks), run.frames, run.earlier, run.skipped, run.untimed)


class _BlockSorter:
    """Sorts frames, which come back in order and may be missing, into their blocks."""

    def __init__(
        self, network: Network, components: Components, probabilities: bool, tell: Tell, advance: Callable[[int], None]
    ) -> None:
        self._network, self._components, self._probabilities = network, components, probabilities
        self._tell, self._advance = tell, advance
        self.blocks: list[Block] = []
        self.frames = self.earlier = self.skipped = 0
        self.untimed = False
        self._open: deque[tuple[Block, dict[str, float], list[Frame]]] = deque()  # begun and not stored
        self._seen: list[tuple[Frame, Found]] = []

    def pending(self, source: Source, folder: Path) -> Iterator[Frame]:
        """The frames of all blocks that are not stored."""
        for number, video in enumerate(source.videos(self._tell)):
            frames = enumerate(source.frames(video.name, self._tell))
            while block_frames := list(islice(frames, BLOCK)):
                first = block_frames[0][0]
                block = Block(video, folder / f"{number:05d}-{first:07d}.parquet")
                self.blocks.append(block)
                self.untimed |= not video.fps and any(frame.time is None for _, frame in block_frames)
                if block.path.exists():
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
        block.store(table.with_columns(times))
        self._seen = []


def _claim(folder: Path, settings: Mapping[str, Any]) -> None:
    """Make the folder ready: blocks that other settings made are thrown away."""
    note = folder / _SETTINGS
    wanted = json.loads(json.dumps(settings))
    if note.is_file() and _read(note) == wanted:
        return
    empty_work(folder)
    write_atomically(note, json.dumps(wanted, indent=1).encode())


def empty_work(folder: Path) -> None:
    """Take away what lies in the folder, but for the lock by which it is held."""
    for path in folder.iterdir():
        if path.name != LOCK:
            path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)


def _read(note: Path) -> object:
    try:
        return read_json_file(note)
    except DataError:  # changed by somebody: whatever lies beside it is not trusted either
        return None
