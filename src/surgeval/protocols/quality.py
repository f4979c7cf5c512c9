"""Protocol `quality`: measure every frame and propose the ones that cannot be used (ProstaTD, appendix A.2).

One unit is one video, one case is one frame. Blur is judged against the frame's own video, so frames are proposed for
removal from the finished cases, not inside the units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from pydantic import ConfigDict

from surgeval.console.commands import Help, common
from surgeval.datasets import (
    Dataset,
    DropProposal,
    FrameQuality,
    QualityLimits,
    dataset_fingerprint,
    frame_quality,
    open_dataset,
    propose_drops,
    read_image,
)
from surgeval.engine import Manifest, RunRecord, RunSummary, Unit, run
from surgeval.errors import BadInput, DataError
from surgeval.progress import advance
from surgeval.protocols.comparison import Pair, keep_shared_videos, refuse_different
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.pictures import PICTURES, load_pictures, save_pictures, thumbnail
from surgeval.protocols.result import CaseRow, FinishedRun, RecordedResult, RunFiles, RunSettings
from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, verdict_of
from surgeval.records import Case
from surgeval.results import counted, percent
from surgeval.stats import (
    UNBOUNDED,
    Interval,
    Measure,
    find_measure,
    mean_ratio,
    measure_intervals,
    numbers_table,
    share_ratio,
)

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence, Finding

__all__ = ["QualityRun", "QualityScores", "load_quality", "run_quality"]


# ── what is stored, and its numbers ─────────────────────────────────────────────────────────────────────────────


class QualitySettings(RunSettings):
    """The settings of a run."""

    model_config = ConfigDict(extra="forbid")

    limits: QualityLimits = QualityLimits()


class FrameCase(CaseRow):
    """A frame; one that could not be read has no measures."""

    name: str
    brightness: float
    sharpness: float
    tissue: float
    saturated: float
    dark: float


MEASURES = (
    Measure(
        key="dropped", label="frames proposed to drop, share", unit="share", higher_is_better=False,
        settings=("limits",), ratio=share_ratio(pl.col("dropped"), one_video="wilson"),
        explanation="The share of readable frames that are black, too dark, too bright, out of body or blurred.",
    ),
    Measure(
        key="brightness", label="brightness (95th percentile, 0–255)", unit="measure", higher_is_better=None,
        ratio=mean_ratio("brightness", bounds=UNBOUNDED),
        explanation="The 95th percentile of the grey values inside the central ellipse of a frame, from 0 to 255.",
    ),
    Measure(
        key="sharpness", label="sharpness (variance of the Laplacian)", unit="measure",
        ratio=mean_ratio("sharpness", bounds=UNBOUNDED),
        explanation="The variance of the Laplacian inside the central ellipse of a frame: low where it is blurred.",
    ),
    Measure(
        key="tissue", label="share of tissue colour", unit="share", higher_is_better=None, ratio=mean_ratio("tissue"),
        explanation="The share of the central ellipse that has the colours of tissue: low outside the body.",
    ),
    Measure(
        key="saturated", label="share of blown-out pixels", unit="share", higher_is_better=False,
        ratio=mean_ratio("saturated"),
        explanation="The share of the central ellipse that is too bright to show anything.",
    ),
    Measure(
        key="dark", label="share of unlit pixels", unit="share", higher_is_better=False, ratio=mean_ratio("dark"),
        explanation="The share of the central ellipse that is too dark to show anything.",
    ),
)  # fmt: skip
GRADES = tuple(measure.key for measure in MEASURES if measure.key != "dropped")  # what is stored of each frame
_DROP = {"video": pl.String, "frame": pl.String, "reason": pl.String, "measure": pl.String, "value": pl.Float64,
         "limit": pl.Float64}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class QualityScores(RecordedResult):
    """The frames of a dataset, measured. `cases` has a row per frame that could be read, with column `dropped`."""

    name: str
    record: RunRecord
    cases: pl.DataFrame
    unreadable: pl.DataFrame  # video, frame, reason
    limits: QualityLimits
    proposals: tuple[DropProposal, ...]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, bytes] = field(default_factory=dict)  # of frames to drop, by VIDEO/FRAME

    protocol = "quality"
    measures = MEASURES

    @cached_property
    def numbers(self) -> Mapping[str, Interval]:
        """Every measure with its interval over videos."""
        return measure_intervals(MEASURES, self.cases.rename({"video": "cluster"}))

    def headlines(self) -> tuple[Headline, ...]:
        """The share of frames to drop, and the mean of each measure."""
        return headlines_of(MEASURES, self.numbers)

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Can the frames be used? None without frames."""
        frames = [(video, bool(dropped)) for video, dropped in self.cases.select("video", "dropped").iter_rows()]
        frames += [(video, True) for video in self.unreadable["video"]]
        videos: dict[str, list[bool]] = {}
        for video, unusable in frames:
            videos.setdefault(video, []).append(unusable)
        counts = {video: (sum(each), len(each)) for video, each in videos.items()}
        return verdict_of(CLAIM, reasons_of(counts), len(counts)) if counts else None

    @cached_property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`drop` has a row per frame to drop, `reasons` how many there are for each, `videos` the means of each video.

        Frames that could not be read stand in `unreadable`, where there are any.
        """
        rows = [(p.video, p.name, p.reason, p.measure, p.value, p.limit) for p in self.proposals]
        drop = pl.DataFrame(rows, schema=_DROP, orient="row")
        reasons = drop.group_by("reason").len("frames").sort("frames", "reason", descending=[True, False])
        of_video = (pl.col("video").first(), pl.len().alias("frames"), pl.col("dropped").sum().alias("to drop"),
                    *(pl.col(name).mean() for name in GRADES))  # fmt: skip
        # Video after video: what polars adds up in groups differs in its last digits with the number of cores.
        means = [frames.select(of_video) for frames in self.cases.partition_by("video", maintain_order=True)]
        videos = pl.concat(means).sort("video") if means else self.cases.clear().select(of_video).clear()
        numbers = numbers_table(MEASURES, self.numbers, settings=self.settings)
        unreadable = {} if self.unreadable.is_empty() else {"unreadable": self.unreadable}
        return {"drop": drop, "reasons": reasons, "videos": videos, "numbers": numbers, **unreadable}

    def to_json(self) -> dict[str, Any]:
        """As of every result, and the frames to drop."""
        return {**super().to_json(), "drop": self.tables["drop"].to_dicts()}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """A histogram of brightness, sharpness and tissue; `reasons` where frames are proposed to drop."""
        from surgeval.figures import Series, bars, histogram

        figures: dict[str, Figure] = {}
        for name, edges in _EDGES.items():
            values, label = self.cases[name].to_list(), find_measure(MEASURES, name).label
            counts = tuple(sum(low <= value < high for value in values) for low, high in pairwise(edges))
            figures[name] = histogram(f"{name.capitalize()} of the frames", edges, counts, label, "frames")
        reasons = self.tables["reasons"]
        if reasons.height:
            frames = Series("frames", tuple(float(count) for count in reasons["frames"]))
            figures["reasons"] = bars("Why frames are proposed to drop", tuple(reasons["reason"]), (frames,), "frames")
        return figures

    def evidence(self) -> Evidence:
        """A row per frame with its grades, those that cannot be used first."""
        from surgeval.pages import Evidence

        why = self.tables["drop"].select(
            "video", pl.col("frame").alias("name"), pl.col("reason").alias("verdict"),
            pl.format("{} {}, limit {}", "measure", pl.col("value").round(3), pl.col("limit").round(3)).alias("reason"),
        )  # fmt: skip
        grades = pl.concat_str([pl.format(f"{name} {{}}", pl.col(name).round(2)) for name in GRADES], separator=", ")
        read = self.cases.join(why, on=["video", "name"], how="left", maintain_order="left").select(
            "video", pl.col("name").alias("frame"), grades.alias("answer"), pl.col("verdict").fill_null("usable"),
            pl.col("reason").fill_null(""), *GRADES,
        )  # fmt: skip
        lost = self.unreadable.with_columns(answer=pl.lit("not measured"), verdict=pl.lit("unreadable"))
        rows = pl.concat([read, lost], how="diagonal_relaxed").with_columns(
            pl.concat_str("video", pl.lit("/"), "frame").alias("id"),
            pl.format("Frame {}: can it be used?", "frame").alias("asked"), pl.lit("").alias("reference"),
        ).sort(pl.col("verdict") == "usable", maintain_order=True)  # fmt: skip
        return Evidence(
            model=self.name, cases=rows, facets={"video": "Video"}, numbers={name: name for name in GRADES},
            right=frozenset({"usable"}), pictures=self.pictures, case="frame",
        )  # fmt: skip


def load_quality(folder: str | Path) -> QualityScores:
    """Read a finished run folder of `run_quality`, whose example loads one.

    >>> load_quality("nowhere")
    Traceback (most recent call last):
    surgeval.errors.DataError: nowhere: no such folder
    """
    files = RunFiles.open(folder, "quality", QualitySettings)
    frames = FrameCase.load(folder).rename({"cluster": "video"})
    cases = frames.filter(pl.col("status") == "ok").select("video", "name", *GRADES)
    failed = frames.filter(pl.col("status") != "ok").select("video", pl.col("name").alias("frame"), "reason")
    limits = files.settings.limits
    proposals = propose_drops((FrameQuality(**row) for row in cases.iter_rows(named=True)), limits)
    proposed = pl.struct("video", "name").is_in([{"video": one.video, "name": one.name} for one in proposals])
    pictures, odd = load_pictures(files.folder)
    return QualityScores(
        name=files.folder.resolve().name, record=files.record, limits=limits, proposals=proposals, unreadable=failed,
        cases=cases.with_columns(dropped=proposed if proposals else pl.lit(value=False)), notes=odd, pictures=pictures,
    )  # fmt: skip


def pair_quality(first: QualityScores, second: QualityScores) -> Pair:
    """Two runs with the same limits, for instance before and after cleaning, over the videos that both have."""
    limits = ({f"limit of {name}": value for name, value in asdict(run.limits).items()} for run in (first, second))
    refuse_different(first, second, *limits)
    cases, notes = keep_shared_videos(*(run.cases.rename({"video": "cluster"}) for run in (first, second)))
    if first.record.dataset != second.record.dataset:
        notes = (*notes, "the runs are of different data: videos are paired by their names alone")
    videos = sorted(cases[0]["cluster"].unique())
    return Pair(
        measures=MEASURES,
        cases=cases,
        settings={"videos": videos, "limits": asdict(first.limits)},
        notes=lambda _numbers: notes,
    )


# ── the run ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QualityRun(FinishedRun):
    """The finished run and what it proposes."""

    summary: RunSummary
    scores: QualityScores

    @property
    def loaded(self) -> QualityScores:
        """Every frame's measures, and the frames proposed to drop."""
        return self.scores

    @property
    def proposals(self) -> tuple[DropProposal, ...]:
        """The frames to drop."""
        return self.scores.proposals

    def verdict(self) -> Verdict | None:
        """Can the frames be used? None without frames."""
        return self.scores.verdict()

    def __str__(self) -> str:
        return str(self.summary)

    def __repr__(self) -> str:
        measured, dropped = (counted(count, "frame") for count in (self.scores.cases.height, len(self.proposals)))
        return f"QualityRun of {self.scores.name}: {measured} measured, {dropped} to drop"


