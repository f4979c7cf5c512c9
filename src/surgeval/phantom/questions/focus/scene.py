"""What the makers of `focus` questions share: the question before it is worded, and ways to look at a scene graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.graph import Event, SceneGraph, SeenThing, Visibility
from surgeval.vocab import foreign_objects

NONE = "None"
QUADRANTS = ("upper left", "upper right", "lower left", "lower right")
_NAMES = {fo.slug: fo.name for fo in foreign_objects()}
CLASSES = tuple(_NAMES)
_CLEAR = 0.07  # distance from the middle lines within which "left" or "upper" would be a matter of opinion


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question before it is worded."""

    kind: str
    primary: str
    format: str
    answer: str
    start: float
    end: float
    slots: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    secondaries: tuple[str, ...] = ()
    clinical: bool = False


@dataclass(frozen=True, slots=True)
class QuestionScene:
    """A graph with what the makers keep asking of it."""

    graph: SceneGraph
    dice: Dice
    yes: bool  # the answer wanted of the next yes/no question
    option: int = 0  # position wanted of the right option of the next multiple-choice question

    @property
    def end(self) -> int:
        """The last whole second."""
        return int(self.graph.seconds)

    def events(self) -> list[Event]:
        """The actions the video shows: not the last glimpse of a clip that closed before it begins."""
        return [e for e in self.graph.events if e.moment is None or 0 <= e.moment <= self.end]

    def views(self) -> list[Visibility]:
        """Views at whole seconds, in random order, clear ones first."""
        whole = [view for view in self.graph.views if view.time == int(view.time)]
        return sorted(self.dice.shuffled(whole), key=lambda view: view.corrupted)

    def slug(self, thing: SeenThing) -> str:
        """Its class."""
        return self.graph.thing(thing.key).slug

    def seen_slugs(self, view: Visibility) -> set[str]:
        """Classes in view."""
        return {self.slug(thing) for thing in view.visible()}

    def lettered(self, right: str, wrong: Sequence[str]) -> tuple[str, str]:
        """Options as `A) … B) …` with the right one in its place, and the right one with its letter."""
        options = self.dice.shuffled(wrong)
        options.insert(self.option, right)
        text = " ".join(f"{letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
        return text, f"{'ABCD'[self.option]}) {right}"

    def single(self, view: Visibility) -> list[SeenThing]:
        """Visible objects whose class is visible once, so that "the sponge" is unambiguous."""
        visible = view.visible()
        slugs = [self.slug(thing) for thing in visible]
        return self.dice.shuffled([thing for thing, slug in zip(visible, slugs, strict=True) if slugs.count(slug) == 1])

    def whole(self, kind: str, primary: str, form: str, answer: str, **more: object) -> AskedQuestion:
        """A question about the whole video."""
        return AskedQuestion(kind, primary, form, answer, 0.0, float(self.end), **more)  # type: ignore[arg-type]

    def at(self, view_time: float, kind: str, primary: str, form: str, answer: str, **more: object) -> AskedQuestion:
        """A question about one moment."""
        slots = {"t": clock_of(view_time), **more.pop("slots", {})}  # type: ignore[dict-item]
        return AskedQuestion(kind, primary, form, answer, view_time, view_time, slots, **more)  # type: ignore[arg-type]


def clock_of(seconds: float) -> str:
    """hh:mm:ss of the nearest second.

    >>> clock_of(75.4)
    '00:01:15'
    """
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def tolerance(start: float, end: float) -> float:
    """FOCUS's tolerance for times: 1 s for a frame, growing with the window, at most 5 s."""
    return round(min(5.0, 1.0 + (end - start) * 4 / 360), 3)


def class_list(slugs: set[str]) -> str:
    """Class names in FOCUS's order, or `None`."""
    return ", ".join(name for slug, name in _NAMES.items() if slug in slugs) or NONE


def lower(slug: str) -> str:
    """The class name inside a sentence."""
    return _NAMES[slug].lower()


def quadrant(x: float, y: float) -> str | None:
    """The quarter of the image, or None near the middle lines."""
    if abs(x - 0.5) < _CLEAR or abs(y - 0.5) < _CLEAR:
        return None
    return f"{'upper' if y < 0.5 else 'lower'} {'left' if x < 0.5 else 'right'}"
