"""Source records from video: clips along phase labels, each with a few evenly spaced frames and their labels.

The phases come from a dataset, or from a table `video,start,end,phase` beside video files. Times are those of the
video; a record's `start` and `end` are the times of its first and last frame.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from surgeval.datasets import Dataset, Problem, keep_warnings, read_image, video_index
from surgeval.datasets.io import video_files
from surgeval.errors import BadInput, DataError
from surgeval.files import copy_atomically, path_inside, read_bounded, write_atomically
from surgeval.progress import advance
from surgeval.questions.source_records import Scene, SourceRecord, write_source_records
from surgeval.records import Frame, Gaze, ImageRef
from surgeval.results import counted
from surgeval.vocab import LabelSpace

__all__ = ["ClipOptions", "dataset_clips", "table_clips"]

_JPEG_QUALITY = 95
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{0,12})?", re.ASCII)
_SLACK = 0.5  # seconds around a clip whose gaze still belongs to it
_LARGEST_TABLE, _MOST_ROWS = 1 << 24, 100_000


@dataclass(frozen=True, slots=True)
class ClipOptions:
    """Options for cutting video: scenario, frames per clip, shortest and longest clip in seconds, procedure and site.

    A clip lasts from its first frame to its last. With `all_fixations` a record also holds the fixations between the
    labelled frames of its clip, where the dataset knows them; else only those that are active at a labelled frame.

    >>> ClipOptions("open_surgery", frames=4).longest
    30.0
    >>> ClipOptions("open_surgery", frames=0)
    Traceback (most recent call last):
    surgeval.errors.BadInput: frames is 0; it must be between 1 and 64
    """

    scenario: str
    frames: int = 6
    shortest: float = 2.0
    longest: float = 30.0
    procedure: str = ""
    site: str = ""
    all_fixations: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.frames <= 64:
            raise BadInput(f"frames is {self.frames}; it must be between 1 and 64")
        if not 0 <= self.shortest <= self.longest < math.inf:
            raise BadInput(
                f"clips from {self.shortest:g} to {self.longest:g} s: the shortest must not exceed the longest"
            )


@dataclass(frozen=True, slots=True)
class _Clip:
    video: str
    phase: str
    procedure: str
    site: str
    frames: Sequence[tuple[float, ImageRef]]
    scene: Scene
    gaze: tuple[Gaze, ...]


@dataclass
class _Omissions:
    """Counts of material that is in no record."""

    frames: int = 0  # without a phase, a time or a picture
    empty: int = 0  # rows of a table without a frame in the video
    short: int = 0
    known: dict[str, set[Gaze]] = field(default_factory=dict)  # fixations by video
    kept: dict[str, set[Gaze]] = field(default_factory=dict)
    in_clips: dict[str, set[Gaze]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def sentences(self, options: ClipOptions) -> list[str]:
        """One sentence per kind of material that was left out."""
        count = {name: sum(map(len, by_video.values())) for name, by_video in
                 (("known", self.known), ("kept", self.kept), ("in_clips", self.in_clips))}  # fmt: skip
        between, outside = count["in_clips"] - count["kept"], count["known"] - count["in_clips"]
        of, short = f"of {counted(count['known'], 'fixation')}", counted(self.short, "clip")
        sentences = [
            (self.frames, f"{counted(self.frames, 'frame')} without a phase, a time or a picture left out"),
            (self.empty, f"{counted(self.empty, 'clip')} without a frame in the film left out"),
            (self.short, f"{short} shorter than {options.shortest:g} s left out (option shortest)"),
            (between, f"{between} {of} lie between labelled frames and are left out (option all_fixations)"),
            (outside, f"{outside} {of} lie in no clip and are left out"),
        ]  # fmt: skip
        return [text for number, text in sentences if number] + [
            str(p) for p in self.problems if p.kind == "gaze-range"
        ]


def dataset_clips(
    dataset: Dataset,
    out: str | Path,
    options: ClipOptions,
    gaze: Mapping[str, Sequence[Gaze]] | None = None,
    *,
    announce: Callable[[str], None] | None = None,
) -> list[SourceRecord]:
    """Cut a dataset's videos along its phases; write `records.jsonl` and the frames to `out`.

    What is visible are the instruments of the frames shown, what is absent those of the label space that no frame of
    the clip holds. `gaze` (video → fixations) takes the place of the dataset's own. `announce` is called with a
    sentence for each kind of material that is in no record: frames, short clips, fixations.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nothing = MemoryDataset(LabelSpace("none", ("hook",)), [])
    ...     dataset_clips(nothing, Path(folder), ClipOptions("open_surgery"))
    []
    """
    out, left_out = Path(out), _Omissions()
    clips = (
        clip for video in dataset.videos()
        for clip in _cut_phases(dataset, video.name, video.procedure, options, (gaze or {}).get(video.name), left_out)
    )  # fmt: skip
    return _write(clips, out, options, left_out, announce)


def table_clips(
    table: str | Path,
    videos: str | Path,
    out: str | Path,
    options: ClipOptions,
    gaze: Mapping[str, Sequence[Gaze]] | None = None,
    *,
    announce: Callable[[str], None] | None = None,
) -> list[SourceRecord]:
    r"""Cut video files along a table with the columns video, start, end, phase (and procedure, site where they differ).

    `announce` is called with a sentence for each kind of material that is in no record.

    >>> import tempfile
    >>> from surgeval.detector.inference import write_film
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_film(f"{folder}/V1.mp4", ((k / 2, np.zeros((48, 64, 3), np.uint8)) for k in range(10)))
    ...     _ = Path(folder, "phases.csv").write_text("video,start,end,phase\nV1,0,4,suturing\n")
    ...     two = ClipOptions("open_surgery", frames=2)
    ...     records = table_clips(f"{folder}/phases.csv", folder, f"{folder}/out", two)
    >>> [(record.id, record.phase, len(record.media)) for record in records]
    [('V1-001', 'suturing', 2)]
    >>> table_clips(Path("no.csv"), Path("."), Path("out"), ClipOptions("open_surgery"))
    Traceback (most recent call last):
    surgeval.errors.DataError: no.csv: no such file
    """
    table, videos, out = Path(table), Path(videos), Path(out)
    rows = list(_rows(table))
    files = {file.stem: file for file in video_files(videos)}
    clips, left_out = [], _Omissions()
    for number, row in rows:
        if row["video"] not in files:
            raise DataError(videos, "no such file", record=f"video {row['video'][:60]}")
        start, end = (_seconds(row[key], table, number, key) for key in ("start", "end"))
        film = files[row["video"]]
        times = video_index(film).times
        for low, high in _pieces(start, end, options):
            inside = np.flatnonzero((times >= low) & (times < high))
            frames = [(float(times[k]), ImageRef(film, int(k))) for k in inside]
            left_out.known.setdefault(row["video"], set()).update((gaze or {}).get(row["video"], ()))
            looked, told = tuple((gaze or {}).get(row["video"], ())), (row.get("procedure", ""), row.get("site", ""))
            clips.append(_Clip(row["video"], row["phase"], *told, frames, Scene(), looked))
    return _write(clips, out, options, left_out, announce)


def _cut_phases(
    dataset: Dataset,
    video: str,
    procedure: str,
    options: ClipOptions,
    gaze: Sequence[Gaze] | None,
    left_out: _Omissions,
) -> Iterator[_Clip]:
    """The clips of one video: runs of one phase, cut where they are too long."""
    every = getattr(dataset, "fixations", None)
    own = every(video) if gaze is None and every is not None else ()
    known = left_out.known.setdefault(video, set(own if gaze is None else gaze))
    if options.all_fixations and own:
        gaze = own
    run: list[Frame] = []
    for frame in dataset.frames(video, keep_warnings(left_out.problems)):
        known.update(frame.gaze if gaze is None else ())
        if frame.time is None or frame.image is None or frame.phase is None:
            left_out.frames += 1
            continue
        if run and (frame.phase != run[0].phase or frame.time - (run[0].time or 0.0) >= options.longest):
            yield _read_clip(dataset.space, video, procedure, run, options, gaze)
            run = []
        run.append(frame)
    if run:
        yield _read_clip(dataset.space, video, procedure, run, options, gaze)


def _read_clip(
    space: LabelSpace, video: str, procedure: str, run: Sequence[Frame], options: ClipOptions,
    gaze: Sequence[Gaze] | None,
) -> _Clip:  # fmt: skip
    shown = [run[k] for k in _spread(len(run), options.frames)]
    instruments = {i.triplet.instrument for frame in shown for i in frame.instances}
    visible = {split_label(space.instruments[k]) for k in instruments if k >= 0}
    visible |= {
        re.sub(r" \d+$", "", split_label(name))
        for frame in shown
        for name, state in frame.objects.items()
        if state == "visible"
    }
    ever = {i.triplet.instrument for frame in run for i in frame.instances}
    absent = {split_label(name) for k, name in enumerate(space.instruments) if k not in ever} - visible
    actions = {
        f"{split_label(space.verbs[i.triplet.verb])} {split_label(space.targets[i.triplet.target])}"
        for frame in shown for i in frame.instances
        if i.triplet.verb >= 0 and i.triplet.target >= 0 and not space.verbs[i.triplet.verb].startswith("null")
    }  # fmt: skip
    looked = gaze if gaze is not None else dict.fromkeys(g for frame in run for g in frame.gaze)
    phase = split_label(space.phases[run[0].phase or 0])
    frames = [(frame.time or 0.0, frame.image) for frame in run if frame.image is not None]
    scene = Scene(tuple(sorted(visible)), tuple(sorted(absent)), tuple(sorted(actions)))
    return _Clip(video, phase, procedure, "", frames, scene, tuple(looked))


def _write(
    clips: Iterable[_Clip],
    out: Path,
    options: ClipOptions,
    left_out: _Omissions,
    announce: Callable[[str], None] | None,
) -> list[SourceRecord]:
    out.mkdir(parents=True, exist_ok=True)
    records: list[SourceRecord] = []
    counts: dict[str, int] = {}
    for clip in clips:
        if not clip.frames:
            left_out.empty += 1
            continue
        first, last = clip.frames[0][0], clip.frames[-1][0]
        if last - first < options.shortest:
            left_out.short += 1
            continue
        number = counts[clip.video] = counts.get(clip.video, 0) + 1
        shown = [clip.frames[k] for k in _spread(len(clip.frames), options.frames)]
        media = tuple(_store_frame(ref, out, clip.video, time) for time, ref in shown)
        gaze = _within(clip.gaze, first, last)
        left_out.kept.setdefault(clip.video, set()).update(gaze)
        left_out.in_clips.setdefault(clip.video, set()).update(_within(left_out.known[clip.video], first, last))
        records.append(
            SourceRecord(
                f"{clip.video}-{number:03d}", options.scenario, clip.video, media, clip.procedure or options.procedure,
                clip.phase, clip.site or options.site, first, last, gaze, scene=clip.scene,
            )
        )  # fmt: skip
        advance("clips")
    write_source_records(out / "records.jsonl", records)
    if announce is not None:
        for sentence in left_out.sentences(options):
            announce(sentence)
    return records


def _within(gaze: Iterable[Gaze], first: float, last: float) -> tuple[Gaze, ...]:
    """The fixations of a clip, including those just before and after it."""
    return tuple(g for g in gaze if g.t <= last + _SLACK and g.t + g.duration >= first - _SLACK)


def _store_frame(ref: ImageRef, out: Path, video: str, time: float) -> str:
    """Store a frame below `out/media` and return its name there."""
    suffix = ref.path.suffix.lower() if ref.frame is None else ".jpg"
    target = path_inside(out, "media", video, f"{round(time * 1000):09d}{suffix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if ref.frame is None:
        read_image(ref)  # raises for a damaged image now, before a model is asked
        copy_atomically(ref.path, target)
    else:
        coded = cv2.imencode(".jpg", read_image(ref)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])[1]
        write_atomically(target, coded.tobytes())
    return target.relative_to(out).as_posix()


def _spread(count: int, most: int) -> list[int]:
    return sorted({round(k) for k in np.linspace(0, count - 1, min(most, count))})


def _pieces(start: float, end: float, options: ClipOptions) -> list[tuple[float, float]]:
    """A phase cut into equal parts, none longer than allowed."""
    count = max(1, math.ceil((end - start) / options.longest)) if options.longest else 1
    step = (end - start) / count
    return [(start + k * step, start + (k + 1) * step) for k in range(count)]


def split_label(name: str) -> str:
    """A label as words.

    >>> split_label("CalotTriangleDissection"), split_label("specimen_bag"), split_label("SICS phase")
    ('calot triangle dissection', 'specimen bag', 'SICS phase')
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[_\-]+", " ", name))
    return " ".join(word if word.isupper() else word.lower() for word in apart.split())


def _rows(table: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = read_bounded(table, _LARGEST_TABLE).decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        missing = [key for key in ("video", "start", "end", "phase") if key not in (rows.fieldnames or ())]
        if missing:
            raise DataError(table, f"no column {missing[0]}; the columns video, start, end and phase are required")
        for number, row in enumerate(rows, start=2):
            if number > _MOST_ROWS:
                raise DataError(table, f"more than {_MOST_ROWS} rows")
            yield number, {str(key): str(value or "").strip() for key, value in row.items()}
    except UnicodeDecodeError:
        raise DataError(table, "not valid UTF-8") from None
    except csv.Error as error:
        raise DataError(table, f"not valid CSV: {error}") from None


def _seconds(text: str, table: Path, number: int, field: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    if not math.isfinite(value):
        raise DataError(table, f"{text[:60]!r} is not a number of seconds", record=f"line {number}", field=field)
    return value
