"""docs/gaze.md tells the truth: its files are written and its code is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "gaze.md").read_text(encoding="utf-8")
_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```', re.M | re.S)
_CODE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def test_the_examples_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in _FILE.findall(PAGE):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = _CODE.findall(PAGE)
    assert len(blocks) == 6
    exec("\n".join(blocks), names)
    tracks = {name: names["read_gaze"](name) for name in ("VID01.csv", "VID02.jsonl", "samples.csv")}
    assert len(tracks["VID01.csv"]["VID01"].on_frame()) == 2
    assert list(tracks["samples.csv"]) == ["VID01", "VID02"]
    mapped = names["read_gaze"]("tracker.txt", mapping="tracker.toml")["VID07"]
    assert mapped.t.tolist() == pytest.approx([0.5, 0.51, 0.52])
    assert mapped.on_frame()[0].x == 0.5
