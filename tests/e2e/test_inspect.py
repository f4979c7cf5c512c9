"""Inspect AI asks what `surgeval run` asks, byte for byte, and its logs are scored as a run of ours is.

One mind sits behind both: a server on loopback for `surgeval run`, a mock model for Inspect. Its reply hangs on every
byte of the prompt and of the pictures, so that a difference in either is a difference in the scores.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tests.loopback import Reply, Server, said, serving

from surgeval.asking import read_eval_log
from surgeval.engine import load_cases
from surgeval.errors import DataError
from surgeval.protocols.focus import load_focus, run_focus, score_focus
from surgeval.protocols.intent import load_intent, run_intent, score_intent
from surgeval.qa import Panel, open_judges

if TYPE_CHECKING:
    from tests.e2e.conftest import Quick

inspect_ai = pytest.importorskip("inspect_ai", reason="the extra is not installed: pip install 'surgeval[inspect]'")
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402


def reply_to(roles: list[tuple[str, str]], pictures: list[str]) -> str:
    """What the mind says: a choice where there are options, else some answer of one of the forms."""
    digest = hashlib.sha256(repr((roles, pictures)).encode()).digest()
    options = re.findall(r"^([A-H])\. ", roles[-1][1], re.MULTILINE)
    if options:
        chosen = options[digest[0] % len(options)]
        return (f"Answer: {chosen}", f"<think>A or B?</think> It is {chosen}.", "I cannot tell.")[digest[1] % 5 % 3]
    return ("yes", "no", "1", "none", "<think>hm</think>00:00:03", "a clip")[digest[0] % 6]


def _read(content: Any) -> tuple[str, list[str]]:
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    return text, [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


class Mind(Server):
    def answer(self, asked: dict[str, Any]) -> Reply | None:
        read = [(message["role"], *_read(message["content"])) for message in asked["messages"]]
        roles = [(role, text) for role, text, _ in read]
        return said(reply_to(roles, [url for *_, urls in read for url in urls]))


@pytest.fixture
def mind() -> Iterator[Server]:
    with serving(Mind()) as running:
        yield running


def mock(asked: Any, *_: object) -> Any:
    """The same mind as a mock model; stating its usage it counts no tokens, which would fetch a table."""
    roles, pictures = [], []
    for message in asked:
        parts = message.content if isinstance(message.content, list) else []
        pictures += [part.image for part in parts if part.type == "image"]
        roles.append((message.role, message.text))
    made = ModelOutput.from_content("mock", reply_to(roles, pictures))
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made


def inspected(*arguments: Any, **settings: Any) -> Any:
    """`inspect_ai.eval` in a thread of its own: a browser test of the same process leaves an event loop behind."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(inspect_ai.eval, *arguments, **settings).result()


def evaluate(task: str, out: Path, outputs: Any = mock, **arguments: object) -> tuple[Path, Any]:
    """Run a task by its name, as `inspect eval` does; the log's file and the log."""
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    (log,) = inspected(task, model=model, task_args=arguments, log_dir=str(out), display="none")
    return Path(log.location.removeprefix("file://")), log


def metrics(log: Any) -> dict[str, float]:
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


def shown_in(log: Any) -> dict[str, list[dict[str, Any]]]:
    return {sample.id: sample.metadata["shown"] for sample in log.samples}


def test_intent_gets_the_same_prompts_pictures_and_scores_as_a_run(
    quick: Quick, mind: Server, small_phantom: Path, tmp_path: Path
) -> None:
    asked: Any = {"interventions": ("gaze", "text-only"), "limit": 24, "frames": 3, "pictures": 0}
    run_intent(small_phantom, mind.model, tmp_path / "run", **asked, progress=False)
    file, log = evaluate(
        "surgeval/intent", tmp_path, data=str(small_phantom), limit=24, frames=3, conditions="plain,gaze,text-only"
    )
    assert log.status == "success"
    code, out, _ = quick("score", "intent", "--data", small_phantom, "--responses", file, "--out", "scored")
    assert code == 0
    assert "a subset: 24 of" in out
    assert "no picture" not in out
    ours, theirs = load_intent(tmp_path / "run"), load_intent(tmp_path / "scored")
    columns = ["item", "condition", "content", "choice", "strict", "reading"]
    assert ours.answers.select(columns).equals(theirs.answers.select(columns))
    assert set(ours.answers["condition"]) == {"plain", "gaze", "text-only"}
    assert 0 < theirs.unreadable < 0.5  # some of the replies have no choice in them
    assert str(ours.numbers) == str(theirs.numbers)  # as text: an interval over one video is NaN, and not itself
    assert str(ours.gains) == str(theirs.gains)
    assert metrics(log) == pytest.approx({name: number.estimate for name, number in ours.numbers.items()})
    shown = {
        name: json.loads(text) for name, text in load_cases(tmp_path / "run").collect().select("id", "shown").rows()
    }
    assert shown == shown_in(log)
    assert any(len(pictures) == 3 for pictures in shown.values())


