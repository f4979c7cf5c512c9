"""Which videos a phantom dataset has: names, sources, splits, procedures and seeds, all from one seed.

Splits are by video. Of every six videos of a source three are for training, one for validation, two for testing, and
one of the test videos shows the procedure that training never shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from surgeval.errors import BadInput
from surgeval.phantom.script.dice import stream_seed
from surgeval.phantom.script.procedures import ADHESIOLYSIS, BLEEDING, CHOLECYSTECTOMY

SOURCES = ("A", "B", "C")
OUT_OF_DISTRIBUTION = (ADHESIOLYSIS,)
HELD_OUT_WORDINGS = {"train": 0.0, "val": 0.0, "test": 0.5}  # share of questions with held-out wordings

# The k-th video of a source, turned by one per source so that a dataset of two videos has training and test.
_ROTA = (
    ("train", CHOLECYSTECTOMY),
    ("test", CHOLECYSTECTOMY),
    ("train", BLEEDING),
    ("test", ADHESIOLYSIS),
    ("train", CHOLECYSTECTOMY),
    ("val", BLEEDING),
)


@dataclass(frozen=True, slots=True)
class VideoPlan:
    """One video to be written."""

    name: str
    source: str
    split: str
    procedure: str
    seed: int

    @property
    def ood(self) -> bool:
        """Whether its procedure never occurs in training."""
        return self.procedure in OUT_OF_DISTRIBUTION


@dataclass(frozen=True, slots=True)
class Edition:
    """A fixed dataset."""

    name: str
    prefix: str  # of question ids
    seed: int
    videos: int
    seconds: float
    fps_labels: float
    width: int
    height: int


EDITIONS = {"phantom-v1": Edition("phantom-v1", "p1", 10, 18, 60.0, 1.0, 448, 256)}


def edition(name: str) -> Edition:
    """A fixed dataset by name.

    >>> edition("phantom-v1").videos
    18
    """
    if name not in EDITIONS:
        raise BadInput(f"edition: found {name!r}, expected one of {', '.join(EDITIONS)}")
    return EDITIONS[name]


def plan_videos(seed: int, videos: int) -> tuple[VideoPlan, ...]:
    """The videos of a dataset.

    >>> [(v.name, v.split) for v in plan_videos(7, 4)]
    [('A1', 'train'), ('B1', 'test'), ('C1', 'train'), ('A2', 'test')]
    """
    if not 1 <= videos <= 999:
        raise BadInput(f"videos: found {videos}, expected between 1 and 999")
    plans = []
    for k in range(videos):
        source, turn = k % len(SOURCES), k // len(SOURCES)
        split, procedure = _ROTA[(turn + source) % len(_ROTA)]
        name = f"{SOURCES[source]}{turn + 1}"
        plans.append(VideoPlan(name, SOURCES[source], split, procedure, stream_seed("video", seed, name) % 2**31))
    return tuple(plans)
