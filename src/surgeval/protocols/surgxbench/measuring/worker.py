"""One unit of a run: a video, looked at by one model. Opens dataset and model once per process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from surgeval.datasets import Dataset, Problem, open_dataset
from surgeval.engine import worker_index
from surgeval.errors import BadInput
from surgeval.explain.flow import FlowMethod, open_flow
from surgeval.explain.heatmaps import heatmaps
from surgeval.models import Contrastive, Generative, open_model
from surgeval.progress import advance
from surgeval.protocols.surgxbench.measuring.asked import AskedModel
from surgeval.protocols.surgxbench.measuring.checks import check_answers, check_prompts
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame, Reader, Unseen, batches
from surgeval.protocols.surgxbench.measuring.instruments import instrument_cases, reference_cases, to_device
from surgeval.protocols.surgxbench.measuring.measure import classes_present
from surgeval.protocols.surgxbench.measuring.triplets import ars_cases, triplet_cases
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.records import Case, Frame
from surgeval.vocab import TripletPrompts, instrument_prompts, triplet_prompts, verb_prompt

if TYPE_CHECKING:
    from surgeval.models.contrastive import TextBank

__all__ = ["VideoWorker", "boxed_frames", "labelled_frames", "with_boxes"]


@dataclass(frozen=True)
class VideoWorker:
    """The worker: everything it needs is plain text and numbers, so it can be sent to another process."""

    data: str
    format: str | None
    labels: str | None
    model: str
    device: str
    dtype: str
    settings: SurgXSettings
    boxes: str | None = None  # a second dataset that has the boxes
    mapping: str | None = None  # a file that describes a table
    cores: int | None = None  # of each of several processes; alone, torch takes what it likes

    @cached_property
    def dataset(self) -> Dataset:
        """Opened when first needed."""
        return open_dataset(self.data, self.format, self.labels, mapping=self.mapping, boxes=self.boxes)

    @cached_property
    def net(self) -> Contrastive | Generative:
        """The model under test; several processes on a machine with several GPUs share them out."""
        device = self.device
        if device == "cuda" and torch.cuda.is_available():
            device = f"cuda:{worker_index() % torch.cuda.device_count()}"
        return open_model(self.model, device=device, dtype=self.dtype)

    @cached_property
    def asked(self) -> AskedModel | None:
        """The model as one that answers in words; None where it scores prompts."""
        return AskedModel(self.net, self.dataset.space, self.settings) if isinstance(self.net, Generative) else None

    @property
    def scorer(self) -> Contrastive:
        """The model as one that scores prompts."""
        if isinstance(self.net, Generative):
            raise BadInput(f"{self.net.name}: found a model that answers in words, expected one that scores prompts")
        return self.net

    @cached_property
    def instruments(self) -> TextBank:
        """One prompt per instrument."""
        return self.scorer.texts(instrument_prompts(self.dataset.space, self.settings.profile))

    @cached_property
    def prompts(self) -> TripletPrompts:
        """One prompt per triplet."""
        return triplet_prompts(self.dataset.space, self.settings.pool)

    @cached_property
    def triplets(self) -> TextBank:
        """Their texts, encoded."""
        return self.scorer.texts(self.prompts.texts)

    @cached_property
    def flow(self) -> FlowMethod | None:
        """How motion is found; only RAS needs it."""
        if "triplets" not in self.settings.tasks or self.settings.profile != "surgxbench":
            return None
        source = Path(self.settings.flow_source) if self.settings.flow_source else None
        return open_flow(self.settings.flow, weights=source, folder=source, device=str(self.net.device))

    @cached_property
    def verbs(self) -> TextBank:
        """The early profile's second prompt, one per verb."""
        return self.scorer.texts(tuple(verb_prompt(name) for name in self.dataset.space.verbs))

    def motion_record(self) -> dict[str, object]:
        """What determines the motion masks: of RAFT also the hash of its weights."""
        return {} if self.flow is None else {**self.flow.record(), **self.settings.motion.record()}

    def setup(self) -> None:
        """Once in every process, before its first video."""
        if self.cores is not None:  # torch in every process would use all cores, and each wait for the others
            torch.set_num_threads(self.cores)
        _ = self.net

    def rehearse(self) -> None:
        """Run a black frame through everything that can refuse a setting, so that it fails before hours of work."""
        if self.asked is not None:
            self.asked.rehearse()
            _ = self.flow
            return
        texts = self.scorer.texts(("a test of the text tower",))
        pixels = torch.zeros(1, 3, *self.net.preparation.input_size, device=self.net.device)
        heatmaps(self.scorer, pixels, texts, torch.zeros(1, 1, dtype=torch.long), self.settings.method)
        if "instruments" in self.settings.tasks:
            _ = self.instruments
        if "triplets" in self.settings.tasks:
            _ = self.triplets, self.verbs if self.settings.profile == "early" else self.flow

    def __call__(self, payload: Any) -> Iterator[Case]:
        """All cases of a video: frames first, then the checks on a sample of them."""
        video, settings = payload["video"], self.settings
        reader = Reader(self.net.preparation, settings, self.flow)
        problems: list[Problem] = []
        names: set[str] = set()
        for batch in batches(self.dataset, video, reader, settings, on_problem=problems.append):
            yield from self._unreadable(batch)
            seen = []
            for prepared in (frame for frame in batch if isinstance(frame, PreparedFrame)):
                if prepared.frame.name in names:
                    expected = f"found a second frame named {prepared.frame.name!r} in video {video}, expected one"
                    yield Case(
                        f"{video}/{prepared.frame.name}/again", video, "unreadable", expected, {"task": "unreadable"}
                    )
                else:
                    seen.append(prepared)
                names.add(prepared.frame.name)
            if seen:
                yield from _by_frame(self._batch(seen))
            advance("frames", len(batch))
        for number, problem in enumerate(problem for problem in problems if problem.level == "error"):
            yield Case(f"{video}/record {number}", video, "unreadable", str(problem), {"task": "unreadable"})
        sampled = max(payload["curves"], payload["sanity"])
        if sampled and "instruments" in settings.tasks:
            yield from self._checks(video, payload["curves"], payload["sanity"])

    def _batch(self, seen: Sequence[PreparedFrame]) -> Iterator[Case]:
        settings, space = self.settings, self.dataset.space
        if self.asked is not None:
            yield from self.asked.cases(seen)
            if "instruments" in settings.tasks:
                yield from reference_cases(seen, space.instruments, settings, self.net.device)
            return
        if "instruments" in settings.tasks:
            yield from instrument_cases(self.scorer, self.instruments, space.instruments, seen, settings)
            yield from reference_cases(seen, space.instruments, settings, self.net.device)
        if "triplets" in settings.tasks:
            if settings.profile == "early":
                yield from ars_cases(self.scorer, self.triplets, self.prompts, self.verbs, space, seen, settings)
            else:
                yield from triplet_cases(self.scorer, self.triplets, self.prompts, space, seen, settings)

    def _unreadable(self, batch: Sequence[PreparedFrame | Unseen]) -> Iterator[Case]:
        for unseen in batch:
            if isinstance(unseen, Unseen):
                case = f"{unseen.frame.video}/{unseen.frame.name}"
                values = {"task": "unreadable", "frame": unseen.frame.name}
                yield Case(case, unseen.frame.video, "unreadable", unseen.reason, values)

    def _checks(self, video: str, curve_frames: int, sanity_frames: int) -> Iterator[Case]:
        """Deletion, insertion and the randomisation checks, on evenly spaced frames that show a boxed instrument."""
        boxed = boxed_frames(self.dataset, video, self.settings.every)
        curve, sane = ({frame.name for frame in _spaced(boxed, count)} for count in (curve_frames, sanity_frames))
        reader = Reader(self.net.preparation, self.settings)
        for batch in batches(self.dataset, video, reader, self.settings, frozenset(curve | sane)):
            seen = [frame for frame in batch if isinstance(frame, PreparedFrame)]
            curves, sanity = (
                [prepared for prepared in seen if prepared.frame.name in names] for names in (curve, sane)
            )
            if self.asked is not None:
                yield from _by_frame(check_answers(self.asked, curves, sanity))
            else:
                space = self.dataset.space
                yield from _by_frame(check_prompts(self.scorer, self.instruments, space, self.settings, curves, sanity))
            advance("checks", len(batch))

    def class_maps(self, seen: Sequence[PreparedFrame], numbers: Sequence[int]) -> torch.Tensor:
        """(frames, rows, columns): the map of one instrument per frame; without evidence where none was named."""
        if self.asked is not None:
            return self.asked.class_maps(seen, numbers)
        which = torch.tensor(numbers)[:, None]
        pixels = to_device(seen, self.net)
        return heatmaps(self.scorer, pixels, self.instruments, which, self.settings.method).values[:, 0]


