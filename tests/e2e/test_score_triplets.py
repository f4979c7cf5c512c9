"""`surgeval score triplets` and `surgeval compare` as a user runs them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from surgeval.datasets import MemoryDataset, convert, open_dataset, video_index
from surgeval.phantom import simulate_detector
from surgeval.protocols.contract import Demo
from surgeval.protocols.triplets.demo import chapter as triplets_chapter
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick, Surgeval

SPACE = LabelSpace(
    "toy", ("grasper", "hook"), ("grasp", "dissect"), ("liver", "gallbladder"), ((0, 0, 0), (0, 0, 1), (1, 1, 1))
)
HEAD = "video,frame,triplet,score,x,y,w,h\n"
HALF = f"{HEAD}v1,000001,0,0.9,10,10,40,40\nv2,000001,2,0.8,10,10,40,40\nv2,000002,2,0.7,10,10,40,40\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two videos of two frames on disk: v1 shows triplet 0 twice, v2 triplet 2 twice."""

    def moment(video: str, number: int, triplet: int) -> Frame:
        seen = Instance(Triplet(*SPACE.triplets[triplet]), Box(10, 10, 40, 40))
        return Frame(video, f"{number:06d}", number, None, None, 100, 100, (seen,))

    frames = [moment("v1", 1, 0), moment("v1", 2, 0), moment("v2", 1, 2), moment("v2", 2, 2)]
    convert(MemoryDataset(SPACE, frames), tmp_path / "tiny", "coco", images=False)
    (tmp_path / "half.csv").write_text(HALF)
    return tmp_path / "tiny"


def _numbers(text: str) -> dict[tuple[str, str, str], float]:
    return {(row["scope"], row["component"], row["metric"]): row["estimate"] for row in json.loads(text)["numbers"]}


def _boxes(scale: float, score: str = "0.{row}") -> str:
    """Twelve boxes on the labelled ones, in a picture that is `scale` times as large."""
    box = ",".join(f"{value * scale:g}" for value in (10, 10, 40, 85))
    return HEAD + "".join(f"v1,00000{1 + row % 2},0,{score.format(row=row)},{box}\n" for row in range(1, 13))


def test_what_is_probably_wrong_with_predictions_is_said_before_the_numbers_and_in_the_notes(
    quick: Quick, tiny: Path, tmp_path: Path
) -> None:
    cases = {"times 0.526 all would fit": _boxes(2), "1 for each of 12 boxes": _boxes(1, "1"), "": _boxes(1)}
    for words, text in cases.items():
        (tmp_path / "found.csv").write_text(text)
        code, out, err = quick("score", "triplets", "--data", tiny, "--pred", "found.csv", "--json")
        assert code == 0, err
        assert ("warning: " in err) == bool(words) and words in err
        assert any(words in note for note in json.loads(out)["notes"])
    (tmp_path / "found.csv").write_text(_boxes(1).replace("v1,000001,0,0.4", "v9,000001,0,0.4"))
    code, _, err = quick("score", "triplets", "--data", tiny, "--pred", "found.csv")
    assert code == 2 and "'v9'" in err


