"""Protocol `training`: detectors trained and tested on folds, ablations, the page of a training (ProstaTD, E and F)."""

import lazy_loader as _lazy

from surgeval.protocols.descriptor import Command, Descriptor

DESCRIPTOR = Descriptor.of_rooms(
    __name__,
    "How well does a detector do on videos that it never saw?",
    offers=("pair", "evaluate", "folders"),
    run=Command(
        f"{__name__}.all_folds:train_folds",
        examples=(
            "surgeval run training --data prostatd --folds prostatd --device cuda --out runs/tdnet",
            "surgeval run training --data prostatd --folds sources --detector rtdetr --out runs/rtdetr",
            "surgeval run training --data prostatd --ablation components --seeds 3 --out runs/table9",
        ),
        text="A finished fold is not trained again. On a cluster, give each job its `--only-fold`, then call once "
        "without.",
        tables=f"{__name__}.all_folds:printed_tables",
    ),
    several=True,
    order=15,
)

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
__all__ += ["DESCRIPTOR"]
