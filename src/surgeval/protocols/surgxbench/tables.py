"""The tables of both papers from the cases of a run, every number with an interval over videos.

Rows that the rules exclude (no region, a constant map, nothing annotated or nothing of it visible) are left out of
means and counted in `excluded`; they are never zeros.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from surgeval.metrics.grounding import FOUR_WAY, ars_columns, f1_parts, four_way_cells, match_breakdown
from surgeval.protocols.surgxbench.area import without_set_area
from surgeval.stats import EITHER_WAY, POSITIVE, UNBOUNDED, Interval, Ratio, mean_ratio, ratio_intervals, share_ratio

__all__ = [
    "CONTROLS", "FOUR", "MOTION_FLAGS", "NONE_NAMED", "REFERENCES", "RIGHT", "USED", "attended_areas", "best_matches",
    "classes_table", "count_of", "curves_table", "early_instruments", "early_triplets", "four_way_table",
    "grounding_ratios", "masked", "match_table", "occlusion_table", "reference_table", "reply_table", "sanity_table",
    "unparsed_table", "video_table", "wide_row",
]  # fmt: skip

MOTION_FLAGS = (
    "no_motion",  # no following picture of the same size
    "gap",  # the next frame is too far away in time
    "no_flow",  # no flow, or no pixel left to fit the camera's motion to
    "still",  # nothing reaches the motion floor
)
NONE_NAMED = "none"  # in the place of a class where a reply names none
REFERENCES = ("uniform", "centre", "edge", "oracle")
FOUR = {
    "right_grounded": "right, and it looks at the instrument",
    "right_ungrounded": "right for the wrong reason",
    "wrong_grounded": "looks at an instrument, names another",
    "wrong_ungrounded": "wrong, and it looks elsewhere",
}
CONTROLS = {
    "attended": "the attended region",
    "random": "the same shape elsewhere",
    "least": "the least attended pixels",
    "boxes": "the instrument's boxes",
    "boxes_moved": "the boxes' shape elsewhere",
}

RIGHT = pl.col("predicted") & pl.col("present")
WRONG = pl.col("predicted") & ~pl.col("present")
MISSED = ~pl.col("predicted") & pl.col("present")
USED = pl.col("excluded") == ""


def _f1(where: pl.Expr) -> dict[str, Ratio]:
    parts = f1_parts(*(count_of(kind & where) for kind in (RIGHT, WRONG, MISSED)))
    return {name: Ratio(over, under, share=name != "f1") for name, (over, under) in parts.items()}


def count_of(condition: pl.Expr) -> pl.Expr:
    """1 where the condition holds, else 0."""
    return condition.fill_null(False).cast(pl.Float64)


def grounding_ratios(where: pl.Expr) -> dict[str, Ratio]:
    """Where the model looks when it is right (TP) and when it is wrong (FP), with what chance reaches."""
    right, wrong = where & USED & RIGHT, where & USED & WRONG
    return {
        "tp_aa": mean_ratio("aa", right),
        "tp_aa_chance": mean_ratio("chance_class", right),
        "tp_ac": mean_ratio("ac", right),
        "tp_chance": mean_ratio("chance", right),
        "tp_lift": Ratio(pl.when(right).then(pl.col("ac")), pl.when(right).then(pl.col("chance")), bounds=POSITIVE),
        "fp_ac": mean_ratio("ac", wrong),
        "fp_chance": mean_ratio("chance", wrong),
        "area": mean_ratio("area", where & USED & pl.col("predicted")),
    }


def attended_areas(cases: pl.DataFrame) -> pl.Series:
    """The areas that the mean area of predictions is made of."""
    return cases.filter(USED & pl.col("predicted"))["area"]


def wide_row(first: Mapping[str, object], intervals: Mapping[str, Interval]) -> dict[str, object]:
    """One row: the fields given, then estimate, low and high of each number."""
    row = dict(first)
    for name, interval in intervals.items():
        for end, value in (("", interval.estimate), ("_low", interval.low), ("_high", interval.high)):
            row[f"{name}{end}"] = None if value != value else value
    return row


def classes_table(cases: pl.DataFrame, classes: tuple[str, ...]) -> pl.DataFrame:
    """Per instrument, then `mean` and `pooled`: precision, recall, F1, TP-AA, TP-AC, FP-AC, chance, lift.

    `frames` show the instrument; `predicted` counts all frames in which it is named, also those that show none.
    `mean` is over the instruments that are labelled or named, each number over those that have it; `pooled` sums true
    positives, false positives and misses over all instruments first (SurgXBench, D.1). Neither has counts.
    """
    rows = cases.filter(pl.col("task") == "instruments")
    occurs = pl.col("present") | pl.col("predicted")
    seen = [name for name in classes if rows.filter((pl.col("class") == name) & occurs).height]
    table_rows: list[dict[str, object]] = []
    by_class: dict[str, dict[str, Ratio]] = {}
    for name in classes:
        here = pl.col("class") == name
        wanted = _f1(here) | grounding_ratios(here)
        if name in seen:
            by_class[name] = wanted
        counts = rows.filter(here)
        table_rows.append(
            wide_row(
                {"class": name, "frames": int(counts["present"].sum()), "predicted": int(counts["predicted"].sum()),
                 "excluded": counts.filter(pl.col("predicted") & ~USED).height},
                without_set_area(ratio_intervals(rows, wanted), attended_areas(counts)),
            )
        )  # fmt: skip
    if by_class:
        macro = {key: [wanted[key] for wanted in by_class.values()] for key in next(iter(by_class.values()))}
        pooled = _f1(pl.lit(True)) | grounding_ratios(pl.lit(True))
        for name, numbers in (("mean", macro), ("pooled", pooled)):
            intervals = without_set_area(ratio_intervals(rows, numbers), attended_areas(rows))
            table_rows.append(wide_row({"class": name, "frames": None, "predicted": None, "excluded": None}, intervals))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def masked(value: pl.Expr, where: pl.Expr) -> pl.Expr:
    """The value where the condition holds, else null."""
    return pl.when(where).then(value)


def four_way_table(cases: pl.DataFrame, classes: tuple[str, ...]) -> pl.DataFrame:
    """Shares of a class's predictions that are right or wrong, grounded or not; `all` over the classes."""
    rows = cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & USED)
    if rows.is_empty():
        return pl.DataFrame()
    rows = rows.with_columns(pl.Series("cell", four_way_cells(rows["present"], rows["grounded"])))
    table_rows = []
    for name in (*classes, "all"):
        here = pl.lit(True) if name == "all" else pl.col("class") == name
        wanted = {cell: share_ratio(pl.col("cell") == cell, here) for cell in FOUR_WAY}
        intervals = ratio_intervals(rows, wanted)
        table_rows.append(wide_row({"class": name, "predictions": rows.filter(here).height}, intervals))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def _with_lift(value: str, columns: tuple[str, ...], use: pl.Expr) -> dict[str, Ratio]:
    """The mean of a value and of further columns over the used rows, and how many times chance the value is."""
    means = {column: mean_ratio(column, use) for column in (value, *columns)}
    return {**means, "lift": Ratio(masked(pl.col(value), use), masked(pl.col("chance"), use), bounds=POSITIVE)}


