"""Real answers of language models to medical questions: none of them is an attack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surgeval.qa import screen


@pytest.mark.real
def test_no_real_answer_of_a_language_model_is_flagged(real_data: Path) -> None:
    files = sorted((real_data / "mcq-answers").glob("*.json"))
    if not files:
        pytest.skip("no mcq-answers in the real data")
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    texts = {text for row in rows for text in (row["generated_text"], *row["options"]) if isinstance(text, str)}
    flagged = {text: screen(text).reason for text in texts if screen(text).flagged}
    assert len(texts) > 500 and not flagged
