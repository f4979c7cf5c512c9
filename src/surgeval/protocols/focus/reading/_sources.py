"""Where questions come from: a dataset folder, a requests and references pair, published rows, or the hub.

The whole set is read and checked before anything is asked; the first error stops with its sentence. The hub is only
reached when a name that begins with `hub:` asks for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from surgeval.asking import is_eval_log, read_eval_log
from surgeval.datasets import Dataset, focus_rows, has_focus_columns, open_dataset, raise_errors, read_focus_pair
from surgeval.datasets.io import folders, names
from surgeval.errors import BadInput, DataError
from surgeval.models import hub_folder
from surgeval.protocols.asked import draw_evenly
from surgeval.protocols.focus.reading._files import Source, as_sources, logged_responses
from surgeval.records import VqaQuestion

__all__ = ["FocusSet", "open_questions", "scored_sources"]

_HUB = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?::([\w-][\w.-]*))?", re.ASCII)


@dataclass(frozen=True)
class FocusSet:
    """Questions in their order, the dataset that may hold their frames, and which videos are for training."""

    questions: tuple[VqaQuestion, ...]
    dataset: Dataset | None = None
    train: frozenset[str] = field(default_factory=frozenset)

    @property
    def learnable(self) -> tuple[VqaQuestion, ...]:
        """The questions of the training split; all of them where there is no such split."""
        return tuple(q for q in self.questions if q.video in self.train) or self.questions

    def drawn(self, limit: int | None, seed: int = 0) -> tuple[tuple[VqaQuestion, ...], str]:
        """At most so many questions, as many of each video, and a label; all questions have no label.

        The first ones would often be those of one video, which is no interval and the look of one operation.
        """
        if limit is None or limit >= len(self.questions):
            return self.questions, ""
        videos = sorted({question.video for question in self.questions})
        random.Random(seed).shuffle(videos)  # fewer questions than videos: not those of the first hospital
        strata: dict[Hashable, list[tuple[str, ...]]] = {video: [] for video in videos}
        for question in self.questions:
            strata[question.video].append((question.id,))
        drawn = draw_evenly(strata, limit, seed)
        questions = tuple(question for question in self.questions if question.id in drawn)
        label = f"{len(questions)} of {len(self.questions)} questions, drawn evenly from the videos (seed {seed})"
        return questions, label


def open_questions(
    data: str | Path | None, requests: str | Path | None = None, references: str | Path | None = None
) -> FocusSet:
    """The questions of `data` (a path, or `hub:OWNER/NAME[:CONFIG]`), or of a requests and a references file."""
    if (requests is None) != (references is None) or (data is None) == (requests is None):
        raise BadInput("questions: expected either a dataset, or a requests file with its references file")
    if requests is not None and references is not None:
        questions = FocusSet(tuple(read_focus_pair(Path(requests), Path(references), raise_errors)))
    elif str(data).startswith("hub:"):
        questions = _published(_fetched(str(data)), str(data))
    else:
        path = Path(str(data))
        files = _row_files(path)
        questions = (
            _published(files, str(path)) if len(files) > 1 else _of_dataset(open_dataset(files[0] if files else path))
        )
    if not questions.questions:
        raise BadInput(f"{data or requests}: found no FOCUS questions, expected some")
    return questions


def scored_sources(
    data: str | Path | None, requests: str | Path | None, references: str | Path | None, responses: Path
) -> tuple[Source, Source, Source, str]:
    """Requests, references and responses to score, and a note where not all questions of `data` are among them.

    A log of Inspect AI knows which questions it asked: of `data` only those are scored. A file of responses does not,
    and what it leaves out counts as wrong.
    """
    if data is None and requests is not None and references is not None:
        return requests, references, responses, ""
    questions = open_questions(data, requests, references).questions
    if not is_eval_log(responses):
        return *as_sources(questions, ())[:2], responses, ""
    log = read_eval_log(responses)
    asked = frozenset(log.asked)
    scored = [question for question in questions if question.id in asked]
    if not scored:
        raise DataError(responses, record=f"sample {log.asked[0]!r:.60}", found="no such question in the data",
                        expected=f"samples called like {questions[0].id!r:.60}")  # fmt: skip
    part = f"the log asked {len(scored)} of {len(questions)} questions; the others are not counted"
    return *as_sources(scored, ())[:2], logged_responses(responses, log), part if len(scored) < len(questions) else ""


def _of_dataset(dataset: Dataset) -> FocusSet:
    questions = tuple(question for question in dataset.questions() if isinstance(question, VqaQuestion))
    train = frozenset(video.name for video in dataset.videos() if video.split == "train") if questions else frozenset()
    return FocusSet(questions, dataset, train)


def _row_files(folder: Path) -> list[Path]:
    """The Parquet files of published rows in a folder, or in the one folder below it that has some."""
    if not folder.is_dir():
        return []
    rows_of = {candidate: list(_rows_in(candidate)) for candidate in (folder, *folders(folder))}
    holders = [candidate for candidate, files in rows_of.items() if files]
    if len(holders) > 1:
        listed = ", ".join(holder.name for holder in holders)
        raise BadInput(f"{folder}: found rows in several folders ({listed}), expected one: name it")
    return rows_of[holders[0]] if holders else []


def _rows_in(folder: Path) -> Iterator[Path]:
    for name in names(folder):
        if name.endswith(".parquet") and has_focus_columns(folder / name):
            yield folder / name


def _published(files: Sequence[Path], source: str) -> FocusSet:
    if not files:
        raise BadInput(f"{source}: found no Parquet file with the columns of FOCUS rows, expected some")
    questions: dict[str, VqaQuestion] = {}
    train = set[str]()
    for file in files:
        for question in focus_rows(file, raise_errors):
            if question.id in questions:
                raise DataError(file, record=f"question {question.id}", found="a second row", expected="each once")
            questions[question.id] = question
            if file.name.startswith("train"):
                train.add(question.video)
    return FocusSet(tuple(questions.values()), None, frozenset(train))


def _fetched(name: str) -> list[Path]:
    """The Parquet files of a dataset on the hub, in the hub client's own cache."""
    match = _HUB.fullmatch(name)
    if match is None:
        raise BadInput(f"{name!r}: found no dataset's name, expected hub:OWNER/NAME or hub:OWNER/NAME:CONFIG")
    repository, config = match[1], match[2]
    wanted = [f"{config}/*.parquet", f"{config}*.parquet"] if config else ["*.parquet"]
    folder = hub_folder(repository, wanted, repo_type="dataset", text=name)
    if config and (folder / config).is_dir():
        return list(_rows_in(folder / config))
    files = _row_files(folder)
    return [file for file in files if file.name.startswith(config)] if config else files
