"""Options and checks that several commands share, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.datasets import Dataset
    from surgeval.vocab import LabelSpace

FormatOption = Annotated[
    str | None, typer.Option("--format", help="The source format, where it cannot be told from the files.")
]
LabelsOption = Annotated[
    str | None, typer.Option("--labels", help="Label space: a packaged name (cholect50, …) or a JSON file.")
]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML or JSON file that says what the columns of a table of boxes mean."),
]
BoxesOption = Annotated[
    Path | None,
    typer.Option("--boxes", help="A second dataset whose boxes the instruments take, by video, time and class."),
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=1, max=1_000_000, help="Exchanges or resamples of videos to draw.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def open_named(
    path: Path, format: str | None, labels: str | None, mapping: Path | None = None, boxes: Path | None = None
) -> Dataset:
    """Open a dataset as the options say.

    >>> open_named(Path("nowhere"), None, None)
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere: found no such file or folder, expected a dataset
    """
    from surgeval import vocab
    from surgeval.datasets import open_dataset

    space: LabelSpace | None = vocab.load_labels(labels) if labels else None
    return open_dataset(path, format=format, labels=space, mapping=mapping, boxes=boxes)


def claim_folder(out: Path, mark: str) -> None:
    """Refuse to write into a folder that holds something else than our own earlier output, known by its `mark`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claim_folder(Path(folder), "run.json")  # empty: fine
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: found a file, expected a folder to write to")
    if (out / "run.json").exists() and mark not in ("run.json", "scores.json"):
        raise BadInput(f"{out}: found a run there, expected a folder of its own for this page")
    if out.is_dir() and any(out.iterdir()) and not (out / mark).exists():
        raise BadInput(f"{out}: found other files there, expected a new or empty folder or one with our own {mark}")
