"""Write the documentation pages that derive from the declared numbers: `docs/glossary.md` and `docs/measures.md`.

With `--check` it writes nothing and exits with 1 if a page is out of date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from surgeval.pages import glossary_page
from surgeval.protocols.registry import PROTOCOLS
from surgeval.stats import Measure, measures_table

DOCS = Path(__file__).parents[1] / "docs"
_HEAD = """# Every number

The numbers that each protocol declares (`surgeval.stats.Measure`): what they mean, what is better, what a model without
skill reaches, the question they answer, and how they combine. A page ends with the recipe of each of its numbers.

Questions: *right* (is the model right?), *reason* (for the right reason?), *fooled* (can it be talked out of it?),
*stable* (does the answer stay when nothing that matters changes?).
"""


def declared() -> dict[str, tuple[Measure, ...]]:
    """The declared numbers of surgeval's own protocols, by name."""
    return {name: PROTOCOLS[name].declared_measures() for name in PROTOCOLS if PROTOCOLS.is_builtin(name)}


def measures_page() -> str:
    """The page on every number."""
    parts = [_HEAD]
    for name, measures in declared().items():
        if measures:
            table = measures_table(measures)
            rows = ["| " + " | ".join(_cell(value) for value in row) + " |" for row in table.iter_rows()]
            heads = [f"| {' | '.join(table.columns)} |", f"|{' --- |' * table.width}"]
            parts.append("\n".join([f"## {name}\n", *heads, *rows, ""]))
    return "\n".join(parts)


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("|A|", "&#124;A&#124;").replace("|", ", ")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the pages that derive from the declared numbers.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    everything = [measure for measures in declared().values() for measure in measures]
    pages = {DOCS / "glossary.md": glossary_page(everything), DOCS / "measures.md": measures_page()}
    stale = [path for path, text in pages.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name} is out of date" if options.check else f"wrote {path.name}")
        if not options.check:
            path.write_text(pages[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
