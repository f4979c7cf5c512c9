"""What the two `Detection` classes share: a mode, videos that end one after another, frames that must come in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from surgeval.compat.recognition import MODES
from surgeval.errors import BadInput

__all__ = ["ByVideo"]


class _Counted(Protocol):
    @property
    def n_frames(self) -> int: ...


V = TypeVar("V", bound=_Counted)


class ByVideo(Generic[V]):
    """Videos numbered from 1 on, the current one last."""

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            raise BadInput(f"mode {mode!r}: expected one of {', '.join(MODES)}")
        self.mode = mode
        self._videos: dict[int, V] = {}
        self.reset()

    def reset(self) -> None:
        """Start over. In legacy mode videos after the first stay in the global numbers until overwritten."""
        if self.mode == "fixed":
            self._videos = {}
        self._count = 0
        self.video_end()

    def reset_global(self) -> None:
        """Start over."""
        self.reset()

    def video_end(self) -> None:
        """End the current video."""
        if self.mode == "fixed" and self._count and not self._videos[self._count].n_frames:
            return
        self._count += 1
        self._videos[self._count] = self._new_video()
        self._ended = True
        self._forget()

    def _new_video(self) -> V:
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop what was computed from fewer frames."""

    def _check_frames(self, targets: Sequence[Any], predictions: Sequence[Any], format: str) -> None:
        if format not in ("list", "dict"):
            raise BadInput(f"format {format!r}: expected list or dict")
        for kind, frames in (("targets", targets), ("predictions", predictions)):
            _refuse_other(frames, f"update: {kind}")
        if len(targets) != len(predictions) and self.mode == "fixed":
            raise BadInput(
                f"update: found {len(targets)} frames of targets and {len(predictions)} of predictions, "
                "expected the same frames in both"
            )


def _refuse_other(frames: Any, where: str) -> None:
    """Refuse what is no sequence of frames, each a sequence of boxes."""
    for sequence, meant in ((frames, "a list of frames"), *((frame, "a list of boxes") for frame in _listed(frames))):
        if _listed(sequence) is not sequence:
            raise BadInput(f"{where}: found {sequence!r:.60}, expected {meant}")


def _listed(value: Any) -> Any:
    """The value itself where it has a length and can be walked, else nothing."""
    return value if hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, str) else ()
