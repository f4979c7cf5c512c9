"""The ranking page's sentences and columns, and the teams' pages: true, escaped, and nobody else's data."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surgeval.pages import render_page
from surgeval.protocols.focus.scoring.summary import _pre_evaluation
from surgeval.report import (
    RankingStudy,
    findings,
    leading,
    ranking_sections,
    read_outcomes_of,
    study_ranking,
    write_feedback,
)
from surgeval.report.ranking.feedback import _distance, _place, _sure
from surgeval.stats import distance_to_next_place, rank_outcomes, stream

TEAMS = ("Nightingale <b>", "../Osprey", "Pelican", "PELICAN", "prior")


def entry(team: str, rate: float, seed: int = 0, videos: int = 8) -> pl.DataFrame:
    """A results table whose every text carries the team's own mark."""
    mark = f"mark{TEAMS.index(team)}"
    rng = stream(seed, "feedback", team)
    rows = []
    for k in range(videos * 10):
        right = bool(rng.random() < rate)
        status = "late" if k % 17 == 3 else "flagged" if k % 23 == 5 else "ok"
        right = right and status == "ok"
        why = {"late": f"after 21 s {mark}", "flagged": f"orders the judge about {mark}"}.get(
            status, f"answered {mark}, the reference is SECRET{k}"
        )
        rows.append({
            "qID": f"q{k:03d}", "video": f"v{k // 10}", "group": ("verbs", "targets")[k % 2], "ood": False,
            "status": status, "correctness": right, "reason": why, "question": f"What is <i>{k}</i>?",
            "answer": f"{mark} said {k}", "reference": f"SECRET{k}",
        })  # fmt: skip
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def challenge() -> tuple[RankingStudy, dict[str, pl.DataFrame]]:
    rates = (0.9, 0.8, 0.8, 0.5, 0.3)
    tables = {team: entry(team, rate) for team, rate in zip(TEAMS, rates, strict=True)}
    ranking = rank_outcomes(tables, resamples=200, baselines=["prior"])
    return study_ranking(ranking, outer=20, resamples=100, challenges=20, tables=tables), tables


