"""Protocol `surgxbench`: when the model is right, is it right for the right reason?

`run_surgxbench` asks a model about every labelled frame (prompts to score, or questions to answer), draws a heatmap for
what it says, and measures how much of the attended region lies on what the labels say matters, beside chance, reference
maps, occlusion with controls and sanity checks. A run is a folder that resumes; `load_surgxbench` reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from surgeval.console.commands import Help, OptionsOf, common
from surgeval.console.panels import RUNNING
from surgeval.datasets import Dataset, JoinedBoxes, Problem, dataset_fingerprint, open_dataset
from surgeval.engine import Manifest, RunSummary, Unit, library_versions, run
from surgeval.errors import BadInput
from surgeval.progress import phases
from surgeval.protocols.result import FinishedRun
from surgeval.protocols.surgxbench.item import Extras, Item
from surgeval.protocols.surgxbench.result import SurgXScores, load_surgxbench
from surgeval.protocols.surgxbench.stored import save_page
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.measuring.worker import VideoWorker
    from surgeval.protocols.surgxbench.settings import SurgXSettings

__all__ = ["SurgXRun", "run_surgxbench"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SurgXRun(FinishedRun):
    """A finished run, with what is needed to draw its pictures.

    `summary` counts what was done and what failed; `look` is the model with its settings and the labelled frames.
    """

    summary: RunSummary
    look: VideoWorker
    folder: Path

    @cached_property
    def loaded(self) -> SurgXScores:
        """The numbers, and the images of the gallery."""
        return load_surgxbench(self.folder)

    def __repr__(self) -> str:
        return f"SurgXRun of {self.look.net.name}: {counted(self.summary.cases, 'case')} in {self.folder}"

    def __str__(self) -> str:
        return str(self.summary)

    def to_json(self) -> dict[str, Any]:
        """The scores, and what failed."""
        failures = self.summary.to_frame().to_dicts()
        return {**self.loaded.to_json(), "failed": self.summary.failed_cases, "failures": failures}

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """Words of the prompts that the model's tokenizer does not know."""
        settings, look = self.look.settings, self.look
        if look.asked is not None:
            return look.asked.unknown_words
        banks = [look.instruments] if "instruments" in settings.tasks else []
        if "triplets" in settings.tasks:
            banks += [look.triplets, *([look.verbs] if settings.profile == "early" else [])]
        return tuple(dict.fromkeys(word for bank in banks for word in bank.unknown))

    def save_images(self, gallery: int = 36, name: str | None = None) -> None:
        """Store what the page needs: `gallery` predictions to look at, examples, and what the run is called."""
        scores = load_surgxbench(self.folder, name=name)
        extras = self.extras(scores) if gallery else Extras()
        save_page(self.folder, self.gallery(scores, gallery), extras, name=name)

    def gallery(self, scores: SurgXScores, count: int = 36) -> tuple[Item, ...]:
        """`count` predictions to look at, an equal share of right and wrong, grounded and not."""
        from surgeval.protocols.surgxbench.gallery.pictures import gallery

        return gallery(self.look, scores, count) if count and "instruments" in self.look.settings.tasks else ()

    def extras(self, scores: SurgXScores) -> Extras:
        """What hiding the attended region did to a few matches, and how motion was found."""
        if "triplets" not in self.look.settings.tasks or self.look.settings.profile != "surgxbench":
            return Extras()
        from surgeval.protocols.surgxbench.gallery.examples import flow_pipeline, hidings

        return Extras(hidings(self.look, scores), flow_pipeline(self.look, scores))


