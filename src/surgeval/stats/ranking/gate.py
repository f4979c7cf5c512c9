"""Against the baselines: clearly better, worse, or inconclusive.

A better place alone is no evidence: it may come from the tie-break or from what third models did, and a model of lower
mean accuracy can hold it. So one model is *clearly better* than another only when everything says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from surgeval.arrays import Bools, Ints
from surgeval.stats.ranking.order import RankDecision
from surgeval.stats.ranking.tests import BucketEvidence

__all__ = ["STEADY", "Gate", "State", "gate_of"]

State: TypeAlias = Literal["clearly better", "inconclusive", "worse"]
STEADY = 0.95  # share of resampled challenges in which a clearly better model is ahead


@dataclass(frozen=True, slots=True)
class Gate:
    """How each model stands to the baselines; baselines are ranked like the others but win nothing.

    `final`: strictly better final position than each. `pre_evaluation`: strictly higher mean bucket accuracy.
    `dominates`: better in more buckets than the other way round, against each baseline alone. `state`: clearly better
    when all three hold against every baseline, worse when all three hold for some baseline against the model, else not
    shown. `ahead[model][baseline]` is the share of resampled challenges in which the model is ahead, where that was
    measured (`with_stability`); then a claim in either direction needs 95 % of them too.
    """

    baselines: tuple[str, ...]
    final: dict[str, bool]
    pre_evaluation: dict[str, bool]
    dominates: dict[str, bool]
    state: dict[str, State]
    ahead: dict[str, dict[str, float]] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "baselines": list(self.baselines),
            "final": dict(self.final),
            "pre_evaluation": dict(self.pre_evaluation),
            "dominates": dict(self.dominates),
            "state": dict(self.state),
            "ahead": self.ahead,
        }


def gate_of(
    models: tuple[str, ...],
    baselines: tuple[str, ...],
    evidence: Sequence[BucketEvidence],
    decision: RankDecision,
    places: Ints | None = None,
) -> Gate:
    """The gate of a ranking; `places[r, m]` are the models' places in resampled challenges."""
    # The sum in a fixed order: two models with equal answers must get the same mean to the last digit.
    score = np.stack([bucket.accuracy for bucket in evidence]).sum(axis=0) / len(evidence)
    before = decision.final_rank[:, None] < decision.final_rank
    higher = score[:, None] > score + 1e-12
    dominates = decision.wins > decision.wins.T
    clear = before & higher & dominates
    base = [models.index(name) for name in baselines]
    others = [m for m in range(len(models)) if m not in base]
    ahead = None
    if places is not None:
        share = (places[:, :, None] < places[:, None, :]).mean(axis=0)
        clear &= share >= STEADY
        ahead = {models[m]: {models[b]: float(share[m, b]) for b in base} for m in others}

    def against_all(relation: Bools) -> dict[str, bool]:
        return {models[m]: bool(relation[m, base].all()) for m in others}

    def state(m: int) -> State:
        if clear[m, base].all():
            return "clearly better"
        return "worse" if clear[base, m].any() else "inconclusive"

    states = {models[m]: state(m) for m in others}
    return Gate(baselines, against_all(before), against_all(higher), against_all(dominates), states, ahead)
