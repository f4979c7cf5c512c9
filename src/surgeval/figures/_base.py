"""What every figure offers, and how one refuses what it cannot draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


class Figure(Protocol):
    """A figure: what it is called, what it shows in words, and its two drawings."""

    @property
    def title(self) -> str:
        """The heading."""
        ...

    @property
    def alt(self) -> str:
        """What the picture shows, for readers who do not see it."""
        ...

    def to_plotly(self) -> dict[str, Any]:
        """`{"data": […], "layout": {…}}` of plain values; colours of text and grid are left to the page."""
        ...

    def to_matplotlib(self) -> MatplotlibFigure:
        """The same for print, on white."""
        ...


def require(condition: bool, message: str) -> None:
    """Refuse a figure that cannot be drawn; `message` is the sentence."""
    if not condition:
        raise BadInput(message)
