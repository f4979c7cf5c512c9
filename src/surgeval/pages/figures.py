"""Figures as files beside the page, and as plots that link to those files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.figures import Figure, save_figure
from surgeval.files import failure_reason, make_folder, path_inside
from surgeval.pages.parts import Plot

__all__ = ["save_figures"]


def save_figures(
    figures: Mapping[str, Figure], out: str | Path, *, notes: Mapping[str, str] | None = None
) -> dict[str, Plot]:
    """Write each figure to `OUT/figures/NAME.svg` and `.png`; the plots by name.

    >>> import tempfile
    >>> from surgeval.figures import Bars, Series
    >>> bars = Bars("Instruments", ("grasper", "hook"), (Series("all", (3, 1)),), "instances")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_figures({"instruments": bars}, Path(folder))
    ...     sorted(path.name for path in (Path(folder) / "figures").iterdir())
    ['instruments.png', 'instruments.svg']
    """
    out = Path(out)
    folder = out / "figures"
    try:
        make_folder(path_inside(out, "figures"))
        for name, figure in figures.items():
            save_figure(figure, folder / name)
    except OSError as error:
        raise BadInput(f"{folder}: figures cannot be written: {failure_reason(error)}") from error
    return {
        name: Plot(figure, (notes or {}).get(name, ""), (f"figures/{name}.svg", f"figures/{name}.png"))
        for name, figure in figures.items()
    }
