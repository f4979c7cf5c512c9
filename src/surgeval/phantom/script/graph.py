"""The scene graph of a video: who did what to what and when, what became of every foreign object, what was in view.

Everything a question may ask is here, so questions need no pixels. Times are seconds of the video; views exist at
the labelled frames. The graph is plain JSON in the truth files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surgeval.errors import DataError
from surgeval.phantom.script.actions import Deed
from surgeval.phantom.script.history import History, Stretch, stretch_at
from surgeval.phantom.script.procedure import Procedure
from surgeval.vocab import foreign_objects


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase with its times and the site of the work in words."""

    name: str
    start: float
    end: float
    site: str


@dataclass(frozen=True, slots=True)
class Event(Deed):
    """A labelled action; `moment` is when a clip closed or blades cut."""

    moment: float | None = None


@dataclass(frozen=True, slots=True)
class GraphSpan(Stretch):
    """A stretch of an object's history: held (by an instrument), lying, hidden, applied, in use."""

    state: str
    track: int | None = None


@dataclass(frozen=True, slots=True)
class Thing(History[GraphSpan]):
    """A foreign object: `origin` is brought, dropped, spilled, excised, applied or freed; `removed` when it left."""

    key: str
    spans: tuple[GraphSpan, ...]
    removed: float | None = None

    @property
    def name(self) -> str:
        """The class as FOCUS spells it."""
        return next(fo.name for fo in foreign_objects() if fo.slug == self.slug)

    @property
    def stretches(self) -> tuple[GraphSpan, ...]:
        """The spans."""
        return self.spans


@dataclass(frozen=True, slots=True)
class SeenTool:
    """An instrument in view, with its tip in 0 … 1 of the frame."""

    track: int
    instrument: str
    verb: str
    target: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class SeenThing:
    """A foreign object in the abdomen at a view: visible, hidden or out_of_view, and where."""

    key: str
    state: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Visibility:
    """What one labelled frame shows; `working` is the track the surgeon attends to."""

    time: float
    name: str
    phase: str
    working: int | None
    tools: tuple[SeenTool, ...]
    things: tuple[SeenThing, ...]
    organs: tuple[str, ...]
    corrupted: bool = False

    def visible(self) -> tuple[SeenThing, ...]:
        """The foreign objects in view."""
        return tuple(thing for thing in self.things if thing.state == "visible")

    def tool(self, track: int | None) -> SeenTool | None:
        """One of the instruments in view."""
        return next((tool for tool in self.tools if tool.track == track), None)


@dataclass(frozen=True, slots=True)
class SceneGraph:
    """One video."""

    video: str
    procedure: str
    seconds: float
    phases: tuple[Phase, ...]
    events: tuple[Event, ...]
    things: tuple[Thing, ...]
    views: tuple[Visibility, ...]

    def thing(self, key: str) -> Thing:
        """A foreign object by its key."""
        return next(thing for thing in self.things if thing.key == key)

    def phase(self, t: float) -> Phase:
        """The phase at a time."""
        return stretch_at(self.phases, t) or self.phases[-1]

    def to_json(self) -> dict[str, Any]:
        """Plain values; `graph_from_json` reads them back."""
        return asdict(self)


def graph_from_json(data: Any, file: str | Path) -> SceneGraph:
    """The inverse of `SceneGraph.to_json`.

    >>> from surgeval.phantom import make_procedure
    >>> graph = build_graph("A1", make_procedure(7), [], [])
    >>> graph_from_json(graph.to_json(), "truth/A1.json") == graph
    True
    """
    try:
        return SceneGraph(
            data["video"],
            data["procedure"],
            data["seconds"],
            tuple(Phase(**row) for row in data["phases"]),
            tuple(Event(**row) for row in data["events"]),
            tuple(
                Thing(**{**row, "spans": tuple(GraphSpan(**span) for span in row["spans"])}) for row in data["things"]
            ),
            tuple(_view(row) for row in data["views"]),
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            file, f"found {type(error).__name__}: {error}, expected a scene graph", field="graph"
        ) from error


