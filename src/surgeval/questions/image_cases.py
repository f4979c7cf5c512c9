"""Source records from images: regions of interest and the words of a dictation, aligned with the fixations.

One case per line: an image, its findings, regions of interest, and the files of its gaze and its dictation. A fixation
belongs to the smallest region that contains it. Readers look before they speak: while they name a finding, and just
before, they look at the region where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.datasets import image_size, raise_errors
from surgeval.datasets.gaze import SpokenWord, find_fixations, read_dictation, read_gaze
from surgeval.datasets.io import check_box, read_lines
from surgeval.errors import DataError
from surgeval.files import BrokenJson, Location, copy_atomically, format_value, parse_json, path_inside
from surgeval.progress import advance
from surgeval.questions.source_records import Scene, SourceRecord, stays_inside, write_source_records
from surgeval.records import Box, Gaze
from surgeval.results import counted

__all__ = ["ImageRegion", "dwell_by_region", "image_records", "regions_while_naming"]

LOOK_AHEAD = 1.5  # seconds before a word in which a look belongs to it
# Words of a finding that do not identify it. Two letters count where the finding writes them in capitals (PE, TB).
_EMPTY_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "but", "by", "for", "from", "has", "in", "is", "it", "its", "no", "nor", "not",
    "of", "on", "or", "per", "than", "that", "the", "there", "this", "to", "via", "was", "were", "with", "without",
})  # fmt: skip
_MOST_REGIONS = 200
_FACTS = ("diagnosis", "findings", "birads", "view")


@dataclass(frozen=True, slots=True)
class ImageRegion:
    """A named part of an image, in fractions of its width and height.

    >>> ImageRegion("left base", Box(0.5, 0.6, 0.4, 0.3)).holds(Gaze(0, 0.7, 0.7, 1))
    True
    """

    name: str
    box: Box
    finding: bool = False

    def holds(self, fixation: Gaze) -> bool:
        """Whether a fixation is in the region."""
        x1, y1, x2, y2 = self.box.corners
        return x1 <= fixation.x <= x2 and y1 <= fixation.y <= y2


def dwell_by_region(gaze: Sequence[Gaze], regions: Sequence[ImageRegion]) -> dict[str, float]:
    """Seconds of gaze per region, longest first; a fixation counts for the smallest region that contains it.

    >>> lung, base = ImageRegion("lung", Box(0, 0, 1, 1)), ImageRegion("base", Box(0, 0.8, 1, 0.2))
    >>> dwell_by_region([Gaze(0, 0.5, 0.9, 1.5), Gaze(2, 0.5, 0.5, 0.5)], [lung, base])
    {'base': 1.5, 'lung': 0.5}
    """
    seconds: dict[str, float] = {}
    for fixation in gaze:
        holding = [region for region in regions if region.holds(fixation)]
        if holding:
            name = min(holding, key=lambda region: region.box.area).name
            seconds[name] = seconds.get(name, 0.0) + fixation.duration
    return dict(sorted(seconds.items(), key=lambda entry: -entry[1]))


def regions_while_naming(
    finding: str, words: Sequence[SpokenWord], gaze: Sequence[Gaze], regions: Sequence[ImageRegion]
) -> dict[str, dict[str, float]]:
    """For each dictated word of a finding: seconds of gaze per region during the word and just before it.

    If a word is repeated soon, each moment counts once. Words such as `of` and `the` are ignored.

    >>> base = ImageRegion("base", Box(0, 0.8, 1, 0.2))
    >>> words = [SpokenWord("small", 1.0, 1.2), SpokenWord("effusion", 2.0, 2.6)]
    >>> regions_while_naming("pleural effusion", words, [Gaze(1.0, 0.5, 0.9, 1.0)], [base])
    {'effusion': {'base': 1.0}}
    """
    named = _finding_words(finding)
    spans: dict[str, list[tuple[float, float]]] = {}
    for word in words:
        key = _strip_punctuation(word.word).casefold()
        if key in named:
            spans.setdefault(key, []).append((word.start - LOOK_AHEAD, word.end))
    seconds_of = {}
    for key, times in spans.items():
        clipped = [_overlap(fixation, *span) for span in _merge_spans(times) for fixation in gaze]
        seconds_of[key] = dwell_by_region([fixation for fixation in clipped if fixation is not None], regions)
    return {key: seconds for key, seconds in seconds_of.items() if seconds}


def _strip_punctuation(word: str) -> str:
    return word.strip(".,;:()")


def _finding_words(finding: str) -> set[str]:
    """The words that name a finding: three letters or more, or an abbreviation of two."""
    words = [_strip_punctuation(word) for word in finding.split()]
    naming = {word.casefold() for word in words if len(word) > 2 or (len(word) == 2 and word.isupper())}
    return naming - _EMPTY_WORDS


def _merge_spans(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge spans of time that overlap.

    >>> _merge_spans([(2.0, 3.0), (0.0, 1.0), (2.5, 4.0)])
    [(0.0, 1.0), (2.0, 4.0)]
    """
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _overlap(fixation: Gaze, start: float, end: float) -> Gaze | None:
    low, high = max(fixation.t, start), min(fixation.t + fixation.duration, end)
    return Gaze(low, fixation.x, fixation.y, high - low) if high > low else None


