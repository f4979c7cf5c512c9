"""What `.plot()` gives is shown by a notebook as a picture, though pyplot was never imported."""

from __future__ import annotations

from IPython.core.formatters import DisplayFormatter

from surgeval.figures import Bars, Series


def test_a_notebook_shows_a_figure_as_a_picture() -> None:
    figure = Bars("Instruments", ("grasper", "h✂k 鉗"), (Series("all", (3, 1)),), "instances").to_matplotlib()
    shown, _ = DisplayFormatter().format(figure)
    assert shown["image/png"].startswith(b"\x89PNG")
