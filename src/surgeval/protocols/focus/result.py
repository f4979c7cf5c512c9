"""What scoring a submission gives, and what is loaded from its run: a row and a reason per question, and the numbers.

Numbers are over the questions that have a correctness. Questions without one (bad references, judge errors) are counted
in `counts` and listed in the results, never turned into wrong answers. `FOLDER/scores.json` holds all of it, so a page
can be made again when questions, answers and judges are gone.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from surgeval.datasets import Problem
from surgeval.engine import Manifest, load_record, scored_record
from surgeval.errors import NotRankable, NotScored
from surgeval.protocols.asked import was_shown
from surgeval.protocols.contract import Headline, headlines_of
from surgeval.protocols.focus.numbers import MEASURES
from surgeval.protocols.focus.scoring.admission import Admission, admission_gate
from surgeval.protocols.focus.scoring.agreement import judge_agreement
from surgeval.protocols.focus.scoring.pooled import PooledTime
from surgeval.protocols.focus.scoring.summary import BucketScore, with_clusters
from surgeval.protocols.focus.stored import SCORES, read_scores, write_scores
from surgeval.protocols.focus.tables import focus_json, focus_tables
from surgeval.protocols.focus.verdict import baselines_of, judge
from surgeval.protocols.pictures import load_pictures, save_pictures
from surgeval.protocols.reply_warnings import (
    find_odd_references,
    find_one_answer,
    find_one_verdict,
    find_other_models,
    find_reused_verdicts,
    named_models,
)
from surgeval.protocols.result import RunResult, check_output, write_run
from surgeval.qa import PanelReport, PanelVerdict, Price, summarise_verdicts, vote_table
from surgeval.results import counted
from surgeval.stats import Interval

if TYPE_CHECKING:
    from surgeval.figures import Figure
    from surgeval.pages import Evidence
    from surgeval.protocols.verdict import Verdict

__all__ = ["Admission", "FocusScores", "admission_gate", "load_focus", "outcomes", "pictured_in"]

_LISTED = 10  # questions without a verdict that a command names

SAID = ("when", "question", "answer", "reference")  # beside right and wrong, for a team that asks what it said


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FocusScores(RunResult):
    """The scored submission.

    `results` has one row per question (the columns of `tables/results.csv`), `summary` one per level and name.
    `asked_model` is the model that was asked for, `answered_by` counts answers by the name that its server returned.
    `verdicts` holds what every judge said (`votes()`, `judges`). `counts` has `questions`, `scored`, every status,
    `flags`, `judged`, and `orphan`, `unreferenced` and `duplicate` records. `flat` and `video_mean` are the two
    accuracies, None when nothing could be scored. `human` are verdicts of people that judges are compared with,
    `prices` what judges' tokens cost, `blind` which questions the blind baseline gets right, `admission` whether it
    passed the gate, `pictured` whether the model was shown pictures (None: unknown). `questions` identifies
    what was asked, `time` has the batches and the expected scores of the pooled time rule, `said` has question, answer
    and reference of each row of the results, `pictures` what the model was shown, by qID.
    """

    name: str
    protocol: str = field(default="focus", init=False)
    results: pl.DataFrame
    summary: pl.DataFrame
    verdicts: tuple[PanelVerdict, ...]
    buckets: tuple[BucketScore, ...]
    flat: Interval | None
    video_mean: Interval | None
    pre_evaluation: Interval | None
    counts: Mapping[str, int]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    track: str | None = None
    limit: float | None = None
    compat: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    questions: str = ""
    unrankable: str = ""  # why this submission may not be ranked; empty when it may
    said: pl.DataFrame | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    asked_model: str | None = None
    answered_by: Mapping[str, int] | None = None
    human: Mapping[str, bool | None] | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    admission: Admission | None = None
    blind: Mapping[str, bool] | None = None
    pictured: bool | None = None
    time: PooledTime | None = None
    measures = MEASURES

    @property
    def flat_accuracy(self) -> float:
        """Share of right answers, every question counted once; NaN when nothing was scored."""
        return self.flat.estimate if self.flat else float("nan")

    @property
    def accuracy_mean_of_video_means(self) -> float:
        """Mean over videos of each video's share; NaN when nothing was scored."""
        return self.video_mean.estimate if self.video_mean else float("nan")

    @property
    def pre_evaluation_score(self) -> float:
        """Plain mean of the buckets' flat accuracies; NaN without buckets."""
        return self.pre_evaluation.estimate if self.pre_evaluation else float("nan")

    @property
    def n_timed_out(self) -> int:
        """Answers after the limit."""
        return self.counts["late"]

    @property
    def n_missing(self) -> int:
        """Questions without response."""
        return self.counts["missing"]

    @property
    def n_orphan(self) -> int:
        """Responses to no question of the references."""
        return self.counts["orphan"]

    @property
    def judge_calls(self) -> tuple[int, ...]:
        """How many answers the first judge of the panel was asked about, the second, and so on."""
        asked = [len(verdict.votes) for verdict in self.verdicts]
        return tuple(sum(count > before for count in asked) for before in range(max(asked, default=0)))

    @cached_property
    def judges(self) -> PanelReport:
        """States, requests, tokens and cost by judge."""
        return summarise_verdicts(self.verdicts, self.prices)

    @cached_property
    def agreement(self) -> pl.DataFrame:
        """Kappa of every pair of judges, and against people."""
        return judge_agreement(self, self.human)

    @cached_property
    def reply_warnings(self) -> tuple[str, ...]:
        """What is probably wrong with answers, references, judges or servers, to be read before the numbers."""
        warnings = find_other_models(self.asked_model or "", self.answered_by or {})
        for name, models in named_models(self.verdicts).items():
            warnings += find_other_models(name, models)
        if self.said is not None:
            answered = self.said.filter(self.results["status"] != "missing")
            warnings += find_one_answer(answered.select("answer", "reference").rows())
            warnings += find_odd_references(self.said.select("qID", "reference").iter_rows())
        return (*warnings, *find_one_verdict(self.verdicts), *find_reused_verdicts(self.verdicts))

    def votes(self) -> pl.DataFrame:
        """`qID` and a column per judge: true, false, or null where it failed or was not asked."""
        return vote_table(self.verdicts)

    @property
    def data_identity(self) -> str:
        """The fingerprint of questions and references: the same whether the run asked them or scored answers."""
        return self.questions

    def headlines(self) -> tuple[Headline, ...]:
        """The pre-evaluation score and the two accuracies, as far as anything could be scored.

        The blind baseline, the better of two blind answers to the same wording, stands beside them;
        chance is not known.
        """
        return headlines_of(MEASURES, self.numbers, baselines=baselines_of(self))

    @property
    def recipe_settings(self) -> dict[str, Any]:
        """What decides whether an answer is right."""
        return {"max_latency": self.limit, "compat": self.compat, "track": self.track}

    @property
    def numbers(self) -> dict[str, Interval]:
        """The headline numbers with their intervals, as far as anything could be scored."""
        known = (self.pre_evaluation, self.flat, self.video_mean)
        keys = (measure.key for measure in MEASURES)
        return {key: interval for key, interval in zip(keys, known, strict=True) if interval is not None}

    @cached_property
    def _verdict(self) -> Verdict | None:
        """Does it answer better than the blind baseline? None where nothing could be scored."""
        return judge(self)

    def evidence(self) -> Evidence | None:
        """A row per question: what was asked, answered and expected, and what became of it."""
        from surgeval.protocols.focus.evidence import focus_evidence

        return focus_evidence(self)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """`summary` and `results`; judges, their verdicts and agreement, and problems where there are any."""
        return focus_tables(self)

    @property
    def figures(self) -> dict[str, Figure]:
        """`buckets` and `leaves`; none when nothing could be scored."""
        from surgeval.protocols.focus.figures import focus_figures

        return focus_figures(self)

    def to_json(self) -> dict[str, Any]:
        """Every number as plain values; the rows of the results are left out."""
        return focus_json(self)

    def save(self, folder: str | Path) -> Path:
        """Write `scores.json`, and `run.json` unless the folder is that of a run which asked the questions."""
        run_folder = Path(folder)
        check_output(run_folder, "focus", own=SCORES)
        asked = _asked(run_folder)
        with write_run(run_folder, None if asked else scored_record(self._manifest(), cases=self.results.height)):
            save_pictures(run_folder, self.pictures)
            write_scores(self, run_folder)
        return run_folder / SCORES

    def _manifest(self) -> Manifest:
        rules = {"track": self.track, "max_latency": self.limit, "compat": self.compat}
        judges = [tally.judge for tally in self.judges.judges]
        return Manifest("focus", {**rules, **self.settings, "judges": judges}, self.questions, self.name)

    def json_details(self) -> dict[str, Any]:
        """The rows of the results."""
        return {"results": self.results.to_dicts()}

    @property
    def exit_code(self) -> int:
        """1 when answers are left without a verdict."""
        return 1 if self.counts["judge_error"] else 0

    def sentences(self) -> tuple[str, ...]:
        """How many questions were scored, what became of the others, and why the run is not to be ranked."""
        populated = f", in {counted(len(self.buckets), 'bucket')}" if self.buckets else ""
        lines = [f"{self.counts['scored']} of {self.counts['questions']} questions scored{populated}"]
        shown = ("missing", "late", "invalid", "bad_reference", "flagged", "judge_error")
        odd = {name: self.counts[name] for name in shown}
        lines.append(", ".join(f"{count} {name}" for name, count in odd.items() if count) or "every answer was usable")
        if self.unrankable:
            lines.append(f"not to be ranked: {self.unrankable}")
        if self.admission is not None:
            lines.append(f"{'admitted' if self.admission.admitted else 'not admitted'}: {self.admission.reason}")
        unjudged = self.results.filter(pl.col("status") == "judge_error").select("qID", "reason")
        lines += [f"no verdict: {qid}: {reason}" for qid, reason in unjudged.head(_LISTED).iter_rows()]
        if unjudged.height > _LISTED:
            lines.append(f"no verdict: … and {unjudged.height - _LISTED} more, in tables/results.csv")
        if self.problems:
            lines.append(f"{counted(len(self.problems), 'problem')} in the files, first: {self.problems[0]}")
        return tuple(lines)

    def __str__(self) -> str:
        verdict = [str(self._verdict)] if self._verdict else []
        headlines = [f"{headline.label} {headline.interval}" for headline in self.headlines()]
        return "\n".join([*verdict, *headlines, *self.sentences()])

    def __repr__(self) -> str:
        waiting = self.counts["judge_error"]
        return f"{super().__repr__()}{f'; {waiting} answers have no verdict of a judge' if waiting else ''}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self.summary._repr_html_()}"


