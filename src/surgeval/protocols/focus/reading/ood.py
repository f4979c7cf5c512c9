"""Which questions are out of distribution: by data set, by procedure, or by a list of questions and videos.

Every published row has `ood: false`, but the flag depends on the data that a model was trained on. Specifications
replace the files' flags: questions that match one are out of distribution, all others are in distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from surgeval.datasets import raise_errors
from surgeval.datasets.io import read_json, read_text
from surgeval.errors import BadInput
from surgeval.files import format_value
from surgeval.protocols.focus.reading.records import FocusQuestion
from surgeval.records import VqaQuestion
from surgeval.results import counted

__all__ = ["OOD_SPECS", "mark_ood", "note_ood"]

OOD_SPECS = "data:NAME, procedure:TEXT or list:FILE"
_Asked = TypeVar("_Asked", FocusQuestion, VqaQuestion)


def mark_ood(
    questions: Sequence[_Asked], specs: Sequence[str], sets: Mapping[str, frozenset[str]] | None = None
) -> tuple[tuple[_Asked, ...], tuple[str, ...]]:
    """The questions with their flags, and notes; `sets` has the names of each question's data set.

    >>> one = VqaQuestion("a__1", "v1", 0, 0, "x", "?", "1a", "binary", "Yes")
    >>> two = replace(one, id="b__1", procedure="y")
    >>> [question.ood for question in mark_ood([one, two], ["data:a"])[0]]
    [True, False]
    >>> mark_ood([one, two], ["procedure:Z"])
    Traceback (most recent call last):
    surgeval.errors.BadInput: ood: 'procedure:Z' matches none of 2 questions; their procedures are 'x', 'y'
    """
    if not specs:
        return tuple(questions), ()
    outside: set[str] = set()
    notes: list[str] = []
    for spec in specs:
        kind, _, value = spec.partition(":")
        if kind not in ("data", "procedure", "list") or not value.strip():
            raise BadInput(f"ood: found {spec!r}, expected {OOD_SPECS}")
        if kind == "list":
            matched, lacking = _match_list(questions, Path(value))
            if lacking and matched:
                lines = f"{counted(len(lacking), 'line')} (the first: {format_value(lacking[0])})"
                notes.append(f"{value}: no question matches {lines}")
        else:
            test = _of_set(value, sets or {}) if kind == "data" else _of_procedure(value)
            matched = {question.id for question in questions if test(question)}
        if not matched:
            raise BadInput(f"ood: {spec!r} matches none of {counted(len(questions), 'question')}"
                           f"{_known(kind, questions)}")  # fmt: skip
        outside |= matched
    return tuple(replace(question, ood=question.id in outside) for question in questions), tuple(notes)


def note_ood(questions: Sequence[FocusQuestion | VqaQuestion], specs: Sequence[str]) -> tuple[str, ...]:
    """How many of the asked questions are out of distribution, and by which rule; nothing without rules."""
    outside = sum(question.ood for question in questions)
    whole = counted(len(questions), "question")
    return (f"out of distribution: {outside} of {whole} ({', '.join(specs)})",) if specs else ()


def _of_set(name: str, sets: Mapping[str, frozenset[str]]) -> Callable[[FocusQuestion | VqaQuestion], bool]:
    return lambda question: question.id.startswith(f"{name}__") or name in sets.get(question.id, ())


def _of_procedure(text: str) -> Callable[[FocusQuestion | VqaQuestion], bool]:
    wanted = text.strip().casefold()
    return lambda question: question.procedure.strip().casefold() == wanted


def _match_list(questions: Sequence[FocusQuestion | VqaQuestion], file: Path) -> tuple[set[str], list[str]]:
    """The ids of the questions whose id or video is in a file, and the lines of the file that match none."""
    if file.suffix == ".json":
        data = read_json(file, raise_errors)
        lines = data if isinstance(data, list) else None
        if lines is None or not all(type(line) in (str, int) for line in lines):
            raise BadInput(f"{file}: expected a JSON list of question ids and videos")
        wanted = [str(line) for line in lines]
    else:
        text = read_text(file, raise_errors) or ""
        wanted = [line.strip() for line in text.splitlines() if line.strip()]
    every = frozenset(wanted)
    matched = {question.id for question in questions if question.id in every or question.video in every}
    known = {question.id for question in questions} | {question.video for question in questions}
    return matched, [name for name in wanted if name not in known]


def _known(kind: str, questions: Sequence[FocusQuestion | VqaQuestion]) -> str:
    if kind == "procedure":
        return f"; their procedures are {', '.join(map(format_value, sorted({q.procedure for q in questions})[:5]))}"
    return f"; the first id is {format_value(questions[0].id)}" if questions else ""
