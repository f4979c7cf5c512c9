"""Every notebook of the documentation runs, offline, and shows what it stored.

After a change, `jupyter execute --inplace docs/notebooks/NAME.ipynb` in an empty folder stores the outputs anew. A cell
whose text differs from run to run carries the tag `varies`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MOST_BYTES = 400_000


@pytest.fixture
def jupyter_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in; what Jupyter writes for itself stays beside it."""
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def texts(cell: Any) -> list[str]:
    """What a cell printed and returned, as text; drawings are left out."""
    streams = "".join(out["text"] for out in cell["outputs"] if out["output_type"] == "stream")
    values = [out["data"].get("text/plain", "") for out in cell["outputs"] if out["output_type"] == "execute_result"]
    return [streams, *values]


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stored(path: Path, jupyter_at_home: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    assert path.stat().st_size < MOST_BYTES
    stored = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=240, resources={"metadata": {"path": str(jupyter_at_home)}}).execute()
    cells = [pair for pair in zip(stored.cells, again.cells, strict=True) if pair[0]["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell, _ in cells), "outputs are not stored"
    for before, after in cells:
        if "varies" not in before["metadata"].get("tags", ()):
            assert texts(before) == texts(after), before["source"]
