"""From groups of videos to a finished score: numbers with intervals, tables, curves, confusion matrices, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl

from surgeval.arrays import Floats, Ints
from surgeval.metrics import (
    CONVENTIONS,
    Confusion,
    Convention,
    DetectionSet,
    Ties,
    choose_convention,
    mean_along,
    mean_of,
)
from surgeval.protocols.triplets.metrics import NAMES, SCOPES, TOP, Key, detection_keys, recognition_keys
from surgeval.protocols.triplets.result import TripletScores
from surgeval.protocols.triplets.scoring.constant import constant_average_precision
from surgeval.protocols.triplets.scoring.curves import component_curves, detection_precision, recognition_precision
from surgeval.protocols.triplets.scoring.detection import DetectionPart, pooled_shares, score_part
from surgeval.protocols.triplets.scoring.groups import VideoGroups
from surgeval.protocols.triplets.scoring.mixing import MOST_CELLS, RankedBoxes, ScoredFrames
from surgeval.protocols.triplets.scoring.numbers import Progress, ScoreNumber, bootstrap, few_videos
from surgeval.protocols.triplets.scoring.recognition import FrameScores, RecognitionPart, score_frames
from surgeval.protocols.triplets.tables import (
    association_table,
    class_labels,
    component_table,
    convention_table,
    detection_classes,
    frame_labels,
    group_table,
    plain,
    recognition_classes,
    tie_table,
)
from surgeval.vocab import LabelSpace

__all__ = ["ScoringPlan", "assemble_detection", "assemble_recognition", "choose_ties", "grid_notes"]


Kept = TypeVar("Kept", RankedBoxes, ScoredFrames)
DISAGREE = 0.01
TIED = 0.005  # larger differences between the reference's order of equal scores and the order-free numbers are reported
_SECOND_THRESHOLD = 1 / 999  # of 1 000 from 0 to 1


def choose_ties(
    convention: Convention | None, ties: Ties | None, scores: Floats
) -> tuple[Convention, Ties, tuple[str, ...]]:
    """The convention, its ties, and a note where a named one has free ties because all predictions have one score.

    >>> choose_ties("ivtd", None, np.array([0.9, 0.8]))
    ('ivtd', 'reference', ())
    >>> choose_ties("ivtd", None, np.ones(2))[:2]
    ('ivtd', 'free')
    """
    name, chosen = choose_convention(convention, ties)
    if ties is not None or chosen == "free" or len(scores) < 2 or bool((scores != scores[0]).any()):
        return name, chosen, ()
    return name, "free", (f"all predictions have the same score, so convention {name} is scored with free ties, "
                          "which depend on no order (ties reference keeps the order of its reference)",)  # fmt: skip


@dataclass(frozen=True)
class ScoringPlan:
    """What both tasks need to know: the groups, and what is rare."""

    name: str
    scheme: VideoGroups
    settings: Mapping[str, Any]
    rare: Sequence[Ints]  # class ids, by group
    totals: Ints  # instances per class in the whole dataset
    notes: tuple[str, ...] = ()
    progress: Progress | None = None

    @property
    def places(self) -> list[Ints]:
        """By group, the numbers of its videos among all scored ones."""
        at = {video: number for number, video in enumerate(self.scheme.videos)}
        return [np.array([at[video] for video in group.videos], dtype=np.int64) for group in self.scheme.groups]

    def numbers(
        self, parts: Sequence[DetectionPart] | Sequence[RecognitionPart], keys: Sequence[Key], sizes: Sequence[int]
    ) -> Any:
        """Every number, the mean over groups, with its interval; and what it was without each video."""

        def statistic(multiplicity: Ints) -> Floats:
            return mean_along(np.stack([part.vector(multiplicity) for part in parts]), 0)

        return bootstrap(statistic, keys, self.scheme.videos, sizes, progress=self.progress)

    def sizes(self, video: Ints) -> list[int]:
        """How many boxes or frames each video holds (`video`: of each one); all alike where there are none."""
        counts = np.bincount(video, minlength=len(self.scheme.videos))
        return [int(count) for count in (counts if counts.any() else counts + 1)]

    def group_sheet(
        self, parts: Sequence[DetectionPart] | Sequence[RecognitionPart], keys: Sequence[Key]
    ) -> dict[str, pl.DataFrame]:
        """The table of folds or sources; nothing where all videos are scored together."""
        if self.scheme.kind == "all":
            return {}
        ones = np.ones(len(self.scheme.videos), np.int64)
        groups = self.scheme.groups
        table = group_table(
            keys, [group.name for group in groups], [len(group.videos) for group in groups],
            [part.vector(ones) for part in parts],
        )  # fmt: skip
        return {self.scheme.kind: table}

    def video_sheet(
        self, parts: Sequence[DetectionPart] | Sequence[RecognitionPart], keys: Sequence[Key], key: Key
    ) -> pl.DataFrame:
        """One number of each video alone, and of all others without it: does one video carry it?"""
        column, videos = list(keys).index(key), self.scheme.videos

        def number(multiplicity: Ints) -> float:
            return float(mean_along(np.stack([part.vector(multiplicity) for part in parts]), 0)[column])

        alone = [number(row) for row in np.eye(len(videos), dtype=np.int64)]
        without = [number(1 - row) if len(videos) > 1 else np.nan for row in np.eye(len(videos), dtype=np.int64)]
        return plain(pl.DataFrame({"video": list(videos), "alone": alone, "without": without}))

    def said(self) -> tuple[str, ...]:
        """Notes about videos and groups, for both tasks."""
        kind = self.scheme.kind
        notes = [*self.notes, *few_videos(len(self.scheme.videos))]
        if kind != "all":
            notes.append(f"numbers are means over {len(self.scheme.groups)} {kind}, each scored on its own videos; "
                         "± is the standard deviation over them with ddof = 1")  # fmt: skip
        return tuple(notes)


def assemble_detection(
    plan: ScoringPlan,
    data: DetectionSet,
    n_classes: Mapping[str, int],
    space: LabelSpace | None,
    convention: Convention,
    ties: Ties,
    thresholds: Mapping[str, float],
) -> TripletScores:
    """Score every group under the chosen convention, with intervals, and under the others for comparison."""
    main = "ivt" if "ivt" in n_classes else next(iter(n_classes))
    sets = [data.select_videos(places.tolist()) for places in plan.places]

    def scored(under: Convention, extras: bool, equal: Ties = ties) -> list[DetectionPart]:
        return [
            score_part(group.name, places, boxes, n_classes, under, equal, thresholds=thresholds, rare_of=main,
                       rare=rare, extras=extras)
            for group, places, boxes, rare in zip(plan.scheme.groups, plan.places, sets, plan.rare, strict=True)
        ]  # fmt: skip

    parts = scored(convention, True)
    keys = detection_keys(
        tuple(n_classes), main, costs=parts[0].cost is not None, associations=parts[0].association is not None
    )
    sizes = plan.sizes(data.videos[data.targets.frame])
    numbers, replicates = plan.numbers(parts, keys, sizes)
    bare = detection_keys(tuple(n_classes), main, costs=False, associations=False)
    ones = np.ones(len(plan.scheme.videos), np.int64)
    under: dict[str, Floats] = {}
    for name in CONVENTIONS:  # the others as if they had been named
        equal = ties if name == convention else choose_ties(name, None, data.predictions.score)[1]
        under[name] = mean_along(np.stack([part.vector(ones) for part in scored(name, False, equal)]), 0)
    names = {component: class_labels(space, component, size) for component, size in n_classes.items()}
    confusions = {component: (_summed(parts, component, size), names[component])
                  for component, size in n_classes.items()}  # fmt: skip
    sheets = {"components": component_table(numbers, SCOPES[0]), "video_wise": component_table(numbers, SCOPES[1]),
              "video_first": component_table(numbers, SCOPES[2])}  # fmt: skip
    sheets |= {name: table for name in ("rare", "cost_aware")
               if len(table := _picked(numbers, name.replace("_", "-")))}  # fmt: skip
    if "cost_aware" in sheets:
        maxima = [number.key.most for number in numbers if number.key.scope == "cost-aware"]
        sheets["cost_aware"] = sheets["cost_aware"].with_columns(maximum=pl.Series(maxima, dtype=pl.Float64))
    if parts[0].association is not None:
        shares = numbers if len(parts) == 1 else pooled_shares(parts, plan.scheme.videos, sizes)
        sheets["association"] = association_table(parts, shares)
    floors = {component: np.stack([constant_average_precision(boxes, component, size, convention, ties)
                                   for boxes in sets])
              for component, size in n_classes.items()}  # fmt: skip
    means = [mean_along(np.array([mean_of(group) for group in by_class]), 0) for by_class in floors.values()]
    floor_column = pl.Series("constant mAP50", [float(value) for value in means])
    sheets["components"] = plain(sheets["components"].with_columns(floor_column))
    sheets["videos"] = plan.video_sheet(parts, keys, Key("global", main, "mAP50"))
    sheets["conventions"] = convention_table(bare, under)
    if ties == "reference":
        tied = tie_table(parts, scored(convention, False, "free"), names, TIED)
        sheets |= {"ties": tied} if len(tied) else {}
    sheets |= plan.group_sheet(parts, keys)
    sheets["thresholds"] = plain(pl.DataFrame([{"group": part.name, **part.thresholds} for part in parts]))
    for component, classes in names.items():
        totals = plan.totals if component == main else None
        sheets[f"classes_{component}"] = detection_classes(
            parts, component, classes, totals, mean_along(floors[component], 0)
        )
    curves = {
        component: component_curves(
            [detection_precision(part.components[component].ranked) for part in parts],
            np.sum([part.components[component].ranked.truths.sum(axis=0) for part in parts], axis=0),
            names[component],
        )
        for component in n_classes
    }
    notes = (
        *plan.said(), *_outside(numbers), *_threshold_note(thresholds),
        *(grid_notes(data.predictions.score, convention) if set(n_classes) - set(thresholds) else ()),
        *_tie_notes(convention, main, sheets.get("ties")), *_disagreement(sheets["conventions"]),
    )  # fmt: skip
    thresholds = {key: value for key, value in parts[0].thresholds.items() if value == value}
    return TripletScores(
        name=plan.name, task="detection", notes=notes,
        settings={**plan.settings, "frames": data.n_frames, "sizes": sizes},
        thresholds=thresholds if len(parts) == 1 else {}, numbers=numbers, replicates=replicates, sheets=sheets,
        curves=curves, confusions=confusions, mixable=_kept(RankedBoxes.of(parts, len(plan.scheme.videos))),
    )  # fmt: skip


def assemble_recognition(plan: ScoringPlan, frames: FrameScores, components: Sequence[str]) -> TripletScores:
    """Score every group of videos."""
    parts = [
        score_frames(group.name, places, frames, components, rare)
        for group, places, rare in zip(plan.scheme.groups, plan.places, plan.rare, strict=True)
    ]
    keys = recognition_keys(components, frames.main)
    sizes = plan.sizes(frames.video)
    numbers, replicates = plan.numbers(parts, keys, sizes)
    sheets = {"components": component_table(numbers, SCOPES[0]), "video_wise": component_table(numbers, SCOPES[1]),
              "video_first": component_table(numbers, SCOPES[2])}  # fmt: skip
    if frames.main in components:
        sheets["rare"] = _picked(numbers, "rare")
    sheets |= {"top": _picked(numbers, "recall")} | plan.group_sheet(parts, keys)
    curves = {}
    for component in components:
        rankings = [part.rankings[component] for part in parts]
        names = frame_labels(frames, component, len(rankings[0].positives))
        totals = plan.totals if component == frames.main else None
        sheets[f"classes_{component}"] = recognition_classes(parts, component, names, totals)
        curves[component] = component_curves(
            [recognition_precision(ranking.ranked) for ranking in rankings],
            np.sum([ranking.positives for ranking in rankings], axis=0),
            names,
        )
    floor = [mean_along(sheets[f"classes_{component}"]["constant AP"].fill_null(np.nan).to_numpy(), 0)
             for component in components]  # fmt: skip
    floors = pl.Series("constant mAP", [float(value) for value in floor])
    sheets["components"] = plain(sheets["components"].with_columns(floors))
    main = "ivt" if "ivt" in components else components[0]
    sheets["videos"] = plan.video_sheet(parts, keys, Key("global", main, "mAP"))
    unanswered = int((~frames.answered).sum())
    notes = [*plan.said(), *_outside(numbers), *_unmeasured(frames.targets.shape[1])]
    if unanswered:
        notes.append(f"top-K counts the {len(frames.answered) - unanswered} answered frames only")
    return TripletScores(
        name=plan.name, task="recognition", settings={**plan.settings, "frames": len(frames.answered), "sizes": sizes},
        notes=tuple(notes), thresholds={}, numbers=numbers, replicates=replicates, sheets=sheets, curves=curves,
        confusions={}, mixable=_kept(ScoredFrames.of(parts, frames, len(plan.scheme.videos))),
    )  # fmt: skip


def _unmeasured(n_classes: int) -> tuple[str, ...]:
    """Which recalls among the highest scores say nothing."""
    names = [f"top-{k}" for k in TOP if k >= n_classes]
    few = f"with {n_classes} class{'es' if n_classes != 1 else ''} every answer would reach 1"
    return (f"{', '.join(names)} recall is not measured: {few}",) if names else ()


def _kept(mixable: Kept) -> Kept | None:
    """What exchanges need, unless it is too much to store."""
    return mixable if mixable.cells <= MOST_CELLS else None


def _summed(parts: Sequence[DetectionPart], component: str, n_classes: int) -> Confusion:
    return Confusion(component, np.sum([part.confusion(component, n_classes).counts for part in parts], axis=0))


def _picked(numbers: Sequence[ScoreNumber], scope: str) -> pl.DataFrame:
    rows = [number.to_json() for number in numbers if number.key.scope.startswith(scope)]
    schema = dict.fromkeys(("estimate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=schema) if rows else pl.DataFrame()


def _outside(numbers: Sequence[ScoreNumber]) -> tuple[str, ...]:
    """Resamples lack classes that few videos show, which moves a mean over classes; said where it moves it far."""
    lost = [
        number
        for number in numbers
        if number.interval.estimate not in number.interval and number.interval.low == number.interval.low
    ]
    if not lost:
        return ()
    first = lost[0].key
    many = (
        "1 number lies outside its interval" if len(lost) == 1 else f"{len(lost)} numbers lie outside their intervals"
    )
    return (f"{many} (first: {first.label}): classes that hardly any video shows weigh much there",)


def _threshold_note(thresholds: Mapping[str, float]) -> tuple[str, ...]:
    if thresholds:
        return ()
    return ("P, R and F1 are read at the best-F1 score threshold, chosen on the scored data: they are optimistic "
            "(a threshold chosen on other videos is not)",)  # fmt: skip


def grid_notes(scores: Floats, convention: Convention) -> tuple[str, ...]:
    """A note on scores that a convention's grid of best-F1 thresholds, 1 000 from 0 to 1, cannot separate.

    >>> grid_notes(np.array([80.0, 0.5]), "coco"), len(grid_notes(np.array([80.0, 0.5]), "ivtd"))
    ((), 1)
    """
    if not len(scores) or convention == "coco":
        return ()
    beyond = int(((scores < 0) | (scores > 1)).sum())
    if beyond:
        found = f"{beyond} of {len(scores)} scores lie outside 0 to 1, where convention {convention} looks for"
    elif scores.max() < _SECOND_THRESHOLD:
        found = f"all scores lie below {_SECOND_THRESHOLD:.3f}, the second value that convention {convention} tries as"
    else:
        return ()
    return (f"{found} the score threshold of P, R and F1: these, the cost-aware F1 and the confusion matrices are not "
            "what the detector can reach (scale the scores to 0 to 1, or leave the convention out)",)  # fmt: skip


def _tie_notes(convention: Convention, main: str, table: pl.DataFrame | None) -> tuple[str, ...]:
    """A note on what the reference's order of equal scores changes: mAP50 of the main component, else the largest."""
    if table is None:
        return ()
    wanted = (pl.col("component") == main) & (pl.col("metric") == "mAP50")
    first = table.filter(wanted) if len(table.filter(wanted)) else table.sort("difference", descending=True)
    row = first.row(0, named=True)
    what = ", ".join(part for part in (f"{row['metric']} of {NAMES[row['component']]}", row["class"]) if part)
    many = "1 number" if len(table) == 1 else f"{len(table)} numbers"
    return (
        f"the order of equal scores changes {many} by more than {TIED}: {what} is {row['reference']:.3f} in the order "
        f"of convention {convention} and {row['order-free']:.3f} order-free (table ties)",
    )


def _disagreement(table: pl.DataFrame) -> tuple[str, ...]:
    worst = table.filter(pl.col("difference") > DISAGREE).sort("difference", descending=True)
    if not len(worst):
        return (f"the three conventions agree to {DISAGREE} on every global number",)
    row = worst.row(0, named=True)
    values = ", ".join(f"{name} {row[name]:.3f}" for name in CONVENTIONS)
    most = f"{row['metric']} of {NAMES[row['component']]} ({values})"
    return (f"the conventions disagree by more than {DISAGREE} on {len(worst)} of {len(table)} global numbers, most on "
            f"{most}: name the convention with every number",)  # fmt: skip
