"""What an item is shown: which files and frames, how large, drawn on where wanted; and the record of it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.asking.films import film

from surgeval.arrays import Image as Pixels
from surgeval.asking import (
    FrameOptions,
    FrameTimeline,
    ItemFiles,
    ModelAnswer,
    ModelFrame,
    QuestionWorker,
    encode_frames,
    select_frames,
)
from surgeval.datasets import open_dataset
from surgeval.errors import BadInput, DataError
from surgeval.records import Gaze, IntentQuestion


def item(media: Sequence[str], name: str = "i", **more: object) -> IntentQuestion:
    return IntentQuestion(
        name, "laparoscopy", "v", tuple(media), "spatial", "absolute", "Where?", ("left", "right"), 0,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures, a film of ten seconds, and an items file beside them."""
    for n in range(3):
        Image.new("RGB", (160, 90), (10 * n, 0, 0)).save(tmp_path / f"{n}.png")
    film(tmp_path / "clip.mp4")
    line = {"id": "i", "scenario": "s", "media": ["0.png"], "cluster": "v", "dimension": "spatial",
            "skill": "absolute", "question": "?", "options": ["a", "b"], "answer": 0}  # fmt: skip
    (tmp_path / "items.jsonl").write_text(json.dumps(line))
    return tmp_path


def files(folder: Path, *items: IntentQuestion) -> ItemFiles:
    return ItemFiles(open_dataset(folder), items)


def test_pictures_of_a_list_are_all_shown_and_lie_evenly_in_its_window(folder: Path) -> None:
    listed = item(["0.png", "1.png", "2.png"], start=4.0, end=6.0)
    media = files(folder, listed)
    seen = select_frames(media, listed, FrameOptions(frames=2))
    assert [(moment.frame, moment.time, moment.ref.path.name) for moment in seen] == [
        (0, 4.0, "0.png"), (1, 5.0, "1.png"), (2, 6.0, "2.png"),
    ]  # fmt: skip
    assert [moment.time for moment in select_frames(media, item(["1.png"], start=3.0, end=6.0), FrameOptions())] == [
        6.0
    ]
    assert [moment.time for moment in select_frames(media, item(["1.png", "0.png"]), FrameOptions())] == [None, None]


def test_a_clip_is_shown_in_its_window_by_the_policy(folder: Path) -> None:
    clip = item(["clip.mp4"], start=2.0, end=6.0, gaze=(Gaze(3.0, 0.5, 0.5, 0.5),))
    media = files(folder, clip)

    def times(shown: FrameOptions, asked: IntentQuestion = clip) -> list[float | None]:
        return [moment.time for moment in select_frames(media, asked, shown)]

    assert times(FrameOptions(frames=5)) == [2, 3, 4, 5, 6]
    assert times(FrameOptions(frames=3, sampling="gaze", reach=0.5)) == [2.5, 3.25, 4.0]
    assert times(FrameOptions(frames=3, sampling="question", reach=1.0)) == [5.0, 5.5, 6.0]
    moment = replace(clip, start=6.0)
    assert times(FrameOptions(frames=3, sampling="question"), moment) == [5.0, 5.5, 6.0]  # never what comes later
    assert times(FrameOptions(frames=5, sampling="gaze"), replace(clip, gaze=())) == [2, 3, 4, 5, 6]
    assert times(FrameOptions(frames=2), item(["clip.mp4"])) == [0, 9.75]
    with pytest.raises(DataError, match="the question is about 60 s"):
        times(FrameOptions(), replace(clip, start=60.0, end=61.0))


def test_frames_are_drawn_on_then_made_smaller(folder: Path) -> None:
    asked, sizes = item(["0.png"], start=1.0, end=1.0), []

    def circle(pixels: Pixels, time: float | None) -> Pixels:
        sizes.append((pixels.shape, time))
        with pytest.raises(ValueError, match="read-only"):
            pixels[0] = 1
        drawn = pixels.copy()
        drawn[..., 1] = 200
        return drawn

    media = files(folder, asked)
    (plain,) = encode_frames(media, asked, FrameOptions(longest_edge=80))
    (drawn,) = encode_frames(media, asked, FrameOptions(longest_edge=80), circle)
    assert sizes == [((90, 160, 3), 1.0)]
    assert (drawn.width, drawn.height) == (80, 45)
    with Image.open(io.BytesIO(drawn.jpeg)) as image:
        assert image.size == (80, 45)
        assert np.asarray(image)[..., 1].mean() == pytest.approx(200, abs=3)
    assert plain.jpeg != drawn.jpeg
    assert encode_frames(media, asked, FrameOptions(longest_edge=80))[0] == plain
    assert len(encode_frames(media, asked, FrameOptions(quality=20))[0].jpeg) <= len(
        encode_frames(media, asked, FrameOptions())[0].jpeg
    )


