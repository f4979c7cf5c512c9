"""The known formats, and `open_dataset`, which finds out which one a path holds.

A package adds a format by an entry point of the group `surgeval.datasets` that names a `Format`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from surgeval.datasets.base import Dataset, Format, held_by
from surgeval.datasets.formats.writing import Writer
from surgeval.datasets.io.files import existing
from surgeval.datasets.io.image_folder import ImageFolder
from surgeval.datasets.io.video import VideoDataset
from surgeval.datasets.join_boxes import join_boxes
from surgeval.errors import BadInput, LeftOut, SurgevalError, UnclearFormat, code_of_others
from surgeval.registry import Registry
from surgeval.vocab import LabelSpace, load_labels

__all__ = ["FORMATS", "dataset_formats", "fits", "is_dataset", "open_dataset", "open_images", "open_video", "writers"]

FORMATS: Registry[Format] = Registry(
    "surgeval.datasets",
    {
        "phantom": "surgeval.datasets.formats.phantom:PhantomFormat",
        "cholect50": "surgeval.datasets.formats.cholect50:CholecT50Format",
        "voc": "surgeval.datasets.formats.voc:VocFormat",
        "yolo": "surgeval.datasets.formats.yolo:YoloFormat",
        "labelme": "surgeval.datasets.formats.labelme:LabelmeFormat",
        "coco": "surgeval.datasets.formats.coco:CocoFormat",
        "cvat": "surgeval.datasets.formats.cvat:CvatFormat",
        "focus": "surgeval.datasets.formats.focus:FocusFormat",
        "intent": "surgeval.datasets.formats.intent:IntentFormat",
        "cholect45": "surgeval.datasets.formats.cholect45:CholecT45Format",
        "cholec80-bbox": "surgeval.datasets.formats.cholec80_bbox:Cholec80BboxFormat",
        "copesd": "surgeval.datasets.formats.copesd:CopesdFormat",
        "table": "surgeval.datasets.formats.box_table:TableFormat",
        "video": "surgeval.datasets.io.video:VideoFormat",
        "studio": "surgeval.studio.exchange:StudioFormat",
    },
    Format,  # type: ignore[type-abstract]
    "dataset format",
)
_WRITTEN = ("cholect50", "voc", "yolo5", "yolo8", "labelme", "coco", "cvat", "focus", "intent", "mp4")


def dataset_formats() -> dict[str, Format]:
    """The formats that can be read, by name: the built-in ones, then those of other packages.

    >>> list(dataset_formats())[:3]
    ['phantom', 'cholect50', 'voc']
    """
    return FORMATS.load_all()


def fits(format: Format, path: str | Path) -> bool:
    """Whether a format recognises this folder or file; one of another package that fails at this does not.

    >>> fits(dataset_formats()["voc"], "nowhere")
    False
    """
    if FORMATS.is_builtin(format.name):
        return format.detect(Path(path))
    try:
        with code_of_others(f"dataset format {format.name}: detect is left out as it fails with"):
            return bool(format.detect(Path(path)))
    except SurgevalError as error:
        warnings.warn(str(error), LeftOut, stacklevel=2)
        return False


def is_dataset(path: str | Path) -> bool:
    """Whether a known format recognises this folder or file, without reading it.

    >>> is_dataset("nowhere")
    False
    """
    return any(fits(format, path) for format in dataset_formats().values())


def writers() -> dict[str, Writer]:
    """The formats that can be written, by name.

    >>> list(writers())
    ['cholect50', 'voc', 'yolo5', 'yolo8', 'labelme', 'coco', 'cvat', 'focus', 'intent', 'mp4'...]
    """
    from surgeval.datasets.formats.mp4 import Mp4Writer
    from surgeval.datasets.formats.yolo import YoloFormat

    own: dict[str, Writer] = {"yolo5": YoloFormat(5, "yolo5"), "yolo8": YoloFormat(8, "yolo8"), "mp4": Mp4Writer()}
    builtin = {name: own.get(name) or FORMATS[name] for name in _WRITTEN}
    plugins = {name: format for name, format in dataset_formats().items() if not FORMATS.is_builtin(name)}
    return {name: format for name, format in (builtin | plugins).items() if isinstance(format, Writer)}


def open_dataset(
    path: str | Path,
    format: str | None = None,
    labels: LabelSpace | str | Path | None = None,
    *,
    mapping: str | Path | None = None,
    boxes: str | Path | Dataset | None = None,
) -> Dataset:
    """Open a dataset folder or file; the format is found out unless it is given.

    `labels` (a label space, a packaged name or a JSON file) replaces the label space that the files name. `mapping` (a
    TOML or JSON file) says what the columns of a table of boxes mean. `boxes` is a second dataset whose boxes the
    instances take, by video number, time and instrument (`join_boxes`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "labels").mkdir()
    ...     _ = (Path(folder) / "labels" / "VID01_000012.txt").write_text("3 0.5 0.5 0.2 0.1")
    ...     dataset = open_dataset(folder, labels="cholec80")
    ...     [(frame.name, dataset.space.instruments[frame.instances[0].triplet.instrument])
    ...      for frame in dataset.frames("VID01", print)]
    [('000012', 'Scissors')]
    """
    target = existing(path, "a dataset")
    space = load_labels(labels) if isinstance(labels, str | Path) else labels
    if mapping is not None:
        if format not in (None, "table"):
            raise BadInput(
                f"format {format!r}: found a mapping as well, expected no format: it describes a table of boxes"
            )
        from surgeval.datasets.formats.box_table import TableFormat

        dataset: Dataset = TableFormat().open(target, space, existing(mapping, "a mapping file"))
    else:
        dataset = _found(target, format).open(target, space)
    if boxes is None:
        return dataset
    return join_boxes(dataset, open_dataset(boxes) if isinstance(boxes, str | Path) else boxes)


def _found(path: Path, format: str | None) -> Format:
    """The format that is named, else the one that fits."""
    if format is not None:
        return FORMATS[format]
    known = dataset_formats()
    fitting = [name for name, candidate in known.items() if fits(candidate, path)]
    fitting = [name for name in fitting if getattr(known[name], "marked", False)] or fitting
    # A folder of labels may well hold the films too.
    fitting = [name for name in fitting if held_by(known[name]) != "media"] or fitting
    if len(fitting) == 1:
        return known[fitting[0]]
    if fitting:
        found = f"{path}: found files of {' and '.join(fitting)}"
        raise UnclearFormat(
            f"{found}, expected one format: say which, for example format={fitting[0]!r}", tuple(fitting)
        )
    if path.is_file():
        raise BadInput(f"{path}: found a file of unknown kind, expected a dataset folder, COCO or FOCUS JSON, CVAT "
                       "XML, items.jsonl, published rows (Parquet), a table with its mapping or a video")  # fmt: skip
    raise UnclearFormat(f"{path}: found no dataset of a known format, expected one of {', '.join(known)}")


def open_images(path: str | Path, labels: LabelSpace | None = None) -> ImageFolder:
    """An image without labels, or a folder of them; folders inside it are videos of their own.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/12.png")
    ...     images = open_images(folder)
    ...     [frame.name for video in images.videos() for frame in images.frames(video.name)]
    ['12']
    """
    return ImageFolder(existing(path, "an image or a folder of images"), labels)


def open_video(path: str | Path, every: float | None = None, labels: LabelSpace | None = None) -> VideoDataset:
    """A video file or a folder of them, one frame every `every` seconds (all frames by default).

    >>> import cv2, numpy, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = cv2.VideoWriter(f"{folder}/op.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 25, (64, 48))
    ...     _ = [film.write(numpy.zeros((48, 64, 3), numpy.uint8)) for _ in range(50)]
    ...     film.release()
    ...     [frame.time for frame in open_video(folder, every=0.5).frames("op")]
    [0.0, 0.52, 1.0, 1.52]
    """
    return VideoDataset(existing(path, "a video"), every, labels)
