"""The films and image folders that a project is about: found in its folder, registered once, quickly opened again.

A folder with images is a video, and so is a film; the folders `guidelines`, `imports` and `exports` are neither. Frames
keep the numbers under which they were first registered; files that come later are added at the end, and a file that is
gone leaves its frame without a picture.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from surgeval.datasets import image_size, open_images, open_video, video_index
from surgeval.datasets.io import folders, video_files
from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.records import ImageRef
from surgeval.studio.store import STORE_FILE, Database, Request, apply, reading

__all__ = ["EXPORTS", "GUIDELINES", "IMPORTS", "Film", "check_inside", "find_films", "media_folder", "register"]

GUIDELINES = "guidelines"  # the folder of a project that holds the pictures of its schema
IMPORTS = "imports"  # that of uploads
EXPORTS = "exports"  # that of what was written for other tools

_PLAIN = re.compile(r"[A-Za-z0-9_.@-]{1,80}")
_NO_VIDEOS = (GUIDELINES, IMPORTS, EXPORTS)
_AT_ONCE = 50_000  # frames in one operation
_AUTHOR = "studio"
_BESIDE_LABELS = "img_dir"  # as CholecInstanceSeg and labelme's users call it
_MOST_PIXELS = 1 << 24  # of a film: twice 4K
_GONE = Path("gone")  # read as a file that is not there, which is what it is


@dataclass(frozen=True)
class Film:
    """A video of the project: its frames by name, in order, with their times where a film knows them."""

    name: str
    frames: tuple[tuple[str, ImageRef], ...]
    times: tuple[float, ...] | None = None
    fps: float | None = None

    @property
    def id(self) -> str:
        """The name where it is plain, else a short hash: ids travel in addresses and messages."""
        if _PLAIN.fullmatch(self.name):
            return self.name
        return "v-" + hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def size(self) -> tuple[int, int]:
        """Width and height, from its first frame that can be read."""
        for _, ref in self.frames:
            if ref.frame is not None:
                index = video_index(ref.path)
                return index.width, index.height
            size = image_size(ref.path)
            if size is not None:
                return size
        raise BadInput(f"video {self.name}: found no frame that can be read, expected an image or a film")


def media_folder(folder: str | Path) -> Path:
    """The folder itself, or the only one in it that holds films or images: `frames` of a phantom.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "frames" / "A1").mkdir(parents=True)
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/frames/A1/1.png")
    ...     [media_folder(Path(folder) / part).name for part in (".", "frames")]
    ['frames', 'frames']
    """
    folder = Path(folder)
    if not folder.is_dir() or (folder / STORE_FILE).exists() or _holds_media(folder):
        return folder
    inner = [one for one in _video_folders(folder) if _holds_media(one)]
    return inner[0] if len(inner) == 1 else folder


def find_films(
    folder: str | Path, *, none: bool = False, skip: Callable[[str], None] | None = None
) -> tuple[Film, ...]:
    """What there is to label in a folder: its films, its images, and those of the folders below it.

    `none` admits a folder without any: it may hold only questions to review. A film that cannot be read raises its
    error; with `skip`, that is called with the message instead, and the other films are found.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "A1").mkdir()
    ...     for name in ("10.png", "9.png"):
    ...         Image.new("RGB", (64, 48)).save(f"{folder}/A1/{name}")
    ...     [(film.name, [name for name, _ in film.frames], film.size()) for film in find_films(Path(folder))]
    [('A1', ['9', '10'], (64, 48))]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: found no folder, expected one with films or images")
    left_out: list[SurgevalError] = []
    films = [*_films(folder, left_out if skip is not None else None), *_images(folder)]
    if left_out and not films:
        raise left_out[0]
    if skip is not None:
        for error in left_out:
            skip(str(error))
    if not films and not none:
        raise BadInput(f"{folder}: found neither film nor image, expected some in it or in the folders below it")
    names = [film.name for film in films]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{folder}: found two videos named {name!r}, expected distinct names")
    return tuple(films)


def check_inside(folder: str | Path, path: str | Path) -> None:
    """Refuse a file that is not in the folder but only linked from it: who sends a folder must not choose what else
    of this machine is shown.

    >>> check_inside(Path("/srv/op"), Path("/srv/op/V1/1.png"))
    >>> check_inside(Path("/srv/op"), Path("/srv/op/../secret.png"))
    Traceback (most recent call last):
    surgeval.errors.DataError: /srv/op/../secret.png: found a link that leads out of the folder, expected a file in it:
        open the folder that it leads to
    """
    folder, path = Path(folder), Path(path)
    real = path.resolve()
    if path != _GONE and not real.is_relative_to(folder.resolve()):
        expected = "a file in it: open the folder that it leads to"
        raise DataError(path, f"found a link that leads out of the folder, expected {expected}")


