from __future__ import annotations

import os
from pathlib import Path

import pytest

from surgeval.datasets.predictions import read_detections
from surgeval.errors import BadInput, SurgevalError
from surgeval.phantom import write_phantom


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    from surgeval.datasets import open_dataset
    from surgeval.protocols.triplets import score_triplets

    data = write_phantom(tmp_path / "D", seed=3, videos=1, seconds=3, width=128, height=96)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(BadInput, match="pipe"):
        read_detections(tmp_path / "pipe.csv", open_dataset(data))
    with pytest.raises(BadInput, match=r"pipe\.csv"):
        score_triplets(tmp_path / "pipe.csv", data)


@pytest.mark.parametrize("name", ["pipe.parquet", "pipe.csv", "pipe.json"])
def test_a_pipe_of_any_kind_is_refused_by_every_reader(tmp_path: Path, name: str) -> None:
    from surgeval.datasets import open_dataset
    from surgeval.datasets.predictions import read_recognition
    from surgeval.protocols.triplets import score_triplets

    data = write_phantom(tmp_path / "D", seed=3, videos=1, seconds=3, width=128, height=96)
    dataset = open_dataset(data)
    os.mkfifo(tmp_path / name)
    (tmp_path / f"endless-{name}").symlink_to("/dev/zero")
    for path in (tmp_path / name, tmp_path / f"endless-{name}"):
        for read in (
            lambda path=path: read_detections(path, dataset),
            lambda path=path: read_detections(path, dataset, format="table"),
            lambda path=path: read_recognition(path, dataset),
            lambda path=path: score_triplets(path, data),
        ):
            with pytest.raises(SurgevalError, match="pipe"):
                read()


def test_a_run_whose_files_are_pipes_is_refused(tmp_path: Path) -> None:
    from surgeval.engine import load_record
    from surgeval.protocols.triplets import load_triplets

    for name in ("scores.json", "details.json", "replicates.parquet", "run.json"):
        os.mkfifo(tmp_path / name)
    for load in (load_record, load_triplets):
        with pytest.raises(SurgevalError, match="found a named pipe"):
            load(tmp_path)
