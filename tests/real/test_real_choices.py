"""500 real replies of two language models to health questions of up to ten options, with their authors' own parse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surgeval.qa import option_letters, read_choice

pytestmark = pytest.mark.real

# Where the authors' parse is wrong, by model and question id, with what the reply says.
THEIRS_IS_WRONG = {
    ("Mistral", 6064): "names three options, (B), (C), and (G); theirs keeps the first, ours says ambiguous",
}
# Where they found nothing and the reply makes a choice.
OURS_FINDS = {("Mistral", 6045): "F", ("Mistral", 6231): "H", ("Mistral", 6232): "H", ("Mistral", 6245): "B"}


@pytest.fixture(scope="module")
def replies(real_data: Path) -> list[dict[str, Any]]:
    return [
        {"model": "Mistral" if "Mistral" in path.name else "Llama", **row}
        for path in sorted((real_data / "mcq-answers").glob("*.json"))
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]


def _read(row: dict[str, Any]) -> str | None:
    index = read_choice(row["generated_text"], row["options"]).index
    return None if index is None else option_letters(len(row["options"]))[index]


def test_where_the_authors_find_a_choice_ours_is_the_same_unless_theirs_is_wrong(replies: list[dict[str, Any]]) -> None:
    assert len(replies) == 500
    parsed = [row for row in replies if row["pred"] is not None]
    assert len(parsed) == 489
    different = {(row["model"], row["question_id"]) for row in parsed if _read(row) != row["pred"]}
    assert different == set(THEIRS_IS_WRONG)


def test_replies_they_could_not_parse_are_read_where_they_choose(replies: list[dict[str, Any]]) -> None:
    read = {(row["model"], row["question_id"]): _read(row) for row in replies if row["pred"] is None}
    assert {key: letter for key, letter in read.items() if letter} == OURS_FINDS


def test_a_reply_of_three_choices_is_ambiguous(replies: list[dict[str, Any]]) -> None:
    row = next(row for row in replies if (row["model"], row["question_id"]) == ("Mistral", 6064))
    assert read_choice(row["generated_text"], row["options"]).reading == "ambiguous"
