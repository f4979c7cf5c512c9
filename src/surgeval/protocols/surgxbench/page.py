"""The report on where models look: the papers' tables and figures for one or several models, and a gallery.

Several models on the same frames share one page, so that F1 and grounding stand side by side as in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from surgeval.errors import BadInput
from surgeval.pages import Picture, Plot, Section
from surgeval.protocols.run_page import RunPage, evidence_of
from surgeval.protocols.surgxbench.figures import surgxbench_figures
from surgeval.protocols.surgxbench.gallery.cards import gallery_cards, hiding_cards
from surgeval.protocols.surgxbench.gallery.legend import picture_keys
from surgeval.protocols.surgxbench.page_tables import joint, overview, own, tables_to_save
from surgeval.protocols.surgxbench.result import SurgXScores
from surgeval.results import counted, percent
from surgeval.stats import number_text

__all__ = ["surgxbench_sections", "write_page_of"]


def write_page_of(results: Sequence[SurgXScores], out: str | Path) -> Path:
    """Write page, tables and figures of one or several runs below `out`, with the pictures that the runs store.

    >>> write_page_of([], Path("both"))
    Traceback (most recent call last):
    surgeval.errors.BadInput: A page needs at least one run.
    """
    if any(run.classes != results[0].classes for run in results):
        raise BadInput("report: found runs with different instruments, expected the same ones; write a page for each")
    known = (tables_to_save(results), surgxbench_figures(results)) if results else ({}, {})
    page = RunPage(results, out, *known)
    return page.write(
        surgxbench_sections(results, page.plots), _METHOD, title="" if len(results) == 1 else "Where do they look?",
        facts=_facts(results[0]), warnings=_warnings(results), notes=[note for run in results for note in run.notes],
        pictures=_pictures(results[0]), details=_details(results),
    )  # fmt: skip


_METHOD = (
    "A prompt's heatmap is made in the part of the frame that the model saw. The attended region is its top share of "
    "pixels with positive evidence (or a fixed threshold of the scaled map, profile early). AC is the share of the "
    "region on any annotated box, AA on boxes of the predicted instrument, RAS also counts what moves once the "
    "camera's own motion is taken away. Chance is the annotated share of the visible area: what a map without "
    "knowledge scores. Lift is the ratio of the two means. A prediction is grounded when AC is above the stated "
    "level and above chance. |A|/HW is the share of the visible area that the region takes: ties make it larger than "
    "asked for, a map with little evidence smaller.\n\n"
    "Cases without a region, with a constant map, without annotation or with none of it visible are left out of "
    "means and counted; AA also where the instrument itself has no visible box. What an occlusion does is told only "
    "where there was something to hide. Top-1 is counted in frames that show an instrument. Intervals (95 %) "
    "leave out each video in turn (Student's t at the effective number of videos); those of shares are Wilson's with "
    "that uncertainty, so they stay between 0 and 1. What one video alone makes up has no interval."
)


def surgxbench_sections(scores: Sequence[SurgXScores], figures: Mapping[str, Plot]) -> tuple[Section, ...]:
    """The chapters."""
    sections = [
        Section("Numbers", tables=(overview(scores),)),
        Section("Instruments", "Is it right, and does it look at what it names? The mark at a box is chance; a line "
                "through the end of a bar is its 95 % interval; a number without any case behind it is undefined.",
                figures=_plots(figures, "f1", "grounding"),
                tables=(*joint(scores, "paper_table1"), *own(scores, "classes", "table1", "videos"))),
        Section("Instrument by instrument", "Left how well the instrument is named, right what share of the attended "
                "region lies on it (AA) or on any instrument (AC), when the model names it rightly (TP) or wrongly "
                "(FP).", figures=_plots(figures, "instrument_"), paired=True),
        Section("What it says", _replies(scores), tables=own(scores, "replies", "unparsed")),
        Section("Right for the right reason?", "Every prediction is right or wrong, and its map lies on an instrument "
                "or not. Right and ungrounded is right for the wrong reason.",
                figures=_plots(figures, "four_way"), tables=own(scores, "four_way")),
        Section("What do its words hang on?", _causes(scores), tables=own(scores, "causal")),
        Section("Reference maps", "The same metrics for maps made without a model. A model worth explaining beats "
                "uniform and centre.", tables=own(scores, "references")),
        Section("Triplets", _triplets(scores),
                figures=_plots(figures, "matches", "ras"), images=_pipelines(scores),
                tables=(*joint(scores, "paper_table2"), *own(scores, "matches", "table2"))),
        Section("Occlusion", "If a map says what the score depends on, hiding its region costs more than hiding the "
                "same shape elsewhere; if the score is about the instrument, hiding the instrument costs most.",
                figures=_plots(figures, "occlusion", "curve"),
                tables=own(scores, "occlusion", "occlusion_triplets", "curves"), paired=True),
        Section("Before and after hiding", "Frames with a complete triplet match, whole and with the attended region "
                "hidden, each with its top prompts. A prompt is marked by the best match that it has with a labelled "
                "triplet: ✓ IVT all of it, IV instrument and verb, IT instrument and target, I the instrument only, "
                "none not even that.", cards=hiding_cards(scores)),
        Section("Is the map a property of the model?", "Shuffling the weights from the output down must change the "
                "map, and so should another prompt. A correlation that stays near 1 says that the map shows the "
                "image.", figures=_plots(figures, "sanity"), tables=own(scores, "sanity")),
        *(Section(f"Gallery: {run.name}" if len(scores) > 1 else "Gallery",
                  "Left the frame with its annotation, right the map. |A|/HW is the share of what it saw that the "
                  "region takes.", cards=gallery_cards(run),
                  key=picture_keys(motion="triplets" in run.settings["tasks"])) for run in scores if run.items),
        Section("Each frame", "", evidence=evidence_of(scores)),
        Section("Left out", "Nothing is dropped silently. A case is left out of means where nothing is annotated "
                "(no_gt) or nothing of it lies in what the model saw (gt_not_visible), where the map has no "
                "attended pixel (empty_region) or no contrast (constant); of RAS also where no following frame shows "
                "what moves (no_motion, gap, no_flow). Other flags are warnings: the case counts.",
                tables=(*joint(scores, "left_out"), *own(scores, "failures", "flags"))),
    ]  # fmt: skip
    return tuple(sections)


def _facts(run: SurgXScores) -> tuple[str, ...]:
    """What was measured, in a few words."""
    frames = run.cases.select("cluster", "frame").n_unique()
    return counted(run.cases["cluster"].n_unique(), "video"), counted(frames, "frame"), str(run.record.dataset["name"])


def _pictures(run: SurgXScores) -> list[Picture]:
    """The most grounded right answer, and the least grounded one."""
    known = [item for item in run.items if item.right and item.ac is not None]
    if not known:
        return []
    best, worst = (choose(known, key=lambda item: item.ac or 0.0) for choose in (max, min))
    return [
        Picture(item.picture, f"{item.video} frame {item.frame}: boxes and heatmap of {item.predicted}",
                f"{item.predicted}, {item.video} / {item.frame}: right, {number_text(item.ac, 'share')} of the "
                "attention on an instrument")
        for item in dict.fromkeys((best, worst))
    ]  # fmt: skip


def _warnings(scores: Sequence[SurgXScores]) -> list[str]:
    warnings = []
    if any(run.failed for run in scores):
        lost = "; ".join(f"{run.failed} of {run.name}: {_why_lost(run)}" for run in scores if run.failed)
        warnings.append(f"Frames or records that could not be used are in no number: {lost} (see Left out)")
    if differing := _differing(scores):
        warnings.append(f"Compare with care: these runs differ in {', '.join(differing)}")
    return warnings


def _why_lost(run: SurgXScores) -> str:
    """The reasons by how often they occur, shortened: the table has them in full."""
    rows = run.detail_tables["failures"].sort("cases", descending=True, maintain_order=True)
    reasons = [str(reason) for reason in rows["reason"].unique(maintain_order=True)]
    return ", ".join(f"{text[:80]}…" if len(text) > 80 else text for text in reasons[:2])


def _differing(scores: Sequence[SurgXScores]) -> list[str]:
    """What else than the model differs between runs; the kind of heatmap follows from the model."""
    known = [{**run.settings, "dataset": run.record.dataset} for run in scores]
    names = sorted(set().union(*known) - {"method", "dtype", "tasks", "questions", "max_tokens"})
    # A run without triplets found no motion: that is nothing to compare, not a difference.
    return [
        name for name in names if len({repr(settings.get(name)) for settings in known if settings.get(name) != {}}) > 1
    ]


def _details(scores: Sequence[SurgXScores]) -> dict[str, str]:
    """What was chosen; where the models' runs differ, each choice once, in their order."""
    choices = [_choices(run) for run in scores]
    return {key: "; ".join(dict.fromkeys(choice[key] for choice in choices)) for key in choices[0]}


