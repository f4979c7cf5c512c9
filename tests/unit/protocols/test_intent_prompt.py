"""What a chat model is asked about an item, and what it is not told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from surgeval.protocols.intent.asking.conditions import posed
from surgeval.protocols.intent.asking.gaze import SENTENCES, GazePoint
from surgeval.protocols.intent.asking.look import GazePicture
from surgeval.protocols.intent.asking.prompt import item_messages
from surgeval.qa import choice_prompt
from surgeval.records import IntentQuestion, OptionLabel

ITEM = IntentQuestion(
    "i1", "laparoscopy", "VID07", ("a.jpg", "b.jpg"), "temporal", "prospective", "What do I do next?",
    ("cut", "clip", "nothing"), 2, 3.0, 4.0, context={"phase": "dissection", "site": "Calot's triangle"},
    trap="cognitive",
    labels=(OptionLabel("accepts"), OptionLabel("accepts"), OptionLabel("rejects", "no clip is seen")),
    source="WHO 2024", review={"verdict": "correct"},
)  # fmt: skip
SEEN = (GazePicture(3.0, b"one", 75, 448, 256), GazePicture(4.0, b"two", 100, 448, 256, GazePoint(0.5, 0.25)))


def text_of(message: Any) -> str:
    content = message["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


def test_pictures_come_first_and_in_order_and_the_text_last() -> None:
    _, user = item_messages(posed(ITEM, "gaze"), SEEN)
    parts: Any = user["content"]
    assert [part["type"] for part in parts] == ["image_url", "image_url", "text"]
    assert [part["image_url"]["url"] for part in parts[:2]] == [
        "data:image/jpeg;base64,b25l", "data:image/jpeg;base64,dHdv",
    ]  # fmt: skip
    assert text_of(user) == f"{SENTENCES['mark']}\n{choice_prompt(ITEM.question, ITEM.options)}"


def test_gaze_is_spoken_of_only_where_it_is_shown() -> None:
    plain = tuple(replace(picture, spot=None) for picture in SEEN)
    assert text_of(item_messages(posed(ITEM), plain)[1]) == choice_prompt(ITEM.question, ITEM.options)
    assert text_of(item_messages(posed(ITEM, "text-only"))[1]) == choice_prompt(ITEM.question, ITEM.options)
    assert "picture 2: 50, 25" in text_of(item_messages(posed(ITEM, "gaze"), SEEN, gaze="text")[1])


def test_the_system_message_says_what_is_known_and_when_the_frames_are() -> None:
    system, _ = item_messages(posed(ITEM), SEEN)
    assert "Scenario: laparoscopy; phase: dissection; site: Calot's triangle." in str(system["content"])
    assert "2 frames of a video, in order, at 00:00:03, 00:00:04." in str(system["content"])
    untimed = tuple(replace(picture, time=None) for picture in SEEN)
    assert "2 pictures, in order." in str(item_messages(posed(ITEM), untimed)[0]["content"])
    assert "One picture." in str(item_messages(posed(ITEM), untimed[:1])[0]["content"])
    assert "No picture is given" in str(item_messages(posed(ITEM, "text-only"))[0]["content"])


@pytest.mark.parametrize("condition", ["plain", "gaze", "text-only", "rotated-1"])
def test_nothing_gives_the_answer_or_the_trap_away(condition: str) -> None:
    told = json.dumps(item_messages(posed(ITEM, condition), () if condition == "text-only" else SEEN)).lower()
    for secret in ("cognitive", "trap", "rejects", "no clip is seen", "who 2024", "verdict", "vid07", "prospective"):
        assert secret not in told


def test_context_of_any_size_and_shape_stays_one_short_line() -> None:
    context = {f"key {n}": "line\n" * 10_000 for n in range(1000)} | {"nested": {"a": [1]}, "none": None}
    system, _ = item_messages(posed(replace(ITEM, context=context)))
    lines = str(system["content"]).splitlines()
    assert len(lines) == 3
    assert len(lines[1]) < 20_000


def test_the_embedded_models_were_taught_these_very_words() -> None:
    pytest.importorskip("torch")
    from studies.embedded_models.llava_lessons import POINTING
    from studies.embedded_models.prompts import IMAGE, format_dialogue

    _, user = item_messages(posed(ITEM, "gaze"), SEEN)
    parts: Any = user["content"]
    asked = format_dialogue([IMAGE if part["type"] == "image_url" else part["text"] for part in parts])
    assert asked == format_dialogue((IMAGE, IMAGE, f"{POINTING}\n{choice_prompt(ITEM.question, ITEM.options)}"))
