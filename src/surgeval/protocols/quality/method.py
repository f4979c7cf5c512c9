"""Protocol `quality`: measure every frame, propose the ones nobody can use (ProstaTD, appendix A.2).

One unit is one video, one case is one frame; the run can be interrupted and resumed like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from surgeval.console.commands import Help, common
from surgeval.datasets import QualityLimits, dataset_fingerprint, frame_quality, open_dataset, read_image
from surgeval.engine import Manifest, RunSummary, Unit, run
from surgeval.errors import DataError
from surgeval.progress import advance
from surgeval.protocols.pictures import PICTURES, save_pictures, thumbnail
from surgeval.protocols.quality.result import QualityScores, load_quality
from surgeval.protocols.quality.tables import GRADES
from surgeval.protocols.result import FinishedRun
from surgeval.protocols.verdict import Verdict
from surgeval.records import Case
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.datasets import Dataset, DropProposal

__all__ = ["QualityRun", "run_quality"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QualityRun(FinishedRun):
    """The finished run and what it proposes."""

    summary: RunSummary
    scores: QualityScores

    @property
    def loaded(self) -> QualityScores:
        """Every frame's measures, and the frames proposed to drop."""
        return self.scores

    @property
    def proposals(self) -> tuple[DropProposal, ...]:
        """The frames to drop."""
        return self.scores.proposals

    def verdict(self) -> Verdict | None:
        """Can the frames be used? None without frames."""
        return self.scores.verdict()

    def __str__(self) -> str:
        return str(self.summary)

    def __repr__(self) -> str:
        measured, dropped = (counted(count, "frame") for count in (self.scores.cases.height, len(self.proposals)))
        return f"QualityRun of {self.scores.name}: {measured} measured, {dropped} to drop"


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
            yield Case(case, frame.video, values={key: asdict(measured)[key] for key in ("name", *GRADES)})


def run_quality(
    data: Annotated[str | Path, Help("A dataset folder or file with frames.")],
    out: str | Path,
    *,
    format: str | None = None,
    labels: str | None = None,
    limits: QualityLimits | None = None,
    processes: Annotated[int, common("processes", "Processes that measure.")] = 1,
    retry: bool = False,
    progress: bool = True,
) -> QualityRun:
    """Measure every frame of a dataset and propose the ones to drop: black, dark, bright, out of body, blurred.

    The run resumes where it was stopped; `limits` says when a frame is proposed.

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
    dataset = open_dataset(data, format=format, labels=labels)
    videos = dataset.videos(lambda _problem: None)
    config = {"limits": asdict(limits or QualityLimits())}
    manifest = Manifest("quality", config=config, dataset=dataset_fingerprint(dataset))
    summary = run(
        [Unit(video.name, {"video": video.name}, steps={"frames": _frames(dataset, video.name)}) for video in videos],
        _Measure(str(data), dataset.format, labels),
        folder=out,
        manifest=manifest,
        executor="processes" if processes > 1 else "serial",
        processes=processes if processes > 1 else None,
        retry=retry,
        progress=progress,
    )
    save_pictures(Path(out), _pictures(dataset, load_quality(out).proposals))
    return QualityRun(summary=summary, scores=load_quality(out))


def _frames(dataset: Dataset, video: str) -> int:
    return sum(1 for _ in dataset.frames(video, on_problem=lambda _problem: None))


def _pictures(dataset: Dataset, proposals: tuple[DropProposal, ...]) -> dict[str, bytes]:
    """The first frames to drop, small: a person who decides must see them."""
    wanted = {(proposal.video, proposal.name) for proposal in proposals[:PICTURES]}
    pictures = {}
    for video in dict.fromkeys(proposal.video for proposal in proposals[:PICTURES]):
        for frame in dataset.frames(video, on_problem=lambda _problem: None):
            if (frame.video, frame.name) in wanted and frame.image is not None:
                pictures[f"{frame.video}/{frame.name}"] = thumbnail(read_image(frame.image))
    return pictures
