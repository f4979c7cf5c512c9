"""Text that goes into XML: what it can hold, and what is said of the rest."""

from __future__ import annotations

import re

from surgeval.datasets.formats.writing import Output
from surgeval.errors import BadInput
from surgeval.files import format_value
from surgeval.vocab import LabelSpace

_ILLEGAL = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # also tabs and line ends, which XML changes
_ILLEGAL_LINES = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_names(space: LabelSpace, format: str) -> None:
    """Refuse names that XML cannot hold, or that are not found again after reading: their boxes would be lost."""
    for number, name in enumerate(space.instruments):
        if _ILLEGAL.search(name) or space.find_name("instrument", name.strip()) != number:
            raise BadInput(
                f"{format}: instrument {number} of {space.name}: found the name {format_value(name)}, "
                "expected one without control characters, which XML cannot hold"
            )


def legal(text: str, out: Output, *, lines: bool = False) -> str:
    """The text with characters that XML cannot hold replaced, which counts as a loss; `lines` allows line breaks."""
    result = (_ILLEGAL_LINES if lines else _ILLEGAL).sub("\N{REPLACEMENT CHARACTER}", text)
    if result != text:
        out.lost("{n} texts with characters that XML cannot hold were changed")
    return result
