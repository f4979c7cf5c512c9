"""plotly.js, which draws the figures: a file beside the page, or inside the page.

Beside is the rule. Every page names the file in its own folder, so a folder can be moved or sent alone and its page has
the same bytes wherever it is written; pages in neighbouring folders share the five megabytes as one file with several
names (a hard link), where the disk can do that. `single_file` puts the library into the page instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from surgeval.errors import BadInput
from surgeval.files import holds_bytes, make_folder, write_atomically
from surgeval.pages.safety import inline

_MOST_NEIGHBOURS = 1000  # folders that are looked into for a copy
_inside: ContextVar[bool] = ContextVar("single_file", default=False)


@contextmanager
def single_file(wanted: bool = True) -> Iterator[None]:
    """Pages written inside the `with` hold plotly.js themselves: one file to send.

    >>> with single_file():
    ...     library_inside()
    True
    """
    token = _inside.set(wanted)
    try:
        yield
    finally:
        _inside.reset(token)


def library_inside() -> bool:
    """Whether pages are to hold plotly.js themselves: what a process that writes some has to be told.

    >>> library_inside()
    False
    """
    return _inside.get()


@cache
def library() -> str:
    """The source of plotly.js."""
    from plotly.offline import get_plotlyjs

    return inline(get_plotlyjs(), "script")


@cache
def library_name() -> str:
    """The name of the file; another version is another file."""
    from plotly.offline import get_plotlyjs_version

    return f"plotly-{get_plotlyjs_version()}.min.js"


def put_library(folder: Path) -> None:
    """See that plotly.js lies in the folder, letter for letter: kept, linked to a neighbour's copy, or written."""
    data = library().encode("utf-8")
    target = folder / library_name()
    if holds_bytes(target, data):
        return
    make_folder(folder)
    for copy in _neighbours(folder):
        if holds_bytes(copy, data) and _stays(copy, folder) and _link(copy, target):
            return
    if target.is_dir():
        raise BadInput(f"{target}: found a folder, expected the file {target.name} or nothing")
    write_atomically(target, data)


def _neighbours(folder: Path) -> Iterator[Path]:
    """Where a command that writes several pages, or wrote one before, has put the file: up to two folders above."""
    for above in folder.resolve().parents[:2]:
        try:
            with os.scandir(above) as entries:
                names = sorted(entry.name for entry in islice(entries, _MOST_NEIGHBOURS) if entry.is_dir())
        except OSError:  # a folder above that may not be listed has no copy for us
            names = []
        yield above / library_name()
        yield from (above / name / library_name() for name in names)


def _stays(copy: Path, folder: Path) -> bool:
    """Whether nobody else can change the copy once it is linked."""
    return _owner(copy) == _owner(folder) and not copy.stat().st_mode & 0o022


def _owner(path: Path) -> int:
    """Whose it is: a file of somebody else's could change later."""
    return path.stat().st_uid


def _link(copy: Path, target: Path) -> bool:
    """Another name for the copy, whole or absent; False where the disk has no hard links."""
    try:
        with TemporaryDirectory(dir=target.parent, prefix=".plotly-") as near:
            name = Path(near) / target.name
            name.hardlink_to(copy)
            name.replace(target)
    except OSError:
        return False
    return True
