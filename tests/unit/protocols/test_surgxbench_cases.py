"""A run's cases: what the model is taken to say, where it looks, and what is left out of means."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tests.conftest import Once

from surgeval.datasets import open_dataset
from surgeval.engine import load_cases
from surgeval.errors import RunError
from surgeval.metrics.grounding import prediction_sets, triplet_match
from surgeval.models import open_contrastive
from surgeval.protocols.surgxbench import (
    SurgXRun,
    SurgXScores,
    SurgXSettings,
    load_surgxbench,
    profile_settings,
    run_surgxbench,
    tables,
)
from surgeval.protocols.surgxbench.gallery.examples import flow_pipeline
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, Reader, batches
from surgeval.protocols.surgxbench.measuring.instruments import instrument_cases, predicted_classes
from surgeval.protocols.surgxbench.measuring.worker import VideoWorker
from surgeval.records import Triplet

pytestmark = pytest.mark.usefixtures("one_thread")
FAST: dict[str, Any] = {"curves": 0, "sanity": 0}
LOOKED = SurgXSettings(batch=2, threads=1, **FAST)
INSTRUMENTS = SurgXSettings(tasks=("instruments",), **FAST)


def _run(data: Path, folder: Path, settings: SurgXSettings, model: str = "phantom-clip", **more: Any) -> SurgXRun:
    return run_surgxbench(data, model, out=folder, settings=settings, gallery=0, progress=False, **more)


def _instruments(scores: SurgXScores) -> pl.DataFrame:
    return scores.cases.filter(pl.col("task") == "instruments")


@pytest.fixture(scope="module")
def looked(filmed: Path, once: Once, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both tasks, profile surgxbench; batches of two, one thread; a copy, since tests resume it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    run = once("looked", lambda out: _run(filmed, out, LOOKED))
    torch.set_num_threads(before)
    return shutil.copytree(run, tmp_path_factory.mktemp("looked") / "run")


@pytest.fixture(scope="module")
def scores(looked: Path) -> SurgXScores:
    return load_surgxbench(looked)


# what the model is taken to say


def test_argmax_says_one_class_and_delta_those_above_the_frames_own_quantile() -> None:
    given = np.random.default_rng(0).normal(size=(5, 7))
    one = predicted_classes(given, SurgXSettings(predict="argmax"))
    assert one.sum(axis=1).tolist() == [1] * 5
    assert (one.argmax(axis=1) == given.argmax(axis=1)).all()
    for over in ("classes", "minmax"):
        assert (predicted_classes(given, SurgXSettings(over=over)) == prediction_sets(given, 0.9, over)).all()
    assert predicted_classes(given, SurgXSettings(over="frames")).all()  # decided when all frames are known


def test_over_frames_compares_a_score_with_its_class_in_all_other_frames(filmed: Path, tmp_path: Path) -> None:
    _run(filmed, tmp_path / "run", SurgXSettings(tasks=("instruments",), over="frames", delta=0.6, **FAST))
    found = _instruments(load_surgxbench(tmp_path / "run"))
    classes = open_dataset(filmed).space.instruments
    for name in classes:
        part = found.filter(pl.col("class") == name)
        assert part.height == 8  # every frame has a score of every class
        scores = part["score"].to_numpy()
        assert (part["predicted"].to_numpy() == (scores > np.quantile(scores, 0.6))).all()
        assert 0 < part["predicted"].sum() < 8


def test_a_model_that_cannot_tell_the_prompts_apart_is_not_right_by_ties(filmed: Path) -> None:
    """It says nothing, and its top-1 is the first class: one answer a frame, whatever is there."""
    dataset, net = open_dataset(filmed), open_contrastive("phantom-clip")
    classes = dataset.space.instruments
    bank = net.texts(classes)
    same = replace(bank, vectors=torch.zeros_like(bank.vectors))
    settings = SurgXSettings(tasks=("instruments",), occlusion=False)
    cases = []
    for video in dataset.videos():
        for batch in batches(dataset, video.name, Reader(net.preparation, settings), settings):
            seen = [one for one in batch if isinstance(one, PreparedFrame)]
            cases += [{"cluster": c.cluster, **c.values} for c in instrument_cases(net, same, classes, seen, settings)]
    found = pl.DataFrame(cases, infer_schema_length=None)
    assert not found["predicted"].any()
    best = found.filter("best")
    assert best.height == 8
    assert set(best["class"]) == {classes[0]}
    assert best["present"].to_list() == best["shown"].cast(bool).to_list()  # the phantom always shows a grasper
    assert found.filter("present", ~pl.col("best")).height > 0  # other instruments share the highest score


def test_every_frame_has_one_best_prompt_and_top_1_is_counted_where_an_instrument_is_shown(
    scores: SurgXScores,
) -> None:
    best = _instruments(scores).filter("best")
    assert best.height == 8
    assert best.filter(pl.col("shown") == 0).height == 2  # the first frame of each video
    shown = best.filter(pl.col("shown") > 0)
    assert scores.numbers["accuracy"].estimate == shown["present"].mean()


# what is left out


def test_what_is_excluded_is_counted_and_never_a_zero(scores: SurgXScores) -> None:
    rows = _instruments(scores)
    bare = rows.filter(pl.col("predicted") & (pl.col("shown") == 0))
    assert bare.height == 2
    assert set(bare["excluded"]) == {"no_gt"}
    used = rows.filter(pl.col("predicted") & pl.col("present") & (pl.col("excluded") == ""))
    assert scores.numbers["tp_ac"].estimate == pytest.approx(used["ac"].mean())
    assert scores.tables["classes"]["excluded"].sum() == 2
    flags = scores.tables["flags"].filter((pl.col("task") == "instruments") & (pl.col("flag") == "no_gt"))
    assert flags["cases"].item() == 2
    missed = rows.filter(~pl.col("predicted"))
    assert missed["ac"].null_count() == missed.height


def test_false_alarms_on_empty_frames_lower_precision_but_have_no_fp_ac(scores: SurgXScores) -> None:
    rows = _instruments(scores)
    fp = rows.filter(pl.col("predicted") & ~pl.col("present"))
    assert fp.height >= 2
    counted = fp.filter(pl.col("excluded") == "")
    assert counted.filter(pl.col("shown") == 0).is_empty()
    tp = rows.filter(pl.col("predicted") & pl.col("present"))
    by_class = scores.tables["classes"].filter(~pl.col("class").is_in(["mean", "pooled"]))
    assert by_class["predicted"].sum() == tp.height + fp.height


def test_an_instrument_without_a_visible_box_has_no_aa(filmed: Path, scores: SurgXScores, tmp_path: Path) -> None:
    """Labelled without a box, it cannot be looked at: AA is undefined there and its boxes cannot be hidden."""
    data = tmp_path / "data"
    shutil.copytree(filmed, data)
    right = _instruments(scores).filter("predicted", "present", pl.col("shown") > 1).row(0, named=True)
    truth = data / "truth" / f"{right['cluster']}.json"
    value = json.loads(truth.read_text())
    (frame,) = (one for one in value["frames"] if one["name"] == right["frame"])
    for item in frame["instances"]:
        if item["instrument"] == right["class"]:
            item["box"] = item["mask"] = None
    truth.write_text(json.dumps(value))
    _run(data, tmp_path / "after", INSTRUMENTS, videos=(right["cluster"],))
    after = _instruments(load_surgxbench(tmp_path / "after"))
    row = after.filter(pl.col("id") == right["id"]).row(0, named=True)
    assert row["present"]
    assert "class_empty" in row["flags"]
    assert row["aa"] is None
    assert row["ac"] is not None
    assert row["kept_boxes"] is None
    assert row["kept_attended"] is not None


# references and checks


def test_the_oracle_scores_one_and_uniform_scores_chance_exactly(scores: SurgXScores) -> None:
    rows = scores.cases.filter((pl.col("task") == "reference") & (pl.col("excluded") == ""))
    oracle, uniform = (rows.filter(pl.col("reference") == name) for name in ("oracle", "uniform"))
    assert oracle.height == uniform.height > 6
    assert set(oracle["ac"]) == {1.0}
    assert set(oracle["aa"]) == {1.0}
    assert uniform["ac"].to_list() == uniform["chance"].to_list()
    table = scores.tables["references"]
    assert table["map"].to_list() == ["uniform", "centre", "edge", "oracle"]
    assert table["lift"].to_list()[0] == pytest.approx(1, abs=1e-12)


def test_the_checks_use_only_frames_that_the_run_looks_at_and_find_a_map_of_the_model(
    filmed: Path, tmp_path: Path
) -> None:
    settings = SurgXSettings(tasks=("instruments",), every=3, curves=3, sanity=1, occlusion=False)
    _run(filmed, tmp_path / "run", settings, videos=(open_dataset(filmed).videos()[0].name,))
    found = load_surgxbench(tmp_path / "run")
    frames = set(_instruments(found)["frame"])
    assert len(frames) == 2
    checked = found.cases.filter(pl.col("task").is_in(["curves", "sanity"]))
    assert checked["frame"].unique().to_list() == [max(frames)]  # of the first and the last frame, the last shows any
    cascade = found.tables["sanity"].filter(pl.col("check") == "weights")
    assert cascade["correlation"].to_list()[-1] < 0.7  # nothing of the map is left without the weights
    curves = found.tables["curves"]
    assert curves["deletion"].item() < curves["deletion_random"].item()


# triplets


def test_each_labelled_triplet_takes_the_best_match_of_the_top_prompts(filmed: Path, scores: SurgXScores) -> None:
    space = open_dataset(filmed).space
    rows = scores.cases.filter(pl.col("task") == "triplets")
    assert rows.height > 6
    for row in rows.iter_rows(named=True):
        said = [_triplet(name, space) for name in row["top"]]
        assert len(said) == 5
        (match,) = triplet_match(said, list(range(5, 0, -1)), [_triplet(row["triplet"], space)])
        assert match.level == row["level"]
        assert row["prompt"] == (None if match.prompt is None else row["top"][match.prompt])
        assert (row["kept_attended"] is None) == (row["matched_attended"] is None) == (row["level"] != "IVT")
        assert row["matched_attended"] or not row["kept_attended"]
    table = scores.tables["matches"]
    assert table["match"].to_list() == ["IVT", "IV", "IT", "I", "missed"]
    assert table["triplets"].sum() == rows.height
    assert table["share"].sum() == pytest.approx(1)


def test_pictures_of_hidden_regions_show_what_the_cases_say(filmed: Path, looked: Path, scores: SurgXScores) -> None:
    """The run is complete, so the same call only opens it."""
    extras = _run(filmed, looked, LOOKED).extras(scores)
    assert extras.hidings
    rows = scores.cases.filter((pl.col("task") == "triplets") & (pl.col("level") == "IVT"))
    for one in extras.hidings:
        said = rows.filter((pl.col("cluster") == one.video) & (pl.col("frame") == one.frame))
        (row,) = said.filter(pl.col("triplet") == one.truth).to_dicts()
        assert [name for name, _ in one.before] == row["top"]
        assert dict(one.before)[one.truth] == pytest.approx(row["score"], abs=1e-5)
        assert one.kept == row["kept_attended"]
        assert (one.outcome(said["triplet"].to_list()) == "no complete match left") != row["matched_attended"]
        assert isinstance(one.picture, np.ndarray)
        assert one.picture.dtype == np.uint8 and one.picture.shape[1] == 840
    assert extras.flow is not None
    assert extras.flow.mask.shape == extras.flow.before.shape[:2] == (256, 448)
    assert np.allclose(extras.flow.before - extras.flow.camera, extras.flow.after, atol=1e-4)


def test_no_picture_of_motion_where_no_frame_can_be_read(filmed: Path, scores: SurgXScores, tmp_path: Path) -> None:
    """A finished run must not end in an error because its last picture cannot be drawn."""
    broken = shutil.copytree(filmed, tmp_path / "D")
    for image in (broken / "frames").rglob("*.jpg"):
        image.write_bytes(b"no picture")
    assert flow_pipeline(VideoWorker(str(broken), None, None, "phantom-clip", "cpu", "float32", LOOKED), scores) is None


def _triplet(name: str, space: Any) -> Triplet:
    i, v, t = name.split(",")
    return Triplet(space.instruments.index(i), space.verbs.index(v), space.targets.index(t))


def test_ras_lies_between_what_boxes_alone_and_everything_would_give(scores: SurgXScores) -> None:
    rows = scores.cases.filter((pl.col("task") == "triplets") & (pl.col("excluded") == ""))
    assert rows["ras"].is_between(0, 1).all()
    assert (rows["chance"] > 0).all()


def test_table_2_of_the_early_text_is_that_of_the_metrics(filmed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    _run(filmed, folder, profile_settings("early", **FAST))
    early = load_surgxbench(folder)
    rows = early.cases.filter(pl.col("task") == "ars")
    assert rows.height == 8  # every frame, also those without a triplet
    table = {row["video"]: row for row in early.tables["table2"].iter_rows(named=True)}
    for video in (*rows["cluster"].unique(), "overall"):
        frames = rows if video == "overall" else rows.filter(pl.col("cluster") == video)
        valid = frames.filter(pl.col("valid"))
        known = valid["ars"].drop_nulls().to_list()
        row = table[video]
        assert row["frames"] == frames.height
        assert row["valid"] == pytest.approx(valid.height / frames.height)
        assert row["ars"] == (pytest.approx(sum(known) / len(known)) if known else None)
        assert row["zero"] == (pytest.approx(known.count(0) / valid.height) if valid.height else None)
        assert row["excluded"] == valid.height - len(known)
    assert rows["valid"].sum() > 0
    assert early.tables["table1"]["video"].to_list()[-1] == "overall"
    assert early.tables["table1"].tail(1)["excluded"].item() >= 2
    assert _instruments(early)["predicted"].sum() == 8  # one class per frame


def test_an_undefined_ars_stays_in_v_and_out_of_the_mean() -> None:
    rows = pl.DataFrame(
        {
            "task": "ars",
            "cluster": ["a", "a", "a", "b"],
            "valid": [True, True, True, False],
            "ars": [0.0, 0.5, None, None],
            "area": [0.2, 0.4, 0.0, None],
            "excluded": ["", "", "empty_region", ""],
            **{f"match_{name}": [True] * 4 for name in ("instrument", "verb", "target", "triplet")},
        }
    )
    row = tables.early_triplets(rows).tail(1).row(0, named=True)
    assert (row["valid"], row["ars"]) == (3 / 4, 0.25)
    assert (row["zero"], row["excluded"]) == (1 / 3, 1)


# runs


def _same(a: pl.DataFrame, b: pl.DataFrame) -> None:
    assert a.columns == b.columns
    assert a["id"].to_list() == b["id"].to_list()
    for name, kind in a.schema.items():
        if kind == pl.Float64:
            assert a[name].is_null().to_list() == b[name].is_null().to_list()
            assert np.abs((a[name] - b[name]).drop_nulls().to_numpy()).max(initial=0) <= 1e-5, name
        elif kind.base_type() != pl.List:
            assert a[name].to_list() == b[name].to_list(), name


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.long)])
def test_batch_size_threads_and_processes_change_no_number(
    filmed: Path, looked: Path, tmp_path: Path, processes: int
) -> None:
    settings = SurgXSettings(batch=16, threads=4, **FAST)
    assert _run(filmed, tmp_path / "run", settings, processes=processes).summary.done == 2
    _same(*(load_cases(one).drop("unit").sort("id").collect() for one in (looked, tmp_path / "run")))


def test_a_resumed_run_ends_with_the_bytes_of_an_uninterrupted_one(filmed: Path, looked: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(looked, folder)
    whole = (folder / "cases.parquet").read_bytes()
    parts = sorted((folder / "parts").glob("*.parquet"))
    parts[0].unlink()
    (folder / "cases.parquet").unlink()
    summary = _run(filmed, folder, LOOKED).summary
    assert (summary.done, summary.resumed) == (1, 1)
    assert (folder / "cases.parquet").read_bytes() == whole
    with pytest.raises(RunError, match=r"keep_top.*0\.2.*0\.3"):
        _run(filmed, folder, replace(LOOKED, keep_top=0.3))


def test_an_unreadable_frame_is_a_failed_case_and_the_rest_is_measured(filmed: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(filmed, data)
    frame = next(f for f in open_dataset(data).frames(open_dataset(data).videos()[0].name) if f.instances)
    assert frame.image is not None
    Path(frame.image.path).write_bytes(b"no picture")
    summary = _run(data, tmp_path / "run", INSTRUMENTS).summary
    assert (summary.exit_code, summary.failed_cases) == (1, 1)
    cases = load_cases(tmp_path / "run").collect()
    (bad,) = cases.filter(pl.col("status") != "ok").iter_rows(named=True)
    assert bad["status"] == "unreadable"
    assert frame.name in bad["reason"]
    found = load_surgxbench(tmp_path / "run")
    assert _instruments(found).filter("best").height == 7


def test_a_frame_whose_successor_is_unreadable_loses_its_motion_only(filmed: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(filmed, data)
    dataset = open_dataset(data)
    frame = next(f for f in dataset.frames(dataset.videos()[0].name) if f.instances and f.successor)
    assert frame.successor is not None
    Path(frame.successor.path).write_bytes(b"no picture")
    settings = SurgXSettings(occlusion=False, **FAST)
    summary = _run(data, tmp_path / "run", settings, videos=(frame.video,)).summary
    assert summary.exit_code == 0
    rows = load_surgxbench(tmp_path / "run").cases.filter(pl.col("frame") == frame.name)
    assert set(rows.filter(pl.col("task") == "triplets")["excluded"]) == {"no_flow"}
    assert rows.filter(pl.col("task") == "instruments")["ac"].drop_nulls().len()


def test_a_run_in_which_no_frame_can_be_read_still_gives_a_page(filmed: Path, tmp_path: Path) -> None:
    from surgeval.protocols.surgxbench.page import write_page_of

    data = tmp_path / "data"
    shutil.copytree(filmed, data)
    for image in (data / "frames").rglob("*.jpg"):
        image.write_bytes(b"")
    summary = _run(data, tmp_path / "run", SurgXSettings(**FAST)).summary
    assert summary.failed_cases == 8
    found = load_surgxbench(tmp_path / "run")
    assert not found.numbers
    assert write_page_of([found], tmp_path / "page").is_file()


def test_a_convolutional_tower_is_explained_by_gradcam(filmed: Path, tmp_path: Path) -> None:
    _run(
        filmed, tmp_path / "run", SurgXSettings(tasks=("instruments",), occlusion=False, **FAST), "phantom-clip-resnet"
    )
    found = load_surgxbench(tmp_path / "run")
    assert found.settings["method"] == {"name": "gradcam", "score_scale": "cosine"}
    assert found.numbers["accuracy"].estimate > 0.5
