"""CPU time and memory of `surgeval.stats.rank_outcomes` at challenge size, and the simulations of docs/ranking.md.

30 models, 10 buckets, 50 000 questions, 200 videos, 10 000 resamples: under 60 CPU-seconds and 2 GB for each step, else
the exit code is 1. `--claims` counts false "better" claims under clustering, `--power` true ones, `--equal` how often
challenges of equal models separate them, `--irrelevant` how often an entrant reorders the others, by collapse variant.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from surgeval.stats import (
    Outcomes,
    calibration,
    leave_one_bucket_out,
    leave_one_model_out,
    rank_outcomes,
    stability,
    stream,
)
from surgeval.stats.ranking.options import Collapse

MODELS, BUCKETS, QUESTIONS, VIDEOS = 30, 10, 50_000, 200
MOST_SECONDS, MOST_MEGABYTES = 60, 2048
NAMES = [f"group{k}|{side}" for k in range(5) for side in ("id", "ood")]


def challenge() -> tuple[dict[str, npt.NDArray[np.bool_]], list[str], list[str]]:
    """Close competitors: skills 0.2 logits apart, videos and questions of different difficulty, ten of them tied."""
    rng = stream(3, "benchmark", "ranking")
    video, bucket = rng.integers(0, VIDEOS, QUESTIONS), rng.integers(0, BUCKETS, QUESTIONS)
    hard = rng.normal(0, 0.7, VIDEOS)[video] + rng.normal(0, 1, QUESTIONS)
    skill = np.maximum(np.arange(MODELS) - 10, 0) * -0.1 + 1
    right = {
        f"model{m:02d}": rng.random(QUESTIONS) < 1 / (1 + np.exp(hard - skill[m] - rng.normal(0, 0.3, VIDEOS)[video]))
        for m in range(MODELS)
    }
    return right, [NAMES[b] for b in bucket], [f"video{v:03d}" for v in video]


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(long: bool) -> bool:
    right, buckets, videos = challenge()
    size = f"{MODELS} models, {BUCKETS} buckets, {QUESTIONS} questions, {VIDEOS} videos"
    print(f"{size}, 10000 resamples; CPU seconds (limit {MOST_SECONDS}), MB (limit {MOST_MEGABYTES})")
    start = time.process_time()
    outcomes = Outcomes.of(right, buckets, videos)
    print(f"reading    {time.process_time() - start:6.1f}")
    over: list[str] = []

    def spent(name: str, since: float) -> float:
        seconds = time.process_time() - since
        if seconds >= MOST_SECONDS:
            over.append(f"{name} took {seconds:.0f} CPU-seconds")
        return seconds

    for name, how in TESTS.items():
        start = time.process_time()
        ranking = rank_outcomes(outcomes, **how, resolve="all")
        seconds = spent(name, start)
        print(f"{name:10s} {seconds:6.1f}  peak {peak():5.0f} MB  {len(ranking.final_order)} places")
    ranking = rank_outcomes(outcomes)
    for work in (leave_one_bucket_out, leave_one_model_out):
        start = time.process_time()
        found = work(ranking)
        print(f"{work.__name__:22s} {spent(work.__name__, start):5.1f}  smallest tau {np.nanmin(found.tau):.3f}")
    outer = 200 if long else 10
    start = time.process_time()
    tau = stability(ranking, outer=outer, resamples=1000).mean_tau
    seconds = spent("stability", start)
    print(f"stability  {outer} × 1000: {seconds:.1f}  mean tau {tau:.3f}  peak {peak():.0f} MB")
    start = time.process_time()
    equal = calibration(ranking, challenges=outer)
    seconds = spent("calibration", start)
    print(f"calibration {outer} × 999: {seconds:.1f}  false claims {equal.overall:.3f}  peak {peak():.0f} MB")
    if peak() >= MOST_MEGABYTES:
        over.append(f"the process took {peak():.0f} MB")
    print(f"goal: {'NOT MET: ' + '; '.join(over) if over else 'met'}")
    return not over


def answers(rng: np.random.Generator, skill: npt.NDArray[Any], video: npt.NDArray[Any], taste: float) -> Any:
    """0/1 answers [question, model]; `taste` is how much a model's skill varies from video to video (logits)."""
    videos, models = int(video.max()) + 1, len(skill)
    hard = rng.normal(0, 0.7, videos)[video] + rng.normal(0, 1, len(video))
    ease = skill + rng.normal(0, taste, (videos, models))[video] - hard[:, None]
    return rng.random((len(video), models)) < 1 / (1 + np.exp(-ease))


