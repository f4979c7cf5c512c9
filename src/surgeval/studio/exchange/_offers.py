"""What could be imported from a project's own folder: labels that lie beside the films, uploads, earlier exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surgeval.datasets import dataset_formats
from surgeval.datasets.io import names
from surgeval.errors import BadInput
from surgeval.studio.exchange._export import EXPORTS

__all__ = ["IMPORTS", "Offer", "offered", "offered_path"]

IMPORTS = "imports"
_MOST = 200
_FILES = (".json", ".xml")
_NOT = ("studio", "video", "focus", "intent")  # a project itself, films, questions


@dataclass(frozen=True)
class Offer:
    """A file or folder with labels, named from the project's folder, and the formats that it looks like."""

    path: str
    formats: tuple[str, ...]


def offered(folder: Path) -> tuple[Offer, ...]:
    """What there is to import.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     made = Path(place, "imports", "mine", "V1")
    ...     made.mkdir(parents=True)
    ...     _ = (made / "1.json").write_text('{"shapes": [], "imageWidth": 8, "imageHeight": 8}')
    ...     [(one.path, one.formats) for one in offered(Path(place))]
    [('imports/mine', ('labelme',))]
    """
    own = (folder / IMPORTS, folder / EXPORTS)
    # Readers look into folders below: the whole folder is offered as long as no copies of labels lie there.
    places = [] if any(names(place) for place in own) else [folder]
    for place in (folder, *own):
        listed = [path for name in names(place) if (path := place / name) not in own and not path.is_symlink()]
        places += [path for path in listed if path.is_dir() or path.suffix.lower() in _FILES]
    every = {name: one for name, one in dataset_formats().items() if name not in _NOT}
    found = []
    for place in places[:_MOST]:
        formats = tuple(name for name, one in every.items() if one.detect(place))
        if formats:
            found.append(Offer("." if place == folder else place.relative_to(folder).as_posix(), formats))
    return tuple(found)


def offered_path(folder: Path, path: str) -> Path:
    """The place of an offer; anything else in the folder or outside is refused.

    >>> offered_path(Path("nowhere"), "../secrets")
    Traceback (most recent call last):
    surgeval.errors.BadInput: path: found '../secrets', expected one of the places that are offered
    """
    if path not in {one.path for one in offered(folder)}:
        raise BadInput(f"path: found {path[:80]!r}, expected one of the places that are offered")
    return folder / path
