"""The JavaScript that draws figures (Vega, Vega-Lite, Vega-Embed): a file beside the page, or inside the page.

vl-convert bundles it, which takes two seconds, so that is done once per installation: the bundle is kept in this
package's folder, or in the user's cache where that folder cannot be written to. Every page names the file in its own
folder, so that a folder can be moved or sent alone. `single_file` puts the bundle into the page instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from pathlib import Path

from surgeval.files import holds_bytes, make_folder, write_atomically
from surgeval.pages.safety import inline

_inside: ContextVar[bool] = ContextVar("single_file", default=False)


@contextmanager
def single_file(wanted: bool = True) -> Iterator[None]:
    """Pages written inside the `with` hold the drawing library themselves: one file to send.

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
    """Whether pages hold the drawing library themselves; pass it on to processes that write pages.

    >>> library_inside()
    False
    """
    return _inside.get()


@cache
def library_name() -> str:
    """The name of the file; another version is another file.

    >>> library_name()
    'vega-6.2.0.js'
    """
    import vl_convert

    return f"vega-{vl_convert.get_vega_version()}.js"


@cache
def library() -> str:
    """The source of the bundle, from the first folder that has it; made and kept if none has."""
    import vl_convert

    name = f"{version('vl-convert-python')}-{library_name()}"
    folders = (Path(__file__).parent / "bundle", _cache_folder())
    for folder in folders:
        try:
            return (folder / name).read_text(encoding="utf-8")
        except OSError:
            continue
    bundle = inline(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), "script")
    for folder in folders:
        try:
            make_folder(folder)
            write_atomically(folder / name, bundle.encode("utf-8"))
            break
        except OSError:  # without a folder to keep it in, each process makes its own
            continue
    return bundle


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surgeval"


def put_library(folder: Path) -> None:
    """Write the bundle into the folder unless it lies there already."""
    data = library().encode("utf-8")
    if not holds_bytes(folder / library_name(), data):
        make_folder(folder)
        write_atomically(folder / library_name(), data)
