"""Compare the CSV and JSON files of two demo folders, cell by cell.

    python tools/compare_demo.py BEFORE AFTER [--rename OLD=NEW ...] [--ignore KEY ...] [--tolerance 0]

Prints every file, column, cell and JSON value that differs, and exits with 1 if there is any. What differs between two
runs of the same code (dates, durations, versions) is ignored. `--rename` applies to file names, columns, keys and text
cells of BEFORE, so that a renamed word is no difference.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

# They change with every run. A run's own fingerprint covers its version and settings.
VOLATILE = (
    "created",
    "started",
    "finished",
    "updated",
    "latency",
    "seconds",
    "*_seconds",
    "duration*",
    "version*",
    "commit",
    "host",
    "*sha256",
    "digest",
)
SHOWN = 20  # differences printed per file


@dataclass(frozen=True)
class Comparison:
    """What counts as a difference."""

    renamed: Sequence[tuple[str, str]] = ()
    ignored: Sequence[str] = VOLATILE
    tolerance: float = 0.0

    def new_name(self, text: str) -> str:
        """`text` of the older folder in the words of the newer one."""
        for old, new in self.renamed:
            text = text.replace(old, new)
        return text

    def is_ignored(self, key: str) -> bool:
        """Whether a column or key is left out of the comparison."""
        return any(fnmatch.fnmatch(key, pattern) for pattern in self.ignored)

    def same(self, old: str, new: str) -> bool:
        """Whether two cells are equal: as numbers within the tolerance, otherwise as text after renaming."""
        if self.new_name(old) == new:
            return True
        try:
            return abs(float(old) - float(new)) <= self.tolerance
        except ValueError:
            return False


def compare_folders(old: Path, new: Path, rules: Comparison) -> Iterator[tuple[str, str]]:
    """Differences as (file, sentence)."""
    before = {rules.new_name(name): path for name, path in _files(old).items()}
    after = _files(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield name, f"only in {old if name in before else new}"
        else:
            compare = compare_csv if name.endswith(".csv") else compare_json
            yield from ((name, sentence) for sentence in compare(before[name], after[name], rules))


def _files(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.suffix in (".csv", ".json") and path.is_file()
    }


def compare_csv(old: Path, new: Path, rules: Comparison) -> Iterator[str]:
    """Columns are matched by name, rows by position."""
    (old_columns, old_rows), (new_columns, new_rows) = _read_csv(old), _read_csv(new)
    old_columns = [rules.new_name(column) for column in old_columns]
    if old_columns != new_columns:
        yield f"columns: {', '.join(old_columns)} → {', '.join(new_columns)}"
    if len(old_rows) != len(new_rows):
        yield f"{len(old_rows)} → {len(new_rows)} rows"
    shared = [
        (column, old_columns.index(column), k)
        for k, column in enumerate(new_columns)
        if column in old_columns and not rules.is_ignored(column)
    ]
    for line, (was, now) in enumerate(zip(old_rows, new_rows, strict=False), 2):
        for column, i, k in shared:
            if not rules.same(was[i], now[k]):
                yield f"line {line}, {column}: {was[i]!r} → {now[k]!r}"


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    return (rows[0], rows[1:]) if rows else ([], [])


def compare_json(old: Path, new: Path, rules: Comparison) -> Iterator[str]:
    """Values are matched by their key or position."""
    yield from _compare_values("", json.loads(old.read_bytes()), json.loads(new.read_bytes()), rules)


def _compare_values(place: str, old: Any, new: Any, rules: Comparison) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        before = {rules.new_name(key): value for key, value in old.items()}
        for key in sorted(before.keys() | new.keys()):
            if rules.is_ignored(key):
                continue
            if key not in new or key not in before:
                yield f"{place}.{key}: {'removed' if key in before else 'added'}"
            else:
                yield from _compare_values(f"{place}.{key}", before[key], new[key], rules)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} → {len(new)} items"
        for k, (was, now) in enumerate(zip_longest(old[: len(new)], new[: len(old)])):
            yield from _compare_values(f"{place}[{k}]", was, now, rules)
    elif type(old) is not type(new) or not rules.same(str(old), str(new)):
        yield f"{place}: {old!r} → {new!r}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare the CSV and JSON files of two demo folders.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    parser.add_argument("--ignore", action="append", default=[], metavar="KEY", help="a column or key, * allowed")
    parser.add_argument("--tolerance", type=float, default=0.0, help="largest difference of two equal numbers")
    parser.add_argument("--all", action="store_true", help=f"print every difference, not {SHOWN} per file")
    options = parser.parse_args(arguments)
    for folder in (options.old, options.new):
        if not folder.is_dir():
            parser.error(f"{folder} is not a folder")
    renamed = [(old, new) for old, _, new in (pair.partition("=") for pair in options.rename)]
    rules = Comparison(renamed, (*VOLATILE, *options.ignore), options.tolerance)
    differences: dict[str, list[str]] = {}
    for name, sentence in compare_folders(options.old, options.new, rules):
        differences.setdefault(name, []).append(sentence)
    for name, sentences in differences.items():
        print(name)
        shown = sentences if options.all else sentences[:SHOWN]
        print(*(f"    {sentence}" for sentence in shown), sep="\n")
        if len(shown) < len(sentences):
            print(f"    … and {len(sentences) - len(shown)} more")
    print(f"{len(_files(options.new))} files, {len(differences)} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
