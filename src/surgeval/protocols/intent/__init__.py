"""Protocol `intent`: multiple-choice questions about what the clinician does and why, traps among them."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Does it understand what the surgeon is doing and why, and can it be talked into seeing what is not there?",
    offers=("pair", "evaluate", "outcomes", "chapter"),
    run=Command(
        f"{__name__}.asking.run:run_intent",
        examples=(
            "surgeval run intent --data items.jsonl --model openai:vlm@http://localhost:8000/v1 --out runs/vlm",
            "surgeval run intent --data phantom --model always-reject --out runs/reject",
        ),
        text="Items are asked as they are, with gaze, without their images, and failed traps again; the number of "
        "questions is printed first. Exit code 1 when a question has no answer: --retry asks those again.",
        tables=f"{__name__}.tables:printed_tables",
    ),
    score=Command(
        f"{__name__}.method:score_intent",
        examples=("surgeval score intent --data items.jsonl --responses replies.jsonl --out runs/vlm",),
        text="A reply is read as a person would: a letter, an option's text, or the last choice after reasoning. An "
        "item without a reply counts as wrong, and the exit code is then 1.",
        tables=f"{__name__}.tables:printed_tables",
        mark="report.html",
    ),
    ranks_by="mean over dimensions and traps",
    several=True,
    measures="scoring.numbers:MEASURES",
    order=25,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
