"""One figure of every kind, and some with labels that try to be more than text."""

from __future__ import annotations

import math

from surgeval.figures import (
    Cloud,
    Curve,
    Estimate,
    Figure,
    Series,
    TimelineSpan,
    bars,
    box,
    curves,
    estimates,
    heatmap,
    histogram,
    lines,
    podium,
    rank_blobs,
    scatter,
    significance_map,
    stability_lines,
    stacked,
    timeline,
)

HOSTILE = (
    "<b>hook</b> & </text></script>", "_under", r"$\frac{clip}$", "line\nbreak\x00", "\u202eright to left", "12",
    "datum.tip", "{{x}}", "</script><img src=x onerror=alert(1)>", "12",
)  # fmt: skip
TOOLS = ("grasper", "hook", "clipper")
STEPS = tuple(k / 99 for k in range(100))


def figures() -> dict[str, Figure]:
    """Every kind, with ordinary names."""
    two = [Series("A", (3, 0, 1)), Series("B", (2, 5, 4))]
    numbers = [
        Series("clip", (Estimate(0.5, 0.4, 0.7), Estimate(None), Estimate(0.0))),
        Series("blip", (Estimate(-0.2, -0.3, 0.1), Estimate(0.25), Estimate(0.9))),
    ]
    places = ((1, 2), (1, 1), (2, 1))
    return {
        "stacked bars": bars("Tools", TOOLS, two, "instances"),
        "grouped bars": bars("Tools", TOOLS, two, "%", grouped=True, horizontal=False, axis="tool"),
        "log points": bars("Tools", TOOLS, two, "instances", log=True, horizontal=False, named=False),
        "shares": stacked("Matches", ("clip", "blip"), (Series("IVT", (1, 3)), Series("missed", (3, 3))), "triplets"),
        "histogram": histogram("Length", (0, 1, 2, math.inf), (3, 2, 1), "seconds", "actions"),
        "estimates": estimates("F1", TOOLS, numbers, "score", baselines=(0.1, None, 0.2)),
        "upright estimates": estimates("F1", TOOLS, numbers, "score", horizontal=False, span=(-1, 1), height=200),
        "one estimate": estimates("F1", TOOLS, [Series("clip", ((0.5, 0.4, 0.7), (0.1,), (math.nan,)))], "score"),
        "scatter": scatter("AP", "frames", "AP", [Cloud("i", TOOLS, (5, 50, 500), (0.1, 0.4, 0.8), named=True),
                                                  Cloud("t", ("liver",), (90,), (0.3,))], log=True),
        "lines": lines("Loss", "epoch", "loss", [Curve("box", (1, 2, 3), (3.0, 2.0, 1.5))], marks=[(2, "student")]),
        "curves": curves("PR", "recall", "precision", [
            Curve("hook", STEPS, tuple(1 - x for x in STEPS), "0.50"), Curve("mean", (0, 1), (1, 0.5), heavy=True)]),
        "many curves": curves("PR", "recall", "precision", [Curve(str(k), (0, 1), (1, 0)) for k in range(20)]),
        "heatmap": heatmap("Pairs", TOOLS, ("cut", "clip"), ((4, None), (0, 900), (7, 8)), "instances"),
        "shares by bucket": heatmap("Right", TOOLS, ("a", "b"), ((0, 1), (0.5, 0.2), (None, 1)), "accuracy", whole=1),
        "box": box("A", TOOLS,
                   [("clip", ((0.2, 0.4, 0.9), (), (0.5,))), ("blip", ((0.1,) * 4, (1.0,), (0.3,)))], "share",
                    marks=((0.1, None, 0.2), (0.1, 0.3, None))),
        "timeline": timeline("Phases", ("VID01", "VID02"), ("a", "b"),
                             (TimelineSpan(0, 0, 0, 3), TimelineSpan(1, 1, 2, 9)), "minutes"),
        "podium": podium("P", ("net", "prior"), ("x", "y", "z"), ((0.8, 0.6), (0.7, 0.7), (0.1, 0.2)), places, "score"),
        "blobs": rank_blobs("Places", ("net", "prior"), ((0.9, 0.1), (0.1, 0.9)), ((1, 1, 2), (1, 2, 2))),
        "significance": significance_map("Verb", TOOLS, ((0, 2, 1), (0, 0, 1), (0, 0, 0)), 3),
        "stability": stability_lines("One out", ("net", "prior"), ("all", "no verb"), ((1, 2), (2, None)), "bucket"),
    }  # fmt: skip


def hostile_figures() -> dict[str, Figure]:
    """Kinds of every family, with hostile names wherever a name can stand; two of the names are equal."""
    count = len(HOSTILE)
    ones = [Series(name, (1,) * count) for name in HOSTILE]
    return {
        "bars": bars("<i>$x$", HOSTILE, ones, "<u>", axis="<u>"),
        "shares": stacked("<i>", HOSTILE, ones, "<u>"),
        "estimates": estimates("<i>", HOSTILE, [Series(name, ((0.5, 0.4, 0.6),) * count) for name in HOSTILE], "<u>",
                               baselines=(0.2,) * count, baseline="<u>"),
        "scatter": scatter("<i>", "<u>", "<u>", [Cloud(n, HOSTILE, range(count), range(count), True) for n in HOSTILE]),
        "lines": lines("<i>", "<u>", "<u>", [Curve(n, (0, 1), (1, 2), "<u>") for n in HOSTILE], marks=[(1, "<u>")]),
        "heatmap": heatmap("<i>", HOSTILE, HOSTILE, ((1.0,) * count,) * count, "<u>"),
        "box": box("<i>", HOSTILE, [(name, ((0.5,),) * count) for name in HOSTILE], "<u>"),
        "timeline": timeline("<i>", HOSTILE, HOSTILE, [TimelineSpan(k, k, 0, 1) for k in range(count)], "<u>"),
        "significance": significance_map("<i>", HOSTILE, ((0,) * count,) * count, 3),
        "stability": stability_lines("<i>", HOSTILE, HOSTILE, [[k + 1] * count for k in range(count)], "<u>"),
    }  # fmt: skip


def empty_figures() -> dict[str, Figure]:
    """Figures without a value."""
    return {
        "bars": bars("None", (), [Series("A", ())], "instances"),
        "zeros": bars("None", TOOLS, [Series("A", (0, 0, 0))], "instances"),
        "zeros on a log axis": bars("None", TOOLS, [Series("A", (0, 0, 0))], "instances", log=True),
        "estimates": estimates("None", TOOLS, [Series("A", (Estimate(None),) * 3)], "score"),
        "scatter": scatter("None", "x", "y", [Cloud("i", (), (), ())], log=True),
        "curves": curves("None", "x", "y", []),
        "heatmap": heatmap("None", (), (), (), "instances"),
        "timeline": timeline("None", (), (), (), "minutes"),
    }
