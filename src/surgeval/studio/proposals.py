"""What a detector suggests: boxes with labels, marked as proposals until somebody accepts them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.records import Frame, ImageRef
from surgeval.studio.store import Database, Request, apply

__all__ = ["TOOLS", "Proposal", "add_proposals", "propose"]

TOOLS = "tools"
_AT_ONCE = 2000  # instances in one operation


@dataclass(frozen=True)
class Proposal:
    """A suggested instance in one frame."""

    frame: int
    name: str
    values: dict[str, str]
    box: tuple[float, float, float, float]  # x, y, width, height
    score: float


def propose(
    detector: str | Path,
    frames: Sequence[tuple[int, ImageRef]],
    *,
    size: tuple[int, int],
    device: str = "cpu",
    least: float = 0.25,
    advance: Callable[[int], None] = lambda _count: None,
) -> Iterator[Proposal]:
    """What a detector sees on frames (number and picture) of one video: one box per instrument, with its best triplet.

    A frame that cannot be read has no proposals. Needs torch.
    """
    from dataclasses import replace

    from surgeval.detector.inference import detect_frames, open_detector
    from surgeval.detector.nms import SELECTING

    network = open_detector(detector, device=device)
    space, parts = network.classes.space, network.classes.parts
    shown = (Frame("video", str(number), number, None, ref, *size) for number, ref in frames)
    choice = replace(SELECTING["viewer"], confidence=least)
    for frame, found in detect_frames(network, shown, selecting=choice, on_skip=lambda _frame, _error: None):
        advance(1)
        for box, score, kind in zip(found.boxes.tolist(), found.scores.tolist(), found.classes.tolist(), strict=True):
            instrument, verb, target = parts[kind].tolist()
            values = {"action": space.verbs[verb], "target": space.targets[target]} if verb >= 0 else {}
            x1, y1, x2, y2 = box
            yield Proposal(frame.index, space.instruments[instrument], values, (x1, y1, x2 - x1, y2 - y1), score)


def add_proposals(database: Database, video: str, found: Iterable[Proposal], *, source: str, author: str) -> int:
    """Put proposals into a project, beside what is there; how many. Each thousand or two is one edit.

    >>> import tempfile
    >>> from surgeval.studio.store import reading
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a"]}))
    ...     seen = Proposal(0, "scissors", {"action": "cut", "target": "fascias"}, (5.0, 6.0, 20.0, 10.0), 0.8)
    ...     count = add_proposals(database, "V1", [seen], source="tdnet-p", author="amy")
    ...     with database.reading() as connection:
    ...         count, reading.instances(connection, "V1", 0)[0].proposal
    ...     database.close()
    (1, True)
    """
    run, count = uuid.uuid4().hex[:12], 0
    waiting: list[dict[str, Any]] = []

    def store() -> None:
        apply(database, Request(f"propose.{run}.{count}", author, "instances.add", {"instances": list(waiting)}))
        waiting.clear()

    for one in found:
        waiting.append({
            "id": f"p.{run}.{count}", "video": video, "frame": one.frame, "group": TOOLS, "name": one.name,
            "box": list(one.box), "values": one.values, "source": source, "score": one.score, "proposal": True,
        })  # fmt: skip
        count += 1
        if len(waiting) == _AT_ONCE:
            store()
    if waiting:
        store()
    return count
