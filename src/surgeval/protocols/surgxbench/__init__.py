"""Protocol `surgxbench`: does a model look where it should? (SurgXBench, two papers)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "When it is right, is it right for the right reason?",
    offers=("pair", "evaluate", "outcomes", "chapter"),
    run=Command(
        f"{__name__}.method:run_surgxbench",
        examples=("surgeval run surgxbench --data demo/phantom-v1 --split test --model phantom-clip --out runs/clip",),
        text="A model that scores prompts is given one per class; one that answers in words is asked, and its reply is "
        'read.\n\nWrites a run folder with report.html (tables, figures, a gallery sorted by "right but ungrounded").',
        tables=f"{__name__}.page_tables:printed_tables",
    ),
    ranks_by="top-1 right",
    several=True,
    measures="numbers:MEASURES",
    order=30,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
