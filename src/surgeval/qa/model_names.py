"""Names of models and judges on the command line: `KIND`, `KIND:ARGUMENT` or `KIND[:ARGUMENT]`.

A server is always part of the name, so a frame of an operation never goes to a default address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from surgeval.errors import BadInput, did_you_mean

__all__ = ["kind_of_form", "parse_model_name", "parse_server", "public_name"]


def kind_of_form(form: str) -> str:
    """The kind in a form such as `table:FILE`.

    >>> kind_of_form("table:FILE"), kind_of_form("random[:SEED]"), kind_of_form("oracle")
    ('table', 'random', 'oracle')
    """
    return re.split(r"[:\[]", form, maxsplit=1)[0]


def parse_model_name(text: str, forms: Iterable[str], role: str = "model") -> tuple[str, str | None]:
    """The kind and the argument of a name; the argument is None if the name has no colon.

    >>> forms = ("hf:PATH", "random[:SEED]", "oracle")
    >>> parse_model_name("random:3", forms), parse_model_name("oracle", forms)
    (('random', '3'), ('oracle', None))
    >>> parse_model_name("hf:", forms)
    Traceback (most recent call last):
    surgeval.errors.BadInput: The model 'hf:' is incomplete. Use hf:PATH.
    """
    known = {kind_of_form(form): form for form in forms}
    kind, colon, argument = text.partition(":")
    if kind not in known:
        raise BadInput(
            f"Unknown {role} {public_name(text)!r}. Use one of {', '.join(known.values())}{did_you_mean(kind, known)}"
        )
    form = known[kind]
    if form == kind and colon:
        raise BadInput(f"The {role} {public_name(text)!r} has an argument. Use {form}.")
    if f"{kind}:" in form and not argument:
        raise BadInput(f"The {role} {text!r} is incomplete. Use {form}.")
    return kind, argument if colon else None


def public_name(text: str) -> str:
    """A model's name as it may be stored and printed: without the login and the query values of its address.

    >>> public_name("openai:vlm@https://me:pw@host/v1?key=k1&v=2"), public_name("openai:vlm@http://host/v1")
    ('openai:vlm@https://…@host/v1?key=…&v=…', 'openai:vlm@http://host/v1')
    """
    if "://" not in text and not text.startswith("openai:"):
        return text  # a file or a folder
    address, mark, query = text.partition("#")[0].partition("?")
    names = (part.partition("=") for part in query.split("&"))
    hidden = "&".join(f"{name}=…" if equals else "…" * bool(name) for name, equals, _ in names)
    return re.sub("//[^/]*@", "//…@", address) + mark + hidden


def parse_server(text: str, rest: str, role: str = "model") -> tuple[str, str]:
    """Model and address from `MODEL@URL`, which is the argument `rest` of the name `text`.

    >>> parse_server("openai:org/vlm@http://localhost:8000/v1", "org/vlm@http://localhost:8000/v1")
    ('org/vlm', 'http://localhost:8000/v1')
    """
    model, at, url = rest.partition("@http")
    url = f"http{url}" if at else ""
    _check_address(text, url, role)
    if not model:
        raise BadInput(f"The {role} {public_name(text)!r} names no model. Use openai:MODEL@URL.")
    return model, url


def _check_address(text: str, url: str, role: str) -> None:
    try:
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        ok = False
    if not ok or not url.isprintable() or " " in url or "\\" in url:
        # Where an address ends is unclear, and so is where a password in it does.
        name = re.sub("://.*", "://…", public_name(text), flags=re.DOTALL)
        raise BadInput(f"The {role} {name!r} has no valid server address. Use openai:MODEL@http(s)://HOST[:PORT]/v1.")
    if parts.username or parts.password:
        raise BadInput(
            f"The address of the {role} at {parts.hostname} contains a password. Set it in the environment instead."
        )
