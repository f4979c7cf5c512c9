"""The child process of `proposing`, which looks at frames for the studio: one request, then a line for each proposal.

Torch and untrusted files stay out of the server, which may end this process at any moment. Every line of both is one
JSON object.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from surgeval.errors import SurgevalError
from surgeval.records import ImageRef
from surgeval.studio.proposals import Proposal, propose, read_proposals
from surgeval.vocab import load_labels

_POLITE = 10  # below the page, which somebody waits for
Say: TypeAlias = Callable[..., None]


def main(requests: BinaryIO, replies: BinaryIO) -> None:
    """Look at the requested frames and write the proposals."""
    say = partial(_say, replies)
    with suppress(OSError):
        os.nice(_POLITE)
    request = json.loads(requests.readline())
    try:
        if request["predictions"]:
            _read(request, say)
        else:
            _look(request, say)
    except SurgevalError as error:
        say(error=str(error))


def _look(request: dict[str, Any], say: Say) -> None:
    frames = [(number, ImageRef(Path(path), index)) for number, _, path, index in request["frames"]]
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        say(done=done)

    size = (request["size"][0], request["size"][1])
    for proposal in propose(
        request["detector"], frames, size=size, device=_device(), least=request["least"], advance=advance
    ):
        _tell(proposal, say)


def _read(request: dict[str, Any], say: Say) -> None:
    path, wanted = request["predictions"], {number for number, _, _, _ in request["frames"]}
    size = (request["size"][0], request["size"][1])
    proposals, (left, why) = read_proposals(
        path, request["video"], list(enumerate(request["names"])), size=size, space=load_labels(request["space"]),
        least=request["least"],
    )  # fmt: skip
    say(left=left, why=why.replace(path, Path(path).name))
    for proposal in proposals:
        if proposal.frame in wanted:
            _tell(proposal, say)
    say(done=len(wanted))


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _tell(proposal: Proposal, say: Say) -> None:
    say(found=[proposal.frame, proposal.name, proposal.values, list(proposal.box), proposal.score])


def _say(replies: BinaryIO, **told: Any) -> None:
    replies.write(json.dumps(told).encode() + b"\n")
    replies.flush()
