"""A connection to a PostgreSQL server that may be anything: what it sends is bounded in time and size.

The driver trusts its server: it decodes by whatever codec the server names, reads as many bytes as the server announces
and computes as many rounds of a hash as the server asks for. Here whatever does not belong to PostgreSQL is an
`InterfaceError` of the driver, in bounded time, and ends the connection, so that nothing waits for it again.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pg8000
from pg8000.converters import PG_PY_ENCODINGS

__all__ = ["connect"]

_LOGIN = 60.0  # seconds for everything until the first question can be asked
_ANSWER = 600.0  # seconds for one answer that keeps coming; silence ends earlier, by the socket's time-out
_MOST = 1 << 30  # bytes of one answer
_BLOCK = 1 << 20  # bytes that are read at once, whatever the server says will come
_MOST_ROUNDS = 1_000_000  # of the hash of a password; PostgreSQL itself asks for 4096
# Those of PostgreSQL: among Python's others are some that take for ever, and some that decode no text.
_ENCODINGS = {"utf8", "euc_jp", "euc_jis_2004", "euc_kr", "gb18030", "gbk", "johab", "sjis", "shift_jis_2004", "uhc",
              *PG_PY_ENCODINGS.values()}  # fmt: skip


def connect(*, host: str | None = None, port: int | None = None, unix_sock: str | None = None, timeout: float,
            **settings: Any) -> Any:  # fmt: skip
    """A connection of the driver; no single silence of the server is waited for longer than `timeout`."""
    host = host or "localhost"
    opened = _opened(host, port or 5432, unix_sock, timeout)
    watched = opened.dup()  # the driver may put encryption around the first, which takes it out of our hands
    late = threading.Event()

    def give_up() -> None:
        late.set()
        with suppress(OSError):
            watched.shutdown(socket.SHUT_RDWR)

    watch = threading.Timer(_LOGIN, give_up)
    watch.daemon = True
    watch.start()
    try:
        return _Connection(sock=opened, host=host, **settings)
    except Exception as error:  # its parser raises anything at an answer that it does not know
        opened.close()
        if late.is_set():
            raise _broken(f"no login within {_LOGIN:g} seconds") from None
        if isinstance(error, (pg8000.Error, OSError)):
            raise
        raise _broken(f"no login, or no answer of PostgreSQL ({type(error).__name__})") from None
    finally:
        watch.cancel()
        watched.close()


def _opened(host: str, port: int, unix_sock: str | None, timeout: float) -> socket.socket:
    try:
        if unix_sock is None:
            opened = socket.create_connection((host, port), timeout)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        else:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.settimeout(timeout)
            opened.connect(unix_sock)
    except (OSError, ValueError) as error:  # a name may be none that can be looked up
        raise _broken(f"no connection to a server ({error})") from None
    return opened


def _broken(why: str) -> Exception:
    """What the pool takes for the end of a connection, by these words."""
    error: Exception = pg8000.InterfaceError(f"a network error: {why}")
    return error


class _Connection(pg8000.Connection):  # type: ignore[misc]  # the driver has no types
    """The driver's connection, whose every answer is bounded."""

    _answers: _Answers | None = None
    _client_encoding: str
    _usock: Any

    @property
    def _sock(self) -> _Answers | None:
        return self._answers

    @_sock.setter
    def _sock(self, file: Any) -> None:
        self._answers = None if file is None else _Answers(file)

    def handle_messages(self, context: Any) -> None:
        with self._given_up_when_broken():
            super().handle_messages(context)

    def handle_PARAMETER_STATUS(self, data: bytes, context: Any) -> None:
        super().handle_PARAMETER_STATUS(data, context)
        if self._client_encoding not in _ENCODINGS:
            self._client_encoding = "utf8"
            raise _broken("a text encoding that PostgreSQL does not have")

    def handle_AUTHENTICATION_REQUEST(self, data: bytes, context: Any) -> None:
        rounds = re.search(rb"i=(\d+)", data[4:])
        if rounds is not None and (len(rounds[1]) > 9 or int(rounds[1]) > _MOST_ROUNDS):
            raise _broken(f"a login with over {_MOST_ROUNDS} rounds of a hash")
        super().handle_AUTHENTICATION_REQUEST(data, context)

    def handle_ERROR_RESPONSE(self, data: bytes, context: Any) -> None:
        super().handle_ERROR_RESPONSE(data, context)
        context.error.args[0].setdefault("C", "")  # the driver looks at it without asking

    @contextmanager
    def _given_up_when_broken(self) -> Iterator[None]:
        try:
            yield
        except pg8000.DatabaseError:  # what a server says of a statement; everything was read to its end
            raise
        except pg8000.InterfaceError:
            self._drop()
            raise
        except Exception as error:  # noqa: BLE001 - the parser, at an answer that it does not know
            self._drop()
            raise _broken(f"no answer of PostgreSQL ({type(error).__name__})") from None

    def _drop(self) -> None:
        """End the connection without a word to the server, which might not take it."""
        usock, self._usock, self._sock = self._usock, None, None
        with suppress(OSError):
            usock.shutdown(socket.SHUT_RDWR)
        usock.close()


class _Answers:
    """The file of a connection: what is read after a question is bounded in time and in bytes."""

    def __init__(self, file: Any) -> None:
        self._file, self.write = file, file.write
        self._asked()

    def _asked(self) -> None:
        self._left, self._until = _MOST, time.monotonic() + _ANSWER

    def flush(self) -> None:
        self._file.flush()
        self._asked()

    def read(self, size: int) -> bytes:
        """Some of so many bytes: the driver asks for the rest."""
        if not 0 <= size <= self._left:
            raise _broken(f"a message of {size} bytes")
        if time.monotonic() > self._until:
            raise _broken(f"no end of an answer within {_ANSWER:g} seconds")
        data: bytes = self._file.read1(min(size, _BLOCK))
        self._left -= len(data)
        return data
