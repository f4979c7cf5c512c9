"""The table behind the papers' claim about causal graphs: how many explaining tokens lie on the instrument?"""

from __future__ import annotations

import polars as pl

from surgeval.protocols.result import CaseRow
from surgeval.protocols.surgxbench.tables import masked, wide_row
from surgeval.stats import EITHER_WAY, Ratio, ratio_intervals

__all__ = ["CausalCase", "causal_table"]


class CausalCase(CaseRow):
    """What causal graphs of a name in a reply hold; of other cases null."""

    causal_graphs: int | None = None
    causal_tokens: int | None = None  # that explain the name
    causal_image: int | None = None  # of these, of the image
    causal_near: int | None = None  # of these, in or close to the relevant area; null where none of it was seen
    causal_expected: float | None = None  # the same, had they been drawn blindly
    causal_attended: int | None = None  # image tokens in the graphs, whether they explain or not
    causal_attended_near: int | None = None
    causal_stopped: int | None = None  # graphs whose search ended early
    causal_sink: float | None = None  # mean share of the token that all attend to


_ROWS = {"rightly": pl.col("present"), "wrongly": ~pl.col("present")}


def causal_table(cases: pl.DataFrame) -> pl.DataFrame:
    """Of the tokens that explain a name, how many are of the image, and of these how many lie where they should.

    >>> row = {"task": "causal", "cluster": "a", "present": True, "causal_graphs": 5, "causal_tokens": 10,
    ...        "causal_image": 4, "causal_near": 3, "causal_expected": 1.0, "causal_attended": 20,
    ...        "causal_attended_near": 8, "causal_stopped": 0, "causal_sink": 0.2}
    >>> table = causal_table(pl.DataFrame([row, row | {"cluster": "b"}]))
    >>> table.select("of_image", "near", "near_attended", "near_chance").row(0)
    (0.4, 0.75, 0.4, 0.25)
    """
    rows = cases.filter(pl.col("task") == "causal")
    table_rows = []
    for named, here in _ROWS.items():
        part = rows.filter(here)
        if part.is_empty():
            continue
        image, near, expected = (pl.col(f"causal_{name}").cast(pl.Float64) for name in ("image", "near", "expected"))
        known = near.is_not_null()
        placed = masked(image, known)
        wanted = {
            "of_image": Ratio(image, pl.col("causal_tokens")),
            "near": Ratio(near, placed),
            "near_attended": Ratio(
                pl.col("causal_attended_near"), masked(pl.col("causal_attended"), near.is_not_null())
            ),
            "near_chance": Ratio(expected, placed),
            "near_above_chance": Ratio(near - expected, placed, bounds=EITHER_WAY),
        }
        first = {"named": named, "names": part.height, "explaining_tokens": int(part["causal_tokens"].sum()),
                 "stopped": int(part["causal_stopped"].sum())}  # fmt: skip
        table_rows.append(wide_row(first, ratio_intervals(part, wanted)))
    return pl.DataFrame(table_rows, infer_schema_length=None)
