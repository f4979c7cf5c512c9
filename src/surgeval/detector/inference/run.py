"""`detect`: a detector over a whole source, its findings in one file, with tracks and a film where wanted."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from surgeval.datasets import dataset_fingerprint
from surgeval.detector.inference.filming import film_paths, write_films
from surgeval.detector.inference.finish import count_classes, track_video, write_rows
from surgeval.detector.inference.parts import detect_parts
from surgeval.detector.inference.sources import Source
from surgeval.detector.inference.tables import Components
from surgeval.detector.inference.tracking import Tracking
from surgeval.detector.interface import Network
from surgeval.detector.nms import Selecting
from surgeval.engine import Manifest, library_versions, open_parts
from surgeval.errors import BadInput
from surgeval.figures import Figure, Series, bars
from surgeval.results import Result, counted

__all__ = ["DetectSettings", "Detected", "detect_source"]

Tell = Callable[[str], None]


@dataclass(frozen=True)
class DetectSettings:
    """How to look and what to keep."""

    selecting: Selecting = field(default_factory=Selecting)
    components: Components = "ivt"
    probabilities: bool = True  # of all classes of all heads, for every box (Parquet)
    batch: int = 16
    workers: int | None = None
    tracking: Tracking | None = None
    show: float = 0.25  # score from which a box is drawn on the film


@dataclass(frozen=True, kw_only=True, repr=False)
class Detected(Result):
    """What was done: frames looked at, boxes by class, and what a format could not hold."""

    out: Path
    frames: int
    earlier: int  # frames that an interrupted run had done
    skipped: int
    boxes: int
    tracks: int
    seconds: float  # of looking
    classes: pl.DataFrame  # class, boxes, sure, frames, best
    losses: tuple[str, ...] = ()
    films: tuple[Path, ...] = ()

    @property
    def rate(self) -> float:
        """Frames a second, from reading to boxes."""
        return self.frames / self.seconds if self.seconds > 0 else 0.0

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`classes`, a row per class: boxes, how many are sure, in how many frames, and the best score."""
        return {"classes": self.classes}

    @property
    def figures(self) -> dict[str, Figure]:
        """`boxes` of each class."""
        series = Series("boxes", tuple(map(float, self.classes["boxes"])))
        return {"boxes": bars("Boxes by class", tuple(map(str, self.classes["class"])), (series,), "boxes")}

    def __str__(self) -> str:
        return f"{counted(self.boxes, 'box', 'boxes')} in {counted(self.frames, 'frame')}, in {self.out}"


def detect_source(
    network: Network,
    source: Source,
    out: str | Path,
    settings: DetectSettings | None = None,
    *,
    identity: str = "",
    film: str | Path | None = None,
    announce: Tell = lambda _text: None,
    advance: Callable[[int], None] = lambda _count: None,
    phase: Callable[[str], None] = lambda _name: None,
) -> Detected:
    """Look at every frame of a source and write what was found.

    `out` is a table (.parquet, .csv), COCO (.json), or a folder for YOLO text. `identity` names the detector's weights
    (`detector_digest`): with it an interrupted run goes on where it was. `film` is an MP4 file, or a folder where the
    source has several videos. `announce` is told what is left out or assumed.

    >>> import tempfile
    >>> from PIL import Image
    >>> from surgeval.detector import Classes, Loaded, build_tdnet
    >>> from surgeval.detector.inference import TDNetDetector, open_source
    >>> from surgeval.vocab import load_labels
    >>> classes = Classes.of(load_labels("cholec80"))
    >>> detector = TDNetDetector(Loaded(build_tdnet("p", classes), classes, "p", 64, {}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48)).save(f"{folder}/frame.png")
    ...     done = detect_source(detector, open_source(f"{folder}/frame.png", classes.space), f"{folder}/found.parquet")
    ...     done.frames, done.boxes, pl.read_parquet(f"{folder}/found.parquet")["frame"].to_list()
    (1, 7, ['frame', ...])
    """
    target, how = Path(out), settings or DetectSettings()
    _check_target(target, how, source)
    paths = film_paths(source, Path(film)) if film is not None else {}
    work = target.with_name(f".{target.name}.parts")
    with_probabilities = how.probabilities and target.suffix.lower() == ".parquet"
    config = {
        "every": source.every, "fps": source.fps, "videos": source.only, "selecting": asdict(how.selecting),
        "components": how.components, "probabilities": with_probabilities,
    }  # fmt: skip
    manifest = Manifest("detect", config, dataset_fingerprint(source.dataset), identity,
                        versions=library_versions("torch"))  # fmt: skip
    with open_parts(work, manifest, resume=bool(identity), on_damage=announce) as store:
        phase("looking")
        began = time.perf_counter()
        parts = detect_parts(
            network, source, store, selecting=how.selecting, components=how.components,
            probabilities=with_probabilities, batch=how.batch, workers=how.workers, tell=announce, advance=advance,
        )  # fmt: skip
        if not parts.frames + parts.earlier:
            raise BadInput(f"{source.dataset.root}: found no frame that can be read, expected at least one")
        seconds = time.perf_counter() - began
        tracks = 0
        if how.tracking is not None:
            phase("tracking")
            if parts.untimed:
                announce("the times of frames are not known: they are tracked as if they were a second apart")
            tracks = sum(track_video(blocks, how.tracking) for _, blocks in parts.by_video())
        phase("writing")
        classes = count_classes(parts, network.classes)
        losses = write_rows(parts, target, source)
        films: tuple[Path, ...] = ()
        if paths:
            phase("filming")
            films = tuple(write_films(parts, source, network.classes, paths, how.show, advance))
    shutil.rmtree(work)
    boxes = int(classes["boxes"].sum())
    if boxes and how.probabilities and not with_probabilities:
        losses = (*losses, "probabilities of all classes are not kept (Parquet holds them)")
    return Detected(
        out=target, frames=parts.frames, earlier=parts.earlier, skipped=parts.skipped, boxes=boxes, tracks=tracks,
        seconds=seconds, classes=classes, losses=losses, films=films,
    )  # fmt: skip


def _check_target(target: Path, how: DetectSettings, source: Source) -> None:
    """Refuse at once what could not be written in the end."""
    if target.suffix.lower() not in ("", ".parquet", ".csv", ".json"):
        raise BadInput(f"{target}: found suffix {target.suffix!r}, expected .parquet, .csv, .json or a folder")
    if how.components == "heads" and target.suffix.lower() not in (".parquet", ".csv"):
        raise BadInput(
            f"{target}: found components of the heads, expected a table (.parquet, .csv): only tables hold them"
        )
    if target.suffix == "" and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target}: found something there already, expected a new or empty folder")
    if target.suffix and target.is_dir():
        raise BadInput(f"{target}: found a folder, expected the name of a file")
    if target.exists() and target.samefile(source.dataset.root):
        raise BadInput(f"{target}: found the frames to look at, expected another place to write to")
    root = source.dataset.root
    if target.exists() and root.is_dir() and target.resolve().is_relative_to(root.resolve()):
        raise BadInput(f"{target}: is an input file, and those are never replaced. Name another file")
    target.parent.mkdir(parents=True, exist_ok=True)
