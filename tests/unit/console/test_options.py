"""A folder is written to only where it is empty or ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from surgeval.console import claim_folder, release_folders
from surgeval.errors import BadInput
from surgeval.pages import Section, write_page


def test_a_page_of_somebody_else_does_not_make_a_folder_ours(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>my website</h1>")
    with pytest.raises(BadInput, match="holds other files"):
        claim_folder(tmp_path, "index.html")


def test_our_own_page_does(tmp_path: Path) -> None:
    write_page(tmp_path / "index.html", "Runs", [Section("All", "none")])
    claim_folder(tmp_path, "index.html")
    with pytest.raises(BadInput, match="holds other files"):  # it is the page that makes it ours
        claim_folder(tmp_path, "report.html")


def test_a_link_to_our_page_does_not(tmp_path: Path) -> None:
    page = write_page(tmp_path / "a" / "index.html", "Runs", [Section("All", "none")])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").symlink_to(page)
    with pytest.raises(BadInput, match="holds other files"):
        claim_folder(tmp_path / "b", "index.html")


def test_what_a_stopped_command_left_is_written_on_by_the_same_one_only(tmp_path: Path) -> None:
    out = tmp_path / "pages" / "a"
    claim_folder(out, "report.html")
    (out / "tables").mkdir()
    claim_folder(out, "report.html")
    with pytest.raises(BadInput, match="holds other files"):
        claim_folder(out, "index.html")
    release_folders()  # it was stopped: there is no page
    claim_folder(out, "report.html")
    write_page(out / "report.html", "Runs", [Section("All", "none")])
    claim_folder(out, "report.html")  # killed when all but the hidden file was done
    release_folders()
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".js") == ["report.html", "tables"]
    claim_folder(out, "report.html")


def test_a_command_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    claim_folder(tmp_path / "pages" / "a", "report.html")
    release_folders()
    assert not list(tmp_path.iterdir())


def test_a_link_to_a_strangers_claim_is_none(tmp_path: Path) -> None:
    claim_folder(tmp_path / "a", "report.html")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".unfinished").symlink_to(tmp_path / "a" / ".unfinished")
    with pytest.raises(BadInput, match="holds other files"):
        claim_folder(tmp_path / "b", "report.html")
    release_folders()
