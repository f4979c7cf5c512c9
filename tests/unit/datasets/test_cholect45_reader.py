from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from surgeval.datasets import Dataset, MemoryDataset, Problem, check, convert, open_dataset
from surgeval.errors import DataError
from surgeval.vocab import LabelSpace, load_labels

Make = Callable[[], MemoryDataset]


def write_t45(root: Path, source: Dataset) -> Path:
    """The dataset in CholecT45's layout: images as PNG folders, rows of flags, `dict/`."""
    space = source.space
    convert(source, root.parent / f"{root.name}-images", "cholect50")
    (root.parent / f"{root.name}-images" / "videos").rename(root.parent / f"{root.name}-videos")
    for folder in ("triplet", "instrument", "verb", "target", "dict"):
        (root / folder).mkdir(parents=True)
    (root.parent / f"{root.name}-videos").rename(root / "data")
    groups = {"instrument": space.instruments, "verb": space.verbs, "target": space.targets,
              "triplet": space.triplet_names}  # fmt: skip
    for part, names in groups.items():
        text = "\n".join(f"{number}:{name}" for number, name in enumerate(names))
        (root / "dict" / f"{part}.txt").write_text(text)
    for video in source.videos():
        rows: dict[str, list[str]] = {part: [] for part in groups}
        for frame in source.frames(video.name):
            triplets = [instance.triplet for instance in frame.instances]
            present = {
                "triplet": {space.find(t.instrument, t.verb, t.target) for t in triplets},
                "instrument": {t.instrument for t in triplets},
                "verb": {t.verb for t in triplets},
                "target": {t.target for t in triplets},
            }
            for part, names in groups.items():
                flags = ["1" if number in present[part] else "0" for number in range(len(names))]
                rows[part].append(",".join([str(frame.index), *flags]))
        for part, lines in rows.items():
            (root / part / f"{video.name}.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def t45(tmp_path: Path, make: Make) -> Path:
    return write_t45(tmp_path / "t45", make())


def problems(dataset: Dataset) -> list[Problem]:
    found: list[Problem] = []
    check(dataset, on_problem=found.append)
    return found


def test_cholect45_is_recognised_and_has_the_triplets_of_its_flags(t45: Path, make: Make, space: LabelSpace) -> None:
    dataset = open_dataset(t45)
    assert (dataset.format, dataset.space) == ("cholect45", load_labels("cholect50"))
    assert [(video.name, video.fps) for video in dataset.videos()] == [("VID01", 1.0), ("VID02", 1.0)]
    for frame, original in zip(dataset.frames("VID01"), make().frames("VID01"), strict=True):
        assert (frame.index, frame.name, frame.time) == (original.index, f"{original.index:06d}", float(original.index))
        assert [i.triplet for i in frame.instances] == [i.triplet for i in original.instances]
        assert all(instance.box is None for instance in frame.instances)
        assert (frame.width, frame.height) == (96, 64)
    assert problems(dataset) == []


def test_an_image_without_a_row_is_unlabelled(t45: Path) -> None:
    path = t45 / "triplet" / "VID02.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:2]))
    frames = list(open_dataset(t45).frames("VID02"))
    assert [frame.labelled for frame in frames] == [True, True, False]
    assert frames[2].instances == ()


def test_an_instrument_that_no_triplet_names_is_told_and_kept(t45: Path, space: LabelSpace) -> None:
    path = t45 / "instrument" / "VID01.txt"
    lines = path.read_text().splitlines()
    lines[2] = "75,0,0,0,1,0,0"
    path.write_text("\n".join(lines))
    dataset = open_dataset(t45)
    [problem] = problems(dataset)
    assert str(problem) == (f"{t45}/triplet/VID01.txt: frame 000075: found scissors in instrument/ alone, "
                            "expected the instruments of the triplets in instrument/")  # fmt: skip
    [instance] = list(dataset.frames("VID01"))[2].instances
    assert (space.instruments[instance.triplet.instrument], instance.triplet.verb) == ("scissors", -1)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("25,1", "wrong-shape"),
        ("25" + ",0" * 100, "frame-duplicate"),
        ("-1" + ",0" * 100, "frame-name"),
        ("9" * 12 + ",0" * 100, "frame-name"),
        ("99" + ",0" * 99 + ",2", "wrong-value"),
        ("99" + ",0" * 99 + ",nan", "wrong-value"),
    ],
)
def test_a_broken_row_is_named_by_its_line(t45: Path, row: str, kind: str) -> None:
    path = t45 / "triplet" / "VID01.txt"
    path.write_text(path.read_text() + row + "\n")
    [problem] = problems(open_dataset(t45))
    assert (problem.kind, problem.record, problem.path) == (kind, "line 4", str(path))
    with pytest.raises(DataError, match="line 4"):
        list(open_dataset(t45).frames("VID01"))


def test_other_names_in_dict_make_another_label_space(t45: Path) -> None:
    path = t45 / "dict" / "instrument.txt"
    path.write_text(path.read_text().replace("hook", "spatula"))
    triplets = t45 / "dict" / "triplet.txt"
    triplets.write_text(triplets.read_text().replace("hook", "spatula"))
    space = open_dataset(t45).space
    assert (space.name, space.instruments[2], len(space.triplets)) == ("cholect45", "spatula", 100)


def test_a_dict_with_other_ids_is_told(t45: Path) -> None:
    (t45 / "dict" / "verb.txt").write_text("1:grasp\n2:retract\n")
    assert [problem.kind for problem in problems(open_dataset(t45))] == ["file-broken"]


def test_without_images_the_rows_still_count(t45: Path) -> None:
    (t45 / "data").rename(t45.parent / "elsewhere")
    dataset = open_dataset(t45)
    assert [frame.image for frame in dataset.frames("VID01")] == [None, None, None]
    assert [problem.kind for problem in problems(dataset)] == ["images-absent"]
