from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import MemoryDataset, Merge, MergeMap, convert, merged, open_dataset
from surgeval.errors import BadInput, DataError
from surgeval.records import Box, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

# The six examples of ProstaTD's appendix A.4, each as (raw triplets, the class they become).
EXAMPLES = [
    (["grasper,retract,prostate", "grasper,retract,prostate-apex", "grasper,retract,DVC"], "grasper,retract,prostate"),
    (["Endobag,bag,prostate", "Endobag,store,prostate"], "Endobag,bag,prostate"),
    (["scissors,cut,vas-deferens", "scissors,cut,seminal-vesicle"], "scissors,cut,seminal-vesicle"),
    (["forcep,retract,bladder", "forcep,retract,bladder-neck"], "forcep,retract,bladder"),
    (["aspirator,suck,fluid", "aspirator,suck,smoke", "aspirator,suck,blood"], "aspirator,suck,fluid"),
    (["scissors,dissect,fascia", "scissors,dissect,lymph node", "scissors,dissect,fat"], "scissors,dissect,fascia"),
]
RULES: dict[str, Any] = {
    "verbs": {"store": "bag"},
    "targets": {"prostate-apex": "prostate", "DVC": "prostate", "bladder-neck": "bladder", "smoke": "fluid",
                "blood": "fluid", "lymph node": "fascia", "fat": "fascia"},
    "triplets": {"scissors,cut,vas-deferens": "scissors,cut,seminal-vesicle"},
}  # fmt: skip


def raw_space(extra: tuple[str, ...] = ()) -> LabelSpace:
    rows = [name.split(",") for group, _ in EXAMPLES for name in group] + [name.split(",") for name in extra]
    parts = [tuple(dict.fromkeys(row[k] for row in rows)) for k in range(3)]
    ids = tuple((parts[0].index(a), parts[1].index(b), parts[2].index(c)) for a, b, c in rows)
    return LabelSpace("raw", parts[0], parts[1], parts[2], ids)


def dataset(space: LabelSpace, counts: dict[str, int] | None = None) -> MemoryDataset:
    """Triplet k occurs k + 1 times, or as often as said."""
    instances = [
        Instance(Triplet(*space.triplets[k]), Box(1, 1, 9, 9))
        for k, name in enumerate(space.triplet_names)
        for _ in range((counts or {}).get(name, k + 1))
    ]
    frames = [Frame("V1", f"{n:06d}", n, None, None, 64, 48, (i,)) for n, i in enumerate(instances)]
    return MemoryDataset(space, frames)


@pytest.mark.parametrize(("names", "result"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else "")
def test_the_six_examples_of_a4(names: list[str], result: str) -> None:
    space = raw_space()
    merge = Merge(space, MergeMap.from_json(RULES))
    for name in names:
        triplet = merge(Triplet(*space.triplets[space.triplet_names.index(name)]))
        assert triplet is not None
        number = merge.space.find(triplet.instrument, triplet.verb, triplet.target)
        assert merge.space.triplet_name(number) == result


def test_the_merged_space_has_one_class_per_group_and_no_orphan_names() -> None:
    space = Merge(raw_space(), MergeMap.from_json(RULES)).space
    assert space.triplet_names == tuple(result for _, result in EXAMPLES)
    assert space.targets == ("prostate", "seminal-vesicle", "bladder", "fluid", "fascia")
    assert "store" not in space.verbs


def test_renaming_an_instrument_to_a_new_name() -> None:
    merge = Merge(raw_space(), MergeMap.from_json({"instruments": {"forcep": "forceps"}}))
    assert "forceps" in merge.space.instruments
    assert "forcep" not in merge.space.instruments
    assert len(merge.space.triplets) == 15


def test_counts_before_are_counts_after_plus_dropped(tmp_path: Path) -> None:
    source = dataset(raw_space(("grasper,retract,bladder",)))
    report = convert(source, tmp_path / "out", "coco", merge=MergeMap.from_json(RULES), min_count=10)
    assert report.instances_read == sum(range(1, 17))
    # Group sizes: 1+2+3, 4+5, 6+7, 8+9, 10+11+12, 13+14+15, 16: only the first two are below ten.
    assert report.instances_dropped == 6 + 9
    assert report.instances_written == report.instances_read - report.instances_dropped
    back = open_dataset(tmp_path / "out")
    assert len(back.space.triplets) == 5
    assert json.loads((tmp_path / "out" / "labels.json").read_text())["name"] == "raw-merged"
    assert sum(len(frame.instances) for frame in back.frames("V1")) == report.instances_written


def test_named_triplets_are_dropped_after_the_merge() -> None:
    source = merged(dataset(raw_space()), MergeMap.from_json(RULES | {"drop": ["grasper,retract,DVC"]}))
    left = sum(len(frame.instances) for frame in source.frames("V1"))
    assert (source.before, source.dropped) == (120, 6)  # the whole group goes: it has become one class
    assert left == 114
    assert "grasper" not in source.space.instruments


def test_frames_of_dropped_instances_stay() -> None:
    source = merged(dataset(raw_space()), MergeMap.from_json({"drop": ["grasper,retract,prostate"]}))
    frames = list(source.frames("V1"))
    assert len(frames) == 120
    assert frames[0].instances == ()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"instruments": {"spoon": "fork"}}, "instruments.spoon: found no such instrument in raw"),
        ({"targets": {"moon": "sun"}}, "targets.moon: found no such target"),
        ({"triplets": {"grasper,fly,moon": "grasper,retract,prostate"}}, "triplets.grasper,fly,moon"),
        ({"triplets": {"grasper,retract,DVC": "grasper,retract"}}, "found 'grasper,retract'"),
        ({"drop": ["grasper"]}, "drop.grasper: found no such triplet"),
    ],
)
def test_a_map_that_names_unknown_labels_is_refused_by_key(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Merge(raw_space(), MergeMap.from_json(rules))


@pytest.mark.parametrize("text", ['{"verbs": []}', '{"verbs": {"a": 3}}', '{"nouns": {}}', "[]", "{", '{"drop": "x"}'])
def test_a_map_of_the_wrong_shape_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"map\.json: ") as caught:
        MergeMap.load(path)
    assert "\n" not in str(caught.value)


def test_a_space_without_triplets_merges_its_instruments() -> None:
    space = LabelSpace("tools", ("grasper", "forceps", "hook"))
    frame = Frame("V1", "000001", 1, None, None, 64, 48, (Instance(Triplet(1)), Instance(Triplet(2))))
    source = merged(MemoryDataset(space, [frame]), MergeMap.from_json({"instruments": {"forceps": "grasper"}}))
    assert source.space.instruments == ("grasper", "hook")
    assert [i.triplet.instrument for i in next(iter(source.frames("V1"))).instances] == [0, 1]
