"""The index over runs and the page of a comparison: directions, chance, few videos, and runs that cannot be read."""

from __future__ import annotations

import json
import math
import os
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import numpy as np
import polars as pl
import pytest

from surgeval import score_recognition
from surgeval.cli.app import run as command
from surgeval.engine import Manifest, load_record, save_scored
from surgeval.errors import BadInput, DataError
from surgeval.pages import Section, write_page
from surgeval.protocols.comparison import Compared, Comparison
from surgeval.protocols.contract import Headline
from surgeval.protocols.focus import score_focus
from surgeval.protocols.registry import descriptors, load_run, runs_in
from surgeval.protocols.result import RunResult
from surgeval.protocols.run_page import finding_sections
from surgeval.protocols.triplets.page import write_page_of
from surgeval.protocols.verdict import Claim, Reason, Rule, Verdict, verdict_of
from surgeval.report import read_outcomes_of, readable_comparison, write_comparison_page, write_index
from surgeval.report.comparison import reason, tally, verdict, who
from surgeval.report.index import _data_of, _range, _Shown, _tables
from surgeval.stats import Difference, Interval, paired_difference


def compared(low: float, high: float, clusters: int = 30, *, more: bool | None = True) -> Compared:
    middle = (low + high) / 2
    interval = Interval(estimate=middle, low=low, high=high, clusters=clusters)
    p = 0.4 if 0 in interval else 0.01
    return Compared("x", "lost", Difference(a=0.5 + middle, b=0.5, interval=interval, p=p), higher_is_better=more)


class Shown(RunResult):
    protocol, notes = "shown", ()

    def __init__(self, name: str, *headlines: Headline) -> None:
        self.name, self._headlines = name, headlines

    def headlines(self) -> tuple[Headline, ...]:
        return self._headlines

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        return {"empty": pl.DataFrame()}


def test_every_run_has_its_first_number_at_hand() -> None:
    first, second = headline("accuracy", 0.5), headline("score", 0.7)
    assert Shown("net", first, second).number() is first.interval
    with pytest.raises(BadInput, match="net has no number"):
        Shown("net").number()
    for one in descriptors().values():
        given = get_args(kind := get_type_hints(one.part("load"))["return"]) or (kind,)
        assert all(issubclass(result, RunResult) for result in given), one.name


def headline(label: str, value: float, chance: float | None = None) -> Headline:
    return Headline(
        label, label, Interval(estimate=value, low=value - 0.1, high=value + 0.1, clusters=9), chance=chance
    )


@pytest.mark.parametrize(
    ("number", "better"),
    [
        (compared(0.1, 0.3), "net"),
        (compared(-0.3, -0.1), "twin"),
        (compared(0.1, 0.3, more=False), "twin"),  # more is worse
        (compared(0.1, 0.3, more=None), ""),
        (compared(-0.1, 0.3), ""),
        (compared(0.1, 0.3, clusters=5), ""),  # five videos carry no claim
    ],
)
def test_the_better_run_is_named_only_where_they_are_told_apart(number: Compared, better: str) -> None:
    assert who(number, "net", "twin") == better


def test_the_verdict_says_what_the_test_allows() -> None:
    assert "net is better" in verdict(compared(0.1, 0.3), "net", "twin")
    assert "no significant difference" in verdict(compared(-0.1, 0.3), "net", "twin")
    assert "they differ" in verdict(compared(0.1, 0.3, more=None), "net", "twin")
    assert "5 videos are too few" in verdict(compared(0.1, 0.3, clusters=5), "net", "twin")


def named(label: str, number: Compared, p: float | None = None) -> Compared:
    gap = number.difference
    return replace(number, label=label, difference=gap if p is None else replace(gap, p=p))


