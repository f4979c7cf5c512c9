"""The page on making questions, followed to the letter with a model on loopback that writes what it is asked for."""

from __future__ import annotations

import doctest
import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from tests.e2e.test_documented_paths import SERVER, follow
from tests.unit.questions.conftest import Loopback
from tests.unit.questions.sound import SKILLS

from surgeval.datasets import read_intent_items
from surgeval.questions import check_claims, open_set, read_source_records

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick

PAGE = Path(__file__).parents[2] / "docs" / "question-making.md"
MODEL = "openai:m@http://localhost:1/v1"


def written(prompt: str, repairs: int) -> str:
    """A careful writer: six sound questions about the scene that the prompt describes; to a probe it says A."""
    if "1. Who I am" not in prompt:
        return "Answer: A"
    told = dict(re.findall(r"^(Procedure|Phase|Site|Seen in the pictures): (.*)$", prompt, re.MULTILINE))
    trap = "perceptual" if "usually is there" in prompt else "cognitive" if "whatever I claim" in prompt else ""
    return json.dumps({"questions": [_question(told, trap, skill) for skill in SKILLS]})


def _question(told: dict[str, str], trap: str, skill: str) -> dict[str, Any]:
    scene = f"During {told['Procedure']}, {told['Phase']}, at the {told['Site']}"
    seen = told.get("Seen in the pictures", "hook").split(", ")[0]
    texts = [
        "a wooden spoon, held ready",
        "a garden hose, held ready",
        "a paper fan, held ready",
        "a table lamp, held ready",
    ]
    if trap == "perceptual":
        texts.insert(2, f"the {seen}, held ready")
    elif trap == "cognitive":
        texts = [f"Ask the juggler for {thing}" for thing in texts]
        texts.insert(2, "There is no juggler, go on")
    else:
        texts.insert(2, "my own hand, held ready")
    labels = {"perceptual": ("visible", "absent"), "cognitive": ("rejects", "accepts")}.get(trap)
    options: list[dict[str, str]] = [{"text": text, "reason": "it may well be so"} for text in texts]
    for k, option in enumerate(options if labels else ()):
        option["label"] = (labels or ("", ""))[k != 2]
    premise = "a juggler stands by: what do I do" if trap == "cognitive" else "what do I see"
    question: dict[str, Any] = {
        "skill": skill, "question": f"{scene}, {premise} in the area I am looking at, as to {skill}?",
        "options": options,
        "answer": "C", "gaze_dependent": True, "observable": True, "habit": "A",
        "source": {"kind": "guideline", "name": "Society guideline", "year": 2024},
    }  # fmt: skip
    return question


@pytest.fixture
def address() -> Iterator[str]:
    with Loopback() as running:
        running.script = written
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running.model.partition("@")[2]
        running.shutdown()
        thread.join()


