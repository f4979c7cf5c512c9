"""Builds the studio's page with npm, so that wheel and sdist carry it; without npm everything else installs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WEB = Path("src/surgeval/studio/web")
STATIC = Path("src/surgeval/studio/static")
_SOURCES = ("package.json", "package-lock.json", "vite.config.ts", "svelte.config.js", "tsconfig.json", "index.html")


class StudioPage(BuildHookInterface[Any]):
    """Runs before hatchling collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page where it is missing or older than its sources; name its files as part of the package."""
        root = Path(self.root)
        problem = ""
        if version == "editable":  # must stay quick and must not fail: make builds the page for such an installation
            problem = "" if (root / STATIC / "index.html").is_file() else "make studio or make test does that with npm"
        elif _stale(root):
            problem = _build(root / WEB)
        if problem:
            self.app.display_warning(f"the studio's page was not built ({problem}); all else of surgeval works.")
        if (root / STATIC / "index.html").is_file():
            build_data["artifacts"].append(f"/{STATIC.as_posix()}/**")


def _stale(root: Path) -> bool:
    page = root / STATIC / "index.html"
    if not (root / WEB / "package.json").is_file():
        return False
    if not page.is_file():
        return True
    sources = [root / WEB / name for name in _SOURCES] + [
        path for folder in ("src", "public") for path in (root / WEB / folder).rglob("*")
    ]
    return any(path.stat().st_mtime > page.stat().st_mtime for path in sources if path.is_file())


def _build(web: Path) -> str:
    """Run npm; the reason where that does not work, else nothing."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    for command in ("ci", "run build"):
        try:
            done = subprocess.run(  # noqa: S603 - npm itself, in this source tree
                [npm, *command.split()], cwd=web, capture_output=True, text=True, timeout=600, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"npm {command}: {type(error).__name__}"
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
            return f"npm {command} failed: {last[0][:200]}"
    return ""
