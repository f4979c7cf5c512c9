"""Which frames a question shows, from a dataset and from video files."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.asking.films import film

from surgeval.asking import DatasetFrames, FrameOptions, ModelAnswer, ModelFrame, VideoFiles, encode_frames
from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput, DataError
from surgeval.protocols.focus import run_focus
from surgeval.records import Frame, ImageRef, VqaQuestion
from surgeval.vocab import LabelSpace


def asked(start: float, end: float, video: str = "v1", qid: str = "q") -> VqaQuestion:
    return VqaQuestion(qid, video, start, end, "", "What?", "object_identification", "number", "1")


def brightness(picture: ModelFrame) -> float:
    with Image.open(io.BytesIO(picture.jpeg)) as image:
        assert (image.format, image.size) == ("JPEG", (64, 48))
        return float(np.asarray(image.convert("L"))[24:].mean())


def test_a_moment_shows_the_frame_on_screen_and_a_window_evenly_spaced_ones(tmp_path: Path) -> None:
    film(tmp_path / "v1.mp4")
    media = VideoFiles(tmp_path, ["v1"])
    (moment,) = encode_frames(media, asked(5.1, 5.1), FrameOptions())
    assert moment.time == 5.0
    assert brightness(moment) == pytest.approx(100, abs=4)
    window = encode_frames(media, asked(2, 6), FrameOptions(frames=5))
    assert [picture.time for picture in window] == [2, 3, 4, 5, 6]
    assert [brightness(picture) for picture in window] == pytest.approx([40, 60, 80, 100, 120], abs=4)
    assert [picture.time for picture in encode_frames(media, asked(2, 6), FrameOptions(frames=1))] == [4]
    assert len(encode_frames(media, asked(2, 2.6), FrameOptions())) == 3  # no frame twice


def test_the_time_is_burnt_in_when_wanted(tmp_path: Path) -> None:
    film(tmp_path / "v1.mp4")
    media = VideoFiles(tmp_path, ["v1"])
    plain, drawn = (encode_frames(media, asked(5, 5), FrameOptions(overlay=overlay))[0] for overlay in (False, True))
    assert plain.jpeg != drawn.jpeg
    assert brightness(plain) == pytest.approx(brightness(drawn), abs=1)  # only the upper left corner


def test_a_question_beyond_the_end_is_an_error_and_the_last_second_is_not(tmp_path: Path) -> None:
    film(tmp_path / "v1.mp4")
    media = VideoFiles(tmp_path, ["v1"])
    assert encode_frames(media, asked(10, 10), FrameOptions())[0].time == 9.75
    with pytest.raises(DataError, match=r"ends at 9\.75 s, but the question is about 60 s"):
        encode_frames(media, asked(60, 61), FrameOptions())


def test_a_video_s_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    film(tmp_path / "secret.mp4")
    (tmp_path / "films").mkdir()
    with pytest.raises(DataError, match="no video file of this name"):
        VideoFiles(tmp_path / "films", ["../secret"])
    film(tmp_path / "films" / "v1.mp4")
    assert VideoFiles(tmp_path / "films", ["v1"]).identity != VideoFiles(tmp_path / "films", ["v1.mp4"]).identity


def test_frames_of_a_dataset_need_their_times(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48), (9, 9, 9)).save(tmp_path / "a.jpg")
    ref = ImageRef(tmp_path / "a.jpg")
    frames = [Frame("v1", str(n), n, float(n), ref, 64, 48) for n in (3, 1, 2)]
    untimed = Frame("v2", "0", 0, None, ref, 64, 48)
    dataset = MemoryDataset(LabelSpace("none", ("instrument",)), [*frames, untimed])
    found = encode_frames(DatasetFrames(dataset, ["v1"]), asked(1, 9), FrameOptions())
    assert [picture.time for picture in found] == [1, 2, 3]
    with pytest.raises(DataError, match="video v2: no frame of this video has a time"):
        DatasetFrames(dataset, ["v2"])
    with pytest.raises(DataError, match="video v3: the dataset has no such video"):
        DatasetFrames(dataset, ["v3"])


def test_the_number_of_frames_is_checked() -> None:
    with pytest.raises(BadInput, match="frames: 0 is not between"):
        FrameOptions(frames=0)


class Looker:
    """Counts what it is shown."""

    identity, uses_images, cache_answers = "looker", True, True

    def answer(self, question: VqaQuestion, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        return ModelAnswer(str(len(frames)), 0.5)


def test_a_question_whose_frames_cannot_be_read_is_not_asked(tmp_path: Path) -> None:
    film(tmp_path / "v1.mp4")
    (tmp_path / "v2.mp4").write_bytes(b"no film")
    (tmp_path / "D").mkdir()
    rows = [(q.id, q.video, q.start, q.end) for q in (asked(0, 5), asked(99, 99, qid="late"), asked(0, 1, "v2", "bad"))]
    (tmp_path / "D" / "requests.json").write_text(json.dumps([
        {"qID": qid, "videoID": video, "start_time": start, "end_time": end, "procedure_type": "", "question": "?"}
        for qid, video, start, end in rows
    ]))  # fmt: skip
    (tmp_path / "D" / "references.json").write_text(
        json.dumps([{"qID": qid, "primary": "3a", "format": "number", "answer": "8"} for qid, *_ in rows])
    )
    found = run_focus(tmp_path / "D", Looker(), tmp_path / "run", media=tmp_path, progress=False)
    assert found.answers["status"].to_list() == ["ok", "media_error", "media_error"]
    assert found.answers["content"].to_list() == ["8", None, None]
    assert (found.unasked, found.judged, found.summary.exit_code) == (2, False, 1)
    assert "v2.mp4: found a damaged video" in found.answers["reason"][2]