def _films(folder: Path, left_out: list[SurgevalError] | None) -> Iterator[Film]:
    for path in _film_files(folder):
        try:
            film = _film(folder, path)
        except SurgevalError as error:
            if left_out is None:
                raise
            left_out.append(error)
        else:
            yield film


def _film(folder: Path, path: Path) -> Film:
    check_inside(folder, path)
    index = video_index(path)
    if index.width * index.height > _MOST_PIXELS:
        found = f"{index.width} × {index.height} pixels"
        raise DataError(path, f"found {found}, expected at most {_MOST_PIXELS} in a film")
    names = [frame.name for frame in open_video(path).frames(path.stem)]
    frames = tuple((name, ImageRef(path, number)) for number, name in enumerate(names))
    return Film(path.stem, frames, tuple(index.times.tolist()), index.fps)


def _film_files(folder: Path) -> list[Path]:
    return [path for parent in (folder, *_video_folders(folder)) for path in video_files(parent)]


def _holds_media(folder: Path) -> bool:
    return bool(_film_files(folder) or _image_files(folder))


def _images(folder: Path) -> Iterator[Film]:
    for name, files in _image_files(folder).items():
        taken: dict[str, ImageRef] = {}
        for file in files:
            taken[file.name if file.stem in taken else file.stem] = ImageRef(file)
        yield Film(name, tuple(taken.items()))


def _image_files(folder: Path) -> dict[str, tuple[Path, ...]]:
    """The images of every video; beside a folder of labels they lie in one called img_dir, inside the video's own."""
    videos: dict[str, tuple[Path, ...]] = {}
    for base in (folder, *(inner for inner in _video_folders(folder) if (inner / _BESIDE_LABELS).is_dir())):
        try:
            groups = open_images(base).files()
        except BadInput:
            continue  # no images: there may be films
        for name, files in groups.items():
            own = base == folder and files[0].parent.name in _NO_VIDEOS and files[0].parent.parent == folder
            if not own and (base == folder or name == _BESIDE_LABELS):
                videos[base.absolute().name if name == _BESIDE_LABELS else name] = files
    return videos


def _video_folders(folder: Path) -> list[Path]:
    """The folders below that may be or hold videos."""
    return [inner for inner in folders(folder) if inner.name not in _NO_VIDEOS]


def register(
    database: Database, films: tuple[Film, ...], fps: float | None = None, *, skip: Callable[[str], None] | None = None
) -> dict[str, tuple[ImageRef, ...]]:
    """Make the films known to a project; the pictures of every video by frame number, as far as they are there.

    `fps` is the rate of folders of images that are new; without one their frames are taken to be a second apart. A new
    folder of which no image can be read is an error; with `skip`, that is called with the message instead.
    """
    with database.reading() as connection:
        known = {video.id: video.frames for video in reading.videos(connection)}
    sizes: dict[str, tuple[int, int]] = {}
    for film in films:
        if film.id in known:
            continue
        try:
            sizes[film.id] = film.size()
        except BadInput as error:
            if skip is None or len(films) == 1:
                raise
            skip(str(error))
    for film in films:
        if film.id in sizes:
            size = dict(zip(("width", "height"), sizes[film.id], strict=True))
            _do(database, f"video.{film.id}", "video.add",
                {"id": film.id, "name": film.name, "fps": film.fps or fps, **size})  # fmt: skip
    readable = [film for film in films if film.id in known or film.id in sizes]
    return {film.id: _frames(database, film, known.get(film.id, 0)) for film in readable}


def _frames(database: Database, film: Film, count: int) -> tuple[ImageRef, ...]:
    with database.reading() as connection:
        stored = reading.frame_names(connection, film.id) if count else []
    present = dict(film.frames)
    time_of = dict(zip(present, film.times, strict=True)) if film.times is not None else {}
    have = set(stored)
    new = [name for name in present if name not in have]
    for start in range(0, len(new), _AT_ONCE):
        part = new[start : start + _AT_ONCE]
        first = len(stored) + start
        times = [time_of.get(name) for name in part] if time_of else None
        _do(database, f"frames.{film.id}.{first}", "frames.add",
            {"video": film.id, "first": first, "names": part, "times": times})  # fmt: skip
    return tuple(present.get(name, ImageRef(_GONE)) for name in (*stored, *new))


def _do(database: Database, id: str, kind: str, payload: dict[str, object]) -> None:
    name = id if len(id) <= 80 else hashlib.sha256(id.encode()).hexdigest()
    apply(database, Request(name, _AUTHOR, kind, payload))
