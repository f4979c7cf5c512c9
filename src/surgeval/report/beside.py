"""Pages that lie beside runs and are of none: rankings, comparisons, pages about several runs or a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from surgeval.pages import page_title
from surgeval.protocols.registry import folder_kind_of, is_run

__all__ = ["pages_beside"]

_NAMES = ("report.html", "index.html")


def pages_beside(folder: Path, shown: Collection[Path] = ()) -> dict[str, Path]:
    """Title → page of ours in a folder and two further down, without those of runs and trainings and those in `shown`.

    Pages of one title are distinguished by their folders. No link is followed: one may lead elsewhere, or to itself.
    """
    known = {page.resolve() for page in shown}
    pages = [inner / name for inner in _folders(folder, depth=2) for name in _NAMES]
    titles = {
        page: title
        for page in pages
        if not page.is_symlink() and page.resolve() not in known and (title := page_title(page)) is not None
    }
    often = Counter(titles.values())
    return {
        title if often[title] == 1 else f"{title} ({page.relative_to(folder).as_posix()})": page
        for page, title in titles.items()
    }


def _folders(folder: Path, depth: int) -> list[Path]:
    """Folders that are nobody's, by name; what lies in a run or a training is told by its own page."""
    inner = [
        path
        for path in sorted(folder.iterdir())
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
    ]
    own = [path for path in inner if not is_run(path) and folder_kind_of(path) is None]
    return [found for path in own for found in (path, *(_folders(path, depth - 1) if depth > 1 else ()))]
