"""Replies in `answers/*.jsonl`: on disk before they count, several per fsync, merged from the files of many workers."""

from __future__ import annotations

import json
import os
import pickle
import threading
import time
import tracemalloc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from surgeval.errors import DataError, RunError, RunStopped
from surgeval.files.answers import MAX_LINE, AnswerLog
from surgeval.qa import ReplyLine, open_replies, open_verdicts


def lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "answers").glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def write(folder: Path, name: str, *rows: Mapping[str, object]) -> Path:
    """A file of another worker; each row is a whole answer but for what it changes."""
    path = folder / "answers" / name
    path.parent.mkdir(exist_ok=True)
    usual = {"format": 1, "kind": "answer", "key": "q", "time": "2030-01-01T00:00:00Z", "text": "x"}
    path.write_text("".join(json.dumps({**usual, **row}) + "\n" for row in rows))
    return path


def text(log: AnswerLog[ReplyLine], key: str) -> str | None:
    line = log.find(key)
    return line.text if line else None


def test_a_line_holds_the_reply_with_what_it_cost_and_what_was_shown(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "text": "a clip\n\x00é", "latency": 0.25, "requests": 2, "prompt_tokens": 300, "completion_tokens": 2,
        "finish": "length", "model": "tiny", "shown": '[{"frame": 50}]',
    }  # fmt: skip
    with open_replies(tmp_path, "answer") as log:
        log.put("q1", **values)
    (row,) = lines(tmp_path)
    assert {"format": 1, "kind": "answer", "key": "q1", **values}.items() <= row.items()
    found = open_replies(tmp_path, "answer").find("q1")
    assert found is not None
    assert {name: getattr(found, name) for name in values} == values


def test_kinds_share_a_folder_and_do_not_see_each_other(tmp_path: Path) -> None:
    with open_replies(tmp_path, "answer") as answers, open_replies(tmp_path, "reading") as readings:
        answers.put("q", text="B, I think")
        readings.put("q", text="B")
        with open_verdicts(tmp_path) as verdicts:
            verdicts.put("q", judge="j", question="q", state="correct")
    assert text(open_replies(tmp_path, "answer"), "q") == "B, I think"
    assert text(open_replies(tmp_path, "reading"), "q") == "B"
    assert len(open_verdicts(tmp_path)) == 1


def test_nothing_is_created_before_the_first_reply(tmp_path: Path) -> None:
    with open_replies(tmp_path / "run", "answer") as log:
        assert (log.find("q"), len(log)) == (None, 0)
    assert not (tmp_path / "run").exists()


def test_threads_share_fsyncs_and_a_reply_counts_only_when_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync

    def slow(descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        time.sleep(0.005)
        real(descriptor)
        synced.append(size)

    monkeypatch.setattr("surgeval.files.answers.os.fsync", slow)
    log = open_replies(tmp_path, "answer")
    log.put("first", text="x")  # makes the file; syncs of its folders are not counted below
    (path,) = (tmp_path / "answers").iterdir()
    synced.clear()

    def put(number: int) -> bool:
        log.put(f"q{number}", text=f"reply {number}")
        return f'"q{number}"'.encode() in path.read_bytes()[: max(synced)]

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(put, range(320)))
    assert 10 <= len(synced) <= 160
    log.close()
    again = open_replies(tmp_path, "answer")
    assert [text(again, f"q{n}") for n in range(320)] == [text(log, f"q{n}") for n in range(320)]
    assert text(again, "q319") == "reply 319"


def test_an_interrupted_thread_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = threading.Event()
    real = os.fsync

    def interrupt(descriptor: int) -> None:
        if not first.is_set():
            first.set()
            time.sleep(0.2)  # others gather behind this one
            raise KeyboardInterrupt
        real(descriptor)

    with open_replies(tmp_path, "answer") as log:
        log.put("q0", text="x")
        monkeypatch.setattr("surgeval.files.answers.os.fsync", interrupt)
        with ThreadPoolExecutor(4) as pool:
            leader = pool.submit(log.put, "q1", text="x")
            assert first.wait(10)
            others = [pool.submit(log.put, f"q{n}", text="x") for n in (2, 3)]
            with pytest.raises(KeyboardInterrupt):
                leader.result(10)
            for other in others:
                other.result(10)
    assert {"q0", "q2", "q3"} <= set(open_replies(tmp_path, "answer"))


def test_after_a_failed_write_the_next_reply_goes_to_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with open_replies(tmp_path, "answer") as log:
        log.put("q0", text="x")
        with monkeypatch.context() as patch:
            patch.setattr("surgeval.files.answers.os.fsync", broken)
            with pytest.raises(RunStopped, match="the reply to q1 could not be stored: Input/output error"):
                log.put("q1", text="x")
        assert log.find("q1") is None
        log.put("q1", text="again")
    assert len(list((tmp_path / "answers").iterdir())) == 2
    assert text(open_replies(tmp_path, "answer"), "q1") == "again"


