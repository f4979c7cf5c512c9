"""The child process of `_parquet`: reads Parquet files once, so that whatever breaks breaks here.

One request a line on standard input, a JSON list of FILE, MEMORY and BYTES: the file is read with at most MEMORY bytes
of address space, up to BYTES of decoded values. One reply a line: what is wrong with it as JSON text, empty if nothing.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_MAX_DEPTH = 16  # of lists and structures in one column
_TOO_DEEP = "columns that are nested too deeply"


def main() -> None:
    """Answer requests until there are no more."""
    replies, sys.stdout = sys.stdout.buffer, sys.stderr  # whatever a library prints is no reply
    for line in sys.stdin.buffer:
        replies.write(json.dumps(_tried(*json.loads(line))).encode() + b"\n")
        replies.flush()


def _tried(path: str, memory: int, most: int) -> str:
    """What is wrong with the file; empty where it can be read."""
    if sys.platform != "win32":
        import resource

        for kind, wanted in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    import polars as pl

    total = 0
    try:
        table = pl.scan_parquet(path, glob=False)
        if max((_depth(kind) for kind in table.collect_schema().values()), default=0) > _MAX_DEPTH:
            return _TOO_DEEP
        for batch in table.collect_batches(maintain_order=False):
            total += int(batch.estimated_size()) + 8 * batch.height
            if total > most:
                return f"values of more than {most >> 20} MB in a file of this size"
    except RecursionError:
        return _TOO_DEEP
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    return ""


def _depth(kind: Any) -> int:
    """How many lists and structures this type holds in one another, at most one more than is allowed."""
    level, depth = [kind], 0
    while level and depth <= _MAX_DEPTH:
        depth += 1
        inner = [[field.dtype for field in getattr(outer, "fields", ())] for outer in level]
        level = [kind for kinds in inner for kind in kinds] + [o.inner for o in level if hasattr(o, "inner")]
    return depth


if __name__ == "__main__":
    main()