@dataclass(frozen=True)
class MeasureVideo:
    """The worker of a unit: opens the dataset once per process, then measures the frames of a video."""

    path: str
    format: str
    labels: str | None

    @cached_property
    def _dataset(self) -> Dataset:
        return open_dataset(self.path, format=self.format, labels=self.labels)

    def __call__(self, payload: Any) -> Iterator[Case]:
        for frame in self._dataset.frames(payload["video"], on_problem=lambda _problem: None):
            advance("frames")
            if frame.image is None:
                continue
            case = f"{frame.video}/{frame.name}"
            try:
                measured = asdict(frame_quality(read_image(frame.image), frame.video, frame.name))
            except DataError as error:
                yield Case(case, frame.video, "unreadable", str(error), {"name": frame.name})
                continue
            yield Case(case, frame.video, values={key: measured[key] for key in ("name", *GRADES)})


def run_quality(
    data: Annotated[str | Path, Help("A dataset folder or file with frames.")],
    out: str | Path,
    *,
    format: str | None = None,
    labels: str | None = None,
    limits: QualityLimits | None = None,
    processes: Annotated[int, common("processes", "Processes that measure.")] = 1,
    retry: bool = False,
    progress: bool = True,
) -> QualityRun:
    """Measure every frame of a dataset and propose the ones to drop: black, dark, bright, out of body, blurred.

    The run resumes where it was stopped; `limits` says when a frame is proposed.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("images", "labels"):
    ...         (Path(folder) / "data" / name).mkdir(parents=True)
    ...     Image.new("RGB", (448, 256)).save(f"{folder}/data/images/VID01_000001.png")  # a black frame
    ...     _ = Path(f"{folder}/data/labels/VID01_000001.txt").write_text("")
    ...     result = run_quality(f"{folder}/data", labels="cholec80", out=f"{folder}/run", progress=False)
    ...     again = load_quality(f"{folder}/run")
    >>> [(drop.name, drop.reason) for drop in result.proposals], again.cases.select("name", "dropped").rows()
    ([('000001', 'black')], [('000001', True)])
    """
    dataset = open_dataset(data, format=format, labels=labels)
    many = processes > 1
    manifest = Manifest("quality", {"limits": asdict(limits or QualityLimits())}, dataset_fingerprint(dataset))
    units = [
        Unit(video.name, {"video": video.name}, steps={"frames": sum(1 for _ in _frames(dataset, video.name))})
        for video in dataset.videos(lambda _problem: None)
    ]
    summary = run(
        units, MeasureVideo(str(data), dataset.format, labels), folder=out, manifest=manifest,
        executor="processes" if many else "serial", processes=processes if many else None, retry=retry,
        progress=progress,
    )  # fmt: skip
    save_pictures(out, _pictures(dataset, load_quality(out).proposals[:PICTURES]))
    return QualityRun(summary=summary, scores=load_quality(out))