def test_a_closed_log_stores_nothing(tmp_path: Path) -> None:
    log = open_replies(tmp_path, "answer")
    log.put("q", text="x")
    log.close()
    with pytest.raises(RunError, match="the reply to q2 could not be stored: the log is closed"):
        log.put("q2", text="x")
    assert text(log, "q") == "x"


def test_half_a_line_at_the_end_is_left_out_wherever_it_was_cut(tmp_path: Path) -> None:
    whole = write(tmp_path, "worker.jsonl", {"key": "a"}, {"key": "b"}).read_bytes()
    last = whole.index(b"\n") + 1
    for end in range(last, len(whole)):
        (tmp_path / "answers" / "worker.jsonl").write_bytes(whole[:end])
        assert list(open_replies(tmp_path, "answer")) == ["a"]
    with open_replies(tmp_path, "answer") as log:
        log.put("b", text="again")
    assert (tmp_path / "answers" / "worker.jsonl").read_bytes() == whole[:-1]  # its writer is dead, nobody mends it
    assert set(open_replies(tmp_path, "answer")) == {"a", "b"}


DAMAGED = [
    (b"{\n", "Invalid JSON"), (b"\n", "Invalid JSON"), (b"\x00" * 30 + b"\n", "Invalid JSON"),
    (b'{"key": "\xff"}\n', "Invalid JSON"),
    (b"[" * 5000 + b"\n", "Invalid JSON"), (b"[]\n", "Input should be an object"), (b'{"kind": "x"}\n', "key: "),
    ({"format": 2}, "format: Input should be 1"), ({"time": "yesterday"}, "time: "),
    ({"time": "2030-01-01T00:00:00"}, "time: "), ({"text": 7}, "text: "), ({"requests": -1}, "requests: "),
    ({"requests": True}, "requests: "), ({"prompt_tokens": 2**63}, "prompt_tokens: "), ({"finish": "stop"}, "finish: "),
    ({"latency": float("nan")}, "latency: "), ({"surprise": 1}, "surprise: "),
    ({"kind": "verdict", "key": 7}, "key: "),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "fault"), DAMAGED)
def test_a_damaged_line_is_named_by_file_and_number(
    tmp_path: Path, damage: bytes | dict[str, object], fault: str
) -> None:
    good = write(tmp_path, "w.jsonl", {"key": "a"}).read_bytes()
    bad = damage if isinstance(damage, bytes) else write(tmp_path, "w.jsonl", damage).read_bytes()
    (tmp_path / "answers" / "w.jsonl").write_bytes(good + bad + good)
    with pytest.raises(DataError) as caught:
        open_replies(tmp_path, "answer")
    assert f"{tmp_path / 'answers' / 'w.jsonl'}: line 2" in str(caught.value)
    assert fault in str(caught.value)
    assert caught.value.code == "file-broken"


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path, "w.jsonl", {"key": "a"})
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + 20 * MAX_LINE)
    tracemalloc.start()
    with pytest.raises(DataError, match=f"line 2: .*{MAX_LINE} bytes"):
        open_replies(tmp_path, "answer")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_LINE


def test_a_reply_longer_than_a_line_may_be_is_not_stored(tmp_path: Path) -> None:
    with open_replies(tmp_path, "answer") as log:
        with pytest.raises(RunError, match=r"could not be stored: 16777\d+ bytes, the limit is 16777216"):
            log.put("q", text="x" * MAX_LINE)
        assert len(log) == 0
        log.put("q", text="x" * (MAX_LINE - 1000))
    assert len(text(open_replies(tmp_path, "answer"), "q") or "") == MAX_LINE - 1000


@pytest.mark.parametrize("values", [
    {"text": None}, {"text": "x", "requests": -1}, {"text": "x", "requests": True}, {"text": "x", "requests": 1.5},
    {"text": "x", "prompt_tokens": 2**63}, {"text": "x", "latency": float("inf")}, {"text": "x", "finish": "stop"},
])  # fmt: skip
def test_what_a_line_cannot_hold_is_refused_before_it_is_written(tmp_path: Path, values: dict[str, Any]) -> None:
    with open_replies(tmp_path, "answer") as log:
        with pytest.raises(RunError, match="the reply to q could not be stored: ") as caught:
            log.put("q", **values)
        assert not isinstance(caught.value, RunStopped)  # this reply alone
    assert not (tmp_path / "answers").exists()


