"""The report on where models look: the papers' tables and figures for one or several models, and a gallery.

Several models on the same frames share one page, so that F1 and grounding stand side by side as in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.errors import BadInput
from surgeval.figures import Bars, BoxGroup, BoxPlot, Curve, Curves, Figure, Series, StackedBars, save_figure
from surgeval.protocols._surgxbench.item import Extras, Hiding, Item
from surgeval.protocols._surgxbench.result import SurgXScores
from surgeval.protocols._surgxbench.tables import FOUR, LEVELS
from surgeval.report._csv import save_tables
from surgeval.report._page import write_page
from surgeval.report._parts import Card, Fact, Picture, Plot, Section, Table

__all__ = ["surgxbench_sections", "write_surgxbench_report"]

_TITLES = {
    "classes": "Each instrument",
    "four_way": "Right or wrong, grounded or not (shares of predictions)",
    "references": "Maps that know nothing, and one that knows everything",
    "occlusion": "Right predictions after hiding a region",
    "occlusion_triplets": "Complete triplet matches after hiding a region",
    "curves": "Areas under the deletion and insertion curves",
    "sanity": "Rank correlation with the map of a randomised model, and of another prompt",
    "videos": "Each video",
    "table1": "Attention correctness and agreement by video (Table 1 of the early text)",
    "table2": "Action reasoning score by video (Table 2 of the early text)",
    "matches": "How labelled triplets were matched, and where the model looked",
    "flags": "Flags raised",
}
_METHOD = (
    "A prompt's heatmap is made in the part of the frame that the model saw. The attended region is its top share of "
    "pixels with positive evidence (or a fixed threshold of the scaled map, profile early). AC is the share of the "
    "region on any annotated box, AA on boxes of the predicted instrument, RAS also counts what moves once the "
    "camera's own motion is taken away. Chance is the annotated share of the visible area: what a map without "
    "knowledge scores. Lift is the ratio of the two means. A prediction is grounded when AC is above the stated "
    "level and above chance.\n\n"
    "Cases without a region, with a constant map, without annotation or with none of it visible are left out of "
    "means and counted; AA also where the instrument itself has no visible box. What an occlusion does is told only "
    "where there was something to hide. Top-1 is counted in frames that show an instrument. Intervals "
    "draw whole videos with replacement (2.5th and 97.5th percentiles)."
)


def write_surgxbench_report(
    scores: Sequence[SurgXScores],
    out: Path,
    *,
    items: Mapping[str, Sequence[Item]] | None = None,
    extras: Mapping[str, Extras] | None = None,
) -> Path:
    """Write page, tables and figures below `out`; `items` are the gallery's pictures by model name."""
    if not scores:
        raise BadInput("report: found no runs, expected at least one")
    names = [one.name for one in scores]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"report: found two runs named {twice!r}, expected different names")
    save_tables(_all_tables(scores), out / "tables")
    figures = _figures(scores)
    folder = out / "figures"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.items():
            save_figure(figure, folder / name)
    except OSError as error:
        raise BadInput(f"{folder}: figures cannot be written: {error.strerror or error}") from error
    title = names[0] if len(names) == 1 else "Where do they look?"
    return write_page(
        out / "report.html", title, surgxbench_sections(scores, figures, items or {}, extras or {}), kind="surgxbench",
        lead=_lead(scores), details=_details(scores),
    )  # fmt: skip


