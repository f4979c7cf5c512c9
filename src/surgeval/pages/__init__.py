"""The page kit: one HTML file from sections, the CSV files beside it, and the library that draws its figures.

`write_page` makes the file from `Section`s; `save_tables` writes the tables. Text is always shown literally, whatever a
data file calls its classes. Nothing here knows a protocol.
"""

from typing import TYPE_CHECKING

from surgeval._lazy import lazy_exports

if TYPE_CHECKING:
    from surgeval.pages._breaks import unbroken
    from surgeval.pages._csv import distinct, save_tables, unguarded
    from surgeval.pages._evidence import Evidence, no_boxes
    from surgeval.pages._figures import save_figures
    from surgeval.pages._glossary import glossary, glossary_page
    from surgeval.pages._library import library_inside, single_file
    from surgeval.pages._page import jpeg_bytes, render_page, write_page
    from surgeval.pages._parts import Card, Fact, Finding, LegendKey, Link, Picture, Plot, Section, Table, Term
    from surgeval.pages._safety import script_data
    from surgeval.pages._title import page_title

_HOMES = {
    "_breaks": "unbroken",
    "_csv": "distinct save_tables unguarded",
    "_evidence": "Evidence no_boxes",
    "_figures": "save_figures",
    "_glossary": "glossary glossary_page",
    "_library": "library_inside single_file",
    "_page": "jpeg_bytes render_page write_page",
    "_parts": "Card Fact Finding LegendKey Link Picture Plot Section Table Term",
    "_safety": "script_data",
    "_title": "page_title",
}

__all__ = [
    "Card",
    "Evidence",
    "Fact",
    "Finding",
    "LegendKey",
    "Link",
    "Picture",
    "Plot",
    "Section",
    "Table",
    "Term",
    "distinct",
    "glossary",
    "glossary_page",
    "jpeg_bytes",
    "library_inside",
    "no_boxes",
    "page_title",
    "render_page",
    "save_figures",
    "save_tables",
    "script_data",
    "single_file",
    "unbroken",
    "unguarded",
    "write_page",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
