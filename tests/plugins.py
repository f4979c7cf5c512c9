"""Packages with plug-ins, as an installation leaves them on the search path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["install_plugin"]


def install_plugin(folder: Path, group: str, entries: Mapping[str, str], **modules: str) -> Path:
    """Write modules (source by name) and the entry points of one group into a folder; returns the folder."""
    info = folder / "plugin-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    lines = [f"{name} = {target}" for name, target in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    return folder
