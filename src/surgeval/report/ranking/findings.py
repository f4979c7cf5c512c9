"""What a ranking says and what it cannot say, in sentences: for the top of the page and for the terminal."""

from __future__ import annotations

import numpy as np

from surgeval.report.ranking.study import RankingStudy
from surgeval.report.ranking.words import NARROW, listed, percent
from surgeval.stats import Gate, Ranking

__all__ = ["OTHER_BASELINE", "baseline_sentences", "equal_models", "findings", "leading"]

_MOST_NAMES = 6
OTHER_BASELINE = (
    "the grade on a run's own page is against another baseline, the better of two blind answers, which may lie higher: "
    "a model can beat a baseline here and not that one"
)


def leading(study: RankingStudy) -> str:
    r"""Who is first, what that rests on, and how often it stays so.

    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> right = {"net": [1] * 40, "prior": [1, 0] * 20}
    >>> videos = [v for v in range(20) for _ in range(2)]
    >>> ranking = rank_outcomes(right, ["verb|id"] * 40, videos, resamples=100)
    >>> study = study_ranking(ranking, outer=10, resamples=100, challenges=0)
    >>> leading(study)
    'net is first. On resampled videos it stays there in 100\xa0% of 10 resamples.'
    """
    ranking = study.ranking
    first, *_ = ranking.final_order
    if len(first) == len(ranking.models):
        return f"Nobody leads: these videos tell none of the models apart, {_names(first)} share the first place."
    claim = f"{_names(first)} {'is first' if len(first) == 1 else 'share the first place'}."
    if len(ranking.untestable) == len(ranking.buckets):
        least = ranking.options.min_clusters
        return f"{claim[:-1]} by the tie-break alone, no evidence: no bucket has the {least} videos that a claim needs."
    if len(first) == 1 and (level := _level_with(ranking, ranking.models.index(first[0]))):
        claim = f"{first[0]} is first by the tie-break; in the buckets' tests {_names(level)} did as well."
    if study.places is None or len(first) > 1:
        return claim
    share = study.places.share[ranking.models.index(first[0]), 0]
    return f"{claim} On resampled videos it stays there in {percent(share)} of {len(study.places.places)} resamples."


def findings(study: RankingStudy) -> list[str]:
    """Further sentences: models without a significant difference to the first, baselines, equal models, cautions.

    >>> from surgeval.report.ranking import study_ranking
    >>> from surgeval.stats import rank_outcomes
    >>> ranking = rank_outcomes({"net": [1] * 20, "prior": [1, 0] * 10}, ["verb|id"] * 20, range(20), resamples=100)
    >>> findings(study_ranking(ranking, outer=0, challenges=0))
    ['net is better than each of the others in more buckets than the other way round.']
    """
    ranking = study.ranking
    sentences = [*_first_by_its_own_verdict(study), *_without_difference(ranking)]
    if ranking.gate is not None:
        gates = (*baseline_sentences(ranking.gate), OTHER_BASELINE)
        sentences.append(" ".join(f"{text[:1].upper()}{text[1:]}." for text in gates))
    sentences += equal_models(study)
    return sentences + [f"{note[:1].upper()}{note[1:]}." for note in ranking.notes]


def _first_by_its_own_verdict(study: RankingStudy) -> list[str]:
    """A ranking counts right answers; whether they are right for the right reason, a model's own run says."""
    first = [name for name in study.ranking.final_order[0] if name in study.verdicts]
    doubted = [name for name in first if study.verdicts[name].grade != "passes"]
    return [
        f"The ranking puts {name} first; grade of its own run: {study.verdicts[name].grade}. "
        f"{study.verdicts[name].sentence}"
        for name in doubted
    ]


def equal_models(study: RankingStudy) -> list[str]:
    """How often the ranking separates models that are equal, on these videos."""
    equal = study.equal
    if equal is None:
        return []
    test = "exchange test" if study.ranking.options.test == "exchange" else "bootstrap test"
    text = (
        f"In {equal.challenges} challenges with equal models on these videos, one of two dominated the other in "
        f"{percent(equal.dominated)}, and a sole first place came out in {percent(equal.sole_first)}"
    )
    if equal.sole_first and not equal.dominated:
        text += ": it then comes from the tie-break alone, which names one of several equals."
    elif equal.sole_first > equal.dominated:
        text += ", which the tie-break alone can give: it is no evidence in itself."
    else:
        text += "."
    if np.isfinite(equal.overall):
        text += (
            f" The {test} called {100 * equal.overall:.1f}{NARROW}% (±{NARROW}{100 * equal.error[0]:.1f}) of the equal "
            f"pairs different in a bucket, where its level promises {100 * _nominal(study.ranking):g}{NARROW}%."
        )
    return [text]


def baseline_sentences(gate: Gate) -> list[str]:
    """Who is clearly better than every baseline, who is worse than one, and of whom neither is shown."""
    by_state = {
        state: [name for name, own in gate.state.items() if own == state]
        for state in ("clearly better", "inconclusive", "worse")
    }
    known = "" if gate.ahead is not None else " (whether resampled videos say the same was not measured)"
    named = listed(gate.baselines)
    every = f"every baseline ({named})" if len(gate.baselines) > 1 else f"the baseline {named}"
    sentences = [f"clearly better than {every}: {_names(by_state['clearly better'])}{known}"]
    if by_state["inconclusive"]:
        sentences.append(f"inconclusive against {every}: {_names(by_state['inconclusive'])}")
    if by_state["worse"]:
        any_baseline = f"one of the baselines ({named})" if len(gate.baselines) > 1 else every
        sentences.append(f"worse than {any_baseline}: {_names(by_state['worse'])}")
    return sentences


def _nominal(ranking: Ranking) -> float:
    """False claims per pair that the options allow: one-sided, each direction has its own alpha."""
    return min(1.0, ranking.options.alpha * (1 if ranking.options.sided == "two" else 2))


def _without_difference(ranking: Ranking) -> list[str]:
    first, *_ = ranking.final_order
    if len(first) > 1 or len(ranking.untestable) == len(ranking.buckets):
        return []
    m = ranking.models.index(first[0])
    others = [k for k in ranking.order if k != m]
    ahead = [ranking.models[k] for k in others if ranking.wins[k, m] > ranking.wins[m, k]]
    level = [ranking.models[k] for k in others if ranking.wins[k, m] == ranking.wins[m, k]]
    if not ahead and not level:
        return [f"{first[0]} is better than each of the others in more buckets than the other way round."]
    sentences = []
    if ahead:
        sentences.append(
            f"Although {first[0]} is first, {_names(ahead)} {'is' if len(ahead) == 1 else 'are'} better than it in "
            f"more buckets than the other way round; what puts {first[0]} first are the tests with other models or "
            "the tie-break."
        )
    if level:
        sentences.append(f"These videos do not tell {first[0]} apart from {_names(level)}.")
    return sentences


def _level_with(ranking: Ranking, m: int) -> list[str]:
    """Models that the tests put as high as the model, so that only the tie-break decides."""
    if not np.isfinite(ranking.win_rate[m]):
        return []
    return [ranking.models[k] for k in ranking.order if k != m and ranking.copeland[k] == ranking.copeland[m]]


def _names(names: list[str]) -> str:
    if not names:
        return "none"
    more = len(names) - _MOST_NAMES
    return listed(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMES])} and {more} more"
