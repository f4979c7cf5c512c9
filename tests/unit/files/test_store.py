"""A damaged store is one sentence, when it is opened and when it is read; never a traceback, never a wrong value."""

from __future__ import annotations

import math
import os
import pickle
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from surgeval.asking import Answered, AnswerStore
from surgeval.errors import DataError, RunError, SurgevalError
from surgeval.files import Column
from surgeval.qa.judging import VerdictCache, Vote

VOTE = Vote("judge", "correct", "CORRECT", "it says so", 1, 300, 2)
ANSWER = Answered("a clip", 0.25, 1, 300, 2)


def fill(path: Path, count: int = 400) -> Path:
    with VerdictCache(path) as cache:
        for number in range(count):
            cache.store(f"key {number}", f"q{number}", VOTE)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return fill(tmp_path_factory.mktemp("whole") / "v.sqlite").read_bytes()


def change(path: Path, *statements: str) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        base.execute(statement)
    base.commit()
    base.close()


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_a_cache_cut_short_is_refused_or_read_in_sentences(whole: bytes, tmp_path: Path, kept: float) -> None:
    path = tmp_path / "v.sqlite"
    path.write_bytes(whole[: int(len(whole) * kept)])
    told = 0
    try:
        with VerdictCache(path) as cache:
            for number in range(400):
                try:
                    vote = cache.find(f"key {number}")
                    assert vote is None or vote.judge == "judge"
                except DataError:
                    told += 1
    except DataError:
        told += 1
    assert told or not kept


def test_bytes_turned_at_random_never_end_in_a_traceback(whole: bytes, tmp_path: Path) -> None:
    dice = random.Random(7)
    refused = 0
    for _ in range(60):
        path = tmp_path / "v.sqlite"
        data = bytearray(whole)
        for _ in range(dice.choice((1, 20, 400))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            with VerdictCache(path) as cache:
                for number in range(0, 400, 7):
                    cache.find(f"key {number}")
                cache.store("new", "q", VOTE)
                len(cache)
        except SurgevalError as error:
            refused += str(path) in str(error)
        for beside in tmp_path.glob("v.sqlite-*"):
            beside.unlink()
    assert refused > 20


WRONG = [
    ("judge", "x'ff00'"), ("state", "'maybe'"), ("state", "3"), ("text", "x'00'"), ("text", "7.5"), ("reason", "x'ff'"),
    ("prompt_tokens", "'many'"), ("prompt_tokens", "-1"), ("prompt_tokens", "1.5"), ("completion_tokens", "x'01'"),
    ("completion_tokens", "9e999"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), WRONG)
def test_a_value_of_another_kind_is_named_when_it_is_read(tmp_path: Path, column: str, value: str) -> None:
    path = fill(tmp_path / "v.sqlite", 1)
    change(path, f"UPDATE votes SET {column} = {value}")
    with VerdictCache(path) as cache:
        if (column, value) == ("text", "7.5"):  # the column makes text of it
            assert cache.find("key 0") is not None
            return
        with pytest.raises(DataError, match=rf"v\.sqlite: key key 0: {column}: found .*, expected "):
            cache.find("key 0")


def test_text_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = fill(tmp_path / "v.sqlite", 1)
    change(path, "UPDATE votes SET reason = CAST(x'ff' AS TEXT)")
    with VerdictCache(path) as cache, pytest.raises(DataError, match="a verdict cache that can be read"):
        cache.find("key 0")


ALTERED = [
    ("DROP TABLE votes",), ("ALTER TABLE votes RENAME COLUMN state TO verdict",), ("ALTER TABLE votes ADD COLUMN x",),
    ("CREATE TABLE more (x)",), ("DROP TABLE votes", "CREATE TABLE votes (key, judge)"),
    ("DROP TABLE votes", "CREATE VIEW votes AS WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM n) "
     "SELECT key, '' AS judge, '' AS qid, 'correct' AS state, '' AS text, '' AS reason, 0 AS prompt_tokens, "
     "0 AS completion_tokens FROM n"),
    ("CREATE TRIGGER t BEFORE INSERT ON votes BEGIN DELETE FROM votes; END",),
]  # fmt: skip


@pytest.mark.parametrize("statements", ALTERED)
def test_a_file_with_other_tables_views_or_triggers_is_refused(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = fill(tmp_path / "v.sqlite", 1)
    change(path, *statements)
    with pytest.raises(DataError, match="found other tables, expected the table of a verdict cache"):
        VerdictCache(path)


def test_nulls_are_named(tmp_path: Path) -> None:
    path = fill(tmp_path / "v.sqlite", 1)
    change(
        path, "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'reason TEXT NOT NULL', 'reason TEXT')",
    )  # fmt: skip
    change(path, "UPDATE votes SET reason = NULL", "PRAGMA writable_schema = ON",
           "UPDATE sqlite_master SET sql = replace(sql, 'reason TEXT', 'reason TEXT NOT NULL')")  # fmt: skip
    with VerdictCache(path) as cache, pytest.raises(DataError, match="reason: found None, expected text"):
        cache.find("key 0")


def test_an_answer_comes_back_as_it_was_and_the_last_one_stays(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        store.store("q", Answered("first"))
        store.store("q", ANSWER)
        assert store.find("q") == ANSWER
        with pickle.loads(pickle.dumps(store)) as copy:
            assert copy.find("q") == ANSWER


@pytest.mark.parametrize("value", [2**63, -1, 10**400, True, 1.5])
def test_a_count_that_no_row_can_hold_is_refused_before_it_is_stored(tmp_path: Path, value: int) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as store:
        with pytest.raises(RunError, match=r"prompt_tokens: found .*, expected a whole number"):
            store.store("q", Answered("x", prompt_tokens=value))
        assert len(store) == 0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_latency_that_is_no_number_is_refused(tmp_path: Path, value: float) -> None:
    with AnswerStore(tmp_path / "a.sqlite") as store, pytest.raises(RunError, match="expected a finite number"):
        store.store("q", Answered("x", value))


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("pipe", "folder", "file/below"):
        with pytest.raises(DataError, match="expected "):
            VerdictCache(tmp_path / name)


def test_a_closed_store_answers_in_sentences(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path / "a.sqlite")
    store.close()
    for call in (lambda: store.find("q"), lambda: store.store("q", ANSWER), lambda: len(store)):
        with pytest.raises(SurgevalError, match=r"a\.sqlite"):
            call()


def test_a_column_says_what_it_wants() -> None:
    assert Column("n", int).wanted(3) == "" == Column("x", float).wanted(3)
    assert Column("x", float).wanted(10**400) == "a finite number"


OPENER = """
import sys
from surgeval.asking import Answered, AnswerStore
with AnswerStore(sys.argv[1]) as store:
    store.store(sys.argv[2], Answered("x"))
"""


def test_processes_that_make_the_same_file_at_once_all_succeed(tmp_path: Path) -> None:
    makers: list[Callable[[], int]] = []
    for name in "abc":
        command = [sys.executable, "-c", OPENER, str(tmp_path / "a.sqlite"), name]
        makers.append(subprocess.Popen(command).wait)
    assert [wait() for wait in makers] == [0, 0, 0]
    with AnswerStore(tmp_path / "a.sqlite") as store:
        assert len(store) == 3
