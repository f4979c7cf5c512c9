"""Laws of box tables and joins, and damaged files of the new layouts."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeval.datasets import MemoryDataset, check, dataset_fingerprint, join_boxes, open_dataset
from surgeval.errors import SurgevalError
from surgeval.records import Box, Frame, Instance, Triplet, Video
from surgeval.vocab import load_labels

T50, C80 = load_labels("cholect50"), load_labels("cholec80")
WIDTH, HEIGHT = 200, 100
sides = st.integers(1, 40)
boxes = st.builds(Box, st.integers(0, 150), st.integers(0, 50), sides, sides)
HEADER = "Surgery_num;Dir;FrameName;NumBBox_inFrame;ToolName;BBox_X;BBox_Y;BBox_Width;BBox_Height"


def spelled(box: Box, layout: str, normalised: bool) -> list[float]:
    x1, y1, x2, y2 = box.corners
    values = {"xywh": [x1, y1, box.w, box.h], "xyxy": [x1, y1, x2, y2],
              "cxcywh": [(x1 + x2) / 2, (y1 + y2) / 2, box.w, box.h]}[layout]  # fmt: skip
    scale = (WIDTH, HEIGHT, WIDTH, HEIGHT) if normalised else (1, 1, 1, 1)
    return [value / by for value, by in zip(values, scale, strict=True)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(boxes, min_size=1, max_size=4), st.sampled_from(["xywh", "xyxy", "cxcywh"]), st.booleans(), st.booleans()
)
def test_a_box_is_the_same_however_it_is_spelled(found: list[Box], layout: str, normalised: bool, column: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        names = ["bbox"] if column else list("abcd")
        mapping = {"table": "t.json", "video": "v", "frame": "f", "class": "c", "box": names, "layout": layout,
                   "normalised": normalised, "size": [WIDTH, HEIGHT]}  # fmt: skip
        rows = []
        for box in found:
            values = spelled(box, layout, normalised)
            cells = {"bbox": values} if column else dict(zip(names, values, strict=True))
            rows.append({"v": 1, "f": 7, "c": "hook", **cells})
        (root / "mapping.json").write_text(json.dumps(mapping))
        (root / "t.json").write_text(json.dumps(rows))
        [frame] = open_dataset(root).frames("1")
    read = [instance.box.corners for instance in frame.instances if instance.box]
    assert len(read) == len(found)
    assert all(a == pytest.approx(b.corners, abs=1e-9) for a, b in zip(read, found, strict=True))


instances = st.lists(st.sampled_from(T50.triplets).map(lambda ids: Instance(Triplet(*ids))), max_size=4)
tools = st.lists(st.builds(lambda k, box: Instance(Triplet(k), box), st.integers(0, 6), boxes), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(instances, tools), min_size=1, max_size=5))
def test_a_join_loses_no_triplet_and_no_box(content: list[tuple[list[Instance], list[Instance]]]) -> None:
    def one(space: str, video: str, part: int) -> MemoryDataset:
        frames = [Frame(video, str(n), n, float(n), None, WIDTH, HEIGHT, tuple(pair[part]))
                  for n, pair in enumerate(content)]  # fmt: skip
        return MemoryDataset(load_labels(space), frames, [Video(video, fps=1.0)])

    joined = join_boxes(one("cholect50", "VID01", 0), one("cholec80", "video01", 1))
    for frame, (own, other) in zip(joined.frames("VID01"), content, strict=True):
        known = [i for i in frame.instances if not i.attributes.get("unexplained")]
        assert [i.triplet for i in known] == [i.triplet for i in own]
        offered = Counter(
            (C80.instruments[i.triplet.instrument].lower(), i.box) for i in other if i.triplet.instrument < 6
        )
        given_out = Counter((T50.instruments[i.triplet.instrument], i.box) for i in frame.instances if i.box)
        assert given_out == offered
        clear = {i.triplet.instrument for i in frame.instances if i.box and not i.attributes.get("ambiguous")}
        classes = Counter(i.triplet.instrument for i in own)
        assert all(classes[number] <= 1 for number in clear)
    counts = joined.counts
    assert counts.paired + counts.unboxed == sum(len(own) for own, _ in content)
    assert counts.paired + counts.unexplained + counts.outside == sum(len(other) for _, other in content)


@pytest.fixture(scope="module")
def originals() -> dict[str, dict[str, str]]:
    """Small valid datasets as file contents: layout → file → text."""
    flags = ["0"] * 100
    flags[17] = "1"
    talk = [{"from": "human", "value": "Lift."}, {"from": "gpt", "value": "The Forceps[0.1, 0.2, 0.5, 0.6] lifts."}]
    mapping = 'table = "t.csv"\nvideo = "v"\nframe = "f"\nclass = "c"\nbox = ["a", "b", "c2", "d"]\nsize = [90, 90]\n'
    return {
        "cholect45": {"triplet/VID01.txt": "\n".join(",".join([str(n), *flags]) for n in range(3)),
                      "instrument/VID01.txt": "\n".join(f"{n},1,0,0,0,0,0" for n in range(3)),
                      "dict/instrument.txt": "0:grasper\n1:bipolar\n"},
        "cholec80-bbox": {"ROI_Labels.csv": HEADER + "\n41;D;Video_41_00001.png;1;Grasper;1;2;30;40\n" * 3},
        "copesd": {"smllm_test.json": json.dumps([{"conversations": talk, "image": "D:/x/023521/0001.jpg"}] * 2)},
        "table": {"mapping.toml": mapping, "t.csv": "v,f,c,a,b,c2,d\nA,1,hook,1,2,3,4\n"},
    }  # fmt: skip


@pytest.mark.parametrize("format", ["cholect45", "cholec80-bbox", "copesd", "table"])
@settings(max_examples=400 if os.environ.get("SURGEVAL_LONG") else 20, deadline=None)
@given(data=st.data())
def test_damaged_files_give_problems_or_one_sentence(
    originals: dict[str, dict[str, str]], format: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in originals[format].items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        assert check(open_dataset(root)).errors == 0
        path = root / data.draw(st.sampled_from(sorted(originals[format])))
        raw = path.read_bytes()
        start = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(start, min(len(raw), start + 40)))
        odd = st.sampled_from(
            [b"", b"NaN", b"-1", b'"', b"\x00", b"\xff", b"1e999", b"[", b"../..", b"\n", b";", b"{}"]
        )
        path.write_bytes(raw[:start] + data.draw(odd | st.binary(max_size=12)) + raw[end:])
        for forced in (None, format):
            try:
                dataset = open_dataset(root, forced)
                check(dataset)
                dataset_fingerprint(dataset)
            except SurgevalError as error:
                assert "\n" not in str(error)  # noqa: PT017
