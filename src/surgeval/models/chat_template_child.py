"""The child process of `chat_template`: renders chat templates under limits of memory and time.

It reads one request a line and writes one reply a line, both JSON. Memory is limited for the whole process, processor
time for each request: one that takes longer ends the child. On a system without such limits only the parent's clock
remains.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from transformers.utils.chat_template_utils import render_jinja_template

from surgeval.processes import limit_memory

_MEMORY = 1 << 30  # bytes in addition to what the child uses at its start


def main(requests: BinaryIO, replies: BinaryIO) -> None:
    """Write that the child is ready, then answer requests until the parent closes the pipe."""
    limit_memory(_MEMORY)
    replies.write(b'"ready"\n')
    replies.flush()
    for line in requests:
        request = json.loads(line)
        _limit_seconds(request["seconds"])
        reply = json.dumps(_render(request)).encode()
        _limit_seconds(0)
        replies.write(reply + b"\n")
        replies.flush()


def _render(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        texts = render_jinja_template(
            request["conversations"],
            chat_template=request["template"],
            add_generation_prompt=True,
            **request["settings"],
        )[0]
        longest = max(map(len, texts))
        if longest > request["longest"]:
            return {"problem": f"the template makes a text of {longest} characters; the limit is {request['longest']}"}
        if not all(text.strip() for text in texts):
            return {"problem": "the template makes an empty text"}
    except MemoryError:
        return {"problem": f"the template needs more than {_MEMORY >> 20} MB of memory"}
    except Exception as error:  # a template can raise anything  # noqa: BLE001
        return {"problem": str(error)[:1000] or type(error).__name__}
    return {"texts": texts}


def _limit_seconds(seconds: float) -> None:
    """End this process after so many seconds of processor time, even inside C code; 0 removes the limit.

    `RLIMIT_CPU` would count the time of earlier requests too.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
