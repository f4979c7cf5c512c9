"""A generator that errs in every way still leaves a usable set, and a list of what was refused and why."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.unit.questions.conftest import Loopback, words_of
from tests.unit.questions.sound import MAMMOGRAM, OPERATION, SKILLS, XRAY, draw_frame, questions, reply

from surgeval.datasets import open_dataset
from surgeval.errors import DataError
from surgeval.models.chat import ChatOptions, open_chat
from surgeval.questions import (
    GenerationResult,
    GenerationSettings,
    SourceRecord,
    generate_questions,
    inspect_set,
    open_set,
    open_template,
    templates,
)

PHASE = re.compile(r"Phase: phase (\d+)")


def records(count: int) -> list[SourceRecord]:
    return [replace(OPERATION, id=f"op{n}", cluster=f"op{n // 2}", phase=f"phase {n}") for n in range(count)]


def made(
    server: Loopback, out: Path, some: list[SourceRecord], making: GenerationSettings | None = None, **more: Any
) -> GenerationResult:
    draw_frame(out)
    chat = open_chat(server.model, ChatOptions(max_tokens=4000, tries=1))
    return generate_questions(some, out, chat, out, making, **more)


def refusals(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "refused.jsonl").read_text().splitlines()]


def spoilt(number: int, repairs: int) -> str:
    """What the model of these tests says: each record's first reply is spoilt in its own way."""
    fine = questions("open_surgery", number)
    if number == 0 or repairs > 1:
        return json.dumps({"questions": fine})
    if number == 1:
        return '{"questions": [{"skill": "relative", "question": "I was cut'
    if number == 2:  # six wrong dimensions, until told
        return json.dumps({"questions": [{**q, "skill": f"Dimension {k}"} for k, q in enumerate(fine)]})
    if number == 3:  # leaked coordinates in every question, mended in the second reply but for one
        bad = range(6) if repairs == 0 else range(1)
        return json.dumps(
            {"questions": [{**q, "question": f"{q['question']} I look at x=0.62"} if k in bad else q
                           for k, q in enumerate(fine)]}
        )  # fmt: skip
    if number == 4:  # duplicate options in one question
        fine[2]["options"][1] = fine[2]["options"][0]
        return json.dumps({"questions": fine})
    return "I am sorry, I cannot help with that."


