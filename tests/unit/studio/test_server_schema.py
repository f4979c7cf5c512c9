"""Schemas, merging and guidelines over HTTP: what would be unknown, what a mapping makes of it, and bad files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.unit.studio.test_server import Page

from surgeval.studio.server import Running, serve

EXAMPLES = Path(__file__).parents[2] / "data" / "studio"


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A project that no test changes."""
    with serve(made(tmp_path_factory.mktemp("op")), author="amy") as running:
        yield filled(running)


def made(tmp_path: Path) -> Path:
    (tmp_path / "V1").mkdir()
    (tmp_path / "guidelines").mkdir()
    for k in range(6):
        Image.new("RGB", (64, 48), (8 * k, 0, 0)).save(tmp_path / "V1" / f"{k}.png")
    Image.new("RGB", (3000, 100), "white").save(tmp_path / "guidelines" / "hook.png")
    (tmp_path / "guidelines" / "text.png").write_text("no image")
    (tmp_path / "guidelines" / "link.png").symlink_to("/etc/passwd")
    return tmp_path


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with serve(made(tmp_path), author="amy") as running:
        yield filled(running)


def filled(running: Running) -> Page:
    page = Page(running)
    rows = [
        ("driver", {"action": "suture"}, 0),
        ("scissors", {"action": "cut", "target": "prostrate"}, 1),
        ("aspirator", {"action": "suck", "target": "smoke"}, 2),
        ("aspirator", {"action": "suck", "target": "fluid"}, 3),
    ]
    shown = [{"id": f"i{frame}", "video": "V1", "frame": frame, "group": "tools", "name": name, "values": values,
              "box": [1, 2, 9, 9]} for name, values, frame in rows]  # fmt: skip
    assert page.do("instances.add", {"instances": shown})[0] == 200
    return page


def post(page: Page, path: str, body: Any) -> tuple[int, Any]:
    status, found, _ = page.ask("POST", path, body)
    return status, found


@pytest.mark.parametrize("name", ["combined.jsonc", "phase.json", "position.jsonc"])
def test_the_custom_examples_are_read_and_told_before_they_are_in_force(page: Page, name: str) -> None:
    source = (EXAMPLES / name).read_text()
    status, found = post(page, "/api/schema/try", {"name": Path(name).stem, "source": source})
    assert (status, found["name"], found["current"]) == (200, Path(name).stem, False)
    assert found["panel"]
    assert found["total"] == len(found["mismatches"]) > 0
    assert page.get("/api/project")["schema"]["name"] == "prostatd"  # nothing was switched
    assert page.do("schema.set", {"name": found["name"], "source": found["source"]})[0] == 200
    assert page.get("/api/project")["schema"]["panel"] == found["panel"]
    assert page.get("/api/schema/mismatches")["mismatches"] == found["mismatches"]


def test_a_mapping_is_proposed_and_applied_as_one_edit(page: Page) -> None:
    assert page.get("/api/schemas") == {"current": "prostatd", "builtin": ["prostatd", "cholect50"], "used": []}
    found = page.get("/api/schema/mismatches")["mismatches"]
    by_name = {(row["name"], row["attribute"], row["value"]): row for row in found}
    assert by_name["driver", "", ""]["proposal"] == "needle driver"
    assert by_name["scissors", "target", "prostrate"]["proposal"] == "prostate"
    assert by_name["driver", "", ""]["certain"]
    assert not by_name["scissors", "target", "prostrate"]["certain"]
    assert by_name["aspirator", "target", "smoke"]["proposal"] == ""
    assert "fluid" in by_name["aspirator", "target", "smoke"]["choices"]
    rows = [
        {"group": "tools", "old": "driver", "new": "needle driver"},
        {"group": "tools", "name": "scissors", "attribute": "target", "old": "prostrate", "new": "prostate"},
        {"group": "tools", "name": "aspirator", "attribute": "target", "old": "smoke", "new": "fluid"},
    ]
    status, outcome = page.do("project.map", {"rows": rows})
    assert (status, outcome["changed"]) == (200, 3)
    assert page.get("/api/schema/mismatches") == {"mismatches": [], "total": 0}
    assert page.do("undo", {})[0] == 200
    assert len(page.get("/api/schema/mismatches")["mismatches"]) == 3
    status, outcome = page.do("project.map", {"rows": [{**rows[1], "new": "soup"}]})
    assert status == 400
    assert "project.map: rows[0]: new: found soup" in outcome["error"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "name: found nothing"),
        ({"builtin": "mine"}, "expected prostatd, cholect50"),
        ({"name": "x", "source": "{"}, "x: found cut off at line 1"),
        ({"name": "x", "source": '{"tools": {"hook": {"actions": ["cut", 7]}}}'}, "tools.hook.actions[1]: found 7"),
        ({"name": "x", "source": '{"tools": {"hook": {"actions": {"a": []}}}}'}, "tools.hook.actions: found an object"),
        ({"name": "x", "source": 5}, "source: found 5"),
        ({"name": "", "source": "{}"}, "name: found"),
    ],
)
def test_a_broken_schema_is_named_with_its_path(idle: Page, body: dict[str, Any], said: str) -> None:
    status, found = post(idle, "/api/schema/try", body)
    assert status == 400
    assert said in found["error"]