def test_between_files_the_latest_time_counts_and_at_equal_times_the_last_name(tmp_path: Path) -> None:
    early, late = "2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000001Z"
    write(tmp_path, "b.jsonl", {"key": "by time", "time": late, "text": "b"}, {"key": "tie", "text": "b"})
    write(tmp_path, "a.jsonl", {"key": "by time", "time": early, "text": "a"}, {"key": "tie", "text": "a"})
    write(tmp_path, "c.jsonl", {"key": "by time", "time": "2030-01-01T00:30:00+01:00", "text": "c"})
    log = open_replies(tmp_path, "answer")
    assert (text(log, "by time"), text(log, "tie")) == ("b", "b")
    write(tmp_path, "0.jsonl", {"key": "tie", "text": "0"})  # read last, and still the first name
    log.refresh()
    assert text(log, "tie") == "b"


def test_within_a_file_the_last_line_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", {"text": "first"}, {"text": "last", "time": "2029-01-01T00:00:00Z"})
    assert text(open_replies(tmp_path, "answer"), "q") == "last"


def test_a_new_reply_beats_one_of_a_host_whose_clock_is_ahead(tmp_path: Path) -> None:
    write(tmp_path, "ahead.jsonl", {"time": "2999-12-31T23:59:59.999999Z", "text": "old"})
    with open_replies(tmp_path, "answer") as log:
        log.put("q", text="new")
    assert text(open_replies(tmp_path, "answer"), "q") == "new"


def test_a_reader_sees_the_lines_of_others_when_it_refreshes(tmp_path: Path) -> None:
    with open_replies(tmp_path, "answer") as one, open_replies(tmp_path, "answer") as other:
        other.put("q1", text="x")
        assert one.find("q1") is None
        one.refresh()
        assert text(one, "q1") == "x"
        other.put("q1", text="y")
        one.put("q2", text="z")
        one.refresh()
        other.refresh()
        assert (text(one, "q1"), text(other, "q2")) == ("y", "z")


def test_a_pickled_log_writes_a_file_of_its_own(tmp_path: Path) -> None:
    with open_replies(tmp_path, "answer") as log:
        log.put("q1", text="x")
        with pickle.loads(pickle.dumps(log)) as copy:
            assert text(copy, "q1") == "x"
            copy.put("q2", text="y")
    assert len(list((tmp_path / "answers").iterdir())) == 2


def test_what_is_no_regular_file_is_named_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    os.mkfifo(tmp_path / "answers" / "pipe.jsonl")
    with pytest.raises(DataError, match=r"pipe\.jsonl"):
        open_replies(tmp_path, "answer")


def test_memory_grows_with_the_number_of_replies_and_not_with_their_texts(tmp_path: Path) -> None:
    count = 3000
    write(tmp_path, "w.jsonl", *({"key": f"question {n}", "text": "x" * 4000} for n in range(count)))
    tracemalloc.start()
    log = open_replies(tmp_path, "answer")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(log) == count
    assert held < 500 * count  # bytes; the texts are 12 MB


class Workers(RuleBasedStateMachine):
    """Three workers on one folder that put, refresh, die in the middle of a line and come back."""

    workers = st.integers(0, 2)
    keys = st.sampled_from("abcd")

    @initialize(folder=st.uuids())
    def start(self, folder: object) -> None:
        import tempfile

        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.logs = [open_replies(self.folder, "answer") for _ in range(3)]
        self.known: dict[str, str] = {}
        self.count = 0

    @rule(worker=workers, key=keys)
    def put(self, worker: int, key: str) -> None:
        self.count += 1
        self.known[key] = f"reply {self.count}"
        self.logs[worker].put(key, text=self.known[key])
        assert text(self.logs[worker], key) == self.known[key]

    @rule(worker=workers)
    def refresh(self, worker: int) -> None:
        self.logs[worker].refresh()
        assert {key: text(self.logs[worker], key) for key in self.logs[worker]} == self.known

    @rule(worker=workers, half=st.binary(max_size=9).filter(lambda data: b"\n" not in data))
    def die(self, worker: int, half: bytes) -> None:
        self.logs[worker].close()
        for name in self.logs[worker]._own:
            with (self.folder / "answers" / name).open("ab") as file:
                file.write(half)
        self.logs[worker] = open_replies(self.folder, "answer")

    @invariant()
    def a_new_reader_finds_the_latest_of_each_key(self) -> None:
        if hasattr(self, "folder"):
            log = open_replies(self.folder, "answer")
            assert {key: text(log, key) for key in log} == self.known

    def teardown(self) -> None:
        for log in getattr(self, "logs", []):
            log.close()
        if hasattr(self, "temporary"):
            self.temporary.cleanup()


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
