"""The settings of a run from names and numbers, as a command line or a notebook gives them: `choose_settings`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from surgeval.console.commands import Help, common
from surgeval.console.panels import MAPS, MOTION, RUNNING, SCORING
from surgeval.errors import BadInput

if TYPE_CHECKING:
    from surgeval.explain.heatmaps import Method
    from surgeval.protocols.surgxbench.settings import SurgXSettings

__all__ = ["MapName", "WordsName", "choose_map", "choose_settings"]

MapName: TypeAlias = Literal["auto", "rollout", "gradcam", "cross", "token-gradcam"]
WordsName: TypeAlias = Literal["mean", "first", "max"]  # how the maps of a name's tokens become one
ProfileName: TypeAlias = Literal["surgxbench", "early"]  # whose prompts, threshold and tables


def choose_settings(
    *,
    profile: Annotated[ProfileName, Help("Which paper's choices.", SCORING)] = "surgxbench",
    tasks: Annotated[
        Sequence[str] | None, Help("instruments or triplets (repeatable). Default: both.", name="--task")
    ] = None,
    method: Annotated[MapName, Help("Default: what the tower allows.", MAPS)] = "auto",
    order: Annotated[str, Help("Rollout: chefer or seed.", MAPS)] = "chefer",
    start_layer: Annotated[int, Help("Rollout: first block; -1 = the last only.", MAPS)] = 0,
    score_scale: Annotated[str, Help("What is differentiated: cosine, logits or a factor.", MAPS)] = "cosine",
    words: Annotated[
        WordsName, Help("A name of several tokens: their mean map, the first, the maximum.", MAPS)
    ] = "mean",
    geometry: Annotated[
        Literal["window", "stretch"], Help("window: what the model saw; stretch: as the papers.", MAPS, kind=str)
    ] = "window",
    keep_top: Annotated[float | None, Help("Share of pixels attended.", MAPS)] = None,
    literal: Annotated[bool, Help("Let pixels without evidence count as attended, as the formula says.", MAPS)] = False,
    delta: Annotated[float | None, Help("Quantile a prompt must exceed to be said.", SCORING)] = None,
    over: Annotated[str | None, Help("Of what: classes, frames or minmax.", SCORING)] = None,
    pool: Annotated[str | None, Help("Triplet prompts: valid or all combinations.", SCORING)] = None,
    top_k: Annotated[int | None, Help("Triplet prompts that count.", SCORING)] = None,
    flow: Annotated[str | None, Help("dis, farneback, raft or files.", MOTION)] = None,
    flow_gap: Annotated[
        float | None, Help("Seconds to the next frame at most, for flow. Default: 1.5.", MOTION)
    ] = None,
    flow_source: Annotated[
        str | Path | None,
        Help("RAFT's weights; with --flow files the folder of .flo files.", MOTION, name="--flow-weights"),
    ] = None,
    fit: Annotated[str | None, Help("Camera fit: plain, masked or robust.", MOTION)] = None,
    grounded_at: Annotated[float | None, Help("AC above which a map is grounded.", MAPS)] = None,
    curves: Annotated[int | None, Help("Frames for deletion and insertion curves.", SCORING)] = None,
    sanity: Annotated[int | None, Help("Frames for the randomisation checks.", SCORING)] = None,
    occlusion: Annotated[bool | None, Help("Hide regions and ask again.", SCORING)] = None,
    causal: Annotated[bool, Help("Causal graphs of the names in a reply in words.", SCORING)] = True,
    every: Annotated[int, Help("Look at every n-th labelled frame only.", least=1)] = 1,
    batch: Annotated[int, common("batch", "Frames at a time; changes no number.")] = 16,
    threads: Annotated[int, Help("Threads that read and prepare frames.", RUNNING, least=1)] = 2,
    max_tokens: Annotated[int, Help("Of a reply in words, at most.", RUNNING, least=1, most=4096)] = 128,
    seed: int = 0,
) -> SurgXSettings:
    """The settings of a paper (`profile`), with some of them chosen; None keeps the paper's choice.

    >>> choose_settings(profile="early", keep_top=0.1).keep_top
    0.1
    """
    from surgeval.protocols.surgxbench.settings import profile_settings

    chosen: dict[str, Any] = {
        "keep_top": keep_top, "delta": delta, "over": over, "pool": pool, "top_k": top_k, "flow": flow, "fit": fit,
        "flow_source": str(flow_source) if flow_source else None, "flow_gap": flow_gap, "grounded_at": grounded_at,
        "curves": curves, "sanity": sanity, "occlusion": occlusion, "tasks": tuple(tasks) if tasks else None,
    }  # fmt: skip
    return profile_settings(
        profile, method=choose_map(method, order, start_layer, score_scale, words), max_tokens=max_tokens,
        geometry=geometry, positive=not literal, seed=seed, batch=batch, threads=threads, every=every,
        **({} if causal else {"causal": None}), **{name: value for name, value in chosen.items() if value is not None},
    )  # fmt: skip


def choose_map(
    name: MapName = "auto", order: str = "chefer", start_layer: int = 0, score_scale: str = "cosine",
    words: WordsName = "mean",
) -> Method:  # fmt: skip
    """The heatmap method of this name; `score_scale` is `cosine`, `logits` or a number as text.

    >>> choose_map(score_scale="much")
    Traceback (most recent call last):
    surgeval.errors.BadInput: score_scale 'much' is not a number. Use cosine, logits or a factor.
    """
    from surgeval.explain import Method

    scale: Any = score_scale
    if score_scale not in ("cosine", "logits"):
        try:
            scale = float(score_scale)
        except ValueError:
            raise BadInput(f"score_scale {score_scale!r} is not a number. Use cosine, logits or a factor.") from None
    return Method(name, order, start_layer, scale, words=words)  # type: ignore[arg-type]  # it checks the order
