"""The demo's chapter on clinical intent: whoever rejects everything passes the traps and no pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from surgeval.datasets import open_dataset
from surgeval.protocols.contract import Demo
from surgeval.protocols.intent import demo as intent_demo


def test_the_chapter_says_what_rejecting_is_worth(
    small_phantom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intent_demo, "_embedded", lambda: ("oracle",))
    monkeypatch.setattr(intent_demo, "SPLIT", None)
    chapter = intent_demo.chapter(Demo(dataset=open_dataset(small_phantom), edition="small", out=tmp_path / "intent"))
    assert chapter.page.is_file()
    rows = {row[""]: row for row in chapter.table.iter_rows(named=True)}
    assert rows["cognitive reliability"]["always-reject"].startswith("100.0 %")
    assert rows["paired accuracy"]["always-reject"].startswith("0.0 %")
    assert rows["paired accuracy"]["oracle"].startswith("100.0 %")
    assert "always-reject passes 100 % of the cognitive traps" in chapter.sentences[0]
    assert [run.name for run in chapter.runs] == ["oracle", "always-reject"]
