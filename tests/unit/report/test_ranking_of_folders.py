"""`surgeval.rank` of what lies on disk: a folder of runs as one path, lists of paths, and what is in neither."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_cases, make_items, write_run

import surgeval
from surgeval import stats
from surgeval.engine import Manifest, save_scored
from surgeval.errors import BadInput, DataError
from surgeval.protocols.focus import score_focus
from surgeval.protocols.focus.page import write_page_of
from surgeval.protocols.registry import descriptors
from surgeval.protocols.verdict import Verdict
from surgeval.report import (
    findings,
    rank,
    ranking_sections,
    read_entrants,
    read_outcomes_of,
    read_results,
    study_ranking,
    verdicts_of,
)

ASKED = [{"qID": f"q{n}", "videoID": f"v{n // 2}", "start_time": 0, "end_time": 1, "procedure_type": "",
          "question": "?"} for n in range(16)]  # fmt: skip
TRUTH = [{"qID": f"q{n}", "primary": "3a", "format": "number", "answer": "3"} for n in range(16)]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A model that is always right, one that never is, and a run of a protocol without right and wrong."""
    for name, said in (("right", "3"), ("wrong", "4")):
        answers = [{"qID": f"q{n}", "content": said} for n in range(16)]
        score_focus(answers, ASKED, TRUTH, name=name, resamples=20).save(tmp_path / "runs" / name)
    save_scored(tmp_path / "runs" / "boxes", Manifest("triplets", model="net"), cases=1)
    return tmp_path / "runs"


@pytest.mark.parametrize("kind", [str, Path])
def test_a_folder_of_runs_is_ranked_and_says_what_was_left_out(runs: Path, kind: type) -> None:
    ranking = surgeval.rank(kind(runs), resamples=200)
    assert ranking.final_order == [["right"], ["wrong"]]
    assert ranking.notes[0] == "not ranked, because their protocols know no right and wrong: boxes (triplets)"
    listed = surgeval.rank([str(runs / "right"), runs / "wrong"], resamples=200)
    assert listed.final_order == ranking.final_order and "not ranked" not in " ".join(listed.notes)
    assert surgeval.rank([kind(runs)], resamples=200).final_order == ranking.final_order


def test_the_mean_of_the_buckets_is_called_as_the_protocol_calls_it(runs: Path, tmp_path: Path) -> None:
    ranking = surgeval.rank(runs, resamples=200)
    assert ranking.score_name == "pre-evaluation score"
    places = ranking_sections(study_ranking(ranking, outer=0, challenges=0))[0].tables[0].frame
    assert "pre-evaluation score, % [95 %]" in places.columns
    assert surgeval.rank(runs, resamples=200, point="macro").score_name == "mean of bucket accuracies"
    files = [tmp_path / f"{name}.csv" for name in ("right", "wrong")]
    for path, table in zip(files, read_outcomes_of([runs]).values(), strict=True):
        table.select("qID", "video", "group", "ood", "correctness").write_csv(path)
    assert surgeval.rank(files, resamples=200).score_name == "mean of bucket accuracies"
    assert surgeval.rank([runs / "right", files[1]], resamples=200).score_name == "pre-evaluation score"


def test_every_protocol_that_can_be_ranked_says_what_its_number_is() -> None:
    ranked = {name: protocol for name, protocol in descriptors().items() if protocol.outcomes.startswith("surgeval.")}
    names = {name: protocol.ranks_by for name, protocol in ranked.items()}
    assert all(names.values()) and len(set(names.values())) == len(names)
    assert [name for name, score in names.items() if score == "pre-evaluation score"] == ["focus"]


def test_the_first_place_of_a_model_whose_own_run_does_not_bear_it_out_is_said_so(runs: Path) -> None:
    ranking = surgeval.rank(runs, resamples=200)
    verdicts = verdicts_of([runs])
    assert set(verdicts) == {"right", "wrong"}
    own = {"right": Verdict("fails", "It reads the tint."), "wrong": verdicts["wrong"]}
    study = study_ranking(ranking, outer=0, challenges=0, verdicts=own)
    said = "The ranking puts right first; grade of its own run: fails. It reads the tint."
    assert findings(study)[0] == said and study.to_json()["verdicts"]["right"]["grade"] == "fails"
    table = ranking_sections(study)[0].tables[0]
    assert "Its own claim: “It answers better than the blind baseline.”" in table.note
    places = table.frame
    assert places["own grade"].to_list() == ["fails", own["wrong"].grade]
    sure = study_ranking(ranking, outer=0, challenges=0, verdicts={"right": Verdict("passes", "It sees.")})
    assert not any("grade of its own run" in sentence for sentence in findings(sure))


