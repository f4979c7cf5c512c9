"""How the studio looks: labels, fading, settings that stay and travel, filters, themes, screens, languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import PATIENCE
from tests.browser.studio.driver import Studio
from tests.browser.studio.legible import CUT, faults

from surgeval.studio.server import serve

pytestmark = pytest.mark.browser
DIALOGS = {"settings": "Comma", "help": "Shift+Slash", "track": "t", "flag": "f", "replace": "Control+h"}


def add(studio: Studio, *rows: dict[str, Any]) -> None:
    """Instances of the first frame, as another program adds them."""
    usual = {"video": "V1", "frame": 0, "group": "tools", "name": "scissors"}
    made = [{**usual, "id": f"i{number}", **row} for number, row in enumerate(rows)]
    studio.post({"id": f"add-{len(rows)}-{rows[0]['box']}".translate({32: "", 91: "", 93: "", 44: "-"}),
                 "kind": "instances.add", "payload": {"instances": made}})  # fmt: skip
    studio.page.reload()
    studio.page.get_by_test_id("object-i0").wait_for()


def places(studio: Studio, prefix: str) -> list[dict[str, float]]:
    script = f"""() => [...document.querySelectorAll('[data-testid^="{prefix}"] rect:first-child')].map((one) =>
        {{ const {{ x, y, width, height }} = one.getBoundingClientRect(); return {{ x, y, width, height }} }})"""
    found: list[dict[str, float]] = studio.page.evaluate(script)
    return found


def overlapping(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["x"] + one["width"], other["x"] + other["width"]) - max(one["x"], other["x"])
    down = min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
    return across > 0.5 and down > 0.5


def test_labels_do_not_cover_each_other_and_fade_where_they_cover_a_box(studio: Studio) -> None:
    crowd = [{"box": [90 + 9 * k, 60 + 6 * k, 60, 45], "track": k + 1,
              "values": {"action": "cut", "target": "seminal vesicle"}} for k in range(6)]  # fmt: skip
    add(studio, *crowd, {"box": [4, 4, 310, 170], "name": "forceps", "track": 1})
    labels = places(studio, "label-")
    assert len(labels) == 7
    assert [pair for pair in combinations(labels, 2) if overlapping(*pair)] == []

    def ground(number: int) -> float:
        rect = studio.page.locator(f"[data-testid=label-i{number}] rect")
        return float(rect.get_attribute("fill-opacity") or 1)

    grounds = [ground(number) for number in range(7)]
    assert min(grounds) == pytest.approx(0.4), "a label in the midst of the large box lets it through"
    studio.shot("labels-crowd")
    faded = grounds.index(min(grounds))
    studio.page.get_by_test_id(f"object-i{faded}").click()
    assert ground(faded) == 1


def set_slider(studio: Studio, name: str, value: float) -> None:
    script = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })) }"
    studio.page.get_by_test_id(f"slider-{name}").evaluate(script, str(value))


def test_every_parameter_shows_stays_over_a_restart_and_travels_as_a_file(
    studio: Studio, browser: Browser, tmp_path: Path
) -> None:
    add(studio, {"box": [60, 50, 60, 60], "track": 1}, {"box": [150, 50, 60, 60], "name": "forceps", "track": 1})
    studio.keys("Comma")
    values = {"boxOpacity": 0.5, "fillOpacity": 0.3, "labelOpacity": 0.7, "fade": 0.2, "highlight": 0.4, "lineWidth": 4,
              "fontSize": 18, "fontWeight": 800, "brightness": 1.4, "contrast": 0.8}  # fmt: skip
    for name, value in values.items():
        set_slider(studio, name, value)
    colour = studio.page.get_by_test_id("colour-tools.scissors")
    colour.evaluate("(node) => { node.value = '#12ab34'; node.dispatchEvent(new Event('input', { bubbles: true })) }")
    box, label = studio.page.get_by_test_id("box-i0"), studio.page.get_by_test_id("label-i0")
    shown = {name: box.get_attribute(name) for name in ("opacity", "stroke", "fill-opacity", "stroke-width")}
    assert shown == {"opacity": "0.5", "stroke": "#12ab34", "fill-opacity": "0.3", "stroke-width": "4"}
    assert (label.get_attribute("font-size"), label.get_attribute("font-weight")) == ("18", "800")
    assert float(label.get_attribute("opacity") or 0) == pytest.approx(0.7)
    look = studio.page.locator("[data-testid=stage] .picture").evaluate("node => getComputedStyle(node).filter")
    assert look == "brightness(1.4) contrast(0.8)"
    studio.shot("display-parameters")
    with studio.page.expect_download() as waited:
        studio.page.get_by_test_id("settings-export").click()
    file = tmp_path / "look.json"
    waited.value.save_as(file)
    kept = json.loads(file.read_text())["settings"]
    assert {name: kept[name] for name in values} == values
    studio.keys("Escape")
    studio.page.get_by_test_id("object-i0").click()
    assert float(box.get_attribute("fill-opacity") or 0) == pytest.approx(0.3 + 0.4)  # highlight of what is selected

    studio.eventually(lambda: studio.get("/api/project")["settings"].get("contrast") == 0.8)
    studio.page.close()
    with serve(tmp_path / "op", author="amy") as again:  # another server on the same folder
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        second = Studio(page, again.entry).open()
        assert page.get_by_test_id("box-i0").get_attribute("stroke") == "#12ab34"
        second.keys("Comma")
        page.get_by_test_id("settings-reset").click()
        assert page.get_by_test_id("box-i0").get_attribute("stroke") == "#56b4e9"
        page.get_by_test_id("settings-file").set_input_files(file)
        second.eventually(lambda: page.get_by_test_id("box-i0").get_attribute("stroke") == "#12ab34")
        page.get_by_test_id("settings-file").set_input_files(
            {"name": "x.json", "mimeType": "application/json", "buffer": b'{"format": "other"}'}
        )
        page.get_by_test_id("message").filter(has_text="no display settings").wait_for()
        page.close()


def test_what_is_hidden_is_said_and_stays_hidden(studio: Studio) -> None:
    add(studio, {"box": [60, 50, 60, 60]}, {"box": [150, 50, 60, 60], "name": "forceps"})
    page = studio.page
    studio.keys("l")
    assert page.locator("[data-testid^=label-]").count() == 0
    assert page.get_by_test_id("hidden-badge").inner_text().startswith("Labels are hidden")
    studio.keys("h")
    assert page.locator("[data-testid^=box-]").count() == 0
    studio.keys("h", "l", "Comma")
    page.get_by_test_id("show-class-tools.forceps").click()
    assert [page.get_by_test_id(f"box-i{k}").count() for k in range(2)] == [1, 0]
    studio.eventually(lambda: studio.get("/api/project")["settings"].get("hidden") == ["tools.forceps"])
    page.reload()
    page.get_by_test_id("box-i0").wait_for()
    assert page.get_by_test_id("box-i1").count() == 0
    assert "forceps" in page.get_by_test_id("hidden-badge").inner_text()


def test_polygons_of_one_instance_have_one_label_and_one_row(studio: Studio) -> None:
    parts = [[[40, 40], [90, 40], [65, 90]], [[200, 100], [260, 100], [230, 150]]]
    add(studio, {"box": [40, 40, 220, 110], "polygons": parts, "values": {"action": "cut", "target": "prostate"}})
    page = studio.page
    assert page.locator("[data-testid^=label-]").count() == page.locator("[data-testid^=object-i]").count() == 1
    path = page.locator("[data-testid=box-i0] path").get_attribute("d") or ""
    assert path.count("M") == path.count("Z") == 2
    for inside in ((65, 55), (230, 115)):
        page.mouse.click(*studio.at(5, 170))
        page.mouse.click(*studio.at(*inside))
        assert page.get_by_test_id("box-i0").get_attribute("data-selected") == "true"
    studio.shot("separation-group")
    page.get_by_test_id("value-action-dissect").click()
    studio.eventually(lambda: studio.instances()[0]["values"]["action"] == "dissect")
    assert len(studio.instances()[0]["polygons"]) == 2


def test_a_part_is_added_to_the_selected_outline_and_one_undo_takes_it_back(studio: Studio) -> None:
    add(studio, {"box": [40, 40, 50, 50], "polygons": [[[40, 40], [90, 40], [65, 90]]]})
    studio.page.get_by_test_id("object-i0").click()
    studio.keys("j", "p")
    studio.page.keyboard.down("Shift")
    for corner in ((200, 100), (260, 100), (230, 150)):
        studio.page.mouse.click(*studio.at(*corner))
    studio.page.keyboard.up("Shift")
    studio.keys("Enter")
    studio.eventually(lambda: len(studio.instances()[0]["polygons"]) == 2)
    assert len(studio.instances()) == 1
    assert studio.instances()[0]["box"] == pytest.approx([40, 40, 220, 110], abs=1.5)
    studio.keys("Control+z")
    studio.eventually(lambda: len(studio.instances()[0]["polygons"]) == 1)


def test_filters_show_and_find(studio: Studio) -> None:
    whole = {"action": "cut", "target": "prostate"}
    add(studio, {"box": [20, 20, 40, 40], "values": whole, "track": 1}, {"box": [90, 20, 40, 40], "track": 2},
        {"box": [160, 20, 40, 40], "name": "forceps", "values": {**whole, "action": "fly"}},
        {"box": [20, 20, 40, 40], "frame": 40, "name": "grasper", "track": 1},
        {"box": [20, 20, 40, 40], "frame": 90, "values": {**whole, "target": "moon"}, "track": 1})  # fmt: skip
    page = studio.page

    def listed() -> list[str]:
        ids: list[str] = page.locator("[data-testid^=object-i]").evaluate_all(
            "all => all.map(one => one.dataset.testid)"
        )
        return [name.removeprefix("object-") for name in ids]

    shown = {"Missing": ["i1"], "Outside": ["i2"], "NoTrack": ["i2"], "Unreviewed": ["i0", "i1", "i2"]}
    for name, found in shown.items():
        page.get_by_test_id("object-filter").select_option(name)
        assert listed() == found
    page.get_by_test_id("object-filter").select_option("Missing")
    faded = float(page.get_by_test_id("box-i0").get_attribute("opacity") or 1)
    assert faded < float(page.get_by_test_id("box-i1").get_attribute("opacity") or 0)
    studio.shot("filter")
    page.get_by_test_id("next-match").click()
    studio.eventually(lambda: studio.frame == 40 and listed() == ["i3"])
    page.get_by_test_id("object-filter").select_option("Outside")
    page.get_by_test_id("next-match").click()
    studio.eventually(lambda: studio.frame == 90)
    page.get_by_test_id("next-match").click()
    studio.eventually(lambda: studio.frame == 0 and listed() == ["i2"])
    page.get_by_test_id("object-filter").select_option("All")
    page.get_by_test_id("filter-class").select_option("tools.grasper")
    assert listed() == []
    page.get_by_test_id("next-match").click()
    studio.eventually(lambda: studio.frame == 40 and listed() == ["i3"])
    page.get_by_test_id("filter-class").select_option("tools.Endobag")
    page.get_by_test_id("next-match").click()
    page.get_by_test_id("message").wait_for()


def full_page(studio: Studio) -> None:
    """Everything that can stand on the page at once."""
    studio.page.set_default_timeout(1000 * PATIENCE)
    values = {"action": "cut", "target": "seminal vesicle"}
    add(studio, {"box": [20, 40, 60, 60], "values": values, "track": 1},
        {"box": [120, 40, 60, 60], "name": "needle driver", "track": 1, "values": {"action": "fly"}},
        {"box": [220, 40, 60, 60], "name": "clip applier", "proposal": True, "score": 0.71})  # fmt: skip
    track = {"group": "tools", "name": "scissors", "number": 1}
    studio.post({"id": "span", "kind": "span.add", "payload": {
        "id": "s1", "video": "V1", "tracks": [track], "first": 0, "last": 200, "values": values}})  # fmt: skip
    studio.post({"id": "flag", "kind": "frames.flag", "payload": {
        "video": "V1", "first": 0, "last": 5, "reason": "smoke"}})  # fmt: skip
    studio.page.reload()
    studio.ready()
    studio.page.get_by_test_id("object-i0").click()
    studio.keys("z", "d", "d", "x", "a", "a")
    studio.page.get_by_test_id("label-i0").wait_for()


@pytest.mark.parametrize(("theme", "code"), [pytest.param("dark", "zh", marks=pytest.mark.long), ("light", "en")])
def test_text_reads_well_and_none_is_cut_off(studio: Studio, theme: str, code: str) -> None:
    """Colours do not depend on the language, widths not on the theme: two of the four see everything."""
    full_page(studio)
    page = studio.page
    page.get_by_test_id("settings-open").click()
    page.get_by_test_id("theme").select_option(theme)
    page.get_by_test_id("settings-close").click()
    page.get_by_test_id("language").select_option(code)
    found: dict[str, Any] = {}
    for tab in ("objects", "spans", "tracks", "problems", "flags"):
        page.get_by_test_id(f"tab-{tab}").click()
        if tab == "problems":
            page.get_by_test_id("find-problems").click()
            page.get_by_test_id("problem-0").wait_for()
        found[tab] = faults(page)
    page.get_by_test_id("tab-objects").click()
    studio.shot(f"{theme}-{code}")
    for name, key in DIALOGS.items():
        studio.keys(key)
        page.locator("[role=dialog]").wait_for()
        found[name] = faults(page)
        if name in ("settings", "help"):
            studio.shot(f"{theme}-{code}-{name}")
        studio.keys("Escape")
    page.get_by_test_id("project-menu").click()
    entries = page.get_by_role("menuitem").evaluate_all("all => all.map(one => one.dataset.testid)")
    studio.keys("Escape")
    for entry in entries:
        page.get_by_test_id("project-menu").click()
        page.get_by_test_id(entry).click()
        page.locator("[role=dialog]").wait_for()
        page.wait_for_timeout(100)  # for what the dialog asks the server
        found[entry] = faults(page)
        studio.keys("Escape")
    assert {place: poor for place, poor in found.items() if poor} == {}
    refused = [text for text in studio.complaints if "400 (Bad Request)" in text]
    assert len(refused) <= 1, "only that a study of five segments does not fit into 330 frames"
    studio.complaints[:] = [text for text in studio.complaints if text not in refused]


def test_a_large_screen_gets_larger_letters(tab: Callable[[], Studio]) -> None:
    studio = tab()
    full_page(studio)
    small = studio.page.evaluate("() => parseFloat(getComputedStyle(document.body).fontSize)")
    studio.page.set_viewport_size({"width": 3840, "height": 2160})
    studio.eventually(lambda: studio.page.evaluate("() => parseFloat(getComputedStyle(document.body).fontSize)") >= 18)
    assert small >= 13
    assert studio.page.evaluate(CUT) == []
    label = studio.page.locator("[data-testid=label-i0]")
    assert float(label.get_attribute("font-size") or 0) >= 16
    script = """() => Math.min(...[...document.querySelectorAll('body *')].filter((node) => node.checkVisibility()
        && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()))
        .map((node) => parseFloat(getComputedStyle(node).fontSize)))"""
    assert studio.page.evaluate(script) >= 14
    studio.shot("4k")
