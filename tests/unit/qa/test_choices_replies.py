"""Model-style replies and what a person reads in them (`tests/data/choice_replies.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surgeval.qa import read_choice

TABLE = json.loads((Path(__file__).parents[2] / "data" / "choice_replies.json").read_text(encoding="utf-8"))


def test_the_table_is_long_and_holds_every_reading() -> None:
    assert len(TABLE["replies"]) >= 150
    assert {"empty", "refused", "ambiguous", "out_of_range", "unreadable"} < {row[2] for row in TABLE["replies"]}


@pytest.mark.parametrize(("options", "reply", "reading"), TABLE["replies"])
def test_a_reply_reads_as_a_person_reads_it(options: str, reply: str, reading: str) -> None:
    choice = read_choice(reply, TABLE["options"][options])
    if reading[-1].isupper():
        index = ord(reading[-1]) - ord("A")
        assert (choice.index, choice.reading) == (index, "ok")
        assert choice.strict == (index if reading.startswith("=") else None)
    else:
        assert (choice.index, choice.reading, choice.strict) == (None, reading, None)
