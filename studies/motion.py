"""How well is the camera's motion found, and does the motion mask find the work? The two tables of docs/motion.md.

    surgeval data phantom --edition phantom-v1 --out phantom-v1
    python studies/motion.py --data phantom-v1

Only a drawn scene knows its camera and where instrument and tissue meet. All 1 080 frame pairs take about two minutes
of one core; `--every 3` takes a third of them, and has too few fast ones for its medians to be quoted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surgeval.datasets import open_dataset, read_image
from surgeval.explain.camera import edge_motion
from surgeval.explain.motion import Motion, MotionSettings, find_motion, motion_from_flow
from surgeval.metrics.grounding import box_mask
from surgeval.records import CameraMotion, Frame
from surgeval.stats import bootstrap_vector

FITS = ("plain, whole frame", "plain, field", "masked, field", "robust, field", "robust, field without boxes")
MASKS = ("without camera correction", "with (robust)", "with, but the black left in")
LARGE, MOVING = 1.0, 0.5  # px at a corner of the picture
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pair:
    """One frame and its successor."""

    video: str
    size: tuple[int, int]
    truth: CameraMotion
    found: dict[str, CameraMotion]  # by fit
    inside: dict[str, tuple[int, int]]  # by mask: marked pixels in the interaction region, marked pixels; or nothing
    region: tuple[int, int]  # pixels of the region in the field, pixels of the field


def pairs(data: Path, every: int) -> Iterator[Pair]:
    """Every n-th frame of every video with its flow, fits and masks."""
    dataset = open_dataset(data)
    for video in dataset.videos():
        for frame in list(dataset.frames(video.name))[::every]:
            if frame.image is not None and frame.successor is not None and frame.camera is not None:
                yield _pair(frame, frame.camera, find_motion(read_image(frame.image), read_image(frame.successor)))


def _pair(frame: Frame, truth: CameraMotion, motion: Motion) -> Pair:
    height, width = motion.magnitude.shape
    field = np.ones((height, width), dtype=bool) if motion.area is None else motion.area
    boxes = box_mask([one.box.corners for one in frame.instances if one.box is not None], height, width)
    flow = motion.flow
    whole = motion_from_flow(flow, MotionSettings(field_only=False))
    plain, masked = MotionSettings("plain"), MotionSettings("masked")
    found = (
        motion_from_flow(flow, plain).camera,
        motion_from_flow(flow, plain, area=field).camera,
        motion_from_flow(flow, masked, area=field, instruments=boxes).camera,
        motion.camera,
        motion_from_flow(flow, area=field, instruments=boxes).camera,
    )
    inside, region = {}, (0, 0)
    if frame.region is not None:
        there = box_mask([frame.region.corners], height, width) & field
        uncorrected = motion_from_flow(flow, MotionSettings("none"), area=field)
        marked = [one.moving.mask for one in (uncorrected, motion, whole)]
        inside = {name: (int((m & there).sum()), int(m.sum())) for name, m in zip(MASKS, marked, strict=True)}
        region = int(there.sum()), int(field.sum())
    return Pair(frame.video, (height, width), truth, dict(zip(FITS, found, strict=True)), inside, region)


def camera_table(rows: Sequence[Pair]) -> list[str]:
    """Median error of each parameter: relative where it moves a corner by a pixel, in pixels there elsewhere."""
    lines = ["| fit | P | T | Z | R |", "| --- | --- | --- | --- | --- |"]
    large = {name: np.abs(_at_corner(rows, name, None)) >= LARGE for name in "PTZR"}
    for fit in FITS:
        cells = []
        for name, big in large.items():
            truth = _at_corner(rows, name, None)
            error = np.abs(_at_corner(rows, name, fit) - truth)
            relative = np.median(error[big] / np.abs(truth[big])) if big.any() else np.nan
            cells.append(f"{100 * relative:.1f} % / {np.median(error[~big]):.3f}")
        lines.append(f"| {fit} | {' | '.join(cells)} |")
    counts = ", ".join(f"{name} {int(big.sum())}" for name, big in large.items())
    return [*lines, "", f"{len(rows)} pairs; moving a corner by at least {LARGE:g} px: {counts}."]


def _at_corner(rows: Sequence[Pair], name: str, fit: str | None) -> npt.NDArray[np.float64]:
    """A parameter, found or (None) true, as px at a corner of the picture."""
    values = []
    for row in rows:
        reach = 1.0 if name in "PT" else float(np.hypot((row.size[1] - 1) / 2, (row.size[0] - 1) / 2))
        values.append(reach * getattr(row.truth if fit is None else row.found[fit], name))
    return np.array(values)


def mask_table(rows: Sequence[Pair], resamples: int) -> list[str]:
    """The share of marked pixels that lie in the interaction region, all pairs pooled."""
    shown = [row for row in rows if row.inside]
    groups = (shown, [row for row in shown if edge_motion(row.truth, *row.size) >= MOVING])
    heads = ("all pairs", f"{len(groups[1])} pairs with the camera moving ≥ {MOVING:g} px")
    lines = [f"| | {heads[0]} | {heads[1]} |", "| --- | --- | --- |"]
    chance = [_pooled([row.region for row in group]) for group in groups]
    lines.append(f"| chance (region's share of the field) | {chance[0]:.3f} | {chance[1]:.3f} |")
    for name in MASKS:
        share = [_pooled([row.inside[name] for row in group]) for group in groups]
        lines.append(f"| {name} | {share[0]:.3f} | {share[1]:.3f} |")
    lines += ["", f"{len(shown)} pairs with an interaction region."]
    for head, group in zip(heads, groups, strict=True):
        gain = _gain(group, resamples)
        if gain:
            lines.append(f"Correction adds, {head}: {gain}")
    return lines


def _pooled(counts: Sequence[tuple[int, int]]) -> float:
    hit, all_of_them = np.array(counts, dtype=np.int64).reshape(-1, 2).sum(axis=0).tolist()
    return hit / all_of_them if all_of_them else float("nan")


def _gain(rows: Sequence[Pair], resamples: int) -> str:
    """With minus without correction, with an interval over videos."""
    videos = sorted({row.video for row in rows})
    if not videos:
        return ""
    sums = np.array([[np.sum([row.inside[name] for row in rows if row.video == video], axis=0) for name in MASKS[:2]]
                     for video in videos])  # fmt: skip

    def gain(drawn: Ints) -> npt.NDArray[np.float64]:
        pooled = np.tensordot(drawn, sums, axes=1)
        share = pooled[..., 0] / pooled[..., 1]
        found: npt.NDArray[np.float64] = share[:, 1] - share[:, 0]
        return found[:, None]

    one = next(iter(bootstrap_vector(gain, videos, ["gain"], batched=True, resamples=resamples)))
    return f"{one} ({len(videos)} videos)"


def main(words: Sequence[str]) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of phantom-v1")
    parser.add_argument("--every", type=int, default=1, help="every n-th frame of each video")
    parser.add_argument("--resamples", type=int, default=10_000)
    asked = parser.parse_args(words)
    rows = list(pairs(asked.data, asked.every))
    sys.stdout.write("\n".join([*camera_table(rows), "", *mask_table(rows, asked.resamples), ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
