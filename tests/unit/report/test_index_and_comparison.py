"""The index over runs and the page of a comparison: directions, chance, few videos, and runs that cannot be read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import polars as pl
import pytest

from surgeval.engine import Manifest, save_scored
from surgeval.errors import BadInput
from surgeval.protocols.contract import Compared, Comparison, Headline, RunResult
from surgeval.protocols.registry import descriptors, runs_in
from surgeval.protocols.verdict import Verdict
from surgeval.report import read_outcomes_of, readable_comparison, write_comparison, write_index
from surgeval.report._comparison import reason, tally, verdict, who
from surgeval.report._index import _range, _tables
from surgeval.stats import Difference, Interval, paired_difference


def compared(low: float, high: float, clusters: int = 30, *, more: bool | None = True) -> Compared:
    middle = (low + high) / 2
    interval = Interval(middle, low, high, clusters=clusters)
    p = 0.4 if 0 in interval else 0.01
    return Compared("x", "lost", Difference(0.5 + middle, 0.5, interval, p), higher_is_better=more)


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
    with pytest.raises(BadInput, match="net: found no number that is defined"):
        Shown("net").number()
    for one in descriptors().values():
        given = get_args(kind := get_type_hints(one.part("load"))["return"]) or (kind,)
        assert all(issubclass(result, RunResult) for result in given), one.name


def headline(label: str, value: float, chance: float | None = None) -> Headline:
    return Headline(label, label, Interval(value, value - 0.1, value + 0.1, clusters=9), chance=chance)


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
    assert "they are not told apart" in verdict(compared(-0.1, 0.3), "net", "twin")
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
    assert (
        tally(level)
        == "Not told apart: lost 0.600 (net) against 0.500 (twin), difference 0.100 [-0.100, 0.300], p = 0.4."
    )
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
    page = write_comparison(comparison, str(tmp_path / "both")).read_text(encoding="utf-8")
    assert "net is better" in page and "One note." in page
    assert (tmp_path / "both" / "tables" / "differences.csv").is_file()
    (frame,) = readable_comparison(comparison).values()
    assert frame.row(0) == ("lost", "0.700", "0.500", "0.200 [0.100, 0.300]", "0.0100", "net")
    assert comparison.plot().axes
    with pytest.raises(BadInput, match="no figures"):
        Comparison(protocol="toy", a="net", b="twin", numbers=()).plot()


def test_runs_that_judge_themselves_differently_say_so_before_the_numbers(tmp_path: Path) -> None:
    comparison = Comparison(protocol="toy", a="net", b="tint", numbers=(compared(-0.1, 0.3),))
    own = {"net": Verdict("supported", "It looks."), "tint": Verdict("contradicted", "It reads the tint.")}
    page = write_comparison(comparison, tmp_path / "both", verdicts=own).read_text(encoding="utf-8")
    said = page.index("By their own verdicts net is supported and tint is contradicted.")
    assert said < page.index("Not told apart") and "It reads the tint." in page
    alike = write_comparison(comparison, tmp_path / "alike", verdicts=dict.fromkeys(own, own["net"]))
    assert "By their own verdicts" not in alike.read_text(encoding="utf-8")


def test_runs_are_rows_chance_is_the_last_and_the_rest_is_folded() -> None:
    numbers = [headline(f"n{k}", 0.5 + k / 100) for k in range(4)]
    first, every = _tables([
        Shown("net", headline("run", 0.4, 0.25), *numbers), Shown("net", headline("run", 0.6, 0.2)),
    ])  # fmt: skip
    assert first.frame.columns == ["run", "run (2)", "n0", "n1", "n2"]
    assert first.frame.get_column("run").to_list() == ["net", "net (2)", "chance"]
    assert first.frame.row(0)[1] == "0.400 [0.300, 0.500]"
    assert first.frame.row(1)[2] == "–"
    assert first.frame.row(2)[1] == "0.200 to 0.250"
    assert every.folded and every.frame.height == 5
    usual = replace(headline("top-1", 0.6, 0.25), unseeing=0.9)
    (named,) = _tables([Shown("net", usual)])
    assert named.frame.rows()[1:] == [("chance", "0.250"), ("one who never looks", "0.900")]
    assert _range([headline("lift", 1, 10.25), headline("lift", 1, 9.5)]) == "9.500 to 10.250"


def test_runs_that_cannot_be_read_do_not_hide_the_others(tmp_path: Path) -> None:
    save_scored(tmp_path / "alien", Manifest("alien", model="net"), cases=1)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text("{")
    save_scored(tmp_path / "deep" / "lost", Manifest("triplets", model="net"), cases=1)
    (tmp_path / "linked").symlink_to(tmp_path / "deep" / "lost")
    assert [run.name for run in runs_in(tmp_path)] == ["alien", "cut", "linked", "lost"]
    page = write_index(str(tmp_path)).read_text(encoding="utf-8")
    for said in ("found alien, expected one of", "cut off at line 1", "found no scores.json"):
        assert said in page, said


def test_a_record_of_impossible_state_is_refused(tmp_path: Path) -> None:
    save_scored(tmp_path, Manifest("triplets", model="net"), cases=1)
    good = json.loads((tmp_path / "run.json").read_text())
    from surgeval.engine import load_record
    from surgeval.errors import DataError

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
    assert tally(both) == "Not told apart: 1 video is too few for a claim about videos in general."
    ((title, frame),) = readable_comparison(both).items()
    assert title == "net − twin, paired over 1 video"
    assert frame.row(0)[1:] == ("30.0 %", "50.0 %", "-20.0 points [-30.0, -10.0]", "0.0100", "")
    mixed = replace(both, numbers=(*numbers, compared(0.1, 0.3)))
    (frame,) = readable_comparison(mixed).values()
    assert frame.row(0)[-1] == "1 video is too few for a claim"  # the third has enough
    assert set(mixed.figures) == {"differences_shares", "differences"}
    assert mixed.figures["differences_shares"].unit == "difference, points"


def test_a_run_that_cannot_be_ranked_names_those_that_can(tmp_path: Path) -> None:
    save_scored(tmp_path / "net", Manifest("triplets", model="net"), cases=1)
    with pytest.raises(BadInput, match=r"found a run of triplets.*expected runs of one of .*focus"):
        read_outcomes_of([tmp_path / "net"])


def test_a_runs_page_is_no_run(tmp_path: Path) -> None:
    from surgeval.engine import load_record
    from surgeval.errors import DataError

    page = tmp_path / "report.html"
    page.write_text("")
    with pytest.raises(DataError, match=r"report\.html: found a file, expected the folder of a run"):
        load_record(page)
