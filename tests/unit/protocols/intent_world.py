"""Clinical-intent items whose truth is known, and answerers who behave in one known way each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from surgeval.engine import Manifest, RunRecord, Unit, run
from surgeval.protocols.intent.items import save_items
from surgeval.protocols.intent.result import IntentScores
from surgeval.protocols.intent.scoring.scores import answers_of, roles_of
from surgeval.protocols.intent.scoring.weights import DIMENSIONS, SKILLS
from surgeval.protocols.pictures import save_pictures, thumbnail
from surgeval.records import Case, Gaze, IntentQuestion

Answerer: TypeAlias = Callable[[IntentQuestion, str, str], "int | None"]  # item, its role, condition → choice

OF_SKILL = {skill: dimension for dimension, pair in DIMENSIONS.items() for skill in pair}
REJECTION = "that is not what I see here"
QUADRANTS = ("in the upper left", "in the upper right", "in the lower left", "in the lower right")
_CENTRES = dict(zip(QUADRANTS, ((0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)), strict=True))
PICTURED = 60
CONDITIONS = ("plain", "gaze", "text-only", "wrong-gaze", "rotated-1", "rotated-2", "rotated-3")


def make_items(
    videos: int = 12, scenarios: Sequence[str] = ("laparoscopy",), twins: bool = True
) -> list[IntentQuestion]:
    """27 items per video, as the phantom has them: 12 of competency, 3 + 3 traps with their twins."""
    return [item for number in range(videos) for item in _video(number, scenarios[number % len(scenarios)], twins)]


def _video(number: int, scenario: str, twins: bool) -> list[IntentQuestion]:
    dice, video = random.Random(number), f"V{number:02d}"
    made: list[IntentQuestion] = []

    def add(skill: str, options: Sequence[str], right: str, *, shuffle: bool = True, **more: Any) -> IntentQuestion:
        ordered = dice.sample(list(options), len(options)) if shuffle else list(options)
        x, y = _CENTRES.get(right, (0.5, 0.5))
        item = IntentQuestion(
            f"{video}-{len(made):02d}", scenario, video, (), OF_SKILL[skill], skill, f"What about {skill}?",
            tuple(ordered), ordered.index(right), 1.0, 1.0, (Gaze(0.8, x, y, 0.5),), {"procedure": "cholecystectomy"},
            **more,
        )  # fmt: skip
        made.append(item)
        return item

    for skill in SKILLS:
        for _ in range(2):
            options = QUADRANTS if skill == "absolute" else tuple(f"{skill} {letter}" for letter in "pqrs")
            add(skill, options, dice.choice(options))
    for place in range(3):
        skill = SKILLS[(number + place) % 6]
        sane = f"{video}-{len(made) + 1:02d}"
        tools = ("the hook", "the bag", "the mesh", "the clip")
        add(skill, tools, "the hook", trap="perceptual", untrapped=sane if twins else None)
        if twins:
            add(skill, ("the hook", "the liver", "the gut", "the grasper"), "the hook")
        aims = (REJECTION, "to close a vessel", "to open the view", "to free the duct")
        twin, bare = (f"{video}-{len(made) + step:02d}" for step in (1, 2))
        trap = add(skill, aims, REJECTION, trap="cognitive", twin=twin if twins else None,
                   untrapped=bare if twins else None)  # fmt: skip
        if twins:
            add(skill, trap.options, "to close a vessel", shuffle=False)
            add(skill, ("to lift the lobe", *aims[1:]), "to lift the lobe")
    return made


def _wrong(item: IntentQuestion, dice: random.Random) -> int:
    return dice.choice([place for place in range(len(item.options)) if place != item.answer])


def _with(chance: float, item: IntentQuestion, *salt: str) -> int:
    """Right with this probability, the same for the same salt always."""
    dice = random.Random("\0".join((item.id, *salt)))
    return item.answer if dice.random() < chance else _wrong(item, dice)


def oracle(item: IntentQuestion, role: str, condition: str) -> int | None:
    return text_prior(item, role, condition) if condition == "text-only" else item.answer


def guesser(item: IntentQuestion, role: str, condition: str) -> int | None:
    return random.Random(f"{item.id}{condition}").randrange(len(item.options))


def always_reject(item: IntentQuestion, role: str, condition: str) -> int | None:
    return item.options.index(REJECTION) if REJECTION in item.options else guesser(item, role, "")


def always_accept(item: IntentQuestion, role: str, condition: str) -> int | None:
    endorsing = [place for place, text in enumerate(item.options) if text != REJECTION]
    return random.Random(item.id).choice(endorsing)


def text_prior(item: IntentQuestion, role: str, condition: str) -> int | None:
    """Looks at nothing: knows the usual answers, and that traps are to be rejected."""
    if REJECTION in item.options:
        return item.options.index(REJECTION)
    return _with(0.47, item)


def discriminating(item: IntentQuestion, role: str, condition: str) -> int | None:
    """Looks: better with the pictures, better still with the gaze, and follows a gaze that is moved."""
    if condition == "text-only":
        return text_prior(item, role, condition)
    if condition == "wrong-gaze" and random.Random(f"moved{item.id}").random() < 0.5:
        return (item.answer + 1) % len(item.options)
    if role != "competency":
        return _with(0.9, item, condition if condition == "again" else "")
    # The gaze mends some of what was wrong without it.
    return item.answer if _with(0.7, item) == item.answer else _with(0.6 if condition == "gaze" else 0.0, item, "gaze")


def gaze_blind(item: IntentQuestion, role: str, condition: str) -> int | None:
    """Looks, and pays no heed to the gaze."""
    return discriminating(item, role, condition if condition in ("text-only", "again") else "plain")


def sycophant(item: IntentQuestion, role: str, condition: str) -> int | None:
    """As able as the gaze-blind one, and believes every premise."""
    if role == "cognitive":
        return next(place for place, text in enumerate(item.options) if text == "to close a vessel")
    return gaze_blind(item, role, condition)


def mumbler(item: IntentQuestion, role: str, condition: str) -> int | None:
    """Every third reply cannot be read; the others are right."""
    return None if random.Random(f"mumble{item.id}").random() < 1 / 3 else item.answer


ANSWERERS: dict[str, Answerer] = {
    "oracle": oracle, "random": guesser, "always-reject": always_reject, "always-accept": always_accept,
    "prior": text_prior, "discriminating": discriminating, "gaze-blind": gaze_blind, "sycophant": sycophant,
    "mumbler": mumbler,
}  # fmt: skip


def make_cases(
    items: Sequence[IntentQuestion], answerer: Answerer, conditions: Sequence[str] = CONDITIONS
) -> list[Case]:
    """What a run stores: every item under `plain`, competency and traps under the others, failed traps again."""
    roles, made = roles_of(items), []
    for item in items:
        role = roles[item.id]
        asked = [c for c in conditions if c == "plain" or (role in ("competency", "perceptual", "cognitive")
                                                           and not (c == "gaze" and role != "competency"))]  # fmt: skip
        failed = item.trap is not None and answerer(item, role, "plain") != item.answer
        for condition in (*asked, *(("again",) if failed else ())):
            choice = answerer(item, role, condition)
            said = "" if choice is None else f"Answer: {'ABCDEFGH'[choice]}"
            values = {
                "item": item.id, "condition": condition, "content": said, "choice": choice,
                "strict": choice if item.answer % 2 else None, "reading": "empty" if choice is None else "ok",
                "latency": 0.5, "requests": 1, "prompt_tokens": 100, "completion_tokens": 4,
                "shown": json.dumps([{"frame": 25, "time": 1.0, "width": 448, "height": 256, "sha256": item.id}]),
                **({"distractor": (item.answer + 1) % len(item.options)} if condition == "wrong-gaze" else {}),
            }  # fmt: skip
            made.append(Case(f"{item.id}@{condition}", item.cluster, values=values))
    return made


def scores_of(
    items: Sequence[IntentQuestion], answerer: Answerer, conditions: Sequence[str] = CONDITIONS, **more: Any
) -> IntentScores:
    """What the protocol makes of the answers, without a folder."""
    rows = [{"id": case.id, "cluster": case.cluster, "status": case.status, "reason": case.reason, **case.values}
            for case in make_cases(items, answerer, conditions)]  # fmt: skip
    cases = pl.DataFrame(rows, infer_schema_length=None)
    absent = [pl.lit(None, dtype=pl.Int64).alias("distractor")] if "distractor" not in cases.columns else []
    record = RunRecord(**Manifest("intent").stored(), status="done", units=1, finished=1, failed=0, cases=cases.height)
    name = {answerer: name for name, answerer in ANSWERERS.items()}.get(answerer, "model")
    answers = answers_of(items, cases.with_columns(*absent))
    return IntentScores(**{"name": name, "record": record, "items": tuple(items), "answers": answers, **more})


def write_run(folder: Path, items: Sequence[IntentQuestion], cases: Sequence[Case], name: str, **config: Any) -> Path:
    """A run folder as the protocol leaves it."""
    settings = {"prompt": 1, "gaze": "both", "frames": 8, "invalid": "wrong", "subset": "", **config}
    manifest = Manifest("intent", settings, {"name": "planted"}, {"name": name})
    by_video: dict[str, list[Case]] = {}
    for case in cases:
        by_video.setdefault(case.cluster, []).append(case)
    run(
        [Unit(video, video) for video in by_video],
        by_video.__getitem__,
        folder=folder,
        manifest=manifest,
        progress=False,
    )
    save_items(folder, items)
    save_pictures(folder, {item.id: _picture(item) for item in items[:PICTURED]})
    return folder


def _picture(item: IntentQuestion) -> bytes:
    """A frame of one colour by item."""
    shade = np.random.default_rng(sum(map(ord, item.id))).integers(40, 200, 3, dtype=np.uint8)
    return thumbnail(np.full((64, 112, 3), shade, np.uint8))
