"""Claims about the written dataset: splits, layout, identical bytes, and the pinned edition."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from surgeval.errors import BadInput, DataError
from surgeval.phantom import (
    EDITIONS,
    PHANTOM_V1_FRAMES,
    PHANTOM_V1_SHA256,
    PHANTOM_V1_VIDEOS,
    Footage,
    edition_hash,
    make_procedure,
    plan_videos,
    video_mp4,
    write_edition,
    write_phantom,
)
from surgeval.phantom.__main__ import PINNED_FRAME, frame_hash
from surgeval.records import Mask
from surgeval.vocab import load_labels

SMALL: dict[str, Any] = {"seed": 7, "videos": 2, "seconds": 4, "width": 224, "height": 128}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phantom(tmp_path_factory.mktemp("small") / "D", processes=1, **SMALL)


def truth(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / "truth" / f"{name}.json").read_text(encoding="utf-8")))


def mask_of(item: dict[str, Any]) -> Mask:
    height, width = item["mask"]["size"]
    return Mask(height, width, tuple(item["mask"]["counts"]))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_phantom_v1_has_eighteen_videos_split_three_one_two_in_each_source() -> None:
    fixed = EDITIONS["phantom-v1"]
    plans = plan_videos(fixed.seed, fixed.videos)
    assert (fixed.videos, fixed.seconds, fixed.fps_labels) == (18, 60.0, 1.0)
    for source in "ABC":
        splits = Counter(plan.split for plan in plans if plan.source == source)
        assert splits == {"train": 3, "val": 1, "test": 2}
    assert len({plan.name for plan in plans}) == len({plan.seed for plan in plans}) == 18


def test_the_unseen_procedure_is_in_test_of_every_source_and_never_in_training() -> None:
    plans = plan_videos(EDITIONS["phantom-v1"].seed, 18)
    assert {plan.split for plan in plans if plan.ood} == {"test"}
    assert {plan.source for plan in plans if plan.ood} == {"A", "B", "C"}


def test_two_writes_are_the_same_bytes_with_one_process_or_two(small: Path, tmp_path: Path) -> None:
    again = write_phantom(tmp_path / "again", processes=2, **SMALL)
    assert content(again) == content(small)


def test_another_seed_is_another_dataset(small: Path, tmp_path: Path) -> None:
    other = write_phantom(tmp_path / "other", processes=1, **{**SMALL, "seed": 8, "videos": 1, "seconds": 2})
    ours, theirs = content(small), content(other)
    assert ours["frames/A1/000000.jpg"] != theirs["frames/A1/000000.jpg"]
    assert ours["truth/A1.json"] != theirs["truth/A1.json"]


def test_files_hold_no_path_of_this_machine(small: Path, tmp_path: Path) -> None:
    texts = [data.decode() for name, data in content(small).items() if name.endswith(("json", "jsonl"))]
    assert len(texts) > 3
    for text in texts:
        assert str(small) not in text and str(Path.home()) not in text
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b", text)


def test_labels_are_one_a_second_each_with_a_successor(small: Path) -> None:
    for name in ("A1", "B1"):
        frames = truth(small, name)["frames"]
        assert [frame["time"] for frame in frames] == [0.0, 1.0, 2.0, 3.0]
        files = sorted(path.stem for path in (small / "frames" / name).iterdir())
        assert files == ["000000", "000001", "000025", "000026", "000050", "000051", "000075", "000076"]
        assert [frame["name"] for frame in frames] == files[::2]


def test_the_index_names_format_size_label_space_and_videos(small: Path) -> None:
    index = json.loads((small / "phantom.json").read_text(encoding="utf-8"))
    assert (index["format"], index["version"], index["fps"], index["size"]) == ("surgeval-phantom", 1, 25, [224, 128])
    assert index["label_space"] == load_labels("phantom").to_json()
    keys = {"name", "source", "split", "procedure", "seconds", "sha256"}
    assert [row["name"] for row in index["videos"]] == ["A1", "B1"]
    assert all(set(row) == keys for row in index["videos"])
    assert index["sha256"] == edition_hash(small)


def test_truth_has_one_frame_per_line_and_instances_in_the_promised_form(small: Path) -> None:
    space = load_labels("phantom")
    lines = (small / "truth" / "A1.json").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('{"name"') for line in lines) == 4
    seen = 0
    for frame in truth(small, "A1")["frames"]:
        assert set(frame) == {"name", "time", "phase", "camera", "region", "objects", "corruption", "instances"}
        assert set(frame["camera"]) == set("PTZR")
        for item in frame["instances"]:
            mask = mask_of(item)
            box = mask.box()
            assert box is not None and [box.x, box.y, box.w, box.h] == item["box"]
            assert item["triplet"] == space.find(
                space.id("instrument", item["instrument"]),
                space.id("verb", item["verb"]),
                space.id("target", item["target"]),
            )
            assert len(item["tip"]) == 2 and len(item["motion"]) == 6
            seen += 1
    assert seen


def test_the_stored_motion_carries_an_instrument_onto_its_successor(small: Path) -> None:
    """A mask moved by its own affine must lie where the instrument's pixels are 1/25 s later."""
    procedure_seed = plan_videos(7, 2)[0]
    footage = Footage(make_procedure(procedure_seed.seed, 4, procedure_seed.procedure), "A", width=224, height=128)
    checked = 0
    for frame in truth(small, "A1")["frames"]:
        after = footage.shoot(int(frame["name"]) + 1).masks
        for item in frame["instances"]:
            mask = mask_of(item).to_array().astype(np.uint8)
            matrix = np.asarray(item["motion"], dtype=np.float64).reshape(2, 3)
            moved = cv2.warpAffine(mask, matrix, (224, 128), flags=cv2.INTER_NEAREST).astype(bool)
            there = after[item["track"]]
            if mask.sum() > 400:
                assert (moved & there).sum() / (moved | there).sum() > 0.8
                checked += 1
    assert checked


