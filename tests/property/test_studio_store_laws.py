"""Laws of the studio's store under random edits of two authors: replay gives the state, undo is exact, refusals change
nothing, and every row shows the latest statement about it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.conftest import LONG
from tests.studio_editor import Editor
from tests.studio_project import Project

from surgeval.errors import BadInput
from surgeval.records import Box
from surgeval.studio.schema import builtin_refinement, builtin_schema, parse_schema
from surgeval.studio.segments import Segment
from surgeval.studio.store import Annotation, Conflict, OperationOutcome, Track
from surgeval.studio.store.tables import BEFORE, STATE

FRAMES = 12
AUTHORS = st.sampled_from(["amy", "ben"])
FRAME = st.integers(0, FRAMES - 1)
RANGE = st.tuples(FRAME, FRAME).map(lambda pair: (min(pair), max(pair)))
NUMBER = st.integers(1, 3)
NAMES = st.sampled_from(["scissors", "aspirator"])
VALUES = st.dictionaries(
    st.sampled_from(["action", "target"]),
    st.sampled_from(["cut", "suck", "retract", "prostate", "fluid", "null", None]),
    min_size=1,
)
BOX = st.builds(Box, *([st.integers(0, 50).map(float)] * 4))
OTHER_SCHEMA = parse_schema('{"tools": {"scissors": {"actions": ["cut", "dissect"]}}, "image": {"phase": ["a"]}}', "b")
WITH_IMAGE = parse_schema(
    json.dumps({**json.loads(builtin_schema("prostatd").source), "image": {"action": ["cut", "suck", "retract"]}}), "a"
)


class Edits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.project = Project(self.folder)
        self.count = 0

    def teardown(self) -> None:
        assert self.project.replay() == self.project.state()
        self.project.close()
        Project(self.folder, create=False).close()  # whatever was done, it opens again
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        editor = self.project.edit("setup")
        editor.add_video("v", width=64, height=48, names=[f"{n}.png" for n in range(FRAMES)])
        editor.set_schema(WITH_IMAGE)
        boxes = [
            Annotation(f"{name}{frame}", "v", frame, "tools", name, Box(frame, 0, 9, 9), track=1)
            for frame in range(0, FRAMES, 2)
            for name in ("scissors", "aspirator")
        ]
        boxes += [
            Annotation(f"b{n}", "v", n, "tools", "scissors", Box(0, n, 9, 9), track=2) for n in range(1, FRAMES, 3)
        ]
        editor.add_instances(boxes)
        scissors = [Track("tools", "scissors", 1)]
        self.project.edit("amy").add_span("s1", "v", scissors, {"action": "cut", "target": "prostate"}, 2, 9)
        self.project.edit("ben").add_span("s2", "v", scissors, {"action": "dissect"}, 5, 11)
        self.project.edit("amy").add_span("s3", "v", [], {"action": "cut"}, 0, 6)
        editor.add_study("study", ["amy", "ben"], [Segment("v", 0, 4), Segment("v", 6, 11)])

    def new_id(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def some_ids(self, data: st.DataObject, *, proposals: bool = False) -> list[str]:
        known = sorted(one.id for one in self.project.instances("v", 0, FRAMES) if one.proposal or not proposals)
        gone = ["scissors0"]  # at times an id that someone has deleted
        return data.draw(st.lists(st.sampled_from(known or gone), min_size=1, max_size=3, unique=True))

    def some_span(self, data: st.DataObject) -> str:
        spans = sorted(span.id for span in self.project.spans("v"))
        return data.draw(st.sampled_from(spans or ["s1"]))

    def attempt(
        self, data: st.DataObject, edit: Callable[[Editor], OperationOutcome], study: str | None = None
    ) -> None:
        author = data.draw(AUTHORS)
        version = self.project.version
        base = data.draw(st.sampled_from([None, version, max(7, version - 1), max(7, version - 4)]))
        before = self.project.state()
        tried = result(edit, self.project.preview(author, base=base))
        assert self.project.state() == before  # a preview stores nothing
        done = result(edit, self.project.edit(author, base=base, id=self.new_id()))
        if isinstance(done, str):
            assert self.project.state() == before  # a refused edit leaves nothing behind
            assert tried == done
            return
        assert isinstance(tried, OperationOutcome)
        assert (tried.changed, tried.skipped, tried.absent) == (done.changed, done.skipped, done.absent)
        if data.draw(st.integers(0, 3)) == 0:  # taken back at once, everything is as it was; and done again
            after = self.project.state()
            self.project.edit(author).undo(study=study)
            assert visible(self.project.state()) == visible(before)
            self.project.edit(author).redo(study=study)
            assert visible(self.project.state()) == visible(after)

    @rule(data=st.data(), frame=FRAME, name=NAMES, track=st.none() | NUMBER, box=BOX, values=VALUES, p=st.booleans())
    def add(
        self, data: st.DataObject, frame: int, name: str, track: int | None, box: Box, values: Any, p: bool
    ) -> None:
        one = Annotation(
            self.new_id(), "v", frame, "tools", name, box, (), {k: v for k, v in values.items() if v}, track,
            proposal=p, score=frame / FRAMES,
        )  # fmt: skip
        self.attempt(data, lambda editor: editor.add_instances([one]))

    @rule(data=st.data(), frame=FRAME, name=NAMES, values=VALUES, replace=st.booleans(), outlined=st.booleans())
    def take_in(self, data: st.DataObject, frame: int, name: str, values: Any, replace: bool, outlined: bool) -> None:
        said = {key: value for key, value in values.items() if value}
        shape: dict[str, Any] = {"polygons": [[[1, 2], [9, 2], [5, 8]]]} if outlined else {"box": [frame, 3, 5, 5]}
        at = {"video": "v", "frame": frame}
        one = {**at, "id": self.new_id(), "group": "tools", "name": name, "values": said, "extra": {"a": 1}, **shape}
        lists: dict[str, Any] = {"instances": [one], "flags": [{**at, "reason": "smoke"}]}
        lists |= {"words": [{**at, "words": {"text": name}}], "images": [{**at, "values": {"action": "suck"}}]}
        if replace:
            lists["replace"] = [{"video": "v", "frames": [frame]}]
        self.attempt(data, lambda editor: editor.take_in(**lists))

    @rule(data=st.data(), dx=st.integers(-5, 5))
    def move(self, data: st.DataObject, dx: int) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.move(ids, dx, 1.0))

    @rule(data=st.data(), box=BOX)
    def reshape(self, data: st.DataObject, box: Box) -> None:
        ids = self.some_ids(data)
        triangle = ((box.x, box.y), (box.x + box.w, box.y), (box.x, box.y + box.h))
        self.attempt(data, lambda editor: editor.reshape({id: box if n else [triangle] for n, id in enumerate(ids)}))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.delete(ids))

    @rule(data=st.data(), frame=FRAME)
    def duplicate(self, data: st.DataObject, frame: int) -> None:
        copies = {id: self.new_id() for id in self.some_ids(data)}
        self.attempt(data, lambda editor: editor.duplicate(copies, frame=frame, dx=3.0))

    @rule(data=st.data(), values=VALUES)
    def set_values(self, data: st.DataObject, values: Any) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.set_values(ids, values))

    @rule(data=st.data(), name=NAMES)
    def classify(self, data: st.DataObject, name: str) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.classify(ids, "tools", name))

    @rule(data=st.data(), frames=RANGE, values=VALUES)
    def image_values(self, data: st.DataObject, frames: tuple[int, int], values: Any) -> None:
        self.attempt(data, lambda editor: editor.set_image_values("v", *frames, values))

    @rule(data=st.data(), frames=RANGE, values=VALUES, number=NUMBER, image=st.booleans())
    def add_span(self, data: st.DataObject, frames: tuple[int, int], values: Any, number: int, image: bool) -> None:
        tracks = [] if image else [Track("tools", "scissors", number), Track("tools", "aspirator", 1)]
        id = self.new_id()
        self.attempt(data, lambda editor: editor.add_span(id, "v", tracks, values, *frames))

    @rule(data=st.data(), frames=RANGE)
    def edges(self, data: st.DataObject, frames: tuple[int, int]) -> None:
        span = self.some_span(data)
        self.attempt(data, lambda editor: editor.set_span_edges(span, *frames))

    @rule(data=st.data(), values=VALUES)
    def span_values(self, data: st.DataObject, values: Any) -> None:
        span = self.some_span(data)
        self.attempt(data, lambda editor: editor.set_span_values(span, values))

    @rule(data=st.data(), at=FRAME)
    def cut(self, data: st.DataObject, at: int) -> None:
        span, new = self.some_span(data), self.new_id()
        self.attempt(data, lambda editor: editor.cut_span(span, at, new))

    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        one, other = self.some_span(data), self.some_span(data)
        self.attempt(data, lambda editor: editor.join_spans(one, other))

    @rule(data=st.data())
    def delete_span(self, data: st.DataObject) -> None:
        span = self.some_span(data)
        self.attempt(data, lambda editor: editor.delete_span(span))

    @rule(data=st.data(), number=st.none() | NUMBER)
    def set_track(self, data: st.DataObject, number: int | None) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.set_track(ids, number))

    @rule(data=st.data(), one=st.none() | NUMBER, to=NUMBER, frames=RANGE)
    def track_range(self, data: st.DataObject, one: int | None, to: int, frames: tuple[int, int]) -> None:
        track = Track("tools", "scissors", one)
        self.attempt(data, lambda editor: editor.set_track_range("v", track, to, *frames))

    @rule(data=st.data(), one=NUMBER, other=NUMBER, at=FRAME)
    def swap(self, data: st.DataObject, one: int, other: int, at: int) -> None:
        tracks = [Track("tools", "scissors", number) for number in (one, other)]
        self.attempt(data, lambda editor: editor.swap_tracks("v", tracks[0], tracks[1], at))

    @rule(data=st.data(), one=NUMBER, other=NUMBER)
    def merge(self, data: st.DataObject, one: int, other: int) -> None:
        tracks = [Track("tools", "scissors", number) for number in (one, other)]
        self.attempt(data, lambda editor: editor.merge_tracks("v", tracks[0], tracks[1]))

    @rule(data=st.data(), name=NAMES, number=NUMBER, at=FRAME)
    def split(self, data: st.DataObject, name: str, number: int, at: int) -> None:
        self.attempt(data, lambda editor: editor.split_track("v", Track("tools", name, number), at))

    @rule(data=st.data(), name=NAMES, number=NUMBER, first=FRAME)
    def extend(self, data: st.DataObject, name: str, number: int, first: int) -> None:
        self.attempt(data, lambda editor: editor.extend_track("v", Track("tools", name, number), first))

    @rule(data=st.data(), numbers=st.lists(NUMBER, min_size=3, max_size=3))
    def renumber(self, data: st.DataObject, numbers: list[int]) -> None:
        wanted = dict(zip(self.some_ids(data), numbers, strict=False))
        self.attempt(data, lambda editor: editor.renumber(wanted))

    @rule(data=st.data(), source=FRAME, frames=RANGE, values=st.booleans())
    def paste(self, data: st.DataObject, source: int, frames: tuple[int, int], values: bool) -> None:
        self.attempt(data, lambda editor: editor.paste("v", source, *frames, values=values))

    @rule(data=st.data(), name=NAMES, number=NUMBER, frames=RANGE)
    def interpolate(self, data: st.DataObject, name: str, number: int, frames: tuple[int, int]) -> None:
        self.attempt(data, lambda editor: editor.interpolate("v", Track("tools", name, number), *frames))

    @rule(data=st.data(), frames=RANGE, threshold=st.sampled_from([None, 0.3, 0.7]), accept=st.booleans())
    def decide(self, data: st.DataObject, frames: tuple[int, int], threshold: float | None, accept: bool) -> None:
        self.attempt(data, lambda e: (e.accept if accept else e.reject)("v", *frames, threshold=threshold))

    @rule(data=st.data(), old=st.sampled_from(["cut", "suck", "null"]), new=st.sampled_from(["retract", "null"]))
    def replace(self, data: st.DataObject, old: str, new: str) -> None:
        self.attempt(data, lambda editor: editor.replace_value("tools", "scissors", "action", old, new))

    @rule(data=st.data())
    def replace_class(self, data: st.DataObject) -> None:
        self.attempt(data, lambda editor: editor.replace_class("tools", "aspirator", "scissors"))

    @rule(data=st.data(), old=st.sampled_from(["cut", "suck", "null"]))
    def replace_several(self, data: st.DataObject, old: str) -> None:
        value = {"group": "tools", "name": "scissors", "attribute": "action", "old": old, "new": "retract"}
        rows = [value, {"group": "tools", "old": "aspirator", "new": "grasper"}]
        self.attempt(data, lambda editor: editor.replace_several(rows))

    @rule(data=st.data(), frames=RANGE, replace=st.booleans())
    def propose(self, data: st.DataObject, frames: tuple[int, int], replace: bool) -> None:
        id, box = f"p{len(self.project.operations())}", Box(1, 2, 3, 4)
        shown = [Annotation(id, "v", frames[0], "tools", "scissors", box, source="net", score=0.5, proposal=True)]
        self.attempt(data, lambda editor: editor.propose("v", *frames, "net", shown, replace=replace))

    @rule(data=st.data())
    def refine(self, data: st.DataObject) -> None:
        self.attempt(data, lambda editor: editor.refine(builtin_refinement()))

    @rule(data=st.data(), frames=RANGE, kind=st.sampled_from(["flag", "clear", "mark"]))
    def frames(self, data: st.DataObject, frames: tuple[int, int], kind: str) -> None:
        edits: dict[str, Callable[[Editor], OperationOutcome]] = {
            "flag": lambda editor: editor.flag("v", *frames, "smoke"),
            "clear": lambda editor: editor.clear_flags("v", *frames),
            "mark": lambda editor: editor.mark_frames("v", *frames),
        }
        self.attempt(data, edits[kind])

    @rule(data=st.data(), name=st.none() | NAMES, values=VALUES)
    def answer(self, data: st.DataObject, name: str | None, values: Any) -> None:
        ids = self.some_ids(data)
        self.attempt(data, lambda editor: editor.answer("study", ids, values, name=name), study="study")

    @rule(
        data=st.data(), choice=st.sampled_from(["keep", "annotator", "other"]), who=AUTHORS, name=NAMES, values=VALUES
    )
    def decide_study(self, data: st.DataObject, choice: str, who: str, name: str, values: Any) -> None:
        id = self.some_ids(data)[0]
        other: dict[str, Any] = {"name": name, "values": values}
        more = other if choice == "other" else {"annotator": who} if choice == "annotator" else {}
        self.attempt(data, lambda editor: editor.decide("study", id, choice, **more))

    @rule(data=st.data(), frames=RANGE, mark=st.sampled_from(["seen", ""]))
    def review(self, data: st.DataObject, frames: tuple[int, int], mark: str) -> None:
        number = data.draw(st.sampled_from([one.number for one in self.project.rounds()]))
        self.attempt(data, lambda editor: editor.mark_frames("v", *frames, mark, number))
        if mark:
            self.attempt(data, lambda editor: editor.begin_round(["amy", "ben"]))

    @rule(data=st.data(), schema=st.sampled_from([OTHER_SCHEMA, WITH_IMAGE]))
    def switch_schema(self, data: st.DataObject, schema: Any) -> None:
        self.attempt(data, lambda editor: editor.set_schema(schema))

    @rule(author=AUTHORS, times=st.integers(1, 4), again=st.integers(0, 4))
    def back_and_forth(self, author: str, times: int, again: int) -> None:
        states = [visible(self.project.state())]
        for _ in range(times):
            if isinstance(result(lambda e: e.undo(), self.project.edit(author)), str):
                break
            states.append(visible(self.project.state()))
        for _ in range(min(again, len(states) - 1)):
            states.pop()
            assert isinstance(result(lambda e: e.redo(), self.project.edit(author)), OperationOutcome)
            assert visible(self.project.state()) == states[-1]

    @precondition(lambda self: self.project.version > 3)
    @rule(author=AUTHORS)
    def undo_until_refused(self, author: str) -> None:
        before = self.project.state()
        version = self.project.version
        if isinstance(result(lambda e: e.undo(), self.project.edit(author)), str):
            assert self.project.state() == before
            assert self.project.version == version

    @invariant()
    def every_row_shows_the_latest_statement(self) -> None:
        state = self.project.state()
        names = {table.name: [column.name for column in table.columns] for table in STATE}
        rows = {
            name: [dict(zip(names[name], row, strict=True)) for row in state[name]]
            for name in ("spans", "instances", "frames")
        }
        spans = [row for row in rows["spans"] if row["alive"]]
        for row in rows["instances"] + rows["frames"]:
            if row["alive"]:
                group, name, track = row.get("grp", "image"), row.get("name", ""), row.get("track")
                me = [group, name if "grp" in row else "image", track]
                said = [(stamp, key, value) for key, (value, stamp) in json.loads(row["own"]).items()]
                for span in spans:
                    if me in json.loads(span["tracks"]) and span["first"] <= row["frame"] <= span["last"]:
                        written = json.loads(span["written"]).get(f"{me[0]}.{me[1]}", {})
                        said += [(span["stamp"], key, value) for key, value in written.items()]
                latest = {key: value for _, key, value in sorted(said, key=lambda one: one[0])}
                assert json.loads(row["label"]) == {k: v for k, v in latest.items() if v is not None}, row


def result(edit: Callable[[Editor], OperationOutcome], editor: Editor) -> OperationOutcome | str:
    try:
        return edit(editor)
    except (BadInput, Conflict) as error:
        return str(error)


def visible(state: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The state as a user sees it: without version numbers and without what is gone."""
    found = {}
    for table in STATE:
        names = [column.name for column in table.columns]
        alive, version = names.index("alive"), names.index("version")
        found[table.name] = [row[:version] + row[version + 1 :] for row in state[table.name] if row[alive]]
    assert set(BEFORE) == set(found)
    return found


Edits.TestCase.settings = settings(max_examples=100 if LONG else 4, stateful_step_count=25, deadline=None)
TestEdits = pytest.mark.timeout(1800)(Edits.TestCase)  # at full counts, with coverage, on two busy cores
