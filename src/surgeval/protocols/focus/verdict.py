"""Does it answer better than the blind baseline? Rules from numbers to sentences, for a scored submission.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted submissions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from surgeval.asking import describe_baseline
from surgeval.errors import visible
from surgeval.protocols.focus.scoring.summary import with_clusters
from surgeval.protocols.verdict import (
    Claim,
    Reason,
    Rule,
    Verdict,
    above,
    listed,
    reference_verdict,
    saw_no_images,
    verdict_of,
)
from surgeval.results import percent
from surgeval.stats import FEW_CLUSTERS, Interval, number_text, paired_difference

if TYPE_CHECKING:
    from surgeval.protocols.focus.result import FocusScores

__all__ = ["RULES", "FocusFacts", "Part", "Usual", "baselines_of", "facts_of", "judge", "reasons_of", "verdict_on"]

CLAIM = Claim("It answers better than the blind baseline.", "It answers worse than the blind baseline.")
BLIND = Claim(CLAIM.yes, "It is itself a blind baseline.")  # however many of its answers are right
MOST_UNUSABLE, MOST_UNJUDGED, CONSTANT, MORE, ENOUGH, LEVEL = 0.2, 0.01, 0.9, 0.1, 10, 0.05
_LONGEST = 40  # characters of an answer in a sentence
_KINDS = {"binary": "yes/no", "fo_class": "object", "open_ended": "open"}
RULES = {
    rule.name: rule
    for rule in (
        Rule("baseline", "Right answers against those of the blind baseline (the better of two blind answers to "
             "questions of the same wording), question by question: the interval of the difference lies above 0; "
             "fails where it lies below.", "decides"),
        Rule("images", "The model was given images; fails where it was not. Left out for answers from a file: whether "
             "images were given is unknown.", "decides"),
        Rule("parts", f"In no capability, in or out of distribution, of {FEW_CLUSTERS} or more videos is it worse than "
             f"the blind baseline, at {LEVEL} after Holm's correction for their number.", "limits"),
        Rule("shift", "Out of distribution it is not worse than the blind baseline: the interval of the difference "
             f"does not lie below 0; inconclusive with fewer than {FEW_CLUSTERS} videos.", "limits"),
        Rule("varied", f"In no format of {ENOUGH} or more answers does one answer make up {percent(CONSTANT)} of them "
             f"and over {100 * MORE:.0f} points more than of the references.", "limits"),
        Rule("usable", f"At most {percent(MOST_UNUSABLE)} of the answers are missing, late or unreadable.", "limits"),
        Rule("judged", f"At most {percent(MOST_UNJUDGED)} of the answers wait for a judge's verdict.", "limits"),
        Rule("honest", "No answer tries to steer the judges.", "limits"),
        Rule("weakest", f"The capabilities with the smallest lead over the blind baseline, of those with {ENOUGH} or "
             "more questions."),
        Rule("files", "Problems in the files are named."),
    )
}  # fmt: skip


class Part(NamedTuple):
    """Some of the questions: how many, the share of right answers, that of the blind baseline, their difference."""

    questions: int
    right: float
    baseline: float
    lead: Interval
    p: float = math.nan  # of no difference; NaN where too few videos test it


class Usual(NamedTuple):
    """The answer it gives most often in a format: its share of the answers, and of their references."""

    answer: str
    answers: int
    share: float
    references: float


@dataclass(frozen=True, kw_only=True)
class FocusFacts:
    """The numbers that the rules take."""

    videos: int
    accuracy: Interval
    whole: Part | None  # None where the blind baseline is unknown
    buckets: Mapping[str, Part]
    groups: Mapping[str, Part]
    sides: Mapping[str, Part]  # id and ood
    counts: Mapping[str, int]
    problems: int = 0
    usual: Mapping[str, Usual] = field(default_factory=dict)  # by format
    pictured: bool | None = None  # whether it was given images; None: unknown
    reference: str = ""  # what it does, where a reference row answered instead of a model


def judge(scores: FocusScores) -> Verdict | None:
    """The verdict on a submission; None where nothing could be scored."""
    facts = facts_of(scores)
    return None if facts is None else verdict_on(facts)


def verdict_on(facts: FocusFacts) -> Verdict:
    """What the rules say together; nothing is claimed of a reference row."""
    if facts.reference:
        return reference_verdict(CLAIM, reasons_of(facts), facts.reference)
    return verdict_of(BLIND if facts.pictured is False else CLAIM, reasons_of(facts), facts.videos)


def reasons_of(facts: FocusFacts) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    reasons = [saw_no_images(RULES["images"])] if facts.pictured is False and not facts.reference else []
    reasons += [_against_baseline(facts), _usable(facts.counts)]
    reasons += [_parts(facts.buckets)] if len(facts.buckets) > 1 else []
    reasons += [_shift(facts.sides)] if len(facts.sides) > 1 else []
    usual = {name: commonest for name, commonest in facts.usual.items() if commonest.answers >= ENOUGH}
    reasons += [_varied(usual)] if usual else []
    reasons += [*_judged(facts.counts), *_honest(facts.counts)]
    groups = {name: part for name, part in facts.groups.items() if part.questions >= ENOUGH}
    reasons += [_weakest(groups)] if len(groups) > 1 else []
    if facts.problems:
        reasons.append(Reason(RULES["files"], f"Problems in the files: {facts.problems}; they are listed below.", None))
    return tuple(reasons)


def _against_baseline(facts: FocusFacts) -> Reason:
    reached = f"Accuracy {facts.accuracy.cell()} over {facts.counts['scored']} answers"
    if facts.whole is None:
        return Reason(RULES["baseline"], f"{reached}; the blind baseline is unknown.", None,
                      "the blind baseline is unknown", facts.accuracy)  # fmt: skip
    part = facts.whole
    text = f"{reached}; the blind baseline reaches {number_text(part.baseline)}. The difference: {part.lead.cell()}."
    return Reason(
        RULES["baseline"], text, above(part.lead), f"accuracy {_against(part)}", facts.accuracy, part.baseline
    )


def _parts(buckets: Mapping[str, Part]) -> Reason:
    tested = [name for name, part in buckets.items() if not math.isnan(part.p)]
    apart = _significant_differences({name: buckets[name].p for name in tested})
    worse = [name for name in apart if buckets[name].lead.estimate < 0]
    few = len(buckets) - len(tested)
    text = (
        f"Better than the blind baseline in {len(apart) - len(worse)} of {len(buckets)} buckets, no significant "
        f"difference in {len(tested) - len(apart)}" + (f", too few videos in {few}." if few else ".")
    )
    named = f" Worse in {listed([_words(name) for name in worse])}." if worse else ""
    holds = not worse if tested else None
    return Reason(RULES["parts"], f"{text}{named}", holds, f"worse in {len(worse)} of {len(buckets)} buckets")


def _significant_differences(tests: Mapping[str, float]) -> list[str]:
    """Those whose p stays below the level after Holm's correction: of ten tests of nothing one is low by luck."""
    apart: list[str] = []
    for done, name in enumerate(sorted(tests, key=lambda name: tests[name])):
        if tests[name] * (len(tests) - done) > LEVEL:
            break
        apart.append(name)
    return apart


