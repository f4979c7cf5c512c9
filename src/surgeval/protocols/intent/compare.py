"""Two models on the same items: paired differences, exchanged video by video.

Both must have been asked the same items (the same words, options and answers under the same ids). What may differ is
said: frames, prompts and the pictures themselves, by their recorded hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from surgeval.datasets import intent_record
from surgeval.errors import BadInput, visible
from surgeval.protocols.contract import Compared, Comparison, few_video_notes
from surgeval.protocols.intent.gallery import same_question_sections
from surgeval.protocols.intent.result import IntentScores, load_intent
from surgeval.protocols.intent.scoring.estimates import RESAMPLES, difference_of, gap_of
from surgeval.protocols.intent.scoring.interventions import GAZE, replied_under
from surgeval.protocols.intent.scoring.scores import PLAIN
from surgeval.protocols.intent.scoring.weights import LABELS, NUMBERS, Weights, number_unit, weights_of

__all__ = ["compare_intent"]

_FIRST = ("overall", "paired", "reliability", "perceptual", "cognitive", "twin", "over_rejection")
_LOWER, _NEITHER = ("over_rejection",), ("asymmetry",)
_SHOWN = ("gaze", "sampling", "frames", "longest_edge", "jpeg_quality", "temperature", "max_tokens")


def compare_intent(
    a: IntentScores | str | Path, b: IntentScores | str | Path, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    r"""Differences a − b of competency, reliability, pairs, skills and the gain by gaze; run folders or loaded runs.

    `resamples` is how many exchanges of videos are drawn at most; where there are no more, all of them are used.

    >>> import json, tempfile
    >>> from surgeval.protocols.intent import score_intent
    >>> item = {"scenario": "chest_xray", "media": [], "dimension": "spatial", "skill": "absolute",
    ...         "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = [json.dumps({**item, "id": f"i{k}", "cluster": f"P{k}"}) for k in range(6)]
    ...     _ = Path(folder, "items.jsonl").write_text("\n".join(rows))
    ...     for name, letters in (("good", "BBBBBB"), ("poor", "BAABAA")):
    ...         said = [{"id": f"i{k}", "content": letter} for k, letter in enumerate(letters)]
    ...         _ = score_intent(said, folder, name=name).save(f"{folder}/{name}")
    ...     compare_intent(f"{folder}/good", f"{folder}/poor")
    good − poor: competency 1.000 − 0.333 = 0.667 [0.000, 1.000], p = 0.1250
    >>> compare_intent("runs/lvlm", "runs/sister")
    Traceback (most recent call last):
    surgeval.errors.DataError: runs/lvlm: no such folder
    """
    first, second = (run if isinstance(run, IntentScores) else load_intent(run) for run in (a, b))
    _require_comparable(first, second)
    numbers = tuple(_numbers(first, second, resamples=resamples, seed=seed))
    if not numbers:
        raise BadInput(visible(f"{first.name} and {second.name}: found no item that both answered, expected some"))
    videos = max(number.difference.interval.clusters for number in numbers)
    return Comparison(
        protocol="intent", a=first.name, b=second.name, numbers=numbers,
        settings={"invalid": first.invalid, "items": len(first.items), "subset": first.subset,
                  "resamples": resamples, "seed": seed},
        notes=(*few_video_notes(videos), *_notes(first, second)), sections=same_question_sections([first, second]),
    )  # fmt: skip


def _numbers(first: IntentScores, second: IntentScores, **drawing: int) -> Iterator[Compared]:
    for number in (*_FIRST, *(name for name in NUMBERS if name not in _FIRST)):
        difference = difference_of(first.plain, second.plain, number, **drawing)
        if difference is not None:
            better = None if number in _NEITHER else number not in _LOWER
            yield Compared(number, LABELS[number], difference, higher_is_better=better, unit=number_unit(number))
    gain = _gain(first, second, **drawing)
    if gain is not None:
        yield gain


def _gain(first: IntentScores, second: IntentScores, **drawing: int) -> Compared | None:
    """The difference of the gains by gaze: a weighted mean over the cells of both conditions."""
    key = ["item", "cell"]
    both = _both_ways(first).join(_both_ways(second), on=key, how="inner", suffix="_b", maintain_order="left")
    skills = weights_of("overall", {cell.partition("/")[2] for cell in both["cell"].unique()})
    if not skills:
        return None
    weights: Weights = {
        **{f"{GAZE}/{skill}": weight for skill, weight in skills.items()},
        **{f"{PLAIN}/{skill}": -weight for skill, weight in skills.items()},
    }
    return Compared("gaze_gain", "gain by gaze", gap_of(both, weights, "gaze_gain", **drawing), unit="points")


def _both_ways(scores: IntentScores) -> pl.DataFrame:
    """The cells asked with and without gaze, the condition in the name of the cell."""
    with_gaze, without = (replied_under(scores.cells, condition) for condition in (GAZE, PLAIN))
    pairs = [
        asked.join(other, on=["item", "cell"], how="semi")
        for asked, other in ((with_gaze, without), (without, with_gaze))
    ]
    return pl.concat(pairs).with_columns(cell=pl.concat_str("condition", pl.lit("/"), "cell"))


def _require_comparable(first: IntentScores, second: IntentScores) -> None:
    names = f"{first.name} and {second.name}"
    if first.invalid != second.invalid:
        raise BadInput(visible(f"{names}: found other rules for unreadable replies ({first.invalid} and "
                               f"{second.invalid}), expected the same"))  # fmt: skip
    ours, theirs = ({item.id: intent_record(item, []) for item in run.items} for run in (first, second))
    if ours.keys() != theirs.keys():
        odd = sorted(ours.keys() ^ theirs.keys())
        raise BadInput(visible(f"{names}: found {len(odd)} items that only one of them has ({odd[0]!r:.60}), expected "
                               "the same items"))  # fmt: skip
    changed = [name for name in ours if ours[name] != theirs[name]]
    if changed:
        raise BadInput(visible(f"{names}: found other texts or answers under the same ids ({changed[0]!r:.60}), "
                               "expected the same items"))  # fmt: skip


def _notes(first: IntentScores, second: IntentScores) -> tuple[str, ...]:
    notes = [
        f"{key}: {str(first.settings.get(key))[:60]} for {first.name}, {str(second.settings.get(key))[:60]} for "
        f"{second.name}"
        for key in _SHOWN if first.settings.get(key) != second.settings.get(key)
    ]  # fmt: skip
    notes += [f"a subset of the items: {first.subset}"] if first.subset else []
    notes.append(_same_pictures(first, second))
    if not first.set_has_twins:
        notes.append("no trap has a true-premise twin: a higher cognitive reliability may only be more rejecting")
    notes += [f"{run.name}: {run.missing} items have no reply and count as wrong" for run in (first, second)
              if run.missing]  # fmt: skip
    return tuple(filter(None, notes))


def _same_pictures(first: IntentScores, second: IntentScores) -> str:
    """Whether both were shown the same pictures, by the hashes that the runs recorded."""
    key = ["item", "condition"]
    some = ~pl.col("shown").fill_null("[]").is_in(["", "[]"])
    shown = [run.answers.filter(some).select(*key, "shown") for run in (first, second)]
    both = shown[0].join(shown[1], on=key, how="inner", suffix="_b")
    if both.is_empty():
        return ""
    other = int((both["shown"] != both["shown_b"]).sum())
    if other:
        return f"other pictures were shown in {other} of {both.height} cases that both recorded"
    return f"both were shown the same pictures: {both.height} records of frames and hashes are equal"
