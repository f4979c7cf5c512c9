"""One self-contained HTML page: opens from a disk, needs no network, runs nothing but its own two scripts.

plotly.js is embedded once, and only where a figure needs it. The same sections give the same bytes.
"""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

import jinja2
import numpy as np
import numpy.typing as npt
import polars as pl
from markupsafe import Markup

from surgeval._version import __version__
from surgeval.errors import BadInput
from surgeval.files import make_folder, write_atomically
from surgeval.pages._evidence_data import evidence_data
from surgeval.pages._parts import Picture, Section, Table
from surgeval.pages._safety import inline, policy, script_data

_MOST_ROWS = 1000  # of a table on the page; the CSV has them all
_JPEG_QUALITY = 85
# plotly.js carries the style sheet of its maps and adds it unless an element of this id exists; the page has no maps
# and its policy would refuse the sheet, so the page holds an empty element of that id.
_STYLE_ID = re.compile(r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)')


class Head(TypedDict, total=False):
    """What stands at the top: `kind` above the title, `lead` below it, `details` (versions …) in small print."""

    kind: str
    lead: str
    details: Mapping[str, str] | None


def write_page(path: Path, title: str, sections: Sequence[Section], **head: Unpack[Head]) -> Path:
    """Write the page and return its path; a reader never meets half a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_page(Path(folder) / "report.html", "A <model>", [Section("Result", "All is well.")])
    ...     "A &lt;model&gt;" in page.read_text()
    True
    """
    html = render_page(title, sections, **head)
    # A file name that is not UTF-8 reaches us with lone surrogates; the page shows a replacement sign.
    data = html.encode("utf-8", "replace")
    try:
        make_folder(path.parent)
        write_atomically(path, data)
    except OSError as error:
        raise BadInput(f"{path}: the page cannot be written: {error.strerror or error}") from error
    return path


def render_page(title: str, sections: Sequence[Section], **head: Unpack[Head]) -> str:
    """The page as text.

    >>> html = render_page("Two models", [Section("Result", "Neither is better.")])
    >>> html.startswith("<!"), "Neither is better." in html
    (True, True)
    """
    drawn = any(section.figures for section in sections)
    style, script = inline(_source("page.css"), "style"), inline(_source("page.js"), "script")
    evidence = {number: evidence_data(section.evidence) for number, section in enumerate(sections) if section.evidence}
    if len(evidence) > 1:
        raise BadInput("page: found evidence in two sections, expected it in one: links to a case name no section")
    if evidence:
        style += inline(_source("evidence.css"), "style")
    browser = inline(_source("evidence.js"), "script") if evidence else ""
    plotly = _plotly() if drawn else ""
    figures = [[script_data(plot.figure.to_plotly()) for plot in section.plots] for section in sections]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            kind=head.get("kind", "report"),
            lead=head.get("lead", ""),
            details=head.get("details") or {},
            sections=sections,
            figures=[[Markup(data) for data in row] for row in figures],  # noqa: S704 - escaped by script_data
            tables=[[_cells(table) for table in section.tables] for section in sections],
            images=[[_data_uri(picture) for picture in section.images] for section in sections],
            cards=[[_data_uri(card.picture) for card in section.cards] for section in sections],
            policy=policy([script, *filter(None, (plotly, browser))], [style]),
            evidence=evidence,
            browser=Markup(browser),  # noqa: S704 - ours
            style=Markup(style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            plotly=Markup(plotly),  # noqa: S704 - the library's
            unwanted=_STYLE_ID.findall(plotly),
            version=__version__,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surgeval.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["href"] = quote
    return environment


@cache
def _source(name: str) -> str:
    return (files("surgeval.pages") / "templates" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return inline(get_plotlyjs(), "script")


def _cells(table: Table) -> dict[str, Any]:
    """Column heads and rows as text, with what numbers sort by."""
    frame = table.frame.head(_MOST_ROWS)
    floats = [value for column in frame.get_columns() if column.dtype.is_float() for value in column.to_list()]
    places = max((_decimals(value) for value in floats if value is not None and math.isfinite(value)), default=0)
    columns = [_column(column, places) for column in frame.get_columns()]
    heads = [(column.name, column.dtype.is_numeric()) for column in frame.get_columns()]
    return {
        "heads": heads,
        "rows": list(zip(*columns, strict=True)),
        "hidden": table.frame.height - frame.height,
        "total": table.frame.height,
    }


def _column(column: pl.Series, places: int) -> list[tuple[str, str, bool]]:
    """Cells as (text, sort key, is a number); fractions have as many decimals as the table needs."""
    values = column.to_list()
    if not column.dtype.is_numeric():
        return [("–", "", False) if value is None else (str(value), "", False) for value in values]
    places = places if column.dtype.is_float() else 0
    cells = []
    for value in values:
        if value is None or math.isnan(value):
            cells.append(("–", "", True))
        elif math.isinf(value):
            cells.append(("∞" if value > 0 else "−∞", "Infinity" if value > 0 else "-Infinity", True))
        else:
            cells.append((f"{value:,.{places}f}".replace(",", "\u202f"), repr(value), True))
    return cells


def _decimals(value: float) -> int:
    return next((places for places in range(2) if abs(value - round(value, places)) < 1e-9), 2)


def jpeg_bytes(image: npt.NDArray[np.uint8]) -> bytes:
    """An RGB or grey picture as a page embeds it.

    >>> jpeg_bytes(np.zeros((8, 8, 3), np.uint8))[6:10]
    b'JFIF'
    """
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).convert("RGB").save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return buffer.getvalue()


def _data_uri(picture: Picture) -> str:
    data = picture.image if isinstance(picture.image, bytes) else jpeg_bytes(picture.image)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
