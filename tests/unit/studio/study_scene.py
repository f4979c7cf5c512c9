"""A study with known disagreement: forty scissors, half of them cut; what two annotators say of them.

Ada takes four for the other verb, Ben leaves ten out. By hand: Ada agrees on 0.9 where chance gives 0.5, so kappa 0.8;
Ben on 0.75 where chance gives 2 · 0.5 · 15/40 = 0.375, so 0.6; the two agree on 26 of 40, chance 0.375, so 0.44.
"""

from __future__ import annotations

from typing import Any

from tests.unit.studio.test_server import Page

COUNT = 40
VERBS = ["cut" if k % 2 else "dissect" for k in range(COUNT)]
SEGMENTS = [{"video": "V1", "first": 0, "last": 19}, {"video": "V1", "first": 40, "last": 59}]
FRAMES = [*range(20), *range(40, 60)]
ADA_WRONG = (2, 3, 6, 7)
BEN_SILENT = range(10, 20)
ADA, BEN = "/blind/s1/ada", "/blind/s1/ben"
EXPECTED: dict[str, dict[str, float | None]] = {
    "ada": {"instrument": None, "verb": 0.8, "target": None, "triplet": 0.8},
    "ben": {"instrument": 0.0, "verb": 0.6, "target": 0.0, "triplet": 0.6},
}
BETWEEN = {"instrument": 0.0, "verb": 0.44, "target": 0.0, "triplet": 0.44}


def instances() -> dict[str, Any]:
    """The payload that draws and labels them."""
    return {"instances": [
        {"id": f"scissors-{k}", "video": "V1", "frame": frame, "group": "tools", "name": "scissors",
         "box": [20 + k, 20, 18, 12], "values": {"action": VERBS[k], "target": "fascias"}, "track": 1}
        for k, frame in enumerate(FRAMES)
    ]}  # fmt: skip


def study() -> dict[str, Any]:
    """The payload that makes the study."""
    return {"id": "s1", "title": "Autumn", "annotators": ["ada", "ben"], "segments": SEGMENTS, "seed": 7}


def verb(annotator: str, k: int) -> str | None:
    """What an annotator says of an instance; None: nothing."""
    if annotator == "ben":
        return None if k in BEN_SILENT else VERBS[k]
    other = {"cut": "dissect", "dissect": "cut"}
    return other[VERBS[k]] if k in ADA_WRONG else VERBS[k]


def boxes(page: Page, place: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.get(f"{place}/api/videos/V1/annotations?first=0&last=59")["annotations"]
    return found


def send(page: Page, place: str, kind: str, payload: dict[str, Any], path: str = "operations") -> tuple[int, Any]:
    page.count += 1
    body = {"id": f"{page.session}.{page.count}", "kind": kind, "payload": payload, "session": page.session}
    return page.ask("POST", f"{place}/api/{path}", body)[:2]
