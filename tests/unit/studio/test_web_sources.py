"""The page's sources keep to what the server's policy admits and to what anyone can install."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

WEB = Path(__file__).parents[3] / "src" / "surgeval" / "studio" / "web"
SVELTE = sorted((WEB / "src").rglob("*.svelte"))


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert [name for name, one in lock["packages"].items() if "resolved" in one] == []
    assert "registry" not in json.dumps(lock)


def test_versions_are_exact() -> None:
    package = json.loads((WEB / "package.json").read_text())
    assert "dependencies" not in package
    assert [v for v in package["devDependencies"].values() if not re.fullmatch(r"\d+\.\d+\.\d+", v)] == []


@pytest.mark.parametrize("path", SVELTE, ids=lambda path: path.name)
def test_no_text_becomes_html_and_no_style_is_inline(path: Path) -> None:
    source = path.read_text()
    assert "{@html" not in source
    assert "innerHTML" not in source
    assert re.search(r"\sstyle=", source) is None


def test_every_control_has_a_name_for_tests() -> None:
    """A button, select, input or text area without a test id cannot be driven by the browser tests."""
    nameless = []
    for path in SVELTE:
        markup = re.sub(r"<script.*?</script>|<style.*?</style>", "", path.read_text(), flags=re.DOTALL)
        for found in re.finditer(r"<(button|select|input|textarea)\b", markup):
            tag = markup[found.start() : _end_of_tag(markup, found.start())]
            if "data-testid" not in tag:
                nameless.append(f"{path.name}: {tag[:60]}")
    assert nameless == []


def _end_of_tag(markup: str, start: int) -> int:
    """Where a tag closes; braces hold code, in which > means something else."""
    depth = 0
    for place in range(start, len(markup)):
        depth += {"{": 1, "}": -1}.get(markup[place], 0)
        if markup[place] == ">" and depth == 0:
            return place
    return len(markup)
