"""Stored verdicts: found again, shared between threads and processes, never a failure."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from surgeval.errors import DataError, RunError, RunStopped
from surgeval.qa import ChatError, ChatJudge, JudgeItem, Message, Panel, Reply, VerdictCache, Vote


class Scripted:
    """A chat model that gives these replies in order, then the last one for ever."""

    def __init__(self, *replies: str | ChatError | None, identity: str = "scripted") -> None:
        self.replies, self.identity, self.asked = list(replies), identity, 0
        self.last: Sequence[Message] = ()

    def complete(self, messages: Sequence[Message]) -> Reply:
        self.asked += 1
        self.last = messages
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, ChatError):
            raise reply
        return Reply(reply, 100, 1)


def item(qid: str = "q1", candidate: str = "a clip") -> JudgeItem:
    return JudgeItem(qid, "Which object?", "clip", candidate)


def test_a_stored_verdict_is_not_asked_again_in_a_later_run(tmp_path: Path) -> None:
    chat = Scripted("CORRECT")
    for expected in (1, 0):
        with VerdictCache(tmp_path / "new") as cache:
            verdict = Panel([ChatJudge("judge", chat)], cache=cache).judge(item())
            assert (verdict.state, verdict.calls) == ("correct", expected)
    assert chat.asked == 1 and verdict.votes[0].cached and verdict.votes[0].prompt_tokens == 100


def test_the_same_content_under_another_id_is_the_same_question(tmp_path: Path) -> None:
    chat = Scripted("CORRECT")
    with VerdictCache(tmp_path) as cache:
        panel = Panel([ChatJudge("judge", chat)], cache=cache)
        assert panel.judge(item("q1")).calls == 1 and panel.judge(item("q2")).calls == 0
        assert panel.judge(item("q1", "a mesh")).calls == 1


def test_another_model_or_another_reading_never_meets_an_old_verdict(tmp_path: Path) -> None:
    with VerdictCache(tmp_path) as cache:
        for judge in (
            ChatJudge("judge", Scripted("CORRECT", identity="a")),
            ChatJudge("judge", Scripted("CORRECT", identity="b")),
            ChatJudge("judge", Scripted("CORRECT", identity="a"), original=True),
        ):
            assert Panel([judge], cache=cache).judge(item()).calls == 1
        assert len(cache) == 3


def test_failures_are_not_stored_so_the_next_run_asks_them_again(tmp_path: Path) -> None:
    chat = Scripted(ChatError("server is down"), "maybe", "maybe", "CORRECT")
    with VerdictCache(tmp_path) as cache:
        panel = Panel([ChatJudge("judge", chat)], cache=cache)
        states = [panel.judge(item()).votes[0].state for _ in range(4)]
        assert states == ["error", "unparsed", "correct", "correct"] and len(cache) == 1
        with pytest.raises(ValueError, match="only valid votes"):
            cache.store("k", "q", Vote("judge", "error"))


def test_a_reply_that_is_no_verdict_is_reminded_once() -> None:
    chat = Scripted("It depends.", "INCORRECT")
    vote = ChatJudge("judge", chat).vote(item())
    assert (vote.state, vote.requests, vote.prompt_tokens) == ("incorrect", 2, 200)
    assert [message["role"] for message in chat.last] == ["system", "user", "assistant", "user"]


def test_a_dead_server_is_given_up_after_a_run_of_failures() -> None:
    chat = Scripted(ChatError("no connection"))
    judge = ChatJudge("judge", chat, give_up_after=3)
    votes = [judge.vote(item()) for _ in range(10)]
    assert chat.asked == 3 and {vote.state for vote in votes} == {"error"}
    assert votes[-1].reason == "not asked: the model failed 3 times in a row"


def test_one_success_starts_the_count_of_failures_anew() -> None:
    down = ChatError("no connection")
    judge = ChatJudge("judge", Scripted(down, down, "CORRECT", down, down, "CORRECT"), give_up_after=3)
    assert [judge.vote(item()).state for _ in range(6)] == ["error", "error", "correct"] * 2


def test_replies_that_no_file_can_hold_are_stored_readably(tmp_path: Path) -> None:
    with VerdictCache(tmp_path) as cache:
        cache.store("k", "q\ud800", Vote("judge", "correct", "CORRECT\n\ud800\x00"))
        found = cache.find("k")
        assert found is not None and found.text == "CORRECT\n\\ud800\x00"


def test_threads_share_a_cache_and_lose_nothing(tmp_path: Path) -> None:
    with VerdictCache(tmp_path) as cache:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: cache.store(f"k{n % 40}", f"q{n}", Vote("judge", "correct")), range(80)))
        assert len(cache) == 40


WRITER = """
import sys
from surgeval.qa import VerdictCache, Vote
with VerdictCache(sys.argv[1]) as cache:
    for n in range(60):
        cache.store(f"{sys.argv[2]} {n}", f"q{n}", Vote("judge", "correct"))
        cache.store(f"shared {n}", f"q{n}", Vote(sys.argv[2], "correct"))
"""


def test_processes_share_a_cache_and_the_latest_vote_counts(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abc"]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert len(list((tmp_path / "answers").iterdir())) == 3
    with VerdictCache(tmp_path) as cache:
        assert len(cache) == 4 * 60
        cache.store("shared 0", "q0", Vote("late", "incorrect"))
    with VerdictCache(tmp_path) as cache:
        found = cache.find("shared 0")
        assert found is not None and (found.judge, found.state) == ("late", "incorrect")


def test_a_panel_uses_what_another_process_has_stored_since_it_was_opened(tmp_path: Path) -> None:
    chat = Scripted("CORRECT")
    with VerdictCache(tmp_path) as cache, VerdictCache(tmp_path) as other:
        Panel([ChatJudge("judge", chat)], cache=other).judge(item())
        (verdict,) = Panel([ChatJudge("judge", chat)], cache=cache).judge_all([item()])
    assert chat.asked == 1 and verdict.votes[0].cached


def test_a_cache_travels_to_another_process_as_its_path(tmp_path: Path) -> None:
    with VerdictCache(tmp_path) as cache:
        cache.store("k", "q", Vote("judge", "correct"))
        with pickle.loads(pickle.dumps(cache)) as copy:
            assert len(copy) == 1


@pytest.mark.parametrize("name", ["verdicts.sqlite", "answers.sqlite"])
def test_verdicts_of_an_earlier_version_are_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"SQLite format 3")
    with pytest.raises(RunError, match=rf"{name}: Written by an earlier version; run again\."):
        VerdictCache(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_in_place_of_the_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are my notes")
    with pytest.raises(DataError, match=r"notes\.txt"):
        VerdictCache(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "these are my notes"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with VerdictCache(tmp_path / "sub") as cache, pytest.raises(RunStopped, match="Permission denied"):
        cache.store("k", "q", Vote("judge", "correct"))


def test_a_verdict_that_cannot_be_stored_stops_the_run(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    cache.close()
    with pytest.raises(RunError, match="could not be stored"):
        cache.store("k", "q", Vote("judge", "correct"))
