"""Programs decide by the code of an error, never by its message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import surgeval
from surgeval.datasets import PROBLEM_KINDS

SOURCES = Path(surgeval.__file__).parent
OTHERS = {"_jit.py", "onnx_child.py"}  # they catch errors of numba and onnxruntime, which have no codes


def codes() -> Iterator[tuple[bool, str]]:
    """Every code that is written in a call, and whether it is a `DataError`'s."""
    for path in SOURCES.rglob("*.py"):
        if 'code="' not in (text := path.read_text(encoding="utf-8")):
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    of_data = ast.unparse(call.func) in ("DataError", "super().__init__")  # or a kind of `DataError`
                    yield of_data, str(keyword.value.value)


def errors_named(tree: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The names of caught errors and of arguments that are errors, and the code in which they stand for them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.body
        elif isinstance(node, ast.FunctionDef):
            for argument in (*node.args.args, *node.args.kwonlyargs):
                if argument.annotation and re.search(r"Error|Exception|BadInput", ast.unparse(argument.annotation)):
                    yield argument.arg, node.body


def compared(tree: ast.AST) -> Iterator[int]:
    """Lines on which the text of an error is compared, searched or looked up."""
    for name, body in errors_named(tree):
        texts = {f"str({name})", f"{name}.found", f"{name}.expected"}
        for node in (inner for statement in body for inner in ast.walk(statement)):
            operands: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                operands = [node.left, *node.comparators]
            elif isinstance(node, ast.Attribute) and node.attr in ("startswith", "endswith"):
                operands = [node.value]
            elif isinstance(node, ast.Subscript):
                operands = [node.slice]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                operands = node.args
            if texts & {ast.unparse(part) for operand in operands for part in ast.walk(operand)}:
                yield getattr(node, "lineno", 0)


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
        if path.name not in OTHERS
        and re.search(r"str\(\w+\)|\.found|\.expected", text := path.read_text(encoding="utf-8"))
        for line in compared(ast.parse(text))
    ]
    assert places == []