def image_records(
    cases: str | Path, out: str | Path, *, announce: Callable[[str], None] | None = None
) -> list[SourceRecord]:
    """Read the cases of a JSON-lines file, align them, and write `records.jsonl` and the images to `out`.

    `announce` is called with a sentence for each gaze file that has fixations outside the image; these are left out.

    >>> import json, tempfile
    >>> from PIL import Image
    >>> case = {"id": "x1", "scenario": "chest_xray", "image": "x1.png", "diagnosis": "effusion"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (64, 48)).save(f"{folder}/x1.png")
    ...     _ = Path(folder, "cases.jsonl").write_text(json.dumps(case))
    ...     [(record.id, record.media) for record in image_records(f"{folder}/cases.jsonl", f"{folder}/out")]
    [('x1', ('media/x1/x1.png',))]
    >>> image_records(Path("no/cases.jsonl"), Path("out"))
    Traceback (most recent call last):
    surgeval.errors.DataError: no/cases.jsonl: found no such file, expected a file
    """
    cases, out = Path(cases), Path(out)
    outside: Counter[Path] = Counter()  # fixations by gaze file
    records = [_record(value, place, cases.parent, out, outside) for value, place in _cases(cases)]
    out.mkdir(parents=True, exist_ok=True)
    write_source_records(out / "records.jsonl", records)
    if announce is not None:
        for path, count in outside.items():
            announce(off_frame_sentence(path, count))
    return records


def off_frame_sentence(path: str | Path, count: int) -> str:
    """The note about a gaze file with fixations outside the frame.

    >>> off_frame_sentence(Path("gaze.csv"), 1)
    'gaze.csv: 1 fixation outside the frame is left out'
    """
    return f"{path}: {counted(count, 'fixation')} outside the frame {'is' if count == 1 else 'are'} left out"


def _cases(path: Path) -> Iterator[tuple[dict[str, Any], Location]]:
    place = Location(str(path), raise_errors)
    for number, line in read_lines(path, raise_errors):
        here = place.at(f"line {number}")
        try:
            value = here.mapping(parse_json(line, finite=True))
        except BrokenJson as error:
            raise DataError(path, f"not valid JSON: {error}", record=f"line {number}") from None
        if value is not None:
            yield value, here


