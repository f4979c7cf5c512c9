"""Does it understand what is being done, and is it not talked into what is not there? Rules from numbers to sentences.

docs/verdicts.md lists the rules. Each is a function of plain numbers, tested on planted answerers: always right, always
rejecting, always accepting, blind, seeing, seeing but ignoring the gaze, guessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surgeval.asking import describe_baseline
from surgeval.protocols.intent.scoring.weights import SKILLS
from surgeval.protocols.verdict import (
    Claim,
    Reason,
    Rule,
    Verdict,
    above,
    changed,
    reference_verdict,
    saw_no_images,
    share,
    verdict_of,
)
from surgeval.results import percent
from surgeval.stats import FEW_CLUSTERS, Interval

if TYPE_CHECKING:
    from surgeval.protocols.intent.result import IntentScores

__all__ = ["CLAIM", "RULES", "IntentFacts", "facts_of", "judge", "reasons_of"]

CLAIM = Claim(
    "It understands from the pictures what is being done and why, and rejects only what is not there.",
    "It does not understand from the pictures what is being done, or does not tell true from false premises.",
)
NEGLIGIBLE, MOST_UNREADABLE, SAME, ROOM, MOSTLY, HARDLY, FEW_PAIRS = 0.05, 0.2, 0.5, 0.95, 0.8, 0.1, 0.2
RULES = {
    rule.name: rule
    for rule in (
        Rule("competent", "Competency (mean of the six skills): its interval lies above guessing; fails where it "
             "lies below.", "decides"),
        Rule("images", "With the images it is right more often than with the text alone: the interval of the paired "
             f"difference lies above 0; fails where all of it lies below {percent(NEGLIGIBLE)} or no image was given, "
             "inconclusive where it was never asked without images.", "decides"),
        Rule("discriminates", "It is right on a false premise and on its true twin together more often than by "
             f"guessing both: the interval lies above; fails where all of it lies below {percent(FEW_PAIRS)} or below "
             "guessing. Inconclusive without twins: rejecting everything looks the same.", "decides"),
        Rule("perceptual", "On perceptual traps it is right more often than by guessing; fails where the whole "
             "interval lies below.", "limits"),
        Rule("order", f"At least {percent(SAME)} of the items get the same answer in every order of their options; "
             "fails where the whole interval lies below.", "limits"),
        Rule("readable", f"In at most {percent(MOST_UNREADABLE)} of the replies no choice can be read.", "limits"),
        Rule("gaze", "Told where the surgeon looks it is right more often: the interval of the paired difference lies "
             f"above 0; it ignores the gaze where all of it lies below {percent(NEGLIGIBLE)}. Not tested from a "
             f"competency of {percent(ROOM)} on, where nothing is left to gain."),
        Rule("wrong gaze", "A model that uses the gaze changes its answer when the gaze is moved: the interval of the "
             f"changed answers lies above {percent(NEGLIGIBLE)}, and they are more than another order of the options "
             "changes."),
        Rule("asymmetry", "Prospective minus retrospective: the paper's causal asymmetry."),
        Rule("weakest", "The two skills with the smallest lead over guessing."),
        Rule("subset", "Only a part of the set was asked; the numbers hold for that part."),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IntentFacts:
    """The numbers that the rules take; what was not asked is None or absent."""

    videos: int
    numbers: Mapping[str, Interval]
    chances: Mapping[str, float]
    picture_gain: Interval | None = None
    text_only: float | None = None
    pictured: bool = True  # it was given images at all
    reference: str = ""  # what it does, where a reference row answered instead of a model
    set_has_twins: bool = False  # a cognitive trap has its true-premise twin among the items, answered or not
    gaze_gain: Interval | None = None
    changed: Interval | None = None
    consistent: Interval | None = None
    unreadable: float = 0.0
    missing: int = 0  # items to which a file of replies has none; they count as wrong
    subset: str = ""


def judge(scores: IntentScores) -> Verdict | None:
    """The verdict on a run; None where nothing was answered."""
    facts = facts_of(scores)
    if not facts.numbers:
        return None
    if facts.reference:
        return reference_verdict(CLAIM, reasons_of(facts), facts.reference)
    return verdict_of(CLAIM, reasons_of(facts), facts.videos)


def facts_of(scores: IntentScores) -> IntentFacts:
    """The numbers out of a result; the images' gain is that of competency, else of the traps."""
    without = scores.text_only.get("overall") or scores.text_only.get("reliability")
    return IntentFacts(
        videos=scores.clusters, numbers=scores.numbers, chances=scores.chances,
        picture_gain=without.gain.interval if without else None, text_only=without.text.estimate if without else None,
        gaze_gain=scores.gains["overall"].interval if "overall" in scores.gains else None,
        changed=scores.moved.changed if scores.moved else None,
        consistent=scores.order.consistent if scores.order else None, unreadable=scores.unreadable,
        missing=scores.missing,
        pictured=scores.pictured, set_has_twins=scores.set_has_twins, subset=scores.subset,
        reference=_reference(scores),
    )  # fmt: skip


