"""The functions that work for every protocol: `evaluate` runs one, `compare` takes two runs, `score_answers` a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from surgeval.errors import BadInput
from surgeval.protocols.registry import PROTOCOLS, descriptors, load_run

if TYPE_CHECKING:
    from surgeval.protocols.comparison import Comparison, Pair
    from surgeval.protocols.focus import FocusRun, FocusScores
    from surgeval.protocols.intent import IntentRun, IntentScores
    from surgeval.protocols.quality import QualityRun
    from surgeval.protocols.result import FinishedRun, RunResult
    from surgeval.protocols.surgxbench import SurgXRun
    from surgeval.protocols.training import TrainingScores
    from surgeval.results import Result

__all__ = ["compare", "evaluate", "score_answers"]

Source: TypeAlias = str | Path | Sequence[Mapping[str, Any]]


@overload
def evaluate(protocol: Literal["focus"], data: Any, model: Any, out: str | Path, **settings: Any) -> FocusRun: ...
@overload
def evaluate(protocol: Literal["intent"], data: Any, model: Any, out: str | Path, **settings: Any) -> IntentRun: ...
@overload
def evaluate(protocol: Literal["surgxbench"], data: Any, model: Any, out: str | Path, **settings: Any) -> SurgXRun: ...
@overload
def evaluate(protocol: Literal["quality"], data: Any, model: None, out: str | Path, **settings: Any) -> QualityRun: ...
@overload
def evaluate(
    protocol: Literal["training"], data: Any, model: Any, out: str | Path, **settings: Any
) -> TrainingScores | None: ...
@overload
def evaluate(protocol: str, data: Any, model: Any, out: str | Path, **settings: Any) -> Result: ...
def evaluate(protocol: str, data: Any, model: Any, out: str | Path, **settings: Any) -> Result | None:
    """Run a protocol on a model; a run that was stopped is resumed by the same call.

    `data`, `model` and `settings` are those of the protocol's own function, such as `run_focus` or `run_surgxbench`
    in `surgeval.protocols`. `quality` looks at the dataset alone: its `model` is None.

    >>> import tempfile
    >>> from surgeval.phantom import write_phantom
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_phantom(f"{folder}/phantom", videos=1, seconds=2, progress=False)
    ...     run = evaluate("quality", f"{folder}/phantom", None, f"{folder}/run", progress=False)
    ...     run.loaded.protocol
    'quality'
    >>> evaluate("triplets", "phantom", "clip", "runs/clip")
    Traceback (most recent call last):
    surgeval.errors.BadInput: Protocol 'triplets' runs no model. These do: training, focus, intent, surgxbench, ...
    """
    descriptor = PROTOCOLS[protocol]
    if not descriptor.evaluate:
        able = [name for name, known in descriptors().items() if known.evaluate]
        raise BadInput(f"Protocol {protocol!r} runs no model. These do: {', '.join(able)}.")
    arguments = (data, out) if model is None else (data, model, out)
    result: Result | None = descriptor.part("evaluate")(*arguments, **settings)
    return result


def compare(
    a: RunResult | FinishedRun | str | Path,
    b: RunResult | FinishedRun | str | Path,
    *,
    resamples: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Paired differences a − b on the same videos, with intervals and a test, for two runs of any protocol.

    Runs are folders or results. `resamples` is how many exchanges of videos are drawn at most (where there are no
    more, all are used); the default is the protocol's own.

    >>> from surgeval import score_recognition
    >>> labels, videos = [[1, 0], [0, 1]] * 2, ["v1", "v1", "v2", "v2"]
    >>> right, wrong = (score_recognition(scores, labels, videos) for scores in (labels, [[0, 1], [1, 0]] * 2))
    >>> compare(right, wrong).numbers[0].difference.estimate
    0.5
    >>> compare("no/such/run", right)
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/run: no such folder
    """
    from surgeval.protocols.comparison import compare_pair, pair_runs

    first, second = _result(a), _result(b)
    if first.protocol != second.protocol:
        raise BadInput(f"{first.name} is a run of {first.protocol}, {second.name} one of {second.protocol}: compare "
                       "two runs of one protocol.")  # fmt: skip
    protocol = PROTOCOLS[first.protocol]
    pair: Pair = protocol.part("pair")(first, second) if protocol.pair else pair_runs(first, second)
    return compare_pair(first, second, pair, resamples=resamples, seed=seed)


def _result(run: RunResult | FinishedRun | str | Path) -> RunResult:
    from surgeval.protocols.result import FinishedRun

    if isinstance(run, str | Path):
        return load_run(run)
    return run.loaded if isinstance(run, FinishedRun) else run


@overload
def score_answers(responses: Source, questions: Source, references: Source, **settings: Any) -> FocusScores: ...
@overload
def score_answers(
    responses: Source, questions: str | Path, references: None = None, **settings: Any
) -> IntentScores: ...
def score_answers(
    responses: Source, questions: Source, references: Source | None = None, **settings: Any
) -> FocusScores | IntentScores:
    """Score answers that were made elsewhere: files, or the lists that they hold.

    With `references`, the questions are FOCUS requests and `settings` those of `score_focus`. Without them, the
    questions are multiple-choice items, which hold their answers, and `settings` those of `score_intent`.

    >>> ask = [{"qID": "q1", "videoID": "v", "start_time": 0, "end_time": 0, "procedure_type": "", "question": "?"}]
    >>> truth = [{"qID": "q1", "primary": "3a", "format": "number", "answer": "3"}]
    >>> score_answers([{"qID": "q1", "content": "3"}], ask, truth).flat_accuracy
    1.0
    """
    if references is not None:
        from surgeval.protocols.focus import score_focus

        return score_focus(responses, questions, references, **settings)
    if not isinstance(questions, str | Path):
        raise BadInput("questions: without references, pass the path of multiple-choice items (items.jsonl).")
    from surgeval.protocols.intent import score_intent

    return score_intent(responses, questions, **settings)