def _choices(run: SurgXScores) -> dict[str, str]:
    config, model, data = run.settings, run.record.model, run.record.dataset
    method = config["method"]
    extra = ", ".join(f"{key} {value}" for key, value in method.items() if key != "name")
    top = config["region"] == "top"
    return {
        "Profile": str(config["profile"]),
        "Heatmap": f"{method['name']} ({extra})" if extra else str(method["name"]),
        "Region": f"top {percent(config['keep_top'])}" if top else f"≥ {config['threshold']} of min-max",
        "Geometry": str(config["geometry"]),
        "Model": f"{model['name']} ({model['family']}, {str(model['identity'])[:12]})",
        "Data": f"{data['name']} ({data['format']})",
        "Frames": f"{run.cases.select('cluster', 'frame').n_unique()} of "
        + counted(run.cases["cluster"].n_unique(), "video")
        + (f", every {config['every']}." if config["every"] > 1 else ""),
        "Said": "everything it generates" if config["method"]["name"] == "token-gradcam"
        else "the best prompt" if config["predict"] == "argmax"
        else f"prompts above the {number_text(config['delta'], 'share')} quantile over {config['over']}",
    }  # fmt: skip


def _replies(scores: Sequence[SurgXScores]) -> str:
    """How a model that answers in words was asked, for pages that have one."""
    asked = [run.settings.get("questions") for run in scores if "replies" in run.detail_tables]
    texts = [str(text) for questions in asked if isinstance(questions, Mapping) for text in questions.values()]
    asking = (
        "A model that answers in words is asked a question, and all that its reply names counts as predicted; the "
        "class named first stands for top-1. Names are found by synonyms, plurals and inflections; what is denied is "
        "not named. Unparsed is what a reply names and the label space does not hold, as a share of all names. The map "
        "of a class is the token Grad-CAM of its first mention, its score the probability of those tokens."
    )
    lines = [f"Asked: {text}".replace("\n", " / ") for text in dict.fromkeys(texts)]
    return "\n\n".join([asking, *lines]) if asked else ""


