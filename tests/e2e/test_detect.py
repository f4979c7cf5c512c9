"""`surgeval detect` as a user calls it: from weights and a dataset to a scored table and a film."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from tests.conftest import Once
from tests.e2e.conftest import Quick

from surgeval.datasets import video_index
from surgeval.detector import Classes, build_tdnet, save_detector
from surgeval.vocab import load_labels

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def detector(once: Once) -> Path:
    """A TDnet-p for the phantom with random weights, of which a few classes are said everywhere."""

    def make(path: Path) -> None:
        classes = Classes.of(load_labels("phantom"))
        model = build_tdnet("p", classes)
        with torch.no_grad():
            for stack in model.head.stacks.values():
                for branch in stack:
                    branch[-1].bias[:3] = torch.tensor([0.0, -1.0, -2.0])
        path.mkdir()
        save_detector(path / "detector.safetensors", model, classes, size="p", image_size=64)

    return once("phantom-detector", make)


def test_from_weights_to_a_score_and_a_film(quick: Quick, detector: Path, small_phantom: Path, tmp_path: Path) -> None:
    more = ("--track", "--video-out", "films", "--most", "20", "--json")
    code, out, err = quick("detect", "--model", detector, "--data", small_phantom, "--out", "found.parquet", *more)
    assert code == 0, err
    told = json.loads(out)
    assert (told["frames"], told["skipped"], len(told["films"])) == (20, 0, 2)
    assert 0 < told["boxes"] <= 20 * 20
    assert len(video_index(tmp_path / told["films"][0])) == 10
    code, out, err = quick("score", "triplets", "--data", small_phantom, "--pred", "found.parquet", "--out", "scored",
                           "--json")  # fmt: skip
    assert code == 0, err
    assert "key-unknown" not in err


def test_the_embedded_detector_finds_instruments_on_operations_it_never_saw(quick: Quick, small_phantom: Path) -> None:
    code, out, err = quick("detect", "--model", "tdnet-p", "--data", small_phantom, "--out", "found.parquet", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["model"], told["frames"], told["skipped"]) == ("tdnet-p", 20, 0)
    code, out, err = quick("score", "triplets", "--data", small_phantom, "--pred", "found.parquet", "--out", "scored",
                           "--json")  # fmt: skip
    assert code == 0, err
    rows = json.loads(out)["numbers"]
    found = {row["component"]: row["estimate"] for row in rows if (row["scope"], row["metric"]) == ("global", "mAP50")}
    # Two operations of 20 s, seven seeds: 0.68 to 0.84 for instruments, 0.62 to 0.84 for triplets; untrained: 0.00.
    assert found["i"] > 0.55
    assert found["ivt"] > 0.3


def test_the_summary_names_classes_frames_and_rate(quick: Quick, detector: Path, small_phantom: Path) -> None:
    image = next((small_phantom / "frames").rglob("*.*"))
    code, out, err = quick("detect", "--model", detector, "--data", image, "--out", "one.csv", "--preset", "viewer")
    assert code == 0, err
    assert "grasper" in out
    assert "1 frames" in out
    assert "frames a second" in out
    assert out.splitlines()[-1] == "one.csv"  # a picture alone has no labels to score with


@pytest.mark.parametrize("more", [(), ("--format", "phantom"), ("--every", "2")], ids=" ".join)
def test_the_last_line_is_the_command_that_scores_the_table(
    quick: Quick, detector: Path, small_phantom: Path, more: tuple[str, ...]
) -> None:
    code, out, err = quick("detect", "--model", detector, "--data", small_phantom, "--out", "my found.csv", *more)
    assert code == 0, err
    said, _, command = " ".join(out.split()).rpartition("my found.csv: score it with: surgeval ")
    assert bool(said) is (more[:1] != ("--every",))  # frames that nobody looked at would count as missed
    if said:
        assert command == shlex.join(
            ["score", "triplets", "--data", str(small_phantom), "--pred", "my found.csv", *more]
        )
        code, _, err = quick(*shlex.split(command))
        assert code == 0, err


def test_nothing_sure_enough_to_track_or_draw_is_told(quick: Quick, detector: Path, small_phantom: Path) -> None:
    code, out, err = quick("detect", "--model", detector, "--data", small_phantom, "--out", "found.csv", "--track",
                           "--track-high", "0.99", "--show", "0.98", "--video-out", "films", "--most", "5")  # fmt: skip
    assert code == 0, err
    assert re.search(r"no track: the best score is 0\.\d\d, and a track begins at 0\.99 \(--track-high\)", out)
    assert re.search(r"the film shows no box: the best score is 0\.\d\d, and boxes are drawn from 0\.98", out)


def test_an_export_says_what_it_does_without_a_terminal_too(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(_model: str, out: Path, *, aux: bool) -> Path:
        out.write_bytes(b"0" * (2_500_000 if aux else 1))
        return out

    monkeypatch.setattr("surgeval.detector.inference.export_onnx", written)
    assert quick("models", "export", "tdnet-p", "--out", "x.onnx") == (0, "x.onnx: 2.5 MB\n", "writing ONNX\n")
    assert quick("models", "export", "tdnet-p", "--out", "x.onnx", "--overwrite", "--json")[2] == ""


def test_help_says_who_decides(quick: Quick) -> None:
    text = " ".join(quick("detect", "--help")[1].split())
    assert "evidence for a person to judge" in text
    assert "--no-aux" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "nowhere", "--data", "."), "nowhere: found no such file or folder, expected a detector"),
        (("--model", "DETECTOR", "--data", "nothing"), "nothing: found no such file or folder, expected frames"),
        (("--model", "DETECTOR", "--data", ".", "--half"), "expected float32: half needs a GPU"),
        (("--model", "DETECTOR", "--data", ".", "--confidence", "2"), "expected confidence and iou in 0 to 1"),
        (("--model", "DETECTOR", "--data", ".", "--track", "--track-low", "0.9"), "expected 0 ≤ low ≤ high ≤ 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(quick: Quick, detector: Path, words: tuple[str, ...], said: str) -> None:
    given = [str(detector) if word == "DETECTOR" else word for word in words]
    code, out, err = quick("detect", *given, "--out", "found.csv")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
