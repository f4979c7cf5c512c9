"""A judge behind HTTP: a real server on loopback that answers slowly, wrongly, or not at all."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Reply, Server, refused, said, serving

from surgeval.errors import RunStopped
from surgeval.models.chat import ChatOptions, OpenAIChat, open_chat
from surgeval.models.chat.http import HttpError
from surgeval.qa import ChatError, ChatJudge, JudgeItem, Panel, VerdictCache, open_judges, summarise_verdicts

NUMBER = re.compile(r"\| question (\d+)\?")
OPTIONS = ChatOptions(timeout=60.0, backoff=0.01, max_wait=0.05, tries=4)


class Judged(Server):
    """A judge that finds everything right; a second request about a question has it in the first message still."""

    number = re.compile(r"\| question (\d+)\?")

    def __init__(self) -> None:
        super().__init__()
        self.script = lambda number, count: voted("CORRECT")

    def text(self, asked: dict[str, Any]) -> str:
        return str(asked["messages"][1]["content"])


def voted(content: object) -> Reply:
    return said(content, prompt_tokens=300, completion_tokens=2)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Judged()) as running:
        yield running


def item(number: int, candidate: str = "a clip") -> JudgeItem:
    return JudgeItem(f"q{number}", f"question {number}?", "clip", candidate)


def judge(server: Server, options: ChatOptions = OPTIONS) -> ChatJudge:
    return ChatJudge("http", OpenAIChat("tiny", server.url, options))


def test_a_judge_by_its_name_votes_and_tells_its_tokens(server: Server) -> None:
    (one,) = open_judges([f"openai:tiny@{server.url}"], open_chat)
    verdict = Panel([one]).judge(item(1))
    assert (verdict.state, verdict.calls) == ("correct", 1)
    assert (verdict.votes[0].prompt_tokens, verdict.votes[0].completion_tokens) == (300, 2)
    body = server.bodies[0]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0.0, 16)


DETERMINED = [
    (voted(""), "error", "the reply is empty", 2),
    (voted(None), "unparsed", "no text (content null)", 2),
    (voted("Not correct"), "unparsed", "“Not correct” is not one of", 2),
    (voted([{"type": "text"}]), "error", "content is not text", 4),
    ((200, '{"error": {"message": "overloaded"}}', {}), "error", "instead of a reply (overloaded)", 4),
    ((200, '{"error": "overloaded"}', {}), "error", "instead of a reply (overloaded)", 4),
    ((200, '{"choices": []}', {}), "error", "a reply without choices", 4),
    ((200, '{"choices": [{}]}', {}), "error", "a choice without a message", 4),
    ((200, '{"choices": [7]}', {}), "error", "a choice without a message", 4),
    ((200, "[]", {}), "error", "not a JSON object", 3),
    ((200, '{"choices": [{"message": {"con', {}), "error", "a body that is not JSON", 4),
    (
        (200, "<html>gateway</html>", {"Content-Type": "text/html"}),
        "error",
        "a body that is not JSON (<html>",
        3,
    ),  # no server of a model
    (refused(500), "error", "HTTP 500 (sorry)", 4),
    (refused(503, {"Retry-After": "not a time"}), "error", "HTTP 503 (sorry)", 4),
    (refused(429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), "error", "HTTP 429 (sorry)", 4),
    ((502, "<html>bad gateway</html>", {}), "error", "HTTP 502 (<html>bad gateway</html>)", 3),
    ((503, "starting", {"Retry-After": "0"}), "error", "HTTP 503 (starting)", 4),
    ((200, '{"detail": "Not Found"}', {}), "error", "a reply without choices", 3),
    (refused(401), "error", "HTTP 401 (sorry)", 1),
    (refused(404), "error", "HTTP 404 (sorry)", 1),
    (refused(400), "error", "HTTP 400 (sorry)", 1),
    (None, "error", "no connection", 4),
]


@pytest.mark.parametrize(("answer", "state", "reason", "requests"), DETERMINED)
def test_a_server_that_always_fails_gives_a_state_a_reason_and_a_bounded_number_of_requests(
    server: Server, answer: Reply | None, state: str, reason: str, requests: int
) -> None:
    server.script = lambda number, count: answer
    vote = judge(server).vote(item(1))
    assert (vote.state, vote.requests) == (state, requests) and reason in vote.reason
    assert server.asked[1] == requests
    assert Panel([judge(server)]).judge(item(2)).state == "judge_error"  # never silently wrong


@pytest.mark.parametrize("answer", [row[0] for row in DETERMINED if row[3] > 1])
def test_whatever_passes_once_is_overcome(server: Server, answer: Reply | None) -> None:
    server.script = lambda number, count: answer if count == 1 else voted("INCORRECT")
    vote = judge(server).vote(item(1))
    assert (vote.state, vote.requests) == ("incorrect", 2)


def test_a_server_whose_first_replies_are_web_pages_is_given_up_at_once(server: Server) -> None:
    server.script = lambda number, count: (200, "<!DOCTYPE html>", {"Content-Type": "text/html"})
    panel = Panel([judge(server)])
    verdicts = panel.judge_all([item(n) for n in range(40)], concurrency=1)
    assert sum(server.asked.values()) == 3
    assert {verdict.state for verdict in verdicts} == {"judge_error"}
    assert f"tiny at {server.url}: a body that is not JSON (<!DOCTYPE html>)" in verdicts[5].reason


@pytest.mark.parametrize("answer", [(503, "<html>Bad Gateway</html>", {}), (200, '{"status": "ok"}', {})])
def test_a_gateway_without_a_model_behind_it_is_asked_three_times_in_all(server: Server, answer: Reply) -> None:
    server.script = lambda number, count: answer
    verdicts = Panel([judge(server)]).judge_all([item(n) for n in range(12)], concurrency=1)
    assert sum(server.asked.values()) == 3
    assert {verdict.state for verdict in verdicts} == {"judge_error"}


@pytest.mark.parametrize("status", [200, 503])
def test_a_server_that_once_replied_is_asked_again_after_web_pages(server: Server, status: int) -> None:
    page: tuple[int, str, dict[str, str]] = (status, "<html>gateway</html>", {})
    server.script = lambda number, count: page if number and count < 4 else voted("CORRECT")
    one = judge(server)
    assert [one.vote(item(number)).requests for number in (0, 1, 2)] == [1, 4, 4]


def test_a_server_that_wants_an_hour_stops_the_judging_and_a_later_call_resumes_it(
    server: Server, tmp_path: Path
) -> None:
    busy = [True]
    server.script = lambda number, count: (
        refused(429, {"Retry-After": "3600"}) if busy[0] and number > 2 else voted("CORRECT")
    )
    items = [item(number) for number in range(1, 6)]
    with VerdictCache(tmp_path) as cache:
        with pytest.raises(RunStopped, match=r"HTTP 429 \(sorry\); the server asks to wait 60 minutes"):
            Panel([judge(server)], cache=cache).judge_all(items, concurrency=1)
        assert server.asked == {1: 1, 2: 1, 3: 1}
        busy[0] = False
        verdicts = Panel([judge(server)], cache=cache).judge_all(items, concurrency=1)
    assert {verdict.state for verdict in verdicts} == {"correct"}
    assert server.asked == {1: 1, 2: 1, 3: 2, 4: 1, 5: 1}


def test_a_slow_server_is_given_up_on_time_and_tried_again(server: Server) -> None:
    released = threading.Event()

    def slow(number: int, count: int) -> Reply:
        if count == 1:
            released.wait(20)
        return voted("CORRECT")

    server.script = slow
    vote = judge(server, ChatOptions(timeout=0.3, backoff=0.01, tries=2)).vote(item(1))
    released.set()
    assert (vote.state, vote.requests) == ("correct", 2)


def test_a_dead_server_is_an_error_that_names_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    vote = ChatJudge("http", OpenAIChat("tiny", url, OPTIONS)).vote(item(1))
    assert vote.state == "error" and f"tiny at {url}: no connection" in vote.reason
    assert vote.requests == 1  # nobody was ever there: waiting would only delay the word


def test_a_server_that_was_there_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise HttpError("no connection (refused)", refused=True)

    server.script = lambda number, count: voted("CORRECT")
    met = judge(server)
    assert met.vote(item(1)).state == "correct"
    monkeypatch.setattr("surgeval.models.chat.client.post", gone)
    assert met.vote(item(2)).requests == 4
    assert judge(server).vote(item(3)).requests == 1


def test_waits_follow_the_server_and_never_exceed_the_limit(server: Server) -> None:
    waits: list[float] = []
    server.script = lambda number, count: refused(429, {"Retry-After": ["7", "300", "nan"][count - 1]})
    chat = OpenAIChat("tiny", server.url, ChatOptions(tries=3, backoff=1.0, max_wait=60), sleep=waits.append)
    with pytest.raises(ChatError, match="3 tries"):
        chat.complete([{"role": "system", "content": ""}, {"role": "user", "content": "| question 1?"}])
    assert waits == [7.0, 60.0]


def test_a_server_that_wants_other_parameters_gets_them(server: Server) -> None:
    def picky(number: int, count: int) -> Reply:
        body = server.bodies[-1]
        for name in ("max_tokens", "temperature"):
            if name in body:
                return refused(400, param=name, code="unsupported_parameter")
        return voted("CORRECT")

    server.script = picky
    one = judge(server)
    assert (one.vote(item(1)).requests, one.vote(item(2)).requests) == (3, 1)
    assert server.bodies[-1]["max_completion_tokens"] == 16


def test_the_key_for_one_provider_is_not_sent_to_another_server(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    monkeypatch.delenv("SURGEVAL_API_KEY", raising=False)
    judge(server).vote(item(1))
    monkeypatch.setenv("SURGEVAL_API_KEY", "ours")
    judge(server).vote(item(2))
    assert server.keys == ["Bearer none", "Bearer ours"]


def test_a_reply_cut_off_while_thinking_says_so(server: Server) -> None:
    choice = {"message": {"content": "<think>let me"}, "finish_reason": "length"}
    server.script = lambda number, count: (200, json.dumps({"choices": [choice]}), {})
    assert "cut off at the token limit" in judge(server).vote(item(1)).reason


def flaky(number: int, count: int) -> Reply | None:
    """Every third question stumbles in one of eight ways before the truth: even numbers are correct."""
    truth = voted("CORRECT" if number % 2 == 0 else "INCORRECT")
    if number % 3 or count > 1 + number % 2:
        return truth
    ways: tuple[Reply | None, ...] = (
        refused(500), refused(429, {"Retry-After": "0.01"}), (200, '{"choi', {}), None, voted("nonsense"),
        (200, '{"choices": []}', {}), (200, '{"error": "busy"}', {}), voted(None),
    )  # fmt: skip
    if number % 8 == 5:
        time.sleep(0.05)
    return ways[(number // 3) % 8]


def test_five_hundred_questions_to_a_flaky_server_end_with_the_right_verdicts(server: Server, tmp_path: Path) -> None:
    server.script = flaky
    told: list[str] = []
    with VerdictCache(tmp_path) as cache:
        panel = Panel([judge(server)], cache=cache)
        verdicts = panel.judge_all(
            [item(n) for n in range(500)], concurrency=8, on_verdict=lambda v: told.append(v.qid)
        )
        wrong = [v for n, v in enumerate(verdicts) if v.correct is not None and v.correct != (n % 2 == 0)]
        # An odd number whose way is a reply (nonsense, null) uses up its one reminder: no verdict, never a wrong one.
        lost = {n for n, v in enumerate(verdicts) if v.correct is None}
        assert not wrong and lost == {n for n in range(500) if n % 6 == 3 and (n // 3) % 8 in (4, 7)}
        assert [v.qid for v in verdicts] == [f"q{n}" for n in range(500)] and sorted(told) == sorted(
            v.qid for v in verdicts
        )
        assert max(server.asked.values()) <= 3
        before = sum(server.asked.values())
        again = panel.judge_all([item(n) for n in range(500)], concurrency=8)
        assert all(v.correct == (n % 2 == 0) for n, v in enumerate(again))  # asked again, they now have one
        assert sum(server.asked.values()) - before == len(lost)
    report = summarise_verdicts(again)
    assert report.judges[0].cached == 500 - len(lost) and report.failure_share == 0.0


RUN = """
import sys
from surgeval.errors import RunStopped
from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.qa import ChatJudge, JudgeItem, Panel, VerdictCache
url, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
items = [JudgeItem(f"q{n}", f"question {n}?", "clip", "a clip") for n in range(count)]
chat = OpenAIChat("tiny", url, ChatOptions(backoff=0.01))
with VerdictCache(path) as cache:
    verdicts = Panel([ChatJudge("http", chat)], cache=cache).judge_all(items, concurrency=4)
