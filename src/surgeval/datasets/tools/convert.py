"""`convert`: a dataset in another format, with every loss said.

The output is written beside its place under a temporary name and moved there when it is complete, so an interrupted
conversion leaves nothing that looks finished.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from surgeval.arrays import Image
from surgeval.datasets.base import Dataset, left_out
from surgeval.datasets.formats.labelme.format import Labelme
from surgeval.datasets.formats.writing import Output, Pixels
from surgeval.datasets.io.files import sweep
from surgeval.datasets.io.images import read_image
from surgeval.datasets.io.letterbox import Letterbox
from surgeval.datasets.io.outline import parts_of
from surgeval.datasets.memory import MemoryDataset
from surgeval.datasets.registry import writers
from surgeval.datasets.tools.merge import MergeMap, merged
from surgeval.errors import BadInput, did_you_mean
from surgeval.files import OnProblem, atomic_folder, raise_errors
from surgeval.records import Frame, Instance, Mask, Question, Video
from surgeval.results import Result, counted

__all__ = ["ConvertReport", "convert", "export_losses"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConvertReport(Result):
    """What was written and what was lost.

    Of the instances that were read, a merge may have dropped some; `losses` says what else the format cannot hold.
    """

    format: str
    out: Path
    videos: int
    frames: int
    images: int
    questions: int
    instances_read: int
    instances_dropped: int  # by the merge
    instances_written: int
    losses: tuple[str, ...]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`counts`, a row per count, then one per loss."""
        read = ("videos", "frames", "images", "questions", "instances_read", "instances_dropped", "instances_written")
        rows = [(name.replace("_", " "), getattr(self, name)) for name in read]
        rows += [(f"lost: {loss}", None) for loss in self.losses]
        return {"counts": pl.DataFrame(rows, schema={"what": pl.String, "count": pl.Int64}, orient="row")}

    def __str__(self) -> str:
        lost = f", {counted(len(self.losses), 'loss', 'losses')}" if self.losses else ""
        return f"{self.format} in {self.out}: {counted(self.frames, 'frame')} of {counted(self.videos, 'video')}{lost}"


class _Squared:
    """A dataset seen in the 640-pixel square."""

    format: ClassVar[str] = "square"

    def __init__(self, source: Dataset, size: int) -> None:
        self.root, self.space = source.root, source.space
        self._source, self._size = source, size
        self._last: tuple[str, str, Letterbox] | None = None
        self.media_root = getattr(source, "media_root", None)

    def videos(self, on_problem: OnProblem = raise_errors) -> tuple[Video, ...]:
        return self._source.videos(on_problem)

    def frames(self, video: str, on_problem: OnProblem = raise_errors) -> Iterator[Frame]:
        for frame in self._source.frames(video, on_problem):
            letterbox = Letterbox(frame.width, frame.height, self._size)
            self._last = (frame.video, frame.name, letterbox)
            instances = tuple(_squared(instance, letterbox) for instance in frame.instances)
            region = letterbox.forward(frame.region) if frame.region else None
            yield replace(frame, width=self._size, height=self._size, instances=instances, region=region)

    def geometry(self, frame: Frame) -> Letterbox:
        """The letterbox of the frame just yielded (only that one is held)."""
        if self._last is None or self._last[:2] != (frame.video, frame.name):
            raise ValueError(f"{frame.video} {frame.name} is not the frame just read")
        return self._last[2]

    def pixels(self, frame: Frame) -> Image:
        letterbox = self.geometry(frame)
        return letterbox.image(_fitting(frame, (letterbox.width, letterbox.height)))

    def questions(self, on_problem: OnProblem = raise_errors) -> Iterator[Question]:
        return self._source.questions(on_problem)

    def left_out(self) -> tuple[str, ...]:
        return left_out(self._source)


def _fitting(frame: Frame, size: tuple[int, int]) -> Image:
    if frame.image is None:
        raise BadInput(f"{frame.video} frame {frame.name}: found no image, expected one to resize")
    pixels = read_image(frame.image)
    if pixels.shape[:2] != size[::-1]:
        measured = f"{pixels.shape[1]} × {pixels.shape[0]}"
        raise BadInput(f"{frame.image.path}: found {measured} pixels, expected {size[0]} × {size[1]} as the labels say")
    return pixels


def _squared(instance: Instance, letterbox: Letterbox) -> Instance:
    parts = parts_of(instance)
    originals: tuple[tuple[tuple[float, float], ...], ...] = parts
    if not parts and instance.box:
        x1, y1, x2, y2 = instance.box.corners
        originals = (((x1, y1), (x2, y2)),)
    moved = tuple(tuple(letterbox.forward_point(point) for point in part) for part in parts)
    attributes: dict[str, Any] = {**instance.attributes, "original_parts": originals}
    if len(moved) > 1:
        attributes["polygons"] = moved
    return replace(
        instance, box=letterbox.forward(instance.box) if instance.box else None,
        mask=Mask.from_array(letterbox.mask(instance.mask.to_array())) if instance.mask else None,
        polygon=moved[0] if len(moved) == 1 else (),
        points={name: letterbox.forward_point(point) for name, point in instance.points.items()},
        motion=_moved(instance.motion, letterbox), attributes=attributes,
    )  # fmt: skip


def _moved(motion: tuple[float, ...] | None, letterbox: Letterbox) -> tuple[float, ...] | None:
    """An affine motion of the frame as the same motion of the square."""
    if motion is None:
        return None
    a, b, c, d, e, f = motion
    x, y = letterbox.paste
    return a, b, letterbox.scale * (c + x - a * x - b * y), d, e, letterbox.scale * (f + y - d * x - e * y)