def _view(row: dict[str, Any]) -> Visibility:
    return Visibility(
        **{
            **row,
            "tools": tuple(SeenTool(**tool) for tool in row["tools"]),
            "things": tuple(SeenThing(**thing) for thing in row["things"]),
            "organs": tuple(row["organs"]),
        }
    )


@dataclass(frozen=True, slots=True)
class Known:
    """A thing together with what it is in the script: a planned object, an applied clip, the bag, the gallbladder."""

    thing: Thing
    kind: str  # "object", "clip", "bag" or "specimen"
    number: int  # object number, index of the clip's mark, or track


def known_things(procedure: Procedure) -> tuple[Known, ...]:
    """Every foreign object that is in the abdomen at some time of the video, in order of appearance."""
    things: list[tuple[str, str, str, str, list[GraphSpan], int]] = []  # kind, slug, origin, situs, spans, number
    for plan in procedure.objects:
        spans = [GraphSpan(leg.start, leg.end, leg.kind, leg.track) for leg in plan.legs]
        things.append(("object", plan.slug, plan.origin, plan.situs, spans, plan.number))
    whole = procedure.phases[-1].end
    marked = [a for a in procedure.actions if a.moment is not None and a.instrument != "hook"]
    for number, action in enumerate(marked):
        if action.verb == "clip" and action.moment is not None:
            things.append(
                ("clip", "clip", "applied", action.target, [GraphSpan(action.moment, whole, "applied")], number)
            )
    for tool in procedure.tools:
        if tool.instrument == "specimen_bag":
            span = GraphSpan(tool.enters, tool.leaves, "in_use", tool.track)
            things.append(("bag", "specimen_bag", "brought", "gallbladder", [span], tool.track))
    p = procedure.packing
    if p is not None:
        spans = [
            GraphSpan(p.freed, p.lifted, "lying"),
            GraphSpan(p.lifted, p.bagged, "held", p.carrier),
            GraphSpan(p.bagged, p.gone, "hidden"),
        ]
        things.append(("specimen", "specimen", "freed", "cystic_plate", spans, p.carrier))
    return _numbered(procedure, things)


def _numbered(
    procedure: Procedure, appearances: Sequence[tuple[str, str, str, str, list[GraphSpan], int]]
) -> tuple[Known, ...]:
    """Keys `slug-1`, `slug-2`, … by first appearance; times cut to the video."""
    counts: dict[str, int] = {}
    known = []
    whole = procedure.phases[-1].end
    for kind, slug, origin, situs, spans, number in sorted(
        appearances, key=lambda item: (item[4][0].start, item[1], item[5])
    ):
        cut = tuple(
            GraphSpan(round(max(start, 0.0), 3), round(min(end, procedure.seconds), 3), span.state, span.track)
            for span in spans
            for start, end in [(span.start - procedure.offset, span.end - procedure.offset)]
            if end > 0 and start < procedure.seconds
        )
        if not cut:
            continue
        counts[slug] = counts.get(slug, 0) + 1
        left = round(spans[-1].end - procedure.offset, 3)
        removed = left if spans[-1].end < whole and left < procedure.seconds else None
        known.append(Known(Thing(slug, origin, situs, f"{slug}-{counts[slug]}", cut, removed), kind, number))
    return tuple(known)


def build_graph(video: str, procedure: Procedure, known: Sequence[Known], views: Sequence[Visibility]) -> SceneGraph:
    """Put script and views together."""
    offset, seconds = procedure.offset, procedure.seconds

    def clip(t: float) -> float:
        return round(min(max(t - offset, 0.0), seconds), 3)

    phases = tuple(
        Phase(span.name, clip(span.start), clip(span.end), span.site)
        for span in procedure.phases
        if clip(span.end) > clip(span.start)
    )
    events = tuple(
        Event(
            action.track,
            action.instrument,
            action.verb,
            action.target,
            clip(start),
            clip(end),
            None if action.moment is None else round(action.moment - offset, 3),
        )
        for action in procedure.actions
        for start, end in [action.labelled]
        if clip(end) > clip(start)
    )
    return SceneGraph(video, procedure.name, seconds, phases, events, tuple(k.thing for k in known), tuple(views))
