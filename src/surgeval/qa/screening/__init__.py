"""Screening of answers for attempts to steer the judge: it flags, it never raises, and it never changes a verdict."""

from surgeval.qa.screening.screen import (
    JUDGED_FORMATS,
    FlagPolicy,
    Screening,
    ScreeningQuality,
    ScreeningSample,
    Suspicion,
    measure_screening,
    sample_suite,
    screen,
)

__all__ = [
    "JUDGED_FORMATS",
    "FlagPolicy",
    "Screening",
    "ScreeningQuality",
    "ScreeningSample",
    "Suspicion",
    "measure_screening",
    "sample_suite",
    "screen",
]
