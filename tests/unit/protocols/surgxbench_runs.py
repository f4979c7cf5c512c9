"""Runs of surgxbench that were never run: the columns of a case as a run stores them, and scores of planted cases."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from surgeval.engine import RunRecord
from surgeval.files import check_stored
from surgeval.protocols.result import RunFiles
from surgeval.protocols.surgxbench.result import SurgXCase, SurgXRunSettings, SurgXScores, _scores, with_flags


def complete(cases: pl.DataFrame) -> pl.DataFrame:
    """Every column of the protocol, null where no case has a value, and a column per flag."""
    columns = [
        pl.col(name).cast(dtype) if name in cases.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in SurgXCase.dtypes().items()
    ]
    return with_flags(cases.with_columns(columns))


def scores_of(name: str, record: RunRecord, cases: pl.DataFrame) -> SurgXScores:
    """The scores of a run with these cases."""
    settings = check_stored(SurgXRunSettings, record.config, "run.json")
    return _scores(name, RunFiles(Path("run"), record, settings), complete(cases))
