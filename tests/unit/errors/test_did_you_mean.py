"""A slip of the pen is met with the name that was probably meant; a name far from all others is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import surgeval
from surgeval.asking import open_answerer
from surgeval.datasets import convert, open_dataset
from surgeval.engine import load_record
from surgeval.errors import SurgevalError, did_you_mean
from surgeval.models import open_contrastive
from surgeval.qa import parse_judge
from surgeval.stats import rank_outcomes
from surgeval.vocab import load_labels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "phantom").mkdir()
    (tmp_path / "phantom" / "items.jsonl").write_text("")
    return tmp_path


def answerer(text: str) -> object:
    return open_answerer(text, lambda question, frames: (), lambda place: ())


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (lambda at: answerer("priorr"), "prior"),
        (lambda at: answerer("randm:3"), "random"),
        (lambda at: open_contrastive("phantom-klip"), "phantom-clip"),
        (lambda at: parse_judge("exakt"), "exact"),
        (lambda at: convert(open_dataset(at / "phantom", format="intent"), at / "out", "cocoo"), "coco"),
        (lambda at: open_dataset(at / "phantom", format="intnt"), "intent"),
        (lambda at: open_dataset(at / "phantm"), "phantom"),
        (lambda at: load_record(at / "phantm"), "phantom"),
        (lambda at: surgeval.rank([at / "phantm"]), "phantom"),
        (lambda at: load_labels("cholect-50"), "cholect50"),
        (lambda at: rank_outcomes({"prior": [1], "net": [0]}, ["b"], ["v"], baselines=["pror"]), "prior"),
        (lambda at: rank_outcomes({"prior": [1], "net": [0]}, ["b"], ["v"], test="exchnge"), "exchange"),  # type: ignore[arg-type]
    ],
)
def test_the_closest_name_is_suggested(folder: Path, asked: Callable[[Path], object], meant: str) -> None:
    with pytest.raises(SurgevalError) as refused:
        asked(folder)
    assert str(refused.value).endswith(f"; did you mean {meant!r}?")


@pytest.mark.parametrize("name", ["gpt", "", "x" * 1_000_000, "\0"])
def test_a_name_far_from_all_others_is_met_with_the_list_alone(folder: Path, name: str) -> None:
    assert did_you_mean(name, ["prior", "random"]) == ""
    opening: list[Callable[[], object]] = [
        lambda: answerer(name), lambda: parse_judge(name), lambda: open_dataset(folder / "a" / name)
    ]  # fmt: skip
    for asked in opening:
        with pytest.raises(SurgevalError) as refused:
            asked()
        assert "did you mean" not in str(refused.value)


def test_letters_of_another_case_are_no_other_name_and_control_characters_are_spelt_out() -> None:
    assert did_you_mean("PRIOR", ["random", "prior"]) == "; did you mean 'prior'?"
    assert did_you_mean("priorr", ["prior\x1b[2J"[:6]]) == "; did you mean 'prior\\x1b'?"
