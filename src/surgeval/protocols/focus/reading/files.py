"""The three files of a FOCUS run, read and checked as a whole before anything is scored.

Whatever is wrong becomes a `Problem`, and all are known before the first answer is read. Sources are paths or the lists
that the files hold.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from surgeval.asking import EvalAnswers, is_eval_log, read_eval_log
from surgeval.datasets import OnProblem, Problem
from surgeval.datasets.io import UNREAD, read_json
from surgeval.errors import BadInput, printable
from surgeval.files import Location, format_value
from surgeval.protocols.focus.reading.records import (
    FocusQuestion,
    FocusResponse,
    Here,
    check_shape,
    example,
    read_question,
    read_response,
)
from surgeval.qa import check_compat
from surgeval.records import Answer, VqaQuestion

__all__ = ["FocusFiles", "FocusProblems", "Source", "as_sources", "logged_responses", "read_focus"]

Source: TypeAlias = str | Path | Sequence[Mapping[str, Any]]
_ALL = 3  # responses that must all fail alike before the file is blamed and not the answers
_LISTED = 20  # problems that the message of an exception spells out; the exception holds all


class FocusProblems(BadInput):
    """Files that cannot be used as they are; `problems` holds every one."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:_LISTED]]
        if len(self.problems) > _LISTED:
            lines.append(f"… and {len(self.problems) - _LISTED} more")
        super().__init__("\n".join(lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """Every problem in a line, after their number where there are several."""
        several = (f"{len(self.problems)} problems in the files:",) if len(self.problems) > 1 else ()
        return (*several, *map(str, self.problems))


@dataclass(frozen=True)
class FocusFiles:
    """Questions in reference order with their responses, and everything that was odd about the files.

    `untimed` says that not one response has a latency.
    """

    questions: tuple[tuple[FocusQuestion, FocusResponse | None], ...]
    problems: tuple[Problem, ...] = ()
    untimed: bool = False
    n_orphan: int = 0
    n_unreferenced: int = 0
    n_duplicate: int = 0


Record: TypeAlias = tuple[Here, dict[str, Any]]


def read_focus(
    requests: Source, references: Source, responses: Source, *, timed: bool = False, compat: str | None = None
) -> FocusFiles:
    """Read and join the files; one that is missing, broken or no list stops here, with all such problems at once.

    So does one in which every record fails alike, because it has another layout; not with `compat`, which never stops.

    `timed` says that a latency limit applies, so that a response without a usable latency is a problem; where no
    response has one, it is none.
    """
    with _collector_paused():
        return _read_focus(requests, references, responses, timed, compat)


def _read_focus(requests: Source, references: Source, responses: Source, timed: bool, compat: str | None) -> FocusFiles:
    original = check_compat(compat)
    problems: list[Problem] = []
    sources = {"requests": requests, "references": references, "responses": responses}
    lists = {name: _records(source, name, problems.append, original) for name, source in sources.items()}
    if any(rows is None for rows in lists.values()):
        raise FocusProblems(problems)
    known, copies = _by_id(lists["references"] or [])
    asked, more_copies = _by_id(lists["requests"] or [])
    if not known:
        raise FocusProblems(
            [*problems, Problem("empty", _label(references, "references"), "found no questions, expected some")]
        )
    given = lists["responses"] or []
    untimed = bool(given) and not original and all(record.get("latency") is None for _, (_, record) in given)
    answers, repeated = _responses(given, timed and not untimed)
    if not original:
        for name, rows in lists.items():
            check_shape(name, [record for _, (_, record) in rows or []], _label(sources[name], name))
        _require_usable(answers, known, _label(responses, "responses"), timed and not untimed)
    questions = []
    for key, (here, record) in known.items():
        question = read_question(printable(str(key)), here, record, asked.get(key), compat)
        questions.append((question, answers.get(key)))
    if not original:
        _require_scorable([question for question, _ in questions], _label(references, "references"))
    unreferenced = [here for key, (here, _) in asked.items() if key not in known]
    for here in unreferenced:
        here.warn("reference-missing", "found a request without reference, expected its reference", "qID")
    orphans = [key for key in answers if key not in known]
    for key in orphans:
        Here(_label(responses, "responses"), problems.append, key).warn(
            "reference-missing", "found a response to no question, expected the qID of a reference", "qID"
        )
    return FocusFiles(
        tuple(questions), tuple(problems), untimed, len(orphans), len(unreferenced), copies + more_copies + repeated
    )


def _require_usable(
    answers: Mapping[Hashable, FocusResponse], known: Mapping[Hashable, Record], file: str, timed: bool
) -> None:
    """Stop where not one answer can count and the file is to blame: a score of 0 would be about the file."""
    if len(answers) < _ALL:
        return
    strangers = [key for key in answers if key not in known]
    if len(strangers) == len(answers):
        raise BadInput(
            f"{file}: qID: found {format_value(strangers[0])} and {len(strangers) - 1} more that no question has, "
            f"expected qIDs such as {format_value(next(iter(known)))}"
        )
    key, answer = next(iter(answers.items()))
    expected = f"expected records like {example('responses', key)}"
    more = len(answers) - 1
    if all(answer.repeated for answer in answers.values()):
        raise BadInput(f"{file}: every question has several responses, expected one response for each question")
    if all(not isinstance(answer.content, str) for answer in answers.values()):
        raise BadInput(
            f"{file}: content: found {format_value(answer.content)} and {more} more that are no text, {expected}"
        )
    if timed and all(answer.untimed for answer in answers.values()):
        raise BadInput(
            f"{file}: latency: {answer.untimed}, and no other response has a usable one; "
            f"leave `latency` out of every response to apply no limit, or {expected.removeprefix('expected ')}"
        )


def _require_scorable(questions: Sequence[FocusQuestion], file: str) -> None:
    """Stop where not one question can be scored: the references have another layout or belong to other requests."""
    if len(questions) >= _ALL and all(question.unusable for question in questions):
        first = questions[0]
        raise BadInput(
            f"{file}: none of the {len(questions)} questions can be scored; the first, {format_value(first.id)}: "
            f"{first.unusable}"
        )


def as_sources(
    questions: Iterable[VqaQuestion], answers: Iterable[Answer]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Responses, requests and references: a model's answers and a dataset's questions as `score_focus` takes them.

    >>> question = VqaQuestion("q1", "v1", 3, 3, "cholecystectomy", "Is a clip visible?", "1a", "binary", "Yes")
    >>> responses, requests, references = as_sources([question], [Answer("q1", "yes", 1.5)])
    >>> references[0]["answer"], responses
    ('Yes', [{'qID': 'q1', 'content': 'yes', 'latency': 1.5}])
    """
    requests, references, responses = [], [], []
    for q in questions:
        requests.append({
            "qID": q.id, "videoID": q.video, "start_time": q.start, "end_time": q.end, "procedure_type": q.procedure,
            "question": q.text,
        })  # fmt: skip
        references.append({
            "qID": q.id, "primary": q.primary, "format": q.format, "format_kwargs": dict(q.format_options),
            "answer": q.answer, "secondaries": list(q.secondaries), "ood": q.ood, "clinical": q.clinical,
        })  # fmt: skip
    for answer in answers:
        timed = {} if answer.latency is None else {"latency": answer.latency}
        responses.append({"qID": answer.question, "content": answer.content, **timed})
    return responses, requests, references


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Half of the time to read 50 000 questions went into looking for garbage among objects that all stay alive."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _label(source: Source, name: str) -> str:
    return str(source) if isinstance(source, str | Path) else name


def _records(source: Source, name: str, tell: OnProblem, compat: bool) -> list[tuple[Hashable, Record]] | None:
    """The objects of a list by the ids they state, or None when there is no list."""
    place = Location(_label(source, name), tell)
    data: Any
    if isinstance(source, str | Path) and name == "responses" and is_eval_log(source):
        data = logged_responses(Path(source), read_eval_log(source))
    elif isinstance(source, str | Path):
        data = read_json(Path(source), tell)
        if data is UNREAD:
            return None
    else:
        data = list(source)
    if place.items(data) is None:
        return None
    result: list[tuple[Hashable, Record]] = []
    for number, row in enumerate(data):
        if not isinstance(row, dict):
            place.at(f"record {number}").mapping(row)
            continue
        key = _key(place, number, row.get("qID"), compat)
        if key is not None:
            result.append((key, (Here(place.file, tell, key), row)))
    if data and not result and not compat:
        problem = f"found no usable id in {len(data)} records"
        raise BadInput(f"{place.file}: qID: {problem}, expected records like {example(name, 'q1')}")
    return result


def logged_responses(path: Path, log: EvalAnswers) -> list[dict[str, Any]]:
    """The responses in a log of Inspect AI; where a model failed the log is refused, as that would count as wrong."""
    if log.failed:
        first, reason = next(iter(log.failed.items()))
        found = f"{len(log.failed)} samples without an answer (first {first!r:.60}: {reason})"
        raise BadInput(f"{path}: found {found}, expected all answered; `inspect eval-retry` asks those again")
    answers = (Answer(name, reply.content, reply.latency) for name, reply in log.answers.items())
    return as_sources((), answers)[0]


def _key(place: Location, number: int, value: object, compat: bool) -> Hashable:
    """The id to join by; None after telling that there is none. The original compares ids as they are."""
    if isinstance(value, str) and (value or compat):
        return value
    if isinstance(value, int | float) and (compat or not isinstance(value, bool)):
        place.at(f"record {number}").warn("id-type", f"found {format_value(value)}, expected text", "qID")
        return value if compat else str(value)
    place.at(f"record {number}").error(
        "key-missing", f"found {format_value(value)}, expected the id of a question", "qID"
    )
    return None


def _by_id(rows: list[tuple[Hashable, Record]]) -> tuple[dict[Hashable, Record], int]:
    """Records by id, the last of equal ids in the place of the first, and how many were overruled."""
    result: dict[Hashable, Record] = {}
    for key, (here, record) in rows:
        if key in result:
            here.error("id-duplicate", "found a second record, which is used, expected each question once", "qID")
        result[key] = (here, record)
    return result, len(rows) - len(result)


def _responses(rows: list[tuple[Hashable, Record]], timed: bool) -> tuple[dict[Hashable, FocusResponse], int]:
    """Responses by id; several to one question leave none of them usable."""
    result: dict[Hashable, FocusResponse] = {}
    for key, (here, record) in rows:
        if key in result:
            here.error("id-duplicate", "found a second response, expected one response for each question", "qID")
            reason = "several responses were given to this question"
            result[key] = replace(result[key], unusable=reason, aborts=reason, repeated=True)
        else:
            result[key] = read_response(here, record, timed)
    return result, len(rows) - len(result)
