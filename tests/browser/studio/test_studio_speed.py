"""The next frame comes about as quickly as on a page without annotations; the benchmark measures at full size."""

from __future__ import annotations

import statistics

import pytest
from benchmarks.studio_page import open_plain, step_times
from tests.browser.studio.driver import Studio, track

pytestmark = pytest.mark.browser


def test_annotations_do_not_slow_the_next_frame_down(studio: Studio) -> None:
    for number in range(6):
        studio.post({"id": f"many-{number}", "kind": "instances.add", "payload": {"instances": track(
            number + 1, range(330), box=(10 + 45 * number, 20 + 20 * number, 40, 40),
            values={"action": "grasp", "target": "prostate"})}})  # fmt: skip
    studio.page.reload()
    studio.ready()
    ours = step_times(studio.page, 25)
    plain = studio.page.context.new_page()
    open_plain(plain, studio.address, "V1")
    bare = step_times(plain, 25)
    assert len(ours) >= 25 and len(bare) >= 25
    assert statistics.median(ours) < 8 * statistics.median(bare), (ours, bare)
