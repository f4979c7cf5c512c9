"""Export and import give the same annotations again, or exactly what was said to be lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.studio.exchange.projects import fill, held, make_folder

from surgeval.studio.exchange import (
    EXPORT_FORMATS,
    Export,
    ImportReport,
    Selection,
    export_project,
    import_dataset,
    preview_export,
)
from surgeval.studio.store import STORE_FILE, Database

EVERYTHING = Selection(proposals=True)


def there_and_back(place: Path, format: str, images: bool = False) -> tuple[Export, ImportReport, Path]:
    """Export a full project, and import that into an empty one on the same pictures."""
    first, second = fill(make_folder(place / "first")), make_folder(place / "second")
    database = Database(first / STORE_FILE)
    said = preview_export(first, database, format, EVERYTHING, images=images)
    made = export_project(first, database, "one", format, EVERYTHING, images=images)
    database.close()
    assert said.losses == made.losses, "what is said before is what is lost"
    database = Database(second / STORE_FILE)
    report = import_dataset(database, first / "exports" / "one", author="ben")
    database.close()
    assert (report.problems, report.unmatched) == (0, ()), report.examples
    return made, report, second


def without(held: dict[str, list[Any]], *columns: int, drop: Any = None) -> list[tuple[Any, ...]]:
    rows = [row for row in held["instances"] if drop is None or not drop(row)]
    return sorted((tuple(None if k in columns else v for k, v in enumerate(row)) for row in rows), key=str)


@pytest.mark.parametrize("format", ["labelme", "cvat"])
@pytest.mark.parametrize("images", [True, False])
def test_formats_of_names_keep_everything_but_what_a_project_alone_has(
    tmp_path: Path, format: str, images: bool
) -> None:
    made, report, second = there_and_back(tmp_path, format, images)
    full = held(tmp_path / "first")
    assert held(second) == full
    assert report.instances == made.instances == len(full["instances"])
    assert report.proposals == 1
    kept = {loss for loss in made.losses if "are written but no classes" not in loss}
    assert kept == {
        "1 spans are not kept as such, only the values that they gave",
        "review marks of 1 frames are not kept",
    }


def test_coco_leaves_out_what_is_no_class_and_says_so(tmp_path: Path) -> None:
    made, _, second = there_and_back(tmp_path, "coco")
    assert "1 instances whose triplet is no class of the label space were left out" in made.losses
    assert "3 instances without a whole triplet were left out" in made.losses

    def lost(row: tuple[Any, ...]) -> bool:
        return row[3] in ("forceps", "grasper", "DVC")

    full, back = held(tmp_path / "first"), held(second)
    assert back["instances"] == without(full, drop=lost)
    assert (back["images"], back["flags"]) == (full["images"], full["flags"])


def test_yolo_keeps_boxes_and_triplets_and_says_what_it_loses(tmp_path: Path) -> None:
    made, _, second = there_and_back(tmp_path, "yolo8")
    for words in ("outlines of 2 instances", "tracks of 7", "attribute 'position' of 1", "attribute 'remark' of 1",
                  "attribute 'bleeding' of 1", "attribute 'group' of 1", "attribute 'problem' of 1 frames",
                  "phases of 5 frames", "scores of 1"):  # fmt: skip
        assert any(words in loss for loss in made.losses), (words, made.losses)
    full, back = held(tmp_path / "first", 2), held(second, 2)

    def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(
            [(row[1], row[3], tuple(v for v in row[4] if v[0] in ("action", "target"))) for row in rows], key=str
        )

    assert plain(back["instances"]) == plain(full["instances"])
    for row, other in zip(without(full, 2, 4, 6, 7, 8, 9), without(back, 2, 4, 6, 7, 8, 9), strict=True):
        assert row[5] == pytest.approx(other[5], abs=0.011)
    assert (back["images"], back["flags"]) == ([], [])


def test_cholect50_keeps_boxes_triplets_and_phases(tmp_path: Path) -> None:
    made, _, second = there_and_back(tmp_path, "cholect50")
    full, back = held(tmp_path / "first"), held(second)
    assert any("tracks of 7" in loss for loss in made.losses)

    def plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        named = ("action", "target")
        return sorted([(row[1], row[3], tuple(v for v in row[4] if v[0] in named), row[5], row[8], row[9])
                       for row in rows], key=str)  # fmt: skip

    assert plain(back["instances"]) == plain(full["instances"])
    assert back["images"] == full["images"]


def test_the_page_has_a_text_for_every_loss(tmp_path: Path) -> None:
    """The page knows the sentences by patterns: one that is worded anew must get a text there too."""
    source = (Path(__file__).parents[4] / "src/surgeval/studio/web/src/lib/losses.ts").read_text()
    patterns = [found.replace("${COUNT}", "[0-9]+").replace("(?<name>", "(?P<name>").replace("\\\\", "\\")
                for found in re.findall(r"\[`(.*?)`, 'loss_", source)]  # fmt: skip
    assert len(patterns) > 20
    project = fill(make_folder(tmp_path / "project"))
    with Database(project / STORE_FILE) as database:
        told = {loss for format in EXPORT_FORMATS for loss in preview_export(project, database, format).losses}
    assert len(told) > 12
    assert [loss for loss in told if not any(re.fullmatch(pattern, loss) for pattern in patterns)] == []
