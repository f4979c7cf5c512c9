"""One HTML page: opens from a disk, needs no network, runs nothing but its own two scripts.

Figures are drawn in the browser by Vega, which lies beside the page, or inside it, where a figure needs it. The same
sections give the same bytes.
"""

from __future__ import annotations

import base64
import io
import os
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
from surgeval.figures import Figure, chart_config
from surgeval.files import failure_reason, make_folder, write_atomically
from surgeval.pages.evidence_data import evidence_data
from surgeval.pages.figures import saved_plots
from surgeval.pages.glossary import Glossary, Terms, with_glossary
from surgeval.pages.parts import Picture, Section
from surgeval.pages.safety import inline, nonce, policy, script_data, seen
from surgeval.pages.scorecard import Scorecard
from surgeval.pages.tables import page_table, table_files
from surgeval.pages.vega import library, library_inside, library_name, put_library
from surgeval.stats import Measure

_JPEG_QUALITY = 85


class PageHead(TypedDict, total=False):
    """What stands at the top: `kind` above the title, `lead` and `warnings` below it, then the scorecard.

    `details` (versions …) stand in small print at the end. `measures` are the numbers that the page shows: the glossary
    explains them.
    """

    kind: str
    lead: str
    warnings: Sequence[str]
    scorecard: Scorecard | None
    details: Mapping[str, str] | None
    measures: Sequence[Measure]


def write_page(path: str | Path, title: str, sections: Sequence[Section], **head: Unpack[PageHead]) -> Path:
    """Write the page, its drawing library and the files that its plots name; returns the page's path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_page(Path(folder) / "report.html", "A <model>", [Section("Result", "All is well.")])
    ...     "A &lt;model&gt;" in page.read_text()
    True
    """
    path = Path(path)
    inside = library_inside()
    plots = [plot for section in sections for plot in section.plots]
    try:
        make_folder(path.parent)
        with saved_plots(plots, path.parent):
            html, drawn = _rendered(title, sections, inside, head, path.parent)
            if drawn and not inside:
                put_library(path.parent)
            # A file name that is not UTF-8 reaches us with lone surrogates; the page shows a replacement sign.
            write_atomically(path, html.encode("utf-8", "replace"))
    except OSError as error:
        raise BadInput(f"{path}: the page cannot be written: {failure_reason(error)}") from error
    return path


def render_page(title: str, sections: Sequence[Section], *, inside: bool = True, **head: Unpack[PageHead]) -> str:
    """The page as text; unless the drawing library is `inside`, its file must be put beside it.

    >>> html = render_page("Two models", [Section("Result", "Neither is better.")])
    >>> html.startswith("<!"), "Neither is better." in html
    (True, True)
    """
    return _rendered(title, sections, inside, head, None)[0]


def _rendered(
    title: str, sections: Sequence[Section], inside: bool, head: PageHead, folder: Path | None
) -> tuple[str, bool]:
    """The page, and whether a figure is drawn in it; `folder` is where it will lie, with the files of its tables."""
    card, known = head.get("scorecard"), Glossary(head.get("measures", ()))
    sections, terms = with_glossary(sections, head.get("lead", ""), known, card), Terms(known)
    drawn = any(not plot.figure.empty for section in sections for plot in section.plots)
    style, script = (
        inline(_source("page.css") + _source("terms.css"), "style"),
        inline(_source("page.js") + _source("terms.js"), "script"),
    )
    evidence = {number: evidence_data(section.evidence) for number, section in enumerate(sections) if section.evidence}
    if len(evidence) > 1:
        raise BadInput("page: found evidence in two sections, expected it in one: links to a case name no section")
    style += inline(_source("evidence.css"), "style") if evidence else ""
    browser = inline(_source("evidence_cases.js") + _source("evidence.js"), "script") if evidence else ""
    vega = library() if drawn else ""
    beside = library_name() if drawn and not inside else ""
    inside_scripts = [script, browser, "" if beside else vega]
    rules = policy(filter(None, inside_scripts), [style], open=bool(beside))
    figures = [[_figure_data(plot.figure) for plot in section.plots] for section in sections]
    html = (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            kind=head.get("kind", "report"),
            lead=head.get("lead", ""),
            warnings=head.get("warnings", ()),
            card=card,
            shots=[_data_uri(picture) for picture in card.pictures] if card else [],
            files=[[_files(table.file, folder) for table in section.tables] for section in sections],
            details=head.get("details") or {},
            sections=sections,
            figures=[[Markup(data) for data in row] for row in figures],  # noqa: S704 - escaped by script_data
            tables=[[page_table(table, terms) for table in section.tables] for section in sections],
            explain=terms.mark,
            images=[[_data_uri(picture) for picture in section.images] for section in sections],
            cards=[[_data_uri(card.picture) for card in section.cards] for section in sections],
            policy=Markup(rules),  # noqa: S704 - ours: hashes and keywords
            evidence=evidence,
            browser=Markup(browser),  # noqa: S704 - ours
            style=Markup(style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            vega="" if beside else Markup(vega),  # noqa: S704 - the library's
            beside=beside,
            themes=Markup(script_data(_themes())) if drawn else "",  # noqa: S704 - escaped by script_data
            version=__version__,
        )
    )
    return (nonce(html) if beside else html), drawn


def _files(csv: str, folder: Path | None) -> tuple[tuple[str, str], ...]:
    return table_files(csv, folder) if folder is not None else (("CSV", csv),) if csv else ()


def _finalized(value: Any) -> Any:
    """What a template prints: untrusted text with hidden characters spelt out; markup is built from such text."""
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


def _figure_data(figure: Figure) -> str:
    """The specification as it stands in the page; nothing where there is nothing to draw."""
    return "" if figure.empty else script_data(figure.spec)


def _themes() -> dict[str, Any]:
    """The colours of figures on a light and on a dark page."""
    return {"light": chart_config("light"), "dark": chart_config("dark")}


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
