"""CPU time of `surgeval.stats.bootstrap_slices` against a Python loop over the videos of every resample.

50 000 questions, 200 videos, 26 slices, 1 000 resamples. The loop takes minutes, so it runs on a few resamples and
its time is scaled linearly to 1 000. `--coverage` prints instead how often 95 % intervals hold the true value.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from surgeval.stats import bootstrap_mean, bootstrap_slices, slices_by, stream

QUESTIONS, VIDEOS, RESAMPLES = 50_000, 200, 1_000
GOAL = 100
T = TypeVar("T")
Scheme = Literal["cluster", "two_level"]
Draw = Callable[[np.random.Generator, npt.NDArray[Any]], npt.NDArray[Any]]


def data() -> tuple[npt.NDArray[Any], list[str], dict[str, npt.NDArray[Any]]]:
    """0/1 scores with a video effect; slices: 15 leaves, 5 groups, 5 formats and all rows."""
    rng = stream(7, "benchmark")
    video = rng.integers(0, VIDEOS, QUESTIONS)
    leaf = rng.integers(0, 15, QUESTIONS)
    kind = rng.integers(0, 5, QUESTIONS)
    right = (rng.random(QUESTIONS) < rng.beta(6, 3, VIDEOS)[video]).astype(np.int64)
    slices = {
        **slices_by("leaf", leaf),
        **slices_by("group", leaf // 3),
        **slices_by("format", kind),
        "overall": np.ones(QUESTIONS, dtype=bool),
    }
    return right, [f"video{number:03d}" for number in video], slices


def loop(
    right: npt.NDArray[Any], videos: list[str], slices: dict[str, npt.NDArray[Any]], inner: Draw, resamples: int
) -> dict[str, tuple[float, float, float]]:
    """The peer: for every slice and resample, the mean over the drawn videos of the mean of each one's questions."""
    rng = np.random.default_rng(42)
    names = np.array(videos)
    found = {}
    for name, mask in slices.items():
        scores, of = right[mask].astype(float), names[mask]
        groups = [scores[of == video] for video in np.unique(of)]
        means = np.empty(resamples)
        for resample in range(resamples):
            drawn = rng.integers(0, len(groups), len(groups))
            means[resample] = np.mean([inner(rng, groups[video]).mean() for video in drawn])
        low, high = np.percentile(means, [2.5, 97.5])
        found[name] = float(np.mean([group.mean() for group in groups])), float(low), float(high)
    return found


def whole(rng: np.random.Generator, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return scores


def redrawn(rng: np.random.Generator, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return scores[rng.integers(0, len(scores), len(scores))]


def measured(work: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """CPU seconds of the fastest repeat, and its result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def speed(peer_resamples: int) -> bool:
    right, videos, slices = data()
    print(f"{QUESTIONS} questions, {VIDEOS} videos, {len(slices)} slices, {RESAMPLES} resamples; CPU seconds")
    print(f"the loop ran {peer_resamples} resamples, scaled linearly to {RESAMPLES}")
    fast_enough = True
    cases: list[tuple[Scheme, Draw]] = [("cluster", whole), ("two_level", redrawn)]
    for scheme, inner in cases:
        work = partial(
            bootstrap_slices, right, videos, slices, scheme=scheme, point="macro", resamples=RESAMPLES,
            method="percentile",
        )  # fmt: skip
        ours, intervals = measured(work, repeats=3)
        setup, _ = measured(partial(loop, right, videos, slices, whole, 1))
        part, peer = measured(partial(loop, right, videos, slices, inner, peer_resamples))
        # The grouping of the rows is done once: only the resampling scales.
        theirs = setup + max(part - setup, 0.0) * RESAMPLES / peer_resamples
        same = max(abs(intervals[name].estimate - estimate) for name, (estimate, _, _) in peer.items())
        widths = [(high - low) / intervals[name].width for name, (_, low, high) in peer.items()]
        ratio = theirs / ours
        agree = same < 1e-12 and 0.8 < float(np.mean(widths)) < 1.2
        fast_enough &= ratio >= GOAL and agree
        print(
            f"{scheme:9s}  ours {ours:.3f}  loop {theirs:.1f}  ratio {ratio:.0f}×  "
            f"largest difference of estimates {same:.0e}, mean width ratio {np.mean(widths):.2f}"
        )
    print(f"goal: {GOAL}× in both schemes: {'met' if fast_enough else 'NOT MET'}")
    return fast_enough


def coverage(simulations: int) -> None:
    """Share of simulated data sets whose 95 % interval holds the true mean (macro = flat: equal video sizes)."""
    print(f"{simulations} simulated data sets per row, true mean 0.6, n questions per video, 95 % intervals")
    print("videos  n  ICC   cluster       BCa           two_level     plain")
    for videos, n, icc in ((4, 5, 0.1), (10, 5, 0.1), (20, 5, 0.0), (20, 5, 0.3), (50, 5, 0.1)):
        rng = stream(11, "coverage", videos, n, str(icc))
        names = np.repeat(np.arange(videos), n)
        cells: dict[str, list[tuple[bool, float]]] = {"cluster": [], "bca": [], "two_level": [], "plain": []}
        for number in range(simulations):
            rate = rng.beta(0.6 * (1 / icc - 1), 0.4 * (1 / icc - 1), videos) if icc else np.full(videos, 0.6)
            right = (rng.random(videos * n) < np.repeat(rate, n)).astype(np.int64)
            for cell, found in cells.items():
                scheme: Any = "cluster" if cell == "bca" else cell
                method: Any = "bca" if cell == "bca" else "percentile"
                interval = bootstrap_mean(right, names, scheme=scheme, method=method, resamples=1000, seed=number)
                found.append((0.6 in interval, interval.width))
        shown = [f"{np.mean([hit for hit, _ in c]):.3f} ({np.mean([w for _, w in c]):.3f})" for c in cells.values()]
        print(f"{videos:6d}  {n}  {icc:.1f}   " + " ".join(shown))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-resamples", type=int, default=150, help="resamples the loop really runs")
    parser.add_argument("--coverage", action="store_true", help="print the coverage table of docs/statistics.md")
    parser.add_argument("--simulations", type=int, default=600)
    options = parser.parse_args()
    if options.coverage:
        coverage(options.simulations)
        return 0
    return 0 if speed(options.peer_resamples) else 1


if __name__ == "__main__":
    sys.exit(main())