def _record(case: Mapping[str, Any], place: Location, folder: Path, out: Path, outside: Counter[Path]) -> SourceRecord:
    name, scenario = (_text(case, key, place) for key in ("id", "scenario"))
    image = _inside(folder, _text(case, "image", place), place)
    size = image_size(image)
    if size is None:
        raise DataError(image, "not a readable image")
    regions = _regions(case.get("regions"), size, place)
    gaze = _fixations(case, image.stem, size, place, folder, outside)
    facts = {key: _word(case, key, place) for key in _FACTS if case.get(key) is not None}
    dwell = dwell_by_region(gaze, regions)
    if dwell:
        facts["dwell"] = "; ".join(f"{region} {seconds:.1f} s" for region, seconds in dwell.items())
    located = [region.name for region in regions if region.finding]
    if case.get("dictation") is not None:
        words = read_dictation(_inside(folder, _text(case, "dictation", place), place))
        named = f"{facts.get('diagnosis', '')} {facts.get('findings', '')}"
        by_word = regions_while_naming(named, words, gaze, regions)
        located += [next(iter(seconds)) for seconds in by_word.values()]
        facts["dictation"] = "; ".join(f"{word}: {', '.join(seconds)}" for word, seconds in by_word.items())
    target = path_inside(out, "media", name, image.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    copy_atomically(image, target)
    advance("images")
    scene = Scene(locations=tuple(dict.fromkeys(located)), facts={key: text for key, text in facts.items() if text})
    cluster = _word(case, "patient", place) if case.get("patient") is not None else name
    media = (target.relative_to(out).as_posix(),)
    return SourceRecord(name, scenario, cluster, media, gaze=gaze, scene=scene)


def _fixations(
    case: Mapping[str, Any],
    recording: str,
    size: tuple[int, int],
    place: Location,
    folder: Path,
    outside: Counter[Path],
) -> tuple[Gaze, ...]:
    """The fixations of a case: the track of its image in its gaze file, or the only track there."""
    if case.get("gaze") is None:
        return ()
    path = _inside(folder, _text(case, "gaze", place), place)
    mapping = _inside(folder, _text(case, "mapping", place), place) if case.get("mapping") is not None else None
    tracks = read_gaze(path, mapping=mapping, size=size, known=[recording])
    track = tracks.get(recording) or (next(iter(tracks.values())) if len(tracks) == 1 else None)
    if track is None:
        raise DataError(path, f"{len(tracks)} recordings, none called {recording[:60]}")
    fixations = find_fixations(track)
    if fixations.off_frame:
        outside[path] += fixations.off_frame
    return fixations.on_frame()


def _regions(value: Any, size: tuple[int, int], place: Location) -> tuple[ImageRegion, ...]:
    rows = place.items(value, "regions") if value is not None else []
    if rows is None or len(rows) > _MOST_REGIONS:
        raise DataError(place.file, f"more than {_MOST_REGIONS} regions", record=place.record, field="regions")
    regions = []
    for row in rows:
        entry = row if isinstance(row, dict) else {}
        name, box = (
            place.text(entry.get("name"), "regions name"),
            check_box(place, entry.get("box"), *size, "regions box"),
        )
        if name is None or box is None:
            raise DataError(
                place.file, f"expected name and box, got {format_value(row)}", record=place.record, field="regions"
            )
        part = Box(box.x / size[0], box.y / size[1], box.w / size[0], box.h / size[1])
        regions.append(ImageRegion(" ".join(name.split()), part, entry.get("finding") is True))
    return tuple(regions)


def _text(case: Mapping[str, Any], key: str, place: Location) -> str:
    text = place.text(case.get(key), key)
    if text is None or len(text) > 1_000:
        raise DataError(place.file, "longer than 1000 characters", record=place.record, field=key)
    return text


def _word(case: Mapping[str, Any], key: str, place: Location) -> str:
    """A text, or a number as text (a BI-RADS category)."""
    value = case.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    return _text(case, key, place)


def _inside(folder: Path, name: str, place: Location) -> Path:
    if not stays_inside(folder, name):
        raise DataError(place.file, f"the path {name[:60]!r} leads out of the folder", record=place.record)
    return folder / name
