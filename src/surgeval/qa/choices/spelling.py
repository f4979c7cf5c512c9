r"""One spelling for reply and options: no markup, LaTeX commands or chat tokens, single spaces, circled letters plain.

Every pattern of this package relies on it: runs of white space are one character long here, so that bounded repeats
reach across any gap a model leaves, and no pattern needs an open-ended one (time stays linear in the reply).
"""

from __future__ import annotations

import re

from surgeval.qa.formats.text import clean

__all__ = ["spelled"]

_LATEX = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt)|bf|rm|displaystyle)(?![A-Za-z])")
_CHAT_TOKEN = re.compile(r"<\|[a-z_]{1,20}\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>|<eos>", re.I)
_ESCAPED_LINE = re.compile(r"\\n(?![a-z])")
_MARKUP = re.compile(r"[*`$#\\~]|__")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_CIRCLED = {
    start + k: first + k
    for start, first, count in (
        (0x24B6, 65, 26), (0x24D0, 97, 26), (0x1F130, 65, 26), (0x1F150, 65, 26), (0x1F170, 65, 26), (0x2460, 49, 9),
    )
    for k in range(count)
}  # fmt: skip


def spelled(text: str) -> str:
    r"""The text in the one spelling.

    >>> spelled("**Answer:**   $\\boxed{\\text{C}}$")
    'Answer: boxed{{C}}'
    >>> spelled("Ⓑ"), spelled("（Ｂ）")
    ('B', '(B)')
    """
    plain = clean(text.translate(_CIRCLED)) if not text.isascii() else text
    plain = _ESCAPED_LINE.sub("\n", _LATEX.sub("", _CHAT_TOKEN.sub(" ", plain)))
    return _LINES.sub("\n", _SPACES.sub(" ", _MARKUP.sub("", plain))).strip()
