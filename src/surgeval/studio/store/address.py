"""The address of a PostgreSQL server: read strictly, and told as host and database alone.

An address holds a password: in its login, in its query, or wherever one that was not escaped has spilt to. So nothing
of an address that cannot be read is repeated, and what is read has one place for each part.
"""

from __future__ import annotations

import re

from sqlalchemy import URL, exc, make_url

from surgeval.errors import BadInput, visible

__all__ = ["postgres_address"]

_EXPECTED = "expected postgresql://user@host/name, with %40, %3A and %2F for @, : and / inside a password"
_PARTS = {"user": "username", "password": "password", "host": "host", "port": "port", "database": "database"}
_KEPT = ("application_name", "unix_sock")  # what else the driver takes as text
_HOST = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%\w+)?")


def postgres_address(url: str) -> tuple[str, URL]:
    """What to call the database in messages, and the address to open it with.

    >>> postgres_address("postgresql://amy:opensesame@ward7:5433/labels")[0]
    'postgresql://ward7:5433/labels'
    >>> postgres_address("postgresql://ward7/labels?user=amy&password=opensesame")[0]
    'postgresql://ward7/labels'
    """
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend != "postgresql":
            raise BadInput(f"database: found a URL of {visible(backend)}, expected postgresql://… or a folder")
        whole = _in_one_place(parsed)
    except (exc.ArgumentError, ValueError):  # the port may be half a password
        raise BadInput(f"database: found a URL that cannot be read, {_EXPECTED}") from None
    if not _sound(whole):
        raise BadInput(f"database: found a host, port or name that cannot be one, {_EXPECTED}")
    if not whole.username:
        raise BadInput(f"database: found no user in its address, {_EXPECTED}")
    shown = URL.create("postgresql", host=whole.host or "localhost", port=whole.port, database=whole.database)
    return shown.render_as_string(), whole


def _in_one_place(parsed: URL) -> URL:
    """The address with user, password and the like where they belong, not in the query."""
    query = dict(parsed.query)
    for name, value in query.items():
        if name not in (*_PARTS, *_KEPT) or not isinstance(value, str):
            known = ", ".join((*_PARTS, *_KEPT))
            raise BadInput(f"database: found something else in the query of its address, expected {known}, each once")
    stated = {_PARTS[name]: str(query.pop(name)) for name in _PARTS if name in query}
    port = int(stated.pop("port")) if "port" in stated else parsed.port
    return parsed.set(drivername="postgresql+pg8000", port=port, query=query, **stated)


def _sound(whole: URL) -> bool:
    """Whether host, port and name are such, and everything is text that can be sent."""
    host, database = whole.host or "", whole.database or ""
    texts = (host, database, whole.username or "", whole.password or "", *map(str, whole.query.values()))
    return (
        (not host or _HOST.fullmatch(host) is not None)
        and (whole.port is None or 0 < whole.port < 65_536)
        and not set("@:/") & set(database)
        and all(text.isprintable() for text in texts)
    )
