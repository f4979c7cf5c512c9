"""Folders and file names: what every layout shares.

Flat layouts put a frame's video in its file name, `{video}_{frame}`, cut at the last underscore; behind a published
video at the first (`psiv2_123124_2`). No path that a file names may leave the dataset's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from surgeval.datasets.io.files import is_there
from surgeval.files import Level, Location, OnProblem
from surgeval.vocab import fold_names, folds

IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")  # suffixes of image files
SPLITS = ("train", "val", "valid", "validation", "test")
_ODD = re.compile(r"( \(\d+\)| - copy.*|~\d*)$", re.IGNORECASE)
_DIGITS = re.compile(r"(\d{1,12})\D*$")


def names(folder: str | Path) -> list[str]:
    """The names in a folder in natural order, without hidden ones; none where it cannot be listed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("frame 10.jpg", "frame 9.jpg", ".hidden"):
    ...         (Path(folder) / name).touch()
    ...     names(Path(folder))
    ['frame 9.jpg', 'frame 10.jpg']
    """
    return sorted(_visible(Path(folder)), key=natural)


def _visible(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".") and is_printable(entry.name)]
    except (OSError, ValueError):
        return []


def files_of(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of a folder with one of these suffixes, by name; none where there is no folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("frame 10.JPG", "frame 9.png", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     [path.name for path in files_of(Path(folder), IMAGES)]
    ['frame 9.png', 'frame 10.JPG']
    """
    # The few films beside a hundred thousand images are found before anything is sorted.
    wanted = [name for name in _visible(folder) if name.lower().endswith(suffixes)] if folder.is_dir() else []
    return [file for file in (folder / name for name in sorted(wanted, key=natural)) if is_there(file)]


def folders(folder: str | Path) -> list[Path]:
    """The folders in a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "VID01").mkdir()
    ...     (Path(folder) / "notes.txt").touch()
    ...     [path.name for path in folders(Path(folder))]
    ['VID01']
    """
    folder = Path(folder)
    return [folder / name for name in names(folder) if os.path.isdir(folder / name)]  # noqa: PTH112 (`Path.is_dir` may raise)


def is_printable(name: str) -> bool:
    """Whether a name is proper text (a file system may hold bytes that are not)."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `frame 9` comes before `frame 10`."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part), "") if part.isascii() and part.isdigit() and len(part) < 19 else (0, 0, part)
                 for part in parts)  # fmt: skip


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; names that no file system takes do not (`Path.is_file` raises for some)."""
    return os.path.isfile(path)  # noqa: PTH113


def is_odd(stem: str) -> bool:
    """Whether a file name looks like the copy that a desktop makes: `000542 (1)`."""
    return _ODD.search(stem) is not None


def unlike_copy(stem: str) -> str:
    """A stem that no reader takes for a copy.

    >>> unlike_copy("000542 (1)"), unlike_copy("000542")
    ('000542-(1)', '000542')
    """
    while match := _ODD.search(stem):
        stem = f"{stem[: match.start()]}-{stem[match.start() + 1 :]}"
    return stem


def number_of(name: str, ordinal: int) -> int:
    """A frame's number: the last digits of its name, else its position.

    >>> number_of("frame_000012", 3), number_of("first", 3)
    (12, 3)
    """
    match = _DIGITS.search(name)
    return int(match[1]) if match else ordinal


@cache
def _published() -> frozenset[str]:
    """The videos of the published splits."""
    splits = [split for name in fold_names() for split in folds(name).values()]
    return frozenset(video for split in splits for group in (split.train, split.val, split.test) for video in group)


def is_published(video: str) -> bool:
    """Whether a published split has a video of this name.

    >>> is_published("psiv2"), is_published("my video")
    (True, False)
    """
    return video in _published()


def video_and_frame(stem: str) -> tuple[str, str]:
    """Video and frame of a flat name; '' for a video that it does not name.

    Nothing in a name says where it is cut: both `VID_01_000012` and ProstaTD's `psiv2_123124_2` occur. The last
    underscore cuts, unless a video of a published split stands before the first.

    >>> video_and_frame("t80_VID03_000150"), video_and_frame("psiv2_123124_2"), video_and_frame("000150")
    (('t80_VID03', '000150'), ('psiv2', '123124_2'), ('', '000150'))
    """
    first, _, rest = stem.partition("_")
    if rest and is_published(first):
        return first, rest
    video, _, name = stem.rpartition("_")
    return (video, name) if video and name else ("", stem)