def load_focus(folder: str | Path) -> FocusScores:
    """The scores of a run folder, checked; neither questions nor answers nor judges are needed.

    >>> import tempfile
    >>> from surgeval.protocols.focus import score_focus
    >>> ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    >>> truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_focus([{"qID": "q1", "content": "3"}], ask, truth, name="net", resamples=20).save(folder)
    ...     load_focus(folder).results.select("qID", "status", "correctness").row(0)
    ('q1', 'ok', True)
    >>> load_focus("no/such/run")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/run: no such folder
    """
    run_folder = Path(folder)
    record = load_record(run_folder, "focus")
    if not record.complete or not (run_folder / SCORES).exists():
        raise NotScored(
            f"{run_folder}: found a run whose answers are not scored ({record.status}), expected scores; finish the run"
            " and save the scores of its answers in the same folder",
            "focus",
        )
    pictures, odd = load_pictures(run_folder)
    fields = read_scores(run_folder)
    return FocusScores(**{**fields, "notes": (*fields["notes"], *odd)}, pictures=pictures)


def pictured_in(folder: str | Path, responses: Any) -> bool | None:
    """Whether the answers of a file were given to pictures: known where the run of this folder gave them, else None."""
    if not isinstance(responses, str | Path):
        return None
    folder, responses = Path(folder), Path(responses)
    if not _asked(folder) or responses.resolve() != (folder / "responses.json").resolve():
        return None
    return was_shown(load_record(folder, "focus").config.get("media"))


def outcomes(result: FocusScores) -> pl.DataFrame:
    """Right and wrong by question, as `Outcomes.from_tables` takes it; a run that is not to be ranked is refused.

    >>> from surgeval.protocols.focus import score_focus
    >>> ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    >>> truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    >>> outcomes(score_focus([{"qID": "q1", "content": "3"}], ask, truth)).row(0)
    ('q1', 'v', 'aggregation', False, 'ok', True, 'answered 3, the reference is 3', None, '0 s', '?', '3', '3')
    """
    if result.unrankable:
        raise NotRankable(result.name, result.unrankable)
    table = with_clusters(result.results).select(
        "qID", "video", "group", "ood", "status", "correctness", "reason", "latency"
    )
    return table if result.said is None else table.hstack(result.said.select(SAID))


def _asked(folder: Path) -> bool:
    """Whether a model was asked in this folder: then run.json says which, and stays."""
    return (folder / "parts").is_dir()
