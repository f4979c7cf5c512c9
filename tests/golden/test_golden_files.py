"""Every golden file under `--golden DIR` opens and is of a known kind; the metrics' own tests build on these files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

KINDS = {"detector", "intent", "tracks", "triplets", "vqa", "xai"}


def _files(folder: Path) -> list[Path]:
    found = [p for kind in sorted(KINDS) for p in sorted((folder / kind).rglob("*")) if p.is_file()]
    return [p for p in found if p.suffix in {".json", ".gz", ".npz"}]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    folder = Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden"
    if "golden_file" in metafunc.fixturenames:
        metafunc.parametrize("golden_file", _files(folder), ids=lambda p: f"{p.parent.name}/{p.name}")


def test_a_golden_file_opens_and_is_not_empty(golden_file: Path) -> None:
    if golden_file.suffix == ".npz":
        with np.load(golden_file, allow_pickle=False) as arrays:
            assert arrays.files
        return
    raw = golden_file.read_bytes()
    content = json.loads(gzip.decompress(raw) if golden_file.suffix == ".gz" else raw)
    assert isinstance(content, dict | list)
    assert content


def test_a_named_golden_folder_exists(golden: Path) -> None:
    assert golden.is_dir(), f"--golden {golden}: no such folder"
