"""What the ranking page calls its numbers: places by tests, resampled videos, the weakest bucket, names of buckets."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from surgeval.cli.protocols import print_result
from surgeval.cli.rank import _print
from surgeval.pages import glossary, render_page
from surgeval.pages.glossary import Glossary
from surgeval.protocols.comparison import few_video_notes
from surgeval.protocols.focus import score_focus
from surgeval.protocols.focus.page import focus_sections
from surgeval.protocols.registry import PROTOCOLS
from surgeval.report import RankingStudy, leading, ranking_sections, study_ranking
from surgeval.report.comparison import _METHOD
from surgeval.report.ranking.feedback import _bucket_text
from surgeval.report.ranking.page import ranking_card
from surgeval.report.ranking.words import place_by_tests
from surgeval.stats import FEW_CLUSTERS, RankOptions, rank_outcomes, stream
from surgeval.stats.ranking.options import Collapse
from surgeval.stats.ranking.rank import few_videos

VIDEOS = [k // 10 for k in range(120)]


def uneven() -> RankingStudy:
    """A strong model, one that is a little weaker in every video, and a still weaker one that varies much."""
    steady, uneven = [1] * 2 + [0] * 8, [1] * 10 + [0] * 90
    right = {"strong": ([1] * 3 + [0] * 7) * 12, "steady": steady * 12, "uneven": uneven + [1] * 10 + [0] * 10}
    return study_ranking(rank_outcomes(right, ["x|id"] * 120, VIDEOS, resamples=500), outer=0, challenges=0)


def test_the_number_in_brackets_is_explained_as_the_place_by_tests() -> None:
    study = uneven()
    ranking = study.ranking
    assert ranking.accuracy[0].round(2).tolist() == [0.3, 0.2, 0.17]
    assert ranking.bucket_rank[0].tolist() == [1, 2, 1]  # the lowest accuracy, and nobody is shown to be better
    assert np.array_equal(ranking.bucket_rank, 1 + ranking.better.sum(axis=1))
    section = next(section for section in ranking_sections(study) if section.title == "Buckets")
    (table,) = section.tables
    assert table.title == "Accuracy in %, and in brackets the place by tests"
    assert table.frame.row(0, named=True)["uneven"] == "16.7\u00a0(1)"
    (podium,) = [plot for plot in section.plots if plot.figure.title == "Places by bucket"]
    for note in (table.note, podium.note):
        assert "Place by tests: 1 + how many models the tests show to be better there." in note
        assert "a lower accuracy has the better place where fewer are shown to be better" in note


@pytest.mark.parametrize("collapse", get_args(Collapse))
def test_every_rule_for_places_in_a_bucket_is_told(collapse: Collapse) -> None:
    assert place_by_tests(RankOptions(collapse=collapse)).startswith("Place by tests: ")


def test_resamples_of_the_same_videos_are_never_called_other_videos(capsys: pytest.CaptureFixture[str]) -> None:
    rng = stream(2, "words")
    right = {name: rng.random(120) < rate for name, rate in (("net", 0.9), ("prior", 0.3))}
    ranking = rank_outcomes(right, ["x|id"] * 120, VIDEOS, resamples=200, baselines=["prior"])
    study = study_ranking(ranking, outer=12, resamples=50, challenges=0)
    sections = ranking_sections(study)
    places, gate = sections[0].tables
    assert "place on resampled videos (95 %)" in places.frame.columns
    assert "Resampled videos: 12 resamples of these very videos." in places.note
    assert "ahead on resampled videos" in gate.frame.columns
    (tau,) = [number for number in ranking_card(study).others if "tau" in number.label]
    assert (tau.label, tau.note) == ("Kendall's tau on resampled videos", "mean of 12 resamples; 1 is the same order")
    assert "it is no test on other videos" in next(s.text for s in sections if s.title == "On resampled videos")
    assert leading(study).endswith("On resampled videos it stays there in 100\u00a0% of 12 resamples.")
    assert "No test on other videos".lower() in render_page("R", sections).lower()  # the glossary says it too
    _print(study, None, None)
    told = " ".join(capsys.readouterr().out.split())
    assert "places on resampled videos (12 resamples)" in told and "other videos" not in told


def test_no_bucket_is_called_weakest_where_all_is_right_or_too_few_videos_tell() -> None:
    buckets = ["few|ood"] * 50 + ["x|id"] * 60 + ["y|id"] * 60
    videos = [f"o{k // 10}" for k in range(50)] + [f"v{k // 10}" for k in range(60)] * 2
    right = {"all": [1] * 170, "most": [0] * 50 + [1] * 60 + [1, 0] * 30, "never in few": [0] * 50 + [1] * 120}
    study = study_ranking(rank_outcomes(right, buckets, videos, resamples=100), outer=0, challenges=0)
    table = ranking_sections(study)[0].tables[0]
    weakest = dict(table.frame.select("model", "weakest bucket").iter_rows())
    assert weakest == {"all": "–", "most": "y/id (50.0\u00a0%)", "never in few": "–"}
    assert "Weakest bucket: of those with 6 videos or more." in table.note
    said = {name: _bucket_text(study, study.ranking.models.index(name)).partition(" A median")[0] for name in right}
    assert said["all"] == said["never in few"] == "Every answer is right in every bucket with 6 videos or more."
    assert said["most"] == "The weakest bucket of those with 6 videos or more is y/id with 50.0\u00a0% right."
    few = study_ranking(rank_outcomes({"a": [0] * 50, "b": [1] * 50}, buckets[:50], videos[:50], resamples=50), outer=0)
    assert "No bucket is called the weakest: a claim needs 6 videos, and none has them." in _bucket_text(few, 0)


def test_fewer_than_twenty_videos_are_not_linked_to_the_entry_on_fewer_than_six() -> None:
    study = uneven()
    html = render_page("R", ranking_sections(study))
    assert "that decides: there the bootstrap may claim more often" in html
    assert "term-few-videos" not in html
    assert "term-heatmap" not in html  # the accuracies are drawn as one, which no word of the page says


def test_few_videos_means_fewer_than_six_wherever_a_page_says_it() -> None:
    says = next(term.says for term in glossary() if term.name == "few videos")
    assert FEW_CLUSTERS == 6 and says.startswith("Fewer than six videos")
    assert "few videos" not in {term.name for method in _METHOD.values() for term in Glossary().find(method)}
    twelve = (*few_videos([12], RankOptions()), *few_video_notes(12))
    assert "few videos" not in {term.name for note in twelve for term in Glossary().find(note)}


def test_a_bucket_is_called_the_same_on_a_runs_page_in_the_ranking_and_in_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = [f"q{k}" for k in range(12)]
    scores = score_focus(
        [{"qID": q, "content": "3", "latency": 1.0} for q in asked],
        [
            {"qID": q, "videoID": f"v{q}", "start_time": 0, "end_time": 1, "procedure_type": "x", "question": "?"}
            for q in asked
        ],
        [{"qID": q, "primary": "5a", "format": "number", "answer": "3", "ood": True} for q in asked],
        resamples=50,
    )
    (run,) = [table for section in focus_sections(scores, {}) for table in section.tables if table.title == "Buckets"]
    study = study_ranking(
        rank_outcomes({"a": scores.results, "b": scores.results}, resamples=50), outer=0, challenges=0
    )
    (own,) = next(section for section in ranking_sections(study) if section.title == "Buckets").tables
    assert run.frame["bucket"].to_list() == own.frame["bucket"].to_list() == ["complex reasoning/ood"]
    print_result(scores, scores, PROTOCOLS["focus"].tables("score"))
    _print(study, None, None)
    told = capsys.readouterr().out
    assert "complex reasoning/ood" in told and "complex_reasoning" not in told
    assert [bucket.name for bucket in scores.buckets] == ["complex_reasoning/ood"]
    assert study.tables["buckets"]["bucket"][0] == next(iter(study.to_json()["bucket_rank"])) == "complex_reasoning|ood"
