"""Claims about FOCUS sets as they are published: folders by track and split, integer ids, `ood` false in every row."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from surgeval.datasets import check, open_dataset
from surgeval.errors import BadInput
from surgeval.protocols.focus import run_focus, score_focus
from surgeval.protocols.focus.reading.sources import open_questions


def publish(folder: Path, first: int, procedure: str, track: str = "frame", splits: str = "train test") -> Path:
    """A set of one binary question a video in the published layout, four in each split, ids from `first` on."""
    for part, split in enumerate(splits.split()):
        path = folder / "data" / track / f"{split}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame([
            {"id": first + 10 * part + k, "video": f"{procedure} {split} {k}", "timestamp_start": "00:00:01",
             "timestamp_end": "00:00:01", "procedure_type": procedure, "question": "Is a clip visible?",
             "primary_capability": "1a", "secondary_capabilities": [], "answer_format": "binary",
             "answer": "yes" if k % 2 else "no", "clinical_relevance": False, "ood": False, "track": track,
             "generation": "automatic"} for k in range(4)
        ]).write_parquet(path)  # fmt: skip
    return folder


@pytest.fixture
def heico(tmp_path: Path) -> Path:
    return publish(tmp_path / "sets" / "heico", 100, "Sigmoid Resection")


@pytest.fixture
def lapchole(tmp_path: Path) -> Path:
    return publish(tmp_path / "sets" / "lapchole", 100, "Cholecystectomy")


def test_a_downloaded_folder_is_a_dataset_without_a_problem_at_every_level(heico: Path) -> None:
    for folder in (heico.parent, heico, heico / "data", heico / "data" / "frame"):
        report = check(open_dataset(folder))
        assert (report.questions, report.warnings, report.errors) == (8, 0, 0)


def test_an_id_in_two_splits_is_named_and_one_in_two_tracks_is_not(heico: Path) -> None:
    publish(heico, 100, "Sigmoid Resection", track="segment")
    assert not check(open_dataset(heico)).problems
    (heico / "data" / "frame" / "validation.parquet").write_bytes((heico / "data/frame/test.parquet").read_bytes())
    assert check(open_dataset(heico)).counts == {"id-duplicate": 4}


def test_the_test_split_is_asked_unless_another_one_is_named(heico: Path) -> None:
    asked = open_questions(heico)
    assert [question.id for question in asked.questions] == ["110", "111", "112", "113"]
    assert asked.notes == ("split test: 4 of 8 questions",)
    assert {question.id for question in asked.learnable} == {"100", "101", "102", "103"}
    assert len(open_questions(heico, split="all").questions) == 8
    assert open_questions(heico, split="train").questions[0].id == "100"
    with pytest.raises(BadInput, match="found the splits test, train, expected one of them or all"):
        open_questions(heico, split="validation")


def test_a_prior_learns_no_test_question_of_a_video_that_both_splits_have(heico: Path) -> None:
    file = heico / "data" / "frame" / "test.parquet"
    pl.read_parquet(file).with_columns(video=pl.lit("Sigmoid Resection train 0")).write_parquet(file)
    assert {question.id for question in open_questions(heico).learnable} == {"100", "101", "102", "103"}


def test_every_question_of_a_set_without_splits_is_asked_beside_published_ones(heico: Path, lapchole: Path) -> None:
    rows = lapchole / "data" / "frame" / "test.parquet"  # a file alone has no split
    asked = open_questions([heico, rows], prefix=["h__", "l__"])
    assert [question.id for question in asked.questions] == [f"{name}__{n}" for name in "hl" for n in range(110, 114)]
    with pytest.raises(BadInput, match=r"split 'test': .*no split is known"):
        open_questions([heico, rows], prefix=["h__", "l__"], split="test")


def test_of_several_tracks_the_named_one_is_taken(heico: Path) -> None:
    publish(heico, 100, "Sigmoid Resection", track="segment")
    with pytest.raises(BadInput, match=r"rows in several folders \(frame, segment\), expected one: name it, or the"):
        open_questions(heico)
    assert len(open_questions(heico, track="segment").questions) == 4


def test_two_sets_whose_ids_collide_need_a_prefix(heico: Path, lapchole: Path) -> None:
    both = [heico, lapchole]
    with pytest.raises(BadInput, match=r"question '110' is in two data sets; give each data set its own prefix"):
        open_questions(both)
    with pytest.raises(BadInput, match="prefix: found 1 for 2 data sets"):
        open_questions(both, prefix=["heico__"])
    asked = open_questions(both, prefix=["heico__", "lapchole__"])
    assert {question.id for question in asked.questions} >= {"heico__110", "lapchole__113"}


def test_out_of_distribution_is_set_by_data_set_procedure_or_list(heico: Path, lapchole: Path, tmp_path: Path) -> None:
    both = {"data": [heico, lapchole], "prefix": ["h__", "l__"]}
    (tmp_path / "ood.txt").write_text("h__110\nSigmoid Resection test 1\nno such question\n")

    def outside(*ood: str) -> list[str]:
        asked = open_questions(**both, ood=ood)  # type: ignore[arg-type]
        return [question.id for question in asked.questions if question.ood]

    whole = ["h__110", "h__111", "h__112", "h__113"]
    assert outside("data:heico") == outside("data:h") == outside("procedure:sigmoid resection") == whole
    assert outside(f"list:{tmp_path / 'ood.txt'}") == ["h__110", "h__111"]
    assert len(outside("data:h", "data:l")) == 8
    for spec in ("data:prostate", "data:sets", "procedure:Nephrectomy", "heico", "data:"):
        with pytest.raises(BadInput, match="ood: "):
            outside(spec)


def test_the_flag_goes_with_the_run_and_can_be_set_when_files_are_scored(heico: Path, tmp_path: Path) -> None:
    run = run_focus([heico], "oracle", tmp_path / "run", track="frame", ood=["data:heico"], progress=False)
    assert [bucket.name for bucket in run.loaded.buckets] == ["object_recognition/ood"]
    again = score_focus(*run.sources)
    assert [bucket.name for bucket in again.buckets] == ["object_recognition/ood"]
    (tmp_path / "some.json").write_text('["110"]')
    some = score_focus(*run.sources, ood=[f"list:{tmp_path / 'some.json'}"])
    assert [(bucket.name, bucket.count) for bucket in some.buckets] == [
        ("object_recognition/id", 3),
        ("object_recognition/ood", 1),
    ]
    assert "out of distribution: 1 of 4 questions" in some.notes[0]
