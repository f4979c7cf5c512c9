"""Protocol `focus`: answers to surgical questions, scored and ranked as the FOCUS challenge does."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it answer questions about the operation better than a blind baseline?",
    offers=("pair", "evaluate", "outcomes", "chapter"),
    run=Command(
        f"{__name__}.asking.run:run_focus",
        examples=(
            "surgeval run focus --data phantom --model openai:vlm@http://localhost:8000/v1 --out runs/vlm",
            "surgeval run focus --data phantom --model prior --judge exact --out runs/prior",
        ),
        text="Writes responses.json beside requests.json and references.json. Scores at once when no answer needs a "
        "judge or --judge names one. Exit code 1 when a question has no answer or no verdict: --retry asks them again.",
        tables=f"{__name__}.tables:printed_tables",
    ),
    score=Command(
        f"{__name__}.method:score_focus",
        examples=(
            "surgeval score focus --requests requests.json --references references.json --responses answers.json "
            "--judge openai:judge-7b@http://localhost:8000/v1 --track segment --out runs/net",
            "surgeval score focus --data phantom --responses logs/focus.eval --out runs/net",
        ),
        text="Exit code 1 when answers are left without a verdict: the same command asks only those again.",
        tables=f"{__name__}.tables:printed_tables",
        mark="scores.json",
    ),
    ranks_by="pre-evaluation score",
    measures="numbers:MEASURES",
    order=20,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
