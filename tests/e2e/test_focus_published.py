"""FOCUS as its participants have it: from the published folders to a ranking, with the official package's numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick

pytestmark = pytest.mark.real
SCORE, VIDEO_MEAN = 0.690835, 0.708628  # of orena-focus 0.4.0 on answers/


@pytest.fixture
def orena(real_data: Path) -> Path:
    return real_data / "focus-orena"


def test_the_whole_path_from_the_published_folders_to_a_ranking(quick: Quick, orena: Path, tmp_path: Path) -> None:
    sets = [str(part) for name in ("heico", "lapchole") for part in ("--data", orena / "hub" / name)]
    sets += ["--prefix", "heico__", "--prefix", "lapchole__", "--ood", "data:heico", "--track", "frame"]
    for folder in ("heico", "lapchole"):
        code, out, _ = quick("data", "check", str(orena / "hub" / folder), "--strict")
        assert code == 0 and "no problems" in out
    answers = orena / "answers"
    code, out, err = quick(
        "score", "focus", *sets, "--responses", str(answers / "answer.json"),
        "--judge", f"table:{answers / 'verdicts_off.json'}", "--out", str(tmp_path / "team"), "--json",
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(out)
    assert found["pre_evaluation_score"] == pytest.approx(SCORE, abs=1e-6)
    assert found["accuracy_mean_of_video_means"] == pytest.approx(VIDEO_MEAN, abs=1e-6)
    code, out, err = quick(
        "run", "focus", *sets, "--model", "prior", "--judge", "exact", "--out", str(tmp_path / "prior")
    )
    assert code == 0, err
    (tmp_path / "official.csv").write_bytes((answers / "results-orena-focus-0.4.0.csv").read_bytes())
    models = [str(tmp_path / name) for name in ("team", "prior", "official.csv")]
    code, out, err = quick("rank", *models, "--baseline", "prior", "--out", str(tmp_path / "ranking"), "--json")
    assert code == 0, err
    ranking = json.loads(out)
    assert len(ranking["bucket_questions"]) == 4
    assert ranking["mean_accuracy"]["official"] == ranking["mean_accuracy"]["team"] == pytest.approx(SCORE, abs=1e-6)


@pytest.mark.parametrize(
    ("file", "options", "score"),
    [
        ("answer", [], SCORE),
        ("answer_nolat", [], SCORE),
        ("answer_6s", ["--time", "pooled"], SCORE),
        ("answer_6s", [], 0.0),
    ],
)
def test_answers_with_and_without_latency(
    quick: Quick, orena: Path, tmp_path: Path, file: str, options: list[str], score: float
) -> None:
    answers = orena / "answers"
    files = [f"--{name}={answers / name}.json" for name in ("requests", "references")]
    code, out, err = quick(
        "score", "focus", *files, "--responses", str(answers / f"{file}.json"), "--ood", "data:heico",
        "--judge", f"table:{answers / 'verdicts_off.json'}", "--track", "frame", *options, "--json",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["pre_evaluation_score"] == pytest.approx(score, abs=1e-6)
