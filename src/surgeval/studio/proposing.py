"""Proposals as a job: a detector or a prediction file on a stretch of a video, looked at by a program of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from surgeval.errors import BadInput, RunError, visible
from surgeval.processes import LimitedProcess
from surgeval.records import ImageRef
from surgeval.studio.jobs import BackgroundJob
from surgeval.studio.proposals import Proposal, ProposalStretch, add_proposals
from surgeval.studio.store import Database, VideoState

__all__ = ["Looking", "propose_as_job"]

_MODULE = "surgeval.studio.looking_child"
_LONGEST = 1 << 20  # bytes of a line
_LAST_WORDS = 4000


@dataclass(frozen=True)
class Looking:
    """Who looks at what: a detector (a name or a path), or a prediction file with the label space of its ids."""

    video: VideoState
    frames: Sequence[tuple[int, str, ImageRef]]  # number, name and picture
    source: str  # the name that its proposals carry
    detector: str = ""
    predictions: str = ""
    space: str = ""
    names: Sequence[str] = ()  # of all frames of the video, by number: rows of a file are found by them
    least: float = 0.25


def propose_as_job(
    job: BackgroundJob,
    looking: Looking,
    *,
    database: Database,
    author: str,
    replace: bool,
    on_stored: Callable[[], None],
) -> None:
    """Look, and store what was seen; ended early, what was stored until then stays."""
    first, last = looking.frames[0][0], looking.frames[-1][0]
    job.report(total=len(looking.frames), found=0)
    count = 0

    def counted() -> Iterator[Proposal]:
        nonlocal count
        for proposal in _seen(job, looking):
            count += 1
            job.report(found=count)
            yield proposal

    stretch = ProposalStretch(looking.video.id, first, last, replace)
    add_proposals(database, stretch, counted(), source=looking.source, author=author, on_stored=on_stored)


def _seen(job: BackgroundJob, looking: Looking) -> Iterator[Proposal]:
    """What the program says, as it says it."""
    job.go_on()
    with tempfile.TemporaryFile() as words:
        child = LimitedProcess(_MODULE, stderr=words)
        job.on_stop(child.kill)
        try:
            _ask(child.requests, looking)
            error = ""
            while line := child.replies.readline(_LONGEST):
                told = json.loads(line)
                error = told.get("error", error)
                if "found" in told:
                    yield _proposal(told["found"])
                if "done" in told:
                    job.report(done=told["done"])
                if "left" in told:
                    job.report(left=told["left"], why=told["why"])
            status = child.wait()
        finally:
            job.on_stop(None)
            child.kill()
            child.close()
        job.go_on()
        if error:
            raise BadInput(error)
        if status != 0:
            raise RunError(f"{looking.source}: found that looking ended with status {status} ({_last(words)}), "
                           "expected it to come to its end")  # fmt: skip


def _ask(stream: IO[bytes], looking: Looking) -> None:
    question: Mapping[str, Any] = {
        "detector": looking.detector, "predictions": looking.predictions, "space": looking.space,
        "video": looking.video.name, "size": [looking.video.width, looking.video.height], "least": looking.least,
        "names": list(looking.names),
        "frames": [[number, name, str(ref.path), ref.frame] for number, name, ref in looking.frames],
    }  # fmt: skip
    try:
        stream.write(json.dumps(question).encode() + b"\n")
        stream.close()
    except BrokenPipeError:
        return  # it has ended already: what it said says why


def _proposal(told: Sequence[Any]) -> Proposal:
    frame, name, values, (x, y, w, h), score = told
    return Proposal(frame, name, values, (x, y, w, h), score)


def _last(words: IO[bytes]) -> str:
    """The last line of what a program complained of."""
    words.seek(0, 2)
    words.seek(max(words.tell() - _LAST_WORDS, 0))
    lines = words.read().decode("utf-8", "replace").split("\n")
    return visible(next((line.strip() for line in reversed(lines) if line.strip()), "no word"))[:300]
