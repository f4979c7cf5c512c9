"""Protocol `triplets`: action triplets ⟨instrument, verb, target⟩ that a model detected or recognised (ProstaTD)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does it detect and recognise ⟨instrument, verb, target⟩?",
    offers=(
        "pair",
        "chapter",
    ),
    score=Command(
        f"{__name__}.method:score_triplets",
        examples=(
            "surgeval score triplets --data prostatd --pred boxes.json --folds prostatd --out runs/mine",
            "surgeval score triplets --data cholect50 --pred scores.parquet --split test",
        ),
        tables=f"{__name__}.readable:printed_tables",
        mark="scores.json",
    ),
    measures="metrics:MEASURES",
    order=10,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
