"""Recognise a page of surgeval by its head and read its title, for lists of a folder's pages."""

from __future__ import annotations

import html
import re
from pathlib import Path

from surgeval.files import open_regular

__all__ = ["page_title"]

_HEAD = 1 << 14  # bytes that hold the head of a page of ours up to its title
_OURS = re.compile(rb'<meta name="generator" content="surgeval [^"]*">\s*<title>([^<]{1,2000})</title>')


def page_title(page: str | Path) -> str | None:
    """The title of a page that surgeval wrote, with its kind; None for whatever else is there, or nothing.

    >>> import tempfile
    >>> from surgeval.pages import Section, write_page
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page_title(write_page(Path(folder) / "report.html", "A <model>", [Section("Result")], kind="ranking"))
    'A <model> · ranking'
    >>> page_title("nowhere.html")
    """
    try:
        with open_regular(page) as file:
            title = _OURS.search(file.read(_HEAD))
    except OSError:
        return None
    return html.unescape(title[1].decode("utf-8", "replace")) if title else None
