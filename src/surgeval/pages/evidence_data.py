"""Evidence as the page carries it: columns of all models joined by case, deflated, in base64.

A hundred thousand cases are some megabytes that way, inside the page: it opens from a disk, where scripts may fetch
nothing. The browser inflates them (DecompressionStream) and keeps only the visible rows in the document.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from surgeval.errors import BadInput, printable
from surgeval.pages.evidence import KINDS, Evidence
from surgeval.pages.tables import distinct

__all__ = ["EvidenceData", "evidence_data"]

_SHARED = ("video", "frame", "asked", "reference")
_SAID = ("answer", "verdict", "reason")


@dataclass(frozen=True)
class EvidenceData:
    """What the template needs: the deflated cases, and the pictures, each in base64."""

    cases: str
    pictures: tuple[str, ...]
    count: int
    case: str
    note: str


def evidence_data(models: Sequence[Evidence]) -> EvidenceData:
    """The cases of one or several models, joined by their id; those with a picture first: there is more to check."""
    if not models:
        raise BadInput("evidence: found no model, expected one at least")
    listed = pl.concat([model.cases.select("id") for model in models]).unique(maintain_order=True)
    pictured = list({case for model in models for case in model.pictures})
    order = listed.sort(pl.col("id").is_in(pictured), descending=True, maintain_order=True)
    placed = [order.join(model.cases, on="id", how="left", maintain_order="left") for model in models]
    names = distinct(model.model for model in models)
    pictures = _PicturePool()
    content = {
        "models": [printable(name) for name in names],
        "right": sorted({verdict for model in models for verdict in model.right}),
        "doubtful": sorted({verdict for model in models for verdict in model.doubtful}),
        "open": sorted({verdict for model in models for verdict in model.open}),
        "id": _texts(order["id"]),
        **{name: _texts(_first([frame[name] for frame in placed])) for name in _SHARED},
        "said": [{name: _texts(frame[name]) for name in _SAID} for frame in placed],
        "facets": _facets(models, placed, names),
        "numbers": _numbers(models, placed, names),
        "pictures": [pictures.places(model, order) for model in models],
        "order": next(
            (f"{model.order}{n + 1 if len(models) > 1 else ''}" for n, model in enumerate(models) if model.order), ""
        ),
        "sizes": _sizes(placed),
        "kinds": KINDS,
        "boxes": [_boxes(model.boxes, order) for model in models],
    }
    text = printable(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    packed = base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")
    note = next((model.note for model in models if model.note), "")
    return EvidenceData(packed, tuple(pictures.coded), order.height, models[0].case, note)


def _first(columns: Sequence[pl.Series]) -> pl.Series:
    """What the first model that has the case says of it."""
    return pl.select(pl.coalesce(*columns)).to_series()


def _texts(column: pl.Series) -> dict[str, Any] | list[str | None]:
    """A column, or its distinct texts and a number per row where that is shorter; null where a model has no case."""
    values = column.unique(maintain_order=True)
    if values.len() * 2 > column.len():
        return column.to_list()
    at = pl.DataFrame({"text": values, "at": range(values.len())}, schema={"text": pl.String, "at": pl.Int64})
    rows = pl.DataFrame({"text": column}).join(at, on="text", how="left", nulls_equal=True, maintain_order="left")
    return {"of": values.to_list(), "at": rows["at"].to_list()}


def _facets(models: Sequence[Evidence], placed: Sequence[pl.DataFrame], names: Sequence[str]) -> list[dict[str, Any]]:
    """The verdict of every model first, then what else can be filtered by."""
    facets: list[dict[str, Any]] = []

    def add(key: str, label: str, column: pl.Series) -> None:
        if column.dtype == pl.List:
            entries = pl.DataFrame({"row": range(column.len()), "text": column}).explode("text").drop_nulls()
            texts = entries["text"].cast(pl.String)
            facets.append({"key": key, "label": label, **_ranks(texts), "row": entries["row"].to_list()})
        else:
            facets.append({"key": key, "label": label, **_ranks(column.cast(pl.String))})

    several = len(models) > 1
    for number, (frame, name) in enumerate(zip(placed, names, strict=True)):
        key, label = (f"verdict{number + 1}", f"Verdict: {printable(name)}") if several else ("verdict", "Verdict")
        add(key, label, frame["verdict"])
    labels = {key: label for model in models for key, label in model.facets.items()}
    for key, label in labels.items():
        holders = [n for n, model in enumerate(models) if key in model.facets]
        if any(key in model.own for model in models):
            for n in holders:
                add(f"{key}{n + 1}" if several else key, f"{label}: {printable(names[n])}" if several else label,
                    placed[n][key])  # fmt: skip
        else:
            add(key, label, _first([placed[n][key] for n in holders]))
    return [facet for facet in facets if len(facet["of"]) > 1]


def _ranks(column: pl.Series) -> dict[str, Any]:
    """The values of a facet, the most frequent first, and which of them each entry has (−1: none)."""
    counted = column.drop_nulls().value_counts(name="count").sort("count", column.name, descending=[True, False])
    values = counted[column.name].to_list()
    at = pl.DataFrame({"text": values, "at": range(len(values))}, schema={"text": pl.String, "at": pl.Int64})
    rows = pl.DataFrame({"text": column}).join(at, on="text", how="left", maintain_order="left")
    return {"of": values, "at": rows["at"].fill_null(-1).to_list()}


def _numbers(models: Sequence[Evidence], placed: Sequence[pl.DataFrame], names: Sequence[str]) -> list[dict[str, Any]]:
    numbers = []
    for n, model in enumerate(models):
        for key, label in model.numbers.items():
            values = placed[n][key].cast(pl.Float64).fill_nan(None)
            finite = values.is_infinite().fill_null(False)
            own = f"{label}: {printable(names[n])}" if len(models) > 1 else label
            rounded = pl.Series([None if odd else value for value, odd in zip(values.round(4), finite, strict=True)],
                             dtype=pl.Float64)  # fmt: skip
            numbers.append({"key": f"{key}{n + 1}" if len(models) > 1 else key, "label": own, "short": label,
                            "model": n, "values": rounded.to_list()})  # fmt: skip
    return numbers


def _sizes(placed: Sequence[pl.DataFrame]) -> dict[str, Any] | None:
    """Width and height of the cases' frames as numbers into a list of sizes; nothing where no case has one."""
    known = [frame for frame in placed if {"width", "height"} <= set(frame.columns)]
    if not known:
        return None
    width, height = (_first([frame[side].cast(pl.Int64) for frame in known]) for side in ("width", "height"))
    pairs = list(zip(width.to_list(), height.to_list(), strict=True))
    sizes = list(dict.fromkeys(pairs))
    number_of = {size: number for number, size in enumerate(sizes)}
    return {"of": sizes, "at": [number_of[pair] for pair in pairs]}


