"""Figures as plots of a page, and as SVG and PNG files beside it, which a child process writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.figures import Figure
from surgeval.figures.save import request_line
from surgeval.files import make_folder, path_inside
from surgeval.pages.parts import Plot
from surgeval.processes import LimitedProcess

__all__ = ["figure_plots", "saved_plots"]


def figure_plots(figures: Mapping[str, Figure], *, notes: Mapping[str, str] | None = None) -> dict[str, Plot]:
    """The figures as plots by name; `write_page` saves each to `figures/NAME.svg` and `.png` beside the page.

    >>> from surgeval.figures import Series, bars
    >>> figure_plots({"tools": bars("Instruments", ["hook"], [Series("all", [3])], "instances")})["tools"].files
    ('figures/tools.svg', 'figures/tools.png')
    """
    return {
        name: Plot(figure, (notes or {}).get(name, ""), (f"figures/{name}.svg", f"figures/{name}.png"))
        for name, figure in figures.items()
    }


@contextmanager
def saved_plots(plots: Sequence[Plot], folder: Path) -> Iterator[None]:
    """Save the files of the plots while the block runs; at its end they are there."""
    files = {file: plot.figure for plot in plots for file in plot.files}
    if not files:
        yield
        return
    for parent in {Path(file).parent for file in files}:
        make_folder(path_inside(folder, *parent.parts))
    with _lock:
        child = _drawing_process()
        try:
            child.requests.write(request_line(files, folder.resolve()))
            child.requests.flush()
            yield
            reply = child.replies.readline()
        except BrokenPipeError:
            reply = b""
        except BaseException:
            child.close()  # its reply would be taken for the next page's
            raise
    if reply != b"\n":
        reason = reply.decode("utf-8", "replace").strip() or "the process that draws them ended"
        raise BadInput(f"{folder}: the figures cannot be saved: {reason}")


_lock = threading.Lock()
_processes: list[LimitedProcess] = []  # the last is the one in use


def _drawing_process() -> LimitedProcess:
    if not _processes or not _processes[-1].alive:
        _processes[:] = [LimitedProcess("surgeval.figures.save")]
    return _processes[-1]
