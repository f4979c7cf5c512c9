"""`run_focus`: ask a model every question of a set, in a folder that can be killed and resumed.

The folder ends with `responses.json` beside `requests.json` and `references.json`, which is what `score_focus` reads. A
question whose model failed is not in it: until `retry` has asked it again, scoring would count it as wrong.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from surgeval.asking import (
    BLOCK,
    Answerer,
    DatasetFrames,
    FrameOptions,
    Media,
    QuestionWorker,
    RecordedAnswers,
    VideoFiles,
    answerer_forms,
    encode_frames,
    open_answerer,
    question_units,
)
from surgeval.console import require_models
from surgeval.console.commands import Help, common
from surgeval.console.panels import READING, RUNNING
from surgeval.engine import Manifest, fingerprint, run
from surgeval.errors import BadInput, DataError, RunError, printable
from surgeval.files import holds_bytes, write_atomically
from surgeval.models.chat import ChatOptions
from surgeval.progress import phases
from surgeval.protocols.asked import NO_MEDIA, UNKNOWN_MEDIA, AskedRun, check_limit, was_shown
from surgeval.protocols.focus.asking.prompt import PROMPT_VERSION, question_messages
from surgeval.protocols.focus.method import JUDGE, OOD, PREFIX, SPLIT, Track, folder_name, score_focus
from surgeval.protocols.focus.reading.files import as_sources
from surgeval.protocols.focus.reading.sources import DataSets, FocusSet, open_questions
from surgeval.protocols.focus.result import FocusScores, load_focus
from surgeval.protocols.focus.scoring.panel import Judges, check_judges
from surgeval.protocols.focus.scoring.rules import latency_limit
from surgeval.protocols.focus.stored import SCORES
from surgeval.protocols.pictures import PICTURES, film_strip, save_pictures
from surgeval.protocols.result import CaseRow
from surgeval.qa import load_answer_formats, public_name
from surgeval.records import Answer, VqaQuestion
from surgeval.results import counted

__all__ = ["FocusRun", "open_media", "run_focus"]

_BESIDE = 4  # frames of a question that its kept picture shows


class AskedCase(CaseRow):
    """What a model replied to a question, and what that took."""

    content: str | None = None
    latency: float | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    answered_by: str | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FocusRun(AskedRun):
    """A finished run: one row per question in `answers` (`qID`, `video`, `status`, `reason`, `content`, `latency`, …).

    `media` says what the model saw (`none`; `unknown` of answers made elsewhere), `judged` whether some answers need
    judges, `subset` which part of the questions was asked (empty: all), `track` which latency limit holds. `scores` are
    those made after asking, None where a question has no answer yet or an answer needs a judge and none was named.
    """

    media: str
    judged: bool
    subset: str = ""
    track: Track | None = None
    scores: FocusScores | None = None
    look: Callable[[str], bytes | None] = field(default=lambda _question: None)

    @cached_property
    def loaded(self) -> FocusScores:
        """The scores in the folder; before there are any, those that need no judge.

        They are not to be had while questions wait for an answer, because each would count as wrong.
        """
        if self.scores is not None:
            return self.scores
        if (self.folder / SCORES).exists():
            return load_focus(self.folder)
        if self.unasked:
            waiting = counted(self.unasked, "question")
            raise RunError(f"{self.folder}: found {waiting} without an answer, expected all: retry asks only those")
        return score_focus(
            *self.sources, track=self.track, name=self.folder.resolve().name, pictured=was_shown(self.media)
        )

    @property
    def scored(self) -> FocusScores | None:
        """The scores made after asking."""
        return self.scores

    def to_json(self) -> dict[str, Any]:
        """How the run went, the command that scores it, and its scores if there are any."""
        return {
            "folder": str(self.folder), "model": self.model, "media": self.media, "questions": self.answers.height,
            "subset": self.subset, "counts": dict(self.counts), "usage": asdict(self.usage), "notes": list(self.notes),
            "failures": self.summary.to_frame().to_dicts(), "responses": str(self.sources[0]),
            "score_command": self.score_command, "scores": self.scores.to_json() if self.scores else None,
        }  # fmt: skip

    @property
    def score_command(self) -> str:
        """The command that scores this run, ready for a shell."""
        words = ["surgeval", "score", "focus"]
        for option, path in zip(("--responses", "--requests", "--references"), self.sources, strict=True):
            words += [option, str(path)]
        words += ["--track", self.track] if self.track else []
        words += ["--judge", "SPEC"] if self.judged else []
        return shlex.join([*words, "--out", str(self.folder)])

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`answers` first, one row per question; then those of the scores, where there can be any, and `failures`."""
        scored = not self.unasked or (self.folder / SCORES).exists()
        return super().tables if scored else {"answers": self.answers, "failures": self.summary.to_frame()}

    def pictures(self, count: int, results: pl.DataFrame | None = None) -> dict[str, bytes]:
        """Small pictures of what the model was shown, frames side by side; with `results`, of wrong answers first."""
        names = self.answers["qID"]
        if results is not None:
            names = results.with_columns(pl.col("correctness").fill_null(False)).sort(
                "correctness", maintain_order=True
            )["qID"]
        looks = {question: self.look(question) for question in names.head(count)}
        return {question: picture for question, picture in looks.items() if picture is not None}

    def keep_pictures(self, count: int) -> None:
        """Store pictures of the first questions, for a page that is made when judges have spoken."""
        save_pictures(self.folder, self.pictures(count))

    @property
    def sources(self) -> tuple[Path, Path, Path]:
        """Responses, requests and references: what `score_focus` takes."""
        return self.folder / "responses.json", self.folder / "requests.json", self.folder / "references.json"

    def __str__(self) -> str:
        shown = {True: "frames shown", False: "no frames shown", None: "made elsewhere"}[was_shown(self.media)]
        subset = (f"a subset: {self.subset}",) if self.subset else ()
        said = f"{self.model}: {self.said}; {shown}"
        waiting: tuple[str, ...] = ()
        if self.unasked:
            count = counted(self.unasked, "question")
            waiting = (f"not scored: {count} without an answer yet; the same with retry asks only those",)
        elif self.scores is None:
            waiting = (
                "some answers need a judge (SPEC: openai:MODEL@URL, hf:PATH, table:FILE, exact or manual):",
                f"  {self.score_command}",
            )
        return "\n".join((str(self.summary), said, *subset, *self.server_notes, *self.notes, *waiting))