def run_surgxbench(
    data: str | Path,
    model: Annotated[
        str,
        Help(
            "phantom-clip, phantom-llava …, a CLIP, BLIP or LLaVA folder or hub name, or a SurgVLP checkpoint "
            "(see `surgeval models list`)."
        ),
    ],
    out: Annotated[str | Path, Help("Run folder; an interrupted one is resumed.")],
    *,
    settings: Annotated[
        SurgXSettings | None, OptionsOf("surgeval.protocols.surgxbench.options:choose_settings")
    ] = None,
    split: str | None = None,
    videos: Sequence[str] = (),
    format: str | None = None,
    labels: str | None = None,
    boxes: Annotated[
        str | Path | None, common("boxes", "A dataset whose instrument boxes are joined to the frames.")
    ] = None,
    mapping: Annotated[str | Path | None, common("mapping", "A file that describes a table of boxes.")] = None,
    device: str = "cpu",
    dtype: Annotated[str, Help("float32 or bfloat16.", RUNNING)] = "float32",
    processes: Annotated[
        int, common("processes", "Processes, each with whole videos and its own copy of the model.", "")
    ] = 1,
    gallery: Annotated[int, Help("Images on the page; 0 for none.", RUNNING, least=0, most=1000)] = 36,
    name: Annotated[str | None, common("name", panel=RUNNING)] = None,
    retry: Annotated[bool, common("retry", "Do failed videos again.", "")] = False,
    progress: bool = True,
) -> SurgXRun:
    """Ask a model what it sees, and measure whether it looks there.

    Every labelled frame is shown to the model, in a resumable run. `settings` are those of a paper, with changes:
    `choose_settings`. With several `processes` each takes whole videos and opens the model for itself; it changes no
    number. `gallery` predictions are kept as images for the page, and the run is called `name`.

    >>> import tempfile
    >>> from PIL import Image
    >>> from surgeval import compare
    >>> from surgeval.protocols.surgxbench import SurgXSettings, join_runs, load_surgxbench
    >>> plain = SurgXSettings(tasks=("instruments",), occlusion=False, curves=0, sanity=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("images", "labels"):
    ...         Path(folder, "data", name).mkdir(parents=True)
    ...     for video in ("VID01", "VID02"):
    ...         Image.new("RGB", (96, 64)).save(f"{folder}/data/images/{video}_000001.png")
    ...         _ = Path(f"{folder}/data/labels/{video}_000001.txt").write_text("0 0.5 0.5 0.2 0.2")  # a grasper
    ...     for video in ("VID01", "VID02"):
    ...         run = run_surgxbench(f"{folder}/data", "phantom-clip", f"{folder}/{video}", settings=plain,
    ...                              labels="cholec80", videos=(video,), gallery=0, progress=False)
    ...     run.loaded
    ...     both = join_runs([f"{folder}/VID01", f"{folder}/VID02"])
    ...     one = load_surgxbench(f"{folder}/VID01")
    SurgXScores 'VID02': inconclusive; top-1 right ...
    >>> both.cases["cluster"].unique().sort().to_list(), one.classes[:2]
    (['VID01', 'VID02'], ('Grasper', 'Bipolar'))
    >>> compare(one, one)
    VID01 − VID01: top-1 right ... (few clusters: 1), not testable
    >>> run_surgxbench("nowhere", "phantom-clip", out="runs/clip")
    Traceback (most recent call last):
    surgeval.errors.BadInput: nowhere: found no such file or folder, expected a dataset
    """
    with phases(show=progress, eager=True) as shown:
        shown.phase(f"loading {model}")
        with _few_threads(model):
            done = _run(
                data, model, out, settings=settings, split=split, videos=videos, format=format, labels=labels,
                boxes=boxes, mapping=mapping, device=device, dtype=dtype, processes=processes, retry=retry,
                progress=progress,
            )  # fmt: skip
            if done.unknown_words:
                listed = ", ".join(done.unknown_words[:12]) + (", …" if len(done.unknown_words) > 12 else "")
                shown.note(f"note: this model has no word for {listed}: prompts with it say less to it")
            shown.phase("pictures")
            done.save_images(gallery, name)
    return done


