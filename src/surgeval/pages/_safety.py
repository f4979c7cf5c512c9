r"""What keeps a page of foreign names harmless: a policy that names every script, and data that cannot end one.

The policy (a `<meta>`, because the page is opened from a disk) allows exactly the scripts and the style sheet whose
SHA-256 it lists, pictures that are inside the page, and nothing from any network. No 'unsafe-inline': plotly.js adds
its rules through the object model to a `<style>` that it creates *empty*, so the hash of nothing is enough for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def script_data(value: Any) -> str:
    r"""JSON for a `<script type="application/json">`: nothing in it can close the element or open a comment.

    >>> script_data("</script><!--\u2028")
    '"\\u003c/script\\u003e\\u003c!--\\u2028"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


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


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """The content security policy of a page with these inline scripts and style sheets."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(digest(script) for script in scripts)}",
            f"style-src {' '.join(digest(style) for style in (*styles, ''))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
