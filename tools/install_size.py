"""What `pip install .` without extras puts on a disk, by distribution: `python tools/install_size.py`.

Sizes are those of the installed files, read from the metadata of the environment that runs this, so no second
environment has to be made. A dependency of several others is counted once, by itself.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution


def needed(name: str, seen: set[str]) -> set[str]:
    """The distributions that installing this one without extras pulls in."""
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return seen - {name}
    for line in lines:
        other = re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0].lower().replace("_", "-")
        if "extra ==" not in line and other not in seen:
            seen.add(other)
            seen = needed(other, seen)
    return seen


def megabytes(name: str) -> float:
    """The size of its files."""
    files = distribution(name).files or []
    return sum(place.stat().st_size for file in files if (place := file.locate()).is_file()) / 1e6  # type: ignore[attr-defined]


def main() -> None:
    """Print the table, largest first."""
    sizes = {name: megabytes(name) for name in needed("surgeval", set())}
    large = {name: size for name, size in sizes.items() if size >= 5}
    lines = ["| package | MB |", "| --- | ---: |"]
    lines += [f"| {name} | {size:.0f} |" for name, size in sorted(large.items(), key=lambda item: -item[1])]
    lines += [f"| {len(sizes) - len(large)} others | {sum(sizes.values()) - sum(large.values()):.0f} |"]
    lines += [f"| together | {sum(sizes.values()):.0f} |"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