def test_a_folder_with_runs_of_two_protocols_is_refused(runs: Path) -> None:
    items = make_items(2, scenarios=("open_surgery",))
    write_run(runs / "clinician", items, make_cases(items, ANSWERERS["sycophant"]), "clinician")
    with pytest.raises(BadInput, match="found runs of intent and of focus, expected runs of one protocol"):
        surgeval.rank(runs)


def test_two_runs_of_one_name_say_how_to_tell_them_apart(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "right", tmp_path / "more" / "right")
    with pytest.raises(
        BadInput, match=r"found the name 'right' twice .*different names; a run is called after its folder"
    ):
        surgeval.rank([runs, tmp_path / "more"])


def test_a_folder_that_only_holds_what_cannot_be_ranked_says_what_that_is(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (runs / "boxes").rename(tmp_path / "others" / "boxes")
    with pytest.raises(DataError, match="found a folder with runs of triplets only, expected a run, a folder") as said:
        surgeval.rank(tmp_path / "others")
    assert str(said.value).endswith("; two runs of triplets can be compared")
    with pytest.raises(DataError, match="found no such file or folder, expected a run, a folder of runs or a results"):
        surgeval.rank(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("place", ["", "tables/results.csv"])
def test_the_protocol_says_whether_a_results_file_in_its_run_may_be_ranked(tmp_path: Path, place: str) -> None:
    truth = [{**row, "format": "open_ended"} for row in TRUTH]  # which nobody judged
    answers = [{"qID": f"q{n}", "content": "3"} for n in range(16)]
    scores = score_focus(answers, ASKED, truth, name="net", resamples=20)
    write_page_of([scores], scores.save(tmp_path / "net").parent)
    with pytest.raises(DataError, match="net: not to be ranked: 16 of 16 judged answers"):
        read_results(tmp_path / "net" / place)
    shutil.copy(tmp_path / "net" / "tables" / "results.csv", tmp_path / "net.csv")  # on its own it says what it holds
    assert read_results(tmp_path / "net.csv").height == 16


def test_the_options_are_those_of_the_statistics_and_how_much_may_lack_a_verdict() -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (surgeval.rank, stats.rank_outcomes))
    assert set(ours) == {*theirs, "max_unscored"}
    assert {name: ours[name].default for name in theirs} == {name: one.default for name, one in theirs.items()}


OFFICIAL = "qID,video,ood,clinical,primary,answer_format,latency,timed_out,correctness"


def test_the_challenges_own_results_table_is_ranked_by_groups(tmp_path: Path) -> None:
    leaves = ["object_attributes", "1a", "object_aggregation", "event_aggregation"]
    for name, right in (("net", "True"), ("prior", "False")):
        rows = [f"q{k},v{k % 8},{k % 2 == 0},False,{leaves[k % 4]},binary,1.0,{k == 0},{right}" for k in range(32)]
        (tmp_path / f"{name}.csv").write_text("\n".join([OFFICIAL, *rows]))
        renamed = OFFICIAL.replace("primary", "group")
        (tmp_path / f"{name}-renamed.csv").write_text("\n".join([renamed, *rows]).replace(",1a,", f",{leaves[0]},"))
    official = read_entrants([tmp_path / "net.csv", tmp_path / "prior.csv"])
    assert official.tables["net"]["status"].to_list() == ["late"] + ["ok"] * 31
    four = ("aggregation|id", "aggregation|ood", "object_recognition|id", "object_recognition|ood")
    assert rank(official, resamples=50).buckets == four
    renamed_files = [tmp_path / "net-renamed.csv", tmp_path / "prior-renamed.csv"]
    assert rank(renamed_files, resamples=50).buckets == rank(official, resamples=50).buckets
    (tmp_path / "odd.csv").write_text("\n".join([OFFICIAL, "q0,v0,False,False,object_counting,binary,1.0,False,True"]))
    with pytest.raises(DataError, match="primary: found 'object_counting', expected a capability of the taxonomy"):
        read_entrants([tmp_path / "odd.csv"])
