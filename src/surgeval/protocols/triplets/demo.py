"""The demo's chapter on triplets: three simulated detectors, scored, reported and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from surgeval.console import progress
from surgeval.protocols.contract import Chapter, Demo

if TYPE_CHECKING:
    from surgeval.protocols.triplets.result import TripletScores

QUALITIES: tuple[Literal["good", "fair", "poor"], ...] = ("good", "fair", "poor")
RESAMPLES = 200  # enough to see which detector is better; scores of your own deserve the default


def chapter(demo: Demo) -> Chapter:
    """Write three prediction files, score them and compare neighbours."""
    dataset, out = demo.dataset, demo.out
    import polars as pl

    from surgeval.datasets import MemoryDataset
    from surgeval.phantom import simulate_detector
    from surgeval.protocols.triplets.compare import compare_triplets
    from surgeval.protocols.triplets.method import score_triplets
    from surgeval.protocols.triplets.page import write_triplets_report

    out.mkdir(parents=True, exist_ok=True)
    videos = dataset.videos()
    # Walked six times below: reading the truth files takes longer than scoring.
    held = MemoryDataset(dataset.space, (frame for video in videos for frame in dataset.frames(video.name)), videos)
    scored: dict[str, TripletScores] = {}
    with progress("detectors") as bar:
        for quality in bar.track(QUALITIES, "scoring", len(QUALITIES)):
            file = out / f"{quality}.parquet"
            simulate_detector(held, quality).write_parquet(file)
            scored[quality] = score_triplets(held, file, resamples=RESAMPLES, name=quality)
    pages = {name: write_triplets_report(one, out / name) for name, one in scored.items()}
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
    return Chapter(
        title="three simulated detectors, scored and compared",
        page=pages["good"],
        runs=tuple(out / name for name in scored),
        table=pl.DataFrame(rows),
        sentences=sentences,
    )
