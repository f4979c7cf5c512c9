"""`surgeval data` with a mapping and with boxes from another folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.e2e.conftest import Surgeval

ROW = "42;;Video_42_{:05d}.png;1;Grasper;10;20;30;40\n"
HEADER = "Surgery_num;Dir;FrameName;NumBBox_inFrame;ToolName;BBox_X;BBox_Y;BBox_Width;BBox_Height\n"


def test_triplets_take_boxes_from_another_folder(surgeval: Surgeval, tmp_path: Path) -> None:
    flags = ["1" if number == 17 else "0" for number in range(100)]
    for folder in ("t45/triplet", "boxes"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "t45/triplet/VID42.txt").write_text("".join(f"{n},{','.join(flags)}\n" for n in range(3)))
    (tmp_path / "boxes/ROI_Labels.csv").write_text(HEADER + ROW.format(1) + ROW.format(2))
    done = surgeval("data", "check", tmp_path / "t45", "--boxes", tmp_path / "boxes", "--json")
    report = json.loads(done.stdout)
    assert (report["format"], report["instances"], report["boxes"]) == ("joined", 3, 2)
    assert report["counts"] == {"images-absent": 2, "frame-unboxed": 1}
    done = surgeval("data", "convert", tmp_path / "t45", "--boxes", tmp_path / "boxes", "--to", "cholect50",
                    "--out", tmp_path / "out")  # fmt: skip
    assert done.returncode == 0
    annotations = json.loads((tmp_path / "out/labels/VID42.json").read_text())["annotations"]
    assert [rows[0][3] >= 0 for rows in annotations.values()] == [True, True, False]


def test_a_wrong_mapping_is_one_sentence(surgeval: Surgeval, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v,f,c,b\n1,2,hook,1 2 3 4\n")
    (tmp_path / "m.toml").write_text('video = "v"\nframe = "f"\nclass = "c"\nbox = "b"\nlayout = "round"\n')
    done = surgeval("data", "check", tmp_path / "t.csv", "--mapping", tmp_path / "m.toml")
    assert done.returncode == 2
    assert done.stderr.strip().endswith("m.toml: layout: found 'round', expected one of xywh, xyxy, cxcywh")
