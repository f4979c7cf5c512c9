"""Send one POST over HTTP; connecting, headers and body share one deadline and one limit of bytes.

The socket itself keeps both, so a server can neither send without end nor too slowly. Nothing is decompressed (no
encoding is asked for, and a compressed reply is refused), no redirect is followed, and loopback traffic never goes
through a proxy.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["HttpError", "HttpReply", "is_loopback", "post", "proxy_of"]

LONGEST = 32 * 2**20  # bytes on the wire; a reply of 100 000 tokens has about half a million
_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 16
_SAFE = "/?%!$&'()*+,;=:@~"  # characters of an address that need no quoting


class HttpError(Exception):
    """No usable reply. `transient`: asking again may help; `refused`: no server listens at this address."""

    def __init__(self, problem: str, *, transient: bool = True, refused: bool = False) -> None:
        super().__init__(problem)
        self.transient, self.refused = transient, refused


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status, headers (names in lower case) and body of a reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Bounded:
    """The part shared by both kinds of socket: every wait ends at `until`, and at most `left` bytes are received."""

    until: float
    left: int

    def bound(self, until: float, left: int) -> None:
        self.until, self.left = until, left

    def recv_into(self, *args: Any, **options: Any) -> int:
        self.settimeout(_remaining(self.until))  # type: ignore[attr-defined]
        size: int = super().recv_into(*args, **options)  # type: ignore[misc]
        self.left -= size
        if self.left < 0:
            raise HttpError(f"a reply of more than {LONGEST} bytes", transient=False)
        return size

    def send(self, *args: Any, **options: Any) -> int:
        self.settimeout(_remaining(self.until))  # type: ignore[attr-defined]
        size: int = super().send(*args, **options)  # type: ignore[misc]
        return size

    def sendall(self, *args: Any, **options: Any) -> None:
        self.settimeout(_remaining(self.until))  # type: ignore[attr-defined]
        super().sendall(*args, **options)  # type: ignore[misc]


class _Socket(_Bounded, socket.socket):
    pass


class _TlsSocket(_Bounded, ssl.SSLSocket):
    pass


def post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> HttpReply:
    """Send the body and read the whole reply within `timeout` seconds; raises `HttpError` if there is none."""
    parts, until, began = urlsplit(url), time.monotonic() + timeout, False
    connection = None
    try:
        connection, target, extra = _connect(parts, until)
        sent = {"Accept-Encoding": "identity", "Connection": "close", **headers, **extra}
        connection.request("POST", target, body, sent)
        reply = connection.getresponse()
        began = True
        encoding = reply.headers.get("Content-Encoding", "identity").strip().casefold()
        if encoding not in ("", "identity"):
            raise HttpError(f"a compressed reply ({encoding}), which was not asked for", transient=False)
        names = {name.casefold(): value for name, value in reply.headers.items()}
        return HttpReply(reply.status, names, _body(reply))
    except TimeoutError:
        problem = f"a reply that did not end in {timeout:g} s" if began else f"no reply in {timeout:g} s"
        raise HttpError(problem) from None
    except ssl.SSLCertVerificationError as error:
        raise HttpError(f"no connection ({error.verify_message})", transient=False) from None
    except (OSError, UnicodeError) as error:
        raise HttpError(f"no connection ({error})", refused=isinstance(error, ConnectionRefusedError)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise HttpError(f"not an HTTP reply ({type(error).__name__} {error})") from None
    finally:
        if connection is not None:
            connection.close()


def _body(reply: http.client.HTTPResponse) -> bytes:
    """Read the whole body in small pieces: a single read would allocate the claimed length."""
    body = b"".join(iter(lambda: reply.read(_PIECE), b""))
    if reply.length:
        raise HttpError(f"a reply that ended {reply.length} bytes early")
    return body


def _connect(parts: SplitResult, until: float) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """An open connection, the target of the request, and the headers for a proxy."""
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    target = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    proxy = proxy_of(parts)
    login = _login(proxy) if proxy else {}
    where = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(*where, context=_context())
        if proxy:
            connection.set_tunnel(host, port, login)
            login = {}
    else:
        connection = http.client.HTTPConnection(*where)
        target = f"http://{_authority(host, port)}{target}" if proxy else target
        login = {"Host": _authority(host, port), **login} if proxy else login
    connection._create_connection = lambda *_: _dial(*where, until)  # type: ignore[attr-defined]
    try:
        connection.connect()
    except BaseException:
        connection.close()
        raise
    connection.sock.bound(until, LONGEST)  # type: ignore[union-attr]  # a `_Socket` or a `_TlsSocket`
    return connection, target, login


def _dial(host: str, port: int, until: float) -> _Socket:
    """Connect a socket; all addresses of a name share the deadline (looking up the name has the system's own)."""
    failure: OSError = OSError("no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        dialled = _Socket(family, kind, protocol)
        dialled.bound(until, LONGEST)
        try:
            dialled.settimeout(_remaining(until))
            dialled.connect(address)
            dialled.settimeout(_remaining(until))  # for the TLS handshake
            return dialled
        except OSError as error:
            dialled.close()
            failure = error
    raise failure


@cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.sslsocket_class = _TlsSocket
    return context


def _remaining(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def proxy_of(parts: SplitResult) -> SplitResult | None:
    """The environment's proxy for an address (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY); none for loopback."""
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    proxies = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(host):
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme != "http" or not proxy.hostname:
        sentence = f"the environment names a proxy of the kind {proxy.scheme!r}; only http proxies are supported"
        raise HttpError(sentence, transient=False)
    return proxy


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, in any spelling that a resolver accepts.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "127.1", "::1", "0.0.0.0", "10.0.0.1", "h.example")]
    [True, True, True, True, True, False, False]
    """
    name = host.rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address: Any = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(name))  # 127.1, 2130706433, 0x7f000001
        except (OSError, UnicodeError):
            return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def _authority(host: str, port: int) -> str:
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
