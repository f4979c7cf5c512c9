"""Operations as MP4 films: bare, or with their truth drawn on every frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import cv2
import numpy as np

from surgeval.arrays import Image
from surgeval.datasets import draw_frame
from surgeval.errors import BadInput
from surgeval.files import atomic_file
from surgeval.phantom.dataset.edition import VideoPlan
from surgeval.phantom.dataset.truth import label
from surgeval.phantom.scene.footage import Footage
from surgeval.phantom.scene.tissue import ORGANS
from surgeval.phantom.script.gaze import make_gaze
from surgeval.phantom.script.graph import known_things
from surgeval.phantom.script.procedure import FPS, make_procedure
from surgeval.vocab import load_labels


def video_mp4(footage: Footage, out: str | Path, fps: int = FPS) -> Path:
    """The whole video as H.264 MP4; the same bytes for the same encoder library.

    >>> import tempfile
    >>> from surgeval.phantom import Footage, make_procedure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = video_mp4(Footage(make_procedure(7, 1.0), width=96, height=64), f"{folder}/op.mp4", fps=1)
    ...     film.name, film.stat().st_size > 0
    ('op.mp4', True)
    """
    if FPS % fps:
        raise BadInput(f"fps: found {fps}, expected a divisor of {FPS}")
    if footage.width % 2 or footage.height % 2:
        raise BadInput(f"frame size: found {footage.width}×{footage.height}, expected even numbers for H.264")
    indices = range(0, round(footage.procedure.seconds * FPS), FPS // fps)
    return _encode((footage.shoot(index).image for index in indices), Path(out), fps)


def truth_film(plan: VideoPlan, out: str | Path, *, seconds: float, start: float = 0.0, length: float = 12.0) -> Path:
    """A stretch of one operation with boxes, masks, triplets, phase and gaze drawn, at twice the size.

    >>> import tempfile
    >>> from surgeval.phantom import plan_videos
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film = truth_film(plan_videos(7, 1)[0], f"{folder}/truth.mp4", seconds=2.0, length=0.04)
    ...     film.stat().st_size > 0
    True
    """
    procedure = make_procedure(plan.seed, seconds, plan.procedure)
    footage = Footage(procedure, plan.source)
    gaze, known, space = (
        make_gaze(procedure, footage.width, footage.height),
        known_things(procedure),
        load_labels("phantom"),
    )

    def drawn() -> Iterator[Image]:
        for index in range(round(start * FPS), round(min(start + length, seconds) * FPS)):
            shot = footage.shoot(index)
            frame = label(plan.name, index, procedure, known, shot, footage.renderer, gaze, ORGANS).frame
            picture = np.repeat(np.repeat(draw_frame(shot.image, frame, space), 2, axis=0), 2, axis=1)
            now = [fix for fix in gaze if fix.t <= index / FPS < fix.t + fix.duration]
            for fix in now:
                at = (round(fix.x * picture.shape[1]), round(fix.y * picture.shape[0]))
                cv2.circle(picture, at, 14, (255, 255, 255), 2, cv2.LINE_AA)
            text = f"{index / FPS:5.1f} s  {space.phases[frame.phase] if frame.phase is not None else ''}"
            cv2.putText(
                picture,
                text,
                (12, picture.shape[0] - 14),
                cv2.FONT_HERSHEY_SIMPLEX,
                0.6,
                (255, 255, 255),
                1,
                cv2.LINE_AA,
            )
            yield picture

    return _encode(drawn(), Path(out), FPS)


def _encode(images: Iterable[Image], out: Path, fps: int) -> Path:
    import av

    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file, av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=fps)
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1
        stream.options = {"crf": "20", "preset": "veryfast", "threads": "1", "g": str(fps)}
        for number, image in enumerate(images):
            if number == 0:
                stream.height, stream.width = image.shape[:2]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out
