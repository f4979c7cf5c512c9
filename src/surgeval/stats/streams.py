"""One independent random stream per (seed, names).

Every interval draws from its own generator, so adding a slice, a bucket or a model never moves the interval of
another. The stream is PCG64 seeded with the SHA-256 of the seed and the names: the same bits on every machine and
in every version. Draws are made from `Generator.random` wherever speed allows, the method NumPy is least likely to
change.
"""

from __future__ import annotations

import hashlib

import numpy as np

from surgeval.errors import BadInput

__all__ = ["stream"]


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of `(seed, *names)`; equal arguments give equal draws, any other argument an unrelated stream.

    Each part is hashed with its type and length, so ("ab", "c") and ("a", "bc"), or 1 and "1", differ.

    >>> stream(0, "overall").random(3).round(6).tolist()
    [0.072246, 0.220494, 0.501078]
    >>> stream(0, "overall").random() == stream(0, "overall").random() != stream(0, "leaf", "2a").random()
    True
    """
    digest = hashlib.sha256(b"surgeval.stats.stream/1")
    for part in (seed, *names):
        if isinstance(part, bool) or not isinstance(part, (int, str, np.integer)):
            raise BadInput(f"stream: found {part!r}, expected a whole number or text as seed and names")
        kind, text = (b"s", part) if isinstance(part, str) else (b"i", str(int(part)))
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(kind + len(raw).to_bytes(8, "big") + raw)
    words = np.frombuffer(digest.digest(), dtype=">u4").astype(np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words.tolist())))
