"""Boxes from one dataset for the triplets of another: CholecT45/T50 frames with the boxes of Cholec80-BBox.

Videos are paired by number (`VID42` is `video42`), frames by time, boxes by instrument class. The two were labelled by
different people, so they disagree: what one has and the other has not is told and counted, never dropped in silence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import ClassVar

from surgeval.datasets.base import Dataset, left_out
from surgeval.errors import BadInput
from surgeval.files import Location, OnProblem, raise_errors
from surgeval.records import UNKNOWN, Box, Frame, Instance, Question, Triplet, Video

NEAR = 0.1  # of a frame step: how far two times may lie apart and still be the same frame
_SHIFTS = (-2, -1, 1, 2)  # frames by which the boxes might be off
_NUMBERED = re.compile(r"vid(?:eo)?[ _-]*0*(\d{1,9})", re.IGNORECASE)
_DIGITS = re.compile(r"0*(\d{1,9})\D*$")


@dataclass(frozen=True, slots=True)
class JoinCounts:
    """What came of a join, over the videos read so far.

    `paired` instances got a box, `ambiguous` of them by order alone; `unboxed` instruments of the triplets have none,
    `unexplained` boxes belong to no triplet (they stay, as instruments without verb and target), `outside` boxes are
    of a class that the triplets do not know and are left out.
    """

    frames: int = 0
    frames_with: int = 0  # for which the other dataset has a labelled frame
    paired: int = 0
    ambiguous: int = 0
    unboxed: int = 0
    unexplained: int = 0
    outside: int = 0
    own: int = 0  # frames that had boxes already and kept them


class JoinedBoxes:
    """A dataset whose instances take their boxes from another one."""

    format: ClassVar[str] = "joined"

    def __init__(self, source: Dataset, boxes: Dataset, shift: int = 0) -> None:
        self.root, self.space = source.root, source.space
        self.beside = (boxes.root, *getattr(source, "beside", ()), *getattr(boxes, "beside", ()))
        self._source, self._boxes, self._shift = source, boxes, shift
        self._classes = [source.space.find_name("instrument", name) for name in boxes.space.instruments]
        if max(self._classes) < 0:
            raise BadInput(
                f"{boxes.root}: found boxes of {', '.join(boxes.space.instruments)[:120]}, "
                f"expected instruments of {source.space.name}: {', '.join(source.space.instruments)[:120]}"
            )
        self._counts: dict[str, Counter[str]] = {}
        self._partners: dict[str, tuple[Video, Video]] | None = None

    @property
    def counts(self) -> JoinCounts:
        """The sums over the videos whose frames have been read to the end."""
        total = sum(self._counts.values(), Counter())
        return JoinCounts(**{item.name: total[item.name] for item in fields(JoinCounts)})

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        """Those of the triplets, with or without boxes (`boxed` names the ones with)."""
        videos = self._source.videos(on_problem)
        self._boxes.videos(on_problem)
        for video in videos:
            if video.name not in self._pairs():
                place = Location(str(self._boxes.root), on_problem, f"video {video.name}")
                place.warn("frame-unboxed", "found no video of this number, expected boxes for every video")
        return videos

    @property
    def boxed(self) -> tuple[str, ...]:
        """The videos for which the other dataset has boxes."""
        return tuple(self._pairs())

    def _pairs(self) -> dict[str, tuple[Video, Video]]:
        """A video of the triplets and that of the boxes, by name: the one of the same name, else of the same number."""
        if self._partners is None:
            theirs = self._boxes.videos(lambda _: None)
            by_name = {video.name: video for video in theirs}
            by_number: dict[int | None, list[Video]] = defaultdict(list)
            for video in theirs:
                by_number[video_number(video.name)].append(video)
            self._partners = {}
            for video in self._source.videos(lambda _: None):
                number = video_number(video.name)
                same = by_number[number] if number is not None else []
                if video.name not in by_name and len(same) > 1:
                    names = " and ".join(other.name for other in same[:3])
                    raise BadInput(f"{self._boxes.root}: found {names} for {video.name}, expected one video per number")
                partner = by_name.get(video.name) or (same[0] if same else None)
                if partner:
                    self._partners[video.name] = (video, partner)
        return self._partners

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        """Frames of the source; instances get a box, and boxes that no triplet explains follow them."""
        if video not in self._pairs():
            yield from self._source.frames(video, on_problem)
            return
        own, partner = self._pairs()[video]
        rate = own.fps or 1.0
        theirs = self._labelled(partner, rate, on_problem)
        counts, met = Counter[str](), dict[int, frozenset[int]]()
        for frame in self._source.frames(video, on_problem):
            key = round(frame.time * rate) if frame.time is not None else frame.index
            if not frame.labelled:
                yield frame
                continue
            met[key] = frozenset(instance.triplet.instrument for instance in frame.instances) - {UNKNOWN}
            counts["frames"] += 1
            other = theirs.get(key + self._shift)
            mine = any(instance.box for instance in frame.instances)
            counts["own"] += mine
            if other is None or mine:
                yield frame
                continue
            counts["frames_with"] += 1
            place = Location(str(self._boxes.root), on_problem, f"{video} frame {frame.name}")
            yield replace(frame, instances=tuple(self._take(frame, other, counts, place)))
        self._counts[video] = counts
        self._tell(theirs, met, counts, Location(str(self._boxes.root), on_problem, f"video {video}"))

    def _labelled(self, partner: Video, rate: float, on_problem: OnProblem) -> dict[int, Frame]:
        """The frames of the boxes by the number that their moment has among the triplets' frames."""
        result: dict[int, tuple[float, Frame]] = {}
        for frame in self._boxes.frames(partner.name, on_problem):
            at = frame.time * rate if frame.time is not None else float(frame.index)
            key = round(at)
            if frame.labelled and abs(at - key) <= NEAR and abs(at - key) < result.get(key, (1.0, frame))[0]:
                result[key] = (abs(at - key), frame)
        return {key: frame for key, (_, frame) in result.items()}

    def _take(self, frame: Frame, other: Frame, counts: Counter[str], place: Location) -> Iterator[Instance]:
        offered: dict[int, list[Box]] = defaultdict(list)
        for instance in other.instances:
            number = self._classes[instance.triplet.instrument] if instance.triplet.instrument != UNKNOWN else UNKNOWN
            if instance.box and number == UNKNOWN:
                counts["outside"] += 1
            elif instance.box:
                offered[number].append(_scaled(instance.box, frame.width / other.width, frame.height / other.height))
        wanted = Counter(instance.triplet.instrument for instance in frame.instances)
        several = {number for number in wanted if max(wanted[number], len(offered.get(number, ()))) > 1}
        unboxed: Counter[int] = Counter()
        for instance in frame.instances:
            number = instance.triplet.instrument
            if not offered.get(number):
                unboxed[number] += number != UNKNOWN
                yield instance
                continue
            counts["paired"] += 1
            counts["ambiguous"] += number in several
            mark = {"ambiguous": True} if number in several else {}
            yield replace(instance, box=offered[number].pop(0), attributes={**instance.attributes, **mark})
        for number, count in unboxed.items():
            if count:
                counts["unboxed"] += count
                lacking = f"{count} {self.space.instruments[number]} in the triplets without a box"
                place.warn("frame-unboxed", f"found {lacking}, expected a box for each")
        for number, rest in offered.items():
            if rest:
                counts["unexplained"] += len(rest)
                surplus = f"{len(rest)} boxes of {self.space.instruments[number]} without a triplet"
                place.warn("box-unmatched", f"found {surplus}, expected a triplet for each")
            for box in rest:
                mark = {"ambiguous": True} if number in several else {}
                yield Instance(Triplet(number), box, attributes={"unexplained": True, **mark})

    def _tell(
        self, theirs: dict[int, Frame], met: dict[int, frozenset[int]], counts: Counter[str], place: Location
    ) -> None:
        without = counts["frames"] - counts["frames_with"] - counts["own"]
        if without:
            unmatched = f"{without} of {counts['frames']} frames without a frame of the boxes"
            place.warn("frame-unboxed", f"found {unmatched}, expected boxes for the same frames")
        elsewhere = sum(key - self._shift not in met for key in theirs)
        if elsewhere:
            place.warn(
                "box-unmatched",
                f"found {elsewhere} of {len(theirs)} frames with boxes at times of no triplet frame, "
                "expected the same frames",
            )
        if counts["outside"]:
            outside = f"{counts['outside']} boxes of other instruments"
            place.warn("box-unmatched", f"found {outside}, expected instruments of {self.space.name}")
        present = {key: self._present(frame) for key, frame in theirs.items()}
        better = _better_shift(met, present, self._shift)
        if better:
            drift = f"instruments that agree better {better:+d} frames away"
            place.warn("boxes-shifted", f"found {drift}, expected boxes of the same moment")

    def _present(self, frame: Frame) -> frozenset[int]:
        ids = (instance.triplet.instrument for instance in frame.instances if instance.triplet.instrument != UNKNOWN)
        return frozenset(self._classes[number] for number in ids) - {UNKNOWN}

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        """Those of the source."""
        return self._source.questions(on_problem)

    def left_out(self) -> tuple[str, ...]:
        """What the two datasets do not give."""
        return (*left_out(self._source), *left_out(self._boxes))


