"""What a detector suggests: boxes with labels, marked as proposals until somebody accepts them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surgeval.errors import BadInput
from surgeval.records import Frame, ImageRef
from surgeval.studio.schema import Schema
from surgeval.studio.store import Database, Request, apply, reading
from surgeval.vocab import LabelSpace

__all__ = ["TOOLS", "Proposal", "ProposalStretch", "add_proposals", "propose", "read_proposals"]

TOOLS = "tools"
_AT_ONCE = 5000  # instances in one operation
_MOST_SCORE = 1e6  # what a project can hold as a number, with room to spare


@dataclass(frozen=True)
class Proposal:
    """A suggested instance in one frame."""

    frame: int
    name: str
    values: dict[str, str]
    box: tuple[float, float, float, float]  # x, y, width, height
    score: float


@dataclass(frozen=True)
class ProposalStretch:
    """Where proposals go: frames of a video, and whether what the same source proposed there before gives way."""

    video: str
    first: int
    last: int
    replace: bool = False


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
    for frame, detections in detect_frames(network, shown, selecting=choice, on_skip=lambda _frame, _error: None):
        advance(1)
        for box, score, kind in zip(
            detections.boxes.tolist(), detections.scores.tolist(), detections.classes.tolist(), strict=True
        ):
            x1, y1, x2, y2 = box
            name, values = _said(space, *parts[kind].tolist())
            yield Proposal(frame.index, name, values, (x1, y1, x2 - x1, y2 - y1), score)


def read_proposals(
    path: str | Path,
    video: str,
    frames: Sequence[tuple[int, str]],
    *,
    size: tuple[int, int],
    space: LabelSpace,
    least: float = 0.0,
) -> tuple[tuple[Proposal, ...], tuple[int, str]]:
    r"""The boxes of a prediction file on a video, given by its frames (number and name), in the order of frames.

    Rows of other videos and unknown frames are left out, and so are boxes without area; the second of the pair says how
    many, and of the first one why. A file of which nothing fits is refused.

    >>> import tempfile
    >>> from surgeval.vocab import load_labels
    >>> space, row = load_labels("prostatd"), "V1,7,scissors,cut,prostate,0.9,10,12,6,8\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "found.csv"
    ...     _ = path.write_text("video,frame,instrument,verb,target,score,x,y,w,h\n" + row + row.replace("7", "8", 1))
    ...     proposals, (left, why) = read_proposals(path, "V1", [(0, "7")], size=(64, 48), space=space)
    >>> proposals[0].name, proposals[0].values, left
    ('scissors', {'action': 'cut', 'target': 'prostate'}, 1)
    """
    from surgeval.datasets import MemoryDataset, Problem
    from surgeval.datasets.predictions import read_detections

    number_of = {name: number for number, name in frames}
    told: list[Problem] = []
    known = MemoryDataset(space, (Frame(video, name, number, None, None, *size) for number, name in frames))
    table = read_detections(path, known, on_problem=told.append).table
    wrong = [str(problem) for problem in told if problem.level == "error"]
    if not len(table) and wrong:
        raise BadInput(wrong[0])
    proposals, flat = [], 0
    for row in table.sort("frame").iter_rows(named=True):
        if row["score"] < least or row["instrument"] < 0:
            continue
        if row["w"] <= 0 or row["h"] <= 0 or abs(row["score"]) > _MOST_SCORE:
            sizes = f"{row['w']:.6g} × {row['h']:.6g} pixels with the score {row['score']:.6g}"
            wrong.append(f"{video} frame {row['frame']}: found a box of {sizes}, expected one with an area")
            flat += 1
            continue
        name, values = _said(space, row["instrument"], row["verb"], row["target"])
        box = (row["x"], row["y"], row["w"], row["h"])
        proposals.append(Proposal(number_of[row["frame"]], name, values, box, row["score"]))
    if flat and flat == len(table):
        raise BadInput(wrong[-1])
    proposals.sort(key=lambda proposal: proposal.frame)
    return tuple(proposals), (len(wrong), wrong[0] if wrong else "")


def add_proposals(
    database: Database,
    stretch: ProposalStretch,
    proposals: Iterable[Proposal],
    *,
    source: str,
    author: str,
    on_stored: Callable[[], None] = lambda: None,
) -> int:
    """Put proposals, in the order of frames, into a project; how many. Each few thousand are one edit.

    Names are spelt as the project's schema does. `on_stored` hears of every edit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"{folder}/studio.sqlite")
    ...     _ = apply(database, Request("v", "amy", "video.add", {"id": "V1", "width": 64, "height": 48}))
    ...     _ = apply(database, Request("f", "amy", "frames.add", {"video": "V1", "first": 0, "names": ["a"]}))
    ...     seen = Proposal(0, "driver", {"action": "suture", "target": "fascia"}, (5.0, 6.0, 20.0, 10.0), 0.8)
    ...     count = add_proposals(database, ProposalStretch("V1", 0, 0), [seen], source="tdnet-p", author="amy")
    ...     with database.reading() as connection:
    ...         instance, = reading.instances(connection, "V1", 0)
    ...     database.close()
    >>> count, instance.proposal, instance.name, dict(instance.values)
    (1, True, 'needle driver', {'action': 'suture', 'target': 'fascias'})
    """
    with database.reading() as connection:
        schema = reading.schema(connection)
    run, count, first = uuid.uuid4().hex[:12], 0, stretch.first
    waiting: list[dict[str, Any]] = []

    def store(last: int) -> None:
        if not waiting and not stretch.replace:
            return
        payload = {"video": stretch.video, "first": first, "last": last, "source": source,
                   "replace": stretch.replace, "instances": list(waiting)}  # fmt: skip
        apply(database, Request(f"propose.{run}.{first}", author, "proposals.add", payload))
        on_stored()
        waiting.clear()

    for proposal in proposals:
        if len(waiting) >= _AT_ONCE and proposal.frame > waiting[-1]["frame"]:
            end = waiting[-1]["frame"]
            store(end)
            first = end + 1
        waiting.append(_payload(proposal, f"p.{run}.{count}", stretch.video, source, schema))
        count += 1
    store(stretch.last)
    return count


def _payload(proposal: Proposal, id: str, video: str, source: str, schema: Schema) -> dict[str, Any]:
    name = schema.spelled(TOOLS, proposal.name)
    values = {key: schema.value_spelled(TOOLS, name, key, value) for key, value in proposal.values.items()}
    return {
        "id": id, "video": video, "frame": proposal.frame, "group": TOOLS, "name": name, "box": list(proposal.box),
        "values": values, "source": source, "score": proposal.score, "proposal": True,
    }  # fmt: skip


def _said(space: LabelSpace, instrument: int, verb: int, target: int) -> tuple[str, dict[str, str]]:
    values = {"action": space.verbs[verb]} if verb >= 0 else {}
    return space.instruments[instrument], values | ({"target": space.targets[target]} if target >= 0 else {})
