"""Whether datumaro, the library of CVAT's makers, reads our CVAT files as we do.

datumaro is no dependency: SURGEVAL_DATUMARO names a Python that has it (`python -m venv x`, then
`x/bin/pip install datumaro`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from surgeval.datasets import MemoryDataset, convert
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import load_labels

SPACE = load_labels("prostatd")
PEER = """
import json, sys, datumaro
found = []
for item in datumaro.Dataset.import_from(sys.argv[1], "cvat"):
    for shape in item.annotations:
        if not shape.attributes.pop("outside"):
            keep = {key: shape.attributes.get(key) for key in ("Action", "Target", "track", "occluded")}
            found.append([item.attributes["frame"], shape.type.name, shape.label, list(shape.points), keep])
print(json.dumps(found))
"""


def video() -> tuple[list[Frame], list[list[object]]]:
    """Twenty frames of a box and an outline with gaps, and what a reader should find in them."""
    frames, found = [], list[list[object]]()
    for number in range(20):
        triplet = Triplet(*SPACE.triplets[(7 * number) % 89])
        outline = ((5.0, 5.0), (60.5 + number, 8.0), (40.0, 70.25))
        box, tip = Box(10.0 + number, 20.0, 30.0, 40.0), Box(5, 5, 55.5 + number, 65.25)
        both = (Instance(triplet, box, track=3, attributes={"occluded": True}),
                Instance(triplet, tip, polygon=outline, track=4))  # fmt: skip
        instances = both if number % 7 else ()
        frames.append(Frame("psiv2", f"{number:06d}", number, None, None, 640, 480, instances))
        for one in instances:
            points = [value for point in one.polygon for value in point] or list(box.corners)
            said = {"Action": SPACE.verbs[triplet.verb], "Target": SPACE.targets[triplet.target],
                    "track": str(one.track), "occluded": not one.polygon}  # fmt: skip
            kind = "polygon" if one.polygon else "bbox"
            found.append([number, kind, triplet.instrument, points, said])
    return frames, found


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    peer = os.environ.get("SURGEVAL_DATUMARO")
    if not peer:
        print("SURGEVAL_DATUMARO is not set: datumaro is not at hand, nothing compared")
        return 0
    frames, expected = video()
    with tempfile.TemporaryDirectory() as folder:
        convert(MemoryDataset(SPACE, frames), Path(folder) / "out", "cvat")
        place = Path(folder) / "out" / "psiv2"
        done = subprocess.run([peer, "-c", PEER, place], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    same = sorted(map(json.dumps, found)) == sorted(map(json.dumps, expected))
    print(f"datumaro reads {len(found)} of {len(expected)} shapes, {'all' if same else 'NOT all'} as they were written")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
