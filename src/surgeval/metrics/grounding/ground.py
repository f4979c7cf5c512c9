"""Does a heatmap lie on what the labels say matters? AC, AA, ARS and RAS of one map (SurgXBench, eq. 1–5).

Every value is a ratio of pixel counts, or None where it has no meaning, with flags that say why: there are no silent
zeros (rules R1–R10: docs/grounding.md). A map that knows nothing scores the labelled share of the area, so `chance`
and `lift` stand beside AC. `ground` does one frame × prompt; `Truth` and `ground_region` share work between the
prompts of a frame, and `ground_counts` takes pixel counts that were made elsewhere (on a device).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surgeval.arrays import Bools
from surgeval.errors import BadInput
from surgeval.metrics.grounding.region import Region, fixed_region, top_region
from surgeval.metrics.grounding.tables import lift
from surgeval.metrics.grounding.truth import Label, Truth, Window

__all__ = ["EXCLUDED", "FLAGS", "Grounding", "ars", "attention_accuracy", "attention_coverage", "ground",
           "ground_counts", "ground_region", "ras"]  # fmt: skip

FLAGS = (
    "empty_region",  # R1: no pixel attended; every ratio is None
    "constant",  # R2: a flat map
    "sparse",  # R3: fewer positive pixels than were asked for
    "ties",  # R4: equal values made the region larger than asked for
    "no_gt",  # R5: the frame has no box
    "gt_empty",  # R6: boxes (of the class, or all of them), but no pixel of the frame in them
    "gt_not_visible",  # boxes in the frame, none in the part that the model saw
    "class_empty",  # the class is labelled, but none of its boxes has a visible pixel
    "motion_empty",  # a motion mask was given and marks nothing
)
EXCLUDED = frozenset({"empty_region", "constant", "no_gt", "gt_not_visible"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """The values of one frame × prompt; None = undefined (see `flags`) or, for ARS and RAS, not asked for.

    `AA` is by the formula, 0 for a class that is not labelled; `TP_AA`, `TP_AC` and `FP_AC` are the papers' columns,
    None where they do not apply (R8).
    """

    predicted: Label
    present: bool  # the predicted class is labelled in the frame
    AC: float | None
    AA: float | None
    ARS: float | None
    RAS_local: float | None
    RAS_global: float | None
    chance: float  # of AC: labelled share of the evaluated area
    chance_class: float  # share of the predicted class
    chance_local: float | None
    chance_global: float | None
    fraction: float  # |A| / area
    flags: frozenset[str]

    @property
    def lift(self) -> float | None:
        """AC / chance."""
        return lift(self.AC, self.chance)

    @property
    def TP_AA(self) -> float | None:
        """AA of a right prediction."""
        return self.AA if self.present else None

    @property
    def TP_AC(self) -> float | None:
        """AC of a right prediction."""
        return self.AC if self.present else None

    @property
    def FP_AC(self) -> float | None:
        """AC of a wrong prediction."""
        return None if self.present else self.AC

    def counts_in_means(self, *, reference: bool = False, exclude: Iterable[str] = EXCLUDED) -> bool:
        """Whether means take this value in; a `reference` map (uniform, centre, edge, oracle) may be flat (R2)."""
        return not (self.flags & (frozenset(exclude) - ({"constant"} if reference else set())))

    def row(self) -> dict[str, Label | float | bool | None]:
        """One flat row: values first, then a column per flag."""
        names = ("predicted", "present", "AC", "AA", "ARS", "RAS_local", "RAS_global", "chance", "chance_class",
                 "chance_local", "chance_global", "lift", "fraction")  # fmt: skip
        return {name: getattr(self, name) for name in names} | {name: name in self.flags for name in FLAGS}


def attention_coverage(region: Region, truth: Bools) -> float | None:
    """AC = |A ∩ G| / |A| with all labelled pixels; None for an empty region.

    >>> heat = np.zeros((10, 10)); heat[:2] = 1
    >>> labelled = np.zeros((10, 10), bool); labelled[:, :5] = True
    >>> attention_coverage(top_region(heat), labelled)
    0.5
    """
    return _ratio(_hits(region, truth), region.size)


def attention_accuracy(region: Region, truth: Truth, predicted: Label) -> float | None:
    """AA = |A ∩ G_c| / |A| with the pixels of the predicted class, 0 where it is not labelled.

    >>> heat = np.zeros((10, 10)); heat[:2] = 1
    >>> truth = Truth.of([[0, 0, 5, 10], [5, 0, 8, 10]], ["hook", "grasper"], 10, 10)
    >>> region = top_region(heat)
    >>> attention_accuracy(region, truth, "hook"), attention_accuracy(region, truth, "grasper")
    (0.5, 0.3)
    """
    return attention_coverage(region, truth.of_class(predicted))


def ars(region: Region, truth: Truth, instrument: Label, *, matched: bool) -> float | None:
    """ARS = |A ∩ B_s| / |A| where instrument and verb were named right, else 0.

    >>> heat = np.zeros((10, 10)); heat[:2] = 1
    >>> region, truth = top_region(heat), Truth.of([[0, 0, 5, 10]], ["hook"], 10, 10)
    >>> ars(region, truth, "hook", matched=True), ars(region, truth, "hook", matched=False)
    (0.5, 0.0)
    """
    return attention_accuracy(region, truth, instrument) if matched else 0.0


def ras(region: Region, motion: Bools, labelled: Bools) -> float | None:
    """RAS = |A ∩ (M ∪ G)| / |A|: local with the boxes of the matched instrument, global with all.

    >>> heat = np.zeros((10, 10)); heat[:2] = 1
    >>> moving, labelled = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    >>> moving[:, :3], labelled[:, :5] = True, True
    >>> ras(top_region(heat), moving, labelled)
    0.5
    """
    if motion.shape != labelled.shape:
        raise BadInput(f"motion: found shape {motion.shape}, expected {labelled.shape} as the evaluated area")
    return attention_coverage(region, motion | labelled)


def ground(
    map: npt.ArrayLike,
    boxes_xyxy: npt.ArrayLike,
    classes: Sequence[Label],
    predicted: Label,
    *,
    keep_top: float = 0.2,
    positive: bool = True,
    fixed: float | None = None,
    strict: bool = False,
    motion: npt.ArrayLike | None = None,
    matched: bool | None = None,
    window: Window | None = None,
    frame: tuple[int, int] | None = None,
) -> Grounding:
    """Everything about one map: which region, how much of it is labelled, and what chance would give.

    The map covers the evaluated area: the frame, or a `window` of a `frame` (height, width). `fixed` chooses the fixed
    threshold (with `strict` for >) instead of the top share. `motion` adds RAS, `matched` (instrument and verb named
    right) adds ARS.

    >>> import numpy as np
    >>> heat = np.zeros((10, 10)); heat[:2] = 1; heat[0, :5] = 2
    >>> g = ground(heat, [[0, 0, 5, 10]], ["hook"], "hook")
    >>> g.AC, g.AA, g.chance, g.lift, g.fraction, sorted(g.flags)
    (0.5, 0.5, 0.5, 1.0, 0.2, [])
    """
    heat = np.asarray(map)
    region = top_region(heat, keep_top, positive) if fixed is None else fixed_region(heat, fixed, strict)
    if window is not None and frame is None:
        raise BadInput("frame: found none, expected the frame's height and width beside a window")
    height, width = frame or region.mask.shape
    truth = Truth.of(boxes_xyxy, classes, height, width, window)
    moving = None if motion is None else np.asarray(motion, dtype=bool)
    return ground_region(region, truth, predicted, motion=moving, matched=matched)


def ground_region(
    region: Region, truth: Truth, predicted: Label, *, motion: Bools | None = None, matched: bool | None = None
) -> Grounding:
    """As `ground`, from a region and a `Truth` that several prompts of a frame may share.

    >>> heat = np.zeros((10, 10)); heat[:2] = 1
    >>> region, truth = top_region(heat), Truth.of([[0, 0, 5, 10]], ["hook"], 10, 10)
    >>> [ground_region(region, truth, name).AA for name in ("hook", "grasper")]
    [0.5, 0.0]
    """
    own = truth.of_class(predicted)
    sets = {"all": truth.union, "class": own}
    if motion is not None:
        if motion.shape != own.shape:
            raise BadInput(f"motion: found shape {motion.shape}, expected {own.shape} as the evaluated area")
        sets |= {"local": motion | own, "global": motion | truth.union}
    return ground_counts(
        predicted,
        area=region.mask.size,
        region=region.size,
        sizes={name: int(np.count_nonzero(mask)) for name, mask in sets.items()},
        hits={name: _hits(region, mask) for name, mask in sets.items()},
        present=predicted in truth.by_class,
        matched=matched,
        flags=region.flags
        | truth.flags
        | ({"gt_empty"} if predicted in truth.empty else set())
        | ({"motion_empty"} if motion is not None and not motion.any() else set()),
    )


def ground_counts(
    predicted: Label,
    *,
    area: int,
    region: int,
    sizes: Mapping[str, int],
    hits: Mapping[str, int],
    present: bool,
    matched: bool | None = None,
    flags: Iterable[str] = (),
) -> Grounding:
    """As `ground`, from pixel counts: `area` evaluated, `region` attended, `sizes` and `hits` of the target sets.

    Sets: `all` boxes, the predicted `class`, and for RAS `local` and `global` (motion joined with either). `flags` are
    those of the region and of the labels; `empty_region` and `class_empty` follow from the counts.

    >>> g = ground_counts("hook", area=100, region=0, sizes={"all": 9, "class": 0}, hits={"all": 0, "class": 0},
    ...                   present=True)
    >>> g.AC, g.chance, sorted(g.flags)
    (None, 0.09, ['class_empty', 'empty_region'])
    """
    raised = set(flags)
    unknown = raised - set(FLAGS)
    if unknown:
        raise BadInput(f"flags: found {sorted(unknown)}, expected some of {', '.join(FLAGS)}")
    if not all(0 <= hits[name] <= min(sizes[name], region) and sizes[name] <= area for name in sizes):
        raise BadInput(
            f"counts: found hits {dict(hits)} of {dict(sizes)}, expected at most the region's {region} pixels"
        )
    raised |= {"empty_region"} if not region else set()
    raised |= {"class_empty"} if present and not sizes["class"] else set()
    value = {name: _ratio(count, region) for name, count in hits.items()}
    chance = {name: size / area for name, size in sizes.items()}
    return Grounding(
        predicted=predicted,
        present=present,
        AC=value["all"],
        AA=value["class"],
        ARS=None if matched is None else value["class"] if matched else 0.0,
        RAS_local=value.get("local"),
        RAS_global=value.get("global"),
        chance=chance["all"],
        chance_class=chance["class"],
        chance_local=chance.get("local"),
        chance_global=chance.get("global"),
        fraction=region / area,
        flags=frozenset(raised),
    )


def _hits(region: Region, mask: Bools) -> int:
    if mask.shape != region.mask.shape:
        raise BadInput(f"map: found shape {region.mask.shape}, expected {mask.shape} as the evaluated area")
    return int(np.count_nonzero(region.mask & mask))


def _ratio(hits: int, size: int) -> float | None:
    return hits / size if size else None
