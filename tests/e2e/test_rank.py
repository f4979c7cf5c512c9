"""`surgeval rank` as an organiser runs it: golden orders through CSV files, and files that must not be ranked."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from surgeval.protocols.focus import score_focus

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick, Surgeval

HEAD = "qID,video,group,ood,correctness"
EXACT = ("copeland", "final_rank", "bucket_rank", "better", "pairwise_bucket_wins", "low_cluster_buckets")


@cache
def _load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _cases(golden: Any) -> list[dict[str, Any]]:
    return [{"options": golden["options"], **golden["expected"]}, *golden["expected_variants"]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "golden_file" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--golden")
        folder = Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden"
        files = sorted((folder / "vqa").glob("ranking_*.json"))
        later = (pytest.param(path, marks=pytest.mark.long) for path in files[1:])
        metafunc.parametrize("golden_file", [*files[:1], *later], ids=lambda path: path.stem)


def test_golden_rankings_come_out_of_csv_files(quick: Quick, golden_file: Path, tmp_path: Path, long: bool) -> None:
    """In short one of them: all are in `tests/golden/test_golden_ranking.py`, which has no files."""
    golden = _load(golden_file)
    truth = {"1": ("true", "1", "True"), "0": ("FALSE", "0", "false")}
    for model in golden["models"]:
        rows = [HEAD]
        columns = golden["questions_bucket_index"], golden["questions_video_index"], golden["correct"][model]
        for number, (bucket, video, right) in enumerate(zip(*columns, strict=True)):
            group, side = golden["bucket_names"][bucket].split("|")
            said = truth[str(right)][number % 3]
            rows.append(f"{number:05d},{golden['video_names'][video]},{group},{side == 'ood'},{said}")
        (tmp_path / f"{model}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    files = [f"{model}.csv" for model in golden["models"]]
    for case in _cases(golden)[: None if long else 1]:
        options = [part for key, value in case["options"].items() for part in (f"--{key.replace('_', '-')}", value)]
        code, out, err = quick("rank", *files, *options, "--stability", 0, "--json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        for key in EXACT:
            if key in case:
                assert found[key] == case[key], key
        assert [sorted(place) for place in found["final_order"]] == [sorted(place) for place in case["final_order"]]
        assert found["win_rate"] == pytest.approx(case["win_rate"], abs=0.02)


def _table(skill: int, ids: list[str] | None = None, videos: int = 8, head: str = HEAD) -> str:
    """Ten questions in each of some videos; the first `skill` of each video are right."""
    names = ids or [f"q{k:03d}" for k in range(10 * videos)]
    rows = [f"{qid},v{k // 10},verbs,{k % 2},{int(k % 10 < skill)}" for k, qid in enumerate(names)]
    return "\n".join([head, *rows]) + "\n"


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    """Three models of clearly different skill."""
    for name, skill in (("net", 9), ("prior", 6), ("random", 2)):
        (tmp_path / f"{name}.csv").write_text(_table(skill))
    return ["net.csv", "prior.csv", "random.csv"]


@pytest.mark.figures
def test_a_ranking_is_written_with_its_reasons(surgeval: Surgeval, three: list[str], tmp_path: Path) -> None:
    command = ("rank", *three, "--baseline", "prior", "--baseline", "random", "--stability", 20, "--out", "R")
    done = surgeval(*command)
    assert done.returncode == 0, done.stderr
    assert "Clearly better than every baseline (prior and random): net." in done.stdout
    assert "net is first. On resampled videos it stays there in 100 % of 20 resamples." in done.stdout
    assert "Ahead by tests: better than the next in more buckets." in done.stdout
    assert "order turns round without the bucket: none" in done.stdout
    found = json.loads(surgeval(*command, "--json").stdout)
    assert found["final_order"] == [["net"], ["prior"], ["random"]]
    assert found["gate"]["final"] == {"net": True}
    assert found["stability"]["share"]["net"] == [1, 0, 0]
    assert set(found["leave_one_bucket_out"]) == {"verbs|id", "verbs|ood"}
    assert found["leave_one_model_out"]["prior"]["final_rank"] == {"net": 1, "random": 2}
    assert found["minimum_detectable_difference"]["power"] == 0.8
    assert found["variants"]["mean accuracy"]["final_rank"] == {"net": 1, "prior": 2, "random": 3}
    assert json.loads((tmp_path / "R" / "ranking.json").read_text()).items() <= found.items()
    for part in ("report.html", "tables/ranking.csv", "tables/pairs.csv", "figures/podium.svg", "figures/blobs.svg",
                 "figures/significance.svg", "figures/accuracy.svg", "figures/without_bucket.svg"):  # fmt: skip
        assert (tmp_path / "R" / part).is_file(), part


def test_two_models_in_one_bucket_can_be_ranked(surgeval: Surgeval, tmp_path: Path) -> None:
    for name, skill in (("a", 9), ("b", 2)):
        (tmp_path / f"{name}.csv").write_text(_table(skill).replace(",verbs,1,", ",verbs,0,"))
    done = surgeval("rank", "a.csv", "b.csv", "--stability", 5, "--out", "R", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["final_order"] == [["a"], ["b"]]
    assert found["leave_one_bucket_out"] is None
    assert found["leave_one_model_out"] is None


def test_too_few_videos_put_everybody_on_one_place(surgeval: Surgeval, tmp_path: Path) -> None:
    for name, skill in (("a", 9), ("b", 2), ("c", 5)):
        (tmp_path / f"{name}.csv").write_text(_table(skill, videos=3))
    done = surgeval("rank", "a.csv", "b.csv", "c.csv", "--resolve", "none", "--stability", 5, "--out", "R", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["final_order"] == [["a", "b", "c"]]
    assert found["low_cluster_buckets"] == ["verbs|id", "verbs|ood"]
    assert "tell none of the models apart" in (tmp_path / "R" / "report.html").read_text()


def _score(surgeval: Surgeval, folder: Path, run: str, answers: dict[str, str], video: str | None = "v") -> None:
    ids = list(answers)
    requests = [{"qID": qid, "videoID": f"{video}{k % 8}" if video else None, "start_time": 0, "end_time": 1,
                 "procedure_type": "x", "question": "?"} for k, qid in enumerate(ids)]  # fmt: skip
    requests[0]["videoID"] = None  # a cluster of its own
    references = [{"qID": qid, "primary": "3a", "format": "number", "answer": "3"} for qid in ids]
    references[-1]["answer"] = "many"  # cannot be scored: set aside for every model
    responses = [{"qID": qid, "content": answer, "latency": 1.0} for qid, answer in answers.items()]
    for name, content in (("requests", requests), ("references", references), ("responses", responses)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    done = surgeval("score", "focus", "--requests", "requests.json", "--references", "references.json",
                    "--responses", "responses.json", "--out", run)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_score_writes_rank_reads_whatever_the_questions_are_called(surgeval: Surgeval, tmp_path: Path) -> None:
    signs = ["=1+1", "+7", "-7", "@x", "\tx"]
    odd = [*signs, "007", "1e5", 'a,"b"', "line\nbreak", "'quoted", "nan", "true", "q", "r", "s", "z"]
    _score(surgeval, tmp_path, "good", dict.fromkeys(odd, "3"))
    _score(surgeval, tmp_path, "bad", dict.fromkeys(odd, "=4"))
    text = (tmp_path / "good" / "tables" / "results.csv").read_text()
    assert "\n'=1+1," in text  # no spreadsheet computes it
    done = surgeval("rank", "good", "bad/", "--stability", 0, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["models"] == ["good", "bad"]
    assert found["final_order"] == [["good"], ["bad"]]
    assert sum(found["bucket_questions"].values()) == len(odd) - 1
    left_out, few = found["notes"]
    assert left_out == "left out, without a verdict for any model: 1 question"
    assert few.startswith("fewer than 20 videos (9) in the only bucket that decides")
    foreign = [HEAD, *(f'"{qid.replace(chr(34), 2 * chr(34))}",{"v" + str(k % 8) if k else ""},aggregation,0,0'
                       for k, qid in enumerate(odd))]  # fmt: skip
    (tmp_path / "foreign.csv").write_text("\n".join(foreign) + "\n")
    mixed = surgeval("rank", "good", "foreign.csv", "--max-unscored", 0.1, "--stability", 0, "--json")
    assert mixed.returncode == 0, mixed.stderr
    assert json.loads(mixed.stdout)["final_order"] == [["good"], ["foreign"]]


def test_a_submission_that_must_not_be_ranked_is_reported_and_the_others_are_ranked(
    surgeval: Surgeval, three: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "tables").mkdir(parents=True)
    (run / "tables" / "results.csv").write_text(_table(9))
    assert surgeval("rank", "run", *three, "--stability", 0).returncode == 0
    asked = [{"qID": "q", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    truth = [{"qID": "q", "primary": "1a", "format": "open_ended", "answer": "x"}]
    score_focus([{"qID": "q", "content": "y"}], asked, truth, name="net").save(run)
    for given in ("run", "run/tables/results.csv"):
        done = surgeval("rank", given, *three, "--stability", 0, "--json")
        assert done.returncode == 1
        ranked = json.loads(done.stdout)
        assert len(ranked["models"]) == 3
        assert "1 of 1 judged answers" in next(iter(ranked["not_ranked"].values()))
        assert any(
            "not ranked: " in note and ": 1 of 1 judged answers have no verdict" in note for note in ranked["notes"]
        )
        alone = surgeval("rank", given, three[0])
        assert alone.returncode == 2
        assert "net: not to be ranked: 1 of 1 judged answers" in alone.stderr
    assert "Not ranked: run: 1 of 1 judged answers have no verdict" in " ".join(
        surgeval("rank", "run", *three).stdout.split()
    )
    (run / "scores.json").write_text("[")
    assert surgeval("rank", "run/tables/results.csv", *three).returncode == 2


def test_files_that_cannot_be_compared_are_refused_in_one_sentence(
    quick: Quick, three: list[str], tmp_path: Path
) -> None:
    good = _table(5)
    unfilmed = "\n".join([HEAD, *(f"q{k:03d},,verbs,{k % 2},1" for k in range(80))])
    for name, text, words in (
        ("fewer", "\n".join(good.splitlines()[:-1]), "fewer: qID q079: found no row"),
        ("more", good + "extra,v1,verbs,0,1\n", "more: qID extra: found a row"),
        ("elsewhere", good.replace("q000,v0", "q000,v9"), "elsewhere: qID q000: video: found v9"),
        ("moved", good.replace("q000,v0,verbs", "q000,v0,nouns"), "moved: qID q000: group and ood"),
        ("twice", good + "q000,v0,verbs,0,1\n", "twice: qID: found q000 more than once"),
        ("maybe", good.replace("q000,v0,verbs,0,1", "q000,v0,verbs,0,maybe"), "found 'maybe', expected true or false"),
        ("headless", good.replace("correctness", "right"), "headless.csv: correctness: found the columns"),
        ("doubled", good.replace("correctness", "correctness,qID"), "doubled.csv: qID: found the column twice"),
        ("ragged", good + "q1,2,3,4,5,6,7\n", "ragged.csv: found no CSV table"),
        ("empty", "", "empty.csv: found an empty file"),
        ("rowless", HEAD + "\n", "rowless: found no rows"),
        ("unfilmed", unfilmed, "unfilmed.csv: video: found nothing in any row"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
        code, out, err = quick("rank", three[0], f"{name}.csv", "--stability", 0)
        assert (code, out) == (2, ""), name
        assert words in err
        assert len(err.splitlines()) == 1
    (tmp_path / "latin.csv").write_bytes(good.encode() + b"\xff\xfe,v0,verbs,0,1\n")
    assert quick("rank", three[0], "latin.csv")[0] == 2


def test_options_and_names_are_checked_before_anything_is_computed(
    quick: Quick, three: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "net.csv").write_text(_table(5))
    for more, words in (
        ((*three, "--collapse", "best"), "collapse: found 'best', expected one of pairwise"),
        ((*three, "--alpha", 2), "alpha: found 2.0"),
        ((*three, "--baseline", "nobody"), "baselines: found 'nobody'"),
        (("net.csv",), "models: found 1, expected at least two"),
        (("net.csv", "absent.csv"), "absent.csv: found no such file"),
        (("net.csv", "sub"), "sub: found a folder with none of them"),
        (("net.csv", "sub/net.csv"), "models: found the name 'net' twice"),
    ):
        code, out, err = quick("rank", *more)
        assert (code, out) == (2, ""), more
        assert words in err


def test_an_exchange_ranking_with_feedback_from_a_folder_of_runs(surgeval: Surgeval, tmp_path: Path) -> None:
    ids = [f"q{k:02d}" for k in range(64)]
    runs = tmp_path / "runs"
    runs.mkdir()
    for name, wrong in (("net", 9), ("rival", 3), ("prior", 2)):
        answers = {qid: "4" if (k // 8) % wrong == 0 else "3" for k, qid in enumerate(ids)}
        _score(surgeval, tmp_path, f"runs/{name}", answers)
    done = surgeval("rank", "runs", "--test", "exchange", "--baseline", "prior", "--stability", 10,
                    "--calibration", 200, "--out", "R", "--feedback", "F")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "net is first" in done.stdout
    last = done.stderr.splitlines()[-1]  # phases of less than 0.05 s are not told, which the short ones may be
    assert last.startswith("time: ") and "writing the page" in last
    assert "The exchange test called" in done.stdout
    plain = json.loads((tmp_path / "R" / "ranking.json").read_text())
    assert plain["options"]["test"] == "exchange"
    assert plain["calibration"]["overall"] < 0.1
    assert plain["statuses"][0]["late"] == 0
    assert sorted(path.name for path in (tmp_path / "F").iterdir()) == ["index.html", "net", "rival"]
    page = (tmp_path / "F" / "rival" / "feedback.html").read_text()
    assert "Place 2 of 3 entries." in page and ">net<" not in page and "the reference is" not in page
    header, *rows = (tmp_path / "F" / "rival" / "answers.csv").read_text().splitlines()
    assert header.startswith("qID,video,bucket,when,question,answer,result,status") and len(rows) == 64
    refused = surgeval("rank", "runs", "--test", "exchange", "--scheme", "question")
    assert refused.returncode == 2 and "expected cluster" in refused.stderr
