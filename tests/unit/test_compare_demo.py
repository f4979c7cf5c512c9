"""tools/compare_demo.py: what counts as a difference between two demo folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.compare_demo import main


def write_demo(folder: Path, *, ap: str = "0.5", column: str = "mAP", started: str = "09:00") -> Path:
    (folder / "run").mkdir(parents=True)
    (folder / "run" / "numbers.csv").write_text(f"class,{column}\nhook,{ap}\n")
    (folder / "run" / "run.json").write_text(json.dumps({"started": started, "scores": [{"ap": float(ap)}]}))
    return folder


def test_a_changed_number_is_found_in_csv_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write_demo(tmp_path / "a")), str(write_demo(tmp_path / "b", ap="0.6"))]) == 1
    printed = capsys.readouterr().out
    assert "line 2, mAP: '0.5' → '0.6'" in printed
    assert ".scores[0].ap: 0.5 → 0.6" in printed


def test_dates_and_renamed_words_are_no_differences(tmp_path: Path) -> None:
    old, new = write_demo(tmp_path / "a"), write_demo(tmp_path / "b", column="AP50", started="10:00")
    assert main([str(old), str(new), "--rename", "mAP=AP50"]) == 0
    assert main([str(old), str(new)]) == 1
    (new / "run" / "extra.csv").write_text("a\n1\n")
    assert main([str(old), str(new), "--rename", "mAP=AP50"]) == 1