def reference_table(cases: pl.DataFrame) -> pl.DataFrame:
    """What maps that know nothing, or everything, score on the same frames."""
    rows = cases.filter(pl.col("task") == "reference")
    table_rows = []
    for name in REFERENCES:
        here = pl.col("reference") == name
        if rows.filter(here).is_empty():
            continue
        use = here & USED
        wanted = _with_lift("ac", ("aa", "chance", "ras", "ras_chance", "area"), use)
        intervals = without_set_area(ratio_intervals(rows, wanted), rows.filter(use)["area"])
        counts = {"rows": rows.filter(use).height, "excluded": rows.filter(here & ~USED).height}
        table_rows.append(wide_row({"map": name, **counts}, intervals))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def match_table(cases: pl.DataFrame) -> pl.DataFrame:
    """How the ground-truth triplets were matched among the top prompts, and where the model looked (RAS)."""
    rows = cases.filter(pl.col("task") == "triplets")
    table_rows = []
    for level, matched in match_breakdown(rows["level"]).items():
        here = pl.col("level") == level
        use = here & USED
        wanted = {"share": share_ratio(here, pl.lit(True)), **_with_lift("ras", ("chance", "area"), use)}
        intervals = without_set_area(ratio_intervals(rows, wanted), rows.filter(use)["area"])
        table_rows.append(
            wide_row({"match": level, "triplets": matched, "excluded": rows.filter(here & ~USED).height,
                   "ras_is": "global, mean of the prompts" if level == "missed" else "local"}, intervals)
        )  # fmt: skip
    return pl.DataFrame(table_rows, infer_schema_length=None)


