"""Every notebook of the documentation runs, offline, and shows what it stored.

After a change, `jupyter execute --inplace docs/notebooks/NAME.ipynb` in an empty folder stores the outputs anew. A cell
whose text differs from run to run carries the tag `varies`.
"""

from __future__ import annotations

import ast
import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import LONG

from surgeval.protocols.registry import descriptors

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MOST_BYTES = 400_000
# A kernel imports for seconds what this process has at hand: one notebook, the one that does least.
KERNEL = NOTEBOOKS if LONG else [path for path in NOTEBOOKS if path.stem == "quality"]


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


def test_every_protocol_has_a_notebook() -> None:
    ours = {name for name, one in descriptors().items() if one.load.startswith("surgeval.")}
    assert {path.stem for path in NOTEBOOKS} == ours


def stored(path: Path) -> list[Any]:
    """The cells with code, whose outputs are stored."""
    import nbformat

    assert path.stat().st_size < MOST_BYTES
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells), "outputs are not stored"
    return cells


def varies(cell: Any) -> bool:
    return "varies" in cell["metadata"].get("tags", ())


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stored(path: Path, jupyter_at_home: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=240, resources={"metadata": {"path": str(jupyter_at_home)}}).execute()
    code = [cell for cell in again.cells if cell["cell_type"] == "code"]
    for before, after in zip(stored(path), code, strict=True):
        assert varies(before) or texts(before) == texts(after), before["source"]


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path not in KERNEL], ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_say_what_it_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without Jupyter: every cell in one namespace, its last line shown as Jupyter shows it."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in stored(path):
        said = ran(cell["source"], names)
        assert varies(cell) or said == texts(cell), cell["source"]


def ran(source: str, names: dict[str, Any]) -> list[str]:
    """What a cell prints, and its last line where that is a value."""
    from IPython.lib.pretty import pretty

    lines = [line for line in source.splitlines() if not line.startswith("%")]
    body = ast.parse("\n".join(lines)).body
    last = body[-1].value if isinstance(body[-1], ast.Expr) else None
    if last is not None:
        body.pop()
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last), "cell", "eval"), names) if last is not None else None
    return [printed.getvalue(), *([] if value is None else [pretty(value)])]