def _boxes(boxes: pl.DataFrame, order: pl.DataFrame) -> dict[str, Any]:
    """The boxes of each case in a run: `start[case]` up to the next is its slice."""
    rows = boxes.join(order.with_row_index("row"), on="id").sort("row", maintain_order=True)
    at = {kind: number for number, kind in enumerate(KINDS)}
    labels = rows["label"].unique(maintain_order=True).to_list()
    number_of = {label: number for number, label in enumerate(labels)}
    sides = [rows[side].round(0).cast(pl.Int64).to_list() for side in ("x", "y", "w", "h")]
    return {
        "row": rows["row"].to_list(), "kind": [at[kind] for kind in rows["kind"]], "labels": labels,
        "label": [number_of[label] for label in rows["label"]], "xywh": sides,
    }  # fmt: skip


class _PicturePool:
    """Every picture once, however many cases and models show it."""

    def __init__(self) -> None:
        self.coded: list[str] = []
        self._known: dict[bytes, int] = {}

    def places(self, model: Evidence, order: pl.DataFrame) -> dict[str, int]:
        """Row of a case → number of its picture."""
        rows = {case: row for row, case in enumerate(order["id"].to_list())} if model.pictures else {}
        return {str(rows[case]): self._place(data) for case, data in model.pictures.items() if case in rows}

    def _place(self, data: bytes) -> int:
        if data not in self._known:
            self._known[data] = len(self.coded)
            self.coded.append(base64.b64encode(data).decode("ascii"))
        return self._known[data]
