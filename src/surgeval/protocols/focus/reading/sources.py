"""Where questions come from: a dataset folder, a requests and references pair, published rows, or the hub.

The whole set is read and checked before anything is asked; the first error stops with its sentence. The hub is only
reached when a name that begins with `hub:` asks for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from surgeval.asking import is_eval_log, read_eval_log
from surgeval.datasets import (
    Dataset,
    RowsFile,
    focus_rows,
    open_dataset,
    raise_errors,
    read_focus_pair,
    row_files,
)
from surgeval.errors import BadInput, DataError
from surgeval.files import format_value
from surgeval.models import hub_folder
from surgeval.protocols.asked import draw_evenly
from surgeval.protocols.focus.reading.files import Source, as_sources, logged_responses
from surgeval.protocols.focus.reading.ood import mark_ood, note_ood
from surgeval.records import VqaQuestion
from surgeval.results import counted

__all__ = ["DataSets", "FocusSet", "open_questions", "scored_sources"]

_HUB = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?::([\w-][\w.-]*))?", re.ASCII)


@dataclass(frozen=True)
class FocusSet:
    """Questions in their order, the dataset that may hold their frames, and the ids of the questions for training.

    `pool` has all questions where only those of one split are asked, `notes` what a reader of the numbers must know.
    """

    questions: tuple[VqaQuestion, ...]
    dataset: Dataset | None = None
    train: frozenset[str] = field(default_factory=frozenset)
    pool: tuple[VqaQuestion, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def learnable(self) -> tuple[VqaQuestion, ...]:
        """The questions of the training split; all of them where there is no such split."""
        known = self.pool or self.questions
        return tuple(q for q in known if q.id in self.train) or known

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


DataSets: TypeAlias = str | Path | Sequence[str | Path]


def open_questions(
    data: DataSets | None,
    requests: str | Path | None = None,
    references: str | Path | None = None,
    *,
    track: str | None = None,
    split: str | None = None,
    prefix: Sequence[str] = (),
    ood: Sequence[str] = (),
) -> FocusSet:
    """The questions of `data` (paths, or `hub:OWNER/NAME[:CONFIG]`), or of a requests and a references file.

    Of a set with several configurations that of the `track` is taken. `split` is one split or `all`; by default that
    is `test` of published rows that have it, and else all. Each `prefix` goes before the ids of one data set, in their
    order. `ood` says which questions are out of distribution (`mark_ood`).
    """
    named = [data] if isinstance(data, str | Path) else list(data or ())
    if (requests is None) != (references is None) or bool(named) == (requests is not None):
        raise BadInput("questions: expected either a dataset, or a requests file with its references file")
    if prefix and len(prefix) != len(named):
        raise BadInput(f"prefix: found {len(prefix)} for {counted(len(named), 'data set')}, expected one for each")
    if requests is not None and references is not None:
        pair = tuple(read_focus_pair(Path(requests), Path(references), raise_errors))
        return _combine([(_DataSet(pair), frozenset())], str(requests), split, ood)
    sets = []
    for number, name in enumerate(named):
        rows = _rows_of(name, track)
        sets.append((rows.with_prefix(prefix[number]) if prefix else rows, _names_of(name)))
    return _combine(sets, " and ".join(map(str, named)), split, ood)


@dataclass(frozen=True)
class _DataSet:
    """The questions of one data set, and the split of each where that is known."""

    questions: tuple[VqaQuestion, ...]
    split: Mapping[str, str] = field(default_factory=dict)
    dataset: Dataset | None = None
    published: bool = False

    def with_prefix(self, prefix: str) -> _DataSet:
        """The same questions under ids with this prefix."""
        questions = tuple(replace(question, id=f"{prefix}{question.id}") for question in self.questions)
        return replace(self, questions=questions, split={f"{prefix}{name}": of for name, of in self.split.items()})

    def of_split(self, split: str | None, source: str) -> tuple[VqaQuestion, ...]:
        """The questions of a split or of `all`; by default `test` of published rows that have it, and else all."""
        known = sorted(set(self.split.values()) - {""})
        if split is None:
            split = "test" if self.published and "test" in known else "all"
        if split == "all":
            return self.questions
        if split not in known:
            found = f"found the splits {', '.join(known)}" if known else "no split is known"
            raise BadInput(f"split {split!r}: {source}: {found}, expected one of them or all")
        return tuple(question for question in self.questions if self.split.get(question.id) == split)


def _combine(
    sets: Sequence[tuple[_DataSet, frozenset[str]]], source: str, split: str | None, ood: Sequence[str]
) -> FocusSet:
    """Combine data sets: require distinct ids, set the out-of-distribution flags, and take one split."""
    names: dict[str, frozenset[str]] = {}
    common = frozenset.intersection(*(called for _, called in sets)) if len(sets) > 1 else frozenset()
    splits: dict[str, str] = {}
    for rows, called in sets:
        for question in rows.questions:
            if question.id in names:
                raise BadInput(
                    f"{source}: question {format_value(question.id)} is in two data sets; "
                    "give each data set its own prefix"
                )
            names[question.id] = called - common
        splits |= rows.split
    every = tuple(question for rows, _ in sets for question in rows.questions)
    if not every:
        raise BadInput(f"{source}: found no FOCUS questions, expected some")
    every, notes = mark_ood(every, ood, names)
    train = frozenset(name for name, of in splits.items() if of == "train")
    kept = {question.id for rows, _ in sets for question in rows.of_split(split, source)}
    asked = tuple(question for question in every if question.id in kept)
    if len(asked) < len(every):
        notes = (f"split {split or 'test'}: {len(asked)} of {counted(len(every), 'question')}", *notes)
    notes = (*notes, *note_ood(asked, ood))
    dataset = sets[0][0].dataset if len(sets) == 1 else None
    return FocusSet(asked, dataset, train, every if len(asked) < len(every) else (), notes)


def _names_of(data: str | Path) -> frozenset[str]:
    """The names of a data set for `data:NAME`: its path, and each folder of the path (unless all sets have it)."""
    text = str(data)
    return frozenset((text, *re.split(r"[/\\:]", text))) - {""}


def _rows_of(data: str | Path, track: str | None) -> _DataSet:
    if str(data).startswith("hub:"):
        return _published(_fetched(str(data), track), str(data))
    path = Path(str(data))
    files = _of_config(row_files(path), path, track) if path.is_dir() else ()
    return _published(files, str(path)) if files else _of_dataset(open_dataset(path))


def scored_sources(
    data: DataSets | None,
    requests: Source | None,
    references: Source | None,
    responses: Source,
    *,
    track: str | None = None,
    split: str | None = None,
    prefix: Sequence[str] = (),
    ood: Sequence[str] = (),
) -> tuple[Source, Source, Source, tuple[str, ...]]:
    """Responses, requests and references to score, and notes, for example on the questions of `data` left out.

    A log of Inspect AI knows which questions it asked: of `data` only those are scored. A file of responses does not,
    and what it leaves out counts as wrong.
    """
    if not data and requests is not None and references is not None:
        if split is not None or prefix:
            option = "split" if split is not None else "prefix"
            raise BadInput(f"{option}: applies to a dataset, and cannot be used with requests and references")
        return responses, requests, references, ()
    files = [source if isinstance(source, str | Path) else None for source in (requests, references)]
    known = open_questions(data, *files, track=track, split=split, prefix=prefix, ood=ood)
    if not isinstance(responses, str | Path) or not is_eval_log(Path(responses)):
        return responses, *as_sources(known.questions, ())[1:], known.notes
    log = read_eval_log(Path(responses))
    asked = frozenset(log.asked)
    scored = [question for question in known.questions if question.id in asked]
    if not scored:
        raise DataError(
            responses,
            f"found no such question in the data, expected samples called like {known.questions[0].id!r:.60}",
            record=f"sample {log.asked[0]!r:.60}",
        )
    part = f"the log asked {len(scored)} of {len(known.questions)} questions; the others are not counted"
    notes = (*known.notes, part) if len(scored) < len(known.questions) else known.notes
    return logged_responses(Path(responses), log), *as_sources(scored, ())[1:], notes


def _of_dataset(dataset: Dataset) -> _DataSet:
    questions = tuple(question for question in dataset.questions() if isinstance(question, VqaQuestion))
    splits = {video.name: video.split or "" for video in dataset.videos()} if questions else {}
    return _DataSet(questions, {question.id: splits.get(question.video, "") for question in questions}, dataset)


def _of_config(files: Sequence[RowsFile], source: str | Path, track: str | None) -> tuple[RowsFile, ...]:
    """The files of the only configuration, or of that of the track."""
    configs = dict.fromkeys(file.config for file in files)
    wanted = [name for name in configs if len(configs) == 1 or name.rpartition("/")[2] == track]
    if len(configs) > 1 and len(wanted) != 1:
        listed = ", ".join(name or "." for name in configs)
        raise BadInput(f"{source}: found rows in several folders ({listed}), expected one: name it, or the track")
    return tuple(file for file in files if file.config in wanted)


def _published(files: Sequence[RowsFile], source: str) -> _DataSet:
    if not files:
        raise BadInput(f"{source}: found no Parquet file with the columns of FOCUS rows, expected some")
    questions: dict[str, VqaQuestion] = {}
    splits: dict[str, str] = {}
    for file in files:
        for question in focus_rows(file.path, raise_errors):
            if question.id in questions:
                found = "a second row"
                raise DataError(file.path, f"found {found}, expected each once", record=f"question {question.id}")
            questions[question.id], splits[question.id] = question, file.split
    return _DataSet(tuple(questions.values()), splits, published=True)


def _fetched(name: str, track: str | None) -> tuple[RowsFile, ...]:
    """The Parquet files of a dataset on the hub, in the hub client's own cache."""
    match = _HUB.fullmatch(name)
    if match is None:
        raise BadInput(f"{name!r}: found no dataset's name, expected hub:OWNER/NAME or hub:OWNER/NAME:CONFIG")
    repository, config = match[1], match[2]
    wanted = [f"{config}/*.parquet", f"{config}*.parquet", f"*/{config}/*.parquet"] if config else ["*.parquet"]
    folder = hub_folder(repository, wanted, repo_type="dataset", text=name)
    files = row_files(folder)
    if config is None:
        return _of_config(files, name, track)
    return tuple(file for file in files if file.config == config or file.path.name.startswith(config))