def _by_frame(cases: Iterable[Case]) -> Iterator[Case]:
    """The tasks of a frame together, so that the order of a video's cases does not depend on the batch."""
    frames: dict[str, list[Case]] = {}
    for case in cases:
        frames.setdefault(str(case.values["frame"]), []).append(case)
    for own in frames.values():
        yield from own


def labelled_frames(dataset: Dataset, video: str, every: int = 1) -> list[Frame]:
    """The labelled frames of a video, `every` n-th of them."""
    return [frame for frame in dataset.frames(video, on_problem=lambda _problem: None) if frame.labelled][::every]


def boxed_frames(dataset: Dataset, video: str, every: int = 1) -> list[Frame]:
    """Those of them that show an instrument with a box."""
    return with_boxes(labelled_frames(dataset, video, every), len(dataset.space.instruments))


def with_boxes(frames: Sequence[Frame], classes: int) -> list[Frame]:
    """The frames with a picture and an instrument that has a box: the ones whose maps can be checked."""
    return [
        frame
        for frame in frames
        if frame.image is not None and classes_present(frame, classes)
        and any(instance.box is not None for instance in frame.instances)
    ]  # fmt: skip


def _spaced(frames: Sequence[Frame], count: int) -> list[Frame]:
    """At most `count` of them, evenly spaced."""
    if count >= len(frames):
        return list(frames)
    places = np.linspace(0, len(frames) - 1, count).round().astype(int)
    return [frames[at] for at in np.unique(places)]
