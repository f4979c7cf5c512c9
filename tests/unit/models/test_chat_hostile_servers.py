"""Whatever a server does costs its question: nothing hangs, nothing fills the memory, nothing ends in a traceback."""

from __future__ import annotations

import json
import socket
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.models.wire import ASKED, Wire, reply, response

from surgeval.errors import BadInput
from surgeval.models.chat import OpenAIChat
from surgeval.models.chat.client import FailedReply, read_error, read_reply, read_retry_after
from surgeval.qa import ChatJudge, JudgeItem, Reply

ITEM = JudgeItem("q", "Which object?", "clip", "a clip")


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as running:
        yield running


def endless(wire: Wire, head: bytes, again: bytes, pause: float) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        connection.sendall(head)
        while not wire.over.wait(pause):
            connection.sendall(again)

    return script


@pytest.mark.parametrize(
    ("head", "again"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-Drip: ", b"1"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_headers_that_never_end_are_given_up_at_the_time_out(wire: Wire, head: bytes, again: bytes) -> None:
    wire.script = endless(wire, head, again, 0.05)
    began = time.monotonic()
    assert "no reply in 0.4 s (2 tries)" in wire.failure(timeout=0.4, tries=2)
    assert time.monotonic() - began < 60


def test_a_flood_of_continue_ends_at_the_time_out_or_at_the_size(wire: Wire) -> None:
    wire.script = endless(wire, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4000, 0.0)
    began = time.monotonic()
    said = wire.failure(timeout=2)
    assert "no reply in 2 s" in said or "more than 33554432 bytes" in said
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("head", [b"Transfer-Encoding: chunked", b"Content-Length: 3000000000"])
def test_a_body_that_drips_is_given_up_at_the_time_out(wire: Wire, head: bytes) -> None:
    again = b"1\r\nx\r\n" if head.startswith(b"T") else b"x"
    wire.script = endless(wire, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", again, 0.05)
    assert "a reply that did not end in 0.4 s" in wire.failure(timeout=0.4)


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 160 * 2**20
    finally:
        tracemalloc.stop()


@cache
def bomb(window: int) -> bytes:
    """Half a gigabyte of zeros in half a megabyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(512)) + packer.flush()


@pytest.mark.parametrize("size", [b"-1", b"FFFFFFFFFFFF"])
def test_no_size_that_a_chunk_claims_fills_the_memory(wire: Wire, size: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n"
    wire.script = endless(wire, head, b"x" * 2**20, 0.0)
    with little_memory():
        said = wire.failure(timeout=60)
    assert "more than 33554432 bytes (1 try)" in said


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_reply_is_refused_before_it_is_unpacked(wire: Wire, encoding: str) -> None:
    body = bomb(31 if "gzip" in encoding else 15)
    wire.script = lambda connection: connection.sendall(response(200, body, Content_Encoding=encoding))
    with little_memory():
        said = wire.failure()
    assert f"a compressed reply ({encoding}), which was not asked for (1 try)" in said
    assert b"Accept-Encoding: identity" in wire.requests[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/9.9 900 \xff\r\n\r\n",
     b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500,
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
     b"HTTP/1.1 -1 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n{}", b"HTTP/1.1 " + b"2" * 70000],
)  # fmt: skip
def test_what_is_no_http_is_a_failure_in_one_short_sentence(wire: Wire, data: bytes) -> None:
    wire.script = lambda connection: connection.sendall(data)
    said = wire.failure()
    assert said.startswith(f"m at {wire.url}: ")
    assert said.endswith("(1 try)")
    assert len(said) < 300


COUNTS = [2**63, 2**64, 10**400, -1, 1.5, True, "12", None, [1], {}]


@pytest.mark.parametrize("count", COUNTS)
def test_a_token_count_that_is_none_counts_as_untold(wire: Wire, count: object) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 7}
    wire.script = lambda connection: connection.sendall(reply("CORRECT", usage=usage))
    got = wire.chat().complete(ASKED)
    assert (got.text, got.prompt_tokens, got.completion_tokens) == ("CORRECT", 0, 7)


ERRORS: list[object] = [
    {"param": ["max_tokens"], "code": "unsupported_parameter"}, {"param": {}, "code": ["unsupported"]}, ["no"], 7, "no",
    {"message": ["x"] * 100_000}, {"message": "x" * 2**20}, {"code": {"unsupported": 1}, "param": "temperature"}, None,
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_any_shape_is_a_failed_vote_with_a_short_reason(wire: Wire, status: int, error: object) -> None:
    wire.script = lambda connection: connection.sendall(response(status, json.dumps({"error": error})))
    vote = ChatJudge("judge", wire.chat()).vote(ITEM)
    assert vote.state == "error"
    assert 0 < len(vote.reason) < 400


def test_a_reply_that_a_content_filter_cut_is_no_verdict(wire: Wire) -> None:
    wire.script = lambda connection: connection.sendall(reply("CORRECT", finish_reason="content_filter"))
    vote = ChatJudge("judge", wire.chat()).vote(ITEM)
    assert (vote.state, vote.reason) == ("error", "the server's content filter withheld the reply")
    refusal = json.dumps({"error": {"code": "content_filter", "message": "no"}})
    wire.script = lambda connection: connection.sendall(response(400, refusal))
    assert ChatJudge("judge", wire.chat()).vote(ITEM).reason == vote.reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_other_server_hears_nothing(wire: Wire, status: int) -> None:
    with Wire() as other:
        wire.script = lambda connection: connection.sendall(
            response(status, Location=f"http://127.0.0.1:{other.port}/v1/chat/completions?key=1")
        )
        said = wire.failure(tries=3)
        assert f"HTTP {status}, a redirect to http://127.0.0.1:{other.port}, which is not followed" in said
        assert said.endswith("(1 try)")
        assert (len(wire.requests), other.requests) == (1, [])


@pytest.mark.parametrize("location", ["/v2", "//", "http://[", "http://h:x/", "ftp://other", "\xff", ""])
def test_a_redirect_to_anywhere_is_one_sentence(wire: Wire, location: str) -> None:
    wire.script = lambda connection: connection.sendall(response(307, Location=location))
    assert "HTTP 307, a redirect to " in wire.failure()


def test_the_name_of_another_server_is_not_repeated(wire: Wire) -> None:
    wire.script = lambda connection: connection.sendall(response(307, Location="http://any-text.example/v1"))
    assert "a redirect to another server, which is not followed" in wire.failure()


PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with Wire() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://me:proxy-password@127.0.0.1:{proxy.port}")
        yield proxy


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0"])
def test_a_server_on_this_machine_is_asked_without_the_proxy(wire: Wire, proxied: Wire, host: str) -> None:
    OpenAIChat("m", f"http://{host}:{wire.port}/v1").complete(ASKED)
    assert (len(wire.requests), proxied.requests) == (1, [])


def test_a_named_remote_server_is_asked_through_the_proxy(proxied: Wire) -> None:
    got = OpenAIChat("m", "http://far.example:81/v1").complete(ASKED)
    head = proxied.requests[0].decode()
    assert got.text == "CORRECT"
    assert head.startswith("POST http://far.example:81/v1/chat/completions HTTP/1.1\r\n")
    assert head.count("Host:") == 1
    assert "\r\nHost: far.example:81\r\n" in head
    assert "Proxy-Authorization: Basic bWU6cHJveHktcGFzc3dvcmQ=" in head


def test_a_secure_server_is_reached_through_a_tunnel(proxied: Wire) -> None:
    proxied.script = lambda connection: connection.sendall(response(403, "me:proxy-password may not"))
    chat = OpenAIChat("m", "https://far.example/v1", Wire.chat(proxied)._options)
    with pytest.raises(Exception, match="Tunnel connection failed: 403"):
        chat.complete(ASKED)
    assert proxied.requests[0].startswith(b"CONNECT far.example:443 ")
    assert b"Proxy-Authorization: Basic " in proxied.requests[0]
    assert b"Authorization: Bearer" not in proxied.requests[0]


@pytest.mark.parametrize("url", ["ftp://h/v1", "h/v1", "http://", "http://h:x/v1", "http://u:pw@h/v1", "http://h /v1"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadInput, match=r"address of the|server address"):
        OpenAIChat("m", url)


def test_a_proxy_of_another_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    with pytest.raises(Exception, match="a proxy of the kind 'socks5'; only http proxies are supported"):
        OpenAIChat("m", "http://far.example/v1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "usage", "prompt_tokens", "error", "param", "finish_reason"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_reading_a_body_never_raises(body: object) -> None:
    data = json.dumps(body).encode()
    got = read_reply(data)
    assert isinstance(got, Reply | FailedReply)
    assert isinstance(read_error(data), dict)


def test_a_body_that_nests_too_deep_is_no_reply() -> None:
    body = b'{"choices": [{"message": {"content": "yes"}}], "more": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert isinstance(read_reply(body), FailedReply)
    assert read_error(body) == {}


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_a_wish_to_wait_is_seconds_or_nothing(value: str) -> None:
    wish = read_retry_after({"retry-after": value})
    assert wish is None or wish >= 0


def test_dates_beyond_the_calendar_are_no_wish() -> None:
    assert read_retry_after({"retry-after": "Wed, 21 Oct 99999999999 07:28:00 GMT"}) is None


@pytest.mark.parametrize(("max_tokens", "longest"), [(16, 65_536), (512, 65_536), (8_000, 256_000)])
def test_a_message_much_longer_than_asked_for_is_no_reply(max_tokens: int, longest: int) -> None:
    def told(size: int) -> bytes:
        return json.dumps({"choices": [{"message": {"content": "x" * size}}]}).encode()

    assert isinstance(read_reply(told(longest), max_tokens), Reply)
    failed = read_reply(told(longest + 1), max_tokens)
    assert isinstance(failed, FailedReply)
    assert f"at most {longest} are accepted" in failed.problem
    assert not failed.transient
