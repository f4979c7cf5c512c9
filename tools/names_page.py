"""Write the lists of `docs/api/names.md`, between its two marks: the public names of every package.

With `--check` it writes nothing and exits with 1 if the page is out of date.
"""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import surgeval

PAGE = Path(__file__).parents[1] / "docs" / "api" / "names.md"
BEGIN, END = "<!-- lists: tools/names_page.py -->", "<!-- end of lists -->"
INTERNAL = ("surgeval.cli", "surgeval.console")  # parts of the command line: no public names
NOT_PUBLIC = {"DESCRIPTOR", "__version__"}


def packages() -> list[str]:
    """The packages with public names, by name."""
    found = [module.name for module in pkgutil.walk_packages(surgeval.__path__, "surgeval.") if module.ispkg]
    return sorted(name for name in found if not name.startswith(INTERNAL))


def public_names(package: str) -> list[str]:
    """What a package exports, without modules."""
    home = import_module(package)
    names = set(getattr(home, "__all__", ())) - NOT_PUBLIC
    kept = (name for name in names if not inspect.ismodule(getattr(home, name)))
    return sorted(kept, key=lambda name: (name.casefold(), name))


def lists() -> str:
    """The Markdown between the marks: the names at the top, then those of each package."""
    parts = []
    for package in ["surgeval", *packages()]:
        if names := public_names(package):
            text = ", ".join(f"`{name}`" for name in names)
            lines = textwrap.wrap(text, 120, break_on_hyphens=False)
            parts.append("\n".join([f"### {package}", "", *lines]))
    return "\n\n".join(parts)


def written(page: str) -> str:
    """The page with up-to-date lists."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{lists()}\n\n{END}{rest.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is out of date")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if check:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
