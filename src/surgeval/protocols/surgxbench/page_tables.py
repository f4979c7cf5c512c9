"""Tables of the page on where models look: the papers' layouts, and each model's own tables made readable.

A number and its interval share a cell. The CSV files beside the page hold every number unrounded, ends in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from surgeval.pages import Table, distinct
from surgeval.protocols.surgxbench.numbers import MEASURES
from surgeval.protocols.surgxbench.papers import left_out, paper_table_1, paper_table_2
from surgeval.stats import NumberUnit, find_measure, number_text, with_ends

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores

__all__ = ["TITLES", "joint", "layer", "overview", "own", "printed_tables", "readable_table", "tables_to_save"]

TITLES = {
    "classes": "Each instrument",
    "four_way": "Right or wrong, grounded or not (shares of predictions)",
    "references": "Maps that know nothing, and one that knows everything",
    "occlusion": "Right predictions after hiding a region",
    "occlusion_triplets": "Frames with a complete triplet match, after hiding a region",
    "curves": "Areas under the deletion and insertion curves",
    "sanity": "Rank correlation with the map of a randomised model, and of another prompt",
    "videos": "Each video",
    "table1": "Attention correctness and agreement by video, with chance and the attended share",
    "table2": "Action reasoning score by video, with the components that were right",
    "matches": "How labelled triplets were matched, and where the model looked",
    "replies": "Replies: what of them could be read",
    "causal": "Tokens that explain the name of an instrument: of the image, and where they should be",
    "unparsed": "Named in replies, and not in the label space",
    "flags": "Flags raised",
    "failures": "Not measured: frames and records that could not be used",
}
_NOTES = {
    "classes": "Frames are those that show the instrument. Predicted counts every frame in which it is named, also "
    "frames that show no instrument; the verdict speaks of the best answer in frames that show one. The mean is over "
    "the instruments that are labelled or named, each number over those that have it; pooled adds up right, wrong and "
    "missed predictions of all instruments before it divides.",
    "occlusion_triplets": "Lost: none of the top answers is a labelled triplet of the frame any more (the paper's "
    "number). Best match lost: the triplet whose region was hidden is not among them; another one may be.",
}
_PRINTED = {
    "classes": ("class", "frames", "predicted", "f1", "tp_ac", "tp_chance", "tp_lift", "fp_ac"),
    "matches": ("match", "triplets", "share", "ras", "chance"),
    "replies": ("question", "replies", "names", "unparsed", "naming_nothing", "cut_off"),
    "causal": ("named", "names", "of_image", "near", "near_attended", "near_chance"),
    "table1": ("video", "frames", "ac", "aa", "chance"),
    "table2": ("video", "frames", "ars", "valid", "zero"),
}
_FOLDED = ("videos", "flags", "table1", "table2", "unparsed")
_JOINT = {
    "paper_table1": (
        "Table 1 of the early text: attention on any instrument (τ-AC) and on the predicted one (τ-AA), by video",
        "Mean over the frames that count; over all videos with its 95 % interval. Chance is the share of the area that "
        "is annotated: what a map that knows nothing scores.",
    ),
    "paper_table2": (
        "Table 2 of the early text: action reasoning score (ARS) and coverage, by video",
        "ARS is the mean over valid frames (instrument and verb right); V/T is the share of frames that are valid, Z/V "
        "the share of valid frames whose ARS is 0; over all videos with 95 % intervals.",
    ),
    "left_out": (
        "What was measured, and what was left out of means",
        "The cases of one model and measure add up to all that could be read; what could not is listed below.",
    ),
}
_OVERVIEW = ("accuracy", "tp_ac", "tp_chance", "tp_lift", "tp_aa", "tp_aa_chance", "fp_ac", "area",
             "grounded_when_right", "lost_attended_minus_random", "lost_boxes_minus_moved", "triplet_named",
             "triplet_ras", "triplet_ras_chance", "ars", "ars_valid")  # fmt: skip
_SCORES = ("precision", "recall", "f1", "lift", "tp_lift", "fp_lift", "correlation", "change", "change_if_kept",
           "deletion", "insertion", "deletion_random", "insertion_random")  # fmt: skip
_HEADINGS = {
    "valid": "V/T", "zero": "Z/V", "ras_is": "RAS is", "area": "|A|/HW", "ras_chance": "chance (RAS)",
}  # fmt: skip


def overview(scores: Sequence[SurgXScores]) -> Table:
    """The headline numbers, a column per model, and how much each of them left out."""
    rows = [
        [find_measure(MEASURES, key).label, *(_headline(run, key) for run in scores)]
        for key in _OVERVIEW
        if any(key in run.numbers for run in scores)
    ]
    missing = left_out(scores)
    if not missing.is_empty():
        cells = [_left(missing.filter(pl.col("model") == run.name)) for run in scores]
        rows.append(["cases left out of means", *cells])
    if any(run.failed for run in scores):
        rows.append(["frames and records that could not be used", *(str(run.failed) for run in scores)])
    rows = rows or [["cases", *(str(run.cases.height) for run in scores)]]
    heads = distinct(["number", *(run.name for run in scores)])
    columns = [pl.Series(head, [row[k] for row in rows], dtype=pl.String) for k, head in enumerate(heads)]
    note = "Over fewer than six videos an interval is the least that one must allow for."
    few = any(interval.few_clusters for run in scores for interval in run.numbers.values())
    title = "The numbers to read first, with 95 % intervals over videos"
    return Table(title, pl.DataFrame(columns), note if few else "", explained=True)


def _headline(run: SurgXScores, key: str) -> str:
    interval = run.numbers.get(key)
    if interval is None:
        return number_text(None)
    shown = interval.cell(find_measure(MEASURES, key).unit)
    return f"{shown} ({interval.clusters} video{'s' * (interval.clusters != 1)})" if interval.few_clusters else shown


def _left(rows: pl.DataFrame) -> str:
    """`3 of 40 (7.5 %)`."""
    total = int(rows.unique(["what"])["of"].sum())
    gone = int(rows.filter(pl.col("became").str.starts_with("left out"))["cases"].sum())
    return f"{gone} of {total} ({number_text(gone / total, 'share')})" if total else number_text(None)


def joint(scores: Sequence[SurgXScores], name: str) -> tuple[Table, ...]:
    """A table of all models together, if any of them has it."""
    frame = _joint_frames(scores)[name]
    if frame.is_empty():
        return ()
    title, note = _JOINT[name]
    if name == "left_out":
        shares = pl.Series("share", [number_text(value / 100, "share") for value in frame["percent"]])
        shown = frame.drop("percent", *(["model"] if len(scores) == 1 else [])).with_columns(shares)
    else:
        shown = _paper(frame)
    return (Table(title, shown, note, f"tables/{name}.csv"),)


def own(scores: Sequence[SurgXScores], *names: str) -> tuple[Table, ...]:
    """Tables that each model has for itself."""
    tables = []
    for name in names:
        for run in scores:
            if name in run.detail_tables:
                whose = "" if len(scores) == 1 else f": {run.name}"
                file, folded = f"tables/{_file(scores, run, name)}.csv", name in _FOLDED or len(scores) > 1
                for title, table in _parted(name, run.detail_tables[name]).items():
                    note = _NOTES.get(name, "") if title == TITLES[name] else ""
                    tables.append(Table(title + whose, readable_table(table), note, file, folded))
    return tuple(tables)


def tables_to_save(scores: Sequence[SurgXScores]) -> dict[str, pl.DataFrame]:
    """Every table by file name."""
    frames = {name: frame for name, frame in _joint_frames(scores).items() if not frame.is_empty()}
    rows = [{"model": run.name, **row} for run in scores if run.numbers for row in run.to_frame().iter_rows(named=True)]
    frames |= {"headline": pl.DataFrame(rows)} if rows else {}
    return frames | {_file(scores, run, name): table for run in scores for name, table in run.detail_tables.items()}


def _joint_frames(scores: Sequence[SurgXScores]) -> dict[str, pl.DataFrame]:
    return {
        "paper_table1": paper_table_1(scores),
        "paper_table2": paper_table_2(scores),
        "left_out": left_out(scores),
    }


def _file(scores: Sequence[SurgXScores], run: SurgXScores, name: str) -> str:
    return name if len(scores) == 1 else f"{scores.index(run) + 1}_{name}"


def _parted(name: str, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The table by title; those too wide for a page stand in two."""
    if name == "sanity":
        table = table.with_columns(pl.col("step").map_elements(layer, return_dtype=pl.String))
    if name == "references":
        moved = [column for column in table.columns if column.startswith("ras")]
        known = bool(moved) and table["ras"].count() > 0  # without task triplets nobody looked for motion
        boxed = [column for column in table.columns if column.startswith(("ac", "aa", "chance", "lift"))]
        parts = {TITLES[name]: table.drop(*moved)}
        return parts | ({f"{TITLES[name]}: with what moves (RAS)": table.drop(*boxed)} if known else {})
    if name != "classes":
        return {TITLES[name]: table}
    summaries = pl.col("class").is_in(["mean", "pooled"]) & pl.col("frames").is_null()
    frequent_first = table.filter(~summaries).sort("frames", descending=True, maintain_order=True)
    table = pl.concat([frequent_first, table.filter(summaries)])  # mean and pooled stay last
    looked = [column for column in table.columns if column.startswith(("tp_", "fp_", "area"))]
    quality = [column for column in table.columns if column.startswith(("precision", "recall", "f1"))]
    return {
        TITLES[name]: table.drop(*looked, "excluded"),
        f"{TITLES[name]}: where it looks": table.drop(*quality, "frames", "predicted"),
    }


