"""Lessons, the training examples of the embedded LLaVAs: frames of a video, a text about them and the correct reply.

Clinical-intent items and FOCUS questions come from the phantom's own makers, several sets for each video; the two
SurgXBench questions are asked about every frame. A lesson with a false premise has two replies: the correct one, and
the one that accepts the premise.

Every third set of items is about an instrument that the script does not mark as working: gaze and items refer to
another instrument in use in the view. The image alone then does not say which instrument is meant; only the gaze does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
import PIL.Image
from studies.embedded_models.prompts import ANSWERS, IMAGE, format_dialogue
from studies.embedded_models.render import SECONDS, map_in_processes

from surgeval.arrays import Bytes, Image, Int8s
from surgeval.phantom.dataset.edition import HELD_OUT_WORDINGS, VideoPlan, plan_videos
from surgeval.phantom.dataset.truth import label
from surgeval.phantom.questions.focus.questions import make_focus_questions
from surgeval.phantom.questions.focus.scene import quadrant
from surgeval.phantom.questions.intent_questions import make_intent_questions
from surgeval.phantom.questions.phrases import words
from surgeval.phantom.scene.footage import Footage
from surgeval.phantom.scene.render import Rendered
from surgeval.phantom.scene.tissue import ORGANS
from surgeval.phantom.script.gaze import make_gaze
from surgeval.phantom.script.graph import SceneGraph, Visibility, build_graph, known_things
from surgeval.phantom.script.procedure import FPS, make_procedure
from surgeval.qa import choice_prompt
from surgeval.records import Gaze, IntentQuestion, VqaQuestion
from surgeval.vocab import load_labels, tools_question, triplets_question

EDGE, CELLS = 160, 10
LABELLED = ("instrument", "verb", "target", "organ", "tip")
LESSON_SEED = 5_003
SETS = 6  # of questions about a video
FOCUS_FRAMES = 4  # of a FOCUS question at most
POINTING = "Focus on the circled area, where I am looking."
DOING = "What am I doing with the instrument I am looking at?"
Spot = tuple[float, float] | None  # where the surgeon looks, 0 … 1 of the frame


@dataclass(frozen=True, slots=True)
class Lesson:
    """One training example: frames of a video (by number), the text and the reply.

    `pointed` is the text when the gaze is circled, `pleasing` the reply that accepts the premise, `spots` the gaze in
    each frame, and `elsewhere` the position of another instrument.
    """

    kind: str  # a skill, perceptual, cognitive, twin, sanitised, focus, tools, triplets, shown
    video: str
    frames: tuple[int, ...]
    text: str
    reply: str
    pointed: str = ""
    pleasing: str = ""
    spots: tuple[Spot, ...] = ()
    elsewhere: tuple[Spot, ...] = ()
    item: str = ""
    partner: str = ""  # of a trap: its true-premise twin, or else its sanitised twin
    replies: tuple[str, ...] = ()  # one for each option


@dataclass(frozen=True, slots=True)
class Lessons:
    """The frames of a video, one a second, their patch labels and the lessons about them."""

    images: Bytes  # (frames, EDGE, EDGE, 3)
    patches: Int8s  # (frames, CELLS, CELLS, LABELLED): labels of each patch, −1 for none
    lessons: tuple[Lesson, ...]


@dataclass(frozen=True, slots=True)
class LessonJob:
    """A video to render, and the number of sets of questions about it."""

    plan: VideoPlan
    sets: int
    tint: str = "none"
    skip: tuple[str, ...] = ()  # kinds to leave out


def plan_lessons(videos: int, sets: int, seed: int = LESSON_SEED) -> list[LessonJob]:
    """Plan videos of the training procedures; the tissue of every fourth is tinted at random."""
    plans = [plan for plan in plan_videos(seed, min(999, 2 * videos + 12)) if not plan.ood][:videos]
    return [LessonJob(plan, sets, "random" if k % 4 == 3 else "none") for k, plan in enumerate(plans)]


def make_all_lessons(
    jobs: Iterable[LessonJob], workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> list[Lessons]:
    """Make the lessons of every video, in order, in worker processes if `workers` is greater than 1."""
    return map_in_processes(make_lessons, list(jobs), workers, progress)


def make_lessons(shoot: LessonJob) -> Lessons:
    """Render a video and make its lessons."""
    plan = shoot.plan
    procedure = make_procedure(plan.seed, SECONDS, plan.procedure)
    footage = Footage(procedure, plan.source, tint=shoot.tint)
    gaze, known = make_gaze(procedure, footage.width, footage.height), known_things(procedure)
    images, views, patches = [], [], []
    for index in range(0, round(SECONDS * FPS), FPS):
        shot = footage.shoot(index)
        images.append(_resize(shot.image))
        views.append(label(plan.name, index, procedure, known, shot, footage.renderer, gaze, ORGANS).view)
        patches.append(_label_patches(views[-1], shot))
    graph = build_graph(plan.name, procedure, known, views)
    rng = random.Random(plan.seed)
    lessons: list[Lesson] = []
    for number in range(shoot.sets):
        other = number % 3 == 2
        hand = _attend_other_instrument(graph, rng) if other else (graph, gaze)
        lessons += _intent_lessons(*hand, f"set{number}", rng, timeless=other)
        held_out = HELD_OUT_WORDINGS[plan.split]
        lessons += _focus_lessons(
            graph, make_focus_questions(graph, prefix=f"set{number}", held_out=held_out, ood=plan.ood), rng
        )
    lessons += (*_frame_lessons(graph), *_circle_lessons(graph))
    return Lessons(
        np.stack(images), np.stack(patches), tuple(lesson for lesson in lessons if lesson.kind not in shoot.skip)
    )


def _resize(image: Image) -> Image:
    # The same resizing as in the model's preprocessor, so that training and use see the same pixels.
    return np.asarray(PIL.Image.fromarray(image).resize((EDGE, EDGE), PIL.Image.Resampling.BILINEAR))


def _label_patches(view: Visibility, shot: Rendered) -> Int8s:
    """Label every patch of a frame: instrument, its verb and target, organ, and whether a tip is in it."""
    space = load_labels("phantom")
    labels = np.full((CELLS, CELLS, len(LABELLED)), -1, np.int8)
    labels[..., 4] = 0
    cover = np.full((CELLS, CELLS), 0.08, np.float32)  # least share of a patch
    for tool in view.tools:
        mask = shot.masks[tool.track].astype(np.float32)
        share = cv2.resize(mask, (CELLS, CELLS), interpolation=cv2.INTER_AREA)
        here, cover = share > cover, np.maximum(share, cover)
        names = (("instrument", tool.instrument), ("verb", tool.verb), ("target", tool.target))
        labels[here, :3] = [space.id(kind, name) for kind, name in names]
        if 0 <= tool.x < 1 and 0 <= tool.y < 1:
            labels[int(tool.y * CELLS), int(tool.x * CELLS), 4] = 1
    rows, columns = (((np.arange(CELLS) + 0.5) / CELLS * size).astype(int) for size in shot.organ_map.shape[:2])
    labels[..., 3] = shot.organ_map[np.ix_(rows, columns)]
    return labels


# ── clinical intent ─────────────────────────────────────────────────────────────────────────────────────────────


def _attend_other_instrument(graph: SceneGraph, rng: random.Random) -> tuple[SceneGraph, tuple[Gaze, ...]]:
    """Return the views with another instrument marked as working, and a gaze that rests on its tip."""
    views, gaze = [], []
    for view in graph.views:
        others = [
            tool
            for tool in view.tools
            if tool.track != view.working and tool.verb != "null_verb" and 0.06 < tool.x < 0.94 and 0.06 < tool.y < 0.94
        ]
        other = rng.choice(others) if others else None
        views.append(replace(view, working=other.track if other else None))
        if other:
            x, y = (min(max(at + rng.gauss(0, 0.02), 0.04), 0.96) for at in (other.x, other.y))
            gaze.append(Gaze(max(view.time - 0.4, 0.0), x, y, 0.8))
    return replace(graph, views=tuple(views)), tuple(gaze)


def _intent_lessons(
    graph: SceneGraph, gaze: Sequence[Gaze], prefix: str, rng: random.Random, *, timeless: bool
) -> Iterator[Lesson]:
    """Yield the items of a video; `timeless` leaves out those about what comes before and after."""
    items = make_intent_questions(graph, gaze, prefix=prefix)
    traps = {item.twin: item for item in items if item.twin}
    sanitised = {item.untrapped for item in items if item.untrapped}
    by_id = {item.id: item for item in items}
    for item in items:
        if timeless and item.skill in ("prospective", "retrospective") and len(item.media) > 1:
            continue
        kind = item.trap or ("twin" if item.id in traps else "sanitised" if item.id in sanitised else item.skill)
        pleasing = by_id[item.twin].answer if item.twin else item.answer
        yield replace(
            _choice_lesson(graph, item, gaze, rng),
            kind=kind,
            reply=format_reply(item.options, item.answer),
            pleasing=format_reply(item.options, pleasing),
            replies=tuple(format_reply(item.options, option) for option in range(len(item.options))),
            partner=item.twin or item.untrapped or "",
        )


def format_reply(options: Sequence[str], choice: int) -> str:
    r"""Format a reply: the words of the option, then its letter, as the question asks for.

    >>> said(("left", "right"), 1)
    'right\nAnswer: B'
    """
    return f"{options[choice]}\n{ANSWERS[choice]}"


def _choice_lesson(graph: SceneGraph, item: IntentQuestion, gaze: Sequence[Gaze], rng: random.Random) -> Lesson:
    times = [view.time for view in graph.views if item.start <= view.time <= item.end]  # type: ignore[operator]
    frames = tuple(round(time) for time in times)
    spots = tuple(_gaze_at(gaze, time) for time in times)
    others = tuple(_other_tip(graph.views[frame], spot) for frame, spot in zip(frames, spots, strict=True))
    asked = choice_prompt(item.question, item.options)
    if rng.random() < 0.25:  # the context may come before the question, too
        asked = "".join(f"{name.capitalize()}: {value}\n" for name, value in item.context.items()) + asked
    named = rng.random() < 0.25
    pictures = [part for frame in frames for part in ((f"Frame at 00:00:{frame:02d}:",) * named + (IMAGE,))]
    pointed = f"{POINTING}\n{asked}" if rng.random() < 0.5 else f"{asked}\n{POINTING}"
    return Lesson(
        kind="", video=graph.video, frames=frames, text=format_dialogue((*pictures, asked)), reply="",
        pointed=format_dialogue((*pictures, pointed)), spots=spots, elsewhere=others, item=item.id,
    )  # fmt: skip


def _gaze_at(gaze: Sequence[Gaze], time: float) -> Spot:
    """Return the fixation at a time, or the nearest within half a second."""

    def away(fix: Gaze) -> float:
        return max(fix.t - time, time - fix.t - fix.duration, 0.0)

    nearest = min(gaze, key=away, default=None)
    return (nearest.x, nearest.y) if nearest is not None and away(nearest) <= 0.5 else None


def _other_tip(view: Visibility, spot: Spot) -> Spot:
    """Return the tip of an instrument far from the gaze, or else the gaze mirrored."""
    if spot is None:
        return None
    tips = [(tool.x, tool.y) for tool in view.tools if 0 < tool.x < 1 and 0 < tool.y < 1]
    far = [tip for tip in tips if np.hypot(1.75 * (tip[0] - spot[0]), tip[1] - spot[1]) > 0.5]  # in frame heights
    return far[0] if far else (1 - spot[0], 1 - spot[1])


# ── FOCUS and SurgXBench ────────────────────────────────────────────────────────────────────────────────────────


def _focus_lessons(graph: SceneGraph, questions: Sequence[VqaQuestion], rng: random.Random) -> Iterator[Lesson]:
    last = len(graph.views) - 1
    for question in questions:
        first, after = min(round(question.start), last), min(round(question.end), last)
        count = min(after - first + 1, rng.randint(2, FOCUS_FRAMES))
        frames = tuple(int(frame) for frame in np.linspace(first, after, count).round())
        shown = (part for frame in frames for part in (f"Frame at 00:00:{frame:02d}:", IMAGE))
        yield Lesson("focus", graph.video, frames, format_dialogue((*shown, question.text)), question.answer)


def _frame_lessons(graph: SceneGraph) -> Iterator[Lesson]:
    """Yield both SurgXBench questions about every frame; instruments in the order of the question."""
    space = load_labels("phantom")
    tools, triplets = tools_question(space), triplets_question(space)
    for frame, view in enumerate(graph.views):
        seen = sorted({tool.instrument for tool in view.tools}, key=space.instruments.index)
        names = ", ".join(name.replace("specimen_bag", "bag") for name in seen)
        yield Lesson("tools", graph.video, (frame,), format_dialogue((IMAGE, tools)), names or "none")
        lines = sorted(
            {f"{tool.instrument} {tool.verb} {tool.target}" for tool in view.tools if tool.instrument != "specimen_bag"}
        )
        yield Lesson("triplets", graph.video, (frame,), format_dialogue((IMAGE, triplets)), "\n".join(lines) or "none")


def _circle_lessons(graph: SceneGraph) -> Iterator[Lesson]:
    """Yield, for every visible instrument, the question what the circled one does."""
    for frame, view in enumerate(graph.views):
        for tool in view.tools:
            if not (0.04 < tool.x < 0.96 and 0.04 < tool.y < 0.96):
                continue
            action = "nothing" if tool.verb == "null_verb" else f"{tool.verb} the {words(tool.target)}"
            where = quadrant(tool.x, tool.y)
            reply = f"{action} with the {words(tool.instrument)}" + (f", in the {where}" if where else "")
            pointed = format_dialogue((IMAGE, f"{POINTING}\n{DOING}"))
            yield Lesson("shown", graph.video, (frame,), pointed, reply, pointed, spots=((tool.x, tool.y),))
