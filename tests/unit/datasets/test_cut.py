from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from surgeval.datasets import clip_video, cut_frames, read_image, video_index
from surgeval.errors import BadInput
from surgeval.records import ImageRef


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds at 10 frames a second; the brightness of a frame says which one it is."""
    import av

    path = tmp_path_factory.mktemp("film") / "op.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.options = {"crf": "1"}
        for number in range(60):
            picture = np.full((64, 96, 3), 20 + 3 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def _number(image: np.ndarray) -> int:
    return round((float(image[40:].mean()) - 20) / 3)


def test_one_frame_a_second_is_the_frame_shown_at_that_second(film: Path, tmp_path: Path) -> None:
    written = cut_frames(film, tmp_path / "out", every=1.0)
    assert [path.stem for path in written] == ["000000", "000010", "000020", "000030", "000040", "000050"]
    assert [_number(read_image(ImageRef(path))) for path in written] == [0, 10, 20, 30, 40, 50]


def test_a_stride_counts_frames(film: Path, tmp_path: Path) -> None:
    assert [int(path.stem) for path in cut_frames(film, tmp_path, stride=25)] == [0, 25, 50]


def test_a_clip_holds_its_window_and_nothing_else(film: Path, tmp_path: Path) -> None:
    clip = clip_video(film, tmp_path / "clip.mp4", (2.0, 3.0))
    assert len(video_index(clip)) == 11
    assert _number(read_image(ImageRef(clip, 0))) == 20
    assert _number(read_image(ImageRef(clip, 10))) == 30


def test_the_time_is_burnt_in_only_when_asked(film: Path, tmp_path: Path) -> None:
    plain = cv2.imread(str(cut_frames(film, tmp_path / "a", every=5)[1]))
    timed = cv2.imread(str(cut_frames(film, tmp_path / "b", every=5, overlay=True)[1]))
    assert plain is not None
    assert timed is not None
    assert plain.std() < 3 < timed.std()


@pytest.mark.parametrize("window", [(3.0, 2.0), (-1.0, 2.0), (99.0, 100.0)])
def test_a_window_outside_the_video_is_refused(film: Path, tmp_path: Path, window: tuple[float, float]) -> None:
    with pytest.raises(BadInput):
        clip_video(film, tmp_path / "x.mp4", window)
    assert not (tmp_path / "x.mp4").exists()
