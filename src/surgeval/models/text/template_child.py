"""The child process of `_template`: fills in chat templates, so that what never ends or takes all memory does so here.

One request a line, one reply a line, both JSON. Memory is bounded for good, the processor's time for each request: one
that takes longer ends the child. Where the system has no such limits, only the parent's clock is left.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from transformers.utils.chat_template_utils import render_jinja_template

from surgeval.processes import limit_memory

_MEMORY = 1 << 30  # bytes more than the child has


def main(requests: BinaryIO, replies: BinaryIO) -> None:
    """Say that the child is ready, then answer requests until the parent ends."""
    limit_memory(_MEMORY)
    replies.write(b'"ready"\n')
    replies.flush()
    for line in requests:
        request = json.loads(line)
        _bound_time(request["seconds"])
        reply = json.dumps(_filled(request)).encode()
        _bound_time(0)
        replies.write(reply + b"\n")
        replies.flush()


def _filled(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        texts = render_jinja_template(
            request["conversations"],
            chat_template=request["template"],
            add_generation_prompt=True,
            **request["settings"],
        )[0]
        longest = max(map(len, texts))
        if longest > request["longest"]:
            return {"problem": f"a conversation of {longest} characters"}
        if not all(text.strip() for text in texts):
            return {"problem": "a conversation without text"}
    except MemoryError:
        return {"problem": f"more than {_MEMORY >> 20} MB of memory"}
    except Exception as error:  # a template raises what it likes  # noqa: BLE001
        return {"problem": str(error)[:1000] or type(error).__name__}
    return {"texts": texts}


def _bound_time(seconds: float) -> None:
    """End this process after so many seconds of the processor, in whatever C code it is; 0 takes the limit away.

    `RLIMIT_CPU` would count all that the child has ever done.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
