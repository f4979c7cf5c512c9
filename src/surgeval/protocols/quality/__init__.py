"""Protocol `quality`: measure every frame and propose the ones nobody can use (ProstaTD, appendix A.2)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "Which frames can nobody use?",
    offers=(
        "pair",
        "evaluate",
    ),
    run=Command(
        f"{__name__}.method:run_quality",
        examples=("surgeval run quality --data frames --out runs/quality",),
        text="Nothing is deleted. Exit code 1 when a frame could not be read; a run that was stopped is resumed by the "
        "same command. `surgeval data check --quality` does the same beside its own checks.",
        tables=f"{__name__}.tables:printed_tables",
        mark="run.json",
    ),
    measures="tables:MEASURES",
    order=90,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
