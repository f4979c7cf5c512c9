"""What a finished run says: competency, reliability and interventions, computed from the answers it stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.engine import RunRecord, load_record
from surgeval.errors import BadInput, printable
from surgeval.protocols.asked import UNKNOWN_MEDIA, count_models
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.intent.cases import AnswerRow, load_answers
from surgeval.protocols.intent.items import load_items, save_items
from surgeval.protocols.intent.scoring.estimates import chance_of, estimate_of
from surgeval.protocols.intent.scoring.interventions import (
    Moved,
    Order,
    Removal,
    TextOnly,
    gaze_gains,
    moved_gaze,
    option_order,
    text_only_rows,
    trap_removal,
    under,
)
from surgeval.protocols.intent.scoring.numbers import GAZE_GAIN, MEASURES
from surgeval.protocols.intent.scoring.scores import MISSING, PLAIN, Invalid, answers_of, scored_cells
from surgeval.protocols.intent.scoring.weights import DIMENSIONS, NUMBERS, SKILLS
from surgeval.protocols.pictures import load_pictures, save_pictures
from surgeval.protocols.reply_warnings import find_one_answer, find_other_models
from surgeval.protocols.result import RecordedResult, RunFiles, RunSettings, check_output, write_run
from surgeval.records import IntentQuestion
from surgeval.results import counted
from surgeval.stats import Difference, Interval

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["IntentScores", "check_scores_folder", "load_intent", "outcomes"]


class IntentSettings(RunSettings):
    """The settings that numbers depend on: what becomes of replies without a choice, and which part was asked."""

    invalid: Invalid = "wrong"
    subset: str | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IntentScores(RecordedResult):
    """One model on one set of items.

    `answers` has a row per item and condition: what was chosen, whether it is right, and what the item is for.
    `invalid` says what becomes of replies without a readable choice, `subset` which part of the set was asked (empty:
    all of it). `pictures` are by item.
    """

    name: str
    record: RunRecord
    items: tuple[IntentQuestion, ...]
    answers: pl.DataFrame
    invalid: Invalid = "wrong"
    subset: str = ""
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    protocol = "intent"
    measures = MEASURES

    @cached_property
    def cells(self) -> pl.DataFrame:
        """What every number is a mean of."""
        return scored_cells(self.items, self.answers, self.invalid)

    @cached_property
    def plain(self) -> pl.DataFrame:
        """The cells as asked first: no gaze, pictures shown."""
        return under(self.cells, PLAIN)

    @cached_property
    def numbers(self) -> Mapping[str, Interval]:
        """Competency and reliability by name (`overall`, the dimensions and skills, `reliability`, `paired` …)."""
        return {number: interval for number in NUMBERS if (interval := estimate_of(self.plain, number)) is not None}

    @cached_property
    def strict(self) -> Mapping[str, Interval]:
        """The same, where a reply counts only if it is nothing but a choice."""
        intervals = {number: estimate_of(self.plain, number, "strict") for number in self.numbers}
        return {number: interval for number, interval in intervals.items() if interval is not None}

    @cached_property
    def chances(self) -> Mapping[str, float]:
        """What guessing reaches."""
        return {number: chance for number in self.numbers if (chance := chance_of(self.plain, number)) is not None}

    @cached_property
    def gains(self) -> Mapping[str, Difference]:
        """What gaze prompting adds, by dimension and overall; empty where it was not asked."""
        return gaze_gains(self.cells)

    @cached_property
    def text_only(self) -> Mapping[str, TextOnly]:
        """The same items without their pictures; empty where that was not asked."""
        return text_only_rows(self.cells)

    @cached_property
    def removal(self) -> Mapping[str, Removal]:
        """Traps taken away, by kind; empty where no trap has a sanitised twin."""
        return trap_removal(self.items, self.answers, self.invalid)

    @cached_property
    def order(self) -> Order | None:
        """Options in every order."""
        return option_order(self.answers)

    @cached_property
    def moved(self) -> Moved | None:
        """Gaze moved elsewhere."""
        return moved_gaze(self.answers)

    @property
    def answered_by(self) -> Mapping[str, int]:
        """Replies by the model name that the server gave; empty where it gave none."""
        return count_models(self.answers)

    @cached_property
    def reply_warnings(self) -> tuple[str, ...]:
        """What is probably wrong with the replies, to be read before the numbers."""
        warnings = find_other_models(_name(self.record), self.answered_by)
        rights = {item.id: str(item.answer) for item in self.items}
        plain = self.answers.filter((pl.col("status") == "ok") & (pl.col("condition") == PLAIN))
        chosen = [(str(choice), rights[item]) for item, choice in plain.select("item", "choice").iter_rows()]
        if not plain["choice"].null_count() and find_one_answer(chosen):
            letter = chr(ord("A") + plain["choice"][0])
            warnings.append(f"the model chose option {letter} for all {len(chosen)} items")
        elif plain["choice"].null_count() == plain.height:
            warnings += find_one_answer(
                [(content, rights[item]) for item, content in plain.select("item", "content").iter_rows()]
            )
        return tuple(warnings)

    @property
    def clusters(self) -> int:
        """Source videos (or patients) behind the numbers."""
        return int(self.plain["cluster"].n_unique())

    @property
    def unreadable(self) -> float:
        """Share of the replies, over all conditions, in which no choice can be read."""
        replied = self.answers.filter(pl.col("status") == "ok")
        return float(replied["choice"].is_null().mean() or 0.0) if replied.height else 0.0  # type: ignore[arg-type]

    @property
    def missing(self) -> int:
        """Items to which a file of replies has none; they count as wrong."""
        return int((self.answers["status"] == MISSING).sum())

    @property
    def failed(self) -> int:
        """Cases whose request failed; they are in no number."""
        return int((~self.answers["status"].is_in(["ok", MISSING])).sum())

    @property
    def pictured(self) -> bool:
        """Whether it was shown any picture; for replies made elsewhere this is unknown, and assumed."""
        return self.settings.get("media", UNKNOWN_MEDIA) == UNKNOWN_MEDIA or bool(
            (~self.answers["shown"].fill_null("[]").is_in(["", "[]"])).any()
        )

    @property
    def has_twins(self) -> bool:
        """Whether rejecting and discriminating can be separated."""
        return "paired" in self.numbers

    @property
    def set_has_twins(self) -> bool:
        """Whether a cognitive trap of the items has its true-premise twin among them, answered or not."""
        ids = {item.id for item in self.items}
        return any(item.trap == "cognitive" and item.twin in ids for item in self.items)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has no reply, in sentences: for the terminal and the page."""
        sentences = []
        if self.missing:
            items = counted(len(self.items), "item")
            sentences.append(f"{self.missing} of {items} have no reply and count as wrong.")
        if self.failed:
            sentences.append(f"{counted(self.failed, 'request')} failed and are in no number; a retry asks only these.")
        return tuple(sentences)

    def headlines(self) -> tuple[Headline, ...]:
        """Competency, paired accuracy, reliability, over-rejection and the gain by gaze, as far as they were asked."""
        gain = {GAZE_GAIN.key: self.gains["overall"].interval} if "overall" in self.gains else {}
        return headlines_of(MEASURES, {**self.numbers, **gain}, chances=self.chances)

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it understand, and can it be fooled? None where nothing was answered."""
        from surgeval.protocols.intent.verdict import judge  # which reads results

        return judge(self)

    def evidence(self) -> Evidence | None:
        """A row per item and condition: question, options, what was chosen, what is right."""
        from surgeval.protocols.intent.evidence import intent_evidence

        return intent_evidence(self)

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """`numbers` first; then interventions, scenarios, readings, the set, and every answer."""
        from surgeval.protocols.intent.tables import intent_tables

        return intent_tables(self)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """`scatter` (competency and reliability) first."""
        from surgeval.protocols.intent.figures import intent_figures

        return intent_figures([self])

    def sentences(self) -> tuple[str, ...]:
        """Which part of the items was asked, and what has no reply."""
        subset = (f"a subset: {self.subset}",) if self.subset else ()
        return (*subset, *(f"warning: {warning}" for warning in self.warnings))

    @property
    def exit_code(self) -> int:
        """1 when an item has no reply."""
        return 1 if self.failed or self.missing else 0

    def to_json(self) -> dict[str, Any]:
        """The numbers, and how many replies are missing, failed or unreadable."""
        return {
            **super().to_json(), "items": len(self.items), "cases": self.answers.height, "missing": self.missing,
            "failed": self.failed, "invalid_rate": self.unreadable, "subset": self.subset,
        }  # fmt: skip

    def json_details(self) -> dict[str, Any]:
        """The warnings."""
        return {"warnings": [*self.reply_warnings, *self.warnings]}

    def save(self, folder: str | Path) -> Path:
        """Write the cases, the items and the pictures as a run that was scored; returns its folder.

        A folder of other scores is written anew, one of a run that asked a model is refused.
        """
        check_scores_folder(folder)
        with write_run(folder, self.record) as out:
            save_items(out, self.items)
            save_pictures(out, dict(self.pictures))
            AnswerRow.save(self.answers, out)
        return Path(folder)

    def __str__(self) -> str:
        verdict = [] if self._verdict is None else [f"  {self._verdict}"]
        subset = [f"  a subset: {self.subset}"] if self.subset else []
        warnings = [f"  warning: {warning}" for warning in self.warnings]
        headlines = [f"  {headline.label}: {headline.cell}" for headline in self.headlines()]
        return "\n".join([self.name, *verdict, *subset, *warnings, *headlines])


def load_intent(folder: str | Path, *, invalid: Invalid | None = None, name: str | None = None) -> IntentScores:
    """Read a finished run folder; `invalid` (`wrong` or `drop`) is as the run says unless it is given.

    >>> import json, tempfile
    >>> from surgeval.protocols.intent import score_intent
    >>> item = {"id": "i1", "scenario": "chest_xray", "cluster": "P1", "media": [], "dimension": "spatial",
    ...         "skill": "absolute", "question": "Where is it?", "options": ["left", "right"], "answer": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "items.jsonl").write_text(json.dumps(item))
    ...     _ = score_intent([{"id": "i1", "content": "Answer: B"}], folder, name="lvlm").save(f"{folder}/run")
    ...     scores = load_intent(f"{folder}/run")
    >>> scores.name, scores.answers.select("choice", "right").row(0)
    ('lvlm', (1, True))
    >>> load_intent("runs/lvlm")
    Traceback (most recent call last):
    surgeval.errors.DataError: runs/lvlm: no such folder
    """
    files = RunFiles.open(folder, "intent", IntentSettings)
    run_folder, items = files.folder, load_items(files.folder).items
    pictures, odd = load_pictures(run_folder)
    return IntentScores(
        name=name or _name(files.record) or run_folder.resolve().name, record=files.record, items=items,
        answers=answers_of(items, load_answers(run_folder, items)), invalid=invalid or files.settings.invalid,
        subset=printable(files.settings.subset or "")[:200], pictures=pictures, notes=odd,
    )  # fmt: skip


def check_scores_folder(folder: str | Path) -> None:
    """Refuse a folder for scores that holds a dataset, the run of another protocol, or one that asked a model.

    >>> check_scores_folder("a new folder")
    """
    check_output(folder, "intent")
    if (Path(folder) / "run.json").exists() and load_record(folder).config.get("media") != UNKNOWN_MEDIA:
        raise BadInput(f"{folder}: holds a run that asked a model. Name a new folder or one of earlier scores.")


def _name(record: RunRecord) -> str:
    model = record.model
    model_name = model.get("name", "") if isinstance(model, Mapping) else model
    return printable(model_name)[:80] if isinstance(model_name, str) else ""


def outcomes(scores: IntentScores) -> pl.DataFrame:
    """What `rank` takes: items of competency by dimension, perceptual traps, and pairs of cognitive trap and twin.

    Where there are no twins the cognitive traps stand for the pairs; a ranking by them favours models that reject.

    >>> from types import SimpleNamespace
    >>> cells = pl.DataFrame({"item": ["i1"], "cluster": ["VID01"], "cell": ["relative"], "value": [1.0]})
    >>> outcomes(SimpleNamespace(plain=cells, has_twins=False, name="net")).rows()
    [('i1', 'VID01', 'spatial', False, True)]
    """
    groups = {skill: _dimension(skill) for skill in SKILLS} | {"perceptual": "perceptual traps"}
    groups |= {"paired": "trap and twin"} if scores.has_twins else {"cognitive": "cognitive traps"}
    rows = scores.plain.filter(pl.col("cell").is_in(list(groups)))
    if rows.is_empty():
        raise BadInput(f"{scores.name}: found no answered item, expected some")
    return rows.select(
        pl.col("item").alias("qID"), pl.col("cluster").alias("video"),
        pl.col("cell").replace_strict(groups, return_dtype=pl.String).alias("group"), pl.lit(False).alias("ood"),
        (pl.col("value") == 1).alias("correctness"),
    )  # fmt: skip


def _dimension(skill: str) -> str:
    """The dimension of a skill."""
    return next(dimension for dimension, pair in DIMENSIONS.items() if skill in pair)