def test_focus_gets_the_same_prompts_pictures_and_scores_as_a_run(
    quick: Quick, mind: Server, small_phantom: Path, tmp_path: Path
) -> None:
    judge = Panel(open_judges(["exact"]))
    run = run_focus(small_phantom, mind.model, tmp_path / "run", frames=2, limit=18, progress=False)
    ours = score_focus(*run.sources, judge=judge)
    file, log = evaluate("surgeval/focus", tmp_path, data=str(small_phantom), frames=2, limit=18, judge="exact")
    assert log.status == "success"
    command = ("score", "focus", "--data", small_phantom, "--responses", file, "--judge", "exact", "--out", "scored")
    code, out, _ = quick(*command)
    assert code == 0
    assert "the log asked 18 of" in out
    theirs = load_focus(tmp_path / "scored")
    assert ours.said is not None and theirs.said is not None
    assert ours.said.equals(theirs.said)
    unhurried = pl.exclude("latency")
    assert ours.results.select(unhurried).equals(theirs.results.select(unhurried))
    assert ours.flat is not None and ours.video_mean is not None and ours.pre_evaluation is not None
    assert (ours.flat, ours.video_mean, ours.pre_evaluation) == (theirs.flat, theirs.video_mean, theirs.pre_evaluation)
    assert 0 < ours.flat.estimate < 1
    assert list(metrics(log).values()) == pytest.approx(
        [ours.flat.estimate, ours.video_mean.estimate, ours.pre_evaluation.estimate]
    )
    shown = {
        name: json.loads(text) for name, text in load_cases(tmp_path / "run").collect().select("id", "shown").rows()
    }
    assert shown == shown_in(log)
    # The log stands for a model too, and for the responses to files of the challenge.
    replayed = run_focus(small_phantom, f"replay:{file}", tmp_path / "replayed", limit=18, progress=False)
    assert score_focus(*replayed.sources, judge=judge).flat == ours.flat
    assert score_focus(file, *run.sources[1:], judge=judge).flat == ours.flat


def broken_model(asked: Any, *_: object) -> Any:
    made = mock(asked)
    if "clip" in asked[-1].text:
        raise ConnectionError("the server is gone")
    return made


def test_a_sample_without_an_answer_is_never_a_wrong_one(quick: Quick, small_phantom: Path, tmp_path: Path) -> None:
    file, log = evaluate("surgeval/focus", tmp_path, broken_model, data=str(small_phantom), limit=18, text_only=True)
    failed = [sample.id for sample in log.samples if sample.error]
    assert 0 < len(failed) < 18
    assert not any(shown_in(log).values())
    assert set(read_eval_log(file).failed) == set(failed)
    code, _, err = quick("score", "focus", "--data", small_phantom, "--responses", file, "--out", "scored")
    assert code == 2
    assert f"found {len(failed)} samples without an answer" in err
    assert "inspect eval-retry" in err
    assert not (tmp_path / "scored").exists()


def test_a_log_with_failed_samples_is_no_set_of_wrong_answers(small_phantom: Path, tmp_path: Path) -> None:
    file, log = evaluate(
        "surgeval/intent", tmp_path, broken_model, data=str(small_phantom), limit=16, conditions="plain", frames=1
    )
    failed = [sample.id for sample in log.samples if sample.error]
    assert 0 < len(failed) < 16
    with pytest.raises(DataError, match=f"found {len(failed)} samples without an answer"):
        score_intent(file, small_phantom)


def test_a_part_of_the_items_under_inspects_own_limit_and_two_epochs(small_phantom: Path, tmp_path: Path) -> None:
    model = get_model("mockllm/model", custom_outputs=mock, memoize=False)
    settings = {"model": model, "log_dir": str(tmp_path), "display": "none"}
    arguments = {"data": str(small_phantom), "conditions": "plain", "frames": 1}
    (part,) = inspected("surgeval/intent", task_args=arguments, limit=16, **settings)
    scores = score_intent(part.location.removeprefix("file://"), small_phantom)
    assert scores.answers.height == 16
    assert scores.failed == 0
    (twice,) = inspected("surgeval/intent", task_args=arguments, limit=2, epochs=2, **settings)
    with pytest.raises(Exception, match="it was asked again in epoch 2"):
        read_eval_log(twice.location.removeprefix("file://"))


@pytest.mark.parametrize(
    ("task", "arguments", "sentence"),
    [
        ("focus", {}, "data: found none, expected a dataset"),
        ("intent", {"data": "nowhere"}, "nowhere"),
        ("intent", {"data": ".", "conditions": "plain,again"}, "conditions: found again"),
        ("focus", {"data": ".", "limit": 0}, "limit: found 0, expected at least 1"),
        ("focus", {"data": ".", "track": "lap"}, "track: found 'lap'"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    task: str, arguments: dict[str, object], sentence: str, small_phantom: Path, tmp_path: Path
) -> None:
    from inspect_ai._util.error import PrerequisiteError

    given = {**arguments, "data": str(small_phantom)} if arguments.get("data") == "." else arguments
    with pytest.raises(PrerequisiteError, match=re.escape(sentence)):
        evaluate(f"surgeval/{task}", tmp_path, **given)
