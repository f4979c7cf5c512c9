"""What is asked: every item as it is, and again under the conditions that show what its answer hangs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, TypeVar, get_args

from surgeval.errors import BadInput
from surgeval.protocols.asked import draw_evenly
from surgeval.protocols.intent.cases import case_id, rotation, split_id
from surgeval.protocols.intent.items import ItemSet, OpenedItems
from surgeval.records import IntentQuestion
from surgeval.results import counted

__all__ = ["DEFAULT_INTERVENTIONS", "INTERVENTIONS", "Intervention", "asked_again", "asked_first",
           "chosen_interventions", "has_gaze", "numbers_asked", "of_split", "own_option", "posed",
           "stratified"]  # fmt: skip

Intervention: TypeAlias = Literal["gaze", "text-only", "again", "order", "wrong-gaze"]
INTERVENTIONS: tuple[Intervention, ...] = get_args(Intervention)
DEFAULT_INTERVENTIONS: tuple[Intervention, ...] = ("gaze", "text-only", "again")
AnySet = TypeVar("AnySet", bound=ItemSet)
_LOOKING = frozenset({"gaze", "text-only", "wrong-gaze"})  # nothing changes for one who is shown no pictures


def posed(item: IntentQuestion, condition: str = "plain") -> IntentQuestion:
    """One item under one condition, as a question of its own: what is asked, by the id `ITEM@CONDITION`.

    Its id says the condition, and with it whether pictures are shown and gaze is drawn on them.

    >>> item = IntentQuestion("i1", "s", "v", (), "spatial", "absolute", "Where?", ("left", "right", "top"), answer=0)
    >>> asked = posed(item, "rotated-1")
    >>> asked.id, asked.options, asked.answer
    ('i1@rotated-1', ('right', 'top', 'left'), 2)
    """
    shift = rotation(condition) % len(item.options)
    return replace(
        item,
        id=case_id(item.id, condition),
        options=item.options[shift:] + item.options[:shift],
        answer=(item.answer - shift) % len(item.options),
        labels=item.labels[shift:] + item.labels[:shift],
    )


def own_option(question: IntentQuestion, shown: int | None) -> int | None:
    """An option of a posed item as shown → its index in the item's own order.

    >>> item = IntentQuestion("i1", "s", "v", (), "spatial", "absolute", "Where?", ("left", "right", "top"), answer=0)
    >>> own_option(posed(item, "rotated-1"), 0)
    1
    """
    return None if shown is None else (shown + rotation(split_id(question.id)[1])) % len(question.options)


def chosen_interventions(text: str) -> tuple[Intervention, ...]:
    """The interventions that a text names: `all`, `none`, or names with commas.

    >>> chosen_interventions("order,gaze"), chosen_interventions("none")
    (('gaze', 'order'), ())
    """
    if text in ("all", "none"):
        return INTERVENTIONS if text == "all" else ()
    names = {name.strip() for name in text.split(",")}
    odd = sorted(names - set(INTERVENTIONS))
    if odd:
        raise BadInput(f"interventions: found {odd[0]!r}, expected all, none or some of {', '.join(INTERVENTIONS)}")
    return tuple(name for name in INTERVENTIONS if name in names)


def has_gaze(item: IntentQuestion) -> bool:
    """Whether a gaze can be shown with an item: there is one, and it is known when its pictures were taken.

    A single still picture needs no time.
    """
    timed = item.start is not None or len(item.media) == 1
    return bool(item.gaze and item.media and timed)


def asked_first(item_set: ItemSet, interventions: Iterable[Intervention], *, looks: bool) -> tuple[IntentQuestion, ...]:
    """Every item as it is and under the conditions; failed traps are asked `again` when they are known.

    Gaze, right or wrong, needs items that have one. Twins are not asked in another order: they are there to be paired
    with their traps.

    >>> item = IntentQuestion("i1", "s", "v", ("a.jpg",), "spatial", "absolute", "?", ("left", "right"), answer=0)
    >>> [asked.id for asked in asked_first(ItemSet((item,)), ["text-only", "order", "gaze"], looks=True)]
    ['i1@plain', 'i1@text-only', 'i1@rotated-1']
    """
    wanted = {name for name in interventions if looks or name not in _LOOKING}
    gazes = [name for name in ("gaze", "wrong-gaze") if name in wanted or (name == "gaze" and "wrong-gaze" in wanted)]
    questions = []
    for item in item_set.items:
        conditions = ["plain"]
        conditions += gazes if has_gaze(item) else []
        conditions += ["text-only"] if "text-only" in wanted and item.media else []
        if "order" in wanted and item.id not in item_set.named:
            conditions += [f"rotated-{shift}" for shift in range(1, len(item.options))]
        questions += [posed(item, condition) for condition in conditions]
    return tuple(questions)


def asked_again(item_set: ItemSet, choices: Mapping[str, int | None]) -> tuple[IntentQuestion, ...]:
    """The traps that were failed: `choices` has the option chosen by each item that was answered.

    >>> trap = IntentQuestion("t", "s", "v", (), "spatial", "absolute", "?", ("a", "b"), answer=0, trap="perceptual")
    >>> [asked.id for asked in asked_again(ItemSet((trap,)), {"t": 1})]
    ['t@again']
    """
    failed = (item for item in item_set.traps if item.id in choices and choices[item.id] != item.answer)
    return tuple(posed(item, "again") for item in failed)


def numbers_asked(asked: Sequence[IntentQuestion], traps: int, *, again: bool) -> str:
    """How much will be asked, in words, before it is.

    >>> numbers_asked([], 3, again=True)
    '0 questions, and those of 3 traps that are failed again'
    """
    conditions = (split_id(question.id)[1] for question in asked)
    kinds = Counter("order" if rotation(condition) else condition for condition in conditions)
    parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    total = counted(len(asked), "question") + (f" ({parts})" if len(kinds) > 1 else "")
    return f"{total}, and those of {counted(traps, 'trap')} that are failed again" if again and traps else total


def of_split(item_set: OpenedItems, split: str | None) -> tuple[OpenedItems, str]:
    """The items of the videos of one split, and a label; all items have no label."""
    if split is None:
        return item_set, ""
    videos = {video.name: video.split for video in item_set.dataset.videos()}
    items = tuple(item for item in item_set.items if videos.get(item.cluster) == split)
    if not items:
        known = ", ".join(sorted({name for name in videos.values() if name})) or "none"
        raise BadInput(f"split: found no item of {split!r:.60}, expected one of the splits of the data: {known}")
    return replace(item_set, items=items), f"split {split}, {len(items)} of {len(item_set.items)} items"


def stratified(item_set: AnySet, limit: int | None, seed: int = 0) -> tuple[AnySet, str]:
    """A subset of at most so many items, spread over skills and traps, and its label; all items have no label.

    A trap brings its twins along: they are nothing without each other. The draw is the same for the same items.
    """
    if limit is None or limit >= len(item_set.items):
        return item_set, ""
    strata: dict[Hashable, list[tuple[str, ...]]] = {}
    for item in item_set.items:
        if item.id not in item_set.named:
            links = (name for name in (item.untrapped, item.twin) if name is not None and name in item_set.by_id)
            group = (item.id, *links)
            strata.setdefault((item.trap or "", item.skill), []).append(group)
    drawn = draw_evenly(strata, limit, seed)
    items = tuple(item for item in item_set.items if item.id in drawn)
    if not items:
        raise BadInput(f"limit: found {limit}, expected enough for a trap with its twins")
    label = f"{len(items)} of {len(item_set.items)} items, drawn evenly from skills and traps (seed {seed})"
    return replace(item_set, items=items), label
