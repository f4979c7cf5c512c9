"""`surgeval detect`: run a detector over frames, folders or video; and its export as ONNX."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from surgeval.console import claim_file, print_json, print_table, progress_bar, require_models, rich_console
from surgeval.console.commands import Help, common, with_options
from surgeval.console.options import JsonOption, OverwriteOption
from surgeval.console.panels import READING, RUNNING
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

if TYPE_CHECKING:
    from surgeval.detector.inference import Detected, Source, Tracking
    from surgeval.detector.nms import Selecting

PresetName: TypeAlias = Literal["default", "coco", "prostatd-repo", "prostatd-repo-rtdetr", "viewer"]
NmsName: TypeAlias = Literal["class", "agnostic", "tool"]
ComponentsName: TypeAlias = Literal["ivt", "heads"]
CHOOSING, TRACKING = "Advanced: which boxes", "Advanced: tracking and film"
OVERSIGHT = (
    "A score is no probability of being right: what a detector finds is evidence for a person to judge, and no basis "
    "for a decision about a patient."
)
_SHOWN = 15  # classes in the summary
_UNLABELLED = ("video", "images")  # formats that hold pictures only


def register(app: typer.Typer, models: typer.Typer) -> None:
    """Add `detect` to the commands, and `export` to those about models."""
    app.command(epilog=OVERSIGHT)(detect)
    models.command()(export)


@dataclass(frozen=True, kw_only=True)
class DetectOptions:
    """The options of `detect`, in the order of its help."""

    model: Annotated[
        str,
        Help("TDnet .safetensors, training folder, .onnx, RT-DETR folder, or tdnet-p (embedded, for the phantom)."),
    ]
    data: Annotated[Path, Help("A dataset, video, folder of images, or image.")]
    out: Annotated[
        Path,
        Help("A table (.parquet, .csv), COCO (.json), or a folder for YOLO text."),
    ]
    video_out: Annotated[Path | None, Help("Annotated MP4; a folder where there are several videos.")] = None
    track: Annotated[bool, Help("Number the same instrument the same in all frames.")] = False
    aux: Annotated[bool, Help("Compute the heads for instrument, verb and target too.")] = True
    preset: Annotated[PresetName, Help("A set of the choices below.", CHOOSING)] = "default"
    confidence: Annotated[float | None, Help("Least score of a box.", CHOOSING)] = None
    iou: Annotated[float | None, Help("Overlap above which the weaker box goes.", CHOOSING)] = None
    nms: Annotated[NmsName | None, Help("Boxes that compete: of a class, all, or of an instrument.", CHOOSING)] = None
    most: Annotated[int | None, Help("Boxes of a frame, at most.", CHOOSING, least=1)] = None
    components: Annotated[
        ComponentsName,
        Help("Instrument, verb, target: the triplet's, or the heads'.", CHOOSING),
    ] = "ivt"
    probabilities: Annotated[
        bool, Help("Keep every head's probabilities of all classes for each box (Parquet).", CHOOSING)
    ] = True
    track_high: Annotated[float, Help("Score from which a box may begin a track.", TRACKING)] = 0.4
    track_low: Annotated[float, Help("Score from which a box may go on with one.", TRACKING)] = 0.1
    track_lost: Annotated[float, Help("Seconds that a track survives unseen.", TRACKING)] = 1.0
    show: Annotated[float, Help("Score from which a box is drawn on the film.", TRACKING)] = 0.25
    every: Annotated[int, Help("Look at every N-th frame.", READING, least=1)] = 1
    fps: Annotated[float | None, Help("Frames to read per second.", READING)] = None
    video: Annotated[list[str] | None, Help("Look at this video only (repeatable).", READING, metavar="NAME")] = None
    format: str | None = None
    batch: Annotated[int, Help("Frames at a time.", RUNNING, least=1, most=1024)] = 16
    device: Annotated[str, common("device", panel=RUNNING)] = "cpu"
    half: Annotated[bool, Help("Compute in 16 bits (on a GPU).", RUNNING)] = False
    workers: Annotated[int | None, Help("Threads that decode images.", RUNNING, least=1)] = None
    overwrite: bool = False
    json: bool = False

    def selecting(self) -> Selecting:
        """Which boxes are kept: the preset's choices, but for those that were made."""
        from surgeval.detector.nms import SELECTING

        usual = SELECTING[self.preset]
        return replace(
            usual,
            confidence=usual.confidence if self.confidence is None else self.confidence,
            iou=usual.iou if self.iou is None else self.iou,
            mode=self.nms or usual.mode,
            most=self.most or usual.most,
        )

    def tracking(self) -> Tracking | None:
        """How boxes become tracks; None where they do not."""
        from surgeval.detector.inference import Tracking

        return Tracking(high=self.track_high, low=self.track_low, lost=self.track_lost) if self.track else None


