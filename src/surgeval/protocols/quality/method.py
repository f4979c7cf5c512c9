"""Protocol `quality`: measure every frame, propose the ones nobody can use (ProstaTD, appendix A.2).

One unit is one video, one case is one frame; the run can be interrupted and resumed like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.datasets import (
    Dataset,
    Proposal,
    QualityLimits,
    dataset_fingerprint,
    frame_quality,
    open_dataset,
    read_image,
)
from surgeval.engine import Manifest, RunSummary, Unit, run
from surgeval.errors import DataError
from surgeval.progress import advance
from surgeval.protocols.quality.result import MEASURES, drop_table, load_quality
from surgeval.records import Case
from surgeval.results import Result

__all__ = ["QualityRun", "run_quality"]


@dataclass(frozen=True, repr=False)
class QualityRun(Result):
    """The finished run and what it proposes."""

    summary: RunSummary
    proposals: tuple[Proposal, ...]

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`drop`: one row per frame to drop."""
        return {"drop": drop_table(self.proposals)}


@dataclass(frozen=True)
class _Measure:
    """The worker: opens the dataset once per process, then reads one video per unit."""

    path: str
    format: str
    labels: str | None

    @cached_property
    def _dataset(self) -> Dataset:
        return open_dataset(self.path, format=self.format, labels=self.labels)

    def __call__(self, payload: Any) -> Iterator[Case]:
        for frame in self._dataset.frames(payload["video"], on_problem=lambda _problem: None):
            advance("frames")
            if frame.image is None:
                continue
            case = f"{frame.video}/{frame.name}"
            try:
                measured = frame_quality(read_image(frame.image), frame.video, frame.name)
            except DataError as error:
                yield Case(case, frame.video, "unreadable", str(error), {"name": frame.name})
                continue
            yield Case(case, frame.video, values={key: asdict(measured)[key] for key in ("name", *MEASURES)})


def run_quality(
    path: str | Path,
    out: str | Path,
    *,
    format: str | None = None,
    labels: str | None = None,
    limits: QualityLimits | None = None,
    processes: int = 1,
    retry: bool = False,
    progress: bool = True,
) -> QualityRun:
    """Measure the frames of a dataset in a resumable run and propose which to drop.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("images", "labels"):
    ...         (Path(folder) / "data" / name).mkdir(parents=True)
    ...     Image.new("RGB", (448, 256)).save(f"{folder}/data/images/VID01_000001.png")  # a black frame
    ...     _ = Path(f"{folder}/data/labels/VID01_000001.txt").write_text("")
    ...     result = run_quality(f"{folder}/data", labels="cholec80", out=f"{folder}/run", progress=False)
    >>> [(drop.name, drop.reason) for drop in result.proposals]
    [('000001', 'black')]
    """
    dataset = open_dataset(path, format=format, labels=labels)
    videos = dataset.videos(lambda _problem: None)
    config = {"limits": asdict(limits or QualityLimits())}
    manifest = Manifest("quality", config=config, dataset=dataset_fingerprint(dataset))
    summary = run(
        [Unit(video.name, {"video": video.name}, steps={"frames": _frames(dataset, video.name)}) for video in videos],
        _Measure(str(path), dataset.format, labels),
        folder=out,
        manifest=manifest,
        executor="processes" if processes > 1 else "serial",
        processes=processes if processes > 1 else None,
        retry=retry,
        progress=progress,
    )
    return QualityRun(summary, load_quality(out).proposals)


def _frames(dataset: Dataset, video: str) -> int:
    return sum(1 for _ in dataset.frames(video, on_problem=lambda _problem: None))