def _frames(dataset: Dataset, video: str) -> Iterator[Any]:
    return iter(dataset.frames(video, on_problem=lambda _problem: None))


def _pictures(dataset: Dataset, proposals: Sequence[DropProposal]) -> dict[str, bytes]:
    """Thumbnails of the first frames to drop, so that a person can check them."""
    wanted = {(proposal.video, proposal.name) for proposal in proposals}
    return {
        f"{frame.video}/{frame.name}": thumbnail(read_image(frame.image))
        for video in dict.fromkeys(proposal.video for proposal in proposals)
        for frame in _frames(dataset, video)
        if (frame.video, frame.name) in wanted and frame.image is not None
    }


# ── the verdict; docs/verdicts.md lists its rules ───────────────────────────────────────────────────────────────

CLAIM = Claim("The frames can be used as they are.", "The frames cannot be used as they are.")
FEW, MANY, ONE_VIDEO = 0.05, 0.2, 0.5
RULES = {
    rule.name: rule
    for rule in (
        Rule("unusable", f"At most {percent(FEW)} of the frames are unreadable or proposed to drop; fails from "
             f"{percent(MANY)} on.", "decides"),
        Rule("worst video", f"In no video are {percent(ONE_VIDEO)} of the frames unusable.", "limits"),
    )
}  # fmt: skip