def _reference(scores: IntentScores) -> str:
    """What the reference row does that gave the answers; empty for a model."""
    model = scores.record.model
    identity = model.get("identity") if isinstance(model, Mapping) else None
    return describe_baseline(str(identity)) if identity and not scores.pictured else ""


def reasons_of(facts: IntentFacts) -> tuple[Reason, ...]:
    """Every rule that has its number, in the order of the page."""
    reasons = [_competent(facts), *([] if facts.reference else [_images(facts)]), _discriminates(facts)]
    reasons += [_perceptual(facts)] if "perceptual" in facts.numbers else []
    reasons += [_gaze(facts, facts.gaze_gain)] if facts.gaze_gain is not None else []
    reasons += [_wrong_gaze(facts.changed, facts.consistent)] if facts.changed is not None else []
    reasons += [_order(facts.consistent)] if facts.consistent is not None else []
    reasons.append(_readable(facts.unreadable))
    reasons += [_asymmetry(facts)] if "asymmetry" in facts.numbers else []
    reasons += [_weakest(facts)] if sum(skill in facts.numbers for skill in SKILLS) > 2 else []
    if facts.subset:
        reasons.append(Reason(RULES["subset"], f"A subset of the items was asked: {facts.subset}.", None))
    return tuple(reasons)


def _competent(facts: IntentFacts) -> Reason:
    if "overall" not in facts.numbers:
        clause = "no item of competency was answered"
        return Reason(RULES["competent"], f"{clause[:1].upper()}{clause[1:]}.", None, clause)
    competency, chance = facts.numbers["overall"], facts.chances["overall"]
    text = f"Competency {share(competency)}; guessing reaches {percent(chance)}."
    return Reason(RULES["competent"], text, above(competency, chance),
                  f"competency {percent(competency.estimate)}, guessing {percent(chance)}", competency,
                  chance)  # fmt: skip


def _images(facts: IntentFacts) -> Reason:
    gain = facts.picture_gain
    if not facts.pictured:
        return saw_no_images(RULES["images"])
    if gain is None or facts.text_only is None:
        clause = "it was never asked without the images"
        return Reason(RULES["images"], "It was never asked without the images: language alone may be enough.", None,
                      clause)  # fmt: skip
    holds = above(gain, margin=NEGLIGIBLE)
    text = f"Without the images it is right in {percent(facts.text_only)}; the images add {_points(gain)}."
    clause = f"the images add {_points(gain)}"
    if holds is False:
        text, clause = f"{text} Language alone is enough.", f"its answers come from language: {clause}"
    return Reason(RULES["images"], text, holds, clause, gain, 0.0, (-1.0, 1.0))


def _points(interval: Interval) -> str:
    points = changed(interval)
    return "nothing" if points == "no difference in any video" else points


def _discriminates(facts: IntentFacts) -> Reason:
    rule, numbers = RULES["discriminates"], facts.numbers
    if "paired" not in numbers:
        apart = "rejecting everything looks the same as discriminating"
        cognitive = f"Cognitive reliability {share(numbers['cognitive'])}. " if "cognitive" in numbers else ""
        if facts.set_has_twins:
            clause = "no trap was answered together with its true-premise twin"
            return Reason(rule, f"{cognitive}{clause[:1].upper()}{clause[1:]}: {apart}.", None, clause)
        return Reason(rule, f"{cognitive}No trap has a true-premise twin: {apart}.", None, f"without twins {apart}")
    paired, over = numbers["paired"], numbers.get("over_rejection")
    rejected, twin, chance = numbers["cognitive"].estimate, numbers["twin"].estimate, facts.chances["paired"]
    text = (
        f"On a false premise and its true twin together it is right in {share(paired)}; guessing both reaches "
        f"{percent(chance)}. Alone: {percent(rejected)} of the false premises, {percent(twin)} of the true ones."
    )
    holds = above(paired, chance, margin=max(FEW_PAIRS - chance, 0.0))
    clause = f"trap and twin both right in {percent(paired.estimate)}"
    if over is None or facts.missing:  # wrong answers may be missing ones, which accept and reject nothing
        return Reason(rule, text, holds, clause, paired, chance)
    if over.estimate >= MOSTLY and rejected >= MOSTLY:
        text += (
            f" It rejects {percent(over.estimate)} of the true premises too; the paper's metric, which counts false "
            f"premises only, gives it {percent(rejected)}."
        )
        clause = f"it rejects true premises as well as false ones ({percent(paired.estimate)} of the pairs right)"
    elif rejected <= HARDLY and over.estimate <= HARDLY:
        text += " It accepts every premise."
        clause = f"it accepts false premises ({percent(rejected)} of them rejected)"
    return Reason(rule, text, holds, clause, paired, chance)


