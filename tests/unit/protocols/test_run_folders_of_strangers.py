"""Run folders that somebody else may have touched: nothing is written through links, nothing of two runs is mixed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import surgeval
from surgeval.cli.app import run as command
from surgeval.errors import BadInput, RunError, SurgevalError
from surgeval.files import folder_lock
from surgeval.models.chat.client import HIDDEN, Secrets
from surgeval.protocols.triplets import load_triplets
from surgeval.protocols.triplets.page import write_page_of

KEY = "sk-Attack+9f8e/7d6c5b4a"


def scored(seed: int, name: str) -> surgeval.protocols.triplets.TripletScores:
    dice = np.random.default_rng(seed)
    targets = dice.random((48, 3)) < 0.4
    videos = [f"v{frame % 8}" for frame in range(48)]
    return surgeval.score_recognition(dice.random((48, 3)) + seed * targets, targets, videos, name=name)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    scored(0, "net").save(tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.figures
@pytest.mark.parametrize("linked", ["tables/headline.csv", "figures/curves_ivt.svg", "tables", "figures"])
def test_a_page_is_not_written_through_links(run: Path, tmp_path: Path, linked: str) -> None:
    write_page_of([load_triplets(run)], run)
    outside = tmp_path / "outside"
    if "." in linked:
        outside.write_text("precious")
        (run / linked).unlink()
    else:
        outside.mkdir()
        shutil.rmtree(run / linked)
    (run / linked).symlink_to(outside)
    code = command(["report", str(run)])
    assert (outside.read_text() == "precious") if outside.is_file() else not any(outside.iterdir())
    assert code == (0 if "." in linked else 2)


@pytest.mark.timeout(60)
def test_a_pipe_among_the_tables_does_not_hang(run: Path) -> None:
    write_page_of([load_triplets(run)], run)
    (run / "tables" / "headline.csv").unlink()
    os.mkfifo(run / "tables" / "headline.csv")
    assert command(["report", str(run)]) == 0
    assert (run / "tables" / "headline.csv").is_file()


def test_a_scoring_that_was_cut_off_is_no_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("surgeval.files.stored.write_atomically", full)
    with pytest.raises(BadInput, match="No space left"):
        scored(1, "other").save(run)
    with pytest.raises(SurgevalError):
        surgeval.load_run(run)


def test_two_scorings_do_not_share_a_folder(run: Path) -> None:
    with folder_lock(run), pytest.raises(RunError, match="process"):
        scored(1, "other").save(run)


def test_a_page_of_earlier_scores_does_not_stay(run: Path) -> None:
    write_page_of([load_triplets(run)], run)
    scored(1, "other").save(run)
    assert not (run / "report.html").exists()
    assert command(["report", str(run.parent)]) == 0
    assert "other" in (run / "report.html").read_text(encoding="utf-8")


def test_pages_of_other_things_do_not_land_in_a_run(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(1, "other").save(tmp_path / "other")
    write_page_of([load_triplets(run)], run)
    before = (run / "report.html").read_bytes()
    assert command(["compare", str(run), str(tmp_path / "other"), "--out", str(run)]) == 2
    assert command(["report", str(tmp_path / "other"), "--out", str(run)]) == 2
    assert "found a run there" in capsys.readouterr().err
    assert (run / "report.html").read_bytes() == before


def test_a_key_in_a_reply_is_hidden_and_nothing_else() -> None:
    assert Secrets([KEY]).hide(f"your key is {KEY}, thanks") == f"your key is {HIDDEN}, thanks"
    assert Secrets([KEY]).hide("the clip is open") == "the clip is open"
    # A short value of an address's query is hidden as it is, not where an honest answer begins like it.
    assert Secrets(["2024-05-01"]).hide("on 2024-05-11") == "on 2024-05-11"
