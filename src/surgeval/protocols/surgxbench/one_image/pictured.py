"""A result that is a picture to look at, in a notebook too."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from surgeval.arrays import Image
from surgeval.figures import Figure, image_figure
from surgeval.pages import jpeg_bytes
from surgeval.results import Result

__all__ = ["Pictured"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Pictured(Result):
    """The picture, and whose it is."""

    picture: Image
    model: str
    visible: float  # share of the frame that the model saw
    unknown: tuple[str, ...] = ()  # words that were put to the model and that it does not know

    @property
    def figures(self) -> Mapping[str, Figure]:
        """`picture`."""
        return {"picture": image_figure(self.model, repr(self), self.picture)}

    def _repr_html_(self) -> str:
        data = base64.b64encode(jpeg_bytes(self.picture)).decode("ascii")
        return f'<img src="data:image/jpeg;base64,{data}" alt="{escape(repr(self))}">{self.to_frame()._repr_html_()}'
