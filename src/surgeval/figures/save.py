"""Figures as files in another process: a page does not wait for its SVG and PNG files one after the other.

vl-convert holds Python's lock while it draws (60 ms a figure, 0.6 s for the first), so threads would not help.
`surgeval.pages` starts this module as a child process and keeps it for the pages that follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from surgeval.figures.theme import Figure, rasterise
from surgeval.files import failure_reason, write_atomically


def save_files(figures: Mapping[str, Figure], folder: Path) -> None:
    """Write each figure to its file below the folder: a path that ends in .svg or .png."""
    drawn: dict[int, str] = {}
    for name, figure in figures.items():
        svg = drawn.setdefault(id(figure), "") or figure.svg()
        drawn[id(figure)] = svg
        data = svg.encode() if name.endswith(".svg") else rasterise(svg)
        write_atomically(folder / name, data)


def request_line(figures: Mapping[str, Figure], folder: Path) -> bytes:
    """What `main` reads: the figures, each once, and the number of the figure behind each file."""
    each = {id(figure): figure for figure in figures.values()}
    numbers = {key: number for number, key in enumerate(each)}
    request = {
        "folder": str(folder),
        "figures": [asdict(figure) for figure in each.values()],
        "files": {name: numbers[id(figure)] for name, figure in figures.items()},
    }
    return json.dumps(request).encode() + b"\n"


def main(requests: BinaryIO, replies: BinaryIO) -> None:
    """In the child process: save the figures of each line and reply with an empty line, or why it failed."""
    for line in requests:
        request = json.loads(line)
        figures = [Figure(**fields) for fields in request["figures"]]
        fault = ""
        try:
            save_files({name: figures[k] for name, k in request["files"].items()}, Path(request["folder"]))
        except OSError as error:
            fault = failure_reason(error)
        except ValueError as error:  # vl-convert's word for a specification that it cannot draw
            fault = str(error).splitlines()[0]
        replies.write(fault.encode("utf-8", "replace") + b"\n")
        replies.flush()
