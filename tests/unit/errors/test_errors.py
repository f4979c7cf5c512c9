from __future__ import annotations

import pickle

from surgeval.errors import DataError


def test_a_data_error_survives_the_way_out_of_a_worker_process() -> None:
    error = DataError("a.json", record="frame 3", field="box", found="NaN", expected="four finite numbers")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert (again.file, again.record, again.field) == ("a.json", "frame 3", "box")


def test_a_megabyte_where_a_word_was_expected_leaves_a_sentence() -> None:
    sentence = str(DataError("a.csv", record="q" * 10**6, found="9" * 10**6, expected="true or false"))
    assert len(sentence) < 800
    assert "(1000000 characters), expected true or false" in sentence
