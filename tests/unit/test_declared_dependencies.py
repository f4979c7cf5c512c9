"""What is imported is declared, what is declared is imported, and every direct dependency has one tested version."""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Names of distributions that differ from the name that is imported.
IMPORTED_AS = {"opencv-python-headless": "cv2", "pillow": "PIL", "huggingface-hub": "huggingface_hub",
               "pyyaml": "yaml", "inspect-ai": "inspect_ai", "import-linter": "importlinter",
               "lazy-loader": "lazy_loader", "vl-convert-python": "vl_convert", "ipython": "IPython",
               "griffelib": "griffe"}  # fmt: skip
# transformers reads the folders' tokenizer.json with the first, and which version decides what a damaged file does;
# torch's exporter writes graphs with the second.
NOT_IMPORTED = {"tokenizers", "onnxscript"}


def names(requirements: list[str]) -> set[str]:
    """The distributions of requirement lines, without versions and extras."""
    return {re.split(r"[<>=!~\[ ;]", line)[0].lower() for line in requirements}


OWN = {"surgeval", "tests", "tools", "benchmarks", "studies", "toy_protocol"}


def declared() -> set[str]:
    """The distributions that a user of any part of surgeval installs."""
    extras = PROJECT["optional-dependencies"]
    used = [line for extra, lines in extras.items() if extra not in ("dev", "docs") for line in lines]
    return names(PROJECT["dependencies"]) | names(used)


# Lines that may be imports, of which text in quotes is one kind: finding them is a hundred times faster than parsing.
LIKELY = re.compile(r"(?:^|[;:])[ \t]*(?:from[ \t]+([A-Za-z_]\w*)|import[ \t]+((?:[^\n#;\\]|\\\n)+))", re.MULTILINE)


def sources(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for here, inside, files in os.walk(ROOT / folder):
            inside[:] = sorted(set(inside) - {"node_modules", "__pycache__"})
            yield from (Path(here, name) for name in sorted(files) if name.endswith(".py"))


def likely(text: str) -> set[str]:
    """Top-level names that a file imports, and a few more that its texts speak of."""
    found = set()
    for source, listed in LIKELY.findall(text):
        found |= {source} if source else {re.split(r"[\s.]", one.strip(" \t\\\n"))[0] for one in listed.split(",")}
    return found - sys.stdlib_module_names - OWN


def certain(text: str) -> set[str]:
    """Top-level names that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@cache
def imported(*folders: str) -> dict[str, str]:
    """Top-level names of other packages that folders import, each with one file that does."""
    found: dict[str, str] = {}
    for path in sources(folders):
        text = path.read_text(encoding="utf-8")
        new = likely(text) - found.keys()
        if new:
            found |= dict.fromkeys(new & certain(text), str(path.relative_to(ROOT)))
    return found


def test_likely_imports_hold_every_certain_one() -> None:
    text = "import a.b as c, d\nif x: from e.f import g\nimport h, \\\n    i\n"
    text += "try:\n    import j\nexcept E: k = 1; import l\n"
    assert certain(text) == set("adehijl") <= likely(text)
    assert certain('"""\nimport a\n"""') == set()


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
