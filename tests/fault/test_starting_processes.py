"""The executor `processes` under the ways in which Python programs are started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fault.engine_runs import PATIENCE


def test_a_script_without_a_main_guard_is_told_so_instead_of_starting_itself_for_ever(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from surgeval.engine import Manifest, Unit, run\n"
        "from surgeval.records import Case\n"
        "def work(payload):\n    return [Case('a', 'VID01')]\n"
        f"run([Unit('u')], work, folder={str(tmp_path / 'run')!r}, manifest=Manifest('demo'), executor='processes')\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    assert 'a script that calls run() must do so under `if __name__ == "__main__":`' in ended.stderr


def test_a_package_run_with_dash_m_can_use_processes(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "work.py").write_text(
        "from surgeval.records import Case\ndef work(payload):\n    return [Case('a', 'VID01')]\n"
    )
    (package / "__main__.py").write_text(
        "from surgeval.engine import Manifest, Unit, run\nfrom pack.work import work\n"
        f"folder = {str(tmp_path / 'run')!r}\n"
        "print(run([Unit('u')], work, folder=folder, manifest=Manifest('m'), executor='processes'))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pack"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "1 unit, 1 case" in ended.stdout
