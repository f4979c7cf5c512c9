"""What can be chosen in protocol `surgxbench`, and the two papers' choices as profiles.

Every field except `batch` and `threads` changes numbers and is written into run.json: two runs with different settings
never share a stored part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from surgeval.errors import BadInput
from surgeval.explain.cleann import CausalSettings
from surgeval.explain.heatmaps import Method
from surgeval.explain.motion import FLOOR, MotionSettings

__all__ = ["PROFILES", "SURGX_TASKS", "SurgXSettings", "profile_settings"]

Profile = Literal["early", "surgxbench"]
PROFILES = ("early", "surgxbench")
SURGX_TASKS = ("instruments", "triplets")
_SPEED = ("batch", "threads")

_CHOICES: dict[str, tuple[str, ...]] = {
    "profile": PROFILES,
    "geometry": ("window", "stretch"),
    "region": ("top", "fixed"),
    "predict": ("delta", "argmax"),
    "over": ("classes", "frames", "minmax"),
    "pool": ("valid", "all"),
    "flow": ("dis", "farneback", "raft", "files"),
    "fit": ("plain", "masked", "robust"),
}
_SHARES = ("keep_top", "threshold", "delta", "motion_top", "grounded_at")


@dataclass(frozen=True, slots=True)
class SurgXSettings:
    """The choices of a run; the defaults are profile `surgxbench`."""

    profile: Profile = "surgxbench"
    tasks: tuple[str, ...] = SURGX_TASKS
    method: Method = field(default_factory=Method)
    geometry: Literal["window", "stretch"] = "window"  # metrics in what the model saw, or the map stretched over all
    region: Literal["top", "fixed"] = "top"
    keep_top: float = 0.2
    positive: bool = True  # a pixel without evidence is never attended, even where the quantile is 0
    threshold: float = 0.3  # of the min-max scaled map, for region="fixed"
    predict: Literal["delta", "argmax"] = "delta"
    delta: float = 0.9
    over: Literal["classes", "frames", "minmax"] = "classes"
    pool: Literal["valid", "all"] = "valid"
    top_k: int = 5
    flow: str = "dis"
    flow_source: str | None = None  # RAFT's weights, or the folder of precomputed flow
    flow_gap: float = 1.5  # seconds to the next frame at most: the papers' videos have one frame a second
    fit: Literal["plain", "masked", "robust"] = "robust"
    motion_top: float = 0.2
    motion_floor: float | None = None  # pixels; None is the flow module's own
    grounded_at: float = 0.5  # "grounded" = AC above this and above chance
    occlusion: bool = True
    curves: int = 24  # frames for deletion and insertion curves, over all videos; 0 for none
    sanity: int = 8  # frames for the randomisation checks; 0 for none
    causal: CausalSettings | None = field(default_factory=CausalSettings)  # of the names in a reply; None for none
    max_tokens: int = 128  # of a reply, at most, where the model answers in words
    every: int = 1  # use every n-th labelled frame of a video
    seed: int = 0
    batch: int = 16
    threads: int = 2

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise BadInput(f"{name}: found {value!r}, expected one of {', '.join(allowed)}")
        for name in _SHARES:
            value = getattr(self, name)
            if not 0 < value < 1:
                raise BadInput(f"{name}: found {value!r}, expected a share between 0 and 1")
        if not self.tasks or not set(self.tasks) <= set(SURGX_TASKS):
            raise BadInput(f"tasks: found {', '.join(self.tasks) or 'none'}, expected {' or '.join(SURGX_TASKS)}")
        for name in ("top_k", "max_tokens", "every", "batch", "threads"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name}: found {getattr(self, name)!r}, expected at least 1")
        if self.flow_source is not None and self.flow not in ("raft", "files"):
            raise BadInput(
                f"flow_source: found {self.flow_source!r} with flow {self.flow}, expected flow raft or files"
            )
        if self.motion_floor is not None and not 0 <= self.motion_floor < float("inf"):
            raise BadInput(f"motion_floor: found {self.motion_floor!r}, expected a number of pixels, 0 or more")
        if not 0 < self.flow_gap < float("inf"):
            raise BadInput(f"flow_gap: found {self.flow_gap!r}, expected a number of seconds above 0")
        for name in ("curves", "sanity", "seed"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name}: found {getattr(self, name)!r}, expected 0 or more")

    @property
    def motion(self) -> MotionSettings:
        """How moving pixels are found."""
        floor = FLOOR if self.motion_floor is None else self.motion_floor
        return MotionSettings(camera=self.fit, keep_top=self.motion_top, floor=floor)

    def record(self) -> dict[str, Any]:
        """What run.json holds: everything that changes a number."""
        plain = {key: value for key, value in asdict(self).items() if key not in (*_SPEED, "method")}
        return {**plain, "tasks": list(self.tasks), "method": self.method.record()}


def profile_settings(profile: str, **changes: Any) -> SurgXSettings:
    """The settings of a paper, with some of them changed.

    >>> profile_settings("early").region, profile_settings("early", region="top").region
    ('fixed', 'top')
    """
    if profile not in PROFILES:
        raise BadInput(f"profile: found {profile!r}, expected one of {', '.join(PROFILES)}")
    unknown = set(changes) - {field.name for field in fields(SurgXSettings)}
    if unknown:
        known = ", ".join(field.name for field in fields(SurgXSettings))
        raise BadInput(f"settings: found {min(unknown)!r}, expected one of {known}")
    return replace(_OF_PROFILE[profile], **changes)


_OF_PROFILE: Mapping[str, SurgXSettings] = {
    "surgxbench": SurgXSettings(),
    # Seed 000: one predicted class, a fixed threshold on the scaled map, all class combinations, one prompt.
    "early": SurgXSettings(
        profile="early", region="fixed", predict="argmax", pool="all", top_k=1, occlusion=False, curves=0, causal=None
    ),
}
