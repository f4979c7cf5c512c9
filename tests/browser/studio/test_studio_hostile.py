"""Text of strangers in every place where the page shows text: names of files, schema, labels, authors, reasons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.browser.studio.driver import Studio

from surgeval.studio.server import serve, set_schema

pytestmark = pytest.mark.browser

EVIL = "<img src=x onerror=window.hurt=1>"
SCRIPT = "<script>window.hurt=2</script>"
QUOTED = "\"'><svg onload=window.hurt=3>"


def test_text_of_strangers_is_text_everywhere(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "op" / EVIL
    folder.mkdir(parents=True)
    for k in range(4):
        Image.new("RGB", (320, 180), (90, 30, 30)).save(folder / f"{k} {EVIL}.png")
    schema = {
        "tools": {EVIL: {"actions": [SCRIPT, "cut"], "targets": [QUOTED]}},
        "image": {f"phase {EVIL}": [SCRIPT, "b"]},
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    try:
        with serve(tmp_path / "op", author=f"amy {EVIL}") as running:
            set_schema(running.project, str(tmp_path / "schema.json"))
            studio = Studio(context.new_page(), running.entry)
            video = studio.get("/api/project")["videos"][0]["id"]
            rows = [
                {"id": f"i{k}", "video": video, "frame": k, "group": "tools", "name": EVIL, "box": [50, 50, 40, 30],
                 "track": 1, "values": {"action": SCRIPT, "target": QUOTED, "note": EVIL}} for k in range(3)
            ]  # fmt: skip
            rows += [{**rows[0], "id": "odd", "name": SCRIPT, "values": {"action": EVIL}}]
            track = {"group": "tools", "name": EVIL, "number": 1}
            span = {"id": "s1", "video": video, "tracks": [track], "values": {"action": SCRIPT}, "first": 0, "last": 2}
            flag = {"video": video, "first": 0, "last": 0, "reason": EVIL, "note": SCRIPT}
            studio.post({"id": "a", "kind": "instances.add", "payload": {"instances": rows}})
            studio.post({"id": "b", "kind": "span.add", "payload": span})
            studio.post({"id": "c", "kind": "frames.flag", "payload": flag})
            studio.open()
            page = studio.page
            page.get_by_test_id("object-i0").click()
            assert EVIL in page.get_by_test_id("object-i0").inner_text()
            for tab in ("spans", "tracks", "problems", "flags", "objects"):
                page.get_by_test_id(f"tab-{tab}").click()
                page.wait_for_timeout(50)
            page.get_by_test_id("object-i0").click()
            for key in ("t", "Escape", "f", "Escape", "?", "Escape"):  # numbers, flags, help
                studio.keys(key)
                page.wait_for_timeout(50)
            page.get_by_test_id("settings-open").click()
            page.wait_for_timeout(50)
            studio.keys("Escape")
            page.get_by_test_id("search").fill("onerror")
            studio.keys("Enter")
            page.get_by_test_id("search-result-0").wait_for()
            studio.shot("hostile-text")
            studio.keys("Escape")
            # Somebody else moves it: the message names the author, whose name is a script.
            studio.page.route("**/api/events", lambda route: route.abort())
            page.reload()
            studio.ready()
            page.get_by_test_id("object-i0").click()
            studio.post({"id": "d", "kind": "instances.move", "payload": {"ids": ["i0"], "dx": 3, "dy": 0}})
            studio.keys("ArrowDown")
            page.get_by_test_id("message").wait_for()
            assert EVIL in page.get_by_test_id("message").inner_text()
            assert page.evaluate("window.hurt") is None
            assert page.locator("img[src=x], svg[onload]").count() == 0
            assert not [text for text in studio.complaints if "Content Security Policy" in text]
    finally:
        context.close()
