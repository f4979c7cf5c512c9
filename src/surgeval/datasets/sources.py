"""`name_sources`: which source (hospital, public dataset) each video comes from if the files do not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from surgeval.errors import BadInput, DataError
from surgeval.files import BrokenCsv, parse_csv, read_bounded, read_json_object
from surgeval.records import Video
from surgeval.vocab import source_of

__all__ = ["Sources", "name_sources"]

Sources: TypeAlias = str | Path | Mapping[str, str] | Sequence[str | Path]
_LIMIT = 10_000_000
_SUFFIXES = (".csv", ".json")
_FORM = "PATTERN=NAME, or a .csv file with the columns video and source, or a .json file of names by video"


def name_sources(videos: Iterable[Video], sources: Sources | None = None) -> tuple[Video, ...]:
    """The videos with their sources: those given by `sources`, else their own, else ProstaTD's by the video's name.

    `sources` maps names of videos, or patterns such as `esad*`, to sources. It is a mapping, a text `PATTERN=NAME` (or
    several, with commas), a file (CSV with the columns `video` and `source`, or a JSON object), or a list of such texts
    and files. A video's whole name goes before a pattern.

    >>> [video.source for video in name_sources([Video("esadv1"), Video("pwhv2"), Video("mine")])]
    ['ESAD', 'PWH', '']
    >>> [video.source for video in name_sources([Video("A1"), Video("A2"), Video("B1")], "A*=Bern,B*=Lyon,A2=Basel")]
    ['Bern', 'Basel', 'Lyon']
    >>> name_sources([Video("A1")], {"C*": "Bern"})
    Traceback (most recent call last):
    surgeval.errors.BadInput: sources: 'C*' matches no video. The dataset has A1.
    """
    rules, files = _read_rules(sources)
    known = tuple(videos)
    named = tuple(replace(video, source=_find_source(video, {**files, **rules})) for video in known)
    listed = f"The dataset has {', '.join(video.name for video in known[:5])}{', …' if len(known) > 5 else ''}."
    for pattern in rules:
        if not any(_matches(video.name, pattern) for video in known):
            raise BadInput(f"sources: {pattern!r:.80} matches no video. {listed}")
    if files and not any(_matches(video.name, pattern) for video in known for pattern in files):
        raise BadInput(f"sources: no video of the file is in the dataset. {listed}")
    return named


def _find_source(video: Video, rules: Mapping[str, str]) -> str:
    if video.name in rules:
        return rules[video.name]
    found = {rules[pattern]: pattern for pattern in rules if _matches(video.name, pattern)}
    if len(found) > 1:
        both = " and ".join(f"{pattern!r:.40} ({name:.40})" for name, pattern in list(found.items())[:2])
        raise BadInput(f"sources: video {video.name} matches {both}. Give it one source.")
    return next(iter(found), "") or video.source or source_of(video.name)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def _read_rules(sources: Sources | None) -> tuple[dict[str, str], dict[str, str]]:
    """Sources by pattern: those that were given, which must all match a video, and those of files."""
    given: dict[str, str] = {}
    files: dict[str, str] = {}
    if sources is None:
        return given, files
    if isinstance(sources, Mapping):
        _add(given, sources.items(), "sources")
        return given, files
    for entry in (sources,) if isinstance(sources, str | Path) else sources:
        if isinstance(entry, Path) or Path(entry).suffix.lower() in _SUFFIXES:
            _add(files, _read_file(Path(entry)), str(entry))
            continue
        for text in entry.split(","):
            pattern, equals, name = (part.strip() for part in text.partition("="))
            if not equals:
                raise BadInput(f"sources {text!r:.80}: expected {_FORM}")
            _add(given, [(pattern, name)], "sources")
    return given, files


def _add(rules: dict[str, str], entries: Iterable[tuple[object, object]], where: str) -> None:
    for pattern, name in entries:
        if not (isinstance(pattern, str) and isinstance(name, str) and pattern.strip() and name.strip()):
            given = "empty" if name in (None, "") else f"{name!r:.80}"
            raise BadInput(f"{where}: {pattern!r:.80}: the source is {given}. Give each video a name as its source.")
        if rules.setdefault(pattern, name.strip()) != name.strip():
            raise BadInput(
                f"{where}: {pattern!r:.80} has the sources {rules[pattern]:.40} and {name:.40}. Give it one."
            )


def _read_file(path: Path) -> list[tuple[object, object]]:
    if path.suffix.lower() == ".json":
        return list(read_json_object(path, limit=_LIMIT, distinct=True).items())
    try:
        table = parse_csv(read_bounded(path, _LIMIT))
    except BrokenCsv as error:
        raise DataError(path, f"found {error}, expected a CSV file with the columns video and source") from error
    missing = [name for name in ("video", "source") if name not in table.columns]
    if missing:
        raise DataError(path, f"found no column {missing[0]}, expected the columns video and source")
    return list(zip(table["video"].to_list(), table["source"].to_list(), strict=True))
