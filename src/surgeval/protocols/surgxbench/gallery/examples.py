"""Two figures of the paper from frames of the run: what hiding the attended region does (6), what moves (2)."""

from __future__ import annotations

from itertools import starmap
from typing import Any

import numpy as np
import polars as pl
import torch

from surgeval.datasets import read_image
from surgeval.errors import DataError
from surgeval.explain import Paste
from surgeval.explain.camera import camera_field
from surgeval.explain.heatmaps import heatmaps
from surgeval.explain.regions import top_regions
from surgeval.figures import FlowPipeline
from surgeval.protocols.surgxbench.gallery.pictures import side_by_side
from surgeval.protocols.surgxbench.item import Hiding
from surgeval.protocols.surgxbench.measuring.asked import Example
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, Reader, batches, followed
from surgeval.protocols.surgxbench.measuring.hide import hidden_images
from surgeval.protocols.surgxbench.measuring.instruments import to_device
from surgeval.protocols.surgxbench.measuring.triplets import triplet_name
from surgeval.protocols.surgxbench.measuring.worker import VideoWorker
from surgeval.protocols.surgxbench.result import SurgXScores
from surgeval.protocols.surgxbench.tables import best_matches
from surgeval.records import UNKNOWN, Triplet

__all__ = ["flow_pipeline", "hidings"]


def hidings(look: VideoWorker, scores: SurgXScores, count: int = 4) -> tuple[Hiding, ...]:
    """Frames without a complete match once the attended region was hidden, and ones that still have one.

    The region is that of the frame's best-scored complete match, as in table `occlusion_triplets`.
    """
    rows = best_matches(scores.cases.filter((pl.col("task") == "triplets") & pl.col("matched_attended").is_not_null()))
    picked: dict[tuple[str, str], dict[str, Any]] = {}
    for matched in (False, True):
        part = rows.filter(pl.col("matched_attended") == matched).sort("cluster", "frame", maintain_order=True)
        free = list(part.iter_rows(named=True))
        for row in free[:: max(1, len(free) // max(1, count // 2))][: count // 2]:
            picked[row["cluster"], row["frame"]] = row
    hidings = []
    reader = Reader(look.net.preparation, look.settings)
    for video in sorted({cluster for cluster, _ in picked}):
        names = frozenset(frame for cluster, frame in picked if cluster == video)
        for batch in batches(look.dataset, video, reader, look.settings, names):
            hidings += [
                _hiding(look, prepared, picked[video, prepared.frame.name])
                for prepared in batch
                if isinstance(prepared, PreparedFrame)
            ]
    return tuple(hiding for hiding in hidings if hiding is not None)


def _hiding(look: VideoWorker, prepared: PreparedFrame, row: dict[str, Any]) -> Hiding | None:
    settings, space = look.settings, look.dataset.space
    pixels = to_device([prepared], look.net)
    seen = _prompted(look, pixels, row["triplet"]) if look.asked is None else look.asked.example(pixels, row["triplet"])
    if seen is None:  # said in a batch, and not when asked about this frame alone: a tie that rounding decides
        return None
    grid, top_of = seen
    size = (grid.shape[1], grid.shape[2])
    name, without, _ = next(hidden_images(look.net.preparation, [prepared], pixels, grid, [UNKNOWN], settings))
    assert name == "attended"  # noqa: S101 - the first of the controls
    lists = [top_of(pixels), top_of(without)]
    # For the eye the same region is hidden in the frame itself.
    paste = Paste.of(prepared.view, size)
    rows, columns = paste.visible
    black = prepared.image.copy()
    mask = top_regions(paste.upsample_torch(grid), settings.keep_top, settings.positive).masks[0].cpu().numpy()
    black[rows, columns][mask] = 0
    picture = side_by_side(prepared, (prepared.image, black), space.instruments)
    return Hiding(picture, prepared.frame.video, prepared.frame.name, row["triplet"], lists[0], lists[1])


def _prompted(look: VideoWorker, pixels: torch.Tensor, triplet: str) -> Example:
    """The map of a triplet's prompt, and the top prompts of an image with their scores."""
    net, bank, settings = look.scorer, look.triplets, look.settings
    names = [triplet_name(triplet, look.dataset.space) for triplet in starmap(Triplet, look.prompts.ids)]

    def top_of(image: torch.Tensor) -> tuple[tuple[str, float], ...]:
        top = net.scores(image, bank)[0].float().topk(min(settings.top_k, len(bank)))
        return tuple((names[p], float(s)) for s, p in zip(top.values.tolist(), top.indices.tolist(), strict=True))

    which = torch.tensor([[names.index(triplet)]])
    return heatmaps(net, pixels, bank, which, settings.method).values[:, 0], top_of


def flow_pipeline(look: VideoWorker, scores: SurgXScores) -> FlowPipeline | None:
    """Flow before and after the camera fit, for the frame of the run in which the most pixels move."""
    if look.flow is None:
        return None
    reader = Reader(look.net.preparation, look.settings, look.flow)
    best: tuple[float, Any] | None = None
    videos = scores.cases.filter(pl.col("task") == "triplets")["cluster"].unique().sort().to_list()
    for video in videos[:3]:  # a picture, not a statistic
        every = look.dataset.frames(video, on_problem=lambda _problem: None)
        frames = [pair for pair in followed(every, look.settings.flow_gap)
                  if pair[0].labelled and pair[1].image is not None]  # fmt: skip
        for frame, follower in frames[:: max(1, len(frames) // 4)][:4]:
            try:
                image = None if frame.image is None else read_image(frame.image)
            except DataError:
                continue  # its case says why; any other frame will do for the picture
            motion = None if image is None else reader.motion(frame, image, follower)[0]
            if motion is None:
                continue
            size = float(np.median(np.hypot(motion.flow.forward[..., 0], motion.flow.forward[..., 1])))
            if best is None or size > best[0]:
                best = size, (frame, image, motion)
    if best is None:
        return None
    frame, image, motion = best[1]
    height, width = image.shape[:2]
    title = f"What moves: {frame.video} / {frame.name}"
    field = camera_field(motion.camera, height, width)
    return FlowPipeline(title, image, motion.flow.forward, field, motion.corrected, motion.moving.mask)