def _perceptual(facts: IntentFacts) -> Reason:
    right, chance = facts.numbers["perceptual"], facts.chances["perceptual"]
    text = f"On perceptual traps it is right in {share(right)}; guessing reaches {percent(chance)}."
    clause = f"{percent(right.estimate)} of the perceptual traps right"
    if not facts.missing:
        clause = f"it names things that are not there ({clause})"
    return Reason(RULES["perceptual"], text, above(right, chance), clause, right, chance)


def _gaze(facts: IntentFacts, gain: Interval) -> Reason:
    holds = above(gain, margin=NEGLIGIBLE)
    overall = facts.numbers.get("overall")
    text = f"With the surgeon's gaze marked it gains {_points(gain)}"
    if holds is False and overall is not None and overall.estimate >= ROOM:
        return Reason(RULES["gaze"], f"{text}; nothing was left to gain.", None)
    meaning = {True: "it uses the gaze", False: "it ignores the gaze", None: "no significant gain"}
    return Reason(RULES["gaze"], f"{text}: {meaning[holds]}.", holds, "", gain, 0.0, (-1.0, 1.0))


def _wrong_gaze(change: Interval, consistent: Interval | None) -> Reason:
    text = f"With the gaze moved elsewhere {share(change)} of its answers change"
    if change.high < NEGLIGIBLE or change.estimate == 0:
        return Reason(RULES["wrong gaze"], f"{text}: it ignores the gaze.", False)
    if consistent is not None and 1 - consistent.estimate >= change.estimate:
        return Reason(RULES["wrong gaze"], f"{text}; another order of the options changes as many.", None)
    if change.low > NEGLIGIBLE:
        return Reason(RULES["wrong gaze"], f"{text}: its answers follow the gaze, right or wrong.", True)
    return Reason(RULES["wrong gaze"], f"{text}.", None)


def _order(stable: Interval) -> Reason:
    text = f"{share(stable)} of the items get the same answer in every order of their options."
    clause = f"only {percent(stable.estimate)} of its answers survive another order of the options"
    return Reason(RULES["order"], text, above(stable, SAME), clause, stable, SAME)


def _readable(unreadable: float) -> Reason:
    if not unreadable:
        return Reason(RULES["readable"], "A choice can be read in every reply.", True)
    clause = f"in {percent(unreadable)} of the replies no choice can be read"
    return Reason(RULES["readable"], f"{clause[:1].upper()}{clause[1:]}.", unreadable <= MOST_UNREADABLE, clause)


def _asymmetry(facts: IntentFacts) -> Reason:
    gap = facts.numbers["asymmetry"]
    meaning = {True: "it anticipates better than it explains", False: "it explains better than it anticipates",
            None: "no significant asymmetry"}  # fmt: skip
    holds = above(gap) if not gap.few_clusters else None
    text = f"Prospective minus retrospective: {changed(gap)}; {meaning[holds]}."
    few = f" ({gap.clusters} videos; {FEW_CLUSTERS} are needed)" if gap.few_clusters else ""
    return Reason(RULES["asymmetry"], f"{text.removesuffix('.')}{few}.", None)


def _weakest(facts: IntentFacts) -> Reason:
    leads = {skill: facts.numbers[skill].estimate - facts.chances[skill] for skill in SKILLS if skill in facts.numbers}
    named = "; ".join(
        f"{skill} ({percent(facts.numbers[skill].estimate)} against {percent(facts.chances[skill])})"
        for skill in sorted(leads, key=lambda skill: leads[skill])[:2]
    )
    return Reason(RULES["weakest"], f"Smallest lead over guessing: {named}.", None)
