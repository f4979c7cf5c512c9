"""`surgeval detect`: run a detector over frames, folders or video; and its export as ONNX."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from surgeval.console import claim_file, print_json, print_table, progress_bar, require_models, rich_console, takes
from surgeval.console.options import FormatOption, JsonOption, OverwriteOption
from surgeval.console.panels import READING, RUNNING, grouped
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
        typer.Option(
            help="TDnet .safetensors, training folder, .onnx, RT-DETR folder, or tdnet-p (embedded, for the phantom).",
            show_default=False,
        ),
    ]
    data: Annotated[Path, typer.Option(help="A dataset, video, folder of images, or image.", show_default=False)]
    out: Annotated[
        Path,
        typer.Option(help="A table (.parquet, .csv), COCO (.json), or a folder for YOLO text.", show_default=False),
    ]
    video_out: Annotated[Path | None, typer.Option(help="Annotated MP4; a folder where there are several videos.")] = (
        None
    )
    track: Annotated[bool, typer.Option("--track", help="Number the same instrument the same in all frames.")] = False
    aux: Annotated[
        bool, typer.Option("--aux/--no-aux", help="Compute the heads for instrument, verb and target too.")
    ] = True
    preset: Annotated[PresetName, typer.Option(help="A set of the choices below.")] = "default"
    confidence: Annotated[float | None, typer.Option(help="Least score of a box.")] = None
    iou: Annotated[float | None, typer.Option(help="Overlap above which the weaker box goes.")] = None
    nms: Annotated[NmsName | None, typer.Option(help="Boxes that compete: of a class, all, or of an instrument.")] = (
        None
    )
    most: Annotated[int | None, typer.Option(min=1, help="Boxes of a frame, at most.")] = None
    components: Annotated[
        ComponentsName,
        typer.Option(help="Instrument, verb, target: the triplet's, or the heads'."),
    ] = "ivt"
    probabilities: Annotated[
        bool, typer.Option(help="Keep every head's probabilities of all classes for each box (Parquet).")
    ] = True
    track_high: Annotated[float, typer.Option(help="Score from which a box may begin a track.")] = 0.4
    track_low: Annotated[float, typer.Option(help="Score from which a box may go on with one.")] = 0.1
    track_lost: Annotated[float, typer.Option(help="Seconds that a track survives unseen.")] = 1.0
    show: Annotated[float, typer.Option(help="Score from which a box is drawn on the film.")] = 0.25
    every: Annotated[int, typer.Option(min=1, help="Look at every N-th frame.")] = 1
    fps: Annotated[float | None, typer.Option(help="Look at so many frames a second.")] = None
    video: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Look at this video only (repeatable).")] = (
        None
    )
    format: FormatOption = None
    batch: Annotated[int, typer.Option(min=1, max=1024, help="Frames at a time.")] = 16
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu"
    half: Annotated[bool, typer.Option("--half", help="Compute in 16 bits (on a GPU).")] = False
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that decode images.")] = None
    overwrite: OverwriteOption = False
    json: JsonOption = False

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


@grouped(
    {
        CHOOSING: "preset confidence iou nms most components probabilities",
        TRACKING: "track_high track_low track_lost show",
        READING: "every fps video format",
        RUNNING: "batch device half workers overwrite",
    }
)
@takes(DetectOptions)
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
