"""Writing CVAT XML 1.1 for video: a task per video, a track per object, every labelled frame a key frame.

A folder can be zipped and imported, or its `annotations.xml` uploaded to a task that was made of its `images/`. Frames
are numbered from 0 in the order of their files; what CVAT has no field for stands in `frames.json` beside.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from surgeval.datasets.formats.cvat.document import Shape
from surgeval.datasets.formats.cvat.frames import FRAMES, record_of, write_frames
from surgeval.datasets.formats.cvat.motion import Course
from surgeval.datasets.formats.cvat.tracks import Collected, CvatTracks
from surgeval.datasets.formats.labels import FILE
from surgeval.datasets.formats.writing import FRAME_ATTRIBUTE, Output
from surgeval.datasets.formats.xml_text import check_names, legal
from surgeval.files import path_inside
from surgeval.records import Video

KEEPS = frozenset({"box", "verb", "target", "polygon", "track", "score", "attribute", FRAME_ATTRIBUTE, "phase", "time",
                   "split", "source", "procedure", "fps", "seconds", "unlabelled"})  # fmt: skip
_TAKEN = ("labels", "images", "annotations", "truth")  # folders by which other formats are known


def write(out: Output) -> None:
    """One folder per video."""
    check_names(out.space, out.writer.name)
    (out.folder / FILE).write_text(json.dumps(out.space.to_json(), indent=1), encoding="utf-8")
    for video, split, name in out.named(FILE, *_TAKEN):
        folder = path_inside(out.folder, *split, name)
        folder.mkdir(parents=True, exist_ok=True)
        tracks, records = CvatTracks(out), list[dict[str, Any]]()
        for number, frame in enumerate(out.frames(video)):
            stem = out.stem(frame)
            picture = out.image(frame, path_inside(folder, "images"), stem) if frame.image else None
            records.append(record_of(out, frame, number, stem, picture))
            tracks.add(frame, number)
        _in_order(out, path_inside(folder, "images"), records)
        write_frames(path_inside(folder, FRAMES), video, records)
        with path_inside(folder, "annotations.xml").open("w", encoding="utf-8") as stream:
            _write_task(out, stream, video, tracks, records)


def _in_order(out: Output, folder: Path, records: list[dict[str, Any]]) -> None:
    """Give images names in the order of their frames where theirs are not: CVAT sorts them as text."""
    pictures = [record["image"] for record in records if "image" in record]
    if pictures == sorted(pictures):
        return
    for record in records:
        if "image" in record:
            name = f"{record['id']:06d}_{record['image']}"
            if out.images and not out.dry:
                path_inside(folder, record["image"]).rename(path_inside(folder, name))
            record["image"] = name


def _write_task(out: Output, stream: IO[str], video: Video, tracks: CvatTracks, records: list[dict[str, Any]]) -> None:
    last = max(len(records) - 1, 0)
    size = records[0] if records else {"width": 1, "height": 1}
    facts = {"id": 1, "name": legal(video.name, out), "size": len(records), "mode": "interpolation", "overlap": 0,
             "bugtracker": "", "created": "", "updated": "", "subset": "default", "start_frame": 0, "stop_frame": last,
             "frame_filter": ""}  # fmt: skip
    stream.write(
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n    <task>\n'
    )
    stream.writelines(f"      {_element(key, value)}\n" for key, value in facts.items())
    segment = f"<id>1</id><start>0</start><stop>{last}</stop><url></url>"
    stream.write(f"      <segments><segment>{segment}</segment></segments>\n"
                 "      <owner><username></username><email></email></owner>\n      <assignee></assignee>\n"
                 "      <labels>\n")  # fmt: skip
    for label in out.space.instruments:
        stream.write(f"        <label>{_element('name', label)}<color></color><type>any</type><attributes>\n")
        for field in tracks.fields(label):
            parts = {"name": field.name, "mutable": field.mutable, "input_type": field.kind,
                     "default_value": field.default, "values": "\n".join(field.values)}  # fmt: skip
            inner = "".join(_element(key, value) for key, value in parts.items())
            stream.write(f"          <attribute>{inner}</attribute>\n")
        stream.write("        </attributes></label>\n")
    sides = f"<width>{size['width']}</width><height>{size['height']}</height>"
    stream.write(f"      </labels>\n      <original_size>{sides}</original_size>\n"
                 "    </task>\n    <dumped></dumped>\n  </meta>\n")  # fmt: skip
    for number, track in enumerate(tracks.collected()):
        _write_track(stream, number, track, len(records))
    stream.write("</annotations>\n")


def _write_track(stream: IO[str], number: int, track: Collected, end: int) -> None:
    group = f' group_id="{track.group}"' if track.group else ""
    source = "auto" if track.proposed else "manual"
    stream.write(f'  <track id="{number}" label={quoteattr(track.label)} source="{source}"{group}>\n')
    for shape, key in _with_ends(track, end):
        state = (f'frame="{shape.frame}" keyframe="{int(key)}" outside="{int(shape.outside)}" '
                 f'occluded="{int(shape.occluded)}"')  # fmt: skip
        points = [(_number(x), _number(y)) for x, y in shape.points]
        if shape.kind == "box":
            (x1, y1), (x2, y2) = points
            corners = f'xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}"'
        else:
            corners = f'points="{";".join(f"{x},{y}" for x, y in points)}"'
        stream.write(f'    <{shape.kind} {state} {corners} z_order="{shape.order}">\n')
        for name, value in shape.attributes.items():
            text = escape(value, {"\r": "&#13;"})
            stream.write(f"      <attribute name={quoteattr(name)}>{text}</attribute>\n")
        stream.write(f"    </{shape.kind}>\n")
    stream.write("  </track>\n")


def _with_ends(track: Collected, end: int) -> list[tuple[Shape, bool]]:
    """The shapes of a track, and `outside` where it is not seen any more; each with whether it is a key frame."""
    result: list[tuple[Shape, bool]] = []
    keys = _keys(track, end)
    for shape, follower in zip(track.shapes, [*track.shapes[1:], None], strict=True):
        result.append((shape, shape.frame in keys))
        after = shape.frame + 1
        if after < end and (follower is None or follower.frame > after):
            result.append((_outside(shape, after), True))
    return result


def _outside(shape: Shape, frame: int) -> Shape:
    return Shape(frame, shape.kind, shape.points, 0, True, shape.occluded, shape.order, attributes=shape.attributes)


def _keys(track: Collected, end: int) -> set[int]:
    """The key frames of a track: all, unless those that were interpolated before follow from the others again."""
    every = {shape.frame for shape in track.shapes}
    keys = every - track.between
    if keys == every:
        return every
    frames = {shape.frame: shape for shape in track.shapes}
    gaps = [_outside(shape, shape.frame + 1) for shape in track.shapes if shape.frame + 1 not in every]
    course = Course([*(frames[frame] for frame in sorted(keys)), *(gap for gap in gaps if gap.frame < end)], end)
    for frame in track.between:
        seen = course.at(frame)
        if seen is None or seen.shape != frames[frame]:
            return every
    return keys


def _element(tag: str, value: object) -> str:
    return f"<{tag}>{escape(str(value))}</{tag}>"


def _number(value: float) -> str:
    """A coordinate that reads back to the last bit."""
    return repr(float(value))
