"""The functions that work for every protocol: `evaluate` runs one, `score_answers` scores a file of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from surgeval.errors import BadInput
from surgeval.protocols.registry import PROTOCOLS, descriptors

if TYPE_CHECKING:
    from surgeval.protocols.focus import FocusRun, FocusScores
    from surgeval.protocols.intent import IntentRun, IntentScores
    from surgeval.protocols.quality import QualityRun
    from surgeval.protocols.surgxbench import SurgXRun
    from surgeval.protocols.training import TrainingScores
    from surgeval.results import Result

__all__ = ["evaluate", "score_answers"]

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
