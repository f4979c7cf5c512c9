"""What could be imported from a project's own folder: labels that lie beside the films, uploads, earlier exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surgeval.datasets import dataset_formats, fits, held_by
from surgeval.datasets.io import names
from surgeval.errors import BadInput
from surgeval.studio.exchange.format import StudioFormat
from surgeval.studio.media import EXPORTS, IMPORTS

__all__ = ["Offer", "look", "offered_imports", "offered_path"]

_MOST = 200  # places that are looked at for a list
_FILES = (".json", ".xml")


@dataclass(frozen=True)
class Offer:
    """A file or folder with labels, named from the project's folder, and the formats that it looks like."""

    path: str
    formats: tuple[str, ...]


def offered_imports(folder: str | Path) -> tuple[Offer, ...]:
    """What there is to import.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = Path(folder, "imports", "mine", "V1")
    ...     labels.mkdir(parents=True)
    ...     _ = (labels / "1.json").write_text('{"shapes": [], "imageWidth": 8, "imageHeight": 8}')
    ...     [(offer.path, offer.formats) for offer in offered_imports(Path(folder))]
    [('imports/mine', ('labelme',))]
    """
    folder = Path(folder)
    offers = (look(folder, path) for path in _places(folder)[:_MOST])
    return tuple(offer for offer in offers if offer.formats)


def look(folder: str | Path, path: str) -> Offer:
    """What one place of a project's folder holds; nothing where it holds no labels, or a project itself.

    >>> look(Path("nowhere"), "imports/mine")
    Offer(path='imports/mine', formats=())
    """
    folder = Path(folder)
    labelled = {name: format for name, format in dataset_formats().items()
                if held_by(format) == "labels" and not isinstance(format, StudioFormat)}  # fmt: skip
    return Offer(path, tuple(name for name, format in labelled.items() if fits(format, folder / path)))


def _places(folder: Path) -> list[str]:
    """Where labels may lie: uploads and exports first, as films may be many. Links are not followed."""
    own = [parent for parent in (folder / IMPORTS, folder / EXPORTS) if not parent.is_symlink()]
    # Readers look into folders below: the whole folder is offered as long as no copies of labels lie there.
    paths = [] if any(names(folder / name) for name in (IMPORTS, EXPORTS)) else ["."]
    for parent in (*own, folder):
        listed = [parent / name for name in names(parent) if parent != folder or name not in (IMPORTS, EXPORTS)]
        paths += [path.relative_to(folder).as_posix() for path in listed
                  if not path.is_symlink() and (path.is_dir() or path.suffix.lower() in _FILES)]  # fmt: skip
    return paths


def offered_path(folder: str | Path, path: str) -> Path:
    """The place of an offer; anything else in the folder or outside is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = Path(folder, "imports", "mine", "V1")
    ...     labels.mkdir(parents=True)
    ...     _ = (labels / "1.json").write_text('{"shapes": [], "imageWidth": 8, "imageHeight": 8}')
    ...     offered_path(folder, "imports/mine").relative_to(folder).as_posix()
    'imports/mine'
    >>> offered_path(Path("nowhere"), "../secrets")
    Traceback (most recent call last):
    surgeval.errors.BadInput: path: found '../secrets', expected one of the places that are offered
    """
    folder = Path(folder)
    if path not in _places(folder) or not look(folder, path).formats:
        raise BadInput(f"path: found {path[:80]!r}, expected one of the places that are offered")
    return folder / path
