"""What is imported is declared, what is declared is imported, and every direct dependency has one tested version."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Names of distributions that differ from the name that is imported.
IMPORTED_AS = {"opencv-python-headless": "cv2", "pillow": "PIL", "huggingface-hub": "huggingface_hub",
               "inspect-ai": "inspect_ai", "import-linter": "importlinter",
               "ipython": "IPython", "griffelib": "griffe"}  # fmt: skip
# transformers reads the folders' tokenizer.json with the first, and which version decides what a damaged file does;
# torch's exporter writes graphs with the second.
NOT_IMPORTED = {"tokenizers", "onnxscript"}


def names(requirements: list[str]) -> set[str]:
    """The distributions of requirement lines, without versions and extras."""
    return {re.split(r"[<>=!~\[ ;]", line)[0].lower() for line in requirements}


OWN = {"surgeval", "tests", "benchmarks", "toy_protocol"}


def declared() -> set[str]:
    """The distributions that a user of any part of surgeval installs."""
    extras = PROJECT["optional-dependencies"]
    used = [line for extra, lines in extras.items() if extra not in ("dev", "docs") for line in lines]
    return names(PROJECT["dependencies"]) | names(used)


@cache
def imported(*folders: str) -> dict[str, str]:
    """Top-level names of other packages that folders import, each with one file that does."""
    found: dict[str, str] = {}
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (path for path in paths if "node_modules" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            else:
                continue
            for module in modules:
                found.setdefault(module.partition(".")[0], str(path.relative_to(ROOT)))
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | OWN}


def test_every_import_is_declared() -> None:
    known = {IMPORTED_AS.get(name, name) for name in declared()}
    missing = {name: path for name, path in imported("src").items() if name not in known}
    assert not missing


def test_every_import_of_tests_tools_and_docs_is_declared() -> None:
    lines = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    known = {IMPORTED_AS.get(name, name) for name in declared() | names(lines)}
    found = imported("tests", "tools", "docs", "benchmarks", "studies")
    assert {name: path for name, path in found.items() if name not in known} == {}


def test_every_declared_dependency_is_imported() -> None:
    used = set(imported("src"))
    idle = {name for name in declared() - NOT_IMPORTED if IMPORTED_AS.get(name, name) not in used}
    assert not idle


def test_every_direct_dependency_has_one_tested_version() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line}
    assert declared() <= pinned
    assert names([line for lines in PROJECT["optional-dependencies"].values() for line in lines]) <= pinned