@with_options(DetectOptions)
def detect(asked: DetectOptions) -> None:
    """Find instruments, and what they do, on every frame; the table goes into `surgeval score triplets` as it is.

    An interrupted run goes on where it was. A frame that cannot be read is named, counted and left out.

    Example: [bold]surgeval detect --model tdnet-p --data phantom/ --out found.parquet[/bold]

    Example: [bold]surgeval detect --model run/ --data op.mp4 --fps 5 --track --out op.csv --video-out seen.mp4[/bold]
    """
    require_models("detect")
    if asked.out.suffix and not asked.out.is_dir():
        claim_file(asked.out, asked.data, asked.model, overwrite=asked.overwrite)
    if asked.video_out is not None:
        _claim_films(asked.video_out, asked)
    if asked.components == "heads" and not asked.aux:
        raise BadInput("--components heads: found --no-aux as well, expected the heads to be computed")
    with progress_bar("frames", show=not asked.json) as bar:
        bar.phase(f"loading {visible(asked.model)}")
        from surgeval.detector.inference import DetectSettings, detector_digest, open_detector, open_source
        from surgeval.detector.inference import detect_source as run

        settings = DetectSettings(
            asked.selecting(), asked.components, asked.probabilities, asked.batch, asked.workers, asked.tracking(),
            asked.show,
        )  # fmt: skip
        identity = f"{detector_digest(asked.model)} {asked.aux} {asked.half}"
        network = open_detector(asked.model, device=asked.device, half=asked.half, aux=asked.aux, graph=True)
        source = open_source(
            asked.data, network.classes.space, every=asked.every, fps=asked.fps, videos=asked.video or (),
            format=asked.format,
        )  # fmt: skip
        total = _frames_of(source) if asked.every == 1 and asked.fps is None else None
        if source.foreign:
            typer.echo(visible(f"note: {asked.data} is labelled with other classes than those of {network.name}: its "
                               "labels are not used, and cannot score these detections"), err=True)  # fmt: skip
        done = run(
            network, source, asked.out, settings, identity=identity, film=asked.video_out,
            announce=lambda text: typer.echo(visible(f"note: {text}"), err=True), advance=bar.advance,
            phase=lambda name: bar.phase(name, total if name in ("looking", "filming") else None),
        )  # fmt: skip
    if asked.json:
        print_json(_as_json(done, network.name))
    else:
        _print(done, network.name, asked)
        rich_console().print(visible(f"{done.out}{_next(asked, source)}"))


def _claim_films(place: Path, asked: DetectOptions) -> None:
    """Refuse to replace existing files without --overwrite, and always to write into the input folder."""
    if not place.is_dir():
        claim_file(place, asked.data, option="--video-out", overwrite=asked.overwrite)
        return
    inside = asked.data.is_dir() and place.resolve().is_relative_to(asked.data.resolve())
    if inside or (any(place.iterdir()) and not asked.overwrite):
        remedy = "Name another folder" if inside else "Name another folder, or replace its films with --overwrite"
        raise BadInput(f"--video-out {place}: holds files already. {remedy}")


def _next(asked: DetectOptions, source: Source) -> str:
    """The command that scores what was found, where there are labels of the same classes for every frame looked at."""
    if source.foreign or source.dataset.format in _UNLABELLED or asked.every > 1 or asked.fps or asked.video:
        return ""
    words = ["surgeval", "score", "triplets", "--data", str(asked.data), "--pred", str(asked.out)]
    return f": score it with: {shlex.join([*words, *(['--format', asked.format] if asked.format else [])])}"


def _frames_of(source: Source) -> int | None:
    """All frames of the videos; None where one does not say how many it has."""
    counts = [video.frames for video in source.videos(lambda _text: None)]
    return None if None in counts else sum(count or 0 for count in counts)


def _print(done: Detected, name: str, asked: DetectOptions) -> None:
    say = rich_console().print
    rows = [
        (row["class"], row["boxes"], row["sure"], row["frames"], row["best"])
        for row in done.classes.head(_SHOWN).iter_rows(named=True)
    ]
    if rows:
        print_table(name, ["class", "boxes", "score ≥ 0.25", "frames", "best score"], rows)
    if len(done.classes) > _SHOWN:
        say(f"… and {len(done.classes) - _SHOWN} more classes")
    for loss in done.losses:
        say(f"lost: {visible(loss)}")
    earlier = f" and {done.earlier:,} in an earlier run" if done.earlier else ""
    skipped = f", {done.skipped:,} that could not be read" if done.skipped else ""
    tracks = f", {done.tracks:,} tracks" if asked.track else ""
    say(f"{done.frames:,} frames{earlier}{skipped}, {done.boxes:,} boxes{tracks}; {done.rate:,.1f} frames a second")
    best = max(done.classes["best"].to_list(), default=0.0)
    if asked.track and not done.tracks:
        say(f"no track: the best score is {best:.2f}, and a track begins at {asked.track_high:g} (--track-high)")
    if done.films and best < asked.show:
        say(f"the film shows no box: the best score is {best:.2f}, and boxes are drawn from {asked.show:g} (--show)")
    for film in done.films:
        say(f"open {visible(str(film))}")


def _as_json(done: Detected, name: str) -> dict[str, object]:
    return {
        "model": name, "out": str(done.out), "frames": done.frames, "earlier": done.earlier, "skipped": done.skipped,
        "boxes": done.boxes, "tracks": done.tracks, "frames_per_second": done.rate, "classes": done.classes.to_dicts(),
        "losses": list(done.losses), "films": [str(film) for film in done.films],
    }  # fmt: skip


def export(
    model: Annotated[
        str, typer.Argument(help="TDnet .safetensors, training or RT-DETR folder, or tdnet-p.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The ONNX file.", show_default=False)],
    aux: Annotated[bool, typer.Option("--aux/--no-aux", help="Keep the heads for instrument, verb and target.")] = True,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write a detector as an ONNX file with its classes; `surgeval detect --model FILE.onnx` gives the same boxes.

    Example: [bold]surgeval models export run/detector.safetensors --out detector.onnx[/bold]
    """
    require_models("export")
    if out.is_dir():
        raise BadInput(f"--out {out}: found a folder, expected the name of a file")
    claim_file(out, model, overwrite=overwrite)
    with phases(show=not json, eager=True) as shown:  # tracing a network takes a minute
        shown.phase("writing ONNX")
        from surgeval.detector.inference import export_onnx

        path = export_onnx(model, out, aux=aux)
    if json:
        print_json({"out": str(path), "bytes": path.stat().st_size})
    else:
        rich_console().print(f"{visible(str(path))}: {path.stat().st_size / 1e6:.1f} MB")