def test_bad_json_wrong_dimensions_leaks_and_duplicates_end_in_a_usable_set(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: spoilt(
        int(PHASE.findall(words)[0]), repairs if "phase 5" not in words else 0
    )
    result = made(server, tmp_path, records(6))
    assert Counter(item.id.split(".")[0] for item in result.items) == {f"op{n}": 6 for n in range(5)}
    assert {item.skill for item in result.items} == set(SKILLS)
    dataset = open_dataset(tmp_path)  # the set is what `run intent` reads
    assert len(list(dataset.questions())) == 30
    assert inspect_set(open_set(tmp_path), options=5).faults == ()
    told = refusals(tmp_path)
    by_record = {name: [row for row in told if row["record"] == name] for name in (f"op{n}" for n in range(6))}
    assert by_record["op0"] == []
    checks = {name: {fault["check"] for row in rows for fault in row["faults"]} for name, rows in by_record.items()}
    assert checks["op1"] == {"readable-reply"}
    assert checks["op2"] == {"known-skill"}
    assert checks["op3"] == {"no-coordinates", "six-skills"}
    assert checks["op4"] == {"options-distinct", "six-skills"}
    assert all(row["mended"] for name in ("op1", "op2", "op3", "op4") for row in by_record[name])
    assert [row["attempt"] for row in by_record["op5"]] == [1, 2, 3]
    assert not any(row["mended"] for row in by_record["op5"])
    assert by_record["op5"][0]["raw"] == "I am sorry, I cannot help with that."
    assert by_record["op1"][0]["raw"].startswith('{"questions": [{"skill"')


def test_the_generator_is_shown_what_was_wrong(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: spoilt(int(PHASE.findall(words)[0]), repairs)
    made(server, tmp_path, records(5)[4:])
    first, second = server.bodies[0]["messages"], server.bodies[1]["messages"]
    assert len(first) == 1
    assert second[:1] == first
    assert second[1]["role"] == "assistant"
    assert "question 3 (prospective): options-distinct: options A and B are the same" in words_of(second[2])


def test_a_second_run_asks_nothing_and_writes_the_same_files(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: spoilt(int(PHASE.findall(words)[0]), repairs)
    first = made(server, tmp_path, records(6))
    asked = len(server.bodies)
    files = {name: (tmp_path / name).read_text() for name in ("items.jsonl", "refused.jsonl")}
    second = made(server, tmp_path, records(6))
    assert len(server.bodies) == asked == first.spent.requests
    assert second.spent.requests == 0
    assert second.stored == asked
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_a_server_that_dies_costs_only_what_it_did_not_answer(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: spoilt(0, 0) if "phase 0" in words else None
    first = made(server, tmp_path, records(9), concurrency=1)
    assert len(first.items) == 6
    assert len(first.failed) == 8
    assert len(server.bodies) == 6  # the reply, five failures, then nobody asks any more
    assert "failed 5 times in a row" in first.failed[-1]
    server.script = lambda words, repairs: reply("open_surgery", int(PHASE.findall(words)[0]))
    second = made(server, tmp_path, records(9), concurrency=1)
    assert len(second.items) == 54
    assert second.failed == ()
    assert len(server.bodies) == 6 + 8


def test_an_incomplete_batch_is_kept_only_when_asked_for(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: json.dumps({"questions": questions("open_surgery")[:5]})
    assert made(server, tmp_path, records(1)).items == ()
    assert [row["mended"] for row in refusals(tmp_path)] == [False] * 3
    asked = len(server.bodies)
    kept = made(server, tmp_path, records(1), GenerationSettings(keep_partial=True))
    assert len(kept.items) == 5
    assert len(server.bodies) == asked


def test_sound_questions_of_several_replies_make_one_batch(server: Loopback, tmp_path: Path) -> None:
    every = questions("open_surgery")
    server.script = lambda words, repairs: json.dumps({"questions": every[:4] if repairs == 0 else every[3:]})
    result = made(server, tmp_path, records(1))
    assert sorted(item.skill for item in result.items) == sorted(one["skill"] for one in every)
    assert len(server.bodies) == 2


def test_right_options_stand_in_every_position_though_the_generator_loves_a(server: Loopback, tmp_path: Path) -> None:
    def always_a(words: str, repairs: int) -> str:
        rows = questions("open_surgery", int(PHASE.findall(words)[0]))
        return json.dumps({"questions": [{**row, "answer": "A", "habit": "B"} for row in rows]})

    server.script = always_a
    result = made(server, tmp_path, records(20))
    counts = Counter(item.answer for item in result.items)
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert min(counts.values()) >= 20
    assert {item.options[item.answer] for item in result.items} == {"deep place a"}
    again = made(server, tmp_path, records(21))
    assert again.items[:120] == result.items  # one more record moves no answer of the others


def test_pictures_are_shown_and_travel_with_the_set(server: Loopback, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "set"
    (source / "clip").mkdir(parents=True)
    for n in range(12):
        Image.fromarray(np.full((40, 60, 3), 20 * n, np.uint8)).save(source / "clip" / f"{n}.png")
    record = replace(OPERATION, media=tuple(f"clip/{n}.png" for n in range(12)))
    server.script = lambda words, repairs: reply("open_surgery")
    chat = open_chat(server.model, ChatOptions(max_tokens=4000, tries=1))
    generate_questions([record], source, chat, out, GenerationSettings(frames=4))
    parts = server.bodies[0]["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url"] * 4 + ["text"]
    item = open_set(out).items[0]
    assert item.media[0] == "media/clip/0.png"
    assert (out / item.media[11]).is_file()
    assert open_set(out).record_of(item) is not None


def test_nothing_that_gives_the_answer_away_travels_into_an_item(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: reply("chest_xray")
    result = made(server, tmp_path, [replace(XRAY, site="left costophrenic angle")])
    assert len(result.items) == 6
    text = (tmp_path / "items.jsonl").read_text()
    assert "costophrenic" not in text
    assert '"diagnosis": "small pleural effusion"' in text
    telling = replace(XRAY, scene=replace(XRAY.scene, facts={"diagnosis": "small left pleural effusion"}))
    items = made(server, tmp_path / "telling", [telling]).items
    assert "diagnosis: small left" in words_of(server.bodies[-1]["messages"][0]).casefold()  # the generator may know
    assert "diagnosis" not in items[0].context


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (replace(XRAY, scene=replace(XRAY.scene, facts={})), "no diagnosis"),
        (replace(OPERATION, gaze=()), "no gaze"),
        (replace(OPERATION, scenario="juggling"), "no template fits the scenario 'juggling'"),
        (replace(OPERATION, media=("nowhere.png",)), "no such file"),
        (replace(MAMMOGRAM, scene=replace(MAMMOGRAM.scene, facts={**MAMMOGRAM.scene.facts, "birads": "1"})),
         "birads is '1'; it must be a category from 2 to 5"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_used_is_listed_and_costs_nothing(
    server: Loopback, tmp_path: Path, record: SourceRecord, why: str
) -> None:
    server.script = lambda words, repairs: reply("open_surgery")
    result = made(server, tmp_path, [record])
    assert server.bodies == []
    assert result.items == ()
    assert [row["faults"][0]["check"] for row in refusals(tmp_path)] == ["usable-record"]
    assert why in refusals(tmp_path)[0]["faults"][0]["reason"]


def test_traps_are_made_by_naming_their_templates(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: reply("perceptual_trap" if "usually is there" in words else "cognitive_trap")
    result = made(server, tmp_path, [OPERATION], use=[templates()["perceptual_trap"], templates()["cognitive_trap"]])
    assert Counter(item.trap for item in result.items) == {"perceptual": 6, "cognitive": 6}
    visible = [item.labels[item.answer].label for item in result.items]
    assert visible == ["visible"] * 6 + ["rejects"] * 6
    assert inspect_set(open_set(tmp_path)).faults == ()


def test_the_server_is_held_to_the_schema_of_the_template(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: reply("open_surgery")
    made(server, tmp_path, records(1))
    form = server.bodies[0]["response_format"]
    assert form["type"] == "json_schema"
    entry = form["json_schema"]["schema"]["properties"]["questions"]
    assert (entry["minItems"], entry["maxItems"]) == (6, 6)
    assert set(entry["items"]["required"]) >= {"skill", "options", "answer", "gaze_dependent", "source", "habit"}


def own_template(folder: Path, name: str = "dentistry") -> Path:
    text = templates()["chest_xray"].text
    changed = text.replace('name = "chest_xray"', f'name = "{name}"').replace("chest X-ray", "panoramic X-ray")
    (folder / "mine.toml").write_text(changed)
    return folder / "mine.toml"


def test_a_template_of_ones_own_is_used_and_kept_with_the_set(server: Loopback, tmp_path: Path) -> None:
    server.script = lambda words, repairs: reply("chest_xray")
    mine = open_template(str(own_template(tmp_path)))
    made(server, tmp_path / "set", [replace(XRAY, scenario="dental")], use=[mine])
    assert "panoramic X-ray" in words_of(server.bodies[0]["messages"][0])
    opened = open_set(tmp_path / "set")
    assert opened.templates["dentistry"] == mine
    leaking = replace(opened.items[0], question="Where on the left do I look?")
    faults = inspect_set(replace(opened, items=(leaking, *opened.items[1:]))).faults
    assert [fault.check for fault in faults] == ["site-hidden"]  # its own rules are applied


@pytest.mark.parametrize("name", ["open_surgery", "../evil", "Mine", ""])
def test_a_template_of_ones_own_needs_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"name: .* is taken, or has other characters"):
        open_template(str(own_template(tmp_path, name)))
