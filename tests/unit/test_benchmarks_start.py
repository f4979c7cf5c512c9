"""Benchmarks and studies are run by hand and rarely: whatever moves, each of them starts and says what it takes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "studies").glob("*.py")])


def test_there_are_scripts() -> None:
    assert {"phantom", "triplets", "detectors"} <= {script.stem for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.stem}")
def test_a_script_starts_and_shows_its_help(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    monkeypatch.syspath_prepend(script.parent)  # as `python SCRIPT` does
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code in (None, 0)
    assert capsys.readouterr().out.startswith(f"usage: {script.name}")


def test_the_study_of_embedded_models_starts_and_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from studies.embedded_models.__main__ import main

    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "{train,examine}" in capsys.readouterr().out
