"""One POST over HTTP, bounded: connecting, headers and body share one deadline and one limit of bytes.

Both are kept by the socket itself, so no way of dripping or flooding escapes them. Nothing is decoded (no encoding is
asked for, and one that comes all the same is refused), no redirect is followed, and no proxy sees loopback traffic.
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

LONGEST = 32 * 2**20  # bytes on the wire; an honest reply of 100 000 tokens has about half a million
_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 16
_SAFE = "/?%!$&'()*+,;=:@~"  # what an address may hold as it is


class HttpError(Exception):
    """No usable reply; `again` says whether it is worth asking again, `nobody` that no server listens there."""

    def __init__(self, problem: str, *, again: bool = True, nobody: bool = False) -> None:
        super().__init__(problem)
        self.again, self.nobody = again, nobody


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Status, headers (names in lower case) and body as they came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Bounded:
    """What both kinds of socket share: every wait ends at `until`, and at most `left` bytes are received."""

    until: float
    left: int

    def bound(self, until: float, left: int) -> None:
        self.until, self.left = until, left

    def recv_into(self, *args: Any, **options: Any) -> int:
        self.settimeout(_remaining(self.until))  # type: ignore[attr-defined]
        size: int = super().recv_into(*args, **options)  # type: ignore[misc]
        self.left -= size
        if self.left < 0:
            raise HttpError(f"a reply of more than {LONGEST} bytes", again=False)
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
    """Send the body and read the reply, all of it within `timeout` seconds; `HttpError` where there is none."""
    parts, until, begun = urlsplit(url), time.monotonic() + timeout, False
    connection = None
    try:
        connection, target, extra = _connect(parts, until)
        sent = {"Accept-Encoding": "identity", "Connection": "close", **headers, **extra}
        connection.request("POST", target, body, sent)
        reply = connection.getresponse()
        begun = True
        encoding = reply.headers.get("Content-Encoding", "identity").strip().casefold()
        if encoding not in ("", "identity"):
            raise HttpError(
                f"a reply in another encoding than the plain one that was asked for ({encoding})", again=False
            )
        names = {name.casefold(): value for name, value in reply.headers.items()}
        return HttpReply(reply.status, names, _body(reply))
    except TimeoutError:
        problem = f"a reply that did not end in {timeout:g} s" if begun else f"no reply in {timeout:g} s"
        raise HttpError(problem) from None
    except ssl.SSLCertVerificationError as error:
        raise HttpError(f"no connection ({error.verify_message})", again=False) from None
    except (OSError, UnicodeError) as error:
        raise HttpError(f"no connection ({error})", nobody=isinstance(error, ConnectionRefusedError)) from None
    except (http.client.HTTPException, ValueError) as error:
        raise HttpError(f"a reply that is no HTTP ({type(error).__name__} {error})") from None
    finally:
        if connection is not None:
            connection.close()


def _body(reply: http.client.HTTPResponse) -> bytes:
    """The whole body, in small pieces: asked for all at once, the claimed length would be allocated."""
    body = b"".join(iter(lambda: reply.read(_PIECE), b""))
    if reply.length:
        raise HttpError(f"a reply that broke off {reply.length} bytes before its end")
    return body


def _connect(parts: SplitResult, until: float) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """An open connection, what to ask it for, and the headers that a proxy wants."""
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
    connection.sock.bound(until, LONGEST)  # type: ignore[union-attr]  # one of ours, plain or with TLS
    return connection, target, login


def _dial(host: str, port: int, until: float) -> _Socket:
    """A connected socket; all addresses of a name share the deadline (looking the name up has the system's own)."""
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
        raise HttpError(f"a proxy of the kind {proxy.scheme!r} in the environment, expected http", again=False)
    return proxy


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, in any of the spellings that a resolver takes.

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
