"""The report on a dataset: what is in it, how it is spread, what is wrong with it.

`OUT/report.html` stands alone; `OUT/tables/*.csv` and `OUT/figures/*.{svg,png}` hold the same numbers and figures for
papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from surgeval.arrays import Image
from surgeval.datasets import Dataset, OnProblem, Problem, Sources, raise_errors
from surgeval.figures import Figure
from surgeval.pages import CardNumber, Picture, Plot, Scorecard, Section, Table, save_tables, write_page
from surgeval.report.dataset.charts import MOST_CLASSES, MOST_VIDEOS, crowd
from surgeval.report.dataset.count import dataset_statistics
from surgeval.report.dataset.findings import Checked, dataset_findings
from surgeval.report.dataset.statistics import DatasetStatistics
from surgeval.report.dataset.tables import problem_tables

_MOST_PROBLEMS = 200  # listed on the page
_MOST_VIDEO_ROWS = 12  # shown without being asked
_USUAL_GAP = (
    "The usual gap between labels is the commonest one among the first frames of a video, or their median where none "
    "is common: where labels have holes, other gaps are longer."
)
_EXAMPLES = 3  # of each kind of problem


def write_dataset_page(
    dataset: Dataset,
    out: str | Path,
    *,
    title: str | None = None,
    sources: Sources | None = None,
    check: Checked | None = None,
    sheet: Image | None = None,
    on_problem: OnProblem | None = None,
) -> Path:
    """Count the dataset, write page, tables and figures below `out`, and return the page's path.

    `sources` says which videos are of which source, where the dataset does not: as `name_sources`. `sheet` is a picture
    of sample frames. With a `check` at hand its problems are in the report and do not stop it;
    without, the first error raises, unless `on_problem` says otherwise.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> frame = Frame("VID01", "000001", 1, 1.0, None, 640, 480, (Instance(Triplet(3)),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_dataset_page(MemoryDataset(load_labels("cholec80"), [frame]), Path(folder))
    ...     page.name, (Path(folder) / "tables").is_dir()
    ('report.html', True)
    """
    out = Path(out)
    report = on_problem or (raise_errors if check is None else _go_on)
    statistics = dataset_statistics(dataset, sources=sources, on_problem=report)
    tables = statistics.tables
    if check is not None:
        tables |= problem_tables(check.counts, check.problems, dataset.root)
    save_tables(tables, out / "tables")
    sections = dataset_sections(statistics, check=check, root=dataset.root, sheet=sheet, linked=True)
    return write_page(
        out / "report.html",
        title or statistics.name,
        sections,
        kind="dataset report",
        scorecard=_scorecard(statistics, check),
        details={"Format": statistics.format, "Label space": statistics.space.name},
    )


def _go_on(problem: Problem) -> None:
    """The check has told it."""


def dataset_sections(
    statistics: DatasetStatistics,
    *,
    check: Checked | None = None,
    root: str | Path | None = None,
    sheet: Image | None = None,
    linked: bool = False,
) -> tuple[Section, ...]:
    """The chapters.

    Files with problems are named from `root` on; `linked` says that tables and figures lie beside the page.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Frame, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> frame = Frame("VID01", "000001", 1, 1.0, None, 640, 480, (Instance(Triplet(3)),))
    >>> sections = dataset_sections(dataset_statistics(MemoryDataset(load_labels("cholec80"), [frame])))
    >>> [section.title for section in sections][:2]
    ['Overview', 'Classes']
    """
    root = None if root is None else Path(root)
    shelf = _Shelf(statistics.tables, statistics.figures, linked)
    sections = [
        _overview(statistics, shelf, sheet, check),
        _classes(statistics, shelf),
        _density(statistics, shelf),
        _together(shelf),
        _time(statistics, shelf),
        _boxes(statistics, shelf),
        _questions(shelf),
        _problems(check, root, linked),
        _method(statistics),
    ]
    return tuple(
        section for section in sections if section is not None and (section.tables or section.figures or section.text)
    )


class _Shelf:
    """Tables and figures by name, taken out for a section; a name that is absent gives nothing."""

    def __init__(self, tables: Mapping[str, pl.DataFrame], figures: Mapping[str, Figure], linked: bool) -> None:
        self.tables, self.figures, self.linked = tables, figures, linked

    def table(self, name: str, title: str, note: str = "", *, folded: bool = False) -> tuple[Table, ...]:
        if name not in self.tables:
            return ()
        file = f"tables/{name}.csv" if self.linked else ""
        return (Table(title, self.tables[name], note, file, folded),)

    def plot(self, name: str, note: str = "", *, wide: bool = False) -> tuple[Plot, ...]:
        if name not in self.figures:
            return ()
        files = (f"figures/{name}.svg", f"figures/{name}.png") if self.linked else ()
        return (Plot(self.figures[name], note, files, wide),)


def _contents(s: DatasetStatistics) -> str:
    contents = (
        f"{_count(s.total, 'instance')} in {_count(s.labelled, 'labelled frame')} of {_count(len(s.videos), 'video')}"
    )
    if not s.labelled:
        contents = f"{_count(s.frames, 'frame')} of {_count(len(s.videos), 'video')}, none of them labelled"
    sources = f" from {len(s.sources)} sources" if len(s.sources) > 1 else ""
    questions = f", with {_count(s.question_count, 'question')}" if s.question_count else ""
    return f"{contents}{sources}{questions}."


def _count(number: int, noun: str) -> str:
    return f"{_grouped(number)} {_noun(number, noun)}"


def _noun(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")


def _share(part: int, whole: int) -> str:
    if part == whole:
        return "100 %" if whole else "–"
    return f"{100 * part / whole:.1f} %"


def _scorecard(s: DatasetStatistics, check: Checked | None) -> Scorecard:
    """What the check found, and how much there is."""
    first = dataset_findings(s, check)[0] if check is not None else None
    instances = f"{s.total / s.labelled:.2f} per labelled frame" if s.labelled else ""
    numbers = [
        CardNumber(_noun(len(s.videos), "video"), _grouped(len(s.videos)), _duration(s.seconds) if s.seconds else ""),
        CardNumber("labelled frames", _grouped(s.labelled), f"of {_grouped(s.frames)} frames"),
        CardNumber("instances", _grouped(s.total), instances),
    ]
    if s.total:
        numbers.append(
            CardNumber("instances with a box", _share(s.boxes, s.total), f"{_grouped(s.total - s.boxes)} without")
        )
    if s.space.triplets:
        used = len({s.space.find(i, v, t) for _, i, v, t in s.instances} - {-1})
        numbers.append(CardNumber("triplet classes occur", str(used), f"of {len(s.space.triplets)} in the label space"))
    return Scorecard(
        first.grade if first is not None else None, _contents(s) if first is None else first.text, numbers[0],
        tuple(numbers[1:5]),
    )  # fmt: skip


def _overview(s: DatasetStatistics, shelf: _Shelf, sheet: Image | None, check: Checked | None) -> Section:
    pictures = []
    if sheet is not None:
        pictures.append(Picture(sheet, "Contact sheet of labelled frames", "Sample frames with their labels."))
    usual = _USUAL_GAP if any(row.step for row in s.videos) else ""
    return Section(
        "Overview",
        findings=dataset_findings(s, check)[0 if check is None else 1 :],  # the scorecard has the first
        images=tuple(pictures),
        tables=(
            *shelf.table("splits", "Videos, frames and instances by split and source"),
            *shelf.table("videos", "Each video", usual, folded=len(s.videos) > _MOST_VIDEO_ROWS),
            *shelf.table("overview", "All totals", folded=True),
        ),
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _classes(s: DatasetStatistics, shelf: _Shelf) -> Section | None:
    if not s.total:
        return None
    published = " Published counts of the label space stand beside." if s.space.counts else ""
    bars = (*shelf.plot("instruments"), *shelf.plot("verbs"), *shelf.plot("targets"), *shelf.plot("triplets_tail"))
    by = " by source" if len(s.sources) > 1 else ""
    cut = f"The {MOST_CLASSES} most frequent; the table has all." if len(s.space.triplets) > MOST_CLASSES else ""
    return Section(
        "Classes",
        "How often each class occurs. Models learn what is frequent; a class with a few instances can be scored, "
        "but its score says little.",
        figures=(*shelf.plot("triplets", cut, wide=True), *bars),
        paired=True,
        tables=(
            *shelf.table("triplets", f"Triplets{by}", f"Instances.{published}"),
            *shelf.table("instruments", f"Instruments{by}", "Instances.", folded=True),
            *shelf.table("verbs", f"Verbs{by}", "Instances.", folded=True),
            *shelf.table("targets", f"Targets{by}", "Instances.", folded=True),
        ),
    )


def _density(s: DatasetStatistics, shelf: _Shelf) -> Section:
    return Section(
        "Instances per frame",
        figures=shelf.plot("instances_per_frame"),
        tables=shelf.table(
            "instances_per_frame",
            f"{crowd(s).capitalize()} per labelled frame, percent of frames",
            "Published values: Table 2 of the ProstaTD paper." if "as published" in _rows(shelf) else "",
        ),
    )


def _rows(shelf: _Shelf) -> str:
    table = shelf.tables.get("instances_per_frame")
    return "" if table is None else " ".join(table["source"].to_list())


def _together(shelf: _Shelf) -> Section:
    tables = (
        *shelf.table("instrument_verb", "Instrument × verb, instances", folded=True),
        *shelf.table("instrument_target", "Instrument × target, instances", folded=True),
        *shelf.table("instrument_instrument", "Instrument × instrument, frames", folded=True),
    )
    return Section(
        "What occurs together",
        "A score cannot separate pairs that always occur together. Colour follows the logarithm of the count."
        if tables
        else "",
        figures=(
            *shelf.plot("instrument_target", wide=True),
            *shelf.plot("instrument_verb"),
            *shelf.plot("instrument_instrument", "On the diagonal: frames with two or more of the same instrument."),
        ),
        tables=tables,
        paired=True,
    )


def _time(s: DatasetStatistics, shelf: _Shelf) -> Section:
    drawn = sum(bool(row.stretches) for row in s.videos)
    cut = f"The first {MOST_VIDEOS} of {drawn} videos." if drawn > MOST_VIDEOS else ""
    return Section(
        "Time",
        figures=(*shelf.plot("phases", cut), *shelf.plot("action_lengths")),
        tables=(
            *shelf.table("phases", "Phases"),
            *shelf.table("actions", "Actions: contiguous stretches of one triplet", folded=True),
            *shelf.table("phases_by_video", "Seconds of each phase by video", folded=True),
            *shelf.table("action_lengths", "How long an action lasts", folded=True),
        ),
    )


def _boxes(s: DatasetStatistics, shelf: _Shelf) -> Section:
    missing = s.total - s.boxes
    text = f"{_grouped(missing)} of {_count(s.total, 'instance')} have no box." if missing and s.boxes else ""
    return Section(
        "Boxes",
        text,
        figures=shelf.plot("box_sizes"),
        tables=shelf.table("box_sizes", "Boxes by instrument and share of the frame's area", folded=True),
    )


def _questions(shelf: _Shelf) -> Section:
    return Section("Questions", tables=shelf.table("questions", "Questions by kind and property"))


def _problems(check: Checked | None, root: Path | None, linked: bool) -> Section | None:
    if check is None:
        return None
    if not check.counts:
        return Section("Problems", "The check found none.")
    tables = problem_tables(check.counts, check.problems[:_MOST_PROBLEMS], root)
    rest = sum(check.counts.values()) - len(check.problems[:_MOST_PROBLEMS])
    note = f"{_grouped(rest)} more are not listed here." if rest > 0 else ""
    listed = tables["problems"]
    examples = listed.filter(pl.int_range(pl.len()).over("kind") < _EXAMPLES)
    kinds, each = (f"tables/{name}.csv" if linked else "" for name in ("problem_kinds", "problems"))
    every = (Table("Each problem", listed, note, each, folded=True),) if examples.height < listed.height or note else ()
    return Section(
        "Problems",
        "What the check found. An error makes a record unusable, a warning is odd but usable.",
        tables=(
            Table("Problems by kind", tables["problem_kinds"], file=kinds),
            Table("For example" if every else "Each problem", examples, file="" if every else each),
            *every,
        ),
    )


def _method(s: DatasetStatistics) -> Section:
    crowded = "instances whose triplet is a class of the label space" if s.space.triplets else "all instances"
    text = (
        "A frame is labelled if the source says so, with or without an instance in it. Instances per frame count "
        f"{crowded}. Two instruments occur together if one labelled frame shows both. The size of a box is its area "
        "in percent of the frame's area. Ids outside the label space are shown as “not known”, never dropped."
    )
    if s.actions or s.phases:
        text += (
            "\n\nA phase or an action (one triplet) lasts from its first label to its last plus one label interval, "
            "and ends at a gap of more than one and a half intervals. The interval is the most common time between the "
            "first labels of the video. Videos without times have no durations."
        )
    return Section("How it was counted", text)