print(sum(v.correct is True for v in verdicts), sum(v.correct is False for v in verdicts))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_after_a_kill_no_stored_verdict_is_asked_again(server: Server, tmp_path: Path) -> None:
    path, count = tmp_path, 500
    half = threading.Event()

    def steady(number: int, asked: int) -> Reply:
        if sum(server.asked.values()) >= count // 2:
            half.set()
        return voted("CORRECT" if number % 2 == 0 else "INCORRECT")

    server.script = steady
    command = [sys.executable, "-c", RUN, server.url, str(path), str(count)]
    first = subprocess.Popen(command)
    try:
        assert half.wait(120)
        os.kill(first.pid, signal.SIGKILL)
    finally:
        first.kill()
        first.wait()
    with VerdictCache(path) as cache:
        stored = len(cache)
    asked = sum(server.asked.values())
    assert 0 < stored < count and asked - stored <= 4  # what was in flight
    second = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert second.stdout.split() == ["250", "250"]
    assert sum(server.asked.values()) - asked == count - stored
    assert sum(times > 1 for times in server.asked.values()) <= 4


def test_a_name_that_is_no_model_is_refused() -> None:
    with pytest.raises(Exception, match="Write openai:MODEL@URL or hf:PATH"):
        open_chat("table:x.json")
