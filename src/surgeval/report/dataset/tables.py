"""Statistics as tables, in the layouts of the papers.

Class frequencies follow ProstaTD's Table 6 (rows classes, columns sources and the total, published counts beside),
instances per frame its Table 2. Names come from data files: column names are made distinct, nothing is trusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from surgeval.datasets import Problem
from surgeval.figures import bin_labels
from surgeval.pages import distinct
from surgeval.records import UNKNOWN
from surgeval.report.dataset import margins
from surgeval.report.dataset.bins import BOX_EDGES, PER_FRAME, RUN_EDGES

if TYPE_CHECKING:
    from surgeval.report.dataset.statistics import DatasetStatistics, RunCounts


def statistics_tables(s: DatasetStatistics) -> dict[str, pl.DataFrame]:
    """All tables that have rows, by name."""
    tables = {
        "overview": _overview(s),
        "splits": _splits(s),
        "videos": _videos(s),
        "triplets": _triplets(s),
        **{name: _component(s, name) for name in margins.COMPONENTS},
        "instances_per_frame": _per_frame(s),
        "instrument_verb": _pairs(s, "verbs"),
        "instrument_target": _pairs(s, "targets"),
        "instrument_instrument": _together(s),
        "phases": _phases(s),
        "phases_by_video": _phases_by_video(s),
        "actions": _actions(s),
        "action_lengths": _action_lengths(s),
        "box_sizes": _box_sizes(s),
        "questions": _questions(s),
    }
    return {name: table for name, table in tables.items() if table.height}


def _overview(s: DatasetStatistics) -> pl.DataFrame:
    used = sum(any(row) for row in margins.triplet_counts(s)[:-1])
    rows: list[tuple[str, int | None]] = [
        ("videos", len(s.videos)),
        ("sources", len(s.sources)),
        ("seconds of video", None if s.seconds is None else round(s.seconds)),
        ("frames", s.frames),
        ("labelled frames", s.labelled),
        ("labelled frames without an instance", _empty_frames(s)),
        ("instances", s.total),
        ("instances with a triplet class", s.triplets),
        ("instances with a box", s.boxes),
        ("instances without a box", s.total - s.boxes),
        ("boxes without a finite, positive size", s.bad_boxes),
        ("triplet classes in the label space", len(s.space.triplets)),
        ("triplet classes that occur", used),
        ("questions", s.question_count),
    ]
    if not s.space.triplets:
        rows = [row for row in rows if "triplet" not in row[0]]
    return _table({"quantity": [name for name, _ in rows], "value": [value for _, value in rows]})


def _empty_frames(s: DatasetStatistics) -> int | None:
    # With triplets in the label space, column 0 counts frames without a *triplet*, which is another thing.
    return None if s.space.triplets and s.triplets < s.total else sum(row[0] for row in s.per_frame)


def _splits(s: DatasetStatistics) -> pl.DataFrame:
    if not any(row.video.split or row.video.source for row in s.videos):
        return pl.DataFrame()
    order = list(dict.fromkeys(row.video.split for row in s.videos))
    keys = sorted({(row.video.split, row.video.source) for row in s.videos},
                  key=lambda key: (order.index(key[0]), str(key[1])))  # fmt: skip
    groups = [[row for row in s.videos if (row.video.split, row.video.source) == key] for key in keys]
    return _table(
        {
            "split": [split or "(no split)" for split, _ in keys],
            "source": [source or "(no source)" for _, source in keys],
            "videos": [len(group) for group in groups],
            "frames": [sum(row.frames for row in group) for group in groups],
            "labelled frames": [sum(row.labelled for row in group) for group in groups],
            "instances": [sum(row.instances for row in group) for group in groups],
        }
    )


def _videos(s: DatasetStatistics) -> pl.DataFrame:
    columns: dict[str, Sequence[object]] = {
        "source": [row.video.source for row in s.videos],
        "split": [row.video.split for row in s.videos],
        "procedure": [row.video.procedure for row in s.videos],
        "seconds": [_rounded(row.seconds) for row in s.videos],
        "usual gap between labels, seconds": [_rounded(row.step) for row in s.videos],
    }
    return _table(
        {
            "video": [row.video.name for row in s.videos],
            **{name: values for name, values in columns.items() if any(values)},
            "frames": [row.frames for row in s.videos],
            "labelled frames": [row.labelled for row in s.videos],
            "instances": [row.instances for row in s.videos],
            **({"triplet instances": [row.triplets for row in s.videos]} if s.space.triplets else {}),
            "instances without box": [row.instances - row.boxes for row in s.videos],
        }
    )


def _by_source(s: DatasetStatistics, rows: Sequence[Sequence[int]]) -> dict[str, Sequence[object]]:
    """One column per source (where there are several) and the total; a source may itself be called "total"."""
    fixed = (
        "id",
        "triplet",
        "instrument",
        "verb",
        "target",
        "total",
        *(f"published {name}" for name in s.space.counts),
    )
    heads = distinct([*fixed, *margins.source_names(s)])[len(fixed) :] if len(s.sources) > 1 else []
    columns: dict[str, Sequence[object]] = {head: [row[k] for row in rows] for k, head in enumerate(heads)}
    return {**columns, "total": [sum(row) for row in rows]}


def _triplets(s: DatasetStatistics) -> pl.DataFrame:
    classes = len(s.space.triplets)
    if not classes:
        return pl.DataFrame()
    counts = margins.triplet_counts(s)
    keep = classes + any(counts[-1])
    published = {
        f"published {source}": [*values, *[None] * (keep - classes)] for source, values in s.space.counts.items()
    }
    columns: dict[str, Sequence[object]] = {
        "id": [*range(classes), None][:keep],
        "triplet": [*s.space.triplet_names, "(no class)"][:keep],
        **_by_source(s, counts[:keep]),
        **published,
    }
    return _table(columns)


def _component(s: DatasetStatistics, component: str) -> pl.DataFrame:
    counts, names = margins.component_counts(s, component), margins.names_of(s, component)
    keep = len(names) - (not any(counts[-1]))
    if len(names) == 1:
        return pl.DataFrame()
    return _table({component[:-1]: names[:keep], **_by_source(s, counts[:keep])}).sort(
        "total", descending=True, maintain_order=True
    )


def _per_frame(s: DatasetStatistics) -> pl.DataFrame:
    if not s.labelled:
        return pl.DataFrame()
    rows = list(zip(margins.source_names(s), s.per_frame, strict=True)) if len(s.sources) > 1 else []
    rows.append(("all", tuple(sum(column) for column in zip(*s.per_frame, strict=True))))
    names = [name for name, _ in rows]
    frames: list[int | None] = [sum(counts) for _, counts in rows]
    percent = [margins.per_frame_percent(counts) for _, counts in rows]
    if s.space.name in margins.PUBLISHED_PER_FRAME:
        names.append(f"{s.space.name} as published")
        frames.append(None)
        percent.append(margins.PUBLISHED_PER_FRAME[s.space.name])
    columns: dict[str, Sequence[object]] = {"source": names, "labelled frames": frames}
    columns |= {label: [row[k] for row in percent] for k, label in enumerate(PER_FRAME)}
    return _table(columns)


def _pairs(s: DatasetStatistics, component: str) -> pl.DataFrame:
    names = margins.names_of(s, component)
    if len(names) == 1 or not s.total:
        return pl.DataFrame()
    return _matrix(margins.names_of(s, "instruments"), names, margins.pair_counts(s, component))


def _together(s: DatasetStatistics) -> pl.DataFrame:
    return (
        _matrix(s.space.instruments, s.space.instruments, margins.together_counts(s)) if s.together else pl.DataFrame()
    )


def _matrix(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[int]]) -> pl.DataFrame:
    kept_rows = [r for r in range(len(rows)) if rows[r] != margins.NOT_KNOWN or any(values[r])]
    kept_columns = [c for c in range(len(columns)) if columns[c] != margins.NOT_KNOWN or any(row[c] for row in values)]
    heads = distinct(["instrument", *(columns[c] for c in kept_columns)])
    table: dict[str, Sequence[object]] = {"instrument": [rows[r] for r in kept_rows]}
    for head, c in zip(heads[1:], kept_columns, strict=True):
        table[head] = [values[r][c] for r in kept_rows]
    return _table(table)


def _run_columns(runs: Sequence[RunCounts]) -> dict[str, Sequence[object]]:
    return {
        "stretches": [run.runs for run in runs],
        "seconds": [_rounded(run.seconds) for run in runs],
        "mean seconds": [_rounded(run.seconds / run.runs) if run.runs else None for run in runs],
        "longest seconds": [_rounded(run.longest) for run in runs],
    }


def _phases(s: DatasetStatistics) -> pl.DataFrame:
    ids = _phase_ids(s)
    videos = Counter(phase for row in s.videos for phase in row.phase_seconds)
    runs = [s.phases[phase] for phase in ids]
    columns: dict[str, Sequence[object]] = {
        "phase": [margins.phase_name(s, phase) for phase in ids],
        "videos": [videos[phase] for phase in ids],
        **_run_columns(runs),
    }
    return _table(columns)


def _phase_ids(s: DatasetStatistics) -> list[int]:
    return sorted(s.phases, key=lambda phase: (phase == UNKNOWN, phase))


def _phases_by_video(s: DatasetStatistics) -> pl.DataFrame:
    ids = _phase_ids(s)
    rows = [row for row in s.videos if row.phase_seconds]
    heads = distinct(["video", *(margins.phase_name(s, phase) for phase in ids)])
    columns: dict[str, Sequence[object]] = {"video": [row.video.name for row in rows]}
    for head, phase in zip(heads[1:], ids, strict=True):
        columns[head] = [_rounded(row.phase_seconds.get(phase, 0.0)) for row in rows]
    return _table(columns)


def _actions(s: DatasetStatistics) -> pl.DataFrame:
    ids = sorted(s.actions)
    columns: dict[str, Sequence[object]] = {
        "id": ids,
        "triplet": [s.space.triplet_name(number) for number in ids],
        **_run_columns([s.actions[number] for number in ids]),
    }
    return _table(columns)


def _action_lengths(s: DatasetStatistics) -> pl.DataFrame:
    return _table({"seconds": bin_labels(RUN_EDGES), "actions": s.run_lengths}) if s.actions else pl.DataFrame()


def _box_sizes(s: DatasetStatistics) -> pl.DataFrame:
    ids = sorted(s.box_sizes, key=lambda number: (number == UNKNOWN, number))
    columns: dict[str, Sequence[object]] = {
        "instrument": [margins.names_of(s, "instruments")[number] for number in ids]
    }
    for k, label in enumerate(bin_labels(BOX_EDGES)):
        columns[f"{label} %"] = [s.box_sizes[number][k] for number in ids]
    columns["boxes"] = [sum(s.box_sizes[number]) for number in ids]
    return _table(columns)


def _questions(s: DatasetStatistics) -> pl.DataFrame:
    order = sorted(s.questions.items(), key=lambda item: (item[0][0], item[0][1] != "all", item[0][1], -item[1]))
    columns: dict[str, Sequence[object]] = {
        "kind": [key[0] for key, _ in order],
        "property": [key[1] for key, _ in order],
        "value": [key[2] for key, _ in order],
        "questions": [count for _, count in order],
    }
    return _table(columns)


def problem_tables(
    counts: Mapping[str, int], problems: Sequence[Problem], root: Path | None = None
) -> dict[str, pl.DataFrame]:
    """What a check found: per kind, and one by one; files below `root` without their way there."""
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    levels = {problem.kind: problem.level for problem in problems}
    tables = {
        "problem_kinds": _table(
            {
                "kind": [kind for kind, _ in kinds],
                "level": [levels.get(kind, "") for kind, _ in kinds],
                "problems": [count for _, count in kinds],
            }
        ),
        "problems": _table(
            {
                "level": [problem.level for problem in problems],
                "kind": [problem.kind for problem in problems],
                "file": [_below(root, problem.path) for problem in problems],
                "record": [problem.record or "" for problem in problems],
                "field": [problem.field or "" for problem in problems],
                "sentence": [problem.sentence for problem in problems],
            }
        ),
    }
    return {name: table for name, table in tables.items() if table.height}


def _below(root: Path | None, file: str) -> str:
    return str(Path(file).relative_to(root)) if root is not None and Path(file).is_relative_to(root) else file


_SURROGATE = re.compile("[\ud800-\udfff]")


def _table(columns: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    heads = distinct(_clean(head) for head in columns)
    cells = ([_clean(value) if isinstance(value, str) else value for value in values] for values in columns.values())
    return pl.DataFrame([pl.Series(head, values) for head, values in zip(heads, cells, strict=True)])


def _clean(text: str) -> str:
    # A file name that is not UTF-8 reaches us with lone surrogates, which no table or page can hold.
    return _SURROGATE.sub("\ufffd", text)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 3)