def run_focus(
    data: Annotated[
        DataSets | None,
        Help("A phantom, a requests/references folder, published rows, or hub:OWNER/NAME (repeatable).",
             kind=list[str]),
    ],
    model: Annotated[str | Answerer[VqaQuestion], Help(f"One of {', '.join(answerer_forms())}.", metavar="SPEC")],
    out: str | Path,
    *,
    requests: Annotated[str | Path | None, Help("The questions, in place of --data.", READING)] = None,
    references: Annotated[str | Path | None, Help("Their references.", READING)] = None,
    split: Annotated[str | None, SPLIT] = None,
    prefix: Annotated[Sequence[str], PREFIX] = (),
    ood: Annotated[Sequence[str], OOD] = (),
    media: Annotated[str | Path | None, Help("Folder with a video file for every video.")] = None,
    frames: Annotated[int, Help("Frames a question may show.", RUNNING, least=1)] = 8,
    overlay_time: Annotated[bool, Help("Burn the time (hh:mm:ss) into frames.", RUNNING)] = False,
    track: Annotated[Track | None, Help("frame: one frame a question. Also sets the latency limit.")] = None,
    concurrency: Annotated[int, Help("Questions at a time.", RUNNING, least=1, most=BLOCK)] = 8,
    limit: Annotated[int | None, Help("Number of questions to ask, drawn evenly from all videos.", least=1)] = None,
    max_tokens: Annotated[int, Help("Longest reply of a chat model.", RUNNING, least=1)] = 512,
    timeout: Annotated[float, Help("Seconds to wait for one reply.", RUNNING, least=0.1)] = 120.0,
    options: ChatOptions | None = None,
    judge: Annotated[Judges | None, JUDGE] = None,
    pictures: Annotated[int, common("pictures", "Questions the page keeps a picture of, wrong first.")] = PICTURES,
    seed: Annotated[int, common("seed", "Draws the questions of --limit.", RUNNING)] = 0,
    retry: Annotated[bool, common("retry", "Ask again what failed; nothing else.", "")] = False,
    progress: bool = True,
) -> FocusRun:  # fmt: skip
    """Ask a model FOCUS questions and store every answer; stopped runs are resumed by the same command.

    The questions are those of `data`, or of a requests and references pair. `model` is a name (`openai:MODEL@URL`,
    `hf:PATH`, `replay:FILE`, `prior[:TRAIN]`, `random[:SEED]`, `oracle`) or any `Answerer`. Frames come from the
    dataset or from video files in `media`: one on the track `frame`, else up to `frames`, with the time burnt in when
    `overlay_time` is set. `limit` is how many questions to ask, drawn by `seed` evenly from the videos. `data` may be
    several data sets, each with a `prefix` for its ids; of published rows the `split` `test` is asked where there is
    one (`all`: every split), and `ood` says which questions are out of distribution: data:NAME, procedure:TEXT or
    list:FILE. `max_tokens` and `timeout` hold for chat models, unless `options` has more to say. `retry` asks again
    what failed. The same call resumes a run that was stopped; nothing stored is asked again.

    The answers are scored at once, and the scores saved in `out`, when no answer needs a judge or `judge` names some
    (as in `score_focus`). A run with a question that has no answer is not scored, because it would count as wrong.

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> question = VqaQuestion("q1", "v1", 3, 3, "cholecystectomy", "Is a clip visible?", "1a", "binary", "Yes")
    >>> for name, rows in zip(("responses", "requests", "references"), as_sources([question], [])):
    ...     _ = (folder / f"{name}.json").write_text(json.dumps(rows))
    >>> files = {"requests": folder / "requests.json", "references": folder / "references.json"}
    >>> run_focus(None, "oracle", folder / "run", **files, progress=False)
    FocusRun of oracle: 1 answered
    """
    if isinstance(model, str) and model.startswith("hf:"):
        require_models("model hf:…")
    check_judges(judge)  # before hours of asking
    with phases(show=progress) as shown:
        shown.phase("reading questions")
        asked = _ask(
            data, model, Path(out), requests=requests, references=references, split=split, prefix=prefix, ood=ood,
            media=media, frames=frames, overlay=overlay_time, track=track, concurrency=concurrency, limit=limit,
            seed=seed, options=options or ChatOptions(max_tokens=max_tokens, timeout=timeout), retry=retry,
            progress=progress,
        )  # fmt: skip
    if asked.unasked or (asked.judged and not judge):
        asked.keep_pictures(pictures)
        return asked
    scores = score_focus(
        *asked.sources, judge=judge or None, cache=asked.folder, track=track, name=folder_name(asked.folder),
        pictured=was_shown(asked.media), progress=progress,
    )  # fmt: skip
    notes = [note for note in asked.notes if not note.startswith("warning: ")]  # the split, and what is ood
    notes += [f"a subset was asked: {asked.subset}"] if asked.subset else []
    scores = replace(
        scores, notes=(*scores.notes, *notes), pictures=asked.pictures(pictures, scores.results),
        asked_model=asked.model, answered_by=asked.answered_by,
    )  # fmt: skip
    scores.save(asked.folder)
    return replace(asked, scores=scores)