@contextmanager
def _few_threads(model: str) -> Iterator[None]:
    """The embedded networks are so small that a second thread doubles their time (measured on two cores)."""
    import torch

    from surgeval.models import embedded_names

    before = torch.get_num_threads()
    if model in embedded_names("contrastive", "generative"):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _run(
    data: str | Path, model: str, out: str | Path, *, settings: SurgXSettings | None, split: str | None,
    videos: Sequence[str], format: str | None, labels: str | None, boxes: str | Path | None,
    mapping: str | Path | None, device: str, dtype: str, processes: int, retry: bool, progress: bool,
) -> SurgXRun:  # fmt: skip
    """Measure the videos that are not measured yet."""
    from surgeval.explain.flow import StoredFlow
    from surgeval.explain.heatmaps import choose_method
    from surgeval.protocols.surgxbench.measuring.worker import VideoWorker
    from surgeval.protocols.surgxbench.settings import SurgXSettings

    settings = settings or SurgXSettings()
    second, table = (None if path is None else str(path) for path in (boxes, mapping))
    dataset = open_dataset(data, format, labels, mapping=table, boxes=second)
    settings = _possible(settings, dataset)
    named = tuple(dict.fromkeys(videos))
    names = _videos(dataset, split, named)
    if isinstance(dataset, JoinedBoxes) and not set(names) & set(dataset.boxed):
        raise BadInput(f"{boxes}: found boxes of none of {_listed(names)} of {data}, expected boxes of one at least")
    look = VideoWorker(str(data), format, labels, model, device, dtype, settings, second, table)
    method = choose_method(look.net, settings.method)
    look.rehearse()
    if isinstance(look.flow, StoredFlow):
        look.flow.check(names, backward=settings.motion.use_backward)
    manifest = Manifest(
        "surgxbench",
        config={**settings.record(), "method": method.record(), "classes": list(dataset.space.instruments),
                "split": split or "", "videos": list(named), "dtype": dtype, "motion": look.motion_record(),
                **({} if look.asked is None else {"questions": look.asked.questions})},
        dataset={
            "name": dataset.root.resolve().name, "format": dataset.format, "content": dataset_fingerprint(dataset),
        },
        model={"name": look.net.name, "family": look.net.family, "identity": look.net.identity},
        seeds={"seed": settings.seed},
        versions=library_versions("torch", "transformers", "opencv-python-headless"),
    )  # fmt: skip
    units = [_unit(dataset, settings, video, number, len(names)) for number, video in enumerate(names)]
    many = min(processes, len(units)) > 1
    summary = run(
        units,
        replace(look, cores=max(1, (os.cpu_count() or 1) // processes)) if many else look,
        folder=out,
        manifest=manifest,
        executor="processes" if many else "serial",
        processes=processes if many else None,
        retry=retry,
        progress=progress,
    )
    if not summary.cases:
        wanted = "frame" if "instruments" in settings.tasks or settings.profile == "early" else "triplet"
        raise BadInput(f"{data}: found no labelled {wanted} in {_listed(names)}, expected at least one")
    return SurgXRun(summary=summary, look=look, folder=Path(out))


def _unit(dataset: Dataset, settings: SurgXSettings, video: str, number: int, videos: int) -> Unit:
    """A video with its share of the checks; how many frames that is only matters to who waits for it."""
    shares = {name: _part(getattr(settings, name), number, videos) for name in ("curves", "sanity")}
    from surgeval.protocols.surgxbench.measuring.worker import labelled_frames, with_boxes

    frames = labelled_frames(dataset, video, settings.every)
    boxed = len(with_boxes(frames, len(dataset.space.instruments))) if "instruments" in settings.tasks else 0
    return Unit(video, {"video": video, **shares},
                steps={"frames": len(frames), "checks": min(boxed, max(shares.values()))})  # fmt: skip


def _part(total: int, number: int, parts: int) -> int:
    """The share of one of the videos, so that all of them add up."""
    return total // parts + (number < total % parts)


def _possible(settings: SurgXSettings, dataset: Dataset) -> SurgXSettings:
    """Triplets need a label space with triplets; without one the task is left out, unless it is the only one."""
    if "triplets" in settings.tasks and not dataset.space.triplets:
        if settings.tasks == ("triplets",):
            raise BadInput(f"task triplets: found no triplets in label space {dataset.space.name}, expected some")
        return replace(settings, tasks=tuple(task for task in settings.tasks if task != "triplets"))
    return settings


def _listed(videos: list[str]) -> str:
    return videos[0] if len(videos) == 1 else f"{len(videos)} videos"


def _videos(dataset: Dataset, split: str | None, names: tuple[str, ...]) -> list[str]:
    problems: list[Problem] = []
    every = dataset.videos(problems.append)
    splits = sorted({video.split for video in every if video.split})
    if split is not None and split not in splits:
        if any(split in listed.split(",") for listed in splits):
            raise BadInput(
                f"split {split!r}: found videos with frames in several splits ({'; '.join(splits)}), expected each "
                "video in one; open the folder or file of that split instead"
            )
        raise BadInput(f"split {split!r}: expected one of {', '.join(splits) or 'none: this dataset names no splits'}")
    known = [video.name for video in every if split is None or video.split == split]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInput(f"video {unknown[0]!r}: expected one of {', '.join(known)}")
    wanted = list(names) or known
    if not wanted:
        first = next((f" ({problem})" for problem in problems if problem.level == "error"), "")
        raise BadInput(f"{dataset.root}: found no videos, expected at least one{first}")
    return wanted