def test_the_headline_leads_with_the_main_number_and_counts_every_row() -> None:
    main = named("mAP", compared(0.1, 0.3, clusters=6), p=2 / 64)
    rest = (named("F1", compared(0.1, 0.3)), named("lag", compared(0.1, 0.3, more=False)), compared(-0.1, 0.3),
            named("share", compared(0.1, 0.3, more=None)))  # fmt: skip
    both = Comparison(protocol="toy", a="net", b="twin", numbers=(main, *rest))
    assert tally(both) == (
        "net is better: mAP 0.700 against 0.500, difference 0.200 [0.100, 0.300], p = 0.031 (the least that 6 videos "
        "allow). Of the 4 other numbers, net is better in 1 (F1); twin is better in 1 (lag); 1 of them has no better "
        "direction (p not adjusted for their number)."
    )
    (frame,) = readable_comparison(both).values()
    assert frame.height == 1 + 4
    commas = tuple(named(label, compared(0.1, 0.3)) for label in ("I mAP, video-wise", "V mAP, video-wise"))
    listed = tally(Comparison(protocol="toy", a="net", b="twin", numbers=(main, *commas)))
    assert "better in 2 (I mAP, video-wise; V mAP, video-wise)" in listed
    level = Comparison(protocol="toy", a="net", b="twin", numbers=(compared(-0.1, 0.3),))
    number = "lost 0.600 (net) against 0.500 (twin), difference 0.100 [-0.100, 0.300], p = 0.4."
    assert tally(level) == f"No significant difference: {number}"
    worse = Comparison(protocol="toy", a="net", b="twin", numbers=(compared(-0.3, -0.1),))
    assert tally(worse).startswith("twin is better: lost 0.300 (net) against 0.500 (twin), difference -0.200")


def test_where_interval_and_claim_part_the_reason_is_given() -> None:
    assert reason(compared(0.1, 0.3)) == reason(compared(-0.1, 0.3)) == ""
    assert reason(named("x", compared(0.1, 0.3), p=0.06)) == "the interval leaves 0 out, but p = 0.06 decides"
    assert reason(named("x", compared(0.1, 0.3), p=float("nan"))) == "the interval leaves 0 out, but there is no test"
    assert reason(named("x", compared(0.0, 0.3), p=0.03)) == "p decides, although the interval reaches 0"
    assert reason(compared(0.1, 0.3, clusters=5)) == "5 videos are too few for a claim"
    assert reason(compared(0.1, 0.3, more=None)) == "they differ, but neither more nor less is better"
    assert "but p = 0.06 decides" in verdict(named("x", compared(0.1, 0.3), p=0.06), "net", "twin")


def test_numbers_over_fewer_videos_say_so_and_one_without_an_interval_says_why() -> None:
    gap = paired_difference([1, 1, 1, 0] * 4, [1, 0, 1, 0] * 4, [v for v in "abcdefgh" for _ in range(2)])
    fewer = replace(gap, interval=replace(gap.interval, clusters=6))
    alone = replace(
        gap, p=math.nan, interval=replace(gap.interval, low=math.nan, high=math.nan, note="one video has no interval")
    )
    numbers = tuple(Compared(key, key, d) for key, d in (("all", gap), ("right", fewer), ("wrong", alone)))
    (frame,) = readable_comparison(Comparison(protocol="surgxbench", a="x", b="y", numbers=numbers)).values()
    assert frame["videos"].to_list() == ["8", "6", "8"]
    assert frame["better"].to_list() == ["", "", "one video has no interval"]
    (same,) = readable_comparison(Comparison(protocol="surgxbench", a="x", b="y", numbers=numbers[:1])).values()
    assert "videos" not in same.columns


@pytest.mark.figures
def test_a_comparison_is_a_page_a_table_and_a_figure(tmp_path: Path) -> None:
    comparison = Comparison(protocol="toy", a="net", b="twin", numbers=(compared(0.1, 0.3),), notes=("one note",))
    page = write_comparison_page(comparison, str(tmp_path / "both")).read_text(encoding="utf-8")
    assert "net is better" in page and "One note." in page
    assert (tmp_path / "both" / "tables" / "differences.csv").is_file()
    (frame,) = readable_comparison(comparison).values()
    assert frame.row(0) == ("lost", "0.700", "0.500", "0.200 [0.100, 0.300]", "0.0100", "net")
    assert comparison.plot().svg().startswith("<svg")
    with pytest.raises(BadInput, match="no figures"):
        Comparison(protocol="toy", a="net", b="twin", numbers=()).plot()


