"""What is done in each procedure: `procedures.json` as plans of phases, their share of the time, and each hand's jobs.

A job names a lane (the trocar and the hand behind it), the triplets it may turn out to be, and its place in the
phase (0 … 1). Every triplet is one of CholecT50's 100.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from surgeval.phantom.script.plan import Errand, PhasePlan, ProcedurePlan

CHOLECYSTECTOMY, BLEEDING, ADHESIOLYSIS = "cholecystectomy", "cholecystectomy with bleeding", "adhesiolysis"


def _phase(table: dict[str, Any]) -> PhasePlan:
    jobs = tuple(Errand(lane, tuple(triplets), *numbers) for lane, triplets, *numbers in table["jobs"])
    return PhasePlan(table["name"], table["weight"], table["site"], jobs)


def _procedures() -> dict[str, ProcedurePlan]:
    tables = json.loads(files(__package__).joinpath("procedures.json").read_text(encoding="utf-8"))
    phases = {key: _phase(table) for key, table in tables["phases"].items()}
    return {
        name: ProcedurePlan(
            name,
            table["anatomy"],
            tuple(phases[key] for key in table["phases"]),
            tuple(table["objects"].items()),
            table["bleeding"],
        )
        for name, table in tables["procedures"].items()
    }


PROCEDURES: dict[str, ProcedurePlan] = _procedures()
