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
    request = json.loads(sys.stdin.readline())
    try:
        if request["predictions"]:
            _read(request)
        else:
            _look(request)
    except SurgevalError as error:
        _say(error=str(error))
        return 2
    except BrokenPipeError:  # the server is gone
        return 1
    return 0


def _look(request: dict[str, Any]) -> None:
    frames = [(number, ImageRef(Path(path), index)) for number, _, path, index in request["frames"]]
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        _say(done=done)

    size = (request["size"][0], request["size"][1])
    for proposal in propose(
        request["detector"], frames, size=size, device=_device(), least=request["least"], advance=advance
    ):
        _tell(proposal)


def _read(request: dict[str, Any]) -> None:
    path, wanted = request["predictions"], {number for number, _, _, _ in request["frames"]}
    size = (request["size"][0], request["size"][1])
    proposals, (left, why) = read_proposals(
        path, request["video"], list(enumerate(request["names"])), size=size, space=load_labels(request["space"]),
        least=request["least"],
    )  # fmt: skip
    _say(left=left, why=why.replace(path, Path(path).name))
    for proposal in proposals:
        if proposal.frame in wanted:
            _tell(proposal)
    _say(done=len(wanted))


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _tell(proposal: Proposal) -> None:
    _say(found=[proposal.frame, proposal.name, proposal.values, list(proposal.box), proposal.score])


def _say(**told: Any) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