def find_image(folder: Path, stem: str) -> Path:
    """The image of a frame, whatever its suffix; `STEM.jpg` where there is none (reading it then says so)."""
    for suffix in IMAGES:
        for spelled in (suffix, suffix.upper()):
            path = folder / (stem + spelled)
            if is_there(path):
                return path
    return folder / (stem + IMAGES[0])


def inside(
    root: Path, base: Path, relative: str, place: Location, field_name: str, level: Level = "error"
) -> Path | None:
    """The path that a file names relative to `base`, or None (told) when it would leave `root`."""
    text = relative.replace("\\", "/")
    broken = "\0" in text or not is_printable(text) or not text
    target = Path(os.path.abspath(base / text)) if not broken else root  # noqa: PTH100 (`resolve` follows links)
    home = Path(os.path.abspath(root))  # noqa: PTH100
    if broken or Path(text).is_absolute() or re.match(r"[A-Za-z]:", text) or not target.is_relative_to(home):
        report = place.error if level == "error" else place.warn
        report("path-escape", f"found {relative[:120]!r}, expected a path inside {root}", field_name)
        return None
    return Path(os.path.normpath(base / text))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of label files, the folder of the images they belong to, and the split both stand for."""

    labels: Path
    images: Path
    split: str = ""


@dataclass(slots=True)
class Flat:
    """The frames of a flat layout by video: names only, about 250 bytes a frame."""

    folders: list[Folder]
    suffix: str
    skip: frozenset[str] = frozenset()
    fallback: str = "video"
    images: bool = field(init=False)
    odd: list[Path] = field(init=False, default_factory=list)
    videos: dict[str, list[tuple[str, int, bool]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.images = False
        for number, folder in enumerate(self.folders):
            labelled = set(self._stems(folder.labels, (self.suffix,)))
            pictured = set(self._stems(folder.images, IMAGES))
            self.images |= bool(pictured)
            for stem in sorted(labelled | pictured, key=natural):
                video, _ = self.parts(stem)
                self.videos.setdefault(video, []).append((stem, number, stem in labelled))
        for entries in self.videos.values():
            entries.sort(key=lambda entry: natural(self.parts(entry[0])[1]))
        self.videos = dict(sorted(self.videos.items(), key=lambda item: natural(item[0])))

    def _stems(self, folder: Path, suffixes: Iterable[str]) -> Iterator[str]:
        wanted = tuple(suffixes)
        for name in names(folder):
            stem, suffix = os.path.splitext(name)  # noqa: PTH122 (names, not paths)
            if suffix.lower() not in wanted or name in self.skip:
                continue
            if is_odd(stem):
                self.odd.append(folder / name)
            else:
                yield stem

    def parts(self, stem: str) -> tuple[str, str]:
        """Video and frame name."""
        video, name = video_and_frame(stem)
        return video or self.fallback, name

    def split(self, video: str) -> str:
        """The split of a video; several are joined by a comma."""
        return ",".join(sorted({self.folders[number].split for _, number, _ in self.videos[video]}))

    def tell(self, on_problem: OnProblem) -> None:
        """Oddities of the layout itself."""
        for path in self.odd:
            Location(str(path), on_problem).warn(
                "file-odd-name", "found the name of a copy, expected one file per frame"
            )
        for video in self.videos:
            split = self.split(video)
            if "," in split:
                place = Location(str(self.folders[0].labels), on_problem, f"video {video}")
                place.warn(
                    "split-leak", f"found frames in {split.replace(',', ' and ')}, expected each video in one split"
                )


def flat_folders(root: Path, labels: str, images: str, own: str) -> list[Folder]:
    """Where the label files (`own` suffix) of a flat layout are: the first of the known arrangements that has any.

    `ROOT/labels[/SPLIT]` with `ROOT/images[/SPLIT]`; `ROOT/SPLIT/labels` with `ROOT/SPLIT/images`; `ROOT[/SPLIT]` and
    `ROOT/images[/SPLIT]` with labels and images side by side.
    """
    pairs: list[list[Folder]] = [
        [Folder(root / labels, root / images),
         *(Folder(root / labels / part.name, root / images / part.name, part.name) for part in folders(root / labels))],
        [Folder(part / labels, part / images, part.name) for part in folders(root)],
        [Folder(root / images, root / images), *(Folder(part, part, part.name) for part in folders(root / images))],
        [Folder(root, root, root.name if root.name in SPLITS else ""),
         *(Folder(part, part, part.name) for part in folders(root) if part.name in SPLITS)],
    ]  # fmt: skip
    for group in pairs:
        used = [folder for folder in group if any(name.lower().endswith(own) for name in names(folder.labels))]
        if used:
            return used
    return []
