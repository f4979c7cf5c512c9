from __future__ import annotations

import os
from pathlib import Path

import pytest

from surgeval.datasets.predictions import read_detections
from surgeval.errors import BadInput
from surgeval.phantom import write_phantom


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    from surgeval.datasets import open_dataset
    from surgeval.protocols.triplets import score_triplets

    data = write_phantom(tmp_path / "D", seed=3, videos=1, seconds=3, width=128, height=96)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(BadInput, match="pipe"):
        read_detections(tmp_path / "pipe.csv", open_dataset(data))
    with pytest.raises(BadInput, match=r"pipe\.csv"):
        score_triplets(data, tmp_path / "pipe.csv", resamples=20)
