"""Run folders with odd names, links and pipes in them: nothing outside is touched, nothing is waited for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.unit.engine import engine_workers as w

from surgeval.engine import Manifest, RunSummary, Unit, load_cases, load_record, run
from surgeval.errors import DataError
from surgeval.files import read_regular, write_atomically
from surgeval.records import Case

MANIFEST = Manifest("triplets", {"iou": 0.5})


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A reader that waits at a pipe fails the test instead of stopping the run."""

    def give_up(*_: object) -> None:
        raise TimeoutError("a reader waits for a file that never ends")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def go(folder: Path, units: int = 2) -> RunSummary:
    return run(w.score_units(units), w.scores, folder=folder, manifest=MANIFEST, progress=False)


def first_part(folder: Path) -> Path:
    return min((folder / "parts").glob("*.parquet"))


@pytest.mark.parametrize("name", ["v[1]", "v*", "v?", "v[", "~", "{a,b}"])
def test_a_folder_is_only_itself_whatever_its_name_could_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for other in ("v1", "vx", "a"):
        run(w.score_units(1), lambda _: [], folder=other, manifest=Manifest(other), progress=False)
    go(Path(name))
    assert go(Path(name)).resumed == 2
    assert load_cases(name).select(pl.len()).collect().item() == 6


def test_links_in_a_run_folder_are_replaced_and_their_targets_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    go(folder)
    links = [folder / "run.json", first_part(folder), folder / "cases.parquet"]
    for link in links:
        (tmp_path / link.name).write_bytes(link.read_bytes() if link.name == "run.json" else b"precious")
        link.unlink()
        link.symlink_to(tmp_path / link.name)
    record = (tmp_path / "run.json").read_bytes()
    summary = go(folder)
    assert (summary.damaged, summary.done, summary.resumed) == (1, 1, 1)
    assert not any(link.is_symlink() for link in links)
    assert (tmp_path / "run.json").read_bytes() == record
    assert (tmp_path / "cases.parquet").read_bytes() == b"precious"


def test_a_temporary_name_that_is_a_link_is_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "thesis.txt"
    outside.write_text("precious")
    (tmp_path / ".a.json.tmp").symlink_to(outside)
    write_atomically(tmp_path / "a.json", b"new")
    assert (outside.read_text(), (tmp_path / "a.json").read_bytes()) == ("precious", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "thesis.txt"]


def test_a_pipe_in_the_place_of_a_part_is_replaced_by_the_part(tmp_path: Path) -> None:
    go(tmp_path)
    before, part = (tmp_path / "cases.parquet").read_bytes(), first_part(tmp_path)
    part.unlink()
    os.mkfifo(part)
    summary = go(tmp_path)
    assert (summary.damaged, summary.done) == (1, 1)
    assert part.is_file() and (tmp_path / "cases.parquet").read_bytes() == before


def test_a_record_that_is_no_file_is_named(tmp_path: Path) -> None:
    pipe, inner = tmp_path / "pipe", tmp_path / "inner"
    pipe.mkdir()
    os.mkfifo(pipe / "run.json")
    (inner / "run.json").mkdir(parents=True)
    for folder, found in ((pipe, "a named pipe, a device or the like"), (inner, "a folder")):
        message = f"{folder / 'run.json'}: found {found}, expected a JSON file"
        with pytest.raises(DataError) as error:
            load_record(folder)
        assert str(error.value) == message
        with pytest.raises(DataError) as error:
            go(folder)
        assert str(error.value) == message


def test_a_link_to_a_file_is_read_like_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "b") == b"content"


def test_a_table_with_other_cases_than_the_run_counted_is_refused(tmp_path: Path) -> None:
    def worker(payload: str) -> list[Case]:
        return [Case(f"{payload}/{frame}", payload, values={"right": frame > 2}) for frame in range(6)]

    run([Unit("VID01", "VID01")], worker, folder=tmp_path / "run", manifest=Manifest("demo"), progress=False)
    path = tmp_path / "run" / "cases.parquet"
    whole = load_cases(path.parent).collect()
    for rows in (whole.filter("right"), pl.concat([whole, whole.head(1)]), whole.head(0)):
        rows.write_parquet(path)
        with pytest.raises(DataError, match=f"holds {rows.height} cases, but run.json counts 6"):
            load_cases(path.parent)
