"""The baseline that knows where and what the instruments are and guesses the rest: every box gets the triplet that its
instrument has most often in the training set.

A triplet detector that does not beat it has learnt nothing about actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from surgeval.datasets import Dataset
from surgeval.datasets.predictions import COLUMNS, Detections
from surgeval.errors import BadInput
from surgeval.vocab import LabelSpace

__all__ = ["frequent_triplets", "majority_triplets", "truth_boxes"]


def frequent_triplets(dataset: Dataset, videos: Sequence[str] | None = None) -> dict[int, int]:
    """Instrument id → id of its most frequent triplet in these videos (all: None); the lowest id where two are equal.

    An instrument that never takes part in a triplet is not there.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space = load_labels("cholect50")
    >>> held = [Instance(Triplet(*space.triplets[number])) for number in (17, 17, 12)]
    >>> frequent_triplets(MemoryDataset(space, [Frame("VID01", "000001", 1, None, None, 854, 480, tuple(held))]))
    {0: 17}
    """
    space = dataset.space
    counts: Counter[tuple[int, int]] = Counter()
    for video in videos if videos is not None else [known.name for known in dataset.videos()]:
        for frame in dataset.frames(video):
            for instance in frame.instances:
                parts = instance.triplet
                number = space.find(parts.instrument, parts.verb, parts.target)
                if number >= 0:
                    counts[parts.instrument, number] += 1
    best: dict[int, int] = {}
    for (instrument, number), count in sorted(counts.items()):
        if instrument not in best or count > counts[instrument, best[instrument]]:
            best[instrument] = number
    return best


def majority_triplets(boxes: Detections | pl.DataFrame, frequent: Mapping[int, int], space: LabelSpace) -> pl.DataFrame:
    """Every box with the triplet that `frequent` has for its instrument; places, scores and tracks stay.

    A box whose instrument has none is left out: there is no triplet to say.

    >>> from surgeval.vocab import load_labels
    >>> held = pl.DataFrame({"instrument": [0, 6], "score": [0.9, 0.8]})
    >>> majority_triplets(held, {0: 17}, load_labels("phantom")).row(0, named=True)
    {'instrument': 0, 'score': 0.9, 'triplet': 17, 'verb': 1, 'target': 0}
    """
    table = boxes.table if isinstance(boxes, Detections) else boxes
    if "instrument" not in table.columns:
        raise BadInput(f"boxes: found columns {', '.join(table.columns)}, expected one named instrument")
    for instrument, triplet in frequent.items():
        if not 0 <= triplet < len(space.triplets) or space.triplets[triplet][0] != instrument:
            raise BadInput(f"frequent triplets: found triplet {triplet} for instrument {instrument}, expected one of "
                           f"that instrument in {space.name}")  # fmt: skip
    known = table.filter(pl.col("instrument").is_in(list(frequent)))
    numbers = [frequent[instrument] for instrument in known["instrument"]]
    ids = {"triplet": numbers, "verb": [space.triplets[n][1] for n in numbers],
           "target": [space.triplets[n][2] for n in numbers]}  # fmt: skip
    return known.with_columns(pl.Series(name, values, dtype=pl.Int32) for name, values in ids.items())


def truth_boxes(dataset: Dataset, videos: Sequence[str] | None = None) -> pl.DataFrame:
    """The labelled boxes of these videos (all: None) as a detector that finds every instrument, with score 1.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> held = Instance(Triplet(2, -1, -1), Box(10, 20, 30, 40))
    >>> one = MemoryDataset(load_labels("cholect50"), [Frame("VID01", "000001", 1, None, None, 854, 480, (held,))])
    >>> truth_boxes(one).select("instrument", "score", "x", "y", "w", "h").row(0)
    (2, 1.0, 10.0, 20.0, 30.0, 40.0)
    """
    rows = [
        (
            frame.video,
            frame.name,
            -1,
            instance.triplet.instrument,
            -1,
            -1,
            1.0,
            *map(float, (box.x, box.y, box.w, box.h)),
        )
        for video in (videos if videos is not None else [known.name for known in dataset.videos()])
        for frame in dataset.frames(video)
        for instance in frame.instances
        if (box := instance.box) is not None and instance.triplet.instrument >= 0
    ]
    kinds = dict.fromkeys(COLUMNS[:2], pl.String) | dict.fromkeys(COLUMNS[2:6], pl.Int32)
    schema = {name: kinds.get(name, pl.Float64) for name in COLUMNS}
    return pl.DataFrame(rows, schema=schema, orient="row")
