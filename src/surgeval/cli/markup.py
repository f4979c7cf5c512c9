"""Texts of other packages in our help: what they write must not be taken for markup that is broken."""

from __future__ import annotations

from rich.errors import MarkupError
from rich.markup import escape
from rich.text import Text

from surgeval.errors import visible

__all__ = ["literal", "sound_help"]

_LAYOUT = "\n\t\b\f"  # what the help of a command is laid out with


def literal(text: str) -> str:
    r"""The text as it stands, on one line.

    >>> literal("Which [/bold] eye?\n")
    'Which \\[/bold] eye?\\n'
    """
    return escape(visible(text))


def sound_help(text: str) -> str:
    r"""A help of several paragraphs, with its markup where that is sound, else with the brackets as they stand.

    >>> sound_help("Score [bold]eyes[/bold]."), sound_help("Score [/eyes].")
    ('Score [bold]eyes[/bold].', 'Score \\[/eyes].')
    """
    shown = "".join(letter if letter in _LAYOUT else visible(letter) for letter in text)
    try:
        for part in (shown, *shown.split("\n\n")):  # paragraphs are shown alone as well
            Text.from_markup(part)
    except MarkupError:
        return escape(shown)
    return shown
