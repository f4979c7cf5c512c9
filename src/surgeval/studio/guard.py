"""What stands before the studio's server: nobody but the annotator's own page may speak to it.

A page of a stranger in the same browser can send requests to 127.0.0.1, and can give itself a name that leads there
(DNS rebinding). So the host that a request names must be one that the studio serves, and a request that a page sent
must come from the studio's own page. Every other account on this machine can connect to 127.0.0.1 too, so every request
needs the token, unless the server was started without one. An annotator of a blind study can be given a token that
opens his or her own place and nothing else. Bodies are limited while they arrive, and every answer carries rules that
keep foreign scripts out.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote

from starlette.exceptions import HTTPException

from surgeval.errors import BadInput

__all__ = ["AccessRules", "Guard", "binds_loopback", "blind_place", "place_token"]

_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{16,200}")
_OWN_SITE = (b"same-origin", b"none")  # `none`: typed or bookmarked
_UNKNOWN = "this studio needs its token: open the address that was printed at its start"
_NAME = re.compile(r"[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")
_HEADERS = (
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
     b"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)  # fmt: skip

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def binds_loopback(host: str) -> bool:
    """Whether a server bound to this address can be reached from this machine alone.

    >>> [binds_loopback(host) for host in ("127.0.0.1", "localhost", "0.0.0.0", "ward.example")]
    [True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def blind_place(study: str, annotator: str) -> str:
    """Where an annotator of a blind study is served.

    >>> blind_place("s1", "Ada")
    '/blind/s1/Ada'
    """
    return f"/blind/{study}/{annotator}"


def place_token(token: str, path: str) -> str:
    """A token that opens one place of a server and nothing else.

    >>> len(place_token("a-token-of-this-ward", blind_place("s1", "Ada")))
    40
    """
    return hmac.new(token.encode(), path.encode(), "sha256").hexdigest()[:40]


@dataclass(frozen=True)
class AccessRules:
    """Where the studio is served, and what it asks for."""

    hosts: frozenset[str]  # as the Host header names them: name:port
    token: str | None = None  # None: no request needs one
    cookie: str = "surgeval_studio"  # its name; `of` adds the port, as browsers send cookies to all ports of a host
    most_bytes: int = 32 << 20  # of a request's body
    most_seconds: float = 60.0  # until all of it is here

    @classmethod
    def of(
        cls, bind: str, port: int, *, token: str | None = None, names: Sequence[str] = (), most_bytes: int = 32 << 20
    ) -> AccessRules:
        """The rules of a server bound to an address. Only a server on loopback can do without a token.

        >>> sorted(AccessRules.of("127.0.0.1", 8000).hosts)
        ['127.0.0.1:8000', '[::1]:8000', 'localhost:8000']
        >>> AccessRules.of("0.0.0.0", 8000)
        Traceback (most recent call last):
        surgeval.errors.BadInput: address 0.0.0.0: other machines can reach this server, so it needs a token
        """
        if token is None and not binds_loopback(bind):
            raise BadInput(f"address {bind}: other machines can reach this server, so it needs a token")
        if token is not None and not _TOKEN.fullmatch(token):  # it travels in addresses and cookies as it is
            raise BadInput(f"token: found {len(token)} characters, expected 16 to 200 letters, digits and _ . ~ -")
        for name in names:
            if not _NAME.fullmatch(name):
                raise BadInput(f"name of this server: found {name[:80]!r}, expected a host name or address")
        own = {"127.0.0.1", "localhost", "[::1]", *names}
        if bind not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            own.add(f"[{bind}]" if ":" in bind and not bind.startswith("[") else bind)
        return cls(frozenset(f"{name.lower()}:{port}" for name in own), token, f"surgeval_studio_{port}", most_bytes)


class Guard:
    """An ASGI application in front of another one: what breaks the rules never reaches it."""

    def __init__(self, app: App, rules: AccessRules) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        refused = self._refused(scope, headers)
        if scope["type"] == "websocket":
            if refused is not None:
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        if refused is not None:
            await _answer(send, *refused)
            return
        if self._rules.token is not None and _is_entrance(scope) and _asked(scope):
            await self._sign_in(scope, send)
            return
        body = _Limited(receive, self._rules)
        if body.too_long(headers):
            await _answer(send, 413, f"expected at most {self._rules.most_bytes} bytes")
            return
        answer = _Ruled(send)
        try:
            await self._app(scope, body, answer)
        except HTTPException as error:  # an application with answers of its own for errors has given one
            await _answer(send, error.status_code, error.detail)

    def _refused(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
        """Status and reason, where a request breaks a rule."""
        host = headers.get(b"host", [])
        if len(host) != 1 or host[0].decode("latin-1").lower() not in self._rules.hosts:
            return 421, "this server is not the one that the request names"
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return 400, "found a zero byte, expected text"
        secure = scope.get("scheme") in ("https", "wss")
        own = f"{'https' if secure else 'http'}://{host[0].decode('latin-1').lower()}".encode("latin-1")
        origin = headers.get(b"origin", [])
        if any(value.lower() != own for value in origin) or len(origin) > 1:
            return 403, "pages of other origins may not speak to this server"
        signs_in = self._rules.token is not None and _offered(scope, self._rules.token) is not None
        if any(site not in _OWN_SITE for site in headers.get(b"sec-fetch-site", [])) and not signs_in:
            return 403, "pages of other sites may not speak to this server"
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if changes and not origin and b"sec-fetch-site" not in headers and b"authorization" not in headers:
            return 403, "a change must say which page it comes from, or carry the token"
        if self._rules.token is not None and not signs_in and not self._known(scope, headers, self._rules.token):
            return 401, _UNKNOWN
        if self._rules.token is None and b"authorization" in headers and changes and not origin:
            return 403, "this server has no token: a change must say which page it comes from"
        return None

    def _known(self, scope: Scope, headers: dict[bytes, list[bytes]], token: str) -> bool:
        offered = [value[7:] for value in headers.get(b"authorization", []) if value[:7].lower() == b"bearer "]
        offered += [value.encode("latin-1") for value in _cookies(headers, self._rules.cookie)]
        return any(_same(value, opening) for value in offered for opening in _opening(token, scope["path"]))

    async def _sign_in(self, scope: Scope, send: Send) -> None:
        """Set a cookie from the token in the address, and forward to the same address without it.

        A page forwards, not an HTTP redirect: after a link from elsewhere (the file that the command opens, an e-mail)
        a browser does not send a strict cookie with a redirect.
        """
        path = quote(scope["path"])
        head = '<!doctype html><title>studio</title><link rel="icon" href="icon.svg">'
        page = f'{head}<meta http-equiv="refresh" content="0; url={path}">'
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store")]
        token = _offered(scope, self._rules.token or "")
        if token is not None:
            where = "/" if token == self._rules.token else quote(_place(scope["path"]) or "/")
            secure = "; Secure" if scope.get("scheme") == "https" else ""
            cookie = f"{self._rules.cookie}={token}; HttpOnly; SameSite=Strict; Path={where}{secure}"
            headers.append((b"set-cookie", cookie.encode("latin-1")))
        await _answer(send, 200, page, headers)


def _place(path: str) -> str | None:
    """The place of an annotator that a path leads into."""
    parts = path.split("/")
    return blind_place(parts[2], parts[3]) if len(parts) > 4 and parts[:2] == ["", "blind"] else None


def _opening(token: str, path: str) -> list[str]:
    """The tokens that open a path: the server's, and that of the place it lies in."""
    blind_path = _place(path)
    return [token] if blind_path is None else [token, place_token(token, blind_path)]


def _offered(scope: Scope, token: str) -> str | None:
    """The token in the address if it is valid for the page at this address, else None."""
    values = [value.encode("utf-8", "replace") for value in _asked(scope)] if _is_entrance(scope) else []
    openings = _opening(token, scope["path"])
    return next((opening for opening in openings for value in values if _same(value, opening)), None)


def _is_entrance(scope: Scope) -> bool:
    """Whether a page begins here: only there a token may be part of the address."""
    path = scope.get("path", "")
    return scope["type"] == "http" and scope["method"] == "GET" and path in ("/", f"{_place(path)}/")


def _same(offered: bytes, token: str) -> bool:
    return hmac.compare_digest(offered, token.encode())


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.lower(), []).append(value)
    return headers


def _cookies(headers: dict[bytes, list[bytes]], name: str) -> list[str]:
    """The values of a cookie: a browser sends one for each path that it was set for."""
    pairs = [pair.partition("=") for line in headers.get(b"cookie", []) for pair in line.decode("latin-1").split(";")]
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _asked(scope: Scope) -> list[str]:
    return parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20).get("token", [])