def _ask(
    data: DataSets | None, model: str | Answerer[VqaQuestion], folder: Path, *, requests: str | Path | None,
    references: str | Path | None, split: str | None, prefix: Sequence[str], ood: Sequence[str],
    media: str | Path | None, frames: int, overlay: bool, track: Track | None, concurrency: int, limit: int | None,
    seed: int, options: ChatOptions, retry: bool, progress: bool,
) -> FocusRun:  # fmt: skip
    """Ask what is not answered yet, and write responses beside requests and references."""
    if not 1 <= concurrency <= BLOCK:
        raise BadInput(f"concurrency: found {concurrency}, expected 1 to {BLOCK}")
    check_limit(limit)
    latency_limit(track, None)
    shown = FrameOptions(1 if track == "frame" else frames, overlay)
    question_set = open_questions(data, requests, references, track=track, split=split, prefix=prefix, ood=ood)
    questions, subset = question_set.drawn(limit, seed)
    answerer = (
        open_answerer(
            model,
            question_messages,
            lambda name: (open_questions(name, track=track) if name else question_set).learnable,
            options,
        )
        if isinstance(model, str)
        else model
    )
    films = Path(media) if media is not None else None
    eyes = open_media(question_set, questions, films, looks=answerer.uses_images)
    seen = eyes.identity if eyes else UNKNOWN_MEDIA if isinstance(answerer, RecordedAnswers) else NO_MEDIA
    config = {
        "media": seen, "limit": limit, "track": track,
        "frames": shown.frames if eyes else 0, "overlay": overlay and eyes is not None,
        "prompt": PROMPT_VERSION if answerer.cache_answers else 0, **({"subset": subset} if subset else {}),
    }  # fmt: skip
    manifest = Manifest("focus", config, _fingerprint(questions), answerer.identity)
    worker = QuestionWorker(
        answerer, {question.id: question for question in questions}, folder,
        read_frames=partial(encode_frames, eyes, options=shown) if eyes else None, concurrency=concurrency,
    )  # fmt: skip
    try:
        summary = run(
            question_units(questions), worker, folder=folder, manifest=manifest, retry=retry, progress=progress
        )
    finally:
        worker.close()
    answers = _answers(folder, questions)
    _write(folder, questions, answers)
    judged = any(
        question.format in load_answer_formats() and load_answer_formats()[question.format].judged
        for question in questions
    )
    name = public_name(model) if isinstance(model, str) else answerer.identity
    return FocusRun(
        folder=folder, model=name, media=seen, answers=answers, summary=summary, judged=judged, subset=subset,
        track=track,
        look=_Window(eyes, question_set, {question.id: question for question in questions}, shown),
        notes=(*question_set.notes, *_notes(answerer, eyes)),
    )  # fmt: skip


