"""One HTML page: opens from a disk, needs no network, runs nothing but its own two scripts.

plotly.js lies beside the page, or inside it, and only where a figure needs it. The same sections give the same bytes.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from surgeval._version import __version__
from surgeval.arrays import Image
from surgeval.errors import BadInput
from surgeval.files import failure_reason, make_folder, write_atomically
from surgeval.pages.cells import cells
from surgeval.pages.evidence_data import evidence_data
from surgeval.pages.glossary import Glossary, Terms, with_glossary
from surgeval.pages.library import library, library_inside, library_name, put_library
from surgeval.pages.parts import Picture, Section
from surgeval.pages.safety import inline, nonce, policy, script_data, seen
from surgeval.stats import Measure

_JPEG_QUALITY = 85
# plotly.js carries the style sheet of its maps and adds it unless an element of this id exists; the page has no maps
# and its policy would refuse the sheet, so the page holds an empty element of that id.
_STYLE_ID = re.compile(r'getElementById\("([0-9a-f]{64})"\)\)\{var \w+=document\.createElement\("style"\)')


class PageHead(TypedDict, total=False):
    """What stands at the top: `kind` above the title, `lead` below it, `details` (versions …) in small print.

    `measures` are the numbers that the page shows: the glossary explains them.
    """

    kind: str
    lead: str
    details: Mapping[str, str] | None
    measures: Sequence[Measure]


def write_page(path: str | Path, title: str, sections: Sequence[Section], **head: Unpack[PageHead]) -> Path:
    """Write the page and return its path; a reader never meets half a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_page(Path(folder) / "report.html", "A <model>", [Section("Result", "All is well.")])
    ...     "A &lt;model&gt;" in page.read_text()
    True
    """
    path = Path(path)
    inside = library_inside()
    html, drawn = _rendered(title, sections, inside, head)
    # A file name that is not UTF-8 reaches us with lone surrogates; the page shows a replacement sign.
    data = html.encode("utf-8", "replace")
    try:
        make_folder(path.parent)
        if drawn and not inside:
            put_library(path.parent)
        write_atomically(path, data)
    except OSError as error:
        raise BadInput(f"{path}: the page cannot be written: {failure_reason(error)}") from error
    return path


def render_page(title: str, sections: Sequence[Section], *, inside: bool = True, **head: Unpack[PageHead]) -> str:
    """The page as text; unless plotly.js is `inside`, its file must be put beside it.

    >>> html = render_page("Two models", [Section("Result", "Neither is better.")])
    >>> html.startswith("<!"), "Neither is better." in html
    (True, True)
    """
    return _rendered(title, sections, inside, head)[0]


def _rendered(title: str, sections: Sequence[Section], inside: bool, head: PageHead) -> tuple[str, bool]:
    """The page, and whether plotly.js draws in it."""
    known = Glossary(head.get("measures", ()))
    sections, terms = with_glossary(sections, head.get("lead", ""), known), Terms(known)
    specs = [[plot.figure.to_plotly() for plot in section.plots] for section in sections]
    drawn = not all(_nothing_drawn(spec) for row in specs for spec in row)
    style, script = (
        inline(_source("page.css") + _source("terms.css"), "style"),
        inline(_source("page.js") + _source("terms.js"), "script"),
    )
    evidence = {number: evidence_data(section.evidence) for number, section in enumerate(sections) if section.evidence}
    if len(evidence) > 1:
        raise BadInput("page: found evidence in two sections, expected it in one: links to a case name no section")
    style += inline(_source("evidence.css"), "style") if evidence else ""
    browser = inline(_source("evidence_cases.js") + _source("evidence.js"), "script") if evidence else ""
    plotly = library() if drawn else ""
    beside = library_name() if plotly and not inside else ""
    inside_scripts = [script, browser, "" if beside else plotly]
    rules = policy(filter(None, inside_scripts), [style], open=bool(beside))
    figures = [["" if _nothing_drawn(spec) else script_data(spec) for spec in row] for row in specs]
    html = (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            kind=head.get("kind", "report"),
            lead=head.get("lead", ""),
            details=head.get("details") or {},
            sections=sections,
            figures=[[Markup(data) for data in row] for row in figures],  # noqa: S704 - escaped by script_data
            tables=[[cells(table, terms) for table in section.tables] for section in sections],
            explain=terms.mark,
            images=[[_data_uri(picture) for picture in section.images] for section in sections],
            cards=[[_data_uri(card.picture) for card in section.cards] for section in sections],
            policy=Markup(rules),  # noqa: S704 - ours: hashes and keywords
            evidence=evidence,
            browser=Markup(browser),  # noqa: S704 - ours
            style=Markup(style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            plotly="" if beside else Markup(plotly),  # noqa: S704 - the library's
            beside=beside,
            unwanted=_STYLE_ID.findall(plotly),
            version=__version__,
        )
    )
    return (nonce(html) if beside else html), drawn


def _finalized(value: Any) -> Any:
    """What a template prints: texts of strangers with nothing hidden in them; markup was made from such."""
    return seen(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("surgeval.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["href"] = lambda file: quote(os.fsencode(file))  # a name on a disk may be no text
    return environment


@cache
def _source(name: str) -> str:
    return (files("surgeval.pages") / "templates" / name).read_text(encoding="utf-8")


def _nothing_drawn(figure: Mapping[str, Any]) -> bool:
    """Whether a plotly figure shows no value: every trace is empty, or bars and cells of 0 only."""
    return not any(_shows(trace) for trace in figure["data"])


def _shows(trace: Mapping[str, Any]) -> bool:
    if trace["type"] == "bar":
        return any(trace["x" if trace.get("orientation") == "h" else "y"])
    if trace["type"] == "heatmap":
        return any(value is not None for row in trace["z"] for value in row)
    values = trace.get("q1", trace.get("y"))
    return values is None or any(value is not None for value in values)


def jpeg_bytes(image: Image) -> bytes:
    """An RGB or grey picture as a page embeds it.

    >>> import numpy as np
    >>> jpeg_bytes(np.zeros((8, 8, 3), np.uint8))[6:10]
    b'JFIF'
    """
    import PIL.Image

    buffer = io.BytesIO()
    PIL.Image.fromarray(image).convert("RGB").save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return buffer.getvalue()


def _data_uri(picture: Picture) -> str:
    data = picture.image if isinstance(picture.image, bytes) else jpeg_bytes(picture.image)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode('ascii')}"
