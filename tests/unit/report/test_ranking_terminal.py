"""The tables of a ranking in the terminal: the page's words, places as spans, and nothing but zeros left out."""

from __future__ import annotations

import polars as pl
import pytest

from surgeval.cli.rank import _print
from surgeval.report import RankingStudy, ranking_sections, study_ranking, terminal_tables
from surgeval.stats import rank_outcomes, stream

VIDEOS = [k // 10 for k in range(160)]
BUCKETS = ["verbs|ood", "verbs|id", "targets|ood", "targets|id"] * 40


def study(skill: dict[str, float], status: str = "ok", resolve: str = "top3") -> RankingStudy:
    """Four buckets in sixteen videos; a model is right as often as its skill says."""
    rng = stream(2, "terminal")
    right = {name: rng.random(160) < rate for name, rate in skill.items()}
    tables = {name: pl.DataFrame({"qID": [str(k) for k in range(160)], "status": [status] * 160}) for name in skill}
    ranking = rank_outcomes(right, BUCKETS, VIDEOS, resamples=200, baselines=[min(skill)], resolve=resolve)  # type: ignore[arg-type]
    return study_ranking(ranking, outer=10, resamples=50, challenges=0, tables=tables)


def test_the_terminal_says_what_puts_a_model_ahead_in_the_pages_words() -> None:
    made = study({"net": 0.9, "b": 0.3, "c": 0.3, "d": 0.3})
    shown, page = terminal_tables(made)[0], ranking_sections(made)[0].tables[0]
    assert shown.frame["ahead of the next by"].to_list() == ["tests", "tie-break only", "tie-break only", "–"]
    for column in ("place", "model", "ahead of the next by", "mean of bucket accuracies, % [95 %]"):
        plain = page.frame[column].str.replace_all("\u00a0", " ", literal=True)
        assert shown.frame[column].to_list() == plain.to_list()
    assert shown.note and shown.note in page.note
    assert shown.frame.columns[4:] == ["Copeland score", "win rate in the tie", "against the baseline"]
    assert shown.frame["win rate in the tie"][0] == "–"
    states = dict(shown.frame.select("model", "against the baseline").iter_rows())
    assert states["b"] == "is the baseline" and states["net"] == "clearly better"


def test_shared_places_are_spans_and_shares_are_written_one_way() -> None:
    ranking, places = terminal_tables(study({"net": 0.9, "b": 0.3, "c": 0.3, "d": 0.3}, resolve="none"))
    assert ranking.frame["place"].to_list() == places.frame["place"].to_list() == ["1", "2–4", "2–4", "2–4"]
    assert "win rate in the tie" not in ranking.frame.columns  # no tie was broken
    assert places.frame.columns[5:] == ["first", "among three", "same place"]
    assert all(cell.endswith(" %") for head in places.frame.columns[5:] for cell in places.frame[head])
    assert not any("_" in head for table in (ranking, places) for head in table.frame.columns)


def test_among_three_says_nothing_of_three_models() -> None:
    made = study({"net": 0.9, "b": 0.5, "c": 0.3})
    (page,) = next(section for section in ranking_sections(made) if section.title == "On resampled videos").tables
    for table in (terminal_tables(made)[1], page):
        assert table.frame.columns[5:] == ["first", "same place"]


@pytest.mark.parametrize(("status", "columns"), [("ok", None), ("judge_error", ["model", "judge error"])])
def test_only_answers_in_trouble_are_counted(status: str, columns: list[str] | None) -> None:
    made = study({"net": 0.9, "b": 0.3}, status)
    told = [table.frame.columns for table in terminal_tables(made) if table.title == "answers that were not in order"]
    assert told == ([] if columns is None else [columns])
    page = ranking_sections(made)[0].tables[0]
    assert not {"missing", "late", "invalid", "flagged"} & set(page.frame.columns)
    assert page.note.endswith("No answer is known to be missing, late, invalid or flagged.")


def test_buckets_stand_in_order_and_are_written_as_on_other_pages(capsys: pytest.CaptureFixture[str]) -> None:
    made = study({"net": 0.9, "b": 0.3, "c": 0.3})
    sections = ranking_sections(made)
    (table,) = next(section for section in sections if section.title == "Buckets").tables
    assert table.frame["bucket"].to_list() == ["targets/id", "verbs/id", "targets/ood", "verbs/ood"]
    assert table.note.endswith("In distribution (id) first, then out of distribution (ood), each by name.")
    names = made.figures["accuracy"].spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert names == table.frame["bucket"].to_list()
    cells = [str(value) for section in sections for one in section.tables for row in one.frame.rows() for value in row]
    words = [*cells, *(section.text for section in sections), *(figure.alt for figure in made.figures.values())]
    assert not [text for text in words if "|id" in text or "|ood" in text]
    _print(made, None, None)
    assert "|" not in capsys.readouterr().out
    assert "verbs|ood" in made.to_json()["bucket_rank"] and "verbs|ood" in made.tables["buckets"]["bucket"].to_list()