@pytest.mark.parametrize(
    ("media", "expected"),
    [(["none.png"], "found no such file"), (["out.png"], "link that leads out"),
     (["clip.mp4", "0.png"], "a video among 2 files"), ([], "names 0 files")],
)  # fmt: skip
def test_files_that_are_not_an_item_s_own_are_refused(folder: Path, media: list[str], expected: str) -> None:
    secret = folder.parent / f"{folder.name}-secret.png"
    Image.new("RGB", (8, 8)).save(secret)
    (folder / "out.png").symlink_to(secret)
    asked = item(media)
    with pytest.raises(DataError, match=expected):
        files(folder, asked).timeline(asked)
    with pytest.raises(DataError, match=expected):  # also where it became so after the check
        files(folder).timeline(asked)


def test_a_path_out_of_the_folder_is_refused_when_items_are_read(folder: Path) -> None:
    Image.new("RGB", (8, 8)).save(folder.parent / "secret.png")
    line = (folder / "items.jsonl").read_text().replace('"0.png"', '"../secret.png"')
    (folder / "items.jsonl").write_text(line)
    with pytest.raises(DataError, match=r"media: found '../secret\.png'"):
        list(open_dataset(folder).questions())


def test_other_files_are_other_media(folder: Path) -> None:
    first = files(folder, item(["0.png"])).identity
    assert files(folder, item(["1.png"])).identity != first
    (folder / "0.png").write_bytes((folder / "0.png").read_bytes() + b" ")
    assert files(folder, item(["0.png"])).identity != first


@pytest.mark.parametrize("wrong", [{"quality": 0}, {"longest_edge": 4}, {"sampling": "best"}, {"reach": -1.0}])
def test_settings_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=r"is not between|Unknown sampling"):
        FrameOptions(**wrong)  # type: ignore[arg-type]


class Looker:
    """Answers with the number of pictures, but not to `c` at first."""

    identity, uses_images, cache_answers = "looker", True, True
    failing = True

    def answer(self, question: IntentQuestion, frames: Sequence[ModelFrame] = ()) -> ModelAnswer:
        if question.id == "c" and self.failing:
            raise RuntimeError("down")
        return ModelAnswer(str(len(frames)))


def test_what_was_shown_is_recorded_and_survives_a_stop(folder: Path, tmp_path: Path) -> None:
    asked = {name: item(["0.png", "1.png"], name, start=0.0, end=1.0) for name in "abc"}
    media, answerer = files(folder, *asked.values()), Looker()
    looked: list[str] = []

    def look(question: IntentQuestion) -> tuple[ModelFrame, ...]:
        looked.append(question.id)
        return encode_frames(media, question, FrameOptions(longest_edge=64))

    cases = []
    for _ in range(2):
        worker = QuestionWorker(answerer, asked, tmp_path, read_frames=look)
        worker.setup()
        cases.append(worker(list(asked)))
        worker.close()
        answerer.failing = False
    assert [[case.status for case in turn] for turn in cases] == [["ok", "ok", "model_error"], ["ok", "ok", "ok"]]
    assert looked == ["a", "b", "c", "c"]  # what is stored is neither asked nor read again
    assert cases[0][:2] == cases[1][:2]
    record = json.loads(str(cases[1][0].values["shown"]))
    assert [row["frame"] for row in record] == [0, 1]
    first = encode_frames(media, asked["a"], FrameOptions(longest_edge=64))[0]
    assert record[0] == {"frame": 0, "time": 0.0, "width": 64, "height": 36,
                         "sha256": hashlib.sha256(first.jpeg).hexdigest()}  # fmt: skip
    assert cases[1][0].values["shown"] == cases[1][2].values["shown"]


def test_unknown_times_are_no_times() -> None:
    class Stills:
        identity = "stills"

        def timeline(self, question: IntentQuestion) -> FrameTimeline:
            return FrameTimeline(
                np.arange(3.0), Path("x.mp4"), (0.0, 2.0), (Gaze(1, 0, 0, 0),), timed=False, listed=True
            )

    for sampling in ("uniform", "gaze", "question"):
        seen = select_frames(Stills(), item([]), FrameOptions(frames=3, sampling=sampling, reach=0.1))
        assert [moment.time for moment in seen] == [None] * 3