def surgxbench_sections(
    scores: Sequence[SurgXScores],
    figures: Mapping[str, Figure],
    items: Mapping[str, Sequence[Item]],
    extras: Mapping[str, Extras] | None = None,
) -> tuple[Section, ...]:
    """The chapters."""
    sections = [
        Section("Overview", "", facts=_facts(scores) if len(scores) == 1 else (), tables=(_overview(scores),)),
        Section("Instruments", "Is it right, and does it look at what it names? The mark at a box is chance.",
                figures=_plots(figures, "f1", "grounding"), tables=_shown(scores, "classes", "table1", "videos")),
        Section("Right for the right reason?", "Every prediction is right or wrong, and its map lies on an instrument "
                "or not. Right and ungrounded is right for the wrong reason.",
                figures=_plots(figures, "four_way"), tables=_shown(scores, "four_way")),
        Section("Reference maps", "The same metrics for maps made without a model. A model worth explaining beats "
                "uniform and centre.", tables=_shown(scores, "references")),
        Section("Occlusion", "If a map says what the score depends on, hiding its region costs more than hiding the "
                "same shape elsewhere; if the score is about the instrument, hiding the instrument costs most.",
                figures=_plots(figures, "occlusion", "curve"),
                tables=_shown(scores, "occlusion", "occlusion_triplets", "curves"), paired=True),
        Section("Triplets", "Each labelled triplet takes the best match among the top prompts.",
                figures=(*_plots(figures, "matches", "ras"), *_pipelines(extras or {})),
                tables=_shown(scores, "matches", "table2"),
                cards=tuple(_hidden(name, one) for name, found in (extras or {}).items() for one in found.hidings)),
        Section("Is the map a property of the model?", "Shuffling the weights from the output down must change the "
                "map, and so should another prompt. A correlation that stays near 1 says that the map shows the "
                "image.", figures=_plots(figures, "sanity"), tables=_shown(scores, "sanity")),
        *(Section(f"Gallery: {one.name}" if len(scores) > 1 else "Gallery",
                  "Left the frame with its annotation, right the map: white is the attended region, cyan what moves, "
                  "dark what the model never saw.", cards=tuple(_card(item) for item in items[one.name]))
          for one in scores if items.get(one.name)),
        Section("Left out", "Nothing is dropped silently.", tables=_shown(scores, "flags")),
    ]  # fmt: skip
    kept = [one for one in sections if one.tables or one.figures or one.cards]
    return (*kept, Section("How it was computed", _METHOD))


def _lead(scores: Sequence[SurgXScores]) -> str:
    said = []
    for one in scores:
        numbers = one.headline
        if "accuracy" in numbers and "tp_ac" in numbers:
            said.append(
                f"{one.name} names an instrument that is there in {numbers['accuracy'].estimate:.0%} of the frames "
                f"that show one; when it is right, {numbers['tp_ac'].estimate:.0%} of what it looks at is an "
                f"instrument (chance {numbers['tp_chance'].estimate:.0%})."
            )
    return " ".join(said)


def _details(scores: Sequence[SurgXScores]) -> dict[str, str]:
    """What was chosen; where the models' runs differ, each choice once, in their order."""
    found = [_choices(one) for one in scores]
    return {key: "; ".join(dict.fromkeys(one[key] for one in found)) for key in found[0]}


def _choices(one: SurgXScores) -> dict[str, str]:
    config, model = one.settings, one.record.manifest.model
    method = config["method"]
    extra = ", ".join(f"{key} {value}" for key, value in method.items() if key != "name")
    top = config["region"] == "top"
    return {
        "Profile": str(config["profile"]),
        "Heatmap": f"{method['name']} ({extra})" if extra else str(method["name"]),
        "Region": f"top {config['keep_top']:.0%}" if top else f"≥ {config['threshold']} of min-max",
        "Geometry": str(config["geometry"]),
        "Model": f"{model['family']} {str(model['identity'])[:12]}",
        "Videos": str(one.cases["cluster"].n_unique()),
    }


_NUMBERS = {
    "accuracy": "top-1 right", "tp_ac": "TP-AC", "tp_aa": "TP-AA", "tp_chance": "chance", "tp_lift": "lift",
    "fp_ac": "FP-AC", "grounded_when_right": "grounded when right",
    "lost_attended_minus_random": "lost by hiding the region, more than elsewhere",
    "lost_boxes_minus_moved": "lost by hiding the instrument, more than elsewhere",
}  # fmt: skip


def _facts(scores: Sequence[SurgXScores]) -> tuple[Fact, ...]:
    found = scores[0].headline
    return tuple(
        Fact(_NUMBERS[key], f"{found[key].estimate:.2f}", f"{found[key].low:.2f} to {found[key].high:.2f}"
             if found[key].low == found[key].low else "no interval")
        for key in ("accuracy", "tp_ac", "tp_chance", "tp_lift") if key in found
    )  # fmt: skip


def _overview(scores: Sequence[SurgXScores]) -> Table:
    rows = []
    for key, title in _NUMBERS.items():
        if any(key in one.headline for one in scores):
            rows.append({"number": title, **{one.name: _with_ends(one.headline.get(key)) for one in scores}})
    if not rows:
        rows = [{"number": "cases", **{one.name: str(one.cases.height) for one in scores}}]
    return Table("The numbers to read first, with 95 % intervals over videos", pl.DataFrame(rows))


