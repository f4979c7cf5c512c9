"""The demo's chapter on triplets: three simulated detectors, scored, reported and compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from surgeval.cli._console import progress

if TYPE_CHECKING:
    import polars as pl

    from surgeval.datasets import Dataset
    from surgeval.protocols.triplets import TripletScores

QUALITIES: tuple[Literal["good", "fair", "poor"], ...] = ("good", "fair", "poor")
RESAMPLES = 200  # enough to see which detector is better; scores of your own deserve the default


@dataclass(frozen=True)
class TripletsChapter:
    """What the chapter made: a page, a folder per detector, and a small table to print."""

    page: Path
    folders: dict[str, Path]
    table: pl.DataFrame
    sentences: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        folders = {name: str(folder) for name, folder in self.folders.items()}
        return {"report": str(self.page), "folders": folders, "detectors": self.table.to_dicts()}


def triplets_chapter(dataset: Dataset, out: Path) -> TripletsChapter:
    """Write three prediction files below `out`, score them and compare neighbours."""
    import polars as pl

    from surgeval.datasets import MemoryDataset
    from surgeval.phantom import simulate_detector
    from surgeval.protocols.triplets import compare_triplets, score_triplets
    from surgeval.report import write_triplets_report

    out.mkdir(parents=True, exist_ok=True)
    videos = dataset.videos()
    # Walked six times below: reading the truth files takes longer than scoring.
    held = MemoryDataset(dataset.space, (frame for video in videos for frame in dataset.frames(video.name)), videos)
    scored: dict[str, TripletScores] = {}
    with progress("detectors") as bar:
        for quality in bar.track(QUALITIES, description="scoring"):
            file = out / f"{quality}.parquet"
            simulate_detector(held, quality).write_parquet(file)
            scored[quality] = score_triplets(held, file, resamples=RESAMPLES, name=quality)
            scored[quality].save(out / quality)
    page = write_triplets_report(scored["good"], out / "good")
    rows = [
        {
            "detector": name,
            **{f"{component.upper()} mAP50": f"{one.number(component).estimate:.3f}" for component in ("i", "v", "t")},
            "IVT mAP50": str(one.number()),
            "F1": f"{one.number(metric='F1').estimate:.3f}",
        }
        for name, one in scored.items()
    ]
    pairs = (("good", "fair"), ("fair", "poor"))
    sentences = tuple(f"{a} − {b}, IVT mAP50: {compare_triplets(scored[a], scored[b]).difference()}" for a, b in pairs)
    return TripletsChapter(page, {name: out / name for name in scored}, pl.DataFrame(rows), sentences)
