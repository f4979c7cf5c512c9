"""Requests of strangers never reach the studio: wrong host, foreign page, missing token, too long a body."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from surgeval.errors import BadInput
from surgeval.studio.guard import (
    AccessRules,
    Guard,
    Message,
    Receive,
    Scope,
    Send,
    binds_loopback,
    blind_place,
    place_token,
)

TOKEN = "a-long-enough-token-of-this-ward"
LOCAL = AccessRules.of("127.0.0.1", 8000)
SHARED = AccessRules.of("0.0.0.0", 8000, token=TOKEN, names=["ward.example"])
OWN_TOKEN = AccessRules.of("127.0.0.1", 8000, token=TOKEN)
OWN = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}


class Inner:
    """The application behind the guard: it reads the whole body and says how long it was."""

    def __init__(self) -> None:
        self.reached = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached += 1
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": str(size).encode()})


def ask(
    rules: AccessRules, headers: dict[str, str] | list[tuple[str, str]], *, method: str = "GET", path: str = "/api",
    query: str = "", body: list[bytes] | None = None, kind: str = "http", scheme: str = "http",
) -> tuple[int, list[Message], Inner]:  # fmt: skip
    sent: list[Message] = []
    chunks = list(body or [b""])
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    scope: dict[str, Any] = {
        "type": kind, "method": method, "path": path, "query_string": query.encode(), "scheme": scheme,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
    }  # fmt: skip

    async def receive() -> Message:
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message: Message) -> None:
        sent.append(message)

    inner = Inner()
    with ThreadPoolExecutor(1) as aside:  # where no test of a browser has a loop running
        aside.submit(lambda: asyncio.run(Guard(inner, rules)(scope, receive, send))).result()
    return int(sent[0].get("status", 0)), sent, inner


def header(sent: list[Message], name: str) -> str | None:
    return next((value.decode() for key, value in sent[0]["headers"] if key.decode() == name), None)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_the_annotators_own_page_is_served(host: str) -> None:
    assert ask(LOCAL, {"host": host})[0] == 200
    own = {"host": host, "origin": f"http://{host.lower()}", "sec-fetch-site": "same-origin"}
    assert ask(LOCAL, own, method="POST", body=[b"12", b"345"])[1][1]["body"] == b"5"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8000"},
        {"host": "127.0.0.1:8001"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:8000.evil.example"},
        {"host": ""},
        {},
    ],
)
def test_a_name_that_only_leads_here_is_refused(headers: dict[str, str]) -> None:
    status, _, inner = ask(LOCAL, headers)
    assert (status, inner.reached) == (421, 0)


def test_two_hosts_are_refused() -> None:
    assert ask(LOCAL, [("host", "127.0.0.1:8000"), ("host", "evil.example")])[0] == 421


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "more",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "http://localhost:8000"},
        {"origin": "http://127.0.0.1:8000.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "cross-site"},
    ],
)
def test_pages_of_strangers_are_refused(more: dict[str, str], method: str) -> None:
    status, _, inner = ask(LOCAL, {"host": "127.0.0.1:8000", **more}, method=method)
    assert (status, inner.reached) == (403, 0)


def test_a_change_without_a_page_is_refused() -> None:
    assert ask(LOCAL, {"host": "127.0.0.1:8000"}, method="POST")[0] == 403
    made_up = {"host": "127.0.0.1:8000", "authorization": "Bearer anything"}
    assert ask(LOCAL, made_up, method="POST")[0] == 403


def test_a_socket_of_a_stranger_is_closed_and_ours_opened() -> None:
    _, sent, inner = ask(LOCAL, {"host": "127.0.0.1:8000", "origin": "http://evil.example"}, kind="websocket")
    assert (sent[0]["type"], inner.reached) == ("websocket.close", 0)
    assert ask(LOCAL, {"host": "127.0.0.1:8000"}, kind="websocket")[1][0]["type"] == "websocket.close"
    assert ask(LOCAL, OWN, kind="websocket")[1][0]["type"] == "websocket.accept"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"cookie": f"{SHARED.cookie}=wrong"},
        {"cookie": "=;;;\x01"},
        {"cookie": f"other={TOKEN}"},
    ],
)
def test_without_the_token_every_request_is_refused(more: dict[str, str]) -> None:
    for rules, host in ((SHARED, "ward.example:8000"), (OWN_TOKEN, "127.0.0.1:8000")):
        status, _, inner = ask(rules, {"host": host, **more})
        assert (status, inner.reached) == (401, 0)
        _, sent, inner = ask(rules, {"host": host, "origin": f"http://{host}", **more}, kind="websocket")
        assert (sent[0]["type"], inner.reached) == ("websocket.close", 0)


def test_the_token_opens_as_header_and_as_cookie() -> None:
    assert ask(SHARED, {"host": "ward.example:8000", "authorization": f"Bearer {TOKEN}"}, method="POST")[0] == 200
    assert ask(SHARED, {"host": "ward.example:8000", "cookie": f"a=b; {SHARED.cookie}={TOKEN}"})[0] == 200
    foreign = {"host": "ward.example:8000", "cookie": f"{SHARED.cookie}={TOKEN}", "origin": "http://evil.example"}
    assert ask(SHARED, foreign, method="POST")[0] == 403
    bare = {"host": "ward.example:8000", "cookie": f"{SHARED.cookie}={TOKEN}"}
    assert ask(SHARED, bare, method="POST")[0] == 403


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address() -> None:
    status, sent, inner = ask(SHARED, {"host": "ward.example:8000"}, path="/", query=f"token={TOKEN}")
    assert (status, inner.reached) == (200, 0)
    assert sent[1]["body"].endswith(b'content="0; url=/">')
    cookie = header(sent, "set-cookie") or ""
    assert cookie.startswith(f"{SHARED.cookie}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask(SHARED, {"host": "ward.example:8000"}, path="/", query="token=wrong")[0] == 401
    assert ask(SHARED, {"host": "ward.example:8000"}, path="/api", query=f"token={TOKEN}")[0] == 401


def test_a_body_past_its_limit_is_stopped_whatever_it_says_of_itself() -> None:
    small = AccessRules.of("127.0.0.1", 8000, most_bytes=10)
    assert ask(small, {**OWN, "content-length": "11"}, method="POST")[0] == 413
    assert ask(small, {**OWN, "content-length": "9" * 400}, method="POST")[0] == 413
    assert ask(small, {**OWN, "content-length": "-1"}, method="POST")[0] == 413
    assert ask(small, {**OWN, "content-length": "5"}, method="POST", body=[b"12345", b"678901"])[0] == 413
    assert ask(small, OWN, method="POST", body=[b"12345", b"67890"])[0] == 200


def test_a_body_that_does_not_come_to_its_end_is_given_up() -> None:
    waits = AccessRules(LOCAL.hosts, most_seconds=0.05)
    scope = {"type": "http", "method": "POST", "path": "/api", "query_string": b"", "scheme": "http",
             "headers": [(b"host", b"127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")]}  # fmt: skip
    sent: list[Message] = []
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        await asyncio.sleep(60)
        raise AssertionError("it was waited for")

    async def send(message: Message) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as aside:
        aside.submit(lambda: asyncio.run(Guard(Inner(), waits)(scope, receive, send))).result()
    assert sent[0]["status"] == 408
    assert b"within 0.05 seconds" in sent[1]["body"]


def test_every_answer_keeps_foreign_scripts_out() -> None:
    for rules, headers in ((LOCAL, OWN), (LOCAL, {"host": "evil.example"}), (SHARED, {"host": "ward.example:8000"})):
        _, sent, _ = ask(rules, headers)
        policy = header(sent, "content-security-policy") or ""
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert header(sent, "x-content-type-options") == "nosniff"
        assert header(sent, "cross-origin-resource-policy") == "same-origin"


def test_addresses_names_and_tokens_are_checked() -> None:
    with pytest.raises(BadInput, match="it needs a token"):
        AccessRules.of("192.168.0.7", 8000)
    with pytest.raises(BadInput, match="found 5 characters"):
        AccessRules.of("127.0.0.1", 8000, token="short")
    for end in ("\n", ";", " ", "&", "#", "é"):
        with pytest.raises(BadInput, match="letters, digits and"):
            AccessRules.of("127.0.0.1", 8000, token="x" * 20 + end)
    with pytest.raises(BadInput, match="expected a host name"):
        AccessRules.of("127.0.0.1", 8000, names=["ward/../x"])
    assert "192.168.0.7:8000" in AccessRules.of("192.168.0.7", 8000, token=TOKEN).hosts
    assert "[fe80::1]:8000" in AccessRules.of("fe80::1", 8000, token=TOKEN).hosts
    assert not any(name.startswith("0.0.0.0") for name in SHARED.hosts)
    assert binds_loopback("::1")
    assert not binds_loopback("::")


ADA = blind_place("s1", "Ada Ö")
ADAS = place_token(TOKEN, ADA)


@pytest.mark.parametrize("path", [f"{ADA}/", f"{ADA}/api/project", f"{ADA}/frames/V1/0"])
def test_the_token_of_a_place_opens_it(path: str) -> None:
    assert ask(SHARED, {"host": "ward.example:8000", "cookie": f"{SHARED.cookie}={ADAS}"}, path=path)[0] == 200
    assert ask(SHARED, {"host": "ward.example:8000", "cookie": f"{SHARED.cookie}={TOKEN}"}, path=path)[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/api/project", "/blind", "/blind/s1/Ada Ö", "/blind/s1/Ben/api/project", "/blind/s2/Ada Ö/api/project",
     "/x/blind/s1/Ada Ö/", "//blind/s1/Ada Ö/", "/api/project/../../blind/s1/Ada Ö/"],
)  # fmt: skip
def test_the_token_of_a_place_opens_nothing_else(path: str) -> None:
    for headers in ({"cookie": f"{SHARED.cookie}={ADAS}"}, {"authorization": f"Bearer {ADAS}"}):
        assert ask(SHARED, {"host": "ward.example:8000", **headers}, path=path)[0] == 401
    assert ask(SHARED, {"host": "ward.example:8000"}, path=path, query=f"token={ADAS}")[0] == 401


def test_a_link_to_a_place_becomes_a_cookie_of_that_place() -> None:
    status, sent, inner = ask(SHARED, {"host": "ward.example:8000"}, path=f"{ADA}/", query=f"token={ADAS}")
    assert (status, inner.reached) == (200, 0)
    assert sent[1]["body"].endswith(b'content="0; url=/blind/s1/Ada%20%C3%96/">')
    cookie = header(sent, "set-cookie") or ""
    assert f"{SHARED.cookie}={ADAS}" in cookie
    assert "Path=/blind/s1/Ada%20%C3%96" in cookie
    assert TOKEN not in cookie
    assert ask(SHARED, {"host": "ward.example:8000"}, path=f"{ADA}/api/project", query=f"token={ADAS}")[0] == 401
    assert ask(SHARED, {"host": "ward.example:8000"}, path=f"{ADA}/", query="token=guessed-guessed-guess")[0] == 401


def test_the_token_of_a_place_is_never_exchanged_for_the_token_of_the_server() -> None:
    for more in ({"cookie": f"{SHARED.cookie}={ADAS}"}, {"authorization": f"Bearer {ADAS}"}):
        _, sent, _ = ask(SHARED, {"host": "ward.example:8000", **more}, path=f"{ADA}/", query="token=another")
        assert TOKEN not in str(sent)


def test_a_link_with_the_token_opens_from_a_letter_and_the_cookie_of_an_earlier_start_does_no_harm() -> None:
    letter = {"host": "ward.example:8000", "sec-fetch-site": "cross-site"}
    assert "set-cookie" in str(ask(SHARED, letter, path="/", query=f"token={TOKEN}")[1])
    assert ask(SHARED, letter, path="/", query="token=wrong")[0] == 403
    both = {"host": "ward.example:8000", "cookie": f"{SHARED.cookie}={ADAS}; {SHARED.cookie}=of-an-earlier-start"}
    assert ask(SHARED, both, path=f"{ADA}/api/project")[0] == 200


def test_two_studios_on_one_machine_have_cookies_of_different_names() -> None:
    assert AccessRules.of("127.0.0.1", 8001).cookie != LOCAL.cookie
