"""`detect`: open a detector and data by name or path, and write the boxes that it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.detector.inference.open import detector_digest, open_detector
from surgeval.detector.inference.run import Detected, DetectSettings, detect_source
from surgeval.detector.inference.sources import open_source

if TYPE_CHECKING:
    from surgeval.detector.interface import Network

__all__ = ["detect"]


def detect(
    data: str | Path,
    model: Network | str | Path,
    out: str | Path,
    settings: DetectSettings | None = None,
    *,
    device: str = "cpu",
    half: bool = False,
    aux: bool = True,
    every: int = 1,
    fps: float | None = None,
    videos: Sequence[str] = (),
    format: str | None = None,
    film: str | Path | None = None,
    announce: Callable[[str], None] = lambda _text: None,
) -> Detected:
    """Run a detector over a dataset, a video, a folder of images or one image; an interrupted run is resumed.

    `model` is a TDnet file, a training folder, an ONNX or RT-DETR file, the name of an embedded detector, or a loaded
    one (whose runs cannot be resumed). `out` is a table (.parquet, .csv), COCO (.json), or a folder for YOLO text.
    `every` and `fps` thin out the frames, `videos` selects videos by name. `film` is an MP4 file with the boxes drawn,
    or a folder of them. `announce` is called with what is left out or assumed.

    >>> import tempfile
    >>> from surgeval.phantom import write_phantom
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_phantom(f"{folder}/phantom", videos=1, seconds=2, progress=False)
    ...     found = detect(f"{folder}/phantom", "tdnet-p", f"{folder}/boxes.parquet")
    ...     found.frames, found.out.name
    (2, 'boxes.parquet')
    """
    identity = ""
    if isinstance(model, str | Path):
        identity = f"{detector_digest(str(model))} {aux} {half}"
        network = open_detector(str(model), device=device, half=half, aux=aux, graph=True)
    else:
        network = model
    source = open_source(data, network.classes.space, every=every, fps=fps, videos=videos, format=format)
    return detect_source(network, source, out, settings, identity=identity, film=film, announce=announce)
