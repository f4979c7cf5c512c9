"""Two models on the same items: paired differences, exchanged video by video.

Both must have been asked the same items (the same words, options and answers under the same ids). What may differ is
said: frames, prompts and the pictures themselves, by their recorded hashes.
"""

from __future__ import annotations

import polars as pl

from surgeval.datasets import intent_record
from surgeval.errors import BadInput, visible
from surgeval.protocols.comparison import Pair, refuse_different, shared_settings
from surgeval.protocols.intent.gallery import same_question_sections
from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.scoring.interventions import GAZE, replied_under
from surgeval.protocols.intent.scoring.numbers import MEASURES
from surgeval.protocols.intent.scoring.scores import PLAIN

__all__ = ["pair_intent"]

_SHOWN = ("gaze", "sampling", "frames", "longest_edge", "jpeg_quality", "temperature", "max_tokens")


def pair_intent(first: IntentScores, second: IntentScores) -> Pair:
    r"""Competency, reliability, pairs, skills and the gain by gaze, over the items that both answered.

    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from surgeval import compare
    >>> from surgeval.protocols.intent import score_intent
    >>> item = {"scenario": "chest_xray", "media": [], "dimension": "spatial", "skill": "absolute",
    ...         "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = [json.dumps({**item, "id": f"i{k}", "cluster": f"P{k}"}) for k in range(6)]
    ...     _ = Path(folder, "items.jsonl").write_text("\n".join(rows))
    ...     for name, letters in (("good", "BBBBBB"), ("poor", "BAABAA")):
    ...         said = [{"id": f"i{k}", "content": letter} for k, letter in enumerate(letters)]
    ...         _ = score_intent(said, folder, name=name).save(f"{folder}/{name}")
    ...     compare(f"{folder}/good", f"{folder}/poor")
    good − poor: competency 1.000 − 0.333 = 0.667 [0.000, 1.000], p = 0.1250
    """
    _require_comparable(first, second)
    cases = _shared_cases(first, second)
    measures = [measure for measure in MEASURES if callable(measure.ratio) and measure.ratio(cases[0]) is not None]
    if not measures:
        raise BadInput(visible(f"{first.name} and {second.name} share no item that both answered."))
    return Pair(
        measures=measures, cases=cases,
        settings={**shared_settings(first, second), "invalid": first.invalid, "items": len(first.items),
                  "subset": first.subset},
        notes=lambda _numbers: _notes(first, second), sections=same_question_sections([first, second]),
    )  # fmt: skip


def _shared_cases(first: IntentScores, second: IntentScores) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows (item and cell) that both have, as asked first, and those asked with and without gaze."""
    pairs = [
        a.join(b, on=["item", "cell"], how="inner", suffix="_b", maintain_order="left")
        for a, b in ((first.plain, second.plain), (_both_ways(first), _both_ways(second)))
    ]
    both = pl.concat([rows.select("cluster", "cell", "value", "value_b") for rows in pairs])
    return both.drop("value_b"), both.drop("value").rename({"value_b": "value"})


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
    rules = ({"the rule for unreadable replies": run.invalid} for run in (first, second))
    refuse_different(first, second, *rules, advice="Score both by the same rule.")
    ours, theirs = ({item.id: intent_record(item, []) for item in run.items} for run in (first, second))
    if ours.keys() != theirs.keys():
        odd = sorted(ours.keys() ^ theirs.keys())
        raise BadInput(visible(f"{names}: only one of them has {len(odd)} of the items, such as {odd[0]!r:.60}. "
                               "Compare runs on the same items."))  # fmt: skip
    changed = [name for name in ours if ours[name] != theirs[name]]
    if changed:
        raise BadInput(visible(f"{names}: texts or answers differ under the same ids, such as {changed[0]!r:.60}. "
                               "Compare runs on the same items."))  # fmt: skip


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