@dataclass(frozen=True)
class _Window:
    """The frames that a question is about, small and side by side, also where the model did not look at them."""

    eyes: Media[VqaQuestion] | None
    question_set: FocusSet
    questions: Mapping[str, VqaQuestion]
    shown: FrameOptions

    @cached_property
    def media(self) -> Media[VqaQuestion] | None:
        """What the model looked through, or the frames of the dataset."""
        return self.eyes or _frames_of(self.question_set, {question.video for question in self.questions.values()})

    def __call__(self, name: str) -> bytes | None:
        """Up to `_BESIDE` frames of a question's window in one picture; None where there are none."""
        if self.media is None or name not in self.questions:
            return None
        try:
            frames = encode_frames(self.media, self.questions[name], replace(self.shown, frames=_BESIDE))
        except DataError:
            return None  # the answer says what was wrong with the frame
        return film_strip([frame.jpeg for frame in frames])


def open_media(
    question_set: FocusSet, questions: Sequence[VqaQuestion], folder: Path | None, *, looks: bool
) -> Media[VqaQuestion] | None:
    """What a model looks through: video files of a folder, or the frames of the dataset; None where it does not."""
    videos = {question.video for question in questions}
    if folder is not None:
        films = VideoFiles(folder, videos)  # checked also for a model that does not look: it was named for a reason
        return films if looks else None
    return _frames_of(question_set, videos) if looks else None


def _frames_of(question_set: FocusSet, videos: set[str]) -> Media[VqaQuestion] | None:
    """The frames of the dataset that the questions are of, where it has any."""
    if question_set.dataset is None or question_set.dataset.format == "focus":
        return None
    return DatasetFrames(question_set.dataset, videos)


def _notes(answerer: Answerer[VqaQuestion], eyes: Media[VqaQuestion] | None) -> tuple[str, ...]:
    if eyes is not None or not answerer.cache_answers:
        return ()
    if answerer.uses_images:
        return ("warning: no media: the model was asked in text alone; a folder of videos can be given",)
    return ("warning: the model takes no pictures: it was asked in text alone",)


def _fingerprint(questions: tuple[VqaQuestion, ...]) -> str:
    return fingerprint([printable(json.dumps(asdict(question), sort_keys=True)) for question in questions], "questions")


def _answers(folder: Path, questions: tuple[VqaQuestion, ...]) -> pl.DataFrame:
    """The cases in the order of the questions, with all columns also where every case failed."""
    cases = AskedCase.load(folder).rename({"cluster": "video"})
    order = pl.DataFrame({"qID": [question.id for question in questions]})
    return order.join(cases, left_on="qID", right_on="id", how="left", maintain_order="left")


def _write(folder: Path, questions: tuple[VqaQuestion, ...], answers: pl.DataFrame) -> None:
    rows = answers.filter(pl.col("status") == "ok").select("qID", "content", "latency").iter_rows()
    answered = [Answer(qid, content, latency) for qid, content, latency in rows]
    for name, records in zip(("responses", "requests", "references"), as_sources(questions, answered), strict=True):
        # A lone surrogate becomes its escape, which inside a JSON text is what it was.
        data = f"{printable(json.dumps(records, indent=1, ensure_ascii=False))}\n".encode()
        path = folder / f"{name}.json"
        if not holds_bytes(path, data):
            (folder / SCORES).unlink(missing_ok=True)  # scores of other answers are not this run's
            write_atomically(path, data)
