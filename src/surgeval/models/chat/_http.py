"""An HTTP client for replies of bounded length and duration.

The client's own time-out is about one silence: a server that sends a byte now and then, or never stops sending, would
hold a run for ever. Here the body of a reply, whatever its status, has one time-out and a size it may not exceed. The
HTTP package is reached only through `openai`: which one that is depends on its version.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["EndlessReply", "bounded_client"]

LONGEST = 32 * 2**20  # bytes on the wire; an honest reply of 100 000 tokens has about half a million


class EndlessReply(Exception):
    """The server went on for longer than any reply may; `again` says whether it is worth asking again."""

    def __init__(self, problem: str, *, again: bool) -> None:
        super().__init__(problem)
        self.again = again


def bounded_client(timeout: float, longest: int = LONGEST) -> Any:
    """The usual client (proxies of the environment included), with replies that end."""
    import openai

    def bound(response: Any) -> None:
        body = b"".join(_bounded(response.stream, timeout, longest))
        response.stream.close()
        response.stream = type(response)(200, content=body).stream

    return openai.DefaultHttpxClient(timeout=timeout, event_hooks={"response": [bound]})


def _bounded(chunks: Iterable[bytes], timeout: float, longest: int) -> Iterator[bytes]:
    until, size = time.monotonic() + timeout, 0
    for chunk in chunks:
        size += len(chunk)
        if size > longest:
            raise EndlessReply(f"a reply of more than {longest} bytes", again=False)
        if time.monotonic() > until:
            raise EndlessReply(f"a reply that did not end in {timeout:g} s", again=True)
        yield chunk
