from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from surgeval.datasets import check, open_dataset, open_video, read_image, video_index
from surgeval.datasets.io.video import _FrameReader
from surgeval.errors import BadInput, DataError
from surgeval.records import ImageRef


def film(path: Path, times: list[int], codec: str = "libx264", groups: int = 5) -> Path:
    """A film whose frame n is flat grey 10 + 8 n, shown at times[n] milliseconds."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        stream.gop_size = groups
        if codec == "libx264":
            stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
            stream.options = {"crf": "5", "bf": "2"}
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 10 + 8 * number, np.uint8), format="rgb24")
            if codec == "libx264":
                frame.pts, frame.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def shade(path: Path, number: int) -> int:
    return round((float(read_image(ImageRef(path, number)).mean()) - 10) / 8)


UNEVEN = [0, 40, 80, 300, 310, 900, 940, 1500, 1501, 2000, 2040, 2080, 2600, 3000]


@pytest.mark.parametrize(
    "order", [range(14), range(13, -1, -1), range(0, 14, 3), [0, 4, 9], [5, 0, 13, 6, 7, 2, 12, 1, 3, 4]]
)
def test_frames_are_exact_in_any_order_at_an_uneven_rate(tmp_path: Path, order: list[int]) -> None:
    path = film(tmp_path / "uneven.mp4", UNEVEN)
    assert np.allclose(video_index(path).times, np.array(UNEVEN) / 1000)
    assert [shade(path, number) for number in order] == list(order)


def test_skipping_through_a_group_decodes_it_once(tmp_path: Path) -> None:
    path = film(tmp_path / "long.mp4", [40 * n for n in range(24)], groups=24)
    seeks: list[int] = []
    reader = _FrameReader(path)
    inner = reader.container

    class Counting:
        def seek(self, *args: object, **how: object) -> None:
            seeks.append(1)
            inner.seek(*args, **how)

        def decode(self, *args: object) -> object:
            return inner.decode(*args)

    reader.container = Counting()
    shades = [round((float(reader.read(n).mean()) - 10) / 8) for n in range(0, 24, 5)]
    assert (shades, len(seeks)) == (list(range(0, 24, 5)), 1)


def test_avi_without_presentation_times_is_indexed_by_decoding(tmp_path: Path) -> None:
    path = film(tmp_path / "old.avi", list(range(0, 400, 40)), "mpeg4")
    assert len(video_index(path)) == 10
    assert [shade(path, number) for number in (0, 9, 4, 5)] == [0, 9, 4, 5]


def test_frames_carry_their_times_and_no_labels(tmp_path: Path) -> None:
    frames = list(open_dataset(film(tmp_path / "v.mp4", UNEVEN)).frames("v"))
    assert [frame.name for frame in frames[:2]] == ["000000", "000001"]
    assert frames[3].time == pytest.approx(0.3)
    assert not any(frame.labelled for frame in frames)
    assert (frames[0].width, frames[0].height) == (64, 64)


def test_every_takes_the_first_frame_at_or_after_each_tick(tmp_path: Path) -> None:
    dataset = open_video(film(tmp_path / "v.mp4", UNEVEN), every=1.0)
    assert [frame.time for frame in dataset.frames("v")] == pytest.approx([0.0, 1.5, 2.0, 3.0])
    assert dataset.videos()[0].frames == 4
    with pytest.raises(BadInput, match="every=0"):
        open_video(tmp_path / "v.mp4", every=0)


def test_a_folder_of_films_is_one_video_each(tmp_path: Path) -> None:
    film(tmp_path / "a.mp4", [0, 40, 80])
    film(tmp_path / "b.mp4", [0, 40])
    assert [(video.name, video.frames) for video in open_dataset(tmp_path).videos()] == [("a", 3), ("b", 2)]


def test_a_number_past_the_end_is_refused(tmp_path: Path) -> None:
    path = film(tmp_path / "v.mp4", [0, 40, 80])
    with pytest.raises(DataError, match="no frame 3, expected a number from 0 to 2"):
        read_image(ImageRef(path, 3))
    with pytest.raises(DataError, match="no frame -1"):
        read_image(ImageRef(path, -1))


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 3], lambda data: b"", lambda data: b"x" * 5000])
def test_a_damaged_film_is_one_problem(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    good, bad = film(tmp_path / "a.mp4", [0, 40]), film(tmp_path / "b.mp4", UNEVEN)
    bad.write_bytes(damage(good.read_bytes()))
    report = check(open_dataset(tmp_path))
    assert report.frames == 2
    assert report.counts == {"video-broken": 1}
    assert "b.mp4" in str(report.problems[0])


def test_a_film_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = film(tmp_path / "v.mp4", [0, 40, 80])
    assert len(video_index(path)) == 3
    film(path, UNEVEN)
    assert len(video_index(path)) == 14
    path.unlink()
    with pytest.raises(DataError, match="no such file"):
        video_index(path)


def test_an_mp4_export_shows_each_frame_at_its_time(exported: Callable[[str], Path]) -> None:
    dataset = open_dataset(exported("mp4"))
    assert [frame.time for frame in dataset.frames("VID01")] == pytest.approx([0.0, 1.0, 2.0])


def test_a_damaged_film_is_told_without_numbers_of_the_decoder(tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(b"no film" * 100)
    with pytest.raises(DataError, match=r"found a damaged video \(Invalid data found when processing input\)"):
        video_index(tmp_path / "x.mp4")
