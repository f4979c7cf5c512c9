"""The page kit: one self-contained HTML file from sections, and the CSV files beside it.

`write_page` makes the file from `Section`s; `save_tables` writes the tables. Text is always shown literally, whatever a
data file calls its classes. Nothing here knows a protocol.
"""

from surgeval.pages._csv import distinct, save_tables, unguarded
from surgeval.pages._evidence import Evidence, no_boxes
from surgeval.pages._figures import save_figures
from surgeval.pages._page import jpeg_bytes, render_page, write_page
from surgeval.pages._parts import Card, Fact, Finding, Link, Picture, Plot, Section, Table
from surgeval.pages._safety import script_data

__all__ = [
    "Card",
    "Evidence",
    "Fact",
    "Finding",
    "Link",
    "Picture",
    "Plot",
    "Section",
    "Table",
    "distinct",
    "jpeg_bytes",
    "no_boxes",
    "render_page",
    "save_figures",
    "save_tables",
    "script_data",
    "unguarded",
    "write_page",
]