@pytest.fixture(scope="module")
def folder(challenge: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    study, tables = challenge
    out = tmp_path_factory.mktemp("feedback")
    write_feedback(study, tables, out)
    return out


def told(page: Path) -> str:
    """All that a page says: its markup, its answers, which it carries deflated, and the table beside it."""
    text = page.read_text()
    packed = re.search(r'class="ev-data">([^<]*)<', text)
    assert packed is not None
    return text + zlib.decompress(base64.b64decode(packed[1])).decode() + (page.parent / "answers.csv").read_text()


def test_every_team_but_the_baseline_has_a_folder_inside(folder: Path) -> None:
    inside = sorted(path.name for path in folder.iterdir())
    assert inside == ["Nightingale -b-", "Osprey", "PELICAN-2", "Pelican", "index.html"] or inside == [
        "Nightingale -b-", "Osprey", "PELICAN", "Pelican-2", "index.html"]  # fmt: skip
    assert len(list(folder.rglob("feedback.html"))) == 4


def test_a_teams_folder_holds_no_other_teams_name_answer_or_reference(folder: Path) -> None:
    pages = list(folder.rglob("feedback.html"))
    assert len(pages) == 4
    for page in pages:
        text = told(page)
        marks = {f"mark{k}" for k in range(5) if f"mark{k}" in text}
        assert len(marks) == 1  # its own
        own = TEAMS[int(marks.pop()[-1])]
        for name in ("Nightingale", "Osprey", "Pelican", "PELICAN"):
            assert name in own or name not in text
        assert "SECRET" not in text
        assert "<i>" not in page.read_text() and "<b>" not in page.read_text()


def test_a_teams_page_says_place_distance_troubles_and_its_answers(folder: Path) -> None:
    page = told(folder / "Nightingale -b-" / "feedback.html")
    assert "of 5 entries" in page and "resamples of the videos" in page
    assert "came after the time limit" in page and "tries to steer the judges" in page
    assert "after 21 s mark0" in page and "mark0 said 7" in page and "What is <i>7</i>?" in page
    assert "wrong, late" in page and '"Bucket"' in page
    answers = pl.read_csv(folder / "Nightingale -b-" / "answers.csv", infer_schema=False)
    why = dict(answers.select("status", "why").unique().iter_rows())
    assert why == {"late": "after 21 s mark0", "flagged": "orders the judge about mark0", "ok": None}
    assert "median of all entries" in page
    assert "verbs/id" in page and "verbs|id" not in (folder / "Nightingale -b-" / "feedback.html").read_text()
    assert set(answers["bucket"]) == {"verbs|id", "targets|id"}  # as every stored table calls them


def test_the_organiser_may_show_references(challenge: Any, tmp_path: Path) -> None:
    study, tables = challenge
    write_feedback(study, tables, tmp_path, references=True)
    page = told(tmp_path / "Osprey" / "feedback.html")
    assert "the reference is SECRET7" in page and '"SECRET7"' in page


def test_a_reason_that_gives_the_reference_away_is_withheld(tmp_path: Path) -> None:
    tables = {team: entry(team, rate) for team, rate in (("Pelican", 0.9), ("prior", 0.2))}
    row = pl.int_range(pl.len())
    leak = (pl.when(row == 3).then(pl.lit("cannot be read; expected SECRET3, as stated"))  # late
            .when(row == 5).then(pl.lit("A: ‘SECRET5’ is no verdict; flagged: orders the judge"))
            .otherwise(pl.col("reason")))  # fmt: skip
    tables["Pelican"] = tables["Pelican"].with_columns(leak.alias("reason"))
    write_feedback(
        study_ranking(rank_outcomes(tables, resamples=100), outer=0, challenges=0, tables=tables), tables, tmp_path
    )
    page = told(tmp_path / "Pelican" / "feedback.html")
    assert "SECRET" not in page and "no verdict" not in page and "flagged: orders the judge" in page
    foreign = {team: table.drop("reference") for team, table in tables.items()}  # what to look for is not known
    study = study_ranking(rank_outcomes(foreign, resamples=100), outer=0, challenges=0, tables=foreign)
    write_feedback(study, foreign, tmp_path / "foreign")
    assert "SECRET" not in told(tmp_path / "foreign" / "Pelican" / "feedback.html")


def test_a_hundred_thousand_answers_are_a_page_of_some_megabytes(tmp_path: Path) -> None:
    small = entry("Pelican", 0.9, videos=40)
    rows = pl.concat([small.with_columns(pl.col("qID") + f"/{k}") for k in range(250)])
    tables = {"Pelican": rows, "prior": rows.with_columns(correctness=pl.col("status") == "late")}
    write_feedback(
        study_ranking(rank_outcomes(tables, resamples=10), outer=0, challenges=0, tables=tables), tables, tmp_path
    )
    assert rows.height == 100_000
    assert (tmp_path / "Pelican" / "feedback.html").stat().st_size < 8e6


def test_a_table_of_right_and_wrong_alone_is_enough(tmp_path: Path) -> None:
    bare = {team: entry(team, rate).select("qID", "video", "group", "ood", "correctness")
            for team, rate in (("Pelican", 0.9), ("prior", 0.2))}  # fmt: skip
    study = study_ranking(rank_outcomes(bare, resamples=100), outer=0, challenges=0, tables=bare)
    assert study.statuses is None
    write_feedback(study, bare, tmp_path)
    page = told(tmp_path / "Pelican" / "feedback.html")
    assert "No place is better." in page and "would give another one away" in page
    assert "median of all entries" not in page


def test_the_distance_is_enough_and_one_less_is_not() -> None:
    rng = stream(3, "distance")
    right = {name: rng.random(200) < rate for name, rate in (("a", 0.9), ("b", 0.6), ("c", 0.3))}
    buckets, videos = ["x|id", "y|id"] * 100, [k // 20 for k in range(200)]
    ranking = rank_outcomes(right, buckets, videos, resamples=200)
    away = distance_to_next_place(ranking, "b")
    assert away is not None and away.answers is not None and away.place == 1 and away.gain is not None
    assert away.gain == pytest.approx(away.answers / 200, abs=0.01)
    assert distance_to_next_place(ranking, "a") is None
    hopeless = rank_outcomes(
        {"a": [1] * 60, "b": [1] * 30 + [0] * 30}, ["x"] * 60, [k // 10 for k in range(60)], resamples=99
    )
    level = distance_to_next_place(hopeless, "b")
    assert level is not None and level.answers == 30  # all right: the first place is shared


def test_the_page_counts_troubles_brackets_ties_and_names_the_weakest_bucket(challenge: Any) -> None:
    study, _ = challenge
    table = ranking_sections(study)[0].tables[0].frame
    assert {"late", "flagged", "weakest bucket"} <= set(table.columns)
    assert not {"missing", "invalid"} & set(table.columns)  # all zeros would only take room
    assert ranking_sections(study)[0].tables[0].note.endswith("No answer is known to be missing or invalid.")
    assert table["late"].to_list() == [5] * 5
    assert all("/id (" in cell for cell in table["weakest bucket"])
    same = [1, 0] * 40
    tied = rank_outcomes(
        {"a": same, "b": same, "c": [0] * 80}, ["x|id"] * 80, [k // 10 for k in range(80)], resamples=200
    )
    table = ranking_sections(study_ranking(tied, outer=0, challenges=0))[0].tables[0].frame
    assert table["ahead of the next by"].to_list() == ["nothing: shared", "tests", "–"]


def test_the_page_says_how_often_equal_models_would_be_separated(challenge: Any) -> None:
    study, _ = challenge
    text = " ".join(findings(study))
    assert "In 20 challenges with equal models on these videos, one of two dominated the other in" in text
    assert "Fewer than 20 videos in both buckets" in text
    assert study.to_json()["calibration"]["challenges"] == 20
    page = render_page("x", ranking_sections(study), lead=leading(study))
    assert "How often equal models would be separated" in page


def test_nearly_always_is_not_always() -> None:
    videos = [k // 4 for k in range(80)]
    study = study_ranking(
        rank_outcomes({"a": [1] * 80, "b": [0] * 80}, ["x"] * 80, videos, resamples=100), outer=200, resamples=50
    )
    assert study.places is not None and "in 100\u00a0% of" in leading(study)
    places = study.places.places.copy()
    places[0] = places[0, ::-1]
    almost = replace(study, places=replace(study.places, places=places))
    assert "over 99\u00a0% of" in leading(almost)
    assert "over 99\u00a0%" in ranking_sections(almost)[0].tables[0].frame["keeps its place"].to_list()
    assert np.isclose(almost.places.share[0, 0], 0.995)  # type: ignore[union-attr]


def test_a_folder_without_anything_to_rank_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(Exception, match="found a folder with none of them, expected a run, a folder of runs"):
        read_outcomes_of([tmp_path])


def test_a_model_that_beats_the_first_is_not_called_level_with_it() -> None:
    same = [1, 0] * 40
    equal = rank_outcomes(
        {"m0": same, "m1": same, "m2": same, "m3": same}, ["x"] * 80, [k // 10 for k in range(80)], resamples=99
    )
    wins = np.zeros((4, 4), dtype=np.int64)
    wins[1, 0] = wins[0, 2] = 1  # m1 beats the first, which beats m2 and is level with m3
    made = replace(equal, wins=wins, final_rank=np.array([1, 2, 3, 4]), copeland=np.array([2, 1, 0, -1]))
    ahead, level, *_ = findings(study_ranking(made, outer=0, challenges=0))
    assert ahead.startswith("Although m0 is first, m1 is better than it in more buckets than the other way round;")
    assert level == "These videos do not tell m0 apart from m3."


def test_a_sole_first_place_of_equals_is_put_down_to_the_tie_break(challenge: Any) -> None:
    study, _ = challenge
    never = replace(study, equal=replace(study.equal, dominated=0.0, sole_first=1.0))
    assert "in 100\u00a0%: it then comes from the tie-break alone" in " ".join(findings(never))
    some = replace(study, equal=replace(study.equal, dominated=0.1, sole_first=1.0))
    assert "which the tie-break alone can give: it is no evidence in itself." in " ".join(findings(some))
    shared = replace(study, equal=replace(study.equal, dominated=0.0, sole_first=0.0))
    assert "came out in 0\u00a0%." in " ".join(findings(shared))


def test_the_score_and_its_interval_are_those_of_the_pre_evaluation(challenge: Any) -> None:
    study, tables = challenge
    for m, team in enumerate(study.ranking.models):
        numbers = _pre_evaluation(tables[team])
        assert numbers is not None
        assert study.ranking.mean_accuracy[m] == pytest.approx(numbers.estimate)
        assert study.ranking.mean_interval()[m] == pytest.approx((numbers.low, numbers.high))
    table = ranking_sections(study)[0].tables[0]
    assert "mean of bucket accuracies, % [95 %]" in table.frame.columns
    assert "Mean of bucket accuracies: mean over buckets of the share of right answers" in table.note


def test_a_team_with_every_answer_right_gets_no_interval_of_width_zero() -> None:
    videos = [k // 10 for k in range(80)]
    right = {"all": [1] * 80, "half": [1, 0, 0, 1, 0] * 16, "b": [k % 7 < 3 for k in range(80)]}
    ranking = rank_outcomes(right, ["x|id"] * 80, videos, resamples=99)
    (low, high), _, other = ranking.mean_interval()
    assert 0.5 < low < 0.9 and high == 1 and np.isfinite(other).all()
    study = study_ranking(ranking, outer=0, challenges=0)
    table = ranking_sections(study)[0].tables[0]
    assert table.frame["mean of bucket accuracies, % [95 %]"][0] == f"100.0\u00a0[{100 * low:.1f},\u00a0100.0]"
    assert ranking.to_json()["mean_accuracy_interval"]["all"] == [low, high]
    assert "100.0" in render_page("x", ranking_sections(study))


def test_the_feedback_gives_the_distance_in_points_and_in_answers_and_says_why_they_differ() -> None:
    right = {"net": [1] * 12 + [0] * 4, "prior": [1] * 8 + [0] * 8}
    ranking = rank_outcomes(right, ["verb|id"] * 16, [v for v in "abcdefgh" for _ in range(2)], resamples=200)
    text = _distance(study_ranking(ranking, outer=0, challenges=0), 1)
    assert "The mean of bucket accuracies of the nearest entry on place 1 is 25.0 points higher." in text
    assert "5 more right answers, 31.2 points, would have given that place. That is more than the distance" in text
    assert "because a place is given by the tests in the buckets and by the tie-break" in text
    level = replace(ranking, accuracy=np.array([[0.5, 0.5]]))
    assert "on place 1 is not higher. 5 more" in _distance(study_ranking(level, outer=0, challenges=0), 1)


def test_a_shared_place_is_called_the_same_in_every_sentence() -> None:
    same, videos = [1, 0] * 40, [k // 10 for k in range(80)]
    right = {"top": [1] * 80, "a": same, "b": same, "low": [0] * 80}
    study = study_ranking(
        rank_outcomes(right, ["x|id"] * 80, videos, resamples=99), outer=10, resamples=50, challenges=0
    )
    assert _place(study, 1) == "Place 2 of 4 entries; 2 share the places 2–3."
    (sure,) = _sure(study, 1)
    assert "the entry was on place 2, and in 100\u00a0% on place 2 as here. A shared place counts as the best" in sure


def test_a_statement_about_a_baseline_names_it_and_the_other_baseline(challenge: Any) -> None:
    study, tables = challenge
    (said,) = (text for text in findings(study) if "baseline" in text)
    assert "better than the baseline prior: " in said
    assert "The grade on a run's own page is against another baseline" in said
    both = rank_outcomes(tables, resamples=100, baselines=["prior", "PELICAN"])
    (said,) = (text for text in findings(study_ranking(both, outer=0, challenges=0)) if "baseline" in text)
    assert "better than every baseline (prior and PELICAN): " in said
    none = rank_outcomes(tables, resamples=100)
    assert not any("another baseline" in text for text in findings(study_ranking(none, outer=0, challenges=0)))
