"""What a run refuses, and what it says about records that it cannot use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from tests.flow_fields import write_flo

from surgeval.datasets import dataset_fingerprint, open_dataset
from surgeval.engine import load_cases
from surgeval.errors import BadInput, DataError, RunError
from surgeval.protocols.surgxbench import SurgXRun, SurgXSettings, join_runs, load_surgxbench, run_surgxbench

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = SurgXSettings(tasks=("instruments",), occlusion=False, curves=0, sanity=0, every=4)


def _run(data: Path, folder: Path, settings: SurgXSettings = QUICK, **more: Any) -> SurgXRun:
    return run_surgxbench(data, "phantom-clip", out=folder, settings=settings, gallery=0, progress=False, **more)


@pytest.fixture
def copied(filmed: Path, tmp_path: Path) -> Path:
    shutil.copytree(filmed, tmp_path / "data")
    return tmp_path / "data"


def _videos(data: Path) -> list[str]:
    return [video.name for video in open_dataset(data).videos()]


def test_a_record_that_cannot_be_used_is_a_failed_case(copied: Path, tmp_path: Path) -> None:
    video = _videos(copied)[0]
    truth = copied / "truth" / f"{video}.json"
    content = json.loads(truth.read_text())
    content["frames"][0]["time"] = "noon"
    truth.write_text(json.dumps(content))
    assert _run(copied, tmp_path / "run", videos=(video,)).summary.exit_code == 1
    (failed,) = load_cases(tmp_path / "run").filter(pl.col("status") == "unreadable").collect().to_dicts()
    assert "time" in failed["reason"] and "noon" in failed["reason"]
    scores = load_surgxbench(tmp_path / "run")
    assert scores.tables["failures"].select("status", "cases").rows() == [("unreadable", 1)]
    assert scores.failed == 1


def test_a_run_without_a_labelled_frame_says_so(copied: Path, tmp_path: Path) -> None:
    for path in (copied / "truth").glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"frames": []}))
    with pytest.raises(BadInput, match="no labelled frame in 2 videos, expected at least one"):
        _run(copied, tmp_path / "run")


def test_a_folder_of_all_videos_is_not_made_over_into_one_of_a_single_video(filmed: Path, tmp_path: Path) -> None:
    first, second = _videos(filmed)
    _run(filmed, tmp_path / "one", videos=(first, first))  # said twice, meant once
    with pytest.raises(RunError, match="videos"):
        _run(filmed, tmp_path / "one", videos=(second,))
    _run(filmed, tmp_path / "two", videos=(second,))
    joined = join_runs([tmp_path / "one", tmp_path / "two"], name="both")
    assert sorted(joined.cases["cluster"].unique()) == [first, second]


def test_runs_that_cannot_be_joined_name_the_setting(filmed: Path, tmp_path: Path) -> None:
    first, second = _videos(filmed)
    _run(filmed, tmp_path / "one", videos=(first,))
    _run(filmed, tmp_path / "two", SurgXSettings(**{**_plain(QUICK), "keep_top": 0.3}), videos=(second,))
    with pytest.raises(DataError, match="found other keep_top, expected those of"):
        join_runs([tmp_path / "one", tmp_path / "two"], name="both")


def _plain(settings: SurgXSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def test_a_split_that_shares_its_videos_with_another_is_refused_with_advice(copied: Path, tmp_path: Path) -> None:
    manifest = copied / "phantom.json"
    content = json.loads(manifest.read_text())
    for video in content["videos"]:
        video["split"] = "train,val"
    manifest.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"in several splits .train,val., expected each video in one; open the folder"):
        _run(copied, tmp_path / "run", split="val")


def test_stored_flow_of_another_layout_is_refused_before_the_run(filmed: Path, tmp_path: Path) -> None:
    video = _videos(filmed)[0]
    (tmp_path / "flow" / video).mkdir(parents=True)
    settings = SurgXSettings(flow="files", flow_source=str(tmp_path / "flow"), occlusion=False, curves=0, sanity=0)
    with pytest.raises(DataError, match=r"no \*\.flo; stored flow is VIDEO/FRAME\.flo and VIDEO/FRAME\.back\.flo"):
        _run(filmed, tmp_path / "run", settings)
    write_flo(tmp_path / "flow" / video / "000000.flo", np.zeros((2, 2, 2), np.float32))
    with pytest.raises(DataError, match=r"no \*\.back\.flo"):
        _run(filmed, tmp_path / "run", settings)


def test_a_run_inside_the_datasets_folder_is_no_part_of_the_dataset(copied: Path) -> None:
    before = dataset_fingerprint(open_dataset(copied))
    _run(copied, copied / "runs" / "clip", videos=(_videos(copied)[0],))
    assert dataset_fingerprint(open_dataset(copied)) == before


def test_the_order_of_cases_does_not_depend_on_the_batch(filmed: Path, tmp_path: Path) -> None:
    video = _videos(filmed)[0]
    for batch in (1, 3):
        _run(filmed, tmp_path / str(batch), SurgXSettings(**{**_plain(QUICK), "batch": batch}), videos=(video,))
    one, three = (load_cases(tmp_path / str(batch)).collect()["id"].to_list() for batch in (1, 3))
    assert one == three


def test_an_image_of_another_size_than_labelled_is_not_measured(copied: Path, tmp_path: Path) -> None:
    video = _videos(copied)[0]
    frame = next(iter(open_dataset(copied).frames(video)))
    assert frame.image is not None
    with Image.open(frame.image.path) as picture:
        picture.resize((100, 60)).save(frame.image.path)
    _run(copied, tmp_path / "run", videos=(video,))
    (failed,) = load_cases(tmp_path / "run").filter(pl.col("status") == "unreadable").collect().to_dicts()
    assert failed["id"] == f"{video}/{frame.name}"
    assert failed["reason"].endswith(f"found 100 × 60 pixels, expected {frame.width} × {frame.height} as labelled")


def test_a_second_frame_of_the_same_name_is_a_failed_case(copied: Path, tmp_path: Path) -> None:
    video = _videos(copied)[0]
    truth = copied / "truth" / f"{video}.json"
    content = json.loads(truth.read_text())
    content["frames"].insert(1, content["frames"][0])
    truth.write_text(json.dumps(content))
    _run(copied, tmp_path / "run", SurgXSettings(**{**_plain(QUICK), "every": 1}), videos=(video,))
    failed = load_cases(tmp_path / "run").filter(pl.col("status") != "ok").collect()
    assert any("second frame named" in reason or "duplicate" in reason for reason in failed["reason"])
    assert load_surgxbench(tmp_path / "run").failed == failed.height


def test_weights_for_a_flow_that_needs_none_are_refused() -> None:
    with pytest.raises(BadInput, match=r"flow_source: found 'raft.pth' with flow dis, expected flow raft or files"):
        SurgXSettings(flow="dis", flow_source="raft.pth")


def test_an_edited_identity_of_the_model_is_named(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    record = json.loads((folder / "run.json").read_text())
    for key, value, field in (("model", "clip", "model"), ("dataset", {}, "dataset.name")):
        (folder / "run.json").write_text(json.dumps({**record, key: value}))
        with pytest.raises(DataError, match=rf"run\.json: {field}: "):
            load_surgxbench(folder)


@pytest.fixture(scope="module")
def finished(filmed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    _run(filmed, folder)
    return folder