def layer(step: str) -> str:
    """A layer's name without what all of them share.

    >>> layer("3. network.vision_model.encoder.layers.3")
    '3. layers.3'
    >>> layer("3. network.model.language_model.layers.3")
    '3. decoder layers.3'
    """
    number, dot, name = step.partition(". ")
    parts = name.split(".")
    # A model that answers in words has layers of two kinds.
    whose = {"language_model": "decoder ", "vision_tower": "vision "}.get(parts[2] if len(parts) > 4 else "", "")
    return f"{number}{dot}{whose}{'.'.join(parts[-2:])}" if dot else step


def readable_table(table: pl.DataFrame) -> pl.DataFrame:
    """A number and its interval in one cell, headings in the papers' words."""
    return pl.DataFrame([column.alias(_heading(column.name)) for column in _joined(table)])


def _paper(table: pl.DataFrame) -> pl.DataFrame:
    """The same; a head must not break within its symbol, and its unit stands in the cells."""
    heads = {name: name.replace("τ-A", "τ\u2011A").removesuffix(" (%)") for name in table.columns}
    return pl.DataFrame([column.alias(heads[column.name]) for column in _joined(table)])


def _joined(table: pl.DataFrame) -> list[pl.Series]:
    columns = {column.name: column.to_list() for column in table.get_columns()}
    shown = []
    for name, values in columns.items():
        if f"{name}_low" in columns:
            ends = zip(values, columns[f"{name}_low"], columns[f"{name}_high"], strict=True)
            numbers = [[_fraction(name, value) for value in three] for three in ends]
            cells = [with_ends(value, low, high, _unit(name)) for value, low, high in numbers]
            shown.append(pl.Series(name, cells, dtype=pl.String))
        elif table.schema[name].is_float() and not name.endswith(("_low", "_high")):
            cells = [number_text(_fraction(name, value), _unit(name)) for value in values]
            shown.append(pl.Series(name, cells, dtype=pl.String))
        elif not name.endswith(("_low", "_high")):
            shown.append(table.get_column(name))
    return shown


