"""A SQLite file of a stranger: what acts by itself and what is no row of ours is refused in one sentence."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from surgeval.errors import DataError
from surgeval.studio.store import Database, reading

DEEP = json.dumps({"action": "x"}).replace('"x"', "[" * 5000 + "]" * 5000)
DAMAGE = {
    "update labels set text='{'": "labels, row 1: text",
    "update labels set text='{\"action\":5}'": "labels, row 1: text",
    "update labels set text=x'ff00fe'": "labels, row '1': text",
    f"update labels set text='{DEEP}'": "labels, row 1: text",
    "update labels set text='{\"a\":\"'||printf('%.*c', 1500000, 'x')||'\"}'": "labels, row 1: text",
    "delete from labels": "instances: label",
    "update instances set x='abc'": "instances, row 'a0': x",
    "update instances set x=9e999": "instances, row 'a0': x",
    "update instances set frame=-1 where id='a3'": "instances, row 'a3': frame",
    "update instances set track='q'": "instances, row 'a0': track",
    "update instances set polygons='x'": "instances, row 'a0': polygons",
    "update instances set name=x'fffe'": "instances, row 'a0': name",
    "update instances set alive=7": "instances, row 'a0': alive",
    "update videos set width=0": "videos, row 'v': width",
    "update head set version='x'": "head, row '1': version",
    "update head set layout='x'": "head, row '1': layout",
    "update operations set outcome='5'": "operations, row '1': outcome",
    "insert into rounds select 2,'t','[5]','a',0,1,1,1": "rounds, row 2: reviewers",
    "insert into studies select 's','t','tools','[\"A\"]','[[1,2]]',0,'a',0,1,1,1": "studies, row s: segments",
    "create trigger t after insert on operations begin delete from instances; end": "found the trigger t",
    "create view sly as select 1": "found the view sly",
    "alter table instances drop column score": "instances: found other columns (score)",
}


@pytest.mark.parametrize("statement", DAMAGE, ids=lambda one: one[:60])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_file_is_refused_with_table_and_row(
    filled_folder: Path, tmp_path: Path, statement: str, *, read_only: bool
) -> None:
    file = Path(shutil.copytree(filled_folder, tmp_path / "project")) / "studio.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(DataError) as told, Database(file, read_only=read_only):
        raise AssertionError("opened")
    assert DAMAGE[statement] in str(told.value)


def test_an_operation_whose_payload_is_damaged_is_told_without_its_video(filled_folder: Path, tmp_path: Path) -> None:
    file = Path(shutil.copytree(filled_folder, tmp_path / "project")) / "studio.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("update operations set payload='{'")
    connection.close()
    with Database(file) as database, database.reading() as reads:
        assert {one.video for one in reading.news(reads, 0, 10)} == {None}


@pytest.mark.parametrize("damage", ["[[[1,2],[3]]]", '{"a":1}', "[5]"])
def test_odd_outlines_are_a_sentence(filled_folder: Path, tmp_path: Path, damage: str) -> None:
    file = Path(shutil.copytree(filled_folder, tmp_path / "project")) / "studio.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("update instances set polygons=?", (damage,))
    connection.close()

    def looked() -> None:
        with Database(file) as database, database.reading() as reads:
            reading.instances(reads, "v", 0)

    with pytest.raises(DataError, match="polygons"):
        looked()


def test_a_new_project_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    with Database(tmp_path / "studio.sqlite") as database, database.writing():
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes and set(modes.values()) == {0o600}


def test_the_mode_of_an_existing_project_file_is_kept(tmp_path: Path) -> None:
    Database(tmp_path / "studio.sqlite").close()
    (tmp_path / "studio.sqlite").chmod(0o640)
    Database(tmp_path / "studio.sqlite").close()
    assert (tmp_path / "studio.sqlite").stat().st_mode & 0o777 == 0o640
