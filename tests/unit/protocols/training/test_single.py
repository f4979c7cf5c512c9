"""Which videos one training sees: the test videos of its fold or source never."""

from __future__ import annotations

from typing import Any

import pytest

from surgeval.errors import BadInput
from surgeval.protocols.training.single import choose_videos
from surgeval.records import Video
from surgeval.vocab import folds

PROSTATD = [
    Video(name) for fold in ("fold1", "fold2", "fold3", "fold4", "fold5") for name in folds("prostatd")[fold].test
]
FOUR = [Video("A1", "A", "train"), Video("A2", "A", "val"), Video("B1", "B", "train"), Video("B2", "B", "test")]


def test_a_fold_is_named_by_its_number_and_hides_its_test_videos() -> None:
    chosen = choose_videos(PROSTATD, scheme="prostatd-noval", fold="1")
    assert sorted(chosen.test) == ["esadv1", "psiv1", "psiv4", "pwhv8"]
    assert chosen.val == ()
    assert not set(chosen.train) & set(chosen.test)
    assert len(chosen.train) + len(chosen.test) == len(PROSTATD)
    assert choose_videos(PROSTATD, scheme="prostatd", fold="fold1").val


def test_videos_for_validation_are_taken_out_of_those_to_learn_from() -> None:
    assert choose_videos(FOUR, split=False, validation=["B1"]).train == ("A1", "A2", "B2")
    assert choose_videos(FOUR, split=True, validation=["B1"]).train == ("A1", "A2")


def test_videos_for_validation_do_not_lay_the_test_videos_of_the_split_open() -> None:
    chosen = choose_videos(FOUR, validation=["B1"])
    assert (chosen.train, chosen.test) == (("A1", "A2"), ("B2",))
    with pytest.raises(BadInput, match="validation: found B2, which is held out for the test"):
        choose_videos(FOUR, validation=["B2"])


def test_without_a_split_everything_is_learnt_from() -> None:
    assert choose_videos([Video("x"), Video("y")]).train == ("x", "y")
    assert choose_videos(FOUR, split=False).train == ("A1", "A2", "B1", "B2")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"source": "B", "validation": ["B1"]}, "validation: found B1, which is held out for the test"),
        ({"source": "C"}, "fold 'C': expected one of A, B"),
        ({"source": "A", "split": True}, "found a fold, a source or a split together"),
        ({"fold": "1"}, "fold 1: found no published folds for these labels"),
        ({"fold": "1"}, "prostatd, prostatd-noval, or a JSON file of folds"),
        ({"validation": ["A1", "A2", "B1"]}, "split: found no video to learn from"),
        ({"split": False, "validation": ["A1", "A2", "B1", "B2"]}, "all: found no video to learn from"),
        ({"validation": ["Z"]}, "validation: found no video 'Z'"),
    ],
)
def test_what_leaves_nothing_to_learn_or_to_test_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        choose_videos(FOUR, **options)
    assert sentence in str(refused.value)
