"""How often intervals hold the truth and comparisons claim a difference that is not there, with few videos.

Two simulated models answer the same videos: 30 questions a video with a correlation of 0.3 inside a video (`accuracy`),
boxes of eight classes with a long tail (`mAP50`), and attention summed over frames against what chance would cover
(`lift`, a ratio of sums). Videos are equally long or lognormal. Every number is measured twice: by the percentile
cluster bootstrap (`old`) and by surgeval's defaults (`new`: leave-one-out t, exchange test).

    python benchmarks/calibration.py [--simulations 1000] [--jobs 2] [--numbers accuracy lift mAP50]
    python benchmarks/calibration.py --gaps small --videos 30 --simulations 300
    python benchmarks/calibration.py --numbers accuracy90 --videos 6 12
    python benchmarks/calibration.py --stored --simulations 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from surgeval.metrics import Ranked, mean_of, weighted_ap
from surgeval.stats import bootstrap_statistic, paired_statistic, share_interval, stream

VIDEOS = (6, 12, 20, 30)
SIZES = ("equal", "lognormal")
RESAMPLES = 1000
CHUNK = 50  # simulations of one task
LARGE = 4000  # videos whose value counts as the truth
# What the better model has more: a difference the old rule claims in most cases at 30 videos, or two thirds of it.
GAPS = {"accuracy": 0.075, "accuracy90": 0.04, "lift": 0.22, "mAP50": 0.12}
SMALLER = 2 / 3
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class World:
    """Two models on the same videos: their number as a function of how often a's and b's videos count."""

    statistic: Callable[[Array], Any]
    sizes: Array
    shares: tuple[Array, Array] | None = None  # right answers and questions of model a, where the number is a share


def sizes_of(rng: np.random.Generator, videos: int, kind: str) -> Array:
    """Questions, boxes or frames per video, 30 on average."""
    if kind == "equal":
        return np.full(videos, 30)
    return np.maximum(2, np.round(30 * np.exp(rng.normal(-0.32, 0.8, videos)))).astype(np.int64)


def accuracy(rng: np.random.Generator, videos: int, kind: str, gap: float, mean: float = 0.6) -> World:
    """Rates of videos are Beta with that mean; both models share two thirds of what makes a video easy."""
    size = sizes_of(rng, videos, kind)
    wrong = 0.4 if mean == 0.6 else 1 - mean  # not 1 − 0.6, which is another float: the table's draws stay the same
    ease = rng.beta(mean / 0.3 - mean, wrong / 0.3 - wrong, videos)
    tilt = rng.normal(0, 0.08, (2, videos)) * np.minimum(ease, 1 - ease) * 2
    rates = np.clip(ease + tilt + np.array([[gap], [0]]) * (1 - ease) / wrong, 0, 1)
    right = rng.binomial(size, rates)
    over, under = right.ravel(), np.tile(size, 2)
    return World(lambda m: m @ over / (m @ under), size, (right[0], size))


def lift(rng: np.random.Generator, videos: int, kind: str, gap: float) -> World:
    """Summed coverage over summed chance; every video has its own lift for each model."""
    size = sizes_of(rng, videos, kind)
    chance = size * rng.beta(8, 24, videos)
    shared = rng.normal(0, 0.2, videos)
    own = np.exp(shared + rng.normal(0, 0.2, (2, videos)) - 0.04) * np.array([[1.3 + gap], [1.3]])
    over, under = (chance * own).ravel(), np.tile(chance, 2)
    return World(lambda m: m @ over / (m @ under), size)


def map50(rng: np.random.Generator, videos: int, kind: str, gap: float) -> World:
    """Boxes of eight classes, the rarest a fifteenth of the most frequent; recall and false alarms vary by video."""
    size = sizes_of(rng, videos, kind)
    shares = 1 / np.arange(1, 9) ** 1.3
    mixes = rng.dirichlet(4 * shares / shares.sum() * 8, videos)
    truths = np.stack([rng.multinomial(n, mix) for n, mix in zip(size, mixes, strict=True)])
    ease = rng.beta(0.6 / 0.3 - 0.6, 0.4 / 0.3 - 0.4, videos)
    rows = []
    for model, more in ((0, gap), (1, 0.0)):
        rate = np.clip(ease + rng.normal(0, 0.08, videos) + more, 0.02, 0.98)
        video, label = (axis.repeat(truths.ravel()) for axis in np.indices(truths.shape).reshape(2, -1))
        hit = rng.random(len(video)) < rate[video]
        alarms = rng.poisson(0.5 * truths * (1.4 - rate[:, None]))
        false_video, false_label = (axis.repeat(alarms.ravel()) for axis in np.indices(alarms.shape).reshape(2, -1))
        for of, classes, good in ((video[hit], label[hit], True), (false_video, false_label, False)):
            scores = rng.beta(*((5, 3) if good else (3, 5)), len(of))
            rows.append((of + model * videos, classes, scores, np.full(len(of), good)))
    video, label, score, hit = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((-score, label))
    start = np.searchsorted(label[order], np.arange(9))
    ranked = Ranked(
        component="i", convention="coco", ties="free", iou=0.5,
        thresholds=np.array([0.5]), averaged=(0,),
        start=start, rows=order, score=score[order], videos=video[order], hits=hit[order][:, None],
        truths=np.tile(truths, (2, 1)), arrival=np.zeros(0, np.int64),
    )  # fmt: skip
    return World(lambda m: [mean_of(weighted_ap(ranked, row)[:, 0]) for row in m], size)


WORLDS: dict[str, Callable[[np.random.Generator, int, str, float], World]] = {
    "accuracy": accuracy, "accuracy90": partial(accuracy, mean=0.9), "lift": lift, "mAP50": map50,
}  # fmt: skip
USUAL = ["accuracy", "lift", "mAP50"]


@cache
def truth(number: str, gap: float) -> float:
    """What model a has on very many videos, less what model b has where there is a gap."""
    world = WORLDS[number](stream(1, "truth", number), LARGE, "equal", gap)
    sides = np.kron(np.eye(2, dtype=np.int64), np.ones(LARGE, dtype=np.int64))
    a, b = np.asarray(world.statistic(sides), dtype=np.float64)
    return float(a - b) if gap else float(a)


def simulate(number: str, kind: str, videos: int, which: range, size: float = 1.0) -> list[dict[str, bool]]:
    """Old and new, for each simulation: a false claim? the number and the difference held? the true gap claimed?"""
    names = [f"v{k:02d}" for k in range(videos)]
    alone, gap = truth(number, 0.0), GAPS[number] * size
    found = []
    for simulation in which:
        row: dict[str, bool] = {}
        for better in (0.0, gap):
            rng = stream(simulation, "calibration", number, kind, videos, str(better))
            world = WORLDS[number](rng, videos, kind, better)
            common: dict[str, Any] = {"batched": True, "resamples": RESAMPLES, "seed": simulation}
            old = paired_statistic(world.statistic, names, method="percentile", **common)
            new = paired_statistic(world.statistic, names, sizes=world.sizes, **common)
            claims = {"old": 0 not in old.interval, "new": new.significant}
            for rule, one in (("old", old), ("new", new)):
                if better:
                    row[f"power {rule}"] = claims[rule]
                    row[f"difference {rule}"] = truth(number, gap) in one.interval
                else:
                    row[f"false {rule}"] = claims[rule]
        rng = stream(simulation, "calibration", number, kind, videos, "0.0")
        world = WORLDS[number](rng, videos, kind, 0.0)

        def single(m: Array, world: World = world) -> Any:
            return world.statistic(np.hstack([m, np.zeros_like(m)]))

        row["alone old"] = alone in bootstrap_statistic(single, names, method="percentile", **common)
        fresh = bootstrap_statistic(single, names, sizes=world.sizes, **common)
        row["alone new"] = alone in (share_interval(*world.shares) if world.shares else fresh)
        found.append(row)
    return found


def table(
    numbers: list[str], simulations: int, jobs: int = 1, videos: Sequence[int] = VIDEOS, size: float = 1.0
) -> list[tuple[str, str, int, dict[str, float]]]:
    """Every cell: number, sizes, videos and the shares of its simulations; gaps are `size` times `GAPS`."""
    cells = [(number, kind, count) for number in numbers for kind in SIZES for count in videos]
    chunks = [range(start, min(start + CHUNK, simulations)) for start in range(0, simulations, CHUNK)]
    tasks = [(*cell, chunk, size) for cell in cells for chunk in chunks]
    with ProcessPoolExecutor(jobs) as pool:
        results = list(pool.map(simulate, *zip(*tasks, strict=True)))
    made = []
    for number, cell in enumerate(cells):
        rows = [row for part in results[number * len(chunks) : (number + 1) * len(chunks)] for row in part]
        made.append((*cell, {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}))
    return made


def stored_runs(simulations: int) -> None:
    """The same where videos are not exchanged: interval and p by leaving out videos alone."""
    print("number     sizes      videos  false claims  holds the difference  power")
    for kind in SIZES:
        for videos in VIDEOS:
            found: dict[float, list[tuple[bool, bool]]] = {0.0: [], GAPS["mAP50"]: []}
            for simulation in range(simulations):
                for gap, rows in found.items():
                    world = map50(stream(simulation, "calibration", "mAP50", kind, videos, str(gap)), videos, kind, gap)
                    names = [f"v{k:02d}" for k in range(videos)]
                    one = paired_statistic(world.statistic, names, sizes=world.sizes, batched=True, mixed=False)
                    rows.append((one.significant, (truth("mAP50", gap) if gap else 0.0) in one.interval))
            (false, _), (power, held) = (np.mean(rows, axis=0) for rows in found.values())
            print(
                f"mAP50      {kind:<10} {videos:>6}  {false:.3f}         {held:.3f}                 {power:.3f}",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--numbers", nargs="+", choices=list(WORLDS), default=USUAL)
    parser.add_argument("--videos", nargs="+", type=int, default=list(VIDEOS))
    parser.add_argument("--gaps", choices=["usual", "small"], default="usual")
    parser.add_argument("--stored", action="store_true", help="only leaving out videos, as for P, R and F1 of triplets")
    chosen = parser.parse_args()
    if chosen.stored:
        print(f"{chosen.simulations} simulations a row, nominal 0.05 and 0.95; videos left out in turn")
        stored_runs(chosen.simulations)
        return
    print(f"{chosen.simulations} simulations a row, nominal 0.05 and 0.95; old → new")
    print("number     sizes      videos  false claims    holds the number  holds the difference  power")
    size = SMALLER if chosen.gaps == "small" else 1.0
    for number, kind, videos, share in table(chosen.numbers, chosen.simulations, chosen.jobs, chosen.videos, size):
        pairs = [f"{share[f'{what} old']:.3f} → {share[f'{what} new']:.3f}"
                 for what in ("false", "alone", "difference", "power")]  # fmt: skip
        print(f"{number:<10} {kind:<10} {videos:>6}  {'   '.join(pairs)}", flush=True)


if __name__ == "__main__":
    main()
