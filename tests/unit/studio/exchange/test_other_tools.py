"""What other tools read of an export: COCO's own library, CVAT's documented fields, datumaro where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.unit.studio.exchange.projects import fill, make_folder

from surgeval.studio.exchange import export_project
from surgeval.studio.store import STORE_FILE, Database


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return fill(make_folder(tmp_path / "project"))


def export(project: Path, format: str) -> Path:
    database = Database(project / STORE_FILE)
    made = export_project(project, database, format, format)
    database.close()
    assert made.folder is not None
    return made.folder


def test_a_coco_export_has_what_its_library_needs(project: Path) -> None:
    path = export(project, "coco") / "annotations.json"
    data = json.loads(path.read_text())
    images = {image["id"]: image for image in data["images"]}
    categories = {category["id"]: category["name"] for category in data["categories"]}
    assert len(categories) == 89
    for image in images.values():
        assert (path.parent / "images" / image["file_name"]).is_file()
    for row in data["annotations"]:
        assert images[row["image_id"]]["width"] == 320
        assert categories[row["category_id"]] in ("scissors_cut_prostate", "aspirator_null_null")
        assert row["area"] > 0 and row["iscrowd"] == 0 and len(row["bbox"]) == 4


def test_a_coco_export_opens_with_pycocotools(project: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    opened = coco.COCO(str(export(project, "coco") / "annotations.json"))
    assert (len(opened.imgs), len(opened.anns), len(opened.cats)) == (12, 8, 89)
    outlined = [row for row in opened.anns.values() if row.get("segmentation")]
    assert [opened.annToMask(row).any() for row in outlined] == [True, True]


def test_a_cvat_export_has_the_documented_fields(project: Path) -> None:
    """https://docs.cvat.ai/docs/dataset_management/formats/format-cvat/ : annotations for interpolation (video)."""
    root = ElementTree.parse(export(project, "cvat") / "V1" / "annotations.xml").getroot()
    assert root.findtext("version") == "1.1"
    task = root.find("meta/task")
    assert task is not None
    assert (task.findtext("size"), task.findtext("mode")) == ("12", "interpolation")
    labels = {label.findtext("name") for label in task.iter("label")}
    assert {"scissors", "forceps", "DVC"} <= labels
    tracks = root.findall("track")
    assert sorted(int(track.attrib["id"]) for track in tracks) == list(range(len(tracks)))
    for track in tracks:
        assert track.attrib["label"] in labels
        for shape in track:
            assert shape.tag in ("box", "polygon")
            assert {"frame", "outside", "occluded", "keyframe"} <= shape.attrib.keys()
            corners = ("xtl", "ytl", "xbr", "ybr") if shape.tag == "box" else ("points",)
            assert all(name in shape.attrib for name in corners)
            assert {child.tag for child in shape} <= {"attribute"}


def test_a_cvat_export_is_read_by_datumaro(project: Path) -> None:
    datumaro = pytest.importorskip("datumaro")
    found = datumaro.Dataset.import_from(str(export(project, "cvat") / "V1"), "cvat")
    shapes = [shape for item in found for shape in item.annotations if not shape.attributes["outside"]]
    assert len(shapes) == 13, "twelve instances, one of which has two parts"
    assert {shape.attributes.get("Action") for shape in shapes} == {"cut", "bag", "null", "retract", None}
