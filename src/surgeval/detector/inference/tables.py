"""What was found as the table of detections: one row per box, and a row that only names a frame where nothing was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from surgeval.datasets.predictions import HEADS
from surgeval.detector.classes import Classes
from surgeval.detector.nms import Found
from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.records import Frame

__all__ = ["Components", "detection_table", "table_schema"]

Components: TypeAlias = Literal["ivt", "heads"]
_PARTS = ("instrument", "verb", "target")
_LETTERS = dict(zip(_PARTS, "ivt", strict=True))


def table_schema(components: Components, probabilities: Sequence[str] = ()) -> dict[str, pl.DataType]:
    """Names and types of the columns; `probabilities` are the heads whose probabilities are kept.

    >>> list(table_schema("heads", ["ivt"]))[-3:]
    ['h', 'components', 'p_ivt']
    """
    schema: dict[str, pl.DataType] = {"video": pl.String(), "frame": pl.String()}
    schema |= dict.fromkeys(("triplet", *_PARTS), pl.Int32())
    schema |= dict.fromkeys(("score", "x", "y", "w", "h"), pl.Float64())
    if components == "heads":
        schema["components"] = pl.String()
    return schema | {name: pl.List(pl.Float32()) for name in HEADS if name[2:] in probabilities}


def detection_table(
    seen: Sequence[tuple[Frame, Found]],
    classes: Classes,
    *,
    components: Components = "ivt",
    probabilities: bool = True,
) -> pl.DataFrame:
    """Frames and what was found on them, in the columns that `surgeval score triplets` reads.

    Instrument, verb and target follow from the triplet; with `components="heads"` they are what the auxiliary heads say
    most, and the column `components` says so. Probabilities are kept to three digits, scores as they are.

    >>> import torch
    >>> from surgeval.records import Frame
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholect50"))
    >>> frame = Frame("VID68", "000016", 16, None, None, 854, 480)
    >>> box = torch.tensor([[10.0, 20.0, 110.0, 70.0]])
    >>> found = Found(box, torch.tensor([0.75]), torch.tensor([17]), {"ivt": torch.zeros(1, 100)})
    >>> detection_table([(frame, found)], classes, probabilities=False).row(0)
    ('VID68', '000016', 17, 0, 1, 0, 0.75, 10.0, 20.0, 100.0, 50.0)
    """
    head_names = next((detections.heads for _, detections in seen), {})
    if components == "heads" and not all(letter in head_names for letter in "ivt") and seen:
        raise BadInput("components: found a detector without heads for instrument, verb and target, expected some")
    boxes = np.concatenate(
        [detections.boxes.double().numpy().reshape(-1, 4) for _, detections in seen] or [np.zeros((0, 4))]
    )
    kinds = np.concatenate([detections.classes.numpy() for _, detections in seen] or [np.zeros(0)]).astype(np.int64)
    counts = [len(detections) for _, detections in seen]
    heads = {
        head: np.concatenate([detections.heads[head].float().numpy() for _, detections in seen]) for head in head_names
    }
    columns: dict[str, object] = {
        key: np.repeat(np.array([getattr(frame, attribute) for frame, _ in seen], dtype=object), counts)
        for key, attribute in (("video", "video"), ("frame", "name"))
    }
    columns |= _ids(kinds, classes, heads if components == "heads" else None)
    columns["score"] = np.concatenate([detections.scores.double().numpy() for _, detections in seen] or [np.zeros(0)])
    sides = (boxes[:, 0], boxes[:, 1], boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    columns |= dict(zip("xywh", sides, strict=True))
    if components == "heads":
        columns["components"] = ["heads"] * len(kinds)
    stored_heads = tuple(head_names) if probabilities else ()
    columns |= {f"p_{head}": list(_short(heads[head])) for head in stored_heads}
    schema = table_schema(components, stored_heads)
    table = pl.DataFrame({name: columns[name] for name in schema}, schema=schema, strict=False)
    empty = [(frame.video, frame.name) for frame, detections in seen if not len(detections)]
    return pl.concat([table, _seen_rows(empty, schema)]) if empty else table


def _ids(kinds: np.ndarray, classes: Classes, heads: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    parts = classes.parts[kinds] if len(kinds) else np.zeros((0, 3), dtype=np.int64)
    ids = {"triplet": kinds if classes.task == "triplets" else np.full(len(kinds), -1)}
    for column, part in enumerate(_PARTS):
        ids[part] = parts[:, column] if heads is None else heads[_LETTERS[part]].argmax(1)
    return ids


def _short(values: np.ndarray) -> np.ndarray:
    """Numbers with 11 significant bits: stored at full width they compress to half, and any reader takes them."""
    return values.astype(np.float16).astype(np.float32)


def _seen_rows(names: Sequence[tuple[str, str]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    rows = pl.DataFrame(names, schema={"video": pl.String, "frame": pl.String}, orient="row")
    ids = ("triplet", *_PARTS)
    return rows.with_columns(
        *(
            pl.lit(-1 if name in ids else None, kind).alias(name)
            for name, kind in schema.items()
            if name not in rows.columns
        )
    ).select(list(schema))