def _with_ends(interval: Any) -> str:
    if interval is None:
        return "–"
    if interval.low != interval.low:
        return f"{interval.estimate:.3f}"
    return f"{interval.estimate:.3f} [{interval.low:.3f},\u00a0{interval.high:.3f}]"


def _shown(scores: Sequence[SurgXScores], *names: str) -> tuple[Table, ...]:
    made = []
    for name in names:
        for one in scores:
            if name in one.tables:
                whose = "" if len(scores) == 1 else f": {one.name}"
                for title, table in _parted(name, one.tables[name]).items():
                    made.append(Table(title + whose, _readable(table), file=f"tables/{_file(scores, one, name)}.csv",
                                      folded=name in ("videos", "flags") or len(scores) > 1))  # fmt: skip
    return tuple(made)


def _parted(name: str, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The table by title; the one of instruments is too wide for a page and stands in two."""
    if name == "sanity":
        table = table.with_columns(pl.col("step").map_elements(_short, return_dtype=pl.String))
    if name != "classes":
        return {_TITLES[name]: table}
    named = ("precision", "recall", "f1")
    looked = [column for column in table.columns if column.startswith(("tp_", "fp_"))]
    told = [column for column in table.columns if column.startswith(named)]
    return {
        _TITLES[name]: table.drop(*looked, "excluded"),
        f"{_TITLES[name]}: where it looks": table.drop(*told, "frames", "predicted"),
    }


def _short(step: str) -> str:
    """A layer's name without what all of them share: `3. network.vision_model.encoder.layers.3` → `3. layers.3`."""
    number, dot, name = step.partition(". ")
    return f"{number}{dot}{'.'.join(name.split('.')[-2:])}" if dot else step


def _file(scores: Sequence[SurgXScores], one: SurgXScores, name: str) -> str:
    return name if len(scores) == 1 else f"{scores.index(one) + 1}_{name}"


def _all_tables(scores: Sequence[SurgXScores]) -> dict[str, pl.DataFrame]:
    made = {_file(scores, one, name): table for one in scores for name, table in one.tables.items()}
    rows = [{"model": one.name, **row} for one in scores for row in one.table().iter_rows(named=True)]
    return {"headline": pl.DataFrame(rows), **made} if rows else made


def _readable(table: pl.DataFrame) -> pl.DataFrame:
    """A number and its interval in one cell."""
    made = []
    for column in table.columns:
        if f"{column}_low" in table.columns:
            cells = [
                "–" if value is None else f"{value:.3f}" if low is None else f"{value:.3f} [{low:.3f},\u00a0{high:.3f}]"
                for value, low, high in table.select(column, f"{column}_low", f"{column}_high").iter_rows()
            ]
            made.append(pl.Series(_heading(column), cells))
        elif not column.endswith(("_low", "_high")):
            made.append(table[column].alias(_heading(column)))
    return pl.DataFrame(made)


def _heading(column: str) -> str:
    """`tp_ac` as the papers write it."""
    kind, _, rest = column.partition("_")
    if kind in ("tp", "fp"):
        return f"{kind.upper()}-{rest.upper()}" if rest in ("ac", "aa") else f"{rest} ({kind.upper()})"
    if column in ("ac", "aa", "ars", "ras", "f1"):
        return column.upper()
    return {"valid": "V/T", "zero": "Z/V", "ras_is": "RAS is"}.get(column, column.replace("_", " "))


def _plots(figures: Mapping[str, Figure], *starts: str) -> tuple[Plot, ...]:
    return tuple(
        Plot(
            figure, files=(f"figures/{name}.svg", f"figures/{name}.png"), wide=not name.startswith(("curve", "sanity"))
        )
        for start in starts
        for name, figure in figures.items()
        if name.startswith(start)
    )


def _figures(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    made: dict[str, Figure] = {}
    with_classes = [one for one in scores if "classes" in one.tables]
    if with_classes:
        made |= _instrument_figures(with_classes)
    with_matches = [one for one in scores if "matches" in one.tables]
    if with_matches:
        made |= _triplet_figures(with_matches)
    for number, one in enumerate(scores):
        made |= _check_figures(one, str(number + 1) if len(scores) > 1 else "")
    return made


def _instrument_figures(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    """Figures 3 and 7 of the paper: F1, and box plots of TP-AA, TP-AC and FP-AC, per instrument."""
    met = pl.concat([one.tables["classes"].filter(pl.col("frames") > 0).select("class") for one in scores])["class"]
    classes = tuple(name for name in scores[0].classes if name in set(met))
    made: dict[str, Figure] = {}
    wanted = ("precision", "recall", "f1") if len(scores) == 1 else ("f1",)
    series = tuple(
        Series(label.upper() if label == "f1" and len(scores) == 1 else label if len(scores) == 1 else one.name,
               tuple(_value(one.tables["classes"], name, label) for name in classes))
        for one in scores for label in wanted
    )  # fmt: skip
    title = "Precision, recall and F1" if len(scores) == 1 else "F1"
    made["f1"] = Bars(title, classes, series, "score", mode="grouped")
    kinds = {"tp_aa": ("TP-AA: right, on the named instrument", "aa", True),
             "tp_ac": ("TP-AC: right, on any instrument", "ac", True),
             "fp_ac": ("FP-AC: wrong, on any instrument", "ac", False)}  # fmt: skip
    for key, (label, column, right) in kinds.items():
        groups = []
        for one in scores:
            rows = one.cases.filter((pl.col("task") == "instruments") & pl.col("predicted") & (pl.col("excluded") == "")
                                    & (pl.col("present") == right) & pl.col(column).is_not_null())  # fmt: skip
            parts = {name: rows.filter(pl.col("class") == name) for name in classes}
            values = tuple(tuple(parts[name][column].to_list()) for name in classes)
            marks = tuple(_mean(parts[name]["chance"]) for name in classes)
            groups.append(BoxGroup(one.name, values, marks if column == "ac" else ()))
        if any(any(group.values) for group in groups):
            made[f"grounding_{key}"] = BoxPlot(label, classes, tuple(groups), "share of the attended region")
    if any("four_way" in one.tables for one in scores):
        shown = [one for one in scores if "four_way" in one.tables]
        labels, counts = [], []
        for one in shown:
            table = one.tables["four_way"].filter(pl.col("predictions") > 0)
            if len(shown) > 1:
                table = table.filter(pl.col("class") == "all")
            for row in table.iter_rows(named=True):
                labels.append(one.name if len(shown) > 1 else row["class"])
                counts.append([round(row["predictions"] * (row[kind] or 0.0)) for kind in FOUR])
        cells = tuple(Series(title, tuple(float(row[k]) for row in counts)) for k, title in enumerate(FOUR.values()))
        made["four_way"] = StackedBars("Right or wrong, grounded or not", tuple(labels), cells, "predictions")
    occluded = [one for one in scores if "occlusion" in one.tables]
    if occluded:
        hidden = tuple(occluded[0].tables["occlusion"]["hidden"].to_list())
        bars = tuple(
            Series(one.name, tuple(one.tables["occlusion"]["lost"].fill_null(0).to_list())) for one in occluded
        )
        made["occlusion"] = Bars("Right predictions lost by hiding …", hidden, bars, "share lost", mode="grouped")
    return made


def _triplet_figures(scores: Sequence[SurgXScores]) -> dict[str, Figure]:
    """Figure 4 of the paper: match breakdown, and RAS by match."""
    names = {"I": "I only"}
    parts = tuple(
        Series(names.get(level, level),
               tuple(float(one.tables["matches"].filter(pl.col("match") == level)["triplets"].sum()) for one in scores))
        for level in LEVELS
    )  # fmt: skip
    made: dict[str, Figure] = {
        "matches": StackedBars("Labelled triplets among the top prompts", tuple(one.name for one in scores), parts,
                               "labelled triplets")
    }  # fmt: skip
    groups = []
    for one in scores:
        rows = one.cases.filter(
            (pl.col("task") == "triplets") & (pl.col("excluded") == "") & pl.col("ras").is_not_null()
        )
        split = {level: rows.filter(pl.col("level") == level) for level in LEVELS}
        groups.append(BoxGroup(one.name, tuple(tuple(split[level]["ras"].to_list()) for level in LEVELS),
                               tuple(_mean(split[level]["chance"]) for level in LEVELS)))  # fmt: skip
    if any(any(group.values) for group in groups):
        labels = tuple(f"{names.get(level, level)} ({'global' if level == 'missed' else 'local'})" for level in LEVELS)
        made["ras"] = BoxPlot("RAS by match", labels, tuple(groups), "share of the attended region")
    return made


def _check_figures(one: SurgXScores, mark: str) -> dict[str, Figure]:
    made: dict[str, Figure] = {}
    rows = one.cases.filter(pl.col("task") == "curves")
    if not rows.is_empty():
        lines = []
        for kind, label in (("deletion", "deletion"), ("deletion_random", "deletion, random order"),
                            ("insertion", "insertion"), ("insertion_random", "insertion, random order")):  # fmt: skip
            table = pl.DataFrame(rows[kind].to_list(), orient="row", infer_schema_length=None)
            mean = table.mean().row(0)
            lines.append((label, mean))
        low = min(min(mean) for _, mean in lines)
        high = max(max(mean) for _, mean in lines)
        span = (high - low) or 1.0
        places = tuple(k / (len(lines[0][1]) - 1) for k in range(len(lines[0][1])))
        curves = tuple(
            Curve(label, places, tuple((value - low) / span for value in mean), heavy="random" not in label)
            for label, mean in lines
        )
        title = "Deletion and insertion" + (f": {one.name}" if mark else "")
        made[f"curves{mark}"] = Curves(title, "share of pixels", "score, scaled", curves)
    if "sanity" in one.tables:
        table = one.tables["sanity"].filter(pl.col("correlation").is_not_null())
        if not table.is_empty():
            title = "Rank correlation after randomising" + (f": {one.name}" if mark else "")
            made[f"sanity{mark}"] = Bars(
                title, tuple(_short(step) for step in table["step"].to_list()),
                (Series("correlation", tuple(max(0.0, v) for v in table["correlation"].to_list())),),
                "correlation (negative ones as 0)" if min(table["correlation"].to_list()) < 0 else "correlation",
            )  # fmt: skip
    return made


def _value(table: pl.DataFrame, name: str, column: str) -> float:
    found = table.filter(pl.col("class") == name)[column].to_list()
    return float(found[0]) if found and found[0] is not None else 0.0


def _mean(column: pl.Series) -> float | None:
    value = column.mean()
    return float(value) if isinstance(value, float) else None


def _pipelines(extras: Mapping[str, Extras]) -> tuple[Plot, ...]:
    """How motion was found, once: it does not depend on the model."""
    found = [one.flow for one in extras.values() if one.flow is not None]
    return (Plot(found[0], "Flow to the next frame, the camera's part of it, the rest, and what counts as moving."
                 " Colour is direction.", wide=True),) if found else ()  # fmt: skip


def _hidden(name: str, one: Hiding) -> Card:
    """Figure 6: the top prompts before and after the attended region was hidden."""

    def listed(prompts: Sequence[tuple[str, float]]) -> str:
        return "; ".join(f"{'✓ ' if prompt == one.truth else ''}{prompt} {score:.3f}" for prompt, score in prompts)

    title = f"{one.truth}: {'kept' if one.kept else 'lost'} when the attended region is hidden"
    lines = (f"before: {listed(one.before)}", f"after: {listed(one.after)}", f"{name}, {one.video} / {one.frame}")
    return Card(
        Picture(one.picture, f"{one.video} frame {one.frame} with and without the attended region"), title, lines
    )


def _card(item: Item) -> Card:
    ac = "AC –" if item.ac is None else f"AC {item.ac:.2f}"
    chance = "" if item.chance is None else f", chance {item.chance:.2f}"
    aa = "" if item.aa is None else f", AA {item.aa:.2f}"
    keys = {
        # All right ones, the least grounded first; one below chance is ungrounded however high its AC.
        "right but ungrounded": None if item.ac is None or not item.right else 1 - item.ac + (not item.grounded),
        "wrong but grounded": None if item.ac is None or item.right else item.ac + bool(item.grounded),
        "most grounded": item.ac,
        "least grounded": None if item.ac is None else -item.ac,
        "highest score": item.score,
    }
    lines = (f"{ac}{chance}{aa}, score {item.score:.3f}", f"labelled: {', '.join(item.present) or 'nothing'}",
             f"{item.video} / {item.frame}" + (f" ({item.flags})" if item.flags else ""))  # fmt: skip
    alt = f"{item.video} frame {item.frame}: boxes and heatmap of {item.predicted}"
    return Card(Picture(item.picture, alt), f"{item.predicted}: {item.kind}", lines, keys)
