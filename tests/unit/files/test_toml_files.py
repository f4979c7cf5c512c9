"""TOML of strangers: what would take the parser hours is refused, what people write is not."""

from __future__ import annotations

import pytest

from surgeval.files import parse_toml

MANY = 200_000  # squared, hours
pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * MANY) + " = 1",
        "[" + ".".join(["a"] * MANY) + "]",
        "x = { " + " . ".join(["'a'"] * MANY) + " = 1 }",
        ".".join(['"a b"'] * MANY) + " = 1",
        "[" * MANY,
        "x = " + "[" * MANY,
    ],
    ids=["key", "table", "inline", "quoted", "headers", "lists"],
)
def test_depth_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"dotted key of more than 32 parts|nesting too deep|Invalid|Expected"):
        parse_toml(text)


@pytest.mark.parametrize("text", ["a" * 300_000, '"' * 300_000, "a-" * 150_000, "'a'" * 100_000, "a. " * 100_000])
def test_looking_for_such_keys_is_quick(text: str) -> None:
    with pytest.raises(ValueError):
        parse_toml(text)


def test_usual_files_are_read() -> None:
    deep = ".".join(f"part{k}" for k in range(32))
    assert parse_toml(f'version = "1.2.3.4"\n[tool.{deep[7:]}]\nx = 1.5')["version"] == "1.2.3.4"
    assert parse_toml('text = "one. two. three."\nwhen = 2026-01-02T03:04:05.678Z')["text"] == "one. two. three."