def _restored_pixels(frame: Frame) -> Image:
    if frame.image is None:
        raise BadInput(f"{frame.video} frame {frame.name}: found no image, expected one to restore")
    pixels = read_image(frame.image)
    return Letterbox(frame.width, frame.height, pixels.shape[0]).restored_image(pixels)


def convert(
    dataset: Dataset,
    out: str | Path,
    format: str,
    *,
    size: int | None = None,
    restore: bool = False,
    merge: MergeMap | None = None,
    min_count: int = 0,
    images: bool = True,
    on_problem: OnProblem = raise_errors,
    progress: Callable[[Video, Frame], None] | None = None,
) -> ConvertReport:
    r"""Write a dataset in another format.

    `size` pads every frame to a square and resizes it (640 in ProstaTD); `restore` undoes that for a labelme dataset
    which was written so. `merge` consolidates labels, `min_count` drops rarer triplets. Images are copied unchanged
    unless their pixels change; `images=False` leaves them out. What the format cannot hold is listed in `losses`.

    >>> import tempfile
    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(3), Box(64, 48, 64, 48))
    >>> dataset = MemoryDataset(load_labels("cholec80"), [Frame("VID01", "000012", 12, None, None, 640, 480, (hook,))])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = convert(dataset, f"{folder}/yolo", "yolo5", images=False)
    ...     (Path(folder) / "yolo" / "labels" / "VID01_000012.txt").read_text()
    '3 0.150000 0.150000 0.100000 0.100000\n'
    """
    _known(format)
    if size is not None and not 16 <= size <= 8192:
        raise BadInput(f"size {size}: expected a number of pixels from 16 to 8192")
    if size is not None and restore:
        raise BadInput("size and restore exclude each other")
    target = _target(dataset, Path(out))
    if not isinstance(dataset, MemoryDataset):
        sweep(dataset.root, on_problem)
    source, pixels, geometry = dataset, None, None
    if restore:
        if not isinstance(dataset, Labelme):
            raise BadInput(f"restore: found a {dataset.format} dataset, expected labelme with transformInfo")
        source, pixels = dataset.restored(), _restored_pixels
    merging = merged(source, merge or MergeMap({}, {}, {}, {}), min_count, on_problem) if merge or min_count else None
    source = merging or source
    if size is not None:
        square = _Squared(source, size)
        source, pixels, geometry = square, square.pixels, square.geometry
    counts, lost, videos = _write(source, target, format, images, pixels, geometry, on_problem, progress)
    dropped = merging.dropped if merging else 0
    read = counts["instances"] + dropped
    return ConvertReport(
        format=format, out=Path(out), videos=videos, frames=counts["frames"], images=counts["images"],
        questions=counts["questions"], instances_read=read, instances_dropped=dropped,
        instances_written=counts["written"], losses=lost,
    )  # fmt: skip


def export_losses(
    dataset: Dataset,
    format: str,
    *,
    merge: MergeMap | None = None,
    min_count: int = 0,
    images: bool = True,
    on_problem: OnProblem = raise_errors,
) -> tuple[str, ...]:
    """What a format cannot hold of a dataset, before anything is exported: the sentences that `convert` would report.

    >>> from surgeval.datasets import MemoryDataset
    >>> from surgeval.records import Box, Instance, Triplet
    >>> from surgeval.vocab import load_labels
    >>> hook = Instance(Triplet(3), Box(64, 48, 64, 48), track=1, attributes={"position": "left"})
    >>> dataset = MemoryDataset(load_labels("cholec80"), [Frame("VID01", "000012", 12, None, None, 640, 480, (hook,))])
    >>> for sentence in export_losses(dataset, "yolo5"):
    ...     print(sentence)
    yolo5: attribute 'position' of 1 instances is not kept
    yolo5: tracks of 1 instances are not kept
    """
    _known(format)
    merging = merged(dataset, merge or MergeMap({}, {}, {}, {}), min_count, on_problem) if merge or min_count else None
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out"
        return _write(merging or dataset, target, format, images, None, None, on_problem, None, dry=True)[1]


def _known(format: str) -> None:
    known = writers()
    if format not in known:
        raise BadInput(f"format {format!r}: expected one of {', '.join(known)}{did_you_mean(format, known)}")


def _target(dataset: Dataset, out: Path) -> Path:
    """The folder to write to: new or empty, outside what is read, and no link (which could not be replaced)."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out}: found something there already, expected a new or empty folder")
    target = out.resolve()
    root = dataset.root.resolve()
    if not isinstance(dataset, MemoryDataset) and root.is_dir() and target.is_relative_to(root):
        raise BadInput(f"{out}: found a place inside the dataset {dataset.root}, expected a folder outside it")
    return target


def _write(
    source: Dataset, target: Path, format: str, images: bool, pixels: Pixels | None,
    geometry: Callable[[Frame], Letterbox] | None, on_problem: OnProblem,
    progress: Callable[[Video, Frame], None] | None, *, dry: bool = False,
) -> tuple[dict[str, int], tuple[str, ...], int]:  # fmt: skip
    writer = writers()[format]
    with atomic_folder(target) as partial:
        videos = source.videos(on_problem)
        output = Output(source, partial, writer, videos, on_problem, images, dry, pixels, progress=progress,
                        geometry=geometry)  # fmt: skip
        writer.write(output)
        for sentence in left_out(source):
            output.lost(sentence)
        if "questions" not in writer.keeps:
            for _ in source.questions(on_problem):
                output.lost("{n} questions are not kept")
        elif any(True for video in videos[:1] for _ in source.frames(video.name, on_problem)):
            output.lost("frames and labels are not kept")
    return output.counts, output.sentences(), len(videos)
