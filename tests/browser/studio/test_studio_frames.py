"""What is said of whole frames: phases by span, flags with reasons; finding a frame, and coming back to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser

SCHEMA = {"tools": {"forceps": {"actions": ["grasp", "retract"], "targets": ["prostate"]}},
          "image": {"phase": ["access", "dissection", "suturing"], "note": "text"}}  # fmt: skip


@pytest.fixture
def phased(studio: Studio) -> Studio:
    """A schema with phases, and forceps in 20 frames."""
    studio.fill(*track(1, range(20)))
    studio.fill(kind="schema.set", name="phases", source=json.dumps(SCHEMA))
    return studio


def _phases(studio: Studio, last: int = 60) -> dict[int, str]:
    values = studio.get(f"/api/videos/V1/frames?first=0&last={last}")["values"]
    return {int(frame): said["phase"] for frame, said in values.items() if "phase" in said}


def test_phases_are_labelled_by_span_and_drawn_on_their_own_lane(phased: Studio) -> None:
    phased.keys("z")
    phased.go(30)
    phased.keys("x", "1")
    phased.eventually(lambda: "31 change" in phased.by_id("span-preview").inner_text())
    phased.keys("e")
    phased.eventually(lambda: _phases(phased) == dict.fromkeys(range(31), "access"))
    phased.go(21)
    phased.keys("z")
    phased.go(40)
    phased.keys("x", "2", "e")
    phased.eventually(lambda: len(phased.spans()) == 2)
    assert _phases(phased) == {k: "access" if k < 21 else "dissection" for k in range(41)}
    phased.eventually(lambda: phased.by_id("value-phase-dissection").get_attribute("aria-pressed") == "true")
    phased.shot("phases")
    phased.slide(phased.on_timeline(41, "image"), phased.on_timeline(36, "image"))
    phased.eventually(lambda: max(_phases(phased)) == 35)


def test_a_phase_by_span_while_an_instrument_is_selected(phased: Studio) -> None:
    phased.click("object-forceps1-0")
    phased.keys("g", "z")
    phased.go(9)
    phased.keys("x", "3")
    assert "forceps" not in phased.by_id("span-what").inner_text()
    phased.keys("e")
    phased.eventually(lambda: _phases(phased) == dict.fromkeys(range(10), "suturing"))
    assert not any(one["values"] for one in phased.instances(0, 19))


def test_one_frame_gets_a_phase_by_hand(phased: Studio) -> None:
    phased.keys("d", "d", "g", "2")
    phased.eventually(lambda: _phases(phased) == {2: "dissection"})
    phased.keys("Control+z")
    phased.eventually(lambda: _phases(phased) == {})


def test_problem_frames_are_flagged_listed_exported_and_cleared(studio: Studio, tmp_path: Path) -> None:
    studio.go(300)
    studio.keys("f")
    studio.by_id("flag-note").fill("fog")
    studio.click("flag-reason-smoke")
    studio.eventually(lambda: studio.by_id("flag-badge").count() == 1)
    studio.shot("flagged")
    studio.go(10)
    studio.keys("z", "d", "d", "x", "f", "1")  # a marked range, the reason by its digit
    studio.eventually(lambda: len(studio.get("/api/videos/V1/flags")) == 4)
    studio.keys("Escape")
    studio.click("tab-flags")
    studio.eventually(lambda: studio.by_id("flag-10").count() == 1)
    studio.click("flag-300")
    studio.at_frame(300)
    with studio.page.expect_download() as coming:
        studio.click("export-flags")
    coming.value.save_as(tmp_path / "flags.json")
    rows = json.loads((tmp_path / "flags.json").read_text())
    assert [(row["frame"], row["name"]) for row in rows] == [(k, f"{k:04d}") for k in (10, 11, 12, 300)]
    assert (rows[-1]["reason"], rows[-1]["note"], rows[-1]["author"]) == ("smoke", "fog", "amy")
    studio.click("flag-clear-300")
    studio.eventually(lambda: [row["frame"] for row in studio.get("/api/videos/V1/flags")] == [10, 11, 12])
    studio.eventually(lambda: studio.by_id("flag-300").count() == 0)
    studio.click("flags-clear")
    studio.eventually(lambda: studio.get("/api/videos/V1/flags") == [])
    studio.keys("Control+z")
    studio.eventually(lambda: len(studio.get("/api/videos/V1/flags")) == 3)


def test_a_frame_is_found_by_a_part_of_its_name(studio: Studio) -> None:
    studio.keys("Control+f")
    studio.page.keyboard.type("32")
    studio.keys("Enter")
    studio.by_id("search-result-0").wait_for()
    names = [one.inner_text().split()[0] for one in studio.page.locator("[data-testid^=search-result-]").all()]
    assert names and all("32" in name for name in names) and "0132" in names
    studio.shot("search")
    studio.click(f"search-result-{names.index('0132')}")
    studio.at_frame(132)
    studio.keys("d")
    studio.at_frame(133)  # the keys are back with the picture


def test_the_last_frame_is_there_again_after_reopening(studio: Studio) -> None:
    studio.go(217)
    again = studio.page.context.new_page()
    studio.page.close()
    other = Studio(again, studio.entry).open()
    other.at_frame(217)
    assert other.complaints == []
