"""A result that is a picture to look at, in a notebook too."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from surgeval.arrays import Image
from surgeval.errors import BadInput
from surgeval.pages import jpeg_bytes
from surgeval.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

__all__ = ["Pictured"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Pictured(Result):
    """The picture, and whose it is."""

    picture: Image
    model: str
    visible: float  # share of the frame that the model saw
    unknown: tuple[str, ...] = ()  # words that were put to the model and that it does not know

    def plot(self, name: str | None = None) -> MatplotlibFigure:
        """The picture as a figure."""
        from matplotlib.figure import Figure

        if name not in (None, "picture"):
            raise BadInput(f"figure {name!r}: expected one of picture")
        height, width = self.picture.shape[:2]
        figure = Figure(figsize=(width / 100, height / 100), dpi=100)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.imshow(self.picture)
        axes.set_axis_off()
        return figure

    def _repr_html_(self) -> str:
        data = base64.b64encode(jpeg_bytes(self.picture)).decode("ascii")
        return f'<img src="data:image/jpeg;base64,{data}" alt="{escape(repr(self))}">{self.to_frame()._repr_html_()}'
