"""The declarations of protocols that are one module.

A protocol that is a package declares itself in its `__init__`. Listing protocols imports every declaration, but must
not import what protocols compute with (0.7 s of processor time for `quality`), so one module is declared here.
"""

from __future__ import annotations

from surgeval.protocols.descriptor import Command, Descriptor

__all__ = ["QUALITY"]

_QUALITY = "surgeval.protocols.quality"
QUALITY = Descriptor(
    name="quality",
    question="Which frames are unusable?",
    load=f"{_QUALITY}:load_quality",
    page=f"{_QUALITY}:write_page_of",
    pair=f"{_QUALITY}:pair_quality",
    evaluate=f"{_QUALITY}:run_quality",
    run=Command(
        f"{_QUALITY}:run_quality",
        examples=("surgeval run quality --data frames --out runs/quality",),
        text="Nothing is deleted. Exit code 1 when a frame could not be read; a run that was stopped is resumed by the "
        "same command. `surgeval data check --quality` does the same beside its own checks.",
        tables=f"{_QUALITY}:printed_tables",
        mark="run.json",
    ),
    measures=f"{_QUALITY}:MEASURES",
    order=90,
)