def reasons_of(videos: Mapping[str, tuple[int, int]]) -> tuple[Reason, ...]:
    """From the unusable frames of each video and all of its frames.

    >>> [reason.holds for reason in reasons_of({"VID01": (0, 40), "VID02": (30, 40)})]
    [False, False]
    """
    lost, total = (sum(pair[k] for pair in videos.values()) for k in (0, 1))
    share = lost / total
    holds = True if share <= FEW else False if share >= MANY else None
    dropped = f"{lost} of {total} frames ({percent(share)}) are unreadable or proposed to drop"
    reasons = [Reason(RULES["unusable"], f"{dropped}.", holds, dropped)]
    worst = max(videos, key=lambda video: videos[video][0] / videos[video][1])
    bad, frames = videos[worst]
    if lost and len(videos) > 1:
        text = f"Worst video: {worst}, {bad} of {frames} frames ({percent(bad / frames)})."
        clause = f"of {worst} {percent(bad / frames)} are unusable"
        reasons.append(Reason(RULES["worst video"], text, bad < ONE_VIDEO * frames, clause))
    return tuple(reasons)


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────

_METHOD = (
    "Each frame is measured once, 320 pixels wide, inside the central ellipse that an endoscope always lights. A frame "
    "is proposed for its first reason: black, too dark, too bright, out of body (little tissue colour), blurred "
    "(sharpness far below the median of its own video). These are proposals: a person decides.\n\n"
    "Intervals (95 %) leave out each video in turn."
)
_TITLES = {
    "reasons": "Why frames are proposed to drop",
    "unreadable": "Frames that could not be read",
    "videos": "Each video: frames, how many to drop, and the mean of each measure",
    "drop": "The frames to drop, with the measure that speaks against each and its limit",
}
_EDGES: Mapping[str, tuple[float, ...]] = {
    "brightness": (0, 30, 60, 90, 120, 150, 180, 210, 256),
    "sharpness": (0, 10, 30, 100, 300, 1000, 3000, math.inf),
    "tissue": (0, 0.05, 0.2, 0.4, 0.6, 0.8, math.inf),
}