def _shift(sides: Mapping[str, Part]) -> Reason:
    inside, outside = sides["id"], sides["ood"]
    few = outside.lead.few_clusters
    text = (
        f"Accuracy in distribution {_against(inside)} of the blind baseline, out of distribution {_against(outside)}"
    ) + ("; too few videos out of distribution for a test." if few else ".")
    holds = None if few else above(outside.lead)
    return Reason(RULES["shift"], text, holds, f"out of distribution {_against(outside)}")


def _varied(usual: Mapping[str, Usual]) -> Reason:
    constant = [
        name
        for name, commonest in usual.items()
        if commonest.share >= CONSTANT and commonest.share - commonest.references > MORE
    ]
    if constant:
        clauses = [f"it answers “{visible(usual[name].answer)}” to {percent(usual[name].share)} of the "
                   f"{_kind(name)} questions" for name in constant]  # fmt: skip
        meant = listed([percent(usual[name].references) for name in constant])
        text = f"{clauses[0][:1].upper()}{'; '.join(clauses)[1:]}; {meant} of the references agree."
        return Reason(RULES["varied"], text, False, clauses[0])
    most = max(usual, key=lambda name: usual[name].share - usual[name].references)
    commonest = usual[most]
    text = (
        f"Its answers vary as the references do: the most frequent answer to {_kind(most)} questions, "
        f"“{visible(commonest.answer)}”, makes up {percent(commonest.share)} of its answers and "
        f"{percent(commonest.references)} of the references."
    )
    return Reason(RULES["varied"], text, True)


def _kind(format: str) -> str:
    return _KINDS.get(format, format.replace("_", " "))


def _usable(counts: Mapping[str, int]) -> Reason:
    kinds = {"missing": "missing", "late": "late", "invalid": "unreadable"}
    lost, total = sum(counts[name] for name in kinds), counts["questions"]
    if not lost:
        return Reason(RULES["usable"], "Every question has an answer that was in time and readable.", True)
    listing = ", ".join(f"{counts[name]} {word}" for name, word in kinds.items() if counts[name])
    share = percent(lost / total)
    text = f"{share} of the answers count as wrong without being read: {listing} of {total}."
    clause = f"{share} of the answers are missing, late or unreadable"
    return Reason(RULES["usable"], text, lost <= MOST_UNUSABLE * total, clause)


def _judged(counts: Mapping[str, int]) -> list[Reason]:
    waiting = counts["judge_error"]
    if not waiting:
        return []
    clause = f"{waiting} of {counts['questions']} answers have no verdict of a judge"
    holds = waiting <= MOST_UNJUDGED * counts["questions"]
    return [Reason(RULES["judged"], f"{clause} and are in no number.", holds, clause)]


def _honest(counts: Mapping[str, int]) -> list[Reason]:
    flags = max(counts["flags"], counts["flagged"])
    clause = f"{flags} answer{' tries' if flags == 1 else 's try'} to steer the judges"
    return [Reason(RULES["honest"], f"{clause}.", False, clause)] if flags else []


