"""Count the instruments of every frame, in a resumable run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from surgeval.console import rich_console
from surgeval.datasets import dataset_fingerprint, open_dataset
from surgeval.engine import Manifest, Unit, load_cases
from surgeval.engine import run as run_units
from surgeval.pages import Section, Table, write_page
from surgeval.protocols.contract import Chapter, Compared, Comparison, Demo, Headline
from surgeval.protocols.result import RunResult
from surgeval.records import Case
from surgeval.stats import bootstrap_mean, paired_difference


@dataclass(frozen=True)
class Count:
    """The worker: one unit is one video."""

    data: str
    most: int

    def __call__(self, payload: Any) -> Iterator[Case]:
        for frame in open_dataset(self.data).frames(payload["video"]):
            shown = min(len(frame.instances), self.most)
            yield Case(f"{frame.video}/{frame.name}", frame.video, values={"instruments": shown})


def run(
    data: Annotated[Path, typer.Option("--data")], out: Annotated[Path, typer.Option("--out")], most: int = 9
) -> None:
    """Count instruments.

    Example: [bold]surgeval run crowd --data phantom --out runs/crowd[/bold]
    """
    dataset = open_dataset(data)
    units = [Unit(video.name, {"video": video.name}) for video in dataset.videos()]
    manifest = Manifest("crowd", {"most": most}, dataset_fingerprint(dataset))
    run_units(units, Count(str(data), most), folder=out, manifest=manifest, progress=False)
    rich_console().print(f"open {write_page_of([load_crowd(out)], out)}")


class CrowdResult(RunResult):
    """The counts of one run."""

    protocol, notes = "crowd", ()

    def __init__(self, name: str, cases: pl.DataFrame) -> None:
        self.name, self.cases = name, cases

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        return {"frames": self.cases.select("id", "cluster", "instruments")}

    def headlines(self) -> tuple[Headline, ...]:
        mean = bootstrap_mean(self.cases["instruments"], self.cases["cluster"])
        return (Headline("mean", "instruments in a frame", mean, higher_is_better=None),)


def load_crowd(folder: Path) -> CrowdResult:
    """A finished run."""
    return CrowdResult(folder.name, load_cases(folder).collect())


def write_page_of(results: Sequence[CrowdResult], out: Path) -> Path:
    """One table."""
    section = Section("Frames", tables=(Table("Every frame", results[0].to_frame()),))
    return write_page(out / "report.html", results[0].name, [section], kind="crowd")


def compare_crowd(a: CrowdResult, b: CrowdResult) -> Comparison:
    """Paired by frame, over videos."""
    pairs = a.cases.join(b.cases, on="id")
    difference = paired_difference(pairs["instruments"], pairs["instruments_right"], pairs["cluster"])
    number = Compared("mean", "instruments in a frame", difference, higher_is_better=None)
    return Comparison(protocol="crowd", a=a.name, b=b.name, numbers=(number,))


def outcomes(result: CrowdResult) -> pl.DataFrame:
    """A frame is right when it shows two instruments."""
    right = (pl.col("instruments") == 2).alias("correctness")
    return result.cases.select(
        pl.col("id").alias("qID"), pl.col("cluster").alias("video"), pl.lit("all").alias("group"),
        pl.lit(False).alias("ood"), right,
    )  # fmt: skip


def chapter(demo: Demo) -> Chapter:
    """One run on the phantom."""
    run(demo.dataset.root, demo.out / "all")
    result = load_crowd(demo.out / "all")
    table = pl.DataFrame({"": ["instruments in a frame"], "mean": [result.headlines()[0].interval.cell()]})
    page = demo.out / "all" / "report.html"
    return Chapter(title="how crowded its frames are", page=page, runs=(demo.out / "all",), table=table)
