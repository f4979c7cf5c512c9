"""The studio's pictures of real material: the H.264 clip plays and seeks frame-exactly."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import av
import numpy as np
from PIL import Image

from surgeval.datasets import open_video
from surgeval.studio.pictures import Pictures


def test_the_clip_plays_and_seeks_to_the_very_frame(real_data: Path) -> None:
    path = next((real_data / "clip").glob("*.mp4"))
    frames = [frame.image for frame in open_video(path).frames(path.stem)]
    wanted = [0, 1, 2, 3, 400, 399, 398, 397, 799, 10, 640, 639, 5]
    with av.open(str(path)) as film:  # every frame once, in order: what the file holds
        true = {k: frame.to_ndarray(format="rgb24") for k, frame in enumerate(film.decode(video=0)) if k in wanted}
    with Pictures({"clip": [ref for ref in frames if ref is not None]}) as pictures:
        for index in wanted:
            shown = np.asarray(Image.open(BytesIO(pictures.get("clip", index).data)).convert("RGB")).astype(int)
            own = np.abs(shown - true[index]).mean()
            assert own < 3, index  # JPEG
            others = [np.abs(shown - true[k]).mean() for k in wanted if abs(k - index) > 2]
            assert own < min(others), index
