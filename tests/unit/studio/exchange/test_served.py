"""Import and export over HTTP: said before it is done, inside the project's folder, bounded."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.unit.studio.exchange.projects import fill, held, make_folder
from tests.unit.studio.test_server import Page

from surgeval.studio.server import Running, serve


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serve(fill(make_folder(tmp_path / "project")), author="amy") as found:
        yield found


@pytest.fixture
def page(running: Running) -> Page:
    return Page(running)


def send(page: Page, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    status, found, _ = page.ask("POST", path, body, **headers)
    return status, found


def upload(page: Page, name: str, data: bytes) -> tuple[int, Any]:
    return send(page, f"/api/import/upload?name={name}", data, **{"content-type": "application/octet-stream"})


def test_an_export_is_told_written_listed_and_downloaded(page: Page, running: Running) -> None:
    status, told = send(page, "/api/export/preview", {"format": "coco", "images": False})
    assert (status, told["instances"], told["frames"]) == (200, 12, 12)
    assert "1 proposals that nobody has accepted are left out" in told["losses"]
    assert page.get("/api/exports")["exports"] == []
    status, made = send(page, "/api/export", {"format": "coco", "images": False, "name": "mine"})
    assert (status, made["path"], made["losses"]) == (200, "exports/mine", told["losses"])
    assert page.get("/api/exports")["exports"] == ["mine"]
    with zipfile.ZipFile(io.BytesIO(page.get("/api/exports/mine.zip"))) as archive:
        assert sorted(archive.namelist()) == ["annotations.json", "labels.json"]
    status, said = send(page, "/api/export", {"format": "coco", "images": False, "name": "mine"})
    assert (status, said["error"]) == (400, "exports/mine: found an export of that name, expected a new one")


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/b", "", ".hidden", "nul", 7, None])
def test_an_export_stays_in_its_folder(page: Page, running: Running, name: Any) -> None:
    status, said = send(page, "/api/export", {"format": "coco", "images": False, "name": name})
    assert (status, said["error"].startswith("name: found")) == (400, True)
    assert not (running.project.folder / "exports").exists()


@pytest.mark.parametrize("body", [
    {"format": "voc"}, {"format": 3}, {"format": "coco", "images": "yes"}, {"format": "coco", "more": 1},
    {"format": "coco", "rules": {"rules": [{"to": "x"}]}}, {"format": "coco", "rules": "others"}, {},
])  # fmt: skip
def test_a_bad_wish_is_one_sentence(page: Page, body: dict[str, Any]) -> None:
    status, said = send(page, "/api/export/preview", body)
    assert status == 400
    assert "found" in said["error"]


@pytest.mark.parametrize("name", ["none", "..%2f..%2fetc", "%2e%2e"])
def test_only_exports_are_downloaded(page: Page, name: str) -> None:
    status, _, _ = page.ask("GET", f"/api/exports/{name}.zip")
    assert status == 404


def test_labels_are_uploaded_told_imported_and_undone(page: Page, running: Running, tmp_path: Path) -> None:
    folder = running.project.folder
    assert send(page, "/api/export", {"format": "labelme", "images": False, "name": "out"})[0] == 200
    data = page.get("/api/exports/out.zip")
    page.do("instances.delete", {"ids": ["run0", "run1"]})
    before = held(folder)
    status, offer = upload(page, "mine.zip", data)
    assert (status, offer) == (200, {"path": "imports/mine", "formats": ["labelme"]})
    assert {one["path"] for one in page.get("/api/imports")} == {"imports/mine", "exports/out"}
    status, told = send(page, "/api/import/preview", {"path": "imports/mine", "format": "labelme"})
    assert (status, told["instances"], told["present"], told["missed"]) == (200, 2, 10, 0)
    assert held(folder) == before
    status, done = send(page, "/api/import", {"path": "imports/mine", "session": "tab-1"})
    assert (status, done["instances"], len(done["versions"])) == (200, 2, 1)
    assert len(held(folder)["instances"]) == len(before["instances"]) + 2
    assert page.do("undo", {})[0] == 200
    assert held(folder) == before


@pytest.mark.parametrize(
    "path", ["..", "../secret", "/etc", "V1/000000.png", "studio.sqlite", "imports/../..", "", None, 4]
)
def test_only_what_is_offered_is_imported(page: Page, running: Running, path: Any) -> None:
    secret = running.project.folder.parent / "secret" / "V1"
    secret.mkdir(parents=True)
    (secret / "1.json").write_text(json.dumps({"shapes": [], "imageWidth": 8, "imageHeight": 8}))
    for address in ("/api/import/preview", "/api/import"):
        status, said = send(page, address, {"path": path})
        assert (status, said["error"].startswith("path: found")) == (400, True), said


def test_a_link_out_of_the_folder_is_not_offered(page: Page, running: Running, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "V1"
    outside.mkdir(parents=True)
    (outside / "1.json").write_text(json.dumps({"shapes": [], "imageWidth": 8, "imageHeight": 8}))
    (running.project.folder / "link").symlink_to(outside.parent)
    assert [one["path"] for one in page.get("/api/imports") if "link" in one["path"]] == []


def test_uploads_that_are_no_labels_leave_nothing(page: Page, running: Running) -> None:
    for data in (b"hello", b"PK\x03\x04broken", b""):
        status, said = upload(page, "x.zip", data)
        assert (status, "found" in said["error"]) == (400, True)
    imports = running.project.folder / "imports"
    assert not imports.exists() or list(imports.iterdir()) == []


def test_an_upload_that_is_too_long_is_refused(page: Page) -> None:
    status, _ = upload(page, "x.zip", bytes((32 << 20) + 1))
    assert status == 413


def test_a_page_of_a_stranger_can_neither_import_nor_export(page: Page) -> None:
    for path in ("/api/export", "/api/import", "/api/import/upload?name=x"):
        status, _, _ = page.ask("POST", path, b"{}", origin="http://evil.example")
        assert status == 403


LABELME = {"shapes": [{"label": "scissors", "points": [[5, 6], [50, 60]], "shape_type": "rectangle"}],
           "imagePath": "x.png", "imageData": None, "imageWidth": 320, "imageHeight": 180}  # fmt: skip


def at_once(count: int, ask: Callable[[], tuple[int, Any]]) -> list[tuple[int, Any]]:
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(ask) for _ in range(count)]]


def test_equal_imports_at_once_add_once(page: Page, running: Running) -> None:
    place = running.project.folder / "imports" / "mine" / "V1"
    place.mkdir(parents=True)
    for name in ("000010", "000011"):
        (place / f"{name}.json").write_text(json.dumps(LABELME))
    before = len(held(running.project.folder)["instances"])
    answers = at_once(3, lambda: send(page, "/api/import", {"path": "imports/mine"}))
    assert sorted((status, told["instances"]) for status, told in answers) == [(200, 0), (200, 0), (200, 2)]
    assert len(held(running.project.folder)["instances"]) == before + 2


def test_of_exports_of_one_name_at_once_one_is_written(page: Page) -> None:
    answers = at_once(4, lambda: send(page, "/api/export", {"format": "labelme", "images": False, "name": "same"}))
    assert sorted(status for status, _ in answers) == [200, 400, 400, 400]
    assert {told["error"] for status, told in answers if status == 400} == {
        "exports/same: found an export of that name, expected a new one"
    }


def test_nothing_passes_through_folders_that_are_links(page: Page, running: Running, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "mine" / "V1").mkdir(parents=True)
    (outside / "mine" / "V1" / "000010.json").write_text(json.dumps(LABELME))
    for name in ("imports", "exports"):
        (running.project.folder / name).symlink_to(outside)
    assert upload(page, "x.json", json.dumps(LABELME).encode())[0] == 400
    assert send(page, "/api/export", {"format": "coco", "images": False, "name": "mine-too"})[0] == 400
    assert send(page, "/api/import", {"path": "imports/mine"})[0] == 400
    assert page.get("/api/imports") == []
    assert page.get("/api/exports")["exports"] == []
    assert [path.name for path in outside.iterdir()] == ["mine"]


def test_an_upload_is_found_among_many_folders(page: Page, running: Running) -> None:
    for k in range(210):
        (running.project.folder / f"A{k:03d}").mkdir()
    status, offer = upload(page, "mine.json", json.dumps(LABELME).encode())
    assert (status, offer) == (200, {"path": "imports/mine", "formats": ["labelme"]})
    assert offer in page.get("/api/imports")
    assert send(page, "/api/import/preview", {"path": "imports/mine"})[0] == 200