def test_runs_that_judge_themselves_differently_say_so_before_the_numbers(tmp_path: Path) -> None:
    comparison = Comparison(protocol="toy", a="net", b="tint", numbers=(compared(-0.1, 0.3),))
    own = {"net": Verdict("passes", "It looks."), "tint": Verdict("fails", "It reads the tint.")}
    page = write_comparison_page(comparison, tmp_path / "both", verdicts=own).read_text(encoding="utf-8")
    said = page.index("Their own grades differ. net: passes; tint: fails.")
    assert said < page.index("No significant difference") and "It reads the tint." in page
    alike = write_comparison_page(comparison, tmp_path / "alike", verdicts=dict.fromkeys(own, own["net"]))
    assert "Their own grades differ" not in alike.read_text(encoding="utf-8")


def test_runs_are_rows_chance_is_the_last_and_the_rest_is_folded() -> None:
    numbers = [headline(f"n{k}", 0.5 + k / 100) for k in range(4)]
    first, every = _tables([
        shown("net", headline("run", 0.4, 0.25), *numbers), shown("twin", headline("run", 0.6, 0.2), *numbers[:3]),
    ])  # fmt: skip
    assert first.title == "Headline numbers" and every.title == "All headline numbers"
    assert first.frame.columns == ["run", "run (2)", "n0", "n1", "n2"]
    assert first.frame.get_column("run").to_list() == ["net", "twin", "chance"]
    assert first.frame.row(0)[1] == "0.400 [0.300, 0.500]"
    assert first.frame.row(2)[1] == "0.200 to 0.250"
    assert every.folded and every.frame.height == 5
    assert every.frame.row(4)[2] == "–"  # a number that is not among the first makes no second table
    usual = replace(headline("top-1", 0.6, 0.25), baseline=0.9)
    (named,) = _tables([shown("net", usual)])
    assert named.frame.rows()[1:] == [("chance", "0.250"), ("baseline", "0.900")]
    assert _range([headline("lift", 1, 10.25), headline("lift", 1, 9.5)]) == "9.500 to 10.250"


def test_a_difference_without_width_says_that_other_videos_may_show_one(tmp_path: Path) -> None:
    videos = [f"v{k // 2}" for k in range(16)]
    same = Compared("n", "accuracy", paired_difference([1, 0] * 8, [1, 0] * 8, videos))
    comparison = Comparison(protocol="focus", a="net", b="twin", numbers=(same,))
    (table,) = readable_comparison(comparison).values()
    assert table.row(0)[3:] == (
        "0.000 [0.000, 0.000]", "1.0000", "no difference in any of these videos; other videos may show one",
    )  # fmt: skip
    assert "It does not say that they are one model." in write_comparison_page(comparison, tmp_path).read_text("utf-8")
    other = replace(same, difference=paired_difference([1, 1] * 8, [1, 0] * 8, videos))
    page = write_comparison_page(replace(comparison, numbers=(other,)), tmp_path).read_text("utf-8")
    assert "one model" not in page