class _Limited:
    """The body of a request, counted and timed while it arrives: its stated length may be a lie or absent."""

    def __init__(self, receive: Receive, rules: AccessRules) -> None:
        self._receive, self._rules, self._seen = receive, rules, 0
        self._end, self._whole = asyncio.get_running_loop().time() + rules.most_seconds, False

    def too_long(self, headers: dict[bytes, list[bytes]]) -> bool:
        """Whether the request itself says that it is too long."""
        stated = headers.get(b"content-length", [b"0"])[0]
        return not stated.isdigit() or len(stated) > 18 or int(stated) > self._rules.most_bytes

    async def __call__(self) -> Message:
        if self._whole:  # now it is waited for that the other side goes away, which may take hours
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            expected = f"expected the whole request within {self._rules.most_seconds:g} seconds"
            raise HTTPException(408, expected, {"connection": "close"}) from None
        self._whole = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._seen > self._rules.most_bytes:
            raise HTTPException(413, f"expected at most {self._rules.most_bytes} bytes", {"connection": "close"})
        return message


class _Ruled:
    """The answer, with the headers that keep foreign scripts out."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await self._send(message)


async def _answer(send: Send, status: int, text: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body, names = text.encode(), {name for name, _ in headers}
    plain = [] if b"content-type" in names else [(b"content-type", b"text/plain; charset=utf-8")]
    sent = [*plain, (b"content-length", str(len(body)).encode()), *headers, *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