TESTS: dict[str, dict[str, Any]] = {
    "cluster": {}, "two_level": {"scheme": "two_level"}, "question": {"scheme": "question"},
    "exchange": {"test": "exchange"},
}  # fmt: skip


def sizes_of(rng: np.random.Generator, videos: int, n: int, unequal: bool) -> npt.NDArray[Any]:
    """Questions of each video: n, or lognormal around n as real videos are (the longest some ten times the median)."""
    drawn = n * np.exp(rng.normal(0, 1, videos)) if unequal else np.full(videos, n)
    return np.maximum(1, np.round(drawn)).astype(np.int64)


def claims(simulations: int) -> None:
    """Share of pairs of equally good models that are called different in a bucket, at alpha 0.05."""
    print(
        f"{simulations} simulated buckets per row, 6 equally good models (15 pairs), n questions per video, alpha 0.05"
    )
    print("videos   n  sizes      taste " + "  ".join(f"{name:>9s}" for name in (*TESTS, "calibration")))
    plans = [(v, 10, sizes, 0.5) for v in (6, 12, 20, 30) for sizes in ("equal", "unequal")]
    plans += [(6, 10, "equal", 0.0), (20, 10, "equal", 0.0), (20, 10, "equal", 1.0), (6, 40, "equal", 1.5),
              (20, 40, "equal", 0.5), (20, 40, "unequal", 1.5)]  # fmt: skip
    for videos, n, sizes, taste in plans:
        rng = stream(5, "claims", videos, n, sizes, str(taste))
        hits: dict[str, list[float]] = {name: [] for name in (*TESTS, "calibration")}
        for number in range(simulations):
            video = np.repeat(np.arange(videos), sizes_of(rng, videos, n, sizes == "unequal"))
            right = answers(rng, np.zeros(6), video, taste)
            given = {f"m{m}": right[:, m] for m in range(6)}
            for name, how in TESTS.items():
                made = rank_outcomes(
                    given, ["b"] * len(video), video, **how, resamples=999, seed=number, resolve="none"
                )
                hits[name].append(float(made.better.sum()) / 15)
                if name == "cluster" and number % 10 == 0:  # what `calibration` measures from this data alone
                    hits["calibration"].append(calibration(made, challenges=20).overall)
        shares = "  ".join(f"{np.mean(found):9.3f}" for found in hits.values())
        print(f"{videos:6d}  {n:2d}  {sizes:9s} {taste:5.1f}  {shares}", flush=True)


def power(simulations: int) -> None:
    """How often a true difference is claimed: the price of a test that keeps its level."""
    print(f"{simulations} simulated buckets per row, one model 0.6 logits ahead of 5 equal ones, 10 questions a video")
    print("videos  sizes      " + "  ".join(f"{name:>9s}" for name in ("cluster", "exchange")))
    for videos in (6, 12, 20, 30):
        for sizes in ("equal", "unequal"):
            rng = stream(6, "power", videos, sizes)
            hits: dict[str, list[float]] = {"cluster": [], "exchange": []}
            for number in range(simulations):
                video = np.repeat(np.arange(videos), sizes_of(rng, videos, 10, sizes == "unequal"))
                right = answers(rng, np.array([0.6, 0, 0, 0, 0, 0]), video, 0.5)
                given = {f"m{m}": right[:, m] for m in range(6)}
                for name, found in hits.items():
                    made = rank_outcomes(given, ["b"] * len(video), video, **TESTS[name], resamples=999, seed=number,
                                resolve="none")  # fmt: skip
                    found.append(float(made.better[0, 0].sum()) / 5)
            print(
                f"{videos:6d}  {sizes:9s}  " + "  ".join(f"{np.mean(found):9.3f}" for found in hits.values()),
                flush=True,
            )


