"""A process that edits a studio project as fast as it can and says on standard output what was acknowledged."""

from __future__ import annotations

import sys

from surgeval.studio.store import Database, Request, apply


def main(folder: str, start: int, count: int) -> None:
    with Database(f"{folder}/studio.sqlite") as database:
        print("ready", flush=True)
        for number in range(start, start + count):
            request = _request(number)
            apply(database, request)
            print(request.id, flush=True)


def _request(number: int) -> Request:
    """Every edit leaves a trace that shows whether it was made, and made twice."""
    id, frame = f"edit-{number}", number % 50
    if number % 4 == 1:
        payload = {"ids": [f"a{frame}"], "dx": 1.0, "dy": 0.0}
        return Request(id, "amy", "instances.move", payload)
    if number % 4 == 2:
        box = {
            "id": f"n{number}",
            "video": "v",
            "frame": frame,
            "group": "tools",
            "name": "forceps",
            "box": [1, 2, 3, 4],
        }
        return Request(id, "amy", "instances.add", {"instances": [box]})
    if number % 4 == 3:
        tracks = [{"group": "tools", "name": "scissors", "number": 1}]
        values = {"action": "cut" if number % 8 == 3 else "dissect"}
        payload = {"id": f"s{number}", "video": "v", "tracks": tracks, "values": values, "first": 5, "last": 44}
        return Request(id, "amy", "span.add", payload)
    return Request(id, "amy", "frames.flag", {"video": "v", "first": frame, "last": frame, "reason": id})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
