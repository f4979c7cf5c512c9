"""The installed command, run as a user runs it: another process, a temporary folder, nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.conftest import Once

from surgeval.cli._main import run

Result: TypeAlias = "subprocess.CompletedProcess[str]"
Surgeval: TypeAlias = Callable[..., Result]
Quick: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def surgeval(tmp_path: Path) -> Surgeval:
    """Run `surgeval ARGS…` in the test's own folder."""

    def call(*args: object, cwd: Path = tmp_path, timeout: float = 240) -> Result:
        return subprocess.run(
            [sys.executable, "-m", "surgeval", *map(str, args)],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quick:
    """The command line in this process (code, output, errors), where many calls differ in a word."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        return run([str(arg) for arg in args]), *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def small_phantom(once: Once) -> Path:
    """Two videos of ten seconds, made once; tests that damage it take a copy."""
    command = [sys.executable, "-m", "surgeval", "data", "phantom", "--seed", "7", "--videos", "2", "--seconds", "10"]
    return once("small", lambda out: subprocess.run([*command, "--out", str(out)], check=True, timeout=240))
