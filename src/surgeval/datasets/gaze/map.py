"""`GazeMap`: what the columns of a gaze table mean. Named formats are maps built in; others are a TOML or JSON file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from surgeval.datasets.formats.mapping import MappingFile, frame_size, one_of, place_of_mapping
from surgeval.files import as_float, format_value

__all__ = ["EGO_EXO", "EYE_GAZE_FIXATIONS", "EYE_GAZE_SAMPLES", "NEUTRAL", "REFLACX", "GazeMap"]

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
UNITS = ("share", "pixels")
ORIGINS = ("top", "bottom")
_COLUMNS = ("x", "y", "time", "end", "duration", "recording", "valid")
_KEYS = frozenset({*_COLUMNS, "time_unit", "rate", "first", "unit", "size", "origin", "separator"})


@dataclass(frozen=True)
class GazeMap(MappingFile):
    """Which column is what; "" means that there is none.

    With `end` or `duration` the rows are fixations, else samples. Without `time` the rows are `rate` per second.

    >>> GazeMap.from_json({"time": "Timestamp", "time_unit": "ms", "x": "GazeX", "y": "GazeY",
    ...                    "unit": "pixels", "size": [1920, 1080]}).seconds
    0.001
    """

    x: str
    y: str
    time: str = ""
    end: str = ""
    duration: str = ""
    recording: str = ""
    valid: str = ""  # rows where it is not 1 or true hold no gaze
    time_unit: str = "s"  # of time, end and duration
    rate: float | None = None  # rows, or units of `time`, per second
    first: float = 0.0  # the time, in its unit, that is 0 s
    unit: str = "share"
    size: tuple[int, int] | None = None  # of the frame, for pixels
    origin: str = "top"
    separator: str = ""

    @property
    def seconds(self) -> float:
        """Seconds per unit of time."""
        return 1 / self.rate if self.rate else SECONDS[self.time_unit]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the table must have."""
        return tuple(
            name for name in (self.recording, self.time, self.end, self.duration, self.x, self.y, self.valid) if name
        )

    @property
    def kind(self) -> Literal["fixations", "samples"]:
        """What the rows are."""
        return "fixations" if self.end or self.duration else "samples"

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str = "mapping") -> Self:
        """From parsed TOML or JSON, every key checked."""
        place = place_of_mapping(data, _KEYS, file)
        texts = {key: place.text(data.get(key, ""), key, empty=key not in ("x", "y")) or "" for key in _COLUMNS}
        separator = place.text(data.get("separator", ""), "separator", empty=True) or ""
        if len(separator.encode()) > 1:
            place.error("wrong-value", f"found {format_value(separator)}, expected one character", "separator")
        rate = data.get("rate")
        per_second = as_float(rate)
        if rate is not None and (per_second is None or not (math.isfinite(per_second) and per_second > 0)):
            place.error(
                "wrong-value", f"found {format_value(rate)}, expected rows per second, a positive number", "rate"
            )
        if not texts["time"] and rate is None:
            place.error(
                "wrong-value",
                "found neither time nor rate, expected a column of times, or how many rows a second has",
                "time",
            )
        result = cls(
            **texts, separator=separator, rate=per_second, first=place.number(data.get("first", 0), "first") or 0.0,
            time_unit=one_of(data.get("time_unit", "s"), tuple(SECONDS), "time_unit", place),
            unit=one_of(data.get("unit", "share"), UNITS, "unit", place), size=frame_size(data.get("size"), place),
            origin=one_of(data.get("origin", "top"), ORIGINS, "origin", place),
        )  # fmt: skip
        if result.end and result.duration:
            place.error("wrong-value", "found both end and duration, expected one of the two", "end")
        return result


NEUTRAL = GazeMap("x", "y", time="t")
REFLACX = GazeMap(
    "x_position", "y_position", time="timestamp_start_fixation", end="timestamp_end_fixation", unit="pixels"
)
# FPOGX and FPOGY are parts of the screen; the columns of the image's own pixels are the ones that can be used.
EYE_GAZE_FIXATIONS = GazeMap(
    "X_ORIGINAL", "Y_ORIGINAL", time="FPOGS", duration="FPOGD", recording="DICOM_ID", valid="FPOGV", unit="pixels"
)
EYE_GAZE_SAMPLES = GazeMap(
    "X_ORIGINAL", "Y_ORIGINAL", time="Time (in secs)", recording="DICOM_ID", valid="FPOGV", unit="pixels"
)
EGO_EXO = GazeMap("x", "y", rate=10.0, unit="pixels", size=(1408, 1408))