def equal(simulations: int) -> None:
    """How often whole challenges separate equal models, and what `calibration` says of it from one challenge."""
    print(
        f"{simulations} simulated challenges: 6 equally good models, 10 buckets, n videos with 10 questions per bucket"
    )
    print("videos  test        pairs in which one dominates   calibration   sole first place")
    for videos in (6, 12, 20, 30):
        # Five groups ask about the same videos, in distribution and out.
        video = np.tile(np.repeat(np.arange(videos), 10), 10) + np.repeat(np.tile([0, videos], 5), 10 * videos)
        buckets = np.repeat(NAMES, 10 * videos)
        for name in ("cluster", "exchange"):
            rng = stream(7, "equal", videos)
            dominated, sole, measured = [], [], []
            for number in range(simulations):
                right = answers(rng, np.zeros(6), video, 0.3)
                given = {f"m{m}": right[:, m] for m in range(6)}
                made = rank_outcomes(given, buckets, video, **TESTS[name], resamples=999, seed=number)
                dominated.append(float((made.wins > made.wins.T).sum()) / 15)
                sole.append(len(made.final_order[0]) == 1)
                if number % 20 == 0:
                    measured.append(calibration(made, challenges=20).dominated)
            shares = f"{np.mean(dominated):28.3f} {np.mean(measured):13.3f} {np.mean(sole):18.3f}"
            print(f"{videos:6d}  {name:9s} {shares}", flush=True)


def irrelevant(simulations: int) -> None:
    """How often one more model changes which of the others' top three is ahead of which."""
    print(f"{simulations} simulated challenges: 5 close models, 10 buckets, 15 videos each, 10 questions per video")
    print("share in which a newcomer changes the order among the top three (in brackets: who holds the first place)")
    kinds = {"hopeless": -4.0, "weak": -0.7, "last but close": -0.35}
    print("collapse     " + "  ".join(f"{kind:>15s}" for kind in kinds))
    videos = np.tile(np.repeat(np.arange(15), 10), 10)
    buckets = np.repeat(NAMES, 150)
    changed = {(c, kind): np.zeros(2) for c in get_args(Collapse) for kind in kinds}
    for number in range(simulations):
        rng = stream(9, "irrelevant", number)
        skill = np.concatenate([rng.normal(0, 0.2, 5), list(kinds.values())])
        skill[5:] += skill[:5].min() * np.array([0, 1, 1])
        right = answers(rng, skill, videos, 0.3)
        for collapse in get_args(Collapse):
            before = _places(right[:, :5], buckets, videos, collapse, number)
            top = np.flatnonzero(before <= 3)
            for k, kind in enumerate(kinds):
                after = _places(right[:, [0, 1, 2, 3, 4, 5 + k]], buckets, videos, collapse, number)[:5]
                if after.min() > 1:
                    continue  # the newcomer won: it was not irrelevant
                signs = [np.sign(p[top][:, None] - p[top]) for p in (before, after)]
                first = (before == 1) != (after == 1)
                changed[collapse, kind] += bool((signs[0] != signs[1]).any()), bool(first.any())
    for collapse in get_args(Collapse):
        cells = [changed[collapse, kind] / simulations for kind in kinds]
        print(f"{collapse:12s} " + "  ".join(f"{a:7.3f} ({b:.3f})" for a, b in cells))


def _places(right: Any, buckets: Any, videos: Any, collapse: Any, seed: int) -> Any:
    given = {f"m{m}": right[:, m] for m in range(right.shape[1])}
    return rank_outcomes(given, buckets, videos, collapse=collapse, resamples=999, seed=seed, resolve="none").final_rank


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", action="store_true", help="false claims of the pairwise test")
    parser.add_argument("--power", action="store_true", help="true claims of the pairwise test")
    parser.add_argument("--equal", action="store_true", help="whole challenges of equal models")
    parser.add_argument("--irrelevant", action="store_true", help="entrants that reorder the others")
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--long", action="store_true", help="stability with all 200 outer resamples")
    options = parser.parse_args()
    if options.claims or options.power or options.equal or options.irrelevant:
        if options.claims:
            claims(options.simulations)
        if options.power:
            power(options.simulations)
        if options.equal:
            equal(options.simulations)
        if options.irrelevant:
            irrelevant(options.simulations)
        return 0
    return 0 if speed(options.long) else 1


if __name__ == "__main__":
    sys.exit(main())