def _weakest(groups: Mapping[str, Part]) -> Reason:
    order = sorted(groups, key=lambda name: groups[name].right - groups[name].baseline)[:2]
    named = "; ".join(f"{_words(name)} ({_against(groups[name])})" for name in order)
    return Reason(RULES["weakest"], f"Smallest lead: {named}.", None)


def _against(part: Part) -> str:
    return f"{number_text(part.right)} against {number_text(part.baseline)}"


def _words(name: str) -> str:
    """`aggregation/ood` in words."""
    sides = {"/id": " (in distribution)", "/ood": " (out of distribution)"}
    group, slash, side = name.replace("_", " ").partition("/")
    return f"{group}{sides.get(slash + side, slash + side)}"


def facts_of(scores: FocusScores) -> FocusFacts | None:
    """The numbers out of the results."""
    if scores.flat is None:
        return None
    rows = _rows(scores)
    if rows is None:
        empty: Mapping[str, Part] = {}
        return FocusFacts(videos=scores.flat.clusters, accuracy=scores.flat, whole=None, buckets=empty, groups=empty,
                        sides=empty, counts=scores.counts, problems=len(scores.problems),
                        usual=_usual(scores), pictured=scores.pictured,
                        reference=_reference(scores))  # fmt: skip
    side = pl.when("ood").then(pl.lit("ood")).otherwise(pl.lit("id"))
    rows = rows.with_columns(side=side, bucket=pl.concat_str("group", pl.lit("/"), side))
    return FocusFacts(
        videos=scores.flat.clusters, accuracy=scores.flat, whole=_part(scores, rows),
        buckets=_by(scores, rows, "bucket"), groups=_by(scores, rows, "group"), sides=_by(scores, rows, "side"),
        counts=scores.counts, problems=len(scores.problems), usual=_usual(scores), pictured=scores.pictured,
        reference=_reference(scores),
    )  # fmt: skip


def _reference(scores: FocusScores) -> str:
    """What the reference row does that gave the answers; empty for a model."""
    return describe_baseline(scores.asked_model or "") if scores.pictured is False else ""


def _usual(scores: FocusScores) -> dict[str, Usual]:
    """The commonest answer in each format, of those that were given; empty for scores that hold no texts."""
    if scores.said is None:
        return {}
    texts = scores.said.select(
        pl.col(name).str.strip_chars(" .\n\t").str.to_lowercase() for name in ("answer", "reference")
    )
    rows = scores.results.select(pl.col("answer_format"), "status").hstack(texts)
    rows = rows.filter((pl.col("status") != "missing") & (pl.col("answer") != ""))
    usual = {}
    for (format,), part in rows.group_by("answer_format", maintain_order=True):
        answer, count = (
            part["answer"].value_counts(name="count").sort("count", "answer", descending=[True, False]).row(0)
        )
        text = answer if len(answer) <= _LONGEST else f"{answer[:_LONGEST]}…"
        usual[str(format)] = Usual(text, part.height, count / part.height, float((part["reference"] == answer).mean()))
    return usual


def baselines_of(scores: FocusScores) -> dict[str, float]:
    """By headline, what the blind baseline reaches; empty for scores that do not hold it."""
    rows = _rows(scores)
    if rows is None:
        return {}

    def mean_of(*columns: str) -> float:
        """The mean over groups of their means."""
        means = rows.group_by(*columns, maintain_order=True).agg(pl.col("baseline").mean())["baseline"]
        return float(np.mean(means.to_numpy()))

    return {
        "pre_evaluation_score": mean_of("group", "ood"),
        "flat_accuracy": float(np.mean(rows["baseline"].to_numpy())),
        "accuracy_mean_of_video_means": mean_of("video"),
    }


def _rows(scores: FocusScores) -> pl.DataFrame | None:
    """The scored questions with right and baseline; None where there are none, or no baseline was computed."""
    if not scores.blind or scores.flat is None:
        return None
    scored = with_clusters(scores.results.filter(pl.col("correctness").is_not_null()))
    baseline = [float(scores.blind.get(name, False)) for name in scored["qID"]]
    return scored.select(
        "video", "group", "ood", right=pl.col("correctness").cast(pl.Float64), baseline=pl.Series(baseline)
    )


def _by(scores: FocusScores, rows: pl.DataFrame, column: str) -> dict[str, Part]:
    names: Sequence[str] = sorted(rows[column].unique())
    return {name: _part(scores, rows.filter(pl.col(column) == name)) for name in names}


def _part(scores: FocusScores, rows: pl.DataFrame) -> Part:
    right, baseline = rows["right"].to_numpy(), rows["baseline"].to_numpy()
    resamples, seed = (scores.settings.get(key) for key in ("resamples", "seed"))
    lead = paired_difference(
        right, baseline, rows["video"].to_list(), resamples=resamples if isinstance(resamples, int) else 2000,
        seed=seed if isinstance(seed, int) else 0, name="lead",
    )  # fmt: skip
    return Part(rows.height, float(right.mean()), float(baseline.mean()), lead.interval, lead.p)
