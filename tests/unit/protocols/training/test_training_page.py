"""The page of a training can be made while it runs, and says in words how it goes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.protocols.training.conftest import write_curves, write_record
from typer.testing import CliRunner

from surgeval.cli.app import app
from surgeval.errors import DataError
from surgeval.protocols import registry
from surgeval.protocols.registry import descriptors
from surgeval.protocols.training.curves import load_training_folder
from surgeval.protocols.training.training_page import training_findings, write_training_page


def said(folder: Path) -> str:
    return " ".join(finding.text for finding in training_findings(load_training_folder(folder)))


def shown(page: Path) -> str:
    """The words of a page, without the links to its glossary."""
    return re.sub("</?a[^>]*>", "", page.read_text())


def test_a_running_training_is_shown_without_its_half_written_line(tmp_path: Path) -> None:
    write_record(tmp_path, status="running")
    write_curves(tmp_path, 4)
    with (tmp_path / "curves.jsonl").open("a") as file:
        file.write('{"epoch": 5, "loss": 0.')
    said = "The training is running, after epoch 4 of the teacher: best mAP50 0.300 (teacher, epoch 4)."
    assert said in shown(write_training_page(tmp_path))
    assert len(load_training_folder(tmp_path).epochs) == 4


def test_before_the_first_epoch_there_is_a_page_too(tmp_path: Path) -> None:
    write_record(tmp_path, status="running")
    page = write_training_page(tmp_path)
    assert "No epoch is finished yet." in shown(page)


@pytest.mark.figures
def test_the_student_is_set_beside_its_teacher(tmp_path: Path) -> None:
    write_record(tmp_path)
    write_curves(tmp_path, 6)
    write_curves(tmp_path / "student", 3, "student", start=0.1)
    with (tmp_path / "student" / "curves.jsonl").open("a") as file:
        file.write('{"epoch": 4, "stage": "student", "background teacher": 0.001, "drift": 0.012}\n')
    text = said(tmp_path)
    assert "The student reaches mAP50 0.250, its teacher 0.400: −15.0 points" in text
    assert "background teacher 0.001; drift 0.012" in text
    figures = {path.name for path in (write_training_page(tmp_path).parent / "figures").iterdir()}
    assert {"losses_teacher.svg", "losses_student.svg", "mAP.svg", "classes.png"} <= figures


def test_the_best_epoch_is_the_one_that_was_kept_and_stands_in_a_row(tmp_path: Path) -> None:
    kept = {"epoch": 1, "epochs": 2, "mAP50": 0.5, "mAP50:95": 0.4, "mosaic": False, "total_seconds": 90.0,
            "images_per_second": 80.0}  # fmt: skip
    write_record(tmp_path, result={"teacher": kept})
    rows = [{"epoch": 1, "mAP50": 0.5, "mAP50:95": 0.4}, {"epoch": 2, "mAP50": 0.6, "mAP50:95": 0.2}]
    (tmp_path / "curves.jsonl").write_text("".join(json.dumps({"loss": 3.0, **row}) + "\n" for row in rows))
    assert "best mAP50 0.500 (teacher, epoch 1)" in said(tmp_path)
    page = shown(write_training_page(tmp_path))
    assert "Best epochs" in page
    assert "teacher.mosaic" not in page
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells[cells.index("1") : cells.index("1") + 5] == ["1", "2", "0.500", "0.400", "1.5"]


def test_trainings_are_no_runs_to_compare_or_to_set_side_by_side(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_record(tmp_path / name)
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    compared = CliRunner().invoke(app, ["compare", *both])
    assert "a: found a training, expected a run: detect with it and score that" in str(compared.exception)
    reported = CliRunner().invoke(app, ["report", *both])
    assert "a: found a training, expected it alone" in str(reported.exception)


def test_a_protocol_whose_folders_cannot_be_told_leaves_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_record(tmp_path)
    known = descriptors()
    broken = replace(known["focus"], folders="no_such_module:folders")
    monkeypatch.setattr(registry, "descriptors", lambda: {**known, "focus": broken})
    with pytest.warns(UserWarning, match="protocol focus: folders = 'no_such_module:folders'"):
        kind = registry.folder_kind_of(tmp_path)
    assert kind is not None and kind.noun == "training"


def test_a_folder_of_trainings_has_an_index_with_how_far_each_is(tmp_path: Path) -> None:
    for name in ("a", "b", "broken"):
        write_record(tmp_path / name)
    write_curves(tmp_path / "b", 4)
    (tmp_path / "broken" / "train.json").write_text("{")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "b")
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 0
    page = (tmp_path / "index.html").read_text()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells[cells.index("a") + 3] == "0" and cells[cells.index("b") + 3] == "4 (teacher)"
    assert 'href="./b/report.html"' in page and (tmp_path / "b" / "report.html").is_file()
    assert "broken/train.json" in page and "elsewhere" not in page


def test_a_training_that_stopped_getting_better_is_told(tmp_path: Path) -> None:
    write_record(tmp_path)
    write_curves(tmp_path, 4)
    with (tmp_path / "curves.jsonl").open("a") as file:
        file.writelines(json.dumps({"epoch": n, "loss": 1.0, "mAP50": 0.1}) + "\n" for n in range(5, 14))
    assert "No better since epoch 4 of 13" in said(tmp_path)


def test_a_training_without_validation_and_one_that_finds_nothing(tmp_path: Path) -> None:
    write_record(tmp_path)
    (tmp_path / "curves.jsonl").write_text('{"epoch": 1, "loss": 3.0}\n{"epoch": 2, "loss": 4.0, "mAP50": null}\n')
    assert "Nothing was validated, so the last epoch is the detector." in said(tmp_path)
    (tmp_path / "curves.jsonl").write_text('{"epoch": 1, "loss": 3.0, "mAP50": 0.0}\n')
    assert "It finds nothing yet" in said(tmp_path)


def test_one_that_never_found_anything_is_not_told_to_stop(tmp_path: Path) -> None:
    write_record(tmp_path)
    rows = [json.dumps({"epoch": n, "loss": 3.0 / n, "mAP50": 0.0, "mAP50:95": 0.0}) for n in range(1, 13)]
    (tmp_path / "curves.jsonl").write_text("\n".join(rows) + "\n")
    standing, *others = training_findings(load_training_folder(tmp_path))
    assert standing.text == "The training is finished: best mAP50 0.000 (teacher, epoch 12)."
    assert standing.grade is None
    assert "It finds nothing yet: mAP50 is 0." in [finding.text for finding in others]
    assert "No better since" not in said(tmp_path)


def test_the_label_mosaic_stands_on_the_page(tmp_path: Path) -> None:
    write_record(tmp_path)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "labels.jpg")
    assert "Frames with their labels" in write_training_page(tmp_path).read_text()
    (tmp_path / "labels.jpg").write_bytes(b"GIF89a")
    with pytest.raises(DataError, match=r"labels\.jpg: found no JPEG or PNG"):
        write_training_page(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"), [("[1]", r"line 2: found \[1\]"), ('{"epoch": "x"}', "line 2"), ("{", "line 2"),
                       ('{"epoch": -4}', "epoch: found -4")],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    write_record(tmp_path)
    (tmp_path / "curves.jsonl").write_text('{"epoch": 1}\n' + line + "\n")
    with pytest.raises(DataError, match=rf"curves\.jsonl: {said}"):
        write_training_page(tmp_path)


def test_names_from_the_record_are_shown_literally(tmp_path: Path) -> None:
    write_record(tmp_path, settings={"<b>size</b>": "<script>"}, model="<i>")
    page = write_training_page(tmp_path).read_text()
    assert "<script>" not in page.split("<body", 1)[1].split("<script", 1)[0] and "&lt;script&gt;" in page


def test_the_report_command_knows_a_training_folder(tmp_path: Path) -> None:
    write_record(tmp_path / "run", status="running")
    write_curves(tmp_path / "run", 2)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--out", str(tmp_path / "page"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"report": str(tmp_path / "page" / "report.html")}
    assert not (tmp_path / "run" / "report.html").exists()
