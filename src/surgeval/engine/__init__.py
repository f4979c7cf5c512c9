"""Running units and storing parts: a run is a folder that can be killed at any moment and resumed.

`run(units, worker, folder=…, manifest=…)` is the whole interface; `load_cases(folder)` reads what it made. A worker's
cases must follow from its payload alone (seeds included): then a resumed run ends with the bytes of an uninterrupted
one, whatever the executor.
"""

from surgeval.engine._canonical import canonical_json, fingerprint
from surgeval.engine._evaluate import Worker
from surgeval.engine._executors import Executor, worker_index
from surgeval.engine._folder import check_filled, load_cases, load_units
from surgeval.engine._manifest import (
    COMPLETE,
    Manifest,
    RunRecord,
    library_versions,
    load_record,
    save_record,
    save_scored,
)
from surgeval.engine._run import run
from surgeval.engine._summary import FailureGroup, RunInterrupted, RunSummary
from surgeval.engine._units import Job, Unit
from surgeval.files import folder_lock

__all__ = [
    "COMPLETE",
    "Executor",
    "FailureGroup",
    "Job",
    "Manifest",
    "RunInterrupted",
    "RunRecord",
    "RunSummary",
    "Unit",
    "Worker",
    "canonical_json",
    "check_filled",
    "fingerprint",
    "folder_lock",
    "library_versions",
    "load_cases",
    "load_record",
    "load_units",
    "run",
    "save_record",
    "save_scored",
    "worker_index",
]