def test_classes_for_a_dataset_without_any_label_need_its_label_space(quick: Quick, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty" / "labels").mkdir(parents=True)
    (tmp_path / "empty" / "labels" / "v1_000001.txt").write_text("")
    words = ("score", "triplets", "--data", tmp_path / "empty", "--pred", "found.csv")
    for head, number in ((HEAD, 0), (HEAD.replace("triplet", "instrument"), 1)):
        (tmp_path / "found.csv").write_text(f"{head}v1,000001,{number},0.9,10,10,40,40\n")
        code, _, err = quick(*words)
        unknown = "no frame has a label, so its classes are not known. Give its label space with --labels"
        assert code == 2 and unknown in err
        code, _, err = quick(*words, "--labels", tiny / "labels.json", "--json")
        assert code == 0, err
    (tmp_path / "found.csv").write_text(f"{HEAD.replace('triplet', 'instrument')}v1,000001,0,0.9,10,10,40,40\n")
    assert quick(*words)[0] == 0  # a detector of one class needs no names


def test_known_numbers_come_out_of_the_command_line(installed: Surgeval, surgeval: Surgeval, tiny: Path) -> None:
    done = installed("score", "triplets", "--data", tiny, "--pred", "half.csv", "--json")
    assert done.returncode == 0, done.stderr
    numbers = _numbers(done.stdout)
    expected = (51 / 101 + 1) / 2  # one class of two half found
    for component in ("i", "v", "t", "ivt"):
        assert numbers["global", component, "mAP50"] == pytest.approx(expected)
        assert numbers["video (video-first)", component, "mAP50"] == pytest.approx(expected)
    assert numbers["association", "ivt", "fn"] == pytest.approx(0.25)
    assert numbers["cost-aware", "ivt", "F1"] == pytest.approx((2 / 3 + 1) / 2)
    said = json.loads(done.stdout)["notes"]
    assert any("1 of 4 labelled frames have no predictions" in note for note in said)
    legacy = surgeval("score", "triplets", "--data", tiny, "--pred", "half.csv", "--convention", "ivtd", "--json")
    assert _numbers(legacy.stdout)["global", "ivt", "mAP50"] == pytest.approx((0.75 + 0.995) / 2)


def test_predictions_of_one_score_score_the_same_in_any_order(surgeval: Surgeval, tiny: Path) -> None:
    hit, miss = "v1,000001,0,1,10,10,40,40\n", "v1,000002,0,1,60,60,30,30\n"
    for name, rows in (("hit_first", hit + miss), ("miss_first", miss + hit)):
        # The dataset's frames keep their order, so the hit changes places by its frame.
        swapped = rows if name == "hit_first" else rows.replace("000001", "x").replace("000002", "000001")
        (tiny.parent / f"{name}.csv").write_text(HEAD + swapped.replace("x", "000002"))
    numbers: dict[tuple[str, ...], float] = {}
    for name in ("hit_first", "miss_first"):
        for options in ((), ("--convention", "coco"), ("--ties", "reference")):
            done = surgeval("score", "triplets", "--data", tiny, "--pred", f"{name}.csv", *options, "--json")
            assert done.returncode == 0, done.stderr
            numbers[name, *options] = _numbers(done.stdout)["global", "ivt", "mAP50"]
    step = 0.5 * 51 / 101 / 2  # of the class that is predicted, and of two classes
    for options in ((), ("--convention", "coco")):  # predictions without different scores have no order at all
        assert numbers["hit_first", *options] == numbers["miss_first", *options] == pytest.approx(step)
    assert numbers["hit_first", "--ties", "reference"] == pytest.approx(2 * step)
    assert numbers["miss_first", "--ties", "reference"] == pytest.approx(step)


def test_without_a_page_the_first_table_is_printed_and_how_to_get_the_others(surgeval: Surgeval, tiny: Path) -> None:
    done = surgeval("score", "triplets", "--data", tiny, "--pred", "half.csv")
    assert done.returncode == 0, done.stderr
    said = ("convention coco", "0.752 [0.000, 1.000]", "chosen on the scored data", "only 2 videos")
    for words in said:
        assert words in done.stdout
    for words in ("Rare classes", "Cost-aware F1", "What became of every box"):
        assert words not in done.stdout
    assert "--out FOLDER writes every table, with a page" in done.stdout
    assert len(done.stdout.splitlines()) < 40


def test_scores_of_a_phantom_are_saved_reported_and_compared(
    surgeval: Surgeval, small_phantom: Path, tmp_path: Path
) -> None:
    dataset = open_dataset(small_phantom)
    qualities: Any = ("good", "poor")
    for quality in qualities:
        simulate_detector(dataset, quality).write_parquet(tmp_path / f"{quality}.parquet")
        done = surgeval("score", "triplets", "--data", small_phantom, "--pred", f"{quality}.parquet",
                        "--out", quality)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"open {quality}/report.html" in done.stdout
        assert "ranked together" in done.stdout and "Rare classes" not in done.stdout  # the page has the others
        assert f"every table, unrounded: {quality}/tables" in done.stdout
    assert {path.name.partition("-")[0] for path in (tmp_path / "good").iterdir()} == {
        "vega", "report.html", "run.json", "run.lock", "scores.json", "details.json", "replicates.parquet",
        "objects.parquet", "pictures.parquet", "ranked.parquet", "counts.parquet", "tables", "figures",
    }  # fmt: skip
    tables = tmp_path / "good" / "tables"
    assert pl.read_csv(tables / "components.csv")["component"].to_list() == ["i", "v", "t", "ivt"]
    assert len(pl.read_csv(tables / "headline.csv")) > 80

    shutil.copytree(tmp_path / "good", tmp_path / "copy")
    equal = surgeval("compare", "good", "copy", "--json")
    assert equal.returncode == 0, equal.stderr
    assert {row["difference"] for row in json.loads(equal.stdout)["differences"]} <= {0.0, None}
    (tmp_path / "link").symlink_to("good")
    for path in ("good", "./copy/../good/", str(tmp_path / "good"), "link"):
        itself = surgeval("compare", "good", path)
        assert (itself.returncode, itself.stdout) == (2, "")
        assert itself.stderr.startswith("surgeval: good and ")
        assert itself.stderr.endswith(": found the same run twice, expected two\n")
    other = surgeval("compare", "good", "poor")
    assert other.returncode == 0, other.stderr
    assert "only 2 videos" in other.stdout
    rows = [line for line in other.stdout.splitlines() if line.startswith(("I", "V", "T")) and "mAP" in line]
    assert 5 <= len(rows) <= 12 and len(other.stdout.splitlines()) < 50
    assert re.search(r"and \d+ more numbers \(--out FOLDER writes all of them, with a page\)", other.stdout)
    again = surgeval("score", "triplets", "--data", small_phantom, "--pred", "good.parquet", "--convention", "ivtd",
                     "--out", "ivtd")  # fmt: skip
    assert again.returncode == 0
    refused = surgeval("compare", "good", "ivtd")
    assert refused.returncode == 2
    assert "differ in convention (coco and ivtd), ties (free and reference)" in refused.stderr


def test_a_run_outlives_its_predictions_and_dataset(surgeval: Surgeval, tiny: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = surgeval("score", "triplets", "--data", tiny, "--pred", "half.csv", "--out", f"runs/{name}",
                        "--name", name)  # fmt: skip
        assert done.returncode == 0, done.stderr
    (tmp_path / "half.csv").unlink()
    shutil.rmtree(tiny)
    page = tmp_path / "runs" / "a" / "report.html"
    before = page.read_bytes()
    page.unlink()
    again = surgeval("report", "runs/a")
    assert again.returncode == 0, again.stderr
    assert page.read_bytes() == before
    compared = surgeval("compare", "runs/a", "runs/b", "--out", "both")
    assert compared.returncode == 0, compared.stderr
    assert re.search(r"and \d+ more numbers on the page", compared.stdout)
    assert len(compared.stdout.splitlines()) < 50
    text = re.sub(r"<[^>]+>", "", (tmp_path / "both" / "report.html").read_text())  # terms are marked up
    assert "IVT mAP50: 0.752 against 0.752" in text
    assert pl.read_csv(tmp_path / "both" / "tables" / "differences.csv")["label"][0] == "IVT mAP50"
    index = surgeval("report", "runs")
    assert index.returncode == 0, index.stderr
    listed = (tmp_path / "runs" / "index.html").read_text()
    assert "a/report.html" in listed
    assert "IVT mAP50" in listed


def test_a_folder_with_other_files_is_not_written_into(surgeval: Surgeval, tiny: Path, tmp_path: Path) -> None:
    done = surgeval("score", "triplets", "--data", tiny, "--pred", "half.csv", "--out", tiny)
    assert done.returncode == 2
    assert "holds other files" in done.stderr


def test_scores_of_other_predictions_are_not_written_over_unasked(
    surgeval: Surgeval, tiny: Path, tmp_path: Path
) -> None:
    (tmp_path / "less.csv").write_text("".join(HALF.splitlines(keepends=True)[:-1]))
    asked = ("score", "triplets", "--data", tiny, "--out", "run")
    assert surgeval(*asked, "--pred", "half.csv", "--name", "net").returncode == 0
    before = (tmp_path / "run" / "scores.json").read_bytes()
    assert surgeval(*asked, "--pred", "half.csv", "--name", "net").returncode == 0  # the same again
    for pred, name, said in (("half.csv", "rival", "the scores of net"), ("less.csv", "net", "other predictions")):
        refused = surgeval(*asked, "--pred", pred, "--name", name)
        assert refused.returncode == 2
        assert said in refused.stderr and "set replace" in refused.stderr
        assert (tmp_path / "run" / "scores.json").read_bytes() == before
    assert surgeval(*asked, "--pred", "less.csv", "--name", "net", "--replace").returncode == 0
    assert (tmp_path / "run" / "scores.json").read_bytes() != before


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("v1,000001,0,nan,10,10,40,40\n", "score: found 'nan', expected a finite number"),
        ("v1,1,0,0.9,10,10,40,40\n", "did you mean '000001'"),
        ("v9,000001,0,0.9,10,10,40,40\n", "v9"),
        ("v1,000001,7,0.9,10,10,40,40\n", "triplet: found '7', expected a class id from 0 to 2"),
    ],
)
def test_a_bad_prediction_is_one_sentence_and_exit_code_two(
    surgeval: Surgeval, tiny: Path, tmp_path: Path, rows: str, sentence: str
) -> None:
    (tmp_path / "bad.csv").write_text(HEAD + rows)
    done = surgeval("score", "triplets", "--data", tiny, "--pred", "bad.csv")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("surgeval: bad.csv: line 2")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--data", "tiny"], "predictions or constant: give one"),
        (["--data", "tiny", "--pred", "gone.csv"], "gone.csv: found no such file or folder"),
        (["--data", "tiny", "--pred", "half.csv", "--folds", "prostatd"], "fold fold1: found no video"),
        (["--data", "tiny", "--pred", "half.csv", "--convention", "voc"], "'voc' is not one of"),
        (["--data", "nowhere", "--pred", "half.csv"], "nowhere: found no such file or folder"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(
    surgeval: Surgeval, tiny: Path, arguments: list[str], sentence: str
) -> None:
    done = surgeval("score", "triplets", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_constant_predictor_needs_no_file(surgeval: Surgeval, tiny: Path) -> None:
    done = surgeval("score", "triplets", "--data", tiny, "--constant", "--task", "recognition", "--json")
    assert done.returncode == 0, done.stderr
    # Each of the two triplets fills half of the frames.
    assert _numbers(done.stdout)["global", "ivt", "mAP"] == pytest.approx(0.5)


@pytest.mark.parametrize("command", [("score",), ("score", "triplets"), ("compare",)], ids=" ".join)
def test_the_commands_have_help_with_an_example(surgeval: Surgeval, command: tuple[str, ...]) -> None:
    done = surgeval(*command, "--help")
    assert done.returncode == 0
    assert f"surgeval {' '.join(command)}" in done.stdout.split("Example", 1)[1]


def test_the_demo_chapter_scores_a_trained_network_beside_two_simulated_detectors(
    small_phantom: Path, tmp_path: Path
) -> None:
    out = tmp_path / "triplets"
    chapter = triplets_chapter(Demo(dataset=open_dataset(small_phantom), edition="", out=out))
    assert dict(chapter.table.select("detector", "is").iter_rows()) == {
        "good": "simulated", "poor": "simulated", "tdnet-p": "a trained network",
    }  # fmt: skip
    ap = [float(text.split()[0]) for text in chapter.table["IVT mAP50"].to_list()]
    assert ap[0] > ap[1]
    assert ap[2] > 0.1  # the network knows neither these operations nor their labels
    assert chapter.page == out / "tdnet-p" / "report.html"
    assert "tdnet-p (trained network)" in chapter.page.read_text(encoding="utf-8")
    assert (chapter.page.parent / "pictures.parquet").exists(), "boxes stand on their frames"
    assert len(chapter.sentences) == 3
    assert "real network" in chapter.sentences[0]
    (film,) = chapter.pages.values()
    assert len(video_index(film)) == 3
    looked = pl.read_parquet(out / "tdnet-p.parquet").select("video", "frame").unique()
    assert len(looked) == 4  # every sixth of ten frames of two operations
    assert json.dumps(chapter.to_json())


def test_without_torch_the_demo_chapter_has_its_simulated_detectors(
    small_phantom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surgeval.protocols.triplets.demo.models_missing", lambda: "torch")
    chapter = triplets_chapter(Demo(dataset=open_dataset(small_phantom), edition="", out=tmp_path / "triplets"))
    assert chapter.table["detector"].to_list() == ["good", "poor"]
    assert chapter.page == tmp_path / "triplets" / "good" / "report.html"
    assert "is left out: detect: found no torch" in chapter.sentences[0]
    assert not chapter.pages