def _causes(scores: Sequence[SurgXScores]) -> str:
    """How explaining tokens were found, where a run has them."""
    causal = next((run.settings.get("causal") for run in scores if "causal" in run.detail_tables), None)
    if not isinstance(causal, Mapping):
        return ""
    heads, learner, radius, margin = (causal.get(key) for key in ("heads", "learner", "radius", "margin"))
    return (
        f"For every token that names an instrument a causal graph is learned from the attention of the {heads} heads "
        f"that look most at the image (CLEANN, learner {learner}, radius {radius}). Tokens that explain the name are "
        "of the image or of the text. An image token is near when its patch touches a box grown by patches of the "
        f"grid, {margin} on each side: a box of the named instrument where it is there (named rightly), of any "
        "instrument where it is not (wrongly). Chance is the share of all tokens the model was shown that are near; "
        "near attended is that share among the image tokens in the graphs: what attention alone gives. A graph "
        "whose search was too long is counted as stopped. Graphs tell what goes with what in attention, not what the "
        "answer would be without it: hiding regions does (Occlusion)."
    )


def _triplets(scores: Sequence[SurgXScores]) -> str:
    text_of = {
        "matches": "Each labelled triplet takes the best match among the top prompts, or among all that a "
        "reply in words names.",
        "table2": "Profile early: each frame has one predicted triplet; where its instrument and verb are right, the "
        "map of the verb's own prompt is measured on the boxes of that instrument (ARS).",
    }
    return " ".join(text for name, text in text_of.items() if any(name in run.detail_tables for run in scores))


def _plots(plots: Mapping[str, Plot], *starts: str) -> tuple[Plot, ...]:
    narrow = ("curve", "sanity", "instrument_")  # these stand in pairs
    return tuple(
        replace(plot, wide=not name.startswith(narrow))
        for start in starts
        for name, plot in plots.items()
        if name.startswith(start)
    )


def _pipelines(scores: Sequence[SurgXScores]) -> tuple[Picture, ...]:
    """How motion was found, once: it does not depend on the model."""
    flows = [run.extras.flow for run in scores if run.extras.flow is not None]
    note = "Flow to the next frame, the camera's part of it, the rest, and what counts as moving. Colour is direction."
    return tuple(Picture(flow.draw(), flow.alt, f"{flow.title}. {note}") for flow in flows[:1])
