"""The installed command, run as a user runs it: another process, a temporary folder, nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.conftest import Once

from surgeval.cli.app import run
from surgeval.phantom import write_phantom

Result: TypeAlias = "subprocess.CompletedProcess[str]"
Surgeval: TypeAlias = Callable[..., Result]
Quick: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def installed(tmp_path: Path) -> Surgeval:
    """Run `surgeval ARGS…` in a process of its own, in the test's own folder."""

    def call(*args: object) -> Result:
        words = [sys.executable, "-m", "surgeval", *map(str, args)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)

    return call


@pytest.fixture
def surgeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Surgeval:
    """The same command line in this process: a new interpreter takes longer than most commands."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Result:
        capsys.readouterr()
        words = [str(arg) for arg in args]
        code = run(words)
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return call


@pytest.fixture
def quick(surgeval: Surgeval) -> Quick:
    """Code, output and errors of the command line in this process."""

    def call(*args: object) -> tuple[int, str, str]:
        done = surgeval(*args)
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture(scope="session")
def small_phantom(once: Once) -> Path:
    """Two videos of ten seconds, made once; tests that damage it take a copy."""
    return once("small", lambda out: write_phantom(out, seed=7, videos=2, seconds=10, processes=1))