def test_questions_are_in_the_challenge_schema_and_point_to_existing_frames(small: Path) -> None:
    requests = json.loads((small / "questions/focus_requests.json").read_text(encoding="utf-8"))
    references = json.loads((small / "questions/focus_references.json").read_text(encoding="utf-8"))
    fields = {"qID", "videoID", "start_time", "end_time", "procedure_type", "question"}
    assert requests and all(set(row) == fields for row in requests)
    assert [row["qID"] for row in requests] == [row["qID"] for row in references]
    items = small / "questions" / "intent" / "items.jsonl"
    for line in items.read_text(encoding="utf-8").splitlines():
        for path in json.loads(line)["media"]:
            assert (items.parent / path).exists()


def test_tint_by_instrument_colours_tissue_and_changes_no_label(small: Path, tmp_path: Path) -> None:
    tinted = write_phantom(tmp_path / "tinted", processes=1, tint="by_instrument", **{**SMALL, "videos": 1})
    plain, coloured = truth(small, "A1"), truth(tinted, "A1")
    assert plain["frames"] == coloured["frames"]
    assert plain["pixels_sha256"] != coloured["pixels_sha256"]


def test_a_random_tint_is_the_same_in_a_frame_and_its_successor() -> None:
    plan = plan_videos(7, 1)[0]
    footage = Footage(make_procedure(plan.seed, 4, plan.procedure), "C", width=224, height=128, tint="random")
    means = [footage.shoot(24 + k, like=24).image.reshape(-1, 3).mean(axis=0) for k in (0, 1)]
    assert np.abs(means[0] - means[1]).max() < 3.0


