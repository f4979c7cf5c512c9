"""CPU time and memory of scoring 50 000 FOCUS answers with intervals, against a plain Python loop over resamples.

200 videos, all eight formats, judged answers by recorded verdicts. The peer makes the same table of both accuracies the
way the challenge's package is described to: resample by resample, video by video. It takes minutes, so it runs on a few
resamples and its time is scaled linearly; reading and comparing the answers is not counted in its time.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from surgeval.protocols.focus import RESAMPLES, FocusScores, score_focus
from surgeval.protocols.focus.scoring.summary import Scheme, focus_numbers
from surgeval.qa import Panel, TableJudge
from surgeval.stats import stream
from surgeval.vocab import capabilities

QUESTIONS, VIDEOS = 50_000, 200
GOAL = 100
SCHEMES: tuple[tuple[Scheme, bool], ...] = (("cluster", False), ("two_level", True))  # whether questions are redrawn
T = TypeVar("T")
Option = dict[str, Any]
# format → options, and for a number below 60 a reference with a wrong answer
FORMATS: dict[str, tuple[Option, Callable[[int], tuple[str, str]]]] = {
    "binary": ({}, lambda n: ("yes", "no")),
    "number": ({}, lambda n: (str(n), str(n + 1))),
    "percentage": ({}, lambda n: (f"{n}%", f"{n + 30} %")),
    "fo_class": ({}, lambda n: ("clip, sponge" if n % 2 else "Needle", "Drain, none" if n % 5 else "Suture")),
    "time": ({"threshold_seconds": 4.0}, lambda n: (f"00:{n:02d}:07", f"01:{n:02d}:07")),
    "multiple_choice": ({}, lambda n: ("ABCD"[n % 4], "BCDA"[n % 4])),
    "open_ended": ({}, lambda n: ("to stop the bleeding", "to cut the duct")),
    "matching": ({"pattern": "[A-D]-[1-4]"}, lambda n: (f"A-{n % 4 + 1}", f"B-{n % 4 + 1}")),
}


def write_files(folder: Path) -> None:
    """Requests, references, responses and verdicts of one submission; videos differ in difficulty."""
    rng = stream(5, "benchmark", "focus")
    leaves = [leaf.value for leaf in capabilities()]
    video = rng.integers(0, VIDEOS, QUESTIONS)
    right = rng.random(QUESTIONS) < rng.beta(6, 3, VIDEOS)[video]
    leaf, style = rng.integers(0, len(leaves), QUESTIONS), rng.integers(0, len(FORMATS), QUESTIONS)
    ood, number = rng.random(QUESTIONS) < 0.3, rng.integers(0, 60, QUESTIONS)
    names = list(FORMATS)
    requests, references, responses, verdicts = [], [], [], {}
    for k in range(QUESTIONS):
        qid, name = f"q{k:05d}", names[style[k]]
        options, answers = FORMATS[name]
        truth, wrong = answers(int(number[k]))
        requests.append({"qID": qid, "videoID": f"video{video[k]:03d}", "start_time": 0, "end_time": 60,
                         "procedure_type": "cholecystectomy", "question": "What is in view?"})  # fmt: skip
        references.append({"qID": qid, "primary": leaves[leaf[k]], "format": name, "format_kwargs": options,
                           "answer": truth, "ood": bool(ood[k])})  # fmt: skip
        content = truth if right[k] else wrong
        if name == "open_ended":  # no two answers are the same: the screening of answers must look at each
            content = f"{content} near the clip that was placed {k} frames ago"
        responses.append({"qID": qid, "content": content, "latency": 2.0})
        verdicts[qid] = bool(right[k])
    for name, rows in (("requests", requests), ("references", references), ("responses", responses),
                       ("verdicts", verdicts)):  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")


def score(folder: Path, **options: Any) -> FocusScores:
    """From the files to the summary, in one thread."""
    files = [folder / f"{name}.json" for name in ("requests", "references", "responses")]
    judge = Panel([TableJudge(folder / "verdicts.json")])
    return score_focus(files[2], files[0], files[1], judge=judge, track="segment", concurrency=1, **options)


def loop(results: pl.DataFrame, resamples: int, redraw: bool) -> dict[tuple[str, str], tuple[float, ...]]:
    """The peer: for every row of the summary and every resample, the drawn videos one by one.

    Returns the mean of video means, its interval, the flat accuracy and its interval.
    """
    rng = np.random.default_rng(42)
    found = {}
    for key, chosen in slices(results):
        videos: dict[str, list[float]] = {}
        for video, right in chosen.select("video", "correctness").iter_rows():
            videos.setdefault(video, []).append(float(right))
        groups = [np.array(scores) for scores in videos.values()]
        macro, flat = np.empty(resamples), np.empty(resamples)
        for resample in range(resamples):
            means, total, count = [], 0.0, 0
            for slot in rng.integers(0, len(groups), len(groups)):
                scores = rng.choice(groups[slot], len(groups[slot])) if redraw else groups[slot]
                means.append(scores.mean())
                total, count = total + scores.sum(), count + len(scores)
            macro[resample], flat[resample] = np.mean(means), total / count
        every = np.concatenate(groups)
        found[key] = (
            float(np.mean([scores.mean() for scores in groups])), *np.percentile(macro, [2.5, 97.5]).tolist(),
            float(every.mean()), *np.percentile(flat, [2.5, 97.5]).tolist(),
        )  # fmt: skip
    return found


def slices(results: pl.DataFrame) -> Iterator[tuple[tuple[str, str], pl.DataFrame]]:
    """The rows of the summary that have intervals: the whole, then what the challenge asks for part by part."""
    yield ("overall", "MEAN"), results
    side = pl.when("ood").then(pl.lit("ood")).otherwise(pl.lit("id"))
    named = results.with_columns(
        leaf=pl.col("primary"), robustness=side, bucket=pl.concat_str("group", side, separator="/"),
        clinical=pl.when("clinical").then(pl.lit("clinical")).otherwise(pl.lit("other")),
    )  # fmt: skip
    for level in ("group", "leaf", "bucket", "robustness", "answer_format", "clinical"):
        for name in sorted(named[level].unique()):
            yield (level, name), results.filter(named[level] == name)


def measured(work: Callable[[], T], repeats: int = 1) -> tuple[float, T]:
    """CPU seconds of the fastest repeat, and its result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def peak() -> float:
    """Largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(peer_resamples: int) -> bool:
    """Measure both schemes; True when the goal is met."""
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        results = score(folder, resamples=10).results  # kernels are compiled and loaded once, not per submission
        print(f"{QUESTIONS} answers, {VIDEOS} videos, {len(FORMATS)} formats, {RESAMPLES} resamples; CPU seconds")
        print(f"one thread; the loop ran {peer_resamples} resamples, scaled linearly to {RESAMPLES}")
        print("           loop   intervals  ratio    from the files  ratio   estimates, width of the loop's intervals")
        for scheme, redraw in SCHEMES:
            table = partial(focus_numbers, results, limit=15.0, scheme=scheme, drop_videoless=False, seed=0)
            ours, made = measured(partial(table, resamples=RESAMPLES), repeats=3)
            whole, _ = measured(partial(score, folder, scheme=scheme, flags=None), repeats=3)
            setup, _ = measured(partial(loop, results, 1, redraw))
            part, peer = measured(partial(loop, results, peer_resamples, redraw))
            theirs = setup + max(part - setup, 0.0) * RESAMPLES / peer_resamples
            same, widths = agreement(made.summary, peer)
            met &= theirs / ours >= GOAL and same < 1e-12
            print(f"{scheme:9s} {theirs:5.0f}  {ours:9.2f}  {theirs / ours:4.0f}×    {whole:14.2f}  "
                  f"{theirs / whole:4.0f}×   equal to {same:.0e}, {widths:.2f} of ours")  # fmt: skip
        screened, _ = measured(partial(score, folder, scheme="two_level"))
        print(f"screening the judged answers for attacks: {max(screened - whole, 0):.1f} more; peak {peak():.0f} MB")
    print(f"goal: intervals at {GOAL}×, the same estimates: {'met' if met else 'NOT MET'}")
    return met


def agreement(summary: pl.DataFrame, peer: dict[tuple[str, str], tuple[float, ...]]) -> tuple[float, float]:
    """The largest difference of the estimates, and how much wider the peer's intervals are on average."""
    ours = {(row["level"], row["name"]): row for row in summary.iter_rows(named=True)}
    apart, widths = [], []
    for key, found in peer.items():
        for column, (value, low, high) in (
            ("accuracy_mean_of_video_means", found[:3]),
            ("flat_accuracy", found[3:]),
        ):
            apart.append(abs(ours[key][column] - value))
            widths.append((high - low) / (ours[key][f"{column}_high"] - ours[key][f"{column}_low"]))
    return max(apart), float(np.mean(widths))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-resamples", type=int, default=40, help="resamples the loop really runs")
    return 0 if compare(parser.parse_args().peer_resamples) else 1


if __name__ == "__main__":
    sys.exit(main())