def test_the_number_of_exchanges_and_their_seed_are_options_of_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = np.random.default_rng(5)
    labels = dice.random((96, 3)) < 0.5
    videos = [f"v{k // 8}" for k in range(96)]  # 12 videos: 2048 different exchanges
    for name, signal in (("good", 0.32), ("poor", 0.3)):
        scores = score_recognition(signal * labels + dice.random(labels.shape), labels, videos, name=name)
        page = write_page_of([scores], scores.save(tmp_path / name).parent).read_text(encoding="utf-8")
        assert "Resamples" not in page and "seed" not in page
    folders = [str(tmp_path / name) for name in ("good", "poor")]
    found = {}
    for options in (("--resamples", "60"), ("--resamples", "60", "--seed", "1"), ("--resamples", "4000"), ()):
        assert command(["compare", *folders, *options, "--json"]) == 0
        compared = json.loads(capsys.readouterr().out)
        found[options] = (compared["settings"]["resamples"], compared["settings"]["seed"],
                          compared["differences"][0]["p"])  # fmt: skip
    few, other, every, usual = found.values()
    assert few[:2] == (60, 0) and other[:2] == (60, 1) and every[0] == 4000 and usual[:2] == (1000, 0)
    assert round(few[2] * 61, 9) % 1 == round(other[2] * 61, 9) % 1 == 0  # p = (1 + k) / (1 + 60)
    assert round(every[2] * 2048, 9) % 1 == 0  # all exchanges, none drawn
    assert len({few[2], other[2], every[2]}) == 3
    assert command(["compare", *folders, "--resamples", "60", "--out", str(tmp_path / "page")]) == 0
    assert "at most 60 (seed 0)" in (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert command(["score", "triplets", "--data", "x", "--constant", "--resamples", "9"]) == 2
    assert "No such option" in capsys.readouterr().err


def test_the_baseline_of_triplets_in_an_index_is_not_called_chance(tmp_path: Path) -> None:
    labels = [[1, 0], [0, 1]] * 4
    score_recognition(labels, labels, [f"v{k // 2}" for k in range(8)]).save(tmp_path / "net")
    page = write_index(tmp_path).read_text(encoding="utf-8")
    assert "<td>baseline</td>" in page and "<td>chance</td>" not in page
    assert "answers without looking at the images" in page


def shown(name: str, *headlines: Headline, data: str = "") -> _Shown:
    return _Shown(name, headlines, None, data, f"{data} (1f)" if data else "")


def test_runs_of_other_data_or_other_first_numbers_have_their_own_table() -> None:
    """Beside each run its main number, and below it the baseline of its own dataset."""
    triplets, tools = (headline(f"IVT {name}", 0.5, 0.02) for name in ("mAP", "F1")), headline("I mAP", 0.8, 0.3)
    ivt = tuple(triplets)
    runs = [shown("a", tools, data="endo"), shown("b", *ivt, data="chole"), shown("c", tools, data="chole"),
            shown("d", *ivt, data="chole"), shown("e", replace(tools, chance=0.1), data="third")]  # fmt: skip
    tables = {table.title.removeprefix("Headline numbers on "): table.frame for table in _tables(runs)}
    assert list(tables) == ["endo (1f)", "chole (1f): IVT mAP", "chole (1f): I mAP", "third (1f)"]
    assert tables["chole (1f): IVT mAP"].columns == ["run", "IVT mAP", "IVT F1"]
    assert [frame["run"].to_list() for frame in tables.values()] == [
        ["a", "chance"], ["b", "d", "chance"], ["c", "chance"], ["e", "chance"],
    ]  # fmt: skip
    assert [frame.row(-1)[1] for frame in tables.values()] == ["0.300", "0.020", "0.300", "0.100"]
    later = _tables([shown("a", tools), shown("b", tools, *ivt)])
    assert [table.title for table in later] == ["Headline numbers", "Headline numbers (2)"]


def test_the_index_tells_stored_runs_apart_by_their_data(tmp_path: Path) -> None:
    video = ["v1", "v1", "v2", "v2"]
    for name, labels in (("a", [[1, 0], [0, 1]] * 2), ("b", [[1, 1], [0, 1]] * 2), ("c", [[1, 0], [0, 1]] * 2)):
        score_recognition(labels, labels, video, name=name).save(tmp_path / name)
    stored = {name: load_record(tmp_path / name).dataset for name in "ab"}
    page = write_index(tmp_path).read_text(encoding="utf-8")
    for data in stored.values():
        assert f"eadline numbers on data ({data[:8]})" in page
    assert "have a table of their own" in page
    shutil.rmtree(tmp_path / "b")
    page = write_index(tmp_path).read_text(encoding="utf-8")
    assert "eadline numbers on" not in page and "have a table of their own" not in page


def test_the_same_data_under_another_name_are_the_same_data(tmp_path: Path) -> None:
    for name, content in (("here", "1f" * 9), ("there", "1f" * 9), ("other", "2e" * 9)):
        save_scored(tmp_path / name, Manifest("toy", dataset={"name": name, "content": content}), cases=1)
    save_scored(tmp_path / "silent", Manifest("toy"), cases=1)
    here, there, other, silent = (
        _data_of(tmp_path / name, Shown(name)) for name in ("here", "there", "other", "silent")
    )
    assert here[0] == there[0] != other[0]
    assert (here[1], other[1], silent[1]) == ("here (1f1f1f1f)", "other (2e2e2e2e)", "")


def test_questions_that_were_asked_and_answers_that_were_scored_stand_in_one_table(tmp_path: Path) -> None:
    """run.json of a run that asked holds another fingerprint of the same questions."""
    ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    for name in ("asked", "scored"):
        score_focus([{"qID": "q1", "content": "3"}], ask, truth, name=name, resamples=20).save(tmp_path / name)
    record = json.loads((tmp_path / "asked" / "run.json").read_text())
    (tmp_path / "asked" / "run.json").write_text(json.dumps({**record, "dataset": "as it was asked"}))
    assert "have a table of their own" not in write_index(tmp_path).read_text(encoding="utf-8")


def test_runs_that_cannot_be_read_do_not_hide_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_scored(tmp_path / "alien", Manifest("alien", model="net"), cases=1)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text("{")
    save_scored(tmp_path / "deep" / "lost", Manifest("triplets", model="net"), cases=1)
    (tmp_path / "linked").symlink_to(tmp_path / "deep" / "lost")
    assert [run.name for run in runs_in(tmp_path)] == ["alien", "cut", "linked", "lost"]
    told: list[str] = []
    page = write_index(str(tmp_path), on_problem=told.append).read_text(encoding="utf-8")
    said = (
        "found alien, expected one of",
        "cut off",
        "linked: found no scores.json",
        "lost: found no scores",
    )
    assert len(told) == 4 and all(text in page and text in one for text, one in zip(said, told, strict=True)), told
    assert command(["report", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "index.html" in printed.out and all(f"surgeval: {problem}" in printed.err for problem in told)
    assert command(["report", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"report": str(tmp_path / "index.html"), "unread": told}


def test_a_run_whose_protocol_is_not_installed_says_what_to_do(tmp_path: Path) -> None:
    save_scored(tmp_path, Manifest("alien", model="net"), cases=1)
    with pytest.raises(DataError, match=r"alien, expected one of triplets, .* package that offers it is installed"):
        load_run(tmp_path)


def test_a_named_run_that_cannot_be_read_stands_on_the_page_of_unlike_runs_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score_recognition([[1, 0], [0, 1]], [[1, 0], [0, 1]], ["a", "b"]).save(tmp_path / "good")
    save_scored(tmp_path / "bad", Manifest("focus", model="net"), cases=1)
    assert (
        command(["report", *(str(tmp_path / name) for name in ("good", "bad")), "--out", str(tmp_path / "both")]) == 1
    )
    assert "bad: found a run whose answers are not scored" in capsys.readouterr().err
    assert "found a run whose answers are not scored" in (tmp_path / "both" / "report.html").read_text("utf-8")


def test_a_folder_that_is_no_run_is_named_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        save_scored(tmp_path / "runs" / name, Manifest("triplets", model="net"), cases=1)
    with pytest.raises(DataError, match=r"runs: found a folder of 2 runs, expected one of them, such as .*runs/a$"):
        load_run(tmp_path / "runs")
    (tmp_path / "data" / "labels").mkdir(parents=True)
    (tmp_path / "data" / "labels" / "VID01_000012.txt").write_text("3 0.5 0.5 0.2 0.1")
    with pytest.raises(DataError, match="data: found a dataset, expected the folder of a run"):
        load_run(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"run\.json: no such file"):
        load_run(tmp_path / "empty")
    monkeypatch.setitem(load_run.__globals__, "folder_kind_of", lambda _: SimpleNamespace(noun="training"))
    with pytest.raises(DataError, match="empty: found a training, expected the folder of a run"):
        load_run(tmp_path / "empty")


@pytest.mark.parametrize(("many", "said"), [(1, "reading the run and writing its page"),
                                            (2, "reading the runs and writing their page")])  # fmt: skip
def test_the_progress_line_counts_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, said: str
) -> None:
    phases: list[str] = []
    shown = nullcontext(SimpleNamespace(phase=phases.append))
    monkeypatch.setattr("surgeval.cli.report.progress_bar", lambda _unit: shown)
    monkeypatch.setattr("surgeval.report.write_run_pages", lambda *_, **__: tmp_path / "report.html")
    for number in range(many):
        save_scored(tmp_path / str(number), Manifest("triplets", model="net"), cases=1)
    folders = [str(tmp_path / str(number)) for number in range(many)]
    assert command(["report", *folders, "--out", str(tmp_path / "page")]) == 0
    assert phases == [said]


def test_a_record_of_impossible_state_is_refused(tmp_path: Path) -> None:
    save_scored(tmp_path, Manifest("triplets", model="net"), cases=1)
    good = json.loads((tmp_path / "run.json").read_text())
    assert load_record(tmp_path).finished == 1 and load_record(tmp_path).failed == 0
    for key, value in (("status", "banana"), ("units", -3), ("cases", True)):
        (tmp_path / "run.json").write_text(json.dumps({**good, key: value}))
        with pytest.raises(DataError, match=key):
            load_record(tmp_path)


def test_runs_of_two_protocols_are_not_ranked_against_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both have right and wrong answers, but not to the same questions."""
    table = pl.DataFrame({"qID": ["q1"], "video": ["v"], "group": ["g"], "ood": [False], "correctness": [True]})
    for name in ("focus", "surgxbench"):
        (tmp_path / name).mkdir()
    kind = {
        name: SimpleNamespace(name=name, outcomes="outcomes", part=lambda _: lambda _: table)
        for name in ("focus", "surgxbench")
    }
    monkeypatch.setitem(read_outcomes_of.__globals__, "is_run", lambda path: True)
    monkeypatch.setitem(read_outcomes_of.__globals__, "descriptor_of", lambda path: kind[path.name])
    monkeypatch.setitem(read_outcomes_of.__globals__, "load_run", lambda path: path)
    paths = [tmp_path / "focus", tmp_path / "surgxbench"]
    assert list(read_outcomes_of(paths[:1])) == ["focus"]
    with pytest.raises(BadInput, match="found runs of focus and of surgxbench, expected runs of one protocol"):
        read_outcomes_of(paths)


def test_few_videos_are_said_once_and_differences_of_shares_are_points() -> None:
    numbers = tuple(replace(named(label, compared(-0.3, -0.1, clusters=1)), unit="share") for label in ("lost", "kept"))
    both = Comparison(protocol="toy", a="net", b="twin", numbers=numbers)
    assert tally(both) == "No significant difference: 1 video is too few for a claim about videos in general."
    ((title, frame),) = readable_comparison(both).items()
    assert title == "net − twin, paired over 1 video"
    assert frame.row(0)[1:] == ("30.0 %", "50.0 %", "-20.0 points [-30.0, -10.0]", "0.0100", "")
    mixed = replace(both, numbers=(*numbers, compared(0.1, 0.3)))
    (frame,) = readable_comparison(mixed).values()
    assert frame.row(0)[-1] == "1 video is too few for a claim"  # the third has enough
    assert set(mixed.figures) == {"differences_shares", "differences"}
    assert "(difference, points)" in mixed.figures["differences_shares"].alt


def test_a_run_that_cannot_be_ranked_names_those_that_can(tmp_path: Path) -> None:
    save_scored(tmp_path / "net", Manifest("triplets", model="net"), cases=1)
    with pytest.raises(BadInput, match=r"found a run of triplets.*expected runs of one of .*focus"):
        read_outcomes_of([tmp_path / "net"])


def test_a_runs_page_is_no_run(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("")
    with pytest.raises(DataError, match=r"report\.html: a file, not the folder of a run"):
        load_record(page)


def test_rankings_comparisons_and_reports_beside_the_runs_are_linked(tmp_path: Path) -> None:
    labels = [[1, 0], [0, 1]] * 2
    for name in ("net", "teams/other"):
        score_recognition(labels, labels, ["v1", "v1", "v2", "v2"]).save(tmp_path / name)
    for place, title in {"both": "A & <b>", "teams/ranking": "Who is first", "again": "A & <b>"}.items():
        write_page(tmp_path / place / "report.html", title, [Section("Result")], kind="comparison")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.html").write_text("<title>somebody's own · page</title>")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "report.html")
    outside = write_page(tmp_path.parent / f"{tmp_path.name}-outside" / "report.html", "Elsewhere", [])
    (tmp_path / "link").symlink_to(outside.parent)
    (tmp_path / "odd\udcff").mkdir()  # a name that is no UTF-8
    (tmp_path / "odd\udcff" / "report.html").write_bytes(outside.read_bytes().replace(b"Elsewhere", b"Oddly named"))
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "report.html").symlink_to("report.html")
    html = write_index(tmp_path, links={"The first": tmp_path / "teams" / "ranking" / "report.html"}).read_text()
    assert html.count('href="./teams/ranking/report.html"') == 1  # it stands at the top already
    others = html[html.rindex("Other pages") :]
    assert 'href="./odd%FF/report.html"' in others and "Oddly named" in others
    for place in ("again", "both"):
        assert f'href="./{place}/report.html"' in others
        assert f"A &amp; &lt;b&gt; · comparison ({place}/report.html)" in others
    assert "somebody" not in html and "Elsewhere" not in html and "net/report.html" not in others
    again = write_index(tmp_path, links={}).read_text()
    assert "Who is first · comparison" in again  # an index made again has lost no page


def test_the_claim_stands_where_the_grades_stand(tmp_path: Path) -> None:
    sees, finds = (Claim(f"It {verb}s.", f"It does not {verb}.") for verb in ("see", "find"))
    rule = Rule("right", "Right more often than not.", "decides")
    graded = {
        name: verdict_of(sees, [Reason(rule, "So.", holds)], 20) for name, holds in (("net", True), ("tint", False))
    }
    assert {verdict.claim for verdict in graded.values()} == {"It sees."} and graded["tint"].to_json()["claim"]
    number = headline("accuracy", 0.5)
    runs = [replace(shown(name, number), verdict=verdict) for name, verdict in graded.items()]
    assert _tables(runs)[0].note == "Claim: “It sees.”"
    other = replace(shown("box", number), verdict=verdict_of(finds, [], 20))
    assert _tables([*runs, other])[0].note == "Claim: “It sees.” (net, tint); “It finds.” (box)"
    assert _tables([shown("net", number)])[0].note == ""
    comparison = Comparison(protocol="toy", a="net", b="tint", numbers=(compared(-0.1, 0.3),))
    page = write_comparison_page(comparison, tmp_path / "both", verdicts=graded).read_text(encoding="utf-8")
    assert "Claim: “It sees.”" in page
    assert finding_sections({"tint": graded["tint"]})[0].text == "Claim: “It sees.”"
    assert finding_sections({"net": graded["net"]})[0].text == "", "the scorecard says it"