def test_the_page_can_be_followed(
    quick: Quick, small_phantom: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    shutil.copytree(small_phantom, tmp_path / "phantom")
    (tmp_path / "xrays").mkdir()
    Image.fromarray(np.zeros((100, 200, 3), np.uint8)).save(tmp_path / "xrays" / "x1.png")
    keys = itertools.cycle(["c", ""])  # correct, no comment
    monkeypatch.setattr("builtins.input", lambda *_: next(keys))
    page = PAGE.read_text(encoding="utf-8")
    assert SERVER in page
    if not long:  # a run with its page: seconds, and tests of its own
        page = "\n".join(line for line in page.splitlines() if not line.startswith("$ surgeval run intent"))
    assert follow(page.replace(SERVER, address), tmp_path, quick) >= 10
    made, exported = open_set(tmp_path / "set"), list(read_intent_items(tmp_path / "benchmark" / "items.jsonl"))
    scenes = list(read_source_records(tmp_path / "scenes" / "records.jsonl"))
    assert len(exported) == len(made.items) == 18 * len(scenes) > 0
    assert {len(item.options) for item in exported} == {4}
    assert all(len(item.review["verdicts"]) == 2 for item in exported if item.review)  # type: ignore[arg-type]
    (xray,) = read_source_records(tmp_path / "xray-scenes" / "records.jsonl")
    assert xray.scene.locations == ("left base",)
    (tmp_path / "mine" / "frame.png").touch()
    assert [record.id for record in read_source_records(tmp_path / "mine" / "records.jsonl")] == ["op1-3", "x1", "m1"]


def test_the_page_names_every_check_with_its_claim() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, claim in check_claims().items():
        assert f"| `{name}` | {claim[0].lower()}{claim[1:].rstrip('.')} |" in page


def test_the_examples_of_the_page_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("make", "none.jsonl", "--model", MODEL, "--out", "set"), "no such file"),
        (("make", "r.jsonl", "--model", "nobody", "--out", "set"), "Unknown model 'nobody'"),
        (("make", "r.jsonl", "--model", MODEL, "--out", "set", "--template", "x"), "template 'x'"),
        (("make", "keyhole.jsonl", "--model", MODEL, "--out", "set"), "no template for the scenario 'laparoscopy'"),
        (("make", "r.jsonl", "--model", MODEL, "--out", "set", "--price", "1"), "--price '1'"),
        (("make", "r.jsonl", "--model", MODEL, "--out", "."), "found the folder of the records"),
        (("check", "nowhere"), "it has no items.jsonl"),
        (("review", "items.jsonl", "--as", " "), "a name has letters"),
        (("export", "items.jsonl", "--out", "."), "found the set itself"),
        (("records", "phases.csv", "--out", "scenes"), "expected --videos"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_sentence(
    quick: Quick, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    record = {"id": "a", "scenario": "open_surgery", "cluster": "v", "media": []}
    (tmp_path / "r.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "keyhole.jsonl").write_text(json.dumps({**record, "scenario": "laparoscopy"}) + "\n")
    (tmp_path / "phases.csv").write_text("video,start,end,phase\n")
    item = {"id": "q", "scenario": "s", "cluster": "c", "media": [], "dimension": "spatial", "skill": "absolute",
            "question": "Where do I look?", "options": ["a", "b"], "answer": 0, "trap": None}  # fmt: skip
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
    code, _, errors = quick("questions", *arguments)
    assert code == 2
    assert why in errors
    assert len(errors.strip().splitlines()) == 1


def test_a_reviewer_at_the_terminal_corrects_skips_and_stops(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = {"id": "q0", "scenario": "s", "cluster": "c", "media": [], "dimension": "spatial", "skill": "absolute",
            "question": "Where do I look\u001b[2J?", "options": ["a", "b", "c"], "answer": 0, "trap": None}  # fmt: skip
    rows = [{**item, "id": f"q{n}", "media": ["first frame.png"] if n == 0 else []} for n in range(4)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = iter(["x", "w", "A", "w", "c", "the third is right", "s", "u", "", "", "c"])  # A is the item's own answer
    monkeypatch.setattr("builtins.input", lambda *_: next(keys))
    code, said, _ = quick("questions", "review", "items.jsonl", "--as", "Ada")
    assert code == 0
    assert "3 judged by Ada, 1 left" in said
    assert "\x1b[2J" not in said
    assert (tmp_path / "first frame.png").as_uri() in "".join(said.split("\n"))  # a terminal opens it by a click
    assert "pictures are links" in said
    lines = [json.loads(line) for line in (tmp_path / "reviews" / "Ada.jsonl").read_text().splitlines()]
    assert [(line["verdict"], line["answer"], line["comment"]) for line in lines] == [
        ("wrong", 2, "the third is right"),
        ("unclear", None, ""),
        ("correct", None, ""),
    ]
    monkeypatch.setattr("builtins.input", lambda *_: (_ for _ in ()).throw(EOFError))
    assert "3 judged by Ada, 1 left" in quick("questions", "review", "items.jsonl", "--as", "Ada")[1]


def test_templates_are_listed_and_printed(quick: Quick, tmp_path: Path) -> None:
    code, said, _ = quick("questions", "template")
    assert code == 0
    assert said.count("adapted") == 6
    assert "ours" in said
    _, text, _ = quick("questions", "template", "mammography")
    (tmp_path / "mine.toml").write_text(text.replace('name = "mammography"', 'name = "mine"'))
    assert quick("questions", "template", "mine.toml")[1].strip() == (tmp_path / "mine.toml").read_text().strip()


def test_check_ends_with_1_and_names_what_failed_in_a_plain_file(quick: Quick, tmp_path: Path) -> None:
    item = {"id": "q", "scenario": "s", "cluster": "c", "media": [], "dimension": "spatial", "skill": "absolute",
            "question": "Where is x=0.5?", "options": ["a", "b"], "answer": 0, "trap": None}  # fmt: skip
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
    code, said, _ = quick("questions", "check", "items.jsonl", "--json")
    assert code == 1
    told = json.loads(said)
    assert [fault["check"] for fault in told["faults"]] == ["first-person", "no-coordinates"]
    assert any("no probe was made" in text for text in told["unchecked"])
    (tmp_path / "items.jsonl").write_text(json.dumps({**item, "options": ["the longest", "b"]}) + "\n")
    shown = quick("questions", "check", "items.jsonl")[1]
    share = r"\d+\.\d %"
    assert re.search(rf"the right option is the longest of {share} \[\d+\.\d, \d+\.\d\], by chance {share}\n", shown)


def test_a_killed_run_asks_again_only_what_was_in_flight(quick: Quick, tmp_path: Path) -> None:
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / "frame.png")
    gaze = [{"t": 0, "x": 0.5, "y": 0.5, "duration": 1}]
    rows = [
        {"id": f"op{n}", "scenario": "open_surgery", "cluster": f"op{n}", "media": ["frame.png"], "gaze": gaze,
         "procedure": f"procedure {n}", "phase": "closure", "site": "abdomen"} for n in range(12)
    ]  # fmt: skip
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Loopback() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        half = threading.Event()

        def slow(prompt: str, repairs: int) -> str:
            if len(server.bodies) > 6:
                half.set()
                time.sleep(1)  # the process is killed while it waits for this one
            return written(prompt, repairs)

        server.script = slow
        command = [sys.executable, "-m", "surgeval", "questions", "make", str(tmp_path / "records.jsonl"),
                   "--model", server.model, "--out", str(tmp_path / "set"), "--concurrency", "1"]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            assert half.wait(60)
            running.kill()
        server.script = written
        code, said, _ = quick(*command[3:], "--json")
        server.shutdown()
        thread.join()
    told = json.loads(said)
    assert code == 0
    assert told["items"] == 72
    assert told["from_store"] == 6
    asked = Counter(re.findall(r"Procedure: procedure (\d+)", json.dumps(server.bodies)))
    assert sorted(asked.values()) == [1] * 11 + [2]  # the one in flight
