"""A file gets its final name when it is whole: only `surgeval.files` writes under names that readers look for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import surgeval

WRITERS = {"write_text", "write_bytes", "tofile", "imwrite", "save_file", "VideoWriter",
           "copyfile", "copy2", "copytree", "save_pretrained"}  # fmt: skip
SAVERS = {"save", "savefig", "savez", "savez_compressed", "write_parquet", "write_csv"}  # to an open file, or a path
# Where something else is written to, and what that is.
ELSEWHERE = {
    "console/screen.py": "the null device",
    "datasets/formats/": "the folder that `convert` makes whole or not at all",
    "datasets/predictions/": "the partial file or folder that `write_predictions` renames",
    "phantom/dataset/write.py": "a folder of frames that is made whole or not at all",
    "studio/exchange/unpack.py": "a folder of an upload that is made whole or not at all",
    "studio/server/exchange.py": "a temporary folder",
}


def writes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Calls that write to a path by themselves; those of an open file or a buffer have a plain name as their target."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        modes = [value.value for value in node.args[:2] if isinstance(value, ast.Constant)]
        opened = name == "open" and any(isinstance(mode, str) and mode[:1] in set("wxa") for mode in modes)
        if name in WRITERS or (name in SAVERS and _to_path(node)) or (opened and not _of_file(node)):
            yield name, node.lineno


def _to_path(call: ast.Call) -> bool:
    target = call.args[0] if call.args else None
    return isinstance(target, ast.BinOp) or (isinstance(target, ast.Name) and target.id in ("path", "target"))


def _of_file(call: ast.Call) -> bool:
    """`av.open(file, "w")`: a container in a file that is open."""
    return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id == "file"


def test_nothing_but_files_writes_under_a_final_name() -> None:
    source = Path(surgeval.__file__).parent
    found: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        calls = list(writes(ast.parse(path.read_text(encoding="utf-8"))))
        if calls and not name.startswith("files/"):
            found[name] = calls
    excused = {name: where for name in found for where in ELSEWHERE if name.startswith(where)}
    assert {name: calls for name, calls in found.items() if name not in excused} == {}
    assert set(excused.values()) == set(ELSEWHERE)  # none is excused that need not be
