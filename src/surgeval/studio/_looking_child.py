"""A program of its own that looks at frames for the studio: what to look at on its input, what it sees on its output.

Torch and the files of strangers stay out of the server, which may end this program at any moment. Every line of both
is one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from surgeval.errors import SurgevalError
from surgeval.records import ImageRef
from surgeval.studio.proposals import Proposal, propose, read_proposals
from surgeval.vocab import load_labels

_POLITE = 10  # below the page, which somebody waits for


def main() -> int:
    """Look, and say what was seen."""
    with suppress(OSError):
        os.nice(_POLITE)
    given = json.loads(sys.stdin.readline())
    try:
        if given["predictions"]:
            _read(given)
        else:
            _look(given)
    except SurgevalError as error:
        _say(error=str(error))
        return 2
    except BrokenPipeError:  # the server is gone
        return 1
    return 0


def _look(given: dict[str, Any]) -> None:
    frames = [(number, ImageRef(Path(path), index)) for number, _, path, index in given["frames"]]
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        _say(done=done)

    size = (given["size"][0], given["size"][1])
    for one in propose(given["detector"], frames, size=size, device=_device(), least=given["least"], advance=advance):
        _found(one)


def _read(given: dict[str, Any]) -> None:
    path, wanted = given["predictions"], {number for number, _, _, _ in given["frames"]}
    size = (given["size"][0], given["size"][1])
    found, (left, why) = read_proposals(
        path, given["video"], list(enumerate(given["names"])), size=size, space=load_labels(given["space"]),
        least=given["least"],
    )  # fmt: skip
    _say(left=left, why=why.replace(path, Path(path).name))
    for one in found:
        if one.frame in wanted:
            _found(one)
    _say(done=len(wanted))


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _found(one: Proposal) -> None:
    _say(found=[one.frame, one.name, one.values, list(one.box), one.score])


def _say(**told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
