"""A small run of surgxbench: its folder holds what its tables and its page need."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from tests.flow_fields import write_flo
from tests.unit.models.conftest import TEXT, write_processor, write_tokenizer
from transformers import CLIPConfig, CLIPModel

from surgeval.cli.app import run as command
from surgeval.cli.protocols import print_result
from surgeval.datasets import MemoryDataset, convert
from surgeval.errors import RunError
from surgeval.metrics.grounding import FLAGS
from surgeval.protocols.registry import PROTOCOLS
from surgeval.protocols.surgxbench import SurgXRun, SurgXScores, SurgXSettings, load_surgxbench, run_surgxbench
from surgeval.records import UNKNOWN, Box, Frame, ImageRef, Instance, Triplet, Video
from surgeval.vocab import LabelSpace

pytestmark = pytest.mark.usefixtures("one_thread")


# a small run: three videos, a model that sees the middle half of each frame

SPACE = LabelSpace("toy", ("grasper", "hook", "bipolar"), ("retract",), ("gallbladder",),
                   ((0, 0, 0), (1, 0, 0), (2, 0, 0)))  # fmt: skip
WIDTH, HEIGHT = 96, 48  # the model sees columns 24 to 72
LEFT, MIDDLE = Box(2, 4, 20, 40), Box(40, 8, 16, 12)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A CLIP with random weights whose processor resizes the shorter side and crops the middle."""
    folder = tmp_path_factory.mktemp("model") / "clip"
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "image_size": 32, "patch_size": 8}  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        CLIPModel(CLIPConfig(text_config=TEXT, vision_config=vision, projection_dim=8)).save_pretrained(folder)
    write_tokenizer(folder)
    write_processor(folder, size={"shortest_edge": 32}, do_center_crop=True, crop_size={"height": 32, "width": 32})
    return str(folder)


def _film(folder: Path, moments: Mapping[int, tuple[Instance, ...]], videos: int = 3) -> Path:
    """Videos in CholecT50's layout, one frame a second; `moments` gives the labels of each second."""
    rng = np.random.default_rng(5)
    frames = []
    for video in (f"VID{n}" for n in range(1, videos + 1)):
        scene = np.kron(rng.integers(40, 220, (12, 24, 3)), np.ones((4, 4, 1))).astype(np.uint8)
        for second, seen in moments.items():
            path = folder / "raw" / f"{video}-{second}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.roll(scene, second, axis=1)).save(path)
            frames.append(Frame(video, f"{second:06d}", second, float(second), ImageRef(path), WIDTH, HEIGHT, seen))
    known = [Video(f"VID{n}", fps=1) for n in range(1, videos + 1)]
    convert(MemoryDataset(SPACE, frames, known), folder / "data", "cholect50")
    return folder / "data"


def _look(data: Path, model: str, folder: Path, **settings: Any) -> SurgXRun:
    plain: dict[str, Any] = {"curves": 0, "sanity": 0, "threads": 1, "occlusion": False}
    return run_surgxbench(
        data, model, out=folder, settings=SurgXSettings(**plain | settings), gallery=0, progress=False
    )


