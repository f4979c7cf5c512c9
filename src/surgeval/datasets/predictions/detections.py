"""`Detections`: the table of predicted boxes that flows, checked against the dataset it is about.

Columns: `video`, `frame`, `triplet`, `instrument`, `verb`, `target` (ids, −1 unknown), `score`, `x`, `y`, `w`, `h`
(pixels of the original frame) and, where given, `track`. One path checks files of every format and tables made in
Python.

Detectors with several heads add two things. `components` says what instrument, verb and target are: `heads` where they
are the heads' own choice, which may contradict the triplet; elsewhere that is an error. `p_ivt`, `p_i`, `p_v`, `p_t`
list all probabilities of a box; scoring does not need them, so they are written and not read.

A file in which no row has a score is read with score 1 for all and a warning.

A row with neither class nor score nor box says that its frame was seen and nothing was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from surgeval.arrays import Bools, Floats, Ints
from surgeval.datasets.io.values import Place
from surgeval.datasets.predictions.boxes import MANY, box_columns
from surgeval.datasets.predictions.classes import PARTS, agree
from surgeval.datasets.predictions.hint import column_meant
from surgeval.datasets.predictions.locate import ELSEWHERE, locate, rows_of, tell_unknown
from surgeval.datasets.predictions.raw import RawTable, RowProblems, RowSource, absent, as_floats
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.errors import BadInput
from surgeval.vocab import LabelSpace

__all__ = ["COLUMNS", "HEADS", "Detections", "checked", "known_columns", "no_frames", "of_table"]

IDS = ("triplet", *PARTS)
BOX = ("x", "y", "w", "h")
COLUMNS = ("video", "frame", *IDS, "score", *BOX)
HEADS = ("p_ivt", "p_i", "p_v", "p_t")
OPTIONAL = ("track", "components")
_OWN_PARTS = "heads"
_REQUIRED = ("video", "frame", "score", *BOX)
_NEEDED = f"{', '.join(_REQUIRED)} and triplet (or {', '.join(PARTS)})"
SCHEMA: dict[str, type[pl.DataType]] = {
    "video": pl.String,
    "frame": pl.String,
    **dict.fromkeys(IDS, pl.Int32),
    **dict.fromkeys(("score", *BOX), pl.Float64),
}
_MAX_TRACK = 1e15
_UNNAMED = (("instrument",), ("class 0",))  # what readers call the classes of a dataset that names none


def no_frames() -> pl.DataFrame:
    """A list of no frames."""
    return pl.DataFrame(schema={"video": pl.String, "frame": pl.String})


@dataclass(frozen=True)
class Detections:
    """Checked detections; every row lies in a frame of the videos they were read for.

    `problems` counts what was told, by kind. `empty` lists frames that the file names and that have no box: the
    detector saw them and found nothing, which a frame that the file does not mention cannot say.
    """

    table: pl.DataFrame
    format: str
    videos: tuple[str, ...]  # what they were read for; boxes in other videos of the dataset are left out
    elsewhere: int = 0  # and counted here
    problems: Mapping[str, int] = field(default_factory=dict)
    empty: pl.DataFrame = field(default_factory=no_frames, repr=False)
    source: RowSource | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.table)


def of_table(table: pl.DataFrame, truth: GroundTruth, tally: RowProblems, file: str = "predictions") -> Detections:
    """Check a table made in Python."""
    columns = known_columns(table.columns, Place(file, tally))
    if columns:
        columns += [name for name in HEADS if name in table.columns]
    source = RowSource.of(file, len(table) if columns else 0)
    return checked(RawTable({name: table[name] for name in columns}, source, tally), truth, "table")


def known_columns(names: Sequence[str], place: Place) -> list[str]:
    """The columns of ours among `names`, or none (told) where one is missing; others are told as a warning."""
    ours = [name for name in (*COLUMNS, *OPTIONAL) if name in names]
    missing = [name for name in _REQUIRED if name not in names]
    if not set(IDS) & set(names):
        missing.append("triplet")
    others = [name for name in names if name not in ours and name not in HEADS]
    if missing == ["score"] and column_meant("score", others) is None:
        missing = []  # no row has a score: see `_equal_scores`
    if missing:
        found = f"the columns {', '.join(name[:40] for name in names)}" if names else "no columns"
        meant = [(column_meant(name, others), name) for name in missing]
        hints = ", ".join(f"{other[:40]!r} is probably {name}" for other, name in meant if other is not None)
        place.report(
            "column-missing", f"found {found}, expected {_NEEDED}{f'; {hints}' if hints else ''}", ", ".join(missing)
        )
        return []
    for name in others:
        place.warn(
            "column-unknown",
            f"found a column without meaning here, left out, expected {', '.join((*COLUMNS, *OPTIONAL))}",
            name,
        )
    return ours


def checked(raw: RawTable, truth: GroundTruth, format: str) -> Detections:
    """Every check there is, column by column; what fails is told and left out."""
    if "score" not in raw.columns:
        raw.columns = {**raw.columns, "score": pl.Series("score", [None] * len(raw), dtype=pl.Float64)}
    raw = _without_seen(raw)
    if not len(raw):
        empty = _mentioned(raw, truth).unique(maintain_order=True)
        problems = dict(raw.tally.counts)
        return Detections(pl.DataFrame(schema=SCHEMA), format, truth.videos, 0, problems, empty, raw.source)
    _refuse_unknown_classes(raw, truth)
    names = pl.DataFrame([raw.text("video"), raw.text("frame")])
    at = locate(raw, names, truth)
    ids = _classes(raw, truth.space)
    scored = not absent(raw.columns["score"]).all()
    score = raw.floats("score") if scored else _equal_scores(raw)
    boxes = box_columns(raw, truth, at)
    more = [column for column in (_tracks(raw), raw.columns.get("components")) if isinstance(column, pl.Series)]
    more += [column for name in HEADS if isinstance(column := raw.columns.get(name), pl.Series)]
    raw.warn((score < 0) | (score > 1), "score-outside", "score", "a score from 0 to 1 (mAP is unaffected; conventions "
             "ivtd and ivtd-legacy look for the threshold of P, R and F1 only there)",
             lambda row: raw.value("score", row))  # fmt: skip
    alive = score[raw.alive]
    if scored and len(alive) >= MANY and np.all(alive == alive[0]):
        place = raw.place(int(np.flatnonzero(raw.alive)[0]))
        place.warn(
            "scores-equal",
            f"found {alive[0]:.6g} for each of {len(alive)} boxes, "
            "expected scores that differ: average precision ranks boxes by them",
            "score",
        )
    elsewhere = raw.alive & (at == ELSEWHERE)
    keep = raw.alive & ~elsewhere
    numbers = {"score": score, **dict(zip(BOX, boxes, strict=True))}
    table = names.filter(keep).with_columns(
        *(pl.Series(name, values[keep], dtype=pl.Int32) for name, values in zip(IDS, ids, strict=True)),
        *(pl.Series(name, values[keep], dtype=pl.Float64) for name, values in numbers.items()),
        *(column.filter(pl.Series(keep)) for column in more),
    )
    mentioned = pl.concat([names.filter(at >= 0), _mentioned(raw, truth)]).unique(maintain_order=True)
    empty = mentioned.join(table, on=["video", "frame"], how="anti", maintain_order="left")
    return Detections(
        table, format, truth.videos, int(elsewhere.sum()), dict(raw.tally.counts), empty, raw.source.take(keep)
    )


def _equal_scores(raw: RawTable) -> Floats:
    """Score 1 for each row of a file in which no row has one, and a warning."""
    files = raw.source.files
    Place(files[0] if len(files) == 1 else str(Path(files[0]).parent), raw.tally).warn(
        "scores-missing", "The predictions have no scores: every box counts alike, and average precision says little."
    )
    return np.ones(len(raw))


def _classes(raw: RawTable, space: LabelSpace) -> tuple[Ints, Ints, Ints, Ints]:
    triplet = raw.ids("triplet", space.triplet_names, "triplet")
    names = (space.instruments, space.verbs, space.targets)
    parts = [raw.ids(part, known, part) for part, known in zip(PARTS, names, strict=True)]
    agreed = agree(space, triplet, parts[0], parts[1], parts[2], own=_own_parts(raw))
    for part, values, derived, clash in zip(PARTS, parts, agreed.parts, agreed.clash, strict=True):

        def stated(row: int, values: Ints = values) -> str:
            return f"{values[row]} beside triplet {triplet[row]} ({space.triplet_name(int(triplet[row]))})"

        def meant(row: int, part: str = part, derived: Ints = derived) -> str:
            return f"{part} {derived[row]}"

        raw.refuse(clash, "triplet-inconsistent", part, meant, stated)
    raw.refuse(agreed.no_class, "triplet-unknown", "triplet",
               f"one of the {len(space.triplets)} triplets of {space.name}",
               lambda row: f"instrument {parts[0][row]}, verb {parts[1][row]}, target {parts[2][row]}")  # fmt: skip
    raw.refuse(agreed.nothing, "class-unknown", "triplet" if space.triplets else "instrument", "a class id",
               "no class")  # fmt: skip
    return agreed.triplet, *agreed.parts


def _refuse_unknown_classes(raw: RawTable, truth: GroundTruth) -> None:
    """Classes cannot be read where the dataset has no label from which its label space could be known."""
    if truth.instances or truth.space.instruments not in _UNNAMED:
        return
    highest = dict.fromkeys(IDS, -1) | {"instrument": 0}  # a detector of one class needs no names
    for name in (name for name in IDS if name in raw.columns):
        cells = raw.columns[name]
        if np.any(~absent(cells) & ~(as_floats(cells) <= highest[name])):
            sentence = "no frame has a label, so its classes are not known. Give its label space"
            raise BadInput(f"{truth.dataset.root}: {sentence}", code="labels-unknown")


def _own_parts(raw: RawTable) -> Bools:
    """Rows whose instrument, verb and target are said to be the heads' own choice."""
    if "components" not in raw.columns:
        return np.zeros(len(raw), dtype=bool)
    components = pl.Series(raw.columns["components"])
    if components.dtype != pl.String:
        raw.refuse(np.ones(len(raw), dtype=bool), "not-text", "components", f"ivt or {_OWN_PARTS}")
        return np.zeros(len(raw), dtype=bool)
    components = components.fill_null("ivt")
    raw.refuse(~components.is_in(["ivt", _OWN_PARTS]).to_numpy(), "not-text", "components", f"ivt or {_OWN_PARTS}")
    return (components == _OWN_PARTS).to_numpy().astype(bool)


