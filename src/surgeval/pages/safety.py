r"""What keeps a page with untrusted names harmless: a policy that names every script, and data that cannot end one.

The policy (a `<meta>`, because the page is opened from a disk) allows exactly the scripts and the style sheet whose
SHA-256 it lists, pictures that are inside the page, and nothing from any network. No 'unsafe-inline', no
'unsafe-eval': Vega is configured to add no style sheet and to interpret its expressions.

A script in a file beside the page cannot be named by its hash: on `file:` browsers refuse `integrity`, because every
file is an origin of its own. It is named by a nonce, which is a hash of the page's whole content: the same page has the
same one, and no text in the page can contain it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

# Control characters but for tab and line ends, and those that change the direction of text, so that one name looks like
# another.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNSEEN_IN_JSON = re.compile(r"\\\\|\\(u(?:00[01][0-9a-f]|007f|00[89][0-9a-f]|061c|200[ef]|202[a-e]|206[6-9])|[bf])")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def script_data(value: Any) -> str:
    r"""JSON for a `<script type="application/json">`: nothing in it can close the element or open a comment.

    Invisible characters are spelt out, as everywhere on the page.

    >>> script_data("</script><!--\u2028")
    '"\\u003c/script\\u003e\\u003c!--\\u2028"'
    >>> json.loads(script_data("hook\u202e\x1b"))
    'hook\\u202e\\u001b'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = _UNSEEN_IN_JSON.sub(lambda match: f"\\\\{match[1]}" if match[1] else match[0], text)
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def seen(text: str) -> str:
    r"""The text with invisible characters spelt out, which models and files may contain.

    >>> seen("hook\x1b[2J\u202e"), seen("two\nlines")
    ('hook\\x1b[2J\\u202e', 'two\nlines')
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def inline(text: str, element: str) -> str:
    """Our own script or style as it stands in the page: line ends as the browser will read and hash them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if f"</{element}" in text.casefold() or "\0" in text:
        raise ValueError(f"an inline {element} must not hold its own end tag or a NUL")
    return text


def digest(text: str) -> str:
    """A policy source that allows exactly this text.

    >>> digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


_POLICY_NONCE, _SCRIPT_NONCE = "'nonce-'", '<script nonce="'


def nonce(html: str) -> str:
    """The page with its nonce in the policy, which stands before all content, and in the script, after all content.

    >>> page = nonce("'nonce-' " '<script nonce="" src=a></script>')
    >>> page.count(page[7:51])
    2
    """
    value = base64.b64encode(hashlib.sha256(html.encode("utf-8", "replace")).digest()).decode("ascii")
    html = html.replace(_POLICY_NONCE, f"'nonce-{value}'", 1)
    before, after = html.rsplit(_SCRIPT_NONCE, 1)
    return f"{before}{_SCRIPT_NONCE}{value}{after}"


def policy(scripts: Iterable[str], styles: Iterable[str], *, open: bool = False) -> str:
    """The policy of a page with these inline scripts and style sheets; `open` for a nonce that is put in later."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join([*map(digest, scripts), *([_POLICY_NONCE] if open else [])])}",
            f"style-src {' '.join(digest(style) for style in styles)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
