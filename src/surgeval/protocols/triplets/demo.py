"""The demo's chapter on triplets: a trained detector beside two simulated ones, scored, reported and compared."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from surgeval.console import models_missing, progress_bar
from surgeval.errors import MissingExtra
from surgeval.files import write_parquet_file
from surgeval.protocols.contract import Chapter, Demo

if TYPE_CHECKING:
    from pathlib import Path

    from surgeval.datasets import Dataset
    from surgeval.protocols.triplets.result import TripletScores

QUALITIES: tuple[Literal["good", "poor"], ...] = ("good", "poor")
EVERY = 6  # frames: all detectors are scored on the same ones, and a network needs its time for each
_PICTURES = 36  # of the worst frames: without them the page shows boxes on an empty canvas
_FILMED = 4  # frames of one operation: a quarter of them shows what the network does


def chapter(demo: Demo) -> Chapter:
    """Detect with the embedded network and two simulated detectors, score all three and compare neighbours."""
    dataset, out = demo.dataset, demo.out
    import polars as pl

    from surgeval.datasets import MemoryDataset
    from surgeval.phantom import simulate_detector
    from surgeval.protocols.triplets.demo_network import NETWORK
    from surgeval.protocols.triplets.method import score_triplets
    from surgeval.protocols.triplets.page import write_page_of

    out.mkdir(parents=True, exist_ok=True)
    videos = dataset.videos()
    # Walked many times below: reading the truth files takes longer than scoring.
    frames = (frame for video in videos for frame in list(dataset.frames(video.name))[::EVERY])
    sampled = MemoryDataset(dataset.space, frames, videos)
    missing = models_missing()
    names = (*QUALITIES, *(() if missing else (NETWORK,)))
    scored: dict[str, TripletScores] = {}
    pages: dict[str, Path] = {}
    with progress_bar("detectors") as bar:
        for quality in QUALITIES:
            write_parquet_file(simulate_detector(sampled, quality), out / f"{quality}.parquet")
        films = {} if missing else _looked(dataset, sampled, out)
        for name in bar.track(names, "scoring", len(names)):
            title = f"{name} (trained network)" if name == NETWORK else f"{name} (simulated)"
            scored[name] = score_triplets(out / f"{name}.parquet", sampled, name=title, pictures=_PICTURES)
            folder = out / name
            scored[name].save(folder)
            pages[name] = write_page_of([scored[name]], folder)
    rows = [
        {
            "detector": name,
            "is": "a trained network" if name == NETWORK else "simulated",
            **{
                f"{component.upper()} mAP50": f"{scores.number(component).estimate:.3f}"
                for component in ("i", "v", "t")
            },
            "IVT mAP50": str(scores.number()),
            "F1": f"{scores.number(metric='F1').estimate:.3f}",
        }
        for name, scores in scored.items()
    ]
    return Chapter(
        title="a trained detector beside two simulated ones" if films else "two simulated detectors",
        page=pages[names[-1]] if films else pages["good"],
        runs=tuple(out / name for name in scored),
        table=pl.DataFrame(rows),
        sentences=(*_about_network(scored, missing), *_neighbours(scored)),
        pages=films,
    )


def _looked(dataset: Dataset, sampled: Dataset, out: Path) -> dict[str, Path]:
    """Write what the embedded network finds on all frames that are scored; its film of one operation."""
    from surgeval.protocols.triplets.demo_network import NETWORK, film_boxes, found_by_network, opened_network

    videos = sampled.videos()
    shown = next((video for video in videos if video.split == "test"), videos[0]).name
    with opened_network() as network:
        frames = (frame for video in videos for frame in sampled.frames(video.name))
        write_parquet_file(found_by_network(network, frames), out / f"{NETWORK}.parquet")
        film = film_boxes(network, list(dataset.frames(shown))[::_FILMED], out / f"{NETWORK}.mp4")
    return {f"A film of what {NETWORK} finds in operation {shown}": film}


def _about_network(scored: Mapping[str, TripletScores], missing: str) -> tuple[str, ...]:
    """What the odd one among them is, or why it is left out."""
    from surgeval.protocols.triplets.demo_network import NETWORK

    if missing:
        return (f"{NETWORK}, a trained network, is left out: {MissingExtra('detect', missing)}",)
    precision = scored[NETWORK].number("i")
    return (
        f"{NETWORK} is a real network that was taught on other operations of the phantom: it finds instruments with a "
        f"mAP50 of {precision}; the others are the labels, spoiled",
    )


def _neighbours(scored: Mapping[str, TripletScores]) -> tuple[str, ...]:
    """Each detector compared with the next worse one."""
    from surgeval.protocols.comparison import compare_pair
    from surgeval.protocols.triplets.compare import pair_triplets

    order = sorted(scored, key=lambda name: -scored[name].number().estimate)
    compared = (compare_pair(scored[a], scored[b], pair_triplets(scored[a], scored[b])) for a, b in pairwise(order))
    return tuple(f"{one.a} − {one.b}, IVT mAP50: {one.difference()}" for one in compared)
