"""The child process of `_template`: fills in chat templates, so that what never ends or takes all memory does so here.

Started as `python _template_child.py MEMORY`: one request a line on standard input, one reply a line on standard
output, both JSON. Memory is bounded for good, the processor's time for each request: one that takes longer ends the
child. Where the system has no such limits, only the parent's clock is left.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def main(memory: int) -> None:
    """Say that the child is ready, then answer requests until the parent ends."""
    replies, sys.stdout = sys.stdout.buffer, sys.stderr  # whatever a library prints is no reply
    from transformers.utils.chat_template_utils import render_jinja_template

    _bound_memory(memory)
    replies.write(b'"ready"\n')
    replies.flush()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        _bound_time(request["seconds"])
        reply = json.dumps(_filled(render_jinja_template, request, memory)).encode()
        _bound_time(0)
        replies.write(reply + b"\n")
        replies.flush()


def _filled(render: Any, request: Mapping[str, Any], memory: int) -> dict[str, Any]:
    try:
        texts = render(
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
        return {"problem": f"more than {memory >> 20} MB of memory"}
    except Exception as error:  # a template raises what it likes  # noqa: BLE001
        return {"problem": str(error)[:1000] or type(error).__name__}
    return {"texts": texts}


def _bound_memory(more: int) -> None:
    """Refuse memory beyond what the process has and so many bytes."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + more
    for kind, most in ((resource.RLIMIT_AS, wanted), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _bound_time(seconds: float) -> None:
    """End this process after so many seconds of the processor, in whatever C code it is; 0 takes the limit away.

    `RLIMIT_CPU` would count all that the child has ever done.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]))
