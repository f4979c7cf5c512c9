"""The files' contents: truth with one frame per line, questions in FOCUS's and the intent schema. No I/O here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from surgeval.phantom.dataset.truth import LabelledFrame
from surgeval.records import Box, Instance, IntentQuestion, VqaQuestion
from surgeval.vocab import LabelSpace, load_labels


def frame_json(labelled: LabelledFrame) -> dict[str, Any]:
    """One labelled frame of a truth file; names, not ids, except the triplet."""
    frame, space = labelled.frame, load_labels("phantom")
    camera = frame.camera
    return {
        "name": frame.name,
        "time": frame.time,
        "phase": None if frame.phase is None else space.phases[frame.phase],
        "camera": None if camera is None else {key: round(getattr(camera, key), 6) + 0.0 for key in "PTZR"},
        "region": None if frame.region is None else _box(frame.region),
        "objects": dict(frame.objects),
        "corruption": None if labelled.corruption is None else asdict(labelled.corruption),
        "instances": [_instance(instance, space) for instance in frame.instances],
    }


def _instance(instance: Instance, space: LabelSpace) -> dict[str, Any]:
    i, v, t = instance.triplet.instrument, instance.triplet.verb, instance.triplet.target
    contact = instance.points.get("contact")
    mask = instance.mask
    return {
        "track": instance.track,
        "instrument": space.instruments[i],
        "verb": space.verbs[v],
        "target": space.targets[t],
        "triplet": space.find(i, v, t),
        "box": None if instance.box is None else _box(instance.box),
        "mask": None if mask is None else {"size": [mask.height, mask.width], "counts": list(mask.counts)},
        "tip": list(instance.points["tip"]),
        "contact": None if contact is None else list(contact),
        "motion": None if instance.motion is None else list(instance.motion),
    }


def _box(box: Box) -> list[float]:
    return [box.x, box.y, box.w, box.h]


def truth_text(truth: dict[str, Any]) -> str:
    """JSON with one line for each frame, so that differences can be read."""
    head = [f"{_dump(key)}: {_dump(value)},\n" for key, value in truth.items() if key != "frames"]
    frames = ",\n".join(_dump(frame) for frame in truth["frames"])
    return "{\n" + "".join(head) + '"frames": [\n' + frames + "\n]}\n"


def index_text(index: dict[str, Any]) -> str:
    """`phantom.json`: one key per line, one video per line."""
    rows = ",\n".join(_dump(row) for row in index["videos"])
    parts = [f"{_dump(key)}: " + (f"[\n{rows}\n]" if key == "videos" else _dump(value)) for key, value in index.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def focus_records(questions: Sequence[VqaQuestion]) -> tuple[str, str]:
    """Requests and references as FOCUS has them: JSON arrays, one question per line."""
    requests = [
        {
            "qID": q.id,
            "videoID": q.video,
            "start_time": q.start,
            "end_time": q.end,
            "procedure_type": q.procedure,
            "question": q.text,
        }
        for q in questions
    ]
    references = [
        {
            "qID": q.id,
            "primary": q.primary,
            "format": q.format,
            "format_kwargs": dict(q.format_options),
            "answer": q.answer,
            "secondaries": list(q.secondaries),
            "ood": q.ood,
            "clinical": q.clinical,
        }
        for q in questions
    ]
    return _lines(requests), _lines(references)


def intent_json(items: Sequence[IntentQuestion]) -> str:
    """`items.jsonl`: one item per line, absent fields left out."""
    optional = ("start", "end", "untrapped", "twin", "review", "labels", "source", "gaze_dependent", "observable")
    rows = []
    for item in items:
        row = {**asdict(item), "context": dict(item.context)}
        rows.append({key: value for key, value in row.items() if not (key in optional and value in (None, ()))})
    return "".join(_dump(row) + "\n" for row in rows)


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(_dump(row) for row in rows) + "\n]\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), allow_nan=False)
