"""From arrays to numbers: score what a Python program already holds, without files.

`score_detection` takes columns of boxes, `score_recognition` frames × classes arrays. Both need the video of each row,
because intervals are made by resampling whole videos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surgeval.arrays import AnyArray, Bools, Ints
from surgeval.errors import BadInput, printable
from surgeval.metrics import Convention, DetectionSet, Ties, rare_classes
from surgeval.protocols.triplets.assemble import ScoringPlan, assemble_detection, assemble_recognition, choose_ties
from surgeval.protocols.triplets.box_columns import (
    BoxFormat,
    Columns,
    class_counts,
    known_space,
    number_frames,
    plain_values,
    read_boxes,
    require_same_unit,
    scored_components,
)
from surgeval.protocols.triplets.method import RECOGNITION
from surgeval.protocols.triplets.result import TripletScores
from surgeval.protocols.triplets.scoring.groups import Group, VideoGroups
from surgeval.protocols.triplets.scoring.inputs import Task, array_fingerprint
from surgeval.protocols.triplets.scoring.numbers import Progress
from surgeval.protocols.triplets.scoring.recognition import FrameScores
from surgeval.vocab import LabelSpace

__all__ = ["score_detection", "score_recognition"]


def score_detection(
    predictions: Columns,
    targets: Columns,
    videos: Sequence[str] | None = None,
    *,
    space: LabelSpace | str | None = None,
    box_format: BoxFormat = "xywh",
    convention: Convention | None = None,
    ties: Ties | None = None,
    components: Sequence[str] | None = None,
    thresholds: Mapping[str, float] | None = None,
    rare: int = 300,
    name: str = "predictions",
    progress: Progress | None = None,
) -> TripletScores:
    """Score boxes that are already in arrays: columns by name, as a mapping of arrays or a polars frame.

    Both tables have `video`, `frame` (any ids; a frame is one image of its video), `class` (ids from 0) and `box`
    (n × 4), or `x`, `y`, `w`, `h` instead of it; predictions have `score`. `box_format` is `xywh` (top-left corner and
    size, as in COCO), `xyxy` or `cxcywh`, in pixels or any other unit that both tables share. With a label space (or
    the name of one) classes are triplet ids and instrument, verb and target are scored too; without one the classes
    are scored as they are, as component `ivt`. Every frame that either table names is scored. Videos count in the order
    in which they appear; `videos` lists them where some have no box at all. `thresholds` are score thresholds of P, R
    and F1 by component, chosen on other data. `convention` and `ties` are those of `score_triplets`.

    >>> truth = {"video": ["v1", "v2"], "frame": [1, 1], "class": [0, 0], "box": [[0, 0, 4, 4], [2, 2, 4, 4]]}
    >>> found = {**truth, "box": [[0, 0, 4, 4], [9, 9, 4, 4]], "score": [0.9, 0.8]}
    >>> print(score_detection(found, truth).number("ivt", "mAP50"))
    0.505 [0.000, 1.000] (few clusters: 2)
    """
    labels = known_space(space)
    tables = [read_boxes(targets, "targets", box_format), read_boxes(predictions, "predictions", box_format)]
    require_same_unit(*tables)
    names, video, numbers = number_frames(tables[0], tables[1], videos)
    sizes = class_counts(tables, labels, components)
    truths, predicted = (
        table.to_boxes(number, labels, tuple(sizes)) for table, number in zip(tables, numbers, strict=True)
    )
    main = "ivt" if "ivt" in sizes else next(iter(sizes))
    matched, equal, alike = choose_ties(convention, ties, predicted.score)
    settings = {
        "data": array_fingerprint(video, truths.frame, truths.xywh, *truths.classes.values()),
        "components": list(sizes), "convention": matched, "ties": equal, "iou": 0.5,
        "threshold": "given" if thresholds else "the scored data",
    }  # fmt: skip
    totals = np.bincount(truths.classes[main], minlength=sizes[main])
    plan = _plan("detection", name, names, labels, settings, rare, totals, progress, alike)
    data = DetectionSet.of(predicted, truths, video, n_videos=len(names))
    return assemble_detection(plan, data, sizes, labels, matched, equal, dict(thresholds or {}))


def score_recognition(
    predictions: ArrayLike,
    targets: ArrayLike,
    videos: Sequence[str],
    *,
    space: LabelSpace | str | None = None,
    components: Sequence[str] | None = None,
    rare: int = 300,
    name: str = "scores",
    progress: Progress | None = None,
) -> TripletScores:
    """Score class scores against labels, both in arrays (frames × classes), with the video of each frame.

    With a label space (or the name of one) classes are triplet ids and every component is scored; without one the
    classes are scored as they are, as component `ivt`.

    >>> import numpy as np
    >>> labels = np.eye(2)[[0, 1, 0, 1]]
    >>> print(score_recognition(labels * 0.8, labels, ["v1", "v1", "v2", "v2"]).number())
    1.000 [0.158, 1.000] (few clusters: 2)
    """
    of_frame = _video_names(videos)
    names = tuple(dict.fromkeys(of_frame))
    number = {video: k for k, video in enumerate(names)}
    labels, values = _truth(_array(targets, "targets")), _array(predictions, "predictions")
    if labels.ndim != 2 or labels.shape != values.shape or len(labels) != len(of_frame) or not len(labels):
        raise BadInput(f"found predictions {values.shape}, targets {labels.shape} and {len(of_frame)} video names, "
                       "expected two frames × classes arrays and a video for each frame")  # fmt: skip
    known = known_space(space)
    offered = RECOGNITION if known is not None else ("ivt",)
    scored = scored_components(components, offered, offered)
    video = np.array([number[name] for name in of_frame], dtype=np.int64)
    frames = FrameScores(labels, values, video, np.ones(len(labels), bool), known)
    settings = {"data": array_fingerprint(labels, video), "components": list(scored)}
    totals = labels.sum(axis=0)
    plan = _plan("recognition", name, names, known, settings, rare, totals, progress)
    return assemble_recognition(plan, frames, scored)


def _plan(
    task: Task, name: str, videos: tuple[str, ...], space: LabelSpace | None, settings: Mapping[str, Any], rare: int,
    totals: Ints, progress: Progress | None, notes: tuple[str, ...] = (),
) -> ScoringPlan:  # fmt: skip
    """All videos together, rare classes counted in the arrays themselves."""
    scheme = VideoGroups("all", "all", (Group("all", videos),))
    common = {
        "task": task, "label_space": space.name if space else "", "videos": list(videos), "scheme": scheme.to_json(),
        "rare": rare, "rare_from": "dataset",
    }  # fmt: skip
    return ScoringPlan(name, scheme, {**common, **settings}, [rare_classes(totals, rare)], totals, notes, progress)


def _video_names(videos: Sequence[str]) -> list[str]:
    try:
        names = [str(name) for name in videos]
    except TypeError:
        raise BadInput(f"videos: found {type(videos).__name__}, expected the video of each frame") from None
    odd = next((name for name in names if printable(name) != name), None)
    if odd is not None:
        raise BadInput(f"videos: found {printable(odd)}, expected names in Unicode")
    return names


def _array(values: Any, name: str) -> AnyArray:
    try:
        return np.asarray(plain_values(values))
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name}: found rows of several lengths, expected a frames × classes array") from error


def _truth(values: AnyArray) -> Bools:
    """Labels as true and false; anything but 0 and 1 is refused, since scores in their place would look perfect."""
    if values.dtype == bool:
        return values
    if values.dtype.kind not in "iuf":
        raise BadInput(f"targets: found {values.dtype} values, expected 0 and 1 (or true and false)")
    odd = np.argwhere((values != 0) & (values != 1))
    if len(odd):
        where = ", ".join(f"{axis} {n}" for axis, n in zip(("frame", "class"), odd[0].tolist(), strict=False))
        raise BadInput(f"targets: {where}: found {values[tuple(odd[0])]}, expected 0 or 1 (predictions come first)")
    return values.astype(bool)
