"""What items are shown under each condition: gaze on the right frames of clips and stills; local weights in batches."""

from __future__ import annotations

import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.unit.asking.films import film
from tests.unit.models.tiny_chat import blind_model, seeing_model

from surgeval.asking import FrameOptions, ModelFrame
from surgeval.errors import DataError
from surgeval.models.chat import ChatOptions
from surgeval.protocols.intent import run_intent
from surgeval.protocols.intent.asking.conditions import posed
from surgeval.protocols.intent.asking.gaze import GazeMode, GazePoint
from surgeval.protocols.intent.asking.look import Eyes, GazePicture, Seeing
from surgeval.protocols.intent.items import OpenedItems, open_items

LOCAL = importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None
FIXATIONS = [{"t": 2.0, "x": 0.2, "y": 0.5, "duration": 1.0}, {"t": 3.5, "x": 0.8, "y": 0.5, "duration": 2.5}]
ITEM: dict[str, Any] = {
    "scenario": "s", "cluster": "v", "dimension": "spatial", "skill": "absolute", "question": "Where?",
    "options": ["left", "right"], "answer": 0, "gaze": FIXATIONS,
}  # fmt: skip


def write(folder: Path, **media: dict[str, Any]) -> OpenedItems:
    """Items by id; three grey pictures and a film of ten seconds are there to be named."""
    for n in range(3):
        Image.new("RGB", (160, 90), (100, 100, 100)).save(folder / f"{n}.png")
    film(folder / "clip.mp4")
    lines = [json.dumps(ITEM | {"id": name} | fields) for name, fields in media.items()]
    (folder / "items.jsonl").write_text("\n".join(lines))
    return open_items(folder)


def look(
    items: OpenedItems, name: str, condition: str, gaze: GazeMode = "mark", **shown: Any
) -> tuple[GazePicture, ...]:
    seeing = Seeing(FrameOptions(**({"longest_edge": 1024, "quality": 90} | shown)), gaze)
    return Eyes(items.dataset, items.items, seeing)(posed(items.by_id[name], condition))


def marked(frame: ModelFrame) -> GazePoint | None:
    """Where the magenta of a picture is, by its middle."""
    pixels = np.asarray(Image.open(io.BytesIO(frame.jpeg)).convert("RGB")).astype(int)
    rows, columns = np.nonzero((pixels[..., 0] - pixels[..., 1] > 40) & (pixels[..., 2] - pixels[..., 1] > 40))
    if not rows.size:
        return None
    return GazePoint(
        round(float(columns.mean() + 0.5) / pixels.shape[1], 1), round(float(rows.mean() + 0.5) / pixels.shape[0], 1)
    )


def test_the_circle_follows_the_gaze_through_a_list_of_pictures(tmp_path: Path) -> None:
    items = write(tmp_path, listed={"media": ["0.png", "1.png", "2.png"], "start": 1.0, "end": 4.0})
    left, right = GazePoint(0.2, 0.5), GazePoint(0.8, 0.5)
    # at 1.0 s nobody knows, at 2.5 s the first fixation, at 4.0 s the second
    assert [marked(frame) for frame in look(items, "listed", "gaze")] == [None, left, right]
    assert [marked(frame) for frame in look(items, "listed", "wrong-gaze")] == [None, right, left]
    assert [marked(frame) for frame in look(items, "listed", "plain")] == [None] * 3
    assert [marked(frame) for frame in look(items, "listed", "gaze", "text")] == [None] * 3
    assert look(items, "listed", "text-only") == ()


def test_frames_of_a_clip_are_marked_by_their_own_times(tmp_path: Path) -> None:
    items = write(tmp_path, clip={"media": "clip.mp4", "start": 2.0, "end": 5.0})
    plain, seen = (look(items, "clip", condition, frames=4) for condition in ("plain", "gaze"))
    assert [frame.time for frame in seen] == [frame.time for frame in plain] == [2.0, 3.0, 4.0, 5.0]
    sides = [one.spot.x for one in seen if one.spot is not None]
    assert sides == [0.2, 0.2, 0.8, 0.8]
    assert all(one.jpeg != two.jpeg for one, two in zip(plain, seen, strict=True))


def test_a_still_picture_is_marked_where_it_was_looked_at_longest_and_shows_the_whole_path(tmp_path: Path) -> None:
    items = write(tmp_path, still={"media": ["0.png"]})
    (mark,), (trail,) = (look(items, "still", "gaze", mode) for mode in ("mark", "trail"))
    assert marked(mark) == GazePoint(0.8, 0.5)
    pixels = np.asarray(Image.open(io.BytesIO(trail.jpeg))).astype(int)
    assert pixels[45, 80, 0] - pixels[45, 80, 1] > 80  # the line between the two


def test_the_circle_is_drawn_before_the_picture_is_made_smaller(tmp_path: Path) -> None:
    items = write(tmp_path, still={"media": ["0.png"]})
    (small,) = look(items, "still", "gaze", longest_edge=80)
    assert (small.width, small.height) == (80, 45)
    assert marked(small) == GazePoint(0.8, 0.5)


def test_a_picture_that_became_a_link_out_of_the_folder_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    items = write(tmp_path / "data", still={"media": ["0.png"]})
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    (tmp_path / "data" / "0.png").unlink()
    (tmp_path / "data" / "0.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(DataError, match="a link that leads out"):
        look(items, "still", "plain")


@pytest.mark.skipif(not LOCAL, reason="transformers and torch are not installed: surgeval[models]")
@pytest.mark.parametrize("sees", [True, False])
def test_local_weights_answer_every_condition(tmp_path: Path, sees: bool) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", a={"media": ["0.png"]}, b={"media": ["0.png", "1.png"], "start": 2.0, "end": 3.0})
    model = (seeing_model if sees else blind_model)(tmp_path / "model")
    options = ChatOptions(max_tokens=2)
    run = run_intent(tmp_path / "data", f"hf:{model}", tmp_path / "run", options=options, progress=False)
    conditions = ["plain", "gaze", "text-only"] if sees else ["plain"]
    assert sorted(run.answers["condition"]) == sorted(conditions * 2)
    assert run.counts == {"ok": 2 * len(conditions)}
    assert ("asked in text alone" in str(run)) == (not sees)
    shown = {row["id"]: len(json.loads(row["shown"])) for row in run.answers.iter_rows(named=True)}
    assert shown["b@plain"] == (2 if sees else 0)