def occlusion_table(cases: pl.DataFrame, task: str) -> pl.DataFrame:
    """What hiding a region does to predictions that were right: lost, and by how much the score moves.

    Among triplets a frame counts once. The region is that of its best-scored complete match. `lost` is the paper's
    number: none of the top prompts is a labelled triplet of the frame any more. `best_match_lost` follows the best
    match alone; a frame that loses it may keep another one.
    """
    tried = pl.any_horizontal(pl.col(f"kept_{name}").is_not_null() for name in CONTROLS)
    rows = cases.filter((pl.col("task") == task) & tried)
    if task == "triplets":
        rows = best_matches(rows)
    if rows.is_empty():
        return pl.DataFrame()
    answer = "matched" if task == "triplets" else "kept"
    table_rows = []
    for name, title in CONTROLS.items():
        base = count_of(~pl.col(f"{answer}_boxes_moved" if name.startswith("boxes") else f"{answer}_random"))
        kept = pl.col(f"{answer}_{name}")
        there = kept.is_not_null()
        counted = count_of(there)
        wanted = {
            "lost": share_ratio(~kept, there),
            "lost_more_than_elsewhere": Ratio(masked(count_of(~kept) - base, there), counted, bounds=EITHER_WAY),
            "change_if_kept": mean_ratio(f"change_{name}", kept.fill_null(False), UNBOUNDED),
            "change": mean_ratio(f"change_{name}", there, UNBOUNDED),
        }
        if name in ("random", "boxes_moved"):
            del wanted["lost_more_than_elsewhere"]  # these are the other places
        if task == "triplets":
            wanted["best_match_lost"] = share_ratio(~pl.col(f"kept_{name}"), there)
        intervals = ratio_intervals(rows, wanted)
        table_rows.append(wide_row({"hidden": title, "predictions": rows.filter(there).height}, intervals))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def best_matches(rows: pl.DataFrame) -> pl.DataFrame:
    """Of the rows of each frame the best-scored one."""
    best = rows.sort("score", descending=True, maintain_order=True)
    return best.unique(["cluster", "frame"], keep="first", maintain_order=True)


def reply_table(cases: pl.DataFrame) -> pl.DataFrame:
    """Of each question: how many replies name nothing or were cut off, and what share of names could not be parsed."""
    rows = cases.filter(pl.col("task") == "replies")
    table_rows = []
    for asked in rows["asked"].unique(maintain_order=True):
        here = pl.col("asked") == asked
        names = pl.col("named") + pl.col("unparsed")
        wanted = {
            "unparsed": Ratio(masked(pl.col("unparsed"), here), masked(names, here), of_whole=True),
            "naming_nothing": share_ratio(pl.col("named") == 0, here),
            "cut_off": share_ratio(~pl.col("finished"), here),
        }
        own = rows.filter(here)
        counts = {"question": asked, "replies": own.height, "names": int(own["named"].sum())}
        table_rows.append(wide_row(counts, ratio_intervals(rows, wanted)))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def unparsed_table(cases: pl.DataFrame, most: int = 30) -> pl.DataFrame:
    """What replies name that the label space does not hold, the commonest first."""
    rows = cases.filter((pl.col("task") == "replies") & (pl.col("unparsed") > 0))
    if rows.is_empty():
        return pl.DataFrame()
    pieces = rows.select("asked", pl.col("unparsed_words").str.split("; ").alias("words")).explode("words")
    counted = pieces.group_by("asked", "words").len("replies")
    return counted.sort("replies", "words", descending=[True, False]).head(most).rename({"asked": "question"})


