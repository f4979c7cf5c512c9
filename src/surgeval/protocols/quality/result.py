"""A quality run, loaded: every frame's measures, and the frames proposed to drop.

Blur is judged against the frame's own video, so proposals are made from the finished cases, not inside the units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import ConfigDict

from surgeval.datasets import DropProposal, FrameQuality, QualityLimits, propose_drops
from surgeval.engine import RunRecord
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.pictures import load_pictures
from surgeval.protocols.quality.tables import GRADES, MEASURES, quality_tables
from surgeval.protocols.quality.verdict import judge
from surgeval.protocols.result import CaseRow, RecordedResult, RunFiles, RunSettings
from surgeval.stats import Interval, measure_intervals

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["QualityScores", "load_quality"]


class QualitySettings(RunSettings):
    """The settings of a run."""

    model_config = ConfigDict(extra="forbid")

    limits: QualityLimits = QualityLimits()


class FrameCase(CaseRow):
    """A frame; one that could not be read has no measures."""

    name: str
    brightness: float
    sharpness: float
    tissue: float
    saturated: float
    dark: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class QualityScores(RecordedResult):
    """The frames of a dataset, measured. `cases` has a row per frame that could be read, with column `dropped`."""

    name: str
    record: RunRecord
    cases: pl.DataFrame
    unreadable: pl.DataFrame  # video, frame, reason
    limits: QualityLimits
    proposals: tuple[DropProposal, ...]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # of frames to drop, by VIDEO/FRAME

    protocol = "quality"
    measures = MEASURES

    def headlines(self) -> tuple[Headline, ...]:
        """The share of frames to drop, and the mean of each measure."""
        return headlines_of(MEASURES, self.numbers)

    @cached_property
    def numbers(self) -> Mapping[str, Interval]:
        """Every measure with its interval over videos."""
        return measure_intervals(MEASURES, self.cases.rename({"video": "cluster"}))

    def evidence(self) -> Evidence:
        """A row per frame with its grades."""
        from surgeval.protocols.quality.evidence import quality_evidence

        return quality_evidence(self)

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Can the frames be used? None without frames."""
        return judge(self)

    def to_json(self) -> dict[str, Any]:
        """As of every result, and the frames to drop."""
        return {**super().to_json(), "drop": self.tables["drop"].to_dicts()}

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`drop` has a row per frame to drop, `reasons` how many there are for each, `videos` the means of each video.

        Frames that could not be read stand in `unreadable`, where there are any.
        """
        return quality_tables(self)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """A histogram of brightness, of sharpness and of the share of tissue.

        `reasons` says why frames are proposed to drop, where some are.
        """
        from surgeval.protocols.quality.figures import quality_figures

        return quality_figures(self)


def load_quality(folder: str | Path) -> QualityScores:
    """Read a finished run folder of `run_quality`.

    >>> import tempfile
    >>> from PIL import Image
    >>> from surgeval.protocols.quality import run_quality
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("images", "labels"):
    ...         Path(folder, "data", name).mkdir(parents=True)
    ...     Image.new("RGB", (448, 256)).save(f"{folder}/data/images/VID01_000001.png")  # a black frame
    ...     _ = Path(f"{folder}/data/labels/VID01_000001.txt").write_text("")
    ...     _ = run_quality(f"{folder}/data", f"{folder}/run", labels="cholec80", progress=False)
    ...     load_quality(f"{folder}/run").cases.select("video", "name", "dropped").rows()
    [('VID01', '000001', True)]
    >>> load_quality("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere: no such folder
    """
    files = RunFiles.open(folder, "quality", QualitySettings)
    frames = FrameCase.load(folder).rename({"cluster": "video"})
    cases = frames.filter(pl.col("status") == "ok").select("video", "name", *GRADES)
    failed = frames.filter(pl.col("status") != "ok").select("video", pl.col("name").alias("frame"), "reason")
    limits = files.settings.limits
    proposals = propose_drops((FrameQuality(**row) for row in cases.iter_rows(named=True)), limits)
    out = pl.DataFrame([(proposal.video, proposal.name, True) for proposal in proposals],
                       schema={"video": pl.String, "name": pl.String, "dropped": pl.Boolean}, orient="row")  # fmt: skip
    marked = cases.join(out, on=["video", "name"], how="left", maintain_order="left")
    pictures, odd = load_pictures(files.folder)
    return QualityScores(
        name=files.folder.resolve().name, record=files.record, limits=limits, proposals=proposals, unreadable=failed,
        cases=marked.with_columns(pl.col("dropped").fill_null(False)), notes=odd, pictures=pictures,
    )  # fmt: skip
