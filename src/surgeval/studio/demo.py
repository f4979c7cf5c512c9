"""Something to try the studio on: a phantom operation with proposals of the embedded detector."""

from __future__ import annotations

from pathlib import Path

from surgeval.phantom import write_phantom
from surgeval.progress import advance, start_phase
from surgeval.records import ImageRef
from surgeval.studio.media import find_films, register
from surgeval.studio.numbering import number_video
from surgeval.studio.proposals import ProposalStretch, add_proposals, propose
from surgeval.studio.schema import space_schema
from surgeval.studio.store import STORE_FILE, Database, Request, apply, reading
from surgeval.vocab import load_labels

__all__ = ["make_demo"]

DETECTOR = "tdnet-p"
_SECONDS = 60.0


def make_demo(folder: str | Path, *, seed: int = 5) -> Path:
    """Render a video and look at it, unless that was done before; the folder that the studio opens."""
    project = write_phantom(folder, seed=seed, videos=1, seconds=_SECONDS) / "frames"
    database = Database(project / STORE_FILE)
    try:
        films = find_films(project)
        pictures = register(database, films)
        with database.reading() as connection:
            begun = reading.setting(connection, "demo") is not None
        if not begun:
            _label(database, films[0].id, list(enumerate(pictures[films[0].id])), films[0].size())
    finally:
        database.close()
    return project


def _label(database: Database, video: str, frames: list[tuple[int, ImageRef]], size: tuple[int, int]) -> None:
    schema = space_schema(load_labels("phantom"))
    apply(database, Request("demo.schema", "studio", "schema.set", {"name": schema.name, "source": schema.source}))
    start_phase("looking", frames=len(frames))
    proposals = propose(DETECTOR, frames, size=size, advance=lambda count: advance("frames", count))
    whole = ProposalStretch(video, 0, len(frames) - 1)
    count = add_proposals(database, whole, proposals, source=DETECTOR, author="studio")
    number_video(database, video, author="studio")
    apply(database, Request("demo.done", "studio", "setting.set", {"key": "demo", "value": count}))