def test_an_mp4_has_every_frame(tmp_path: Path) -> None:
    footage = Footage(make_procedure(3, 1.0), "B", width=128, height=96)
    files = [video_mp4(footage, tmp_path / f"{k}.mp4") for k in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()
    with av.open(str(files[0])) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 25
    assert np.abs(frames[10].astype(int) - footage.shoot(10).image).mean() < 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fps_labels": 20}, "fps_labels: found 20"),
        ({"videos": 0}, "videos: found 0"),
        ({"seed": -1}, "seed: found -1"),
        ({"tint": "blue"}, "tint: found 'blue'"),
        ({"width": 128, "height": 128}, "frame size: found 128×128"),
        ({"processes": 0}, "processes: found 0"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        write_phantom(tmp_path / "D", **{**SMALL, "processes": 1, **arguments})
    assert not (tmp_path / "D").exists()


def test_an_unknown_edition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="edition: found 'phantom-v9', expected one of phantom-v1"):
        write_edition("phantom-v9", tmp_path / "D")


def test_the_hash_of_a_folder_that_is_no_phantom_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"phantom\.json"):
        edition_hash(tmp_path)


def test_changed_truth_changes_the_hash(small: Path, tmp_path: Path) -> None:
    copy = write_phantom(tmp_path / "copy", processes=1, **{**SMALL, "videos": 1, "seconds": 2})
    before = edition_hash(copy)
    path = copy / "truth" / "A1.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"time": 1.0', '"time": 1.5', 1), encoding="utf-8")
    assert edition_hash(copy) != before


def test_some_frames_of_the_edition_are_as_pinned(long: bool) -> None:
    """Any change of a pixel of phantom-v1 must be a decision: `python -m surgeval.phantom pin`."""
    plans = plan_videos(EDITIONS["phantom-v1"].seed, 18)
    assert set(PHANTOM_V1_FRAMES) == {f"{plan.name}/{PINNED_FRAME:06d}" for plan in plans}
    for plan in plans if long else plans[::6]:
        pinned = PHANTOM_V1_FRAMES[f"{plan.name}/{PINNED_FRAME:06d}"]
        assert frame_hash(plan.seed, plan.procedure, plan.source) == pinned, plan.name


def test_the_edition_does_not_depend_on_the_cpus_vector_units() -> None:
    """OpenCV without AVX, in a process of its own, shoots the same frame."""
    plan = plan_videos(EDITIONS["phantom-v1"].seed, 1)[0]
    program = (
        "from surgeval.phantom.__main__ import frame_hash\n"
        f"print(frame_hash({plan.seed}, {plan.procedure!r}, {plan.source!r}))"
    )
    environment = {**os.environ, "OPENCV_CPU_DISABLE": "AVX2,FMA3,AVX"}
    there = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split() == [frame_hash(plan.seed, plan.procedure, plan.source)]


@pytest.mark.long
def test_the_whole_edition_is_as_pinned(tmp_path: Path) -> None:
    folder = write_edition("phantom-v1", tmp_path / "v1")
    index = json.loads((folder / "phantom.json").read_text(encoding="utf-8"))
    assert {row["name"]: row["sha256"] for row in index["videos"]} == PHANTOM_V1_VIDEOS
    assert edition_hash(folder) == PHANTOM_V1_SHA256


def test_the_pixel_hash_is_of_the_pictures_before_jpeg(small: Path) -> None:
    plan = plan_videos(7, 1)[0]
    footage = Footage(make_procedure(plan.seed, 4, plan.procedure), plan.source, width=224, height=128)
    total = hashlib.sha256()
    for index in (0, 25, 50, 75):
        total.update(footage.shoot(index).image.tobytes())
        total.update(footage.shoot(index + 1, like=index).image.tobytes())
    assert total.hexdigest() == truth(small, "A1")["pixels_sha256"]


def test_pinning_writes_the_file_that_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from surgeval.phantom import __main__ as program
    from surgeval.phantom.dataset import pins as _pins

    assert Path(_pins.__file__) == program.PINS and f'"{PHANTOM_V1_SHA256}"' in program.PINS.read_text()
    monkeypatch.setattr(program, "PINS", tmp_path / "_pins.py")
    monkeypatch.setattr(program, "write_edition", lambda name, folder: Path(folder))
    monkeypatch.setattr(program, "pins", lambda folder: "PINNED = True\n")
    assert program.main(["pin"]) == 0
    assert (tmp_path / "_pins.py").read_text() == "PINNED = True\n"
