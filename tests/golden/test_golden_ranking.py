"""Every golden ranking file under `--golden DIR`: the default ranking and each variant come out as the file says.

Files are found by pattern (`vqa/ranking_*.json`). Orders, Copeland scores and claims are exact; win rates depend on
random draws, so they agree to 0.02.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.stats import Outcomes, rank_outcomes

EXACT = ("copeland", "final_rank", "bucket_rank", "better", "pairwise_bucket_wins", "low_cluster_buckets")


def _cases(golden: Any) -> list[dict[str, Any]]:
    return [{"options": golden["options"], **golden["expected"]}, *golden["expected_variants"]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = golden_folder(metafunc.config)
    if "ranking_case" in metafunc.fixturenames:
        found = [(p, k) for p in sorted((folder / "vqa").glob("ranking_*.json")) for k in range(len(_cases(load(p))))]
        names = [f"{p.stem}-{json.dumps(_cases(load(p))[k]['options'])}" for p, k in found]
        metafunc.parametrize("ranking_case", found, ids=names)
    if "two_level_file" in metafunc.fixturenames:
        files = sorted((folder / "vqa").glob("ranking_*.json"))
        agreeing = [p for p in files if load(p)["robustness"].get("two_level_bootstrap_agrees")]
        metafunc.parametrize("two_level_file", agreeing, ids=lambda p: p.stem)


@cache
def _outcomes(path: Path) -> Outcomes:
    golden = load(path)
    return Outcomes.of(
        {model: [int(sign) for sign in golden["correct"][model]] for model in golden["models"]},
        [golden["bucket_names"][k] for k in golden["questions_bucket_index"]],
        [golden["video_names"][k] for k in golden["questions_video_index"]],
    )


def test_a_ranking_gives_what_the_file_says(ranking_case: tuple[Path, int]) -> None:
    path, number = ranking_case
    expected = _cases(load(path))[number]
    found = rank_outcomes(_outcomes(path), **expected["options"]).to_json()
    for key in EXACT:
        if key in expected:
            assert found[key] == expected[key], key
    assert [sorted(place) for place in found["final_order"]] == [sorted(place) for place in expected["final_order"]]
    assert found["win_rate"] == pytest.approx(expected["win_rate"], abs=0.02)
    for bucket, accuracies in expected.get("bucket_accuracy", {}).items():
        assert found["bucket_accuracy"][bucket] == pytest.approx(accuracies, abs=1e-12)


def test_a_two_level_bootstrap_agrees_where_the_file_says_so(two_level_file: Path) -> None:
    golden = load(two_level_file)
    found = rank_outcomes(_outcomes(two_level_file), scheme="two_level", resamples=2000, **golden["options"]).to_json()
    assert found["final_order"] == golden["expected"]["final_order"]
    assert found["copeland"] == golden["expected"]["copeland"]