def join_boxes(source: Dataset, boxes: Dataset, shift: int = 0) -> JoinedBoxes:
    """The frames of `source` with the boxes of `boxes`; frame k takes the boxes of moment k + `shift`.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Triplet
    >>> from surgeval.vocab import load_labels
    >>> space, box = load_labels("cholect50"), Box(100, 120, 60, 80)
    >>> named = Frame("VID01", "000001", 1, 1.0, None, 854, 480, (Instance(Triplet(2, 1, 0)),))
    >>> boxed = Frame("VID01", "000001", 1, 1.0, None, 854, 480, (Instance(Triplet(2), box),))
    >>> joined = join_boxes(MemoryDataset(space, [named]), MemoryDataset(space, [boxed]))
    >>> [(instance.triplet, instance.box == box) for frame in joined.frames("VID01") for instance in frame.instances]
    [(Triplet(instrument=2, verb=1, target=0), True)]
    """
    return JoinedBoxes(source, boxes, shift)


def video_number(name: str) -> int | None:
    """The number of a video in its name.

    >>> [video_number(name) for name in ("VID42", "Video_42", "VID03_t50", "42", "A")]
    [42, 42, 3, 42, None]
    """
    match = _NUMBERED.search(name) or _DIGITS.search(name)
    return int(match[1]) if match else None


def _scaled(box: Box, x: float, y: float) -> Box:
    return box if x == y == 1 else Box(box.x * x, box.y * y, box.w * x, box.h * y)


def _better_shift(met: dict[int, frozenset[int]], theirs: dict[int, frozenset[int]], shift: int) -> int:
    """By how many frames the boxes seem to be off: 0, or where the instruments disagree clearly less.

    Clearly is a tenth less, and ten instruments less: the two datasets never agree fully.
    """
    keys = sorted(met)
    steps = Counter(later - sooner for sooner, later in pairwise(keys))
    step = steps.most_common(1)[0][0] if steps else 1

    def apart(by: int) -> float:
        pairs = [(met[key], theirs[key + shift + by * step]) for key in keys if key + shift + by * step in theirs]
        # Frames fall out at the ends: compared is the disagreement per frame.
        return sum(len(own ^ other) for own, other in pairs) / len(pairs) if len(pairs) >= 30 else float("inf")

    here = apart(0)
    best = min(_SHIFTS, key=apart)
    clearly = here < float("inf") and apart(best) <= 0.9 * here and (here - apart(best)) * len(keys) >= 10
    return best * step if clearly else 0