def _without_seen(raw: RawTable) -> RawTable:
    """The table without the rows that only name a frame; those are frames in which nothing was found."""
    columns = {name: column for name, column in raw.columns.items() if isinstance(column, pl.Series)}
    if not len(raw) or len(columns) < len(raw.columns) or not set(_REQUIRED) <= columns.keys():
        return raw  # other formats than tables name such frames in their own way
    seen = np.logical_and.reduce([absent(columns[name]) for name in ("score", *BOX)])
    for name in IDS:
        if name in columns and seen.any():
            seen &= absent(columns[name]) | (as_floats(columns[name]) == -1)
    if not seen.any():
        return raw
    rows = np.flatnonzero(seen)
    keys = [columns[name].gather(rows).cast(pl.String).to_list() for name in ("video", "frame")]
    named = [(raw.source.place(row, raw.tally).file, video, frame)
             for row, video, frame in zip(rows.tolist(), *keys, strict=True) if video and frame]  # fmt: skip
    boxes = {name: column.filter(pl.Series(~seen)) for name, column in columns.items()}
    rest = RawTable(boxes, raw.source.take(~seen), raw.tally, raw.scale, (*raw.mentioned, *named))
    rest.alive &= raw.alive[~seen]
    return rest


def _tracks(raw: RawTable) -> pl.Series | None:
    if "track" not in raw.columns:
        return None
    none, values = absent(raw.columns["track"]), as_floats(raw.columns["track"])
    good = none | (np.isfinite(values) & (np.abs(values) < _MAX_TRACK) & (np.round(values) == values))
    raw.refuse(~good, "track-broken", "track", "a whole number")
    whole = np.where(good & ~none, values, 0.0).astype(np.int64)
    return pl.DataFrame({"track": whole, "none": none}).select(pl.when(~pl.col("none")).then("track"))["track"]


def _mentioned(raw: RawTable, truth: GroundTruth) -> pl.DataFrame:
    """The frames that the file names without giving rows; one that the dataset does not have is told."""
    files = [file for file, _, _ in raw.mentioned]
    listed = pl.DataFrame([names for _, *names in raw.mentioned], schema=no_frames().schema, orient="row")
    at = rows_of(listed, truth)
    told: set[str] = set()
    for row in np.flatnonzero(at == -1).tolist():
        video, frame = listed.row(row)
        known = video in truth.names
        if known or video not in told:
            told.add(video)
            place = Place(files[row], raw.tally, f"frame {frame[:60]}" if known else None)
            tell_unknown(place, video, frame if known else None, "", truth)
    return listed.filter(at >= 0)
