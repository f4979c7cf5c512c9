"""Programs decide by the code of an error, never by its message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import surgeval
from surgeval.datasets import PROBLEM_KINDS

SOURCES = Path(surgeval.__file__).parent
OTHERS = {"_jit.py", "_onnx_child.py"}  # they catch errors of numba and onnxruntime, which have no codes


def codes() -> Iterator[tuple[bool, str]]:
    """Every code that is written in a call, and whether it is a `DataError`'s."""
    for path in SOURCES.rglob("*.py"):
        if 'code="' not in (text := path.read_text(encoding="utf-8")):
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield isinstance(call.func, ast.Name) and call.func.id == "DataError", str(keyword.value.value)


def compared(tree: ast.AST) -> Iterator[int]:
    """Lines on which the text of a caught error is compared or searched."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name):
        texts = {f"str({handler.name})", f"{handler.name}.found", f"{handler.name}.expected"}
        for node in (inner for statement in handler.body for inner in ast.walk(statement)):
            operands: list[ast.expr] = []
            line = getattr(node, "lineno", handler.lineno)
            if isinstance(node, ast.Compare):
                operands = [node.left, *node.comparators]
            elif isinstance(node, ast.Attribute) and node.attr in ("startswith", "endswith"):
                operands = [node.value]
            elif isinstance(node, ast.Subscript):
                operands = [node.slice]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                operands = node.args
            if texts & {ast.unparse(part) for part in operands}:
                yield line


def test_the_code_of_a_data_error_is_a_kind_of_problem() -> None:
    assert {code for of_data, code in codes() if of_data} <= set(PROBLEM_KINDS)


def test_the_code_of_another_error_is_raised_in_one_place() -> None:
    others = [code for of_data, code in codes() if not of_data]
    assert sorted(others) == sorted(set(others))
    assert not set(others) & set(PROBLEM_KINDS)


def test_the_studio_page_translates_codes_that_are_raised() -> None:
    page = (SOURCES / "studio" / "web" / "src" / "text" / "errors.ts").read_text(encoding="utf-8")
    translated = set(re.findall(r"\['([a-z-]+)', '\w+'\]", page))
    assert translated
    assert translated <= {code for _, code in codes()}


def test_no_module_compares_the_text_of_an_error() -> None:
    places = [
        f"{path}:{line}"
        for path in SOURCES.rglob("*.py")
        if path.name not in OTHERS and " as " in (text := path.read_text(encoding="utf-8")) and "except" in text
        for line in compared(ast.parse(text))
    ]
    assert places == []