def printed_tables(scores: QualityScores) -> dict[str, pl.DataFrame]:
    """What the command prints: the frames to drop."""
    drop = scores.tables["drop"]
    return {f"{counted(drop.height, 'frame')} to drop": drop} if drop.height else {}


def write_page_of(results: Sequence[QualityScores], out: str | Path) -> Path:
    """Write page, tables and figures of one run below `out`.

    >>> write_page_of([], Path("page"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: A page about quality takes 1 run, not 0.
    """
    from surgeval.pages import Section, Table
    from surgeval.protocols.run_page import RunPage, case_pictures, evidence_of

    if len(results) != 1:
        raise BadInput(f"A page about quality takes 1 run, not {len(results)}.")
    (scores,) = results
    tables = dict(scores.tables)
    page = RunPage(results, out, tables, scores.figures)
    numbers = pl.DataFrame(
        [(headline.label, headline.cell) for headline in scores.headlines()],
        schema={"number": pl.String, "value": pl.String}, orient="row",
    )  # fmt: skip
    tables["videos"] = tables["videos"].sort("to drop", descending=True, maintain_order=True)
    shown = {name: Table(_TITLES[name], tables[name], file=f"tables/{name}.csv")
             for name in _TITLES if name in tables and (tables[name].height or name == "videos")}  # fmt: skip
    why = [shown[name] for name in ("reasons", "unreadable") if name in shown]
    sections = (
        Section("Frames to remove", tables=(shown["drop"],) if "drop" in shown else ()),
        Section("Each frame", "Unusable frames come first.", evidence=evidence_of(results)),
        Section("Why", tables=(*why, Table("Numbers, with 95 % intervals over videos", numbers)),
                figures=tuple(plot for name, plot in page.plots.items() if name == "reasons")),
        Section("Measures", "", figures=tuple(plot for name, plot in page.plots.items() if name != "reasons"),
                tables=(shown["videos"],), paired=True),
    )  # fmt: skip
    limits = scores.limits
    details = {"Black below": limits.black, "Blurred below (of the median)": limits.blur,
               "Out of body below": limits.tissue, "Too bright above": limits.saturated,
               "Too dark above": limits.dark}  # fmt: skip
    return page.write(
        sections, _METHOD, facts=_facts(scores), notes=scores.notes, findings=_findings(scores),
        pictures=case_pictures(scores), details={name: f"{value:g}" for name, value in details.items()},
    )  # fmt: skip


def _findings(scores: QualityScores) -> tuple[Finding, ...]:
    """Why frames go, and what could not be read at all."""
    from surgeval.pages import Finding

    findings = []
    reasons = ", ".join(f"{count} {reason}" for reason, count in scores.tables["reasons"].iter_rows())
    if reasons:
        findings.append(Finding(f"Proposed to drop: {reasons}. These are proposals: a person decides.", "fails"))
    elif scores.cases.height:
        findings.append(Finding("No frame is proposed to drop.", "passes"))
    if scores.unreadable.height:
        video, frame, reason = scores.unreadable.row(0)
        many = counted(scores.unreadable.height, "frame")
        findings.append(Finding(f"{many} could not be read; the first: {video} / {frame}: {reason}.", "fails"))
    return tuple(findings)


def _facts(scores: QualityScores) -> tuple[str, ...]:
    """What was measured, in a few words."""
    videos = {*scores.cases["video"].to_list(), *scores.unreadable["video"].to_list()}
    unreadable = f"{scores.unreadable.height} unreadable" if scores.unreadable.height else ""
    frames = scores.cases.height + scores.unreadable.height
    return counted(len(videos), "video"), counted(frames, "frame"), f"{len(scores.proposals)} to remove", unreadable