def test_merging_is_counted_by_rule_and_one_edit(page: Page) -> None:
    status, found = post(page, "/api/merging/try", {})
    assert status == 200
    assert len(found["rules"]) == 7
    smoke = next(rule for rule in found["rules"] if rule["to"] == "fluid")
    assert (smoke["merged"], smoke["before"], smoke["after"]) == (1, 1, 2)
    keys = ("group", "name", "where", "attribute", "from", "to")
    rules = [{key: rule[key] for key in keys} for rule in found["rules"]]
    assert page.do("project.refine", {"rules": rules})[1]["changed"] == 1
    again = post(page, "/api/merging/try", {"name": "mine.json", "source": json.dumps({"rules": rules})})[1]
    assert [rule["merged"] for rule in again["rules"]] == [0] * 7
    assert page.do("undo", {})[0] == 200


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{}", "rules: found no list"),
        ('{"rules": []}', "rules: found none"),
        ('{"rules": [{"to": "bag"}]}', "rules[0]: found the keys to"),
        ("nothing", "expected JSON"),
    ],
)
def test_a_broken_mapping_is_said(idle: Page, source: str, said: str) -> None:
    status, found = post(idle, "/api/merging/try", {"name": "map.json", "source": source})
    assert status == 400
    assert "map.json" in found["error"]
    assert said in found["error"]


def test_guidelines_have_pictures_from_their_folder_and_nowhere_else(page: Page) -> None:
    assert [video["id"] for video in page.get("/api/project")["videos"]] == ["V1"]  # guidelines are no video
    names = {"hook": "hook.png", "clip": "text.png", "bag": "../secret.png", "cut": "link.png", "gone": "gone.png",
             "root": "/etc/passwd"}  # fmt: skip
    tools = {name: {"actions": ["cut"], "guideline_picture": file} for name, file in names.items()}
    schema = {"name": "mine", "source": json.dumps({"tools": {**tools, "plain": {"actions": ["cut"]}}})}
    assert page.do("schema.set", schema)[0] == 200
    shown = page.get("/api/project")["schema"]["pictures"]
    assert set(shown) == {f"tools.{name}" for name in names}
    status, data, answer = page.ask("GET", "/" + shown["tools.hook"])
    assert (status, answer.getheader("content-type")) == (200, "image/jpeg")
    assert len(data) < 100_000
    for name in ("clip", "bag", "cut", "gone", "root"):
        status, found, _ = page.ask("GET", "/" + shown[f"tools.{name}"])
        assert status in (400, 404), name
        assert "root:" not in json.dumps(found)
    assert page.ask("GET", "/guideline?group=tools&name=plain")[0] == 404
    assert page.ask("GET", "/guideline?group=tools&name=../hook")[0] == 404


def test_a_schema_that_the_project_used_is_offered_again(page: Page) -> None:
    own = {"name": "mine", "source": '{"tools": {"hook": {"action": ["cut"]}}}'}
    assert page.do("schema.set", own)[0] == 200
    assert page.do("schema.set", {"name": "mine", "source": own["source"].replace("hook", "saw")})[0] == 200
    cholect50 = post(page, "/api/schema/try", {"builtin": "cholect50"})[1]
    assert page.do("schema.set", {"name": "cholect50", "source": cholect50["source"]})[0] == 200
    known = page.get("/api/schemas")
    assert (known["current"], known["used"]) == ("cholect50", ["mine"])
    tried = post(page, "/api/schema/try", {"used": "mine"})[1]
    assert list(tried["panel"]["tools"]) == ["saw"]
    status, told = post(page, "/api/schema/try", {"used": "other"})
    assert status == 400
    assert "expected a schema that the project used" in told["error"]
