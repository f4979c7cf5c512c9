"""The studio's page in a browser: from the key to the painted frame, opening, and the server's memory.

    python benchmarks/studio_page.py [--size FRAMES INSTANCES]...

Without sizes: 7 200 frames with 20 000 instances (2 hours at 1 fps), then 100 000 with 300 000 (a video at 20 fps).
The peer is a page without any annotation in the same browser: on the key it shows the next picture, which it has loaded
ahead. The ratio says what annotations, lanes and lists cost. Needs Chromium and the built page.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Page, sync_playwright

from surgeval.studio.store import STORE_FILE, Database, Request, apply

STEPS = 60
CHUNK = 20_000
LINKS = 5_000  # to one file: file systems allow some ten thousands
CLASSES = ("scissors", "forceps", "grasper", "aspirator")
SIZES = ((7_200, 20_000), (100_000, 300_000))
WATCH = """(key) => {
  window.painted = [];
  let pressed = 0;
  addEventListener('keydown', (event) => { if (event.key === key) pressed = event.timeStamp }, true);
  const channel = new MessageChannel();
  channel.port1.onmessage = () => painted.push(performance.now() - pressed);  // handed to the screen
  new MutationObserver(() => requestAnimationFrame(() => channel.port2.postMessage(0)))
    .observe(document.querySelector('[data-shown]'), {attributes: true, attributeFilter: ['data-shown']});
}"""
PLAIN = """<!doctype html><body data-shown=0><div></div><script>
  const loaded = new Map();
  const load = (frame) => {
    if (!loaded.has(frame)) {
      const image = new Image();
      image.src = 'frames/VIDEO/' + frame;
      loaded.set(frame, image.decode().then(() => image));
    }
    return loaded.get(frame);
  };
  let frame = 0;
  const show = async () => {
    const wanted = frame;
    const image = await load(wanted);
    document.querySelector('div').replaceChildren(image);
    document.body.dataset.shown = wanted;
    for (let k = 1; k < 7; k++) load(wanted + k);
  };
  addEventListener('keydown', (event) => { if (event.key === 'd') { frame += 1; show() } });
  show();
</script>"""


def step_times(page: Page, steps: int = STEPS, key: str = "d") -> list[float]:
    """Milliseconds from each press of the key to the frame it leads to, one press after the other."""
    page.evaluate(WATCH, key)
    for done in range(steps):
        page.keyboard.press(key)
        for _ in range(1000):
            if page.evaluate("painted.length") > done:
                break
            page.wait_for_timeout(5)
    found: list[float] = page.evaluate("painted")
    return found


def open_plain(page: Page, address: str, video: str) -> None:
    """The peer: the same pictures from the same server, and nothing else."""
    body = PLAIN.replace("VIDEO", video)
    page.route("**/plain", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(f"{address}plain")
    page.wait_for_selector("img")


def make_project(folder: Path, frames: int, instances: int) -> None:
    """A video of image files (links to a few) with tracks and spans."""
    video = folder / "V1"
    video.mkdir(parents=True)
    for source in range(-(-frames // LINKS)):
        first = source * LINKS
        image = Image.new("RGB", (854, 480), (110, 30 + source % 40, 30))
        ImageDraw.Draw(image).rectangle((300, 200, 420, 300), fill=(180, 180, 190))
        image.save(video / f"{first:06d}.jpg")
        for frame in range(first + 1, min(frames, first + LINKS)):
            os.link(video / f"{first:06d}.jpg", video / f"{frame:06d}.jpg")
    with Database(folder / STORE_FILE) as database:

        def edit(kind: str, payload: dict[str, Any]) -> None:
            apply(database, Request(uuid.uuid4().hex, "amy", kind, payload))

        edit("video.add", {"id": "V1", "width": 854, "height": 480})
        for first in range(0, frames, CHUNK):
            names = [f"{k:06d}" for k in range(first, min(frames, first + CHUNK))]
            edit("frames.add", {"video": "V1", "first": first, "names": names})
        for first in range(0, instances, CHUNK):
            rows = [_instance(k, frames, instances) for k in range(first, min(instances, first + CHUNK))]
            edit("instances.add", {"instances": rows})
        for k in range(200):
            at, track = k * frames // 200, {"group": "tools", "name": CLASSES[k % 4], "number": 1}
            edit("span.add", {"id": f"s{k}", "video": "V1", "tracks": [track], "values": {"action": "null"},
                              "first": at, "last": at + frames // 250})  # fmt: skip


def _instance(k: int, frames: int, instances: int) -> dict[str, Any]:
    frame, turn = k * frames // instances, k % 12
    return {
        "id": f"i{k}", "video": "V1", "frame": frame, "group": "tools", "name": CLASSES[turn % 4],
        "box": [40.0 * turn + frame % 90, 30.0 * turn, 90.0, 70.0], "track": 1 + turn // 4,
        "values": {"action": "retract", "target": "prostate"},
    }  # fmt: skip


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """The studio as its own process: its address, with the token, and process number."""
    command = [sys.executable, "-m", "surgeval", "studio", str(folder), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = next(m for line in process.stdout if (m := re.search(r"http://\S+", line)))
            yield found[0], process.pid
        finally:
            process.terminate()


def most_memory(process: int) -> float:
    """The largest resident memory of a process so far, in MB."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else float("nan")


def measure(page: Page, frames: int, instances: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "op"
        make_project(folder, frames, instances)
        begun = time.perf_counter()
        with served(folder) as (address, process):
            started = time.perf_counter() - begun
            begun = time.perf_counter()
            page.goto(address)
            page.wait_for_selector("[data-testid=stage] img")
            opened = time.perf_counter() - begun
            page.wait_for_timeout(500)
            near = step_times(page)
            page.get_by_test_id("frame-number").fill(str(frames // 2))
            page.keyboard.press("Enter")
            page.wait_for_selector(f"[data-shown='{frames // 2}']")
            page.wait_for_timeout(500)
            far = step_times(page)
            memory = most_memory(process)
            open_plain(page, address.partition("?")[0], "V1")
            plain = step_times(page)
    ours = statistics.median(near + far)
    return {
        "start of the server, s": started, "opening the page, s": opened, "key to paint, median ms": ours,
        "key to paint, 95 %, ms": statistics.quantiles(near + far, n=20)[-1],
        "plain page, median ms": statistics.median(plain), "studio / plain": ours / statistics.median(plain),
        "server's memory, MB": memory,
    }  # fmt: skip


def main() -> None:
    reader = argparse.ArgumentParser(description="The studio's page in a browser, beside a page without annotations.")
    reader.add_argument("--size", nargs=2, type=int, action="append", metavar=("FRAMES", "INSTANCES"))
    sizes = tuple((frames, instances) for frames, instances in reader.parse_args().size or SIZES)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no chromium or google-chrome on the PATH")
    columns = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for frames, instances in sizes:
            context = browser.new_context(viewport={"width": 1366, "height": 768})
            columns.append(measure(context.new_page(), frames, instances))
            context.close()
        browser.close()
    print(f"{'frames / instances':28}" + "".join(f"{f'{f} / {i}':>20}" for f, i in sizes))
    for row in columns[0]:
        print(f"{row:28}" + "".join(f"{column[row]:20.2f}" for column in columns))


if __name__ == "__main__":
    main()
