"""A study of the project: its kappas, the instances on which people differ, and the log of what was decided.

Kappas are against the labels as they were before the study's own decisions changed any of them: labels that were
corrected after an annotator's answer would agree with that annotator by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from surgeval.studio.agreement import COMPONENTS, UNANSWERED, UNLABELLED, AgreementStudy, LabelledInstance, Labels
from surgeval.studio.agreement import measure_agreement as _measure
from surgeval.studio.store import Annotation, Decision, Study, study_reading

__all__ = ["LOG_COLUMNS", "Disagreement", "decision_log", "find_disagreements", "measure_study"]

_ATTRIBUTES = ("action", "target")

LOG_COLUMNS = (
    "study", "video", "frame", "instance", "number", "choice", "annotator",
    *(f"{component}_{when}" for when in ("before", "after") for component in COMPONENTS[:-1]),
    "decided_by", "time", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Disagreement:
    """An instance on which annotators differ from the label (and so, maybe, from each other)."""

    instance: str
    video: str
    frame: int
    label: Labels
    answers: Mapping[str, Labels | None]  # by annotator; None: no answer
    components: tuple[str, ...]  # on which an answer differs
    decision: Decision | None  # the last one


def measure_study(connection: Connection, of: Study, *, after: bool = False) -> AgreementStudy:
    """The kappas of a study, against the labels before its decisions or, `after` them, as they are now.

    >>> import tempfile
    >>> from surgeval.studio.store import Database, Request, apply
    >>> verbs = [{"action": "cut" if n % 2 else "dissect", "target": "fascias"} for n in range(8)]
    >>> boxes = [{"id": f"i{n}", "video": "V", "frame": n, "group": "tools", "name": "scissors", "box": [1, 1, 9, 9],
    ...           "values": verbs[n]} for n in range(8)]
    >>> edits = [
    ...     ("amy", "video.add", {"id": "V", "width": 64, "height": 48}),
    ...     ("amy", "frames.add", {"video": "V", "first": 0, "names": [f"{n}.png" for n in range(8)]}),
    ...     ("amy", "instances.add", {"instances": boxes}),
    ...     ("amy", "study.add",
    ...      {"id": "s", "annotators": ["ada"], "segments": [{"video": "V", "first": 0, "last": 7}]}),
    ... ]
    >>> edits += [("ada", "study.answer", {"study": "s", "ids": [f"i{n}"], "name": "scissors", "values": verbs[n or 1]})
    ...           for n in range(8)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     for number, (author, kind, payload) in enumerate(edits):
    ...         _ = apply(database, Request(f"edit-{number}", author, kind, payload))
    ...     with database.reading() as connection:
    ...         study = measure_study(connection, study_reading.study(connection, "s"))
    ...     database.close()
    >>> study.table()["ada"][1], study.disagreements["instance"].to_list()
    (0.75, ['i0'])
    """
    labels = _labelled(connection, of, {} if after else _first_decisions(connection, of))
    segments = dict.fromkeys(of.annotators, of.segments)
    return _measure(labels, _answers(connection, of), segments)


def find_disagreements(connection: Connection, of: Study, *, unanswered: bool = False) -> tuple[Disagreement, ...]:
    """The instances on which an answer differs from the label before any decision; also where one is missing."""
    answers = _answers(connection, of)
    last = {decision.instance: decision for decision in study_reading.decisions(connection, of.id)}
    disagreements = []
    for unit in _labelled(connection, of, _first_decisions(connection, of)):
        by_annotator = {annotator: answers[annotator].get(unit.instance) for annotator in of.annotators}
        differ = tuple(
            component
            for number, component in enumerate(COMPONENTS[:-1])
            if any(
                answer is not None and answer[number] not in (UNANSWERED, unit.labels[number])
                for answer in by_annotator.values()
            )
        )
        if differ or (unanswered and any(answer is None or UNANSWERED in answer for answer in by_annotator.values())):
            disagreements.append(
                Disagreement(
                    unit.instance, unit.video, unit.frame, unit.labels, by_annotator, differ, last.get(unit.instance)
                )
            )
    return tuple(disagreements)


def decision_log(connection: Connection, of: Study) -> list[dict[str, Any]]:
    """Every decision as a flat row: who decided what, when, and what the label was and became."""
    return [
        {
            "study": of.id, "video": decision.video, "frame": decision.frame, "instance": decision.instance,
            "number": decision.number, "choice": decision.choice, "annotator": decision.annotator,
            **_columns("before", _triplet(decision.name_before, decision.values_before, UNLABELLED)),
            **_columns("after", _triplet(decision.name_after, decision.values_after, UNLABELLED)),
            "decided_by": decision.author,
            "time": datetime.fromtimestamp(decision.time, UTC).isoformat(timespec="seconds"), "note": decision.note,
        }
        for decision in study_reading.decisions(connection, of.id)
    ]  # fmt: skip


def _columns(when: str, labels: Labels) -> dict[str, str | None]:
    return {f"{component}_{when}": part for component, part in zip(COMPONENTS, labels, strict=False)}


def _first_decisions(connection: Connection, of: Study) -> dict[str, Decision]:
    first: dict[str, Decision] = {}
    for decision in study_reading.decisions(connection, of.id):
        first.setdefault(decision.instance, decision)
    return first


def _labelled(connection: Connection, of: Study, decided: Mapping[str, Decision]) -> list[LabelledInstance]:
    return [
        LabelledInstance(
            annotation.id, annotation.video, annotation.frame, _label(annotation, decided.get(annotation.id))
        )
        for annotation in study_reading.shown(connection, of)
    ]


def _label(annotation: Annotation, decision: Decision | None) -> Labels:
    if decision is not None:
        return _triplet(decision.name_before, decision.values_before, UNLABELLED)
    return _triplet(annotation.name, annotation.values, UNLABELLED)


def _answers(connection: Connection, of: Study) -> dict[str, dict[str, Labels]]:
    labels: dict[str, dict[str, Labels]] = {annotator: {} for annotator in of.annotators}
    for answer in study_reading.answers(connection, of.id):
        labels[answer.annotator][answer.instance] = _triplet(answer.name, answer.values, UNANSWERED)
    return labels


def _triplet(name: str, values: Mapping[str, str], absent: str) -> Labels:
    verb, target = (values.get(attribute, absent) for attribute in _ATTRIBUTES)
    return name or absent, verb, target
