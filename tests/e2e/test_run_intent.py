"""Clinical-intent items asked over real HTTP: one's own file with pictures, conditions, resume, foreign replies."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from tests.loopback import Reply, Server, refused, said, serving, text_of

from surgeval.datasets import SKILLS
from surgeval.errors import BadInput
from surgeval.protocols.intent import IntentRun, load_intent, run_intent, score_intent

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick

OPTIONS = ("the grasper", "the hook", "the clip applier", "none of them: nothing is held")


def write_items(folder: Path, count: int = 20) -> Path:
    """One's own items: a picture each, every third a trap with its twin, gaze on half of them."""
    folder.mkdir(exist_ok=True)
    skills = [(dimension, skill) for dimension, pair in SKILLS.items() for skill in pair]
    rows = []
    for n in range(count):
        colour = np.full((120, 200, 3), (90 + n, 60, 50), np.uint8)
        Image.fromarray(colour).save(folder / f"frame{n}.png")
        dimension, skill = skills[n % 6]
        row: dict[str, Any] = {
            "id": f"own-{n}", "scenario": "open_surgery", "cluster": f"case {n % 5}", "media": [f"frame{n}.png"],
            "dimension": dimension, "skill": skill, "question": f"question {n}?", "options": list(OPTIONS),
            "answer": 1 if n % 3 == 1 else n % 4, "context": {"procedure": "cholecystectomy"},
        }  # fmt: skip
        if n % 2 == 0:
            row["gaze"] = [{"t": 0, "x": 0.25, "y": 0.5, "duration": 1}]
        if n % 3 == 0 and n + 1 < count:
            row |= {"trap": "cognitive", "twin": f"own-{n + 1}", "answer": 3}
        rows.append(row)
    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Model(Server):
    """Answers by the letter that `choose(stem number, options as shown, pictures)` gives, or with what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.choose: Callable[[int, list[str], list[Image.Image], str], Any] = lambda n, options, pictures, text: "A"

    def answer(self, asked: dict[str, Any]) -> Reply | None:
        text = text_of(asked)
        with self.lock:
            self.bodies.append(asked)
        number = int((re.findall(r"question (\d+)\?", text) or ["-1"])[0])
        options = re.findall(r"^[A-H]\. (.*)$", text, re.MULTILINE)
        reply = self.choose(number, options, pictures_of(asked), text)
        return reply if reply is None or isinstance(reply, tuple) else said(str(reply))


def pictures_of(asked: dict[str, Any]) -> list[Image.Image]:
    content = asked["messages"][-1]["content"]
    parts = content if isinstance(content, list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB") for url in urls]


def circled(picture: Image.Image) -> bool:
    pixels = np.asarray(picture).astype(int)
    return bool(((pixels[..., 0] - pixels[..., 1] > 120) & (pixels[..., 2] > 180)).any())


def letter(options: list[str], text: str) -> str:
    return "ABCDEFGH"[options.index(text)]


@pytest.fixture
def model() -> Iterator[Model]:
    with serving(Model()) as running:
        assert isinstance(running, Model)
        yield running


def test_own_items_with_pictures_and_no_other_file(quick: Quick, model: Model, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine")
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in items.parent.iterdir()}
    model.choose = lambda n, options, pictures, text: (
        f"I think it is clear. **Answer: {letter(options, OPTIONS[n % 4] if pictures else OPTIONS[0])}**"
    )
    code, out, err = quick("run", "intent", "--data", items, "--model", model.model, "--out", "run")
    assert code == 0, err
    assert "50 questions (20 plain, 10 gaze, 20 text-only), and those of 7 traps that are failed again" in err
    assert (tmp_path / "run" / "report.html").is_file()
    assert "open run/report.html" in out
    cases = load_intent("run").answers
    asked = Counter(cases["condition"])
    failed = 7 - sum(n % 4 == 3 for n in range(0, 19, 3))
    assert asked == {"plain": 20, "gaze": 10, "text-only": 20, "again": failed}
    assert len(model.bodies) == 50 + failed
    plain = cases.filter(pl.col("condition") == "plain")
    assert dict(plain.select("item", "choice").iter_rows()) == {f"own-{n}": n % 4 for n in range(20)}
    assert plain["strict"].null_count() == 20
    assert plain["reading"].unique().to_list() == ["ok"]
    assert cases.filter(pl.col("condition") == "text-only")["choice"].unique().to_list() == [0]
    # what was shown: one picture of its size, the circle only where gaze was the condition
    shown = {row["id"]: json.loads(row["shown"]) for row in cases.iter_rows(named=True)}
    assert shown["own-0@text-only"] == []
    assert [(one["width"], one["height"], one["time"]) for one in shown["own-0@plain"]] == [(200, 120, None)]
    assert shown["own-0@plain"][0]["sha256"] != shown["own-0@gaze"][0]["sha256"]
    for body in model.bodies:
        pointed = "Focus on the circled area, where I am looking." in text_of(body)
        assert any(map(circled, pictures_of(body))) == pointed
        assert body["max_tokens"] == 1024
        assert body["temperature"] == 0
        assert "cholecystectomy" in body["messages"][0]["content"]
        assert '"answer"' not in json.dumps(body)
    sent = {hashlib.sha256(base64.b64decode(part["image_url"]["url"].partition(",")[2])).hexdigest()
            for body in model.bodies if isinstance(body["messages"][1]["content"], list)
            for part in body["messages"][1]["content"] if part["type"] == "image_url"}  # fmt: skip
    assert sent == {one["sha256"] for frames in shown.values() for one in frames}
    after = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in items.parent.iterdir()}
    assert after == before


def test_every_order_and_the_wrong_gaze(model: Model, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine", 6)
    model.choose = lambda n, options, pictures, text: letter(options, OPTIONS[n % 4])
    run = run_intent(
        items.parent, model.model, tmp_path / "run", interventions=["order", "wrong-gaze"], gaze="both", progress=False
    )
    cases = run.answers
    assert run.counts == {"ok": 6 + 2 * 3 + 3 * 4}  # gaze of three items; two are twins, which are not rotated
    for item, rows in cases.group_by("item"):
        assert rows["choice"].unique().to_list() == [int(str(item[0]).split("-")[1]) % 4]
    rotated = [body for body in model.bodies if "A. the hook" in text_of(body)]
    assert rotated
    # The gaze at (0.25, 0.5) of 200 × 120 is mirrored to (0.75, 0.5).
    wrong = [body for body in model.bodies if "75, 50" in text_of(body)]
    assert len(wrong) == 3
    for body in wrong:
        row = np.asarray(pictures_of(body)[0]).astype(int)[60]
        assert row[150, 1] + 15 < row[50, 1]


def test_a_run_that_failed_in_part_asks_only_the_rest(quick: Quick, model: Model, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine", 8)
    down = True

    def choose(n: int, options: list[str], pictures: list[Image.Image], text: str) -> Any:
        return refused(400) if down and n in (2, 5) else "B"

    model.choose = choose

    def run(retry: bool = False) -> IntentRun:
        return run_intent(items, model.model, tmp_path / "run", interventions=["again"], retry=retry, progress=False)

    first = run()
    assert (first.unasked, first.summary.exit_code) == (2, 1)
    assert load_intent(tmp_path / "run").failed == 2
    asked = len(model.bodies)
    assert run().unasked == 2
    assert len(model.bodies) == asked  # nothing stored is asked again, nor what failed
    down = False
    assert run(retry=True).unasked == 0
    again = [re.findall(r"question (\d+)\?", text_of(body))[0] for body in model.bodies[asked:]]
    assert sorted(again) == ["2", "5"]
    assert load_intent(tmp_path / "run").failed == 0
    other = ("run", "intent", "--data", items, "--model", model.model, "--out", "run", "--interventions", "none")
    code, _, err = quick(*other)
    assert code == 2
    assert "holds a run with other settings (config.interventions" in err


def test_invalid_and_failed_replies_are_told_apart(quick: Quick, model: Model, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine", 6)
    replies = {0: "", 1: "I cannot tell.", 2: "A or C", 3: "14", 4: refused(400), 5: "Answer: B"}
    model.choose = lambda n, options, pictures, text: replies[n]
    command = ("run", "intent", "--data", items, "--model", model.model, "--interventions", "none")
    code, out, err = quick(*command, "--out", "run", "--json")
    assert code == 1, err
    assert json.loads(out)["counts"] == {"model_error": 1, "ok": 5}
    cases = load_intent("run").answers.sort("item")
    assert cases["reading"].to_list() == ["empty", "refused", "ambiguous", "out_of_range", "", "ok"]
    assert cases["status"].to_list() == ["ok"] * 4 + ["model_error", "ok"]
    assert cases["choice"].to_list() == [None] * 5 + [1]


def test_a_second_model_may_read_what_could_not_be_read(model: Model, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine", 3)
    model.choose = lambda n, options, pictures, text: (
        "C" if "Reply with its letter alone" in text else "A or C, who knows" if n == 1 else "B"
    )
    out = tmp_path / "run"
    run = run_intent(items, model.model, out, interventions=(), reader=model.model, progress=False)
    cases = run.answers.sort("item")
    assert cases["reading"].to_list() == ["ok", "read_by_model", "ok"]
    assert cases["choice"].to_list() == [1, 2, 1]
    assert cases["strict"].to_list() == [1, None, 1]


def test_replies_from_elsewhere_are_scored_like_a_run(quick: Quick, tmp_path: Path) -> None:
    items = write_items(tmp_path / "mine", 6)
    rows: list[dict[str, Any]] = [{"id": f"own-{n}", "content": f"Answer: {'ABCD'[n % 4]}"} for n in range(5)]
    rows += [{"id": "own-1", "condition": "rotated-1", "content": "A", "latency": 0.5}]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = quick("score", "intent", "--data", items, "--responses", replies, "--out", "scored")
    assert code == 1, err  # one item has no reply
    assert "warning: 1 of 6 items have no reply and count as wrong." in out
    cases = load_intent("scored").answers
    assert cases.filter(pl.col("id") == "own-1@rotated-1")["choice"].to_list() == [1]
    assert cases.filter(pl.col("id") == "own-5@plain")["status"].to_list() == ["missing"]
    code, out, _ = quick("score", "intent", "--data", items, "--responses", replies, "--out", "scored", "--json")
    printed = json.loads(out)
    assert (code, printed["missing"], printed["failed"]) == (1, 1, 0)
    assert printed["verdict"] == load_intent("scored").verdict().to_json()  # type: ignore[union-attr]
    again = run_intent(items, f"replay:{replies}", tmp_path / "replayed", progress=False)
    columns = ["id", "status", "choice", "strict", "content", "latency"]
    assert again.answers.with_columns(pl.col("content").fill_null("")).select(columns).equals(cases.select(columns))
    alone = score_intent(rows, items, name="me")
    assert alone.answers.select(columns).equals(cases.select(columns))
    saved = load_intent(alone.save(tmp_path / "saved"))
    assert saved.answers.equals(alone.answers) and (saved.name, saved.items) == ("me", alone.items)
    assert saved.numbers == alone.numbers and saved.missing == alone.missing == 1
    assert load_intent(alone.save(tmp_path / "scored")).name == "me"  # scores may be written anew
    with pytest.raises(BadInput, match="holds a run that asked a model"):
        alone.save(run_intent(items, "oracle", tmp_path / "asked", progress=False).folder)


def test_reference_rows_on_phantom_items(small_phantom: Path, tmp_path: Path) -> None:
    numbers = {}
    for name in ("oracle", "always-reject", "always-accept", "prior", "random"):
        run = run_intent(small_phantom, name, tmp_path / name, progress=False)
        assert set(run.counts) == {"ok"}
        numbers[name] = {key: interval.estimate for key, interval in load_intent(tmp_path / name).numbers.items()}
    assert set(numbers["oracle"].values()) <= {1.0, 0.0}
    assert numbers["oracle"]["overall"] == numbers["oracle"]["paired"] == 1
    assert (numbers["always-reject"]["cognitive"], numbers["always-reject"]["paired"]) == (1, 0)
    assert (numbers["always-accept"]["cognitive"], numbers["always-accept"]["over_rejection"]) == (0, 0)
    pictures = load_intent(tmp_path / "always-accept").pictures
    failed = load_intent(tmp_path / "always-accept").answers.filter(pl.col("condition") == "again")["item"]
    assert failed.len() > 0
    assert set(failed) <= set(pictures)
    assert circled(Image.open(io.BytesIO(pictures[failed[0]])).convert("RGB"))


def test_a_wrong_gaze_on_the_phantom_is_on_another_instrument(
    small_phantom: Path, model: Model, tmp_path: Path
) -> None:
    model.answer = lambda asked: said("Answer: A")  # type: ignore[method-assign]
    run = run_intent(small_phantom, model.model, tmp_path / "run", interventions=["wrong-gaze"], limit=12,
                     progress=False)  # fmt: skip
    assert run.subset.startswith("12 of ") or run.subset.startswith("11 of ")
    assert load_intent(tmp_path / "run").subset == run.subset
    wrong = run.answers.filter(pl.col("condition") == "wrong-gaze")
    assert wrong.height > 6
    assert wrong["distractor"].drop_nulls().len() > 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"media": ["../../secret.png"]}, "items.jsonl: line 1, item own-0: media: found '../../secret.png'"),
        ({"media": ["gone.png"]}, "gone.png: item own-0: media: found no such file"),
        ({"answer": 10**400}, "answer: found"),
        ({"gaze": [{"t": 10**400, "x": 0, "y": 0, "duration": 1}]}, "gaze[0] t: found"),
        ({"options": [["a"], {"b": {}}]}, "options: found ['a'], expected text"),
        ({"id": "own-1"}, "found 'own-1', expected each question once"),
        ({"twin": "own-77"}, "twin: found 'own-77', expected the id of another item of this file"),
        ({"question": None}, "question: found nothing, expected text"),
    ],
)
def test_a_hostile_item_is_one_sentence(quick: Quick, tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    items = write_items(tmp_path / "mine", 2)
    first, second = items.read_text().splitlines()
    items.write_text(f"{json.dumps(json.loads(first) | change)}\n{second}\n")
    code, out, err = quick("run", "intent", "--data", items, "--model", "oracle", "--out", "run")
    assert (code, out) == (2, "")
    assert expected in err
    assert len(err.strip().splitlines()[-1]) < 400
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"id": "own-0"}', "line 1: content: found nothing, expected text"),
        ('{"id": "own-0", "content": "A", "condition": "blind"}', "condition: found 'blind', expected plain,"),
        ('{"id": "own-0", "content": "A"}\n{"id": "own-0", "content": "B"}', "line 2: id: found 'own-0' a second time"),
        ('{"id": "own-0", "content": "A", "latency": -1}', "latency: found -1, expected seconds"),
        ("[[[", "line 1: found"),
        (
            '{"id": "own-0", "content": "A"}\n{"id": "own-9", "content": "A"}',
            "line 2: id: found 'own-9', expected the id",
        ),
        ('{"id": "own-0", "content": "A", "condition": "gaze"}', "condition: found no reply under plain"),
    ],
)
def test_odd_responses_are_one_sentence(quick: Quick, tmp_path: Path, line: str, expected: str) -> None:
    items = write_items(tmp_path / "mine", 2)
    (tmp_path / "replies.jsonl").write_text(line)
    code, _, err = quick("score", "intent", "--data", items, "--responses", "replies.jsonl", "--out", "run")
    assert code == 2
    assert expected in err


def test_a_phantom_is_the_same_by_its_folder_and_by_its_items(small_phantom: Path, tmp_path: Path) -> None:
    whole, file = (
        run_intent(data, "prior", tmp_path / name, interventions=(), progress=False)
        for name, data in (("a", small_phantom), ("b", small_phantom / "questions" / "intent" / "items.jsonl"))
    )
    assert whole.answers.equals(file.answers)
