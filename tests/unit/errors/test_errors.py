from __future__ import annotations

import pickle

import pytest

from surgeval.errors import BadInput, DataError, MissingExtra, NotRankable, SurgevalError
from surgeval.studio.store import Conflict

ERRORS = [
    BadInput("segments: too few frames", code="too-short", parts={"frames": 60}),
    MissingExtra("explain", "torch"),
    DataError("a.json", "found NaN, expected four numbers", record="frame 3", field="box", code="not-finite"),
    NotRankable("run.json", "found disqualified, expected a ranked submission"),
    Conflict("instance i7", "amy", "instances.delete", 41, "look again"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: SurgevalError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_megabyte_where_a_word_was_expected_leaves_a_sentence() -> None:
    sentence = str(DataError("a.csv", f"found {'9' * 10**6}, expected true or false", record="q" * 10**6))
    assert len(sentence) < 1300
    assert sentence.endswith(", expected true or false (1000030 characters)")
