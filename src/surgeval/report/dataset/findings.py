"""What matters about a dataset, in sentences: how much there is, what is rare, what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from surgeval.datasets import Problem
from surgeval.pages import Finding
from surgeval.report.dataset import margins
from surgeval.report.dataset.statistics import DatasetStatistics
from surgeval.results import percent
from surgeval.stats import FEW_CLUSTERS

__all__ = ["Checked", "dataset_findings"]

_FEW_INSTANCES = 10  # below it a class's score rests on single instances
_NAMED = 3


class Checked(Protocol):
    """What a check of a dataset found."""

    @property
    def problems(self) -> Sequence[Problem]:
        """Each problem, with its place."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Problems per kind."""
        ...


def dataset_findings(s: DatasetStatistics, check: Checked | None) -> tuple[Finding, ...]:
    """Sentences from the counts, what is wrong first."""
    return (*_problems(check), *_videos(s), *_balance(s), *_boxes(s))


def _problems(check: Checked | None) -> tuple[Finding, ...]:
    if check is None:
        return ()
    if not check.counts:
        return (Finding("The check found nothing wrong.", "passes"),)
    total = sum(check.counts.values())
    levels = {problem.kind: problem.level for problem in check.problems}
    errors = sum(count for kind, count in check.counts.items() if levels.get(kind) == "error")
    split = f"{_number(errors, 'error')} and {_number(total - errors, 'warning')}"
    kinds = sorted(check.counts.items(), key=lambda item: (levels.get(item[0]) != "error", -item[1], item[0]))
    named = ", ".join(f"{kind} ({_grouped(count)})" for kind, count in kinds[:_NAMED])
    rest = f" and {_number(len(kinds) - _NAMED, 'other kind')}" if len(kinds) > _NAMED else ""
    return (Finding(f"The check found {split}: {named}{rest}; Problems lists them.", "fails" if errors else None),)


def _videos(s: DatasetStatistics) -> tuple[Finding, ...]:
    if len(s.videos) >= FEW_CLUSTERS:
        return ()
    few = _number(len(s.videos), "video")
    return (
        Finding(f"Only {few}: too few for a claim about videos in general, whatever is measured on them.", "fails"),
    )


def _balance(s: DatasetStatistics) -> tuple[Finding, ...]:
    """The most frequent class, the rare ones, and those that never occur; of triplets, or else of instruments."""
    if s.space.triplets:
        noun, names, rows = "triplet class", s.space.triplet_names, margins.triplet_counts(s)[:-1]
    else:
        noun, names = "instrument", margins.names_of(s, "instruments")[:-1]
        rows = margins.component_counts(s, "instruments")[:-1]
    counts = Counter({name: sum(row) for name, row in zip(names, rows, strict=True)})
    total = counts.total()
    if not total:
        return ()
    (first, most), *_ = counts.most_common(1)
    findings = [Finding(f"The most frequent {noun}, {first}, makes up {percent(most / total)} of all instances.")]
    rare = sorted((count, name) for name, count in counts.items() if 0 < count < _FEW_INSTANCES)
    never = sum(count == 0 for count in counts.values())
    if rare:
        listed = ", ".join(f"{name} ({count})" for count, name in rare[:_NAMED])
        plural = "es" if noun.endswith("s") else "s"
        findings.append(Finding(
            f"{len(rare)} of the {len(counts) - never} {noun}{plural} that occur {'has' if len(rare) == 1 else 'have'} "
            f"fewer than {_FEW_INSTANCES} instances, so that a score rests on single ones; the rarest: {listed}."
        ))  # fmt: skip
    if never:
        findings.append(Finding(
            f"{never} of {len(counts)} classes of the label space never occur: nothing can be said of them."
        ))  # fmt: skip
    return tuple(findings)


def _boxes(s: DatasetStatistics) -> tuple[Finding, ...]:
    missing = s.total - s.boxes
    if not missing or not s.boxes:
        return ()
    text = f"{_number(missing, 'instance')} of {_grouped(s.total)} ({percent(missing / s.total)}) have no box."
    return (Finding(text, "fails"),)


def _number(count: int, noun: str) -> str:
    return f"{_grouped(count)} {noun if count == 1 else f'{noun}s'}"


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")