@pytest.fixture(scope="module")
def filmed_here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seconds 0, 1, 2 and 4: a hook in the middle, and a grasper where the model does not look in second 1."""
    hook, grasper = Instance(Triplet(1, 0, 0), MIDDLE), Instance(Triplet(0, 0, 0), LEFT)
    moments = {0: (hook,), 1: (grasper,), 2: (hook,), 4: (hook, grasper)}
    return _film(tmp_path_factory.mktemp("filmed_here"), moments)


@pytest.fixture(scope="module")
def scores(filmed_here: Path, clip: str, tmp_path_factory: pytest.TempPathFactory) -> SurgXScores:
    folder = tmp_path_factory.mktemp("scores") / "run"
    _look(filmed_here, clip, folder, curves=8)
    return load_surgxbench(folder)


def test_eight_curves_over_three_videos_are_eight_frames(scores: SurgXScores) -> None:
    checked = scores.cases.filter(pl.col("task") == "curves")
    assert checked.height == scores.tables["curves"]["frames"].item() == 8
    assert sorted(checked.group_by("cluster").len()["len"].to_list()) == [2, 3, 3]


def test_every_flag_is_a_column_that_says_what_the_words_say(scores: SurgXScores) -> None:
    names = (*FLAGS, "no_motion", "gap", "no_flow", "still")
    rows = scores.cases.filter(pl.col("task").is_in(["instruments", "reference", "triplets"]))
    for name in names:
        assert rows.schema[f"flag_{name}"] == pl.Boolean
        assert rows[f"flag_{name}"].to_list() == [name in flags.split() for flags in rows["flags"]], name
    assert rows["flag_gt_not_visible"].any()


def test_a_missing_second_and_the_last_frame_have_no_motion_and_say_why(scores: SurgXScores) -> None:
    rows = scores.cases.filter(pl.col("task") == "triplets")
    for frame, flag in (("000002", "gap"), ("000004", "no_motion")):
        part = rows.filter(pl.col("frame") == frame)
        assert (
            part[f"flag_{flag}"].all() and set(part["excluded"]) == {flag} and part["ras"].null_count() == part.height
        )
    first = rows.filter(pl.col("frame") == "000000")
    assert not first["flag_gap"].any() and set(first["excluded"]) == {""} and first["ras"].null_count() == 0


def test_attended_shares_and_reference_ras_are_those_of_the_cases(scores: SurgXScores) -> None:
    mean = scores.tables["classes"].row(by_predicate=pl.nth(0) == "mean", named=True)
    assert 0 < mean["area"] <= 1
    rows = scores.cases.filter((pl.col("task") == "reference") & (pl.col("excluded") == ""))
    uniform = rows.filter(pl.col("reference") == "uniform")
    table = scores.tables["references"].row(by_predicate=pl.nth(0) == "uniform", named=True)
    mean_ras = pytest.approx(uniform["ras"].mean())
    assert (table["area"], table["ras"], table["ras_chance"]) == (pytest.approx(1), mean_ras, mean_ras)
    assert uniform["ras"].drop_nulls().to_list() == uniform["ras_chance"].drop_nulls().to_list()
    assert 0 < uniform["ras"].null_count() < uniform.height  # the last frames have no motion
    assert scores.tables["references"].row(by_predicate=pl.nth(0) == "oracle", named=True)["ras"] == 1
    # Second 1 shows only a grasper that the model cannot see; in second 4 no pixel of it makes an oracle.
    assert scores.tables["references"].row(by_predicate=pl.nth(0) == "uniform", named=True)["excluded"] == 3
    assert scores.tables["references"].row(by_predicate=pl.nth(0) == "oracle", named=True)["excluded"] == 6


def test_stretch_measures_in_the_whole_frame_and_window_in_what_the_model_saw(
    filmed_here: Path, clip: str, scores: SurgXScores, tmp_path: Path
) -> None:
    _look(filmed_here, clip, tmp_path / "run", tasks=("instruments",), geometry="stretch")
    wide = load_surgxbench(tmp_path / "run").cases
    middle, left, frame, window = 16 * 12, 20 * 40, WIDTH * HEIGHT, HEIGHT * HEIGHT
    wanted = {"000000": (middle / window, middle / frame), "000004": (middle / window, (middle + left) / frame)}
    for second, (seen, stretched) in wanted.items():
        for cases, chance in ((scores.cases, seen), (wide, stretched)):
            here = cases.filter((pl.col("task") == "reference") & (pl.col("frame") == second))
            assert here["chance"].to_list() == pytest.approx([chance] * here.height)
    for cases, hidden in ((scores.cases, True), (wide, False)):
        said = cases.filter((pl.col("task") == "instruments") & (pl.col("frame") == "000001") & pl.col("predicted"))
        assert said.height == 3 and set(said["flag_gt_not_visible"]) == {hidden}


def test_a_dataset_without_any_labelled_triplet_still_has_its_tables_and_is_printed(
    clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Instruments are labelled, what they do is not."""
    bare = Instance(Triplet(1, UNKNOWN, UNKNOWN), MIDDLE)
    data = _film(tmp_path, {0: (bare,), 1: (bare,)}, videos=2)
    assert _look(data, clip, tmp_path / "run").summary.exit_code == 0
    found = load_surgxbench(tmp_path / "run")
    assert "accuracy" in found.numbers
    table = found.tables["matches"]
    assert table["match"].to_list() == ["IVT", "IV", "IT", "I", "missed"]
    assert table["triplets"].to_list() == [0] * 5
    assert table.select("share", "ras", "chance", "lift", "area").null_count().row(0) == (5,) * 5
    capsys.readouterr()
    print_result(found, found, PROTOCOLS["surgxbench"].tables("run"))
    lines = capsys.readouterr().out.splitlines()
    assert ["missed", "0"] in [line.split() for line in lines]
    assert any(line.split()[:3] == ["hook", "4", "4"] for line in lines)  # 4 frames, and all of them said


def test_the_command_passes_geometry_and_gap_on_to_the_run(
    filmed_here: Path, clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "surgxbench", "--data", str(filmed_here), "--model", clip, "--out", str(tmp_path / "run"),
             "--profile", "early", "--task", "triplets", "--geometry", "stretch", "--flow-gap", "2",
             "--gallery", "0"]  # fmt: skip
    assert command(words) == 0
    assert "overall" in capsys.readouterr().out
    settings = load_surgxbench(tmp_path / "run").settings
    assert (settings["geometry"], settings["flow_gap"]) == ("stretch", 2)


# a run is a folder: the page needs neither model nor data


