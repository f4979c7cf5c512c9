"""`Editor`: every kind of edit as a typed method, made in the name of one author."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surgeval.records import Box
from surgeval.studio.schema import Schema, SchemaRule
from surgeval.studio.segments import Segment
from surgeval.studio.store import Annotation, OperationOutcome, Polygon, Request, Track

__all__ = ["Editor"]

Values = Mapping[str, str | None]


@dataclass(frozen=True)
class Editor:
    """Edits of one author who saw version `base`; every method is one operation and says what it did."""

    send: Callable[[Request], OperationOutcome]
    author: str
    id: str | None = None
    base: int | None = None
    session: str = ""

    # Videos, schema, settings.

    def add_video(
        self,
        id: str,
        *,
        width: int,
        height: int,
        names: Sequence[str] = (),
        fps: float | None = None,
        name: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> OperationOutcome:
        """A video, with its frames where names are given (a second operation)."""
        payload = {"id": id, "name": name or id, "width": width, "height": height, "fps": fps, "extra": extra}
        outcome = self._do("video.add", payload)
        if not names:
            return outcome
        second = None if self.id is None else f"{self.id}.frames"
        return Editor(self.send, self.author, second, None, self.session).add_frames(id, 0, names)

    def add_frames(
        self, video: str, first: int, names: Sequence[str], times: Sequence[float] | None = None
    ) -> OperationOutcome:
        """Frames numbered from `first` on."""
        payload = {"video": video, "first": first, "names": list(names), "times": times and list(times)}
        return self._do("frames.add", payload)

    def set_schema(self, schema: Schema) -> OperationOutcome:
        """Another schema; stored values stay."""
        return self._do("schema.set", {"name": schema.name, "source": schema.source})

    def set_setting(self, key: str, value: Any, owner: str = "") -> OperationOutcome:
        """A setting of the project, or of one person."""
        return self._do("setting.set", {"key": key, "value": value, "owner": owner})

    # Instances.

    def add_instances(self, instances: Iterable[Annotation]) -> OperationOutcome:
        """New instances."""
        return self._do("instances.add", {"instances": [_payload(one) for one in instances]})

    def move(self, ids: Sequence[str], dx: float, dy: float) -> OperationOutcome:
        """Shift instances by some pixels."""
        return self._do("instances.move", {"ids": list(ids), "dx": dx, "dy": dy})

    def reshape(self, shapes: Mapping[str, Box | Sequence[Polygon]]) -> OperationOutcome:
        """Another box, or other polygons, by the instance's id."""
        return self._do("instances.reshape", {"shapes": [{"id": id, **_shape(one)} for id, one in shapes.items()]})

    def delete(self, ids: Sequence[str]) -> OperationOutcome:
        """Take instances away."""
        return self._do("instances.delete", {"ids": list(ids)})

    def duplicate(
        self, copies: Mapping[str, str], *, frame: int | None = None, dx: float = 0.0, dy: float = 0.0
    ) -> OperationOutcome:
        """Copies: id of the original → id of the copy."""
        pairs = [{"of": original, "id": copy} for original, copy in copies.items()]
        return self._do("instances.duplicate", {"copies": pairs, "frame": frame, "dx": dx, "dy": dy})

    def set_values(self, ids: Sequence[str], values: Values) -> OperationOutcome:
        """Values of instances; None takes one away."""
        return self._do("instances.values", {"ids": list(ids), "values": dict(values)})

    def classify(self, ids: Sequence[str], group: str, name: str) -> OperationOutcome:
        """Another class for instances."""
        return self._do("instances.classify", {"ids": list(ids), "group": group, "name": name})

    def mark_instances(self, ids: Sequence[str], mark: str) -> OperationOutcome:
        """The review state of instances."""
        return self._do("instances.mark", {"ids": list(ids), "mark": mark})

    def set_image_values(self, video: str, first: int, last: int, values: Values) -> OperationOutcome:
        """Values of whole frames, said of the frames themselves and not by a span."""
        return self._do("image.values", {"video": video, "first": first, "last": last, "values": dict(values)})

    # Spans.

    def add_span(
        self, id: str, video: str, tracks: Sequence[Track], values: Values, first: int, last: int, source: str = "hand"
    ) -> OperationOutcome:
        """Values over a range, of tracks or (without any) of the image."""
        payload = {
            "id": id, "video": video, "tracks": [_track(track) for track in tracks if not track.is_image],
            "values": dict(values), "first": first, "last": last, "source": source,
        }  # fmt: skip
        return self._do("span.add", payload)

    def set_span_edges(self, id: str, first: int, last: int) -> OperationOutcome:
        """Another first or last frame."""
        return self._do("span.edges", {"id": id, "first": first, "last": last})

    def set_span_values(self, id: str, values: Values) -> OperationOutcome:
        """Other values for the whole span."""
        return self._do("span.values", {"id": id, "values": dict(values)})

    def cut_span(self, id: str, at: int, new: str) -> OperationOutcome:
        """Two spans: the second, `new`, begins at the frame `at`."""
        return self._do("span.cut", {"id": id, "at": at, "new": new})

    def join_spans(self, one: str, other: str) -> OperationOutcome:
        """One span out of two."""
        return self._do("span.join", {"ids": [one, other]})

    def delete_span(self, id: str) -> OperationOutcome:
        """Take a span away."""
        return self._do("span.delete", {"id": id})

    # Identities.

    def set_track(self, ids: Sequence[str], number: int | None) -> OperationOutcome:
        """A number for instances, by hand."""
        return self._do("track.set", {"ids": list(ids), "number": number})

    def set_track_range(self, video: str, track: Track, to: int, first: int, last: int) -> OperationOutcome:
        """Another number for a track over a range."""
        return self._do("track.range", {"video": video, **_track(track), "to": to, "first": first, "last": last})

    def swap_tracks(self, video: str, one: Track, other: Track, at: int) -> OperationOutcome:
        """Two tracks of one class exchange their numbers from a frame on."""
        payload = {"first_number": one.number, "second_number": other.number, "at": at}
        return self._do("track.swap", {"video": video, "group": one.group, "name": one.name, **payload})

    def merge_tracks(self, video: str, keep: Track, other: Track) -> OperationOutcome:
        """One track takes another in."""
        payload = {"video": video, "group": keep.group, "name": keep.name, "keep": keep.number, "other": other.number}
        return self._do("track.merge", payload)

    def split_track(self, video: str, track: Track, at: int) -> OperationOutcome:
        """From a frame on a new number, which `OperationOutcome.created` has."""
        return self._do("track.split", {"video": video, **_track(track), "at": at})

    def extend_track(self, video: str, track: Track, first: int) -> OperationOutcome:
        """A track begins earlier, with its first box."""
        return self._do("track.extend", {"video": video, **_track(track), "first": first})

    def renumber(self, numbers: Mapping[str, int | None], by: str = "rule") -> OperationOutcome:
        """Numbers that a rule found, by the instance's id; those set by hand stay."""
        return self._do("track.renumber", {"ids": list(numbers), "numbers": list(numbers.values()), "by": by})

    # Many frames at once.

    def paste(
        self, video: str, source: int, first: int, last: int, *, ids: Sequence[str] = (), values: bool = True
    ) -> OperationOutcome:
        """The boxes of one frame in every frame of a range."""
        payload = {"video": video, "source": source, "first": first, "last": last, "ids": list(ids), "values": values}
        return self._do("boxes.paste", payload)

    def interpolate(self, video: str, track: Track, first: int, last: int) -> OperationOutcome:
        """Boxes of a track between two frames where it was drawn."""
        return self._do("boxes.interpolate", {"video": video, **_track(track), "first": first, "last": last})

    def propose(
        self, video: str, first: int, last: int, source: str, proposals: Iterable[Annotation], *, replace: bool = False
    ) -> OperationOutcome:
        """What a source suggests for a stretch; with `replace` its undecided suggestions there give way."""
        payload = {"video": video, "first": first, "last": last, "source": source, "replace": replace,
                   "instances": [_payload(one) for one in proposals]}  # fmt: skip
        return self._do("proposals.add", payload)

    def accept(
        self, video: str = "", first: int = 0, last: int = 0, *, threshold: float | None = None, ids: Sequence[str] = ()
    ) -> OperationOutcome:
        """Proposals become annotations: chosen ones, or those of a range with at least this score."""
        return self._do("proposals.accept", _proposals(video, first, last, threshold, ids))

    def reject(
        self, video: str = "", first: int = 0, last: int = 0, *, threshold: float | None = None, ids: Sequence[str] = ()
    ) -> OperationOutcome:
        """Proposals are taken away: chosen ones, or those of a range below this score."""
        return self._do("proposals.reject", _proposals(video, first, last, threshold, ids))

    def replace_value(self, group: str, name: str, attribute: str, old: str, new: str) -> OperationOutcome:
        """One value of a class replaced over the whole project."""
        payload = {"group": group, "name": name, "attribute": attribute, "old": old, "new": new}
        return self._do("project.replace", payload)

    def replace_class(self, group: str, old: str, new: str) -> OperationOutcome:
        """One class renamed over the whole project."""
        return self._do("project.replace", {"group": group, "old": old, "new": new})

    def replace_several(self, rows: Iterable[Mapping[str, str]]) -> OperationOutcome:
        """Several values (group, name, attribute, old, new) or classes (group, old, new) replaced at once."""
        return self._do("project.map", {"rows": [dict(row) for row in rows]})

    def refine(self, rules: Iterable[SchemaRule]) -> OperationOutcome:
        """Merge values by rules."""
        return self._do("project.refine", {"rules": [rule.to_json() for rule in rules]})

    # Frames.

    def take_in(self, **lists: Any) -> OperationOutcome:
        """Labels from elsewhere."""
        return self._do("project.import", lists)

    def flag(self, video: str, first: int, last: int, reason: str, note: str = "") -> OperationOutcome:
        """Mark frames as a problem."""
        payload = {"video": video, "first": first, "last": last, "reason": reason, "note": note}
        return self._do("frames.flag", payload)

    def clear_flags(self, video: str, first: int, last: int, reason: str | None = None) -> OperationOutcome:
        """Take marks of a problem away."""
        return self._do("frames.clear", {"video": video, "first": first, "last": last, "reason": reason})

    def mark_frames(
        self, video: str, first: int, last: int, mark: str = "seen", round_number: int = 1
    ) -> OperationOutcome:
        """The author's word on frames in a review round."""
        payload = {"video": video, "first": first, "last": last, "mark": mark, "round": round_number}
        return self._do("frames.mark", payload)

    def begin_round(self, reviewers: Sequence[str], title: str = "") -> OperationOutcome:
        """Another review round, whose number `OperationOutcome.created` has."""
        return self._do("round.begin", {"title": title, "reviewers": list(reviewers)})

    # The agreement study.

    def add_study(
        self,
        id: str,
        annotators: Sequence[str],
        segments: Iterable[Segment],
        *,
        seed: int = 0,
        title: str | None = None,
        group: str | None = None,
    ) -> OperationOutcome:
        """A study on segments (see `draw_segments`) of the instances of a group: the instruments, if not said."""
        drawn = [{"video": one.video, "first": one.first, "last": one.last} for one in segments]
        payload = {"id": id, "title": title or id, "annotators": list(annotators), "segments": drawn, "seed": seed}
        return self._do("study.add", payload | ({} if group is None else {"group": group}))

    def remove_study(self, study: str) -> OperationOutcome:
        """Take a study away; its answers stay stored."""
        return self._do("study.remove", {"study": study})

    def answer(
        self, study: str, ids: Sequence[str], values: Values | None = None, *, name: str | None = None
    ) -> OperationOutcome:
        """The author's answer on instances: values, and their class where one is named."""
        payload: dict[str, Any] = {"study": study, "ids": list(ids), "values": dict(values or {})}
        return self._do("study.answer", payload | ({} if name is None else {"name": name}))

    def decide(
        self,
        study: str,
        instance: str,
        choice: str,
        *,
        annotator: str | None = None,
        name: str | None = None,
        values: Values | None = None,
        note: str = "",
    ) -> OperationOutcome:
        """What holds where people differ: `keep` the label, an `annotator`'s answer, or `other` class and values."""
        payload: dict[str, Any] = {"study": study, "instance": instance, "choice": choice, "note": note}
        more = {"annotator": annotator, "name": name, "values": None if values is None else dict(values)}
        return self._do("study.decide", payload | {key: one for key, one in more.items() if one is not None})

    # Back and forth.

    def undo(self, operation: int | None = None, *, study: str | None = None) -> OperationOutcome:
        """Take back the author's last edit, a named operation, or the last answer in a study."""
        return self._do("undo", {"operation": operation, "study": study})

    def redo(self, operation: int | None = None, *, study: str | None = None) -> OperationOutcome:
        """Do again what was taken back last."""
        return self._do("redo", {"operation": operation, "study": study})

    def _do(self, kind: str, payload: Mapping[str, Any]) -> OperationOutcome:
        id = self.id or uuid.uuid4().hex
        return self.send(Request(id, self.author, kind, payload, self.base, self.session))


def _payload(one: Annotation) -> dict[str, Any]:
    payload = {
        "id": one.id, "video": one.video, "frame": one.frame, "group": one.group, "name": one.name,
        **_shape(one.polygons or one.box), "values": dict(one.values), "track": one.track, "track_by": one.track_by,
        "source": one.source, "score": one.score, "proposal": one.proposal, "review": one.review, "extra": one.extra,
    }  # fmt: skip
    return {key: value for key, value in payload.items() if value is not None}


def _shape(shape: Box | Sequence[Polygon]) -> dict[str, Any]:
    if isinstance(shape, Box):
        return {"box": [shape.x, shape.y, shape.w, shape.h]}
    return {"polygons": [[[x, y] for x, y in polygon] for polygon in shape]}


def _track(track: Track) -> dict[str, Any]:
    return {"group": track.group, "name": track.name, "number": track.number}


def _proposals(video: str, first: int, last: int, threshold: float | None, ids: Sequence[str]) -> dict[str, Any]:
    if ids:
        return {"ids": list(ids)}
    return {"video": video, "first": first, "last": last, "threshold": threshold}
