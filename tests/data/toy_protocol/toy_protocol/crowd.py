"""Count the instruments of every frame, in a resumable run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from surgeval.console.commands import Help
from surgeval.datasets import dataset_fingerprint, open_dataset
from surgeval.engine import Manifest, Unit, load_cases, load_record
from surgeval.engine import run as run_units
from surgeval.pages import Section, Table
from surgeval.protocols.comparison import Pair, pair_runs
from surgeval.protocols.contract import Chapter, Demo
from surgeval.protocols.result import MeasuredResult
from surgeval.protocols.run_page import RunPage
from surgeval.records import Case
from surgeval.stats import POSITIVE, Combine, Measure, mean_ratio, share_ratio


@dataclass(frozen=True)
class Count:
    """The worker: one unit is one video."""

    data: str
    most: int

    def __call__(self, payload: Any) -> Iterator[Case]:
        for frame in open_dataset(self.data).frames(payload["video"]):
            shown = min(len(frame.instances), self.most)
            yield Case(f"{frame.video}/{frame.name}", frame.video, values={"instruments": shown})


def run_crowd(
    data: str | Path,
    out: str | Path,
    *,
    most: Annotated[int, Help("Count no more than so many in a frame.", least=1)] = 9,
    progress: bool = True,
) -> CrowdResult:
    """Count the instruments of every frame."""
    dataset = open_dataset(data)
    units = [Unit(video.name, {"video": video.name}) for video in dataset.videos()]
    manifest = Manifest("crowd", {"most": most}, dataset_fingerprint(dataset))
    run_units(units, Count(str(data), most), folder=out, manifest=manifest, progress=progress)
    return CrowdResult(Path(out))


def median_video(cases: pl.DataFrame) -> Callable[[Any], Any]:
    """The median of the videos' means, as a function of how often each video was drawn."""
    means = cases.sort("cluster").group_by("cluster", maintain_order=True).agg(pl.col("instruments").mean())
    return lambda drawn: [np.median(np.repeat(means["instruments"], row)) for row in drawn]


MEASURES = (
    Measure(
        key="mean", label="instruments in a frame", unit="measure", higher_is_better=None,
        ratio=mean_ratio("instruments", bounds=POSITIVE), settings=("most",),
        explanation="How many instruments a frame shows, up to the most that are counted.",
    ),
    Measure(
        key="empty", label="empty frames", unit="share", higher_is_better=False,
        ratio=share_ratio(pl.col("instruments") == 0), explanation="The share of frames without an instrument.",
    ),
    Measure(
        key="median", label="instruments in the median video", unit="measure", higher_is_better=None, bounds=POSITIVE,
        statistic=median_video, settings=("most",), combine=Combine(videos="median"),
        explanation="The mean number of instruments in a frame, of the video in the middle.",
    ),
)  # fmt: skip


class CrowdResult(MeasuredResult):
    """The counts of one run."""

    protocol, notes, measures = "crowd", (), MEASURES

    def __init__(self, folder: Path) -> None:
        self.name, self.record, self.cases = folder.name, load_record(folder), load_cases(folder).collect()


def write_page_of(results: Sequence[CrowdResult], out: Path) -> Path:
    """One table; scorecard, recipes and glossary come by themselves."""
    page = RunPage(results, out, results[0].tables)
    numbers = Table("Numbers", results[0].to_frame().drop("signature"), file="tables/numbers.csv", explained=True)
    return page.write([Section("Frames", tables=(numbers,))], "The labelled boxes of every frame are counted.")


def pair(a: CrowdResult, b: CrowdResult) -> Pair:
    """Runs that count up to another number are compared too."""
    return pair_runs(a, b, apart=["most"])


def outcomes(result: CrowdResult) -> pl.DataFrame:
    """A frame is right when it shows two instruments."""
    right = (pl.col("instruments") == 2).alias("correctness")
    return result.cases.select(
        pl.col("id").alias("qID"), pl.col("cluster").alias("video"), pl.lit("all").alias("group"),
        pl.lit(False).alias("ood"), right,
    )  # fmt: skip


def chapter(demo: Demo) -> Chapter:
    """One run on the phantom."""
    result = run_crowd(demo.dataset.root, demo.out / "all")
    table = pl.DataFrame({"": ["instruments in a frame"], "mean": [result.headlines()[0].cell]})
    page = write_page_of([result], demo.out / "all")
    return Chapter(title="how crowded its frames are", page=page, runs=(demo.out / "all",), table=table)
