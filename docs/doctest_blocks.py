"""A griffe extension for the API pages: doctests in docstrings become code blocks.

Without it Markdown reads `>>>` as a quotation and a printed list of lists as a link.
"""

from __future__ import annotations

from typing import Any

import griffe


class DoctestBlocks(griffe.Extension):
    """Fences every run of lines from `>>>` to the next empty line."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The same text with its examples in fences."""
    made: list[str] = []
    inside = block = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            block = not block
        if not block and not inside and line.startswith(">>>"):
            made += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            made.append("```")
            inside = False
        made.append(line)
    return "\n".join([*made, "```"] if inside else made)
