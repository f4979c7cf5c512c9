"""Starting, watching and ending real runs; everything here gives up by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).with_name("engine_script.py")
PATIENCE = 120.0  # seconds, for a loaded machine; nothing waits this long when all is well


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, str(SCRIPT), str(folder), *options]


@contextmanager
def started(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, as a shell starts it; killed at the end of the block if it still lives."""
    with _errors_of(folder).open("w") as said:
        process = subprocess.Popen(
            command(folder, *options), stdout=subprocess.DEVNULL, stderr=said, text=True, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def _errors_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.errors")


def errors(folder: Path) -> str:
    """What the run that was last started there has said on standard error so far."""
    return _errors_of(folder).read_text()


def finished(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A run to its own end."""
    return subprocess.run(command(folder, *options), capture_output=True, text=True, timeout=PATIENCE, check=False)


def cases(folder: Path) -> bytes:
    return (folder / "cases.parquet").read_bytes()


def parts(folder: Path) -> int:
    return len(list((folder / "parts").glob("*.parquet")))


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie that nobody has collected does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends while it is read
        return False