def curves_table(cases: pl.DataFrame) -> pl.DataFrame:
    """Areas under the deletion and insertion curves, for the map and for a random order of pixels."""
    rows = cases.filter(pl.col("task") == "curves")
    if rows.is_empty():
        return pl.DataFrame()
    names = ("deletion", "insertion", "deletion_random", "insertion_random")
    intervals = ratio_intervals(rows, {name: mean_ratio(f"{name}_area", pl.lit(True), UNBOUNDED) for name in names})
    return pl.DataFrame([wide_row({"frames": rows.height}, intervals)])


def sanity_table(cases: pl.DataFrame) -> pl.DataFrame:
    """Rank correlation of the map with the one of a randomised model, layer by layer, and of another prompt."""
    rows = cases.filter(pl.col("task") == "sanity")
    table_rows = []
    for check, step in rows.select("check", "step").unique(maintain_order=True).iter_rows():
        here = (pl.col("check") == check) & (pl.col("step") == step)
        intervals = ratio_intervals(rows, {"correlation": mean_ratio("correlation", here, EITHER_WAY)})
        table_rows.append(wide_row({"check": check, "step": step, "frames": rows.filter(here).height}, intervals))
    return pl.DataFrame(table_rows, infer_schema_length=None)


def video_table(cases: pl.DataFrame) -> pl.DataFrame:
    """The means of each video: the points behind the intervals."""
    rows = cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & USED)
    means = (
        pl.col("cluster").first().alias("video"),
        pl.len().alias("predictions"),
        pl.col("present").mean().alias("right"),
        pl.col("ac").filter(pl.col("present")).mean().alias("tp_ac"),
        pl.col("aa").filter(pl.col("present")).mean().alias("tp_aa"),
        pl.col("ac").filter(~pl.col("present")).mean().alias("fp_ac"),
        pl.col("chance").mean().alias("chance"),
    )
    # Video after video: what polars adds up in groups differs in its last digits with the number of cores.
    means_by_video = [video.select(means) for video in rows.partition_by("cluster", maintain_order=True)]
    return pl.concat(means_by_video).sort("video") if means_by_video else rows.clear().select(means).clear()


def early_instruments(cases: pl.DataFrame) -> pl.DataFrame:
    """Table 1 of the early text: attention correctness and agreement of the predicted class, per video and overall."""
    rows = cases.filter((pl.col("task") == "instruments") & pl.col("predicted"))
    table_rows = []
    for video in (*sorted(rows["cluster"].unique()), None):
        part = rows if video is None else rows.filter(pl.col("cluster") == video)
        wanted = {name: mean_ratio(name, USED) for name in ("ac", "aa", "chance", "area")}
        intervals = without_set_area(ratio_intervals(part, wanted), attended_areas(part))
        table_rows.append(wide_row({"video": video or "overall", "frames": part.height,
                           "excluded": part.filter(~USED).height}, intervals))  # fmt: skip
    return pl.DataFrame(table_rows, infer_schema_length=None)


def early_triplets(cases: pl.DataFrame) -> pl.DataFrame:
    """Table 2 of the early text: ARS over valid frames, V/T, Z/V and the matched components, per video and overall."""
    rows = cases.filter(pl.col("task") == "ars")
    rows = rows.with_columns(
        pl.Series(name, column) for name, column in ars_columns(rows["valid"], rows["ars"]).items()
    )
    table_rows = []
    for video in (*sorted(rows["cluster"].unique()), None):
        part = rows if video is None else rows.filter(pl.col("cluster") == video)
        wanted = {
            "ars": Ratio(pl.col("ARS"), pl.col("known")),
            "area": mean_ratio("area", pl.col("valid") & USED),
            "valid": share_ratio(pl.col("V") > 0, pl.lit(True)),
            "zero": share_ratio(pl.col("Z") > 0, pl.col("V") > 0),
            **{f"match_{name}": share_ratio(pl.col(f"match_{name}"), pl.lit(True))
               for name in ("instrument", "verb", "target", "triplet")},
        }  # fmt: skip
        intervals = without_set_area(ratio_intervals(part, wanted), part.filter(pl.col("valid") & USED)["area"])
        table_rows.append(wide_row({"video": video or "overall", "frames": part.height,
                           "excluded": part.filter(pl.col("valid") & ~USED).height}, intervals))  # fmt: skip
    return pl.DataFrame(table_rows, infer_schema_length=None)
