"""Planted truth: `phantom-clip` looks at the tools, `phantom-shortcut` reads the tint of the tissue.

Where the tint follows the working instrument both are right equally often; only where they look, and what hiding the
instrument does, tells them apart. Where the tint is random the shortcut collapses.
"""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from tests.conftest import Once

from surgeval import compare
from surgeval.phantom import write_phantom
from surgeval.protocols.surgxbench import SurgXScores, SurgXSettings, load_surgxbench, run_surgxbench
from surgeval.stats import Interval

pytestmark = pytest.mark.timeout(1800)  # the full count renders and looks at 540 frames
CLIP, SHORTCUT, WORDED = "phantom-clip", "phantom-shortcut", "phantom-llava"


def _asked(long: bool) -> list[tuple[str, str]]:
    """Model and tint; in short the honest model is not shown the random one."""
    pairs = [(model, tint) for tint in ("by_instrument", "random") for model in (CLIP, SHORTCUT)]
    return pairs if long else [pair for pair in pairs if pair != (CLIP, "random")]


@pytest.fixture(scope="module")
def looks(once: Once, long: bool) -> dict[tuple[str, str], SurgXScores]:
    """Six test videos of twelve frames with the betraying tint, some of them with a random one; all at full count."""
    import torch

    def make(out: Path) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        for tint, videos, fps in (("by_instrument", 18, 0.2), ("random", 12, 1 / 12)):
            videos, fps = (24, 0.5) if long else (videos, fps)
            write_phantom(
                out / tint, seed=7, videos=videos, seconds=60, fps_labels=fps, tint=tint, split="test", processes=1
            )
        for model, tint in _asked(long):
            hide = long or tint == "by_instrument"
            settings = SurgXSettings(tasks=("instruments",), curves=0, sanity=0, occlusion=hide)
            run_surgxbench(out / tint, model, out=out / f"{model}-{tint}", settings=settings, gallery=0, progress=False)
        torch.set_num_threads(threads)

    runs = once("planted", make)
    return {(model, tint): load_surgxbench(runs / f"{model}-{tint}") for model, tint in _asked(long)}


@pytest.fixture(scope="module")
def worded(once: Once, looks: dict[tuple[str, str], SurgXScores], long: bool) -> SurgXScores:
    """A model that answers in words, on the tinted frames of the others; on 36 more operations at full count."""
    import torch

    def make(out: Path) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        frames = once("planted", Path.mkdir) / "by_instrument"
        if long:
            frames = out / "data"
            write_phantom(frames, seed=11, videos=108, seconds=60, fps_labels=1 / 15, split="test", processes=1)
        settings = SurgXSettings(tasks=("instruments",), curves=0, sanity=0, occlusion=False, causal=None)
        run_surgxbench(frames, WORDED, out=out / "run", settings=settings, gallery=0, progress=False)
        torch.set_num_threads(threads)

    assert looks
    return load_surgxbench(once("worded", make) / "run")


