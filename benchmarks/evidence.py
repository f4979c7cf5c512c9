"""How fast a page with many cases opens and filters in Chromium, beside a plain HTML table of the same rows.

    python benchmarks/evidence.py [--cases 100000]

Opening is from the start of the navigation until the rows are there (of the plain table: until it is loaded); a filter
or a search from the reader's act until the browser has painted the result. The ratio is the plain table's time, taken
once, by the page's median.
"""

from __future__ import annotations

import argparse
import html
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import polars as pl
from playwright.sync_api import Page, sync_playwright

from surgeval.pages import Evidence, Section, write_page

WORDS = ("is", "the", "clip", "visible", "grasper", "hook", "retracting", "gallbladder", "which", "instrument",
         "dissects", "cystic", "duct", "artery")  # fmt: skip
VERDICTS = ("right", "wrong", "late", "invalid")
# The reader's act, then the next frame and one more: what it changed has been painted by then.
PAINTED = """async (act) => {
  const began = performance.now();
  new Function(act)();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}"""
PLAIN = """const rows = document.querySelectorAll('tbody tr');
rows.forEach((row) => { row.hidden = !row.textContent.includes(%r); });"""
CHOOSE = """const select = document.querySelectorAll('.ev-tools select')[0];
select.value = '1'; select.dispatchEvent(new Event('change'));"""
SORT = """const select = [...document.querySelectorAll('.ev-tools select')].at(-1);
select.value = 'latency'; select.dispatchEvent(new Event('change'));"""
SCROLL = "document.querySelector('.ev-list').scrollTop = 4e6"


READY = "Number(document.querySelector('.evidence').dataset.ready)"  # the rows are there, counted and laid out
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def _search(words: str) -> str:
    """Typing, then Enter."""
    return (
        f"const own = document.querySelector('.ev-tools input'); own.value = {words!r};"
        "own.dispatchEvent(new Event('input')); own.form.dispatchEvent(new Event('submit', {cancelable: true}));"
    )


ACTS = (("open", "", ""), ("filter", CHOOSE, PLAIN % "wrong"), ("sort", SORT, ""),
        ("search", _search("hook duct"), PLAIN % "hook"), ("scroll", SCROLL, ""))  # fmt: skip


def cases(count: int) -> pl.DataFrame:
    """Questions with an answer each, some of them wrong, late or invalid."""
    draw = random.Random(0)

    def text(words: int) -> str:
        return " ".join(draw.choice(WORDS) for _ in range(words))

    return pl.DataFrame(
        [
            {"id": f"q{n}", "video": f"VID{n // 500}", "frame": f"{n % 500} s", "asked": f"{text(12)}?",
             "answer": text(8), "reference": text(2), "verdict": draw.choices(VERDICTS, (60, 30, 5, 5))[0],
             "reason": "the answer is another one", "group": f"group {n % 5}", "latency": draw.random() * 10}
            for n in range(count)
        ]
    )  # fmt: skip


def opened(page: Page, path: Path, ready: str, clock: str) -> float:
    """Milliseconds from the start of the navigation, by the browser's own clock."""
    page.goto(path.as_uri(), timeout=300_000)
    page.wait_for_selector(ready, timeout=300_000, state="attached")
    return float(page.evaluate(clock))


def main() -> None:
    """Print a line for each act: milliseconds of page and table, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without the plain table, which takes minutes")
    options = parser.parse_args()
    table = cases(options.cases)
    chromium = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        ours, plain = Path(folder) / "report.html", Path(folder) / "plain.html"
        shown = Evidence(model="net", cases=table, facets={"group": "Group", "video": "Video"},
                         numbers={"latency": "latency in s"}, case="question")  # fmt: skip
        began = time.perf_counter()
        write_page(ours, "Evidence", [Section("Each question", evidence=(shown,))])
        written = time.perf_counter() - began
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>"
                       for row in table.iter_rows())  # fmt: skip
        plain.write_text(f"<!doctype html><meta charset=utf-8><table><tbody>{rows}</tbody></table>", "utf-8")
        print(f"{options.cases} cases: page {ours.stat().st_size / 1e6:.1f} MB, written in {written:.1f} s; "
              f"plain table {plain.stat().st_size / 1e6:.1f} MB")  # fmt: skip
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        times: dict[str, tuple[list[float], list[float]]] = {}
        for turn in range(options.repeats):
            # The page's policy forbids `new Function`, which the measuring needs: it is lifted for the measuring.
            page, peer = (browser.new_context(bypass_csp=True).new_page() for _ in range(2))
            for name, act, other in ACTS:
                mine, theirs = times.setdefault(name, ([], []))
                if name == "open":
                    mine.append(opened(page, ours, ".evidence[data-ready]", READY))
                    theirs += [opened(peer, plain, "tbody tr:last-child", LOADED)] if not turn + options.alone else []
                else:
                    mine.append(float(page.evaluate(PAINTED, act)))
                    theirs += [float(peer.evaluate(PAINTED, other))] if other and not turn + options.alone else []
            for one in (page, peer):
                one.context.close()
        browser.close()
    for name, (mine, theirs) in times.items():
        here = statistics.median(mine)
        slow = statistics.median(theirs) if theirs else 0.0
        beside = f", plain table {slow:7.0f} ms, ratio {slow / here:6.1f}" if theirs else ""
        print(f"{name:8} {here:7.0f} ms{beside}")


if __name__ == "__main__":
    main()
