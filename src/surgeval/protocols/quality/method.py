"""Protocol `quality`: measure every frame, propose the ones nobody can use (ProstaTD, appendix A.2).

One unit is one video, one case is one frame; the run can be interrupted and resumed like any other. Blur is judged
against the frame's own video, so proposals are made from the finished cases, not inside the units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.datasets import (
    Dataset,
    FrameQuality,
    Proposal,
    QualityLimits,
    dataset_fingerprint,
    frame_quality,
    open_dataset,
    propose_drops,
    read_image,
)
from surgeval.engine import Manifest, RunSummary, Unit, load_cases, run
from surgeval.errors import DataError
from surgeval.records import Case

__all__ = ["QualityRun", "run_quality"]

_MEASURES = ("brightness", "sharpness", "tissue", "saturated", "dark")


@dataclass(frozen=True, slots=True)
class QualityRun:
    """The finished run and what it proposes."""

    summary: RunSummary
    proposals: tuple[Proposal, ...]

    def to_frame(self) -> pl.DataFrame:
        """One row per frame to drop."""
        schema = {"video": pl.String, "frame": pl.String, "reason": pl.String, "measure": pl.String}
        rows = [(p.video, p.name, p.reason, p.measure, p.value, p.limit) for p in self.proposals]
        return pl.DataFrame(rows, schema={**schema, "value": pl.Float64, "limit": pl.Float64}, orient="row")


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
            if frame.image is None:
                continue
            case = f"{frame.video}/{frame.name}"
            try:
                measured = frame_quality(read_image(frame.image), frame.video, frame.name)
            except DataError as error:
                yield Case(case, frame.video, "unreadable", str(error), {"name": frame.name})
                continue
            yield Case(case, frame.video, values={key: asdict(measured)[key] for key in ("name", *_MEASURES)})


def run_quality(
    path: str | Path,
    *,
    folder: str | Path,
    format: str | None = None,
    labels: str | None = None,
    limits: QualityLimits | None = None,
    processes: int = 1,
    retry: bool = False,
    progress: bool = True,
) -> QualityRun:
    """Measure the frames of a dataset in a resumable run and propose which to drop."""
    dataset = open_dataset(path, format=format, labels=labels)
    videos = dataset.videos(lambda _problem: None)
    manifest = Manifest("quality", dataset=dataset_fingerprint(dataset))
    summary = run(
        [Unit(video.name, {"video": video.name}) for video in videos],
        _Measure(str(path), dataset.format, labels),
        folder=folder,
        manifest=manifest,
        executor="processes" if processes > 1 else "serial",
        processes=processes if processes > 1 else None,
        retry=retry,
        progress=progress,
    )
    cases = load_cases(folder).filter(pl.col("status") == "ok").collect()
    rows = (
        FrameQuality(row["cluster"], *(row[key] for key in ("name", *_MEASURES))) for row in cases.iter_rows(named=True)
    )
    return QualityRun(summary, propose_drops(rows, limits))