def _untrained(folder: Path) -> Path:
    """`phantom-clip` as it was before its training: the same towers, tokens and preparation, random weights."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    shutil.copytree(files("surgeval.models") / "embedded_weights" / "phantom-clip", folder)  # type: ignore[arg-type]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        CLIPModel(CLIPConfig.from_pretrained(folder)).save_pretrained(folder)
    return folder


@pytest.mark.usefixtures("looks")
def test_an_untrained_model_gets_no_support(once: Once, tmp_path: Path) -> None:
    """The verdict of a run, not of made-up numbers: it sees the frames of the two that are trained."""
    data = once("planted", Path.mkdir) / "by_instrument"
    settings = SurgXSettings(tasks=("instruments",), curves=0, sanity=0, occlusion=True)
    run_surgxbench(
        data, str(_untrained(tmp_path / "clip")), out=tmp_path / "run", settings=settings, gallery=0, progress=False
    )
    untrained = load_surgxbench(tmp_path / "run").verdict()
    assert untrained is not None and untrained.grade in ("inconclusive", "fails")


def _pair(looks: dict[tuple[str, str], SurgXScores], number: str) -> tuple[Interval, Interval]:
    return looks[CLIP, "by_instrument"].numbers[number], looks[SHORTCUT, "by_instrument"].numbers[number]


def test_both_are_right_equally_often_where_the_tint_betrays_the_instrument(
    looks: dict[tuple[str, str], SurgXScores],
) -> None:
    clip, shortcut = _pair(looks, "accuracy")
    assert abs(clip.estimate - shortcut.estimate) < 0.05
    assert min(clip.estimate, shortcut.estimate) > 0.8


def test_only_one_of_them_looks_at_instruments(looks: dict[tuple[str, str], SurgXScores]) -> None:
    clip, shortcut = _pair(looks, "tp_lift")
    assert clip.low > shortcut.high
    assert clip.low > 1.5


def test_hiding_the_instrument_costs_only_one_of_them_the_prediction(
    looks: dict[tuple[str, str], SurgXScores],
) -> None:
    clip, shortcut = _pair(looks, "lost_boxes_minus_moved")
    assert clip.low > shortcut.high
    assert shortcut.estimate < 0.15


def test_hiding_what_it_attends_costs_either_of_them_more_than_hiding_another_place(
    looks: dict[tuple[str, str], SurgXScores], long: bool
) -> None:
    """The maps are honest about both: this number says that a map is faithful, not that the reason is a good one."""
    clip, shortcut = _pair(looks, "lost_attended_minus_random")
    assert clip.low > 0
    assert shortcut.low > 0
    assert clip.estimate > shortcut.estimate
    if long:  # 270 frames are enough to put each outside the other's interval, 72 are not
        assert clip.low > shortcut.estimate and shortcut.high < clip.estimate


def test_the_shortcut_is_right_for_the_wrong_reason(looks: dict[tuple[str, str], SurgXScores]) -> None:
    clip, shortcut = (
        looks[model, "by_instrument"].tables["four_way"].tail(1).row(0, named=True) for model in (CLIP, SHORTCUT)
    )
    assert clip["class"] == shortcut["class"] == "all"
    assert shortcut["right_ungrounded_low"] > clip["right_ungrounded_high"]
    assert clip["right_grounded_low"] > shortcut["right_grounded_high"]


def test_the_shortcut_collapses_where_the_tint_means_nothing(looks: dict[tuple[str, str], SurgXScores]) -> None:
    betrayed, blind = (looks[SHORTCUT, tint].numbers["accuracy"] for tint in ("by_instrument", "random"))
    assert blind.high < betrayed.low
    assert blind.estimate < betrayed.estimate - 0.5


@pytest.mark.long
def test_the_honest_model_does_not_care_about_the_tint(looks: dict[tuple[str, str], SurgXScores]) -> None:
    betrayed, blind = (looks[CLIP, tint].numbers["accuracy"] for tint in ("by_instrument", "random"))
    assert abs(betrayed.estimate - blind.estimate) < 0.05


def test_a_paired_comparison_says_which_of_them_is_grounded(looks: dict[tuple[str, str], SurgXScores]) -> None:
    found = compare(looks[CLIP, "by_instrument"], looks[SHORTCUT, "by_instrument"])
    said = {one.key: one.difference for one in found.numbers}
    assert 0 in said["accuracy"].interval
    for key in ("tp_ac", "tp_lift", "grounded_when_right", "lost_boxes_minus_moved"):
        assert said[key].interval.low > 0 and said[key].p < 0.05, key


def test_the_run_says_which_model_and_which_data(looks: dict[tuple[str, str], SurgXScores]) -> None:
    identities = {look.record.model["identity"] for look in looks.values()}
    assert len(identities) == 2
    for (model, _), look in looks.items():
        assert look.record.model["name"] == model
        assert look.cases["cluster"].n_unique() >= 5


def test_the_verdict_believes_the_honest_model_and_not_the_shortcut(
    looks: dict[tuple[str, str], SurgXScores],
) -> None:
    clip, shortcut = (looks[model, "by_instrument"].verdict() for model in (CLIP, SHORTCUT))
    assert clip is not None and shortcut is not None
    assert clip.grade == "passes"
    assert shortcut.grade == "fails"
    held = {reason.rule.name: reason.holds for reason in shortcut.reasons}
    assert held["right"] is not False  # it is right, and that is not enough
    assert held["looks"] is False
    assert held["depends"] is not True


def test_a_model_that_answers_in_words_looks_at_the_instruments_it_names(worded: SurgXScores, long: bool) -> None:
    """Token Grad-CAM is a weaker witness than rollout, and still above chance: six videos tell no more than that."""
    lift = worded.numbers["tp_lift"]
    assert (lift.low if long else lift.estimate) > 1
    assert float(worded.detail_tables["classes"].row(-1, named=True)["f1"]) > 0.6
    (replies,) = worded.detail_tables["replies"].to_dicts()
    assert replies["unparsed"] == 0.0 and replies["cut_off"] == 0.0