def test_when_model_and_data_are_gone_the_same_page_is_made_from_the_folder(
    filmed_here: Path, clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, out = tmp_path / "data", tmp_path / "model", tmp_path / "run"
    shutil.copytree(filmed_here, data)
    shutil.copytree(clip, model)
    words = ["run", "surgxbench", "--data", str(data), "--model", str(model), "--out", str(out), "--gallery", "5",
             "--curves", "0", "--sanity", "0", "--seed", "3", "--name", "tiny & new"]  # fmt: skip
    assert command(words) == 0
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    page = before[Path("report.html")].decode()
    assert page.count('class="card"') == 5 + 2  # the gallery, and two frames with their region hidden
    assert "What moves" in page and "tiny &amp; new" in page
    shutil.rmtree(data)
    shutil.rmtree(model)
    for made in ("report.html", "tables", "figures"):
        path = out / made
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert command(["report", str(out)]) == 0
    after = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after == before
    assert command(["report", str(out), "--out", str(tmp_path / "elsewhere")]) == 0
    assert (tmp_path / "elsewhere" / "report.html").read_bytes() == before[Path("report.html")]


def test_the_same_command_makes_the_gallery_again_and_none_where_none_is_wanted(
    filmed_here: Path, clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["run", "surgxbench", "--data", str(filmed_here), "--model", clip, "--out", str(out), "--curves", "0",
             "--sanity", "0", "--task", "instruments", "--no-occlusion"]  # fmt: skip
    assert command([*words, "--gallery", "3"]) == 0
    assert len(load_surgxbench(out).items) == 3 == len(list((out / "gallery").iterdir()))
    (out / "gallery" / "item_002.jpg").unlink()
    found = load_surgxbench(out)
    assert len(found.items) == 2 and "item_002.jpg" in found.notes[0]
    assert command(["report", str(out)]) == 0
    assert "item_002.jpg: no such file" in (out / "report.html").read_text()
    assert command([*words, "--gallery", "3"]) == 0
    assert len(load_surgxbench(out).items) == 3 and load_surgxbench(out).notes == ()
    assert command([*words, "--gallery", "0"]) == 0
    found = load_surgxbench(out)
    assert found.items == () and not list((out / "gallery").iterdir())


# what determines motion is part of the run's identity


def test_run_json_names_flow_and_motion_where_they_are_used(
    filmed_here: Path, clip: str, scores: SurgXScores, tmp_path: Path
) -> None:
    motion = scores.settings["motion"]
    assert (motion["flow"], motion["preset"]) == ("dis", "medium")
    assert (motion["camera_fit"], motion["motion_floor_px"], motion["motion_keep_top"]) == ("robust", 0.25, 0.2)
    _look(filmed_here, clip, tmp_path / "run", tasks=("instruments",))
    assert load_surgxbench(tmp_path / "run").settings["motion"] == {}


def test_a_run_is_not_resumed_with_other_flow_files_at_the_same_place(
    filmed_here: Path, clip: str, tmp_path: Path
) -> None:
    flows, field = tmp_path / "flows", np.zeros((HEIGHT, WIDTH, 2), np.float32)
    for video in ("VID1", "VID2", "VID3"):
        (flows / video).mkdir(parents=True)
        for second in (0, 1):
            for end in ("", ".back"):
                write_flo(flows / video / f"{second:06d}{end}.flo", field)
    asked: dict[str, Any] = {"tasks": ("triplets",), "flow": "files", "flow_source": str(flows)}
    _look(filmed_here, clip, tmp_path / "run", **asked)
    assert _look(filmed_here, clip, tmp_path / "run", **asked).summary.resumed == 3
    write_flo(flows / "VID2" / "000001.flo", field + 1)
    with pytest.raises(RunError, match="motion"):
        _look(filmed_here, clip, tmp_path / "run", **asked)


def test_a_run_is_not_resumed_with_other_raft_weights_at_the_same_place(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No frame has a successor, so that the network itself is never needed: only its file is."""
    for name in ("torchvision", "torchvision.models", "torchvision.models.optical_flow"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    data = _film(tmp_path, {0: (Instance(Triplet(1, 0, 0), MIDDLE),)}, videos=1)
    weights = tmp_path / "raft.pth"
    asked: dict[str, Any] = {"tasks": ("triplets",), "flow": "raft", "flow_source": str(weights)}
    torch.save({"feature_encoder.convnormrelu.0.weight": torch.zeros(32, 3, 7, 7)}, weights)
    _look(data, clip, tmp_path / "run", **asked)
    assert _look(data, clip, tmp_path / "run", **asked).summary.resumed == 1
    torch.save({"feature_encoder.convnormrelu.0.weight": torch.ones(32, 3, 7, 7)}, weights)
    with pytest.raises(RunError, match="motion"):
        _look(data, clip, tmp_path / "run", **asked)