def _unit(column: str) -> NumberUnit:
    """Where the model looks and how often are shares; how well it names and what its score does are scores."""
    return "score" if column in _SCORES else "share"


def _fraction(column: str, value: float | None) -> float | None:
    """Columns that a paper prints in per cent hold per cent already."""
    return value if value is None or not column.endswith("(%)") else value / 100


def _heading(column: str) -> str:
    """`tp_ac` as the papers write it."""
    kind, _, rest = column.partition("_")
    if kind in ("tp", "fp"):
        measure = "AA" if rest.startswith("aa") else "AC"
        prefix = {"ac": "", "aa": "", "aa_chance": "chance of "}.get(rest, f"{rest} of ")
        return f"{prefix}{kind.upper()}-{measure}"
    if column in ("ac", "aa", "ars", "ras", "f1"):
        return column.upper()
    return _HEADINGS.get(column, column.replace("_", " "))


def printed_tables(scores: SurgXScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the headline numbers, and what was measured of each class, match, reply or video."""
    numbers = [
        (measure.label, interval.cell(measure.unit), interval.clusters)
        for key, interval in scores.numbers.items()
        for measure in (find_measure(MEASURES, key),)
    ]
    schema = {"number": pl.String, "value": pl.String, "videos": pl.Int64}
    shown = {
        TITLES[key]: readable_table(scores.tables[key].select(columns))
        for key, columns in _PRINTED.items()
        if key in scores.tables
    }
    return {"": pl.DataFrame(numbers, schema=schema, orient="row"), **shown}
