"""From a file name to a frame of the dataset: `VID68/000016.jpg`, `VID68_000016.txt`, `000016`.

The dataset's own names decide where video and frame are cut. A name that could be two frames is refused, never guessed.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from surgeval.datasets.formats.coco.index import COMMON
from surgeval.datasets.io.images import SUFFIXES
from surgeval.datasets.predictions.hint import nearest
from surgeval.datasets.predictions.truth import GroundTruth
from surgeval.files import Location, format_value

__all__ = ["FrameNames"]

_SUFFIXES = frozenset({*SUFFIXES, ".txt"})
Key = tuple[str, str]


class FrameNames:
    """The names that files of a dataset's frames may have."""

    def __init__(self, truth: GroundTruth) -> None:
        self._truth = truth
        self._flat: dict[str, set[Key]] = {}
        for video, frames in truth.names.items():
            for frame in frames:
                key = (video, frame)
                # `convert` writes an underscore in a frame's name as a dash, so that the last underscore cuts.
                for name in {f"{video}_{frame}", f"{video}_{frame.replace('_', '-')}"}:
                    self._flat.setdefault(name, set()).add(key)
                if not truth.others:  # with videos left out, a bare name may belong to one of those
                    self._flat.setdefault(frame, set()).add(key)

    def find(self, name: str, place: Location, field: str) -> Key | None:
        """Video and frame of a file name, or None (told). One in a video that was not chosen is found as well."""
        path = PurePosixPath(name.replace("\\", "/"))
        stem = path.stem if path.suffix.lower() in _SUFFIXES else path.name
        folder = path.parent.name
        if (folder, stem) in self._truth.pairs:
            return folder, stem
        if folder in self._truth.others:
            return folder, stem
        candidates = self._flat.get(stem, set())
        if folder and folder not in COMMON:  # it names a video: a bare frame name would ignore that
            candidates = {key for key in candidates if stem != key[1]}
        if len(candidates) == 1:
            return next(iter(candidates))
        if candidates:
            listed = " or ".join(f"frame {frame} of {video}" for video, frame in sorted(candidates)[:3])
            place.error(
                "frame-ambiguous",
                f"found {format_value(name)}, which could be {listed}, expected a name of one frame",
                field,
            )
            return None
        for video in self._truth.others:
            if stem.startswith(f"{video}_") and len(stem) > len(video) + 1:
                return video, stem[len(video) + 1 :]
        place.error(
            "frame-unknown",
            f"found {format_value(name)}, "
            f"expected the name of a frame of {self._truth.dataset.root}{self._hint(stem, folder)}",
            field,
        )
        return None

    def _hint(self, stem: str, folder: str) -> str:
        names = self._truth.names
        if folder in names:
            near = nearest(stem, names[folder])
            return f" (did you mean '{folder}/{near}'?)" if near else ""
        flat = tuple(f"{video}_{frame}" for video, frames in names.items() for frame in frames)
        near = nearest(stem, flat)
        return f" (did you mean {near!r}?)" if near else f" (such as {flat[0]!r})" if flat else ""
