"""`surgeval run surgxbench`: where does a model look when it is right?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

from surgeval.console import keep_times, print_frame, print_json, require_models, rich_console
from surgeval.console.options import (
    FormatOption,
    JsonOption,
    LabelsOption,
    MethodOption,
    OrderOption,
    SeedOption,
    StartLayerOption,
    WordsName,
)
from surgeval.console.panels import MAPS, MOTION, READING, RUNNING, SCORING, grouped
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

if TYPE_CHECKING:
    from surgeval.protocols.surgxbench.result import SurgXScores
    from surgeval.protocols.surgxbench.settings import SurgXSettings


ProfileName: TypeAlias = Literal["surgxbench", "early"]  # whose prompts, threshold and tables


@grouped(
    {
        MAPS: "method order start_layer score_scale words geometry keep_top literal grounded_at",
        SCORING: "profile delta over pool top_k curves sanity occlusion causal seed",
        MOTION: "flow flow_gap flow_source fit",
        READING: "video boxes mapping format labels",
        RUNNING: "batch threads dtype max_tokens gallery name",
    }
)
def run(
    data: Annotated[Path, typer.Option(help="A dataset folder or file.", show_default=False)],
    model: Annotated[
        str,
        typer.Option(
            help="phantom-clip, phantom-llava …, a CLIP, BLIP or LLaVA folder or hub name, or a SurgVLP checkpoint "
            "(see `surgeval models list`).",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Run folder; an interrupted one is resumed.", show_default=False)],
    profile: Annotated[ProfileName, typer.Option(help="Which paper's choices.")] = "surgxbench",
    task: Annotated[list[str] | None, typer.Option(help="instruments or triplets (repeatable). Default: both.")] = None,
    method: MethodOption = "auto",
    order: OrderOption = "chefer",
    start_layer: StartLayerOption = 0,
    score_scale: Annotated[str, typer.Option(help="What is differentiated: cosine, logits or a factor.")] = "cosine",
    words: Annotated[
        WordsName, typer.Option(help="A name of several tokens: their mean map, the first, the maximum.")
    ] = "mean",
    geometry: Annotated[str, typer.Option(help="window: what the model saw; stretch: as the papers.")] = "window",
    keep_top: Annotated[float | None, typer.Option(help="Share of pixels attended.")] = None,
    literal: Annotated[
        bool, typer.Option("--literal", help="Let pixels without evidence count as attended, as the formula says.")
    ] = False,
    delta: Annotated[float | None, typer.Option(help="Quantile a prompt must exceed to be said.")] = None,
    over: Annotated[str | None, typer.Option(help="Of what: classes, frames or minmax.")] = None,
    pool: Annotated[str | None, typer.Option(help="Triplet prompts: valid or all combinations.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Triplet prompts that count.")] = None,
    flow: Annotated[str | None, typer.Option(help="dis, farneback, raft or files.")] = None,
    flow_gap: Annotated[
        float | None, typer.Option(help="Seconds to the next frame at most, for flow. Default 1.5.")
    ] = None,
    flow_source: Annotated[
        Path | None, typer.Option("--flow-weights", help="RAFT's weights; with --flow files the folder of .flo files.")
    ] = None,
    fit: Annotated[str | None, typer.Option(help="Camera fit: plain, masked or robust.")] = None,
    grounded_at: Annotated[float | None, typer.Option(help="AC above which a map is grounded.")] = None,
    curves: Annotated[int | None, typer.Option(help="Frames for deletion and insertion curves.")] = None,
    sanity: Annotated[int | None, typer.Option(help="Frames for the randomisation checks.")] = None,
    occlusion: Annotated[
        bool | None, typer.Option("--occlusion/--no-occlusion", help="Hide regions and ask again.")
    ] = None,
    causal: Annotated[
        bool, typer.Option("--causal/--no-causal", help="Causal graphs of the names in a reply in words.")
    ] = True,
    split: Annotated[str | None, typer.Option(help="Only the videos of this split.")] = None,
    video: Annotated[list[str] | None, typer.Option(help="Only this video (repeatable).")] = None,
    every: Annotated[int, typer.Option(min=1, help="Look at every n-th labelled frame only.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Frames at a time; changes no number.")] = 16,
    threads: Annotated[int, typer.Option(min=1, help="Threads that read and prepare frames.")] = 2,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes, each with whole videos and its own copy of the model.")
    ] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Of a reply in words, at most.")] = 128,
    gallery: Annotated[int, typer.Option(min=0, max=1000, help="Pictures on the page; 0 for none.")] = 36,
    seed: SeedOption = 0,
    name: Annotated[str | None, typer.Option(help="What to call the model. Default: the folder's.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do failed videos again.")] = False,
    boxes: Annotated[
        Path | None, typer.Option(help="A dataset whose instrument boxes are joined to the frames.")
    ] = None,
    mapping: Annotated[Path | None, typer.Option(help="A file that describes a table of boxes.")] = None,
    format: FormatOption = None,
    labels: LabelsOption = None,
    json: JsonOption = False,
) -> int:
    """Ask a model what it sees, and measure whether it looks there.

    A model that scores prompts is given one per class; one that answers in words is asked, and its reply is read.

    Writes a run folder with report.html (tables, figures, a gallery sorted by "right but ungrounded").

    Example: [bold]surgeval run surgxbench --data demo/phantom-v1 --split test --model phantom-clip
    --out runs/clip[/bold]
    """
    options: dict[str, Any] = {
        "keep_top": keep_top, "delta": delta, "over": over, "pool": pool, "top_k": top_k, "flow": flow, "fit": fit,
        "flow_source": str(flow_source) if flow_source else None, "flow_gap": flow_gap, "grounded_at": grounded_at,
        "curves": curves, "sanity": sanity, "occlusion": occlusion, "tasks": tuple(task) if task else None,
    }  # fmt: skip
    require_models("run surgxbench")
    with phases(show=not json, eager=True) as shown:
        shown.phase(f"loading {model}")
        from surgeval.protocols.surgxbench.method import run_surgxbench
        from surgeval.protocols.surgxbench.page import write_page_of

        _few_threads(model)
        maps = heatmap_method(method, order, start_layer, score_scale, words)
        settings = _settings(profile, options, {
            "method": maps, "max_tokens": max_tokens, "geometry": geometry, "positive": not literal, "seed": seed,
            "batch": batch, "threads": threads, "every": every, **({} if causal else {"causal": None}),
        })  # fmt: skip
        done = run_surgxbench(
            data, model, out=out, settings=settings, split=split, videos=tuple(video or ()), format=format,
            labels=labels, boxes=boxes, mapping=mapping, device=device, dtype=dtype, processes=processes,
            retry=retry, progress=not json,
        )  # fmt: skip
        if done.unknown_words:
            listed = ", ".join(done.unknown_words[:12]) + (", …" if len(done.unknown_words) > 12 else "")
            shown.note(f"note: this model has no word for {listed}: prompts with it say less to it")
        shown.phase("pictures")
        scores = done.result(gallery=gallery, name=name)
        shown.phase("page")
        page = write_page_of([scores], out)
    if json:
        print_json({**surgx_json(scores), "failed": done.summary.failed_cases,
                    "failures": done.summary.to_frame().to_dicts(), "report": str(page)})  # fmt: skip
    else:
        if done.summary.failed:
            rich_console().print(visible_lines(str(done.summary)))
        _print(scores, page)
        keep_times(shown.times, out)
    return done.summary.exit_code


def _few_threads(model: str) -> None:
    """The embedded networks are so small that a second thread doubles their time (measured on two cores)."""
    import torch

    from surgeval.models import EMBEDDED, EMBEDDED_GENERATIVE

    if model in EMBEDDED | EMBEDDED_GENERATIVE:
        torch.set_num_threads(1)


def _settings(profile: str, options: dict[str, Any], more: dict[str, Any]) -> SurgXSettings:
    from surgeval.protocols.surgxbench.settings import profile_settings

    return profile_settings(profile, **more, **{k: v for k, v in options.items() if v is not None})


def heatmap_method(name: str, order: str, start_layer: int, score_scale: str, words: str = "mean") -> Any:
    """The heatmap that the options describe."""
    from surgeval.explain import Method

    scale: Any = score_scale
    if score_scale not in ("cosine", "logits"):
        try:
            scale = float(score_scale)
        except ValueError:
            raise BadInput(f"--score-scale: found {score_scale!r}, expected cosine, logits or a number") from None
    return Method(cast(Any, name), cast(Any, order), start_layer, scale, words=cast(Any, words))


def surgx_json(scores: SurgXScores) -> dict[str, Any]:
    """The headline numbers and every table, for machines."""
    numbers = {
        key: {
            "estimate": interval.estimate,
            "low": _plain(interval.low),
            "high": _plain(interval.high),
            "videos": interval.clusters,
        }
        for key, interval in scores.numbers.items()
    }
    verdict = scores.verdict()
    return {
        "model": scores.name,
        "verdict": None if verdict is None else verdict.to_json(),
        "settings": dict(scores.settings),
        "headline": numbers,
        "tables": {key: table.to_dicts() for key, table in scores.detail_tables.items()},
    }


def visible_lines(text: str) -> str:
    """Lines that may hold names from files."""
    return "\n".join(visible(line) for line in text.splitlines())


def _plain(value: float) -> float | None:
    return None if value != value else value


def _print(scores: SurgXScores, page: Path) -> None:
    from surgeval.protocols.surgxbench.numbers import MEASURES
    from surgeval.protocols.surgxbench.page_tables import TITLES, readable_table
    from surgeval.stats import find_measure

    say = rich_console().print
    say(visible(scores.name))
    verdict = scores.verdict()
    if verdict is not None:
        say(visible(str(verdict)))
    for key, interval in scores.numbers.items():
        few = f" (few videos: {interval.clusters})" if interval.few_clusters else ""
        measure = find_measure(MEASURES, key)
        say(f"  {measure.label}: {interval.cell(measure.unit)}{few}")  # our own words and numbers
    say()
    for key, columns in (("classes", ("class", "frames", "predicted", "f1", "tp_ac", "tp_chance", "tp_lift", "fp_ac")),
                         ("matches", ("match", "triplets", "share", "ras", "chance")),
                         ("replies", ("question", "replies", "names", "unparsed", "naming_nothing", "cut_off")),
                         ("causal", ("named", "names", "of_image", "near", "near_attended", "near_chance")),
                         ("table1", ("video", "frames", "ac", "aa", "chance")),
                         ("table2", ("video", "frames", "ars", "valid", "zero"))):  # fmt: skip
        if key in scores.tables:
            print_frame(TITLES[key], readable_table(scores.tables[key].select(columns)))
            say()
    say(f"open {visible(str(page))}")
