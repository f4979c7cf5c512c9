"""What a project's folder offers for import: labels, whoever wrote their format; neither questions nor films."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plugins import install_plugin

from surgeval.datasets import dataset_formats, held_by, open_dataset
from surgeval.studio.exchange import offered_imports

SOURCE = """
from surgeval.datasets import MemoryDataset
from surgeval.vocab import load_labels

class Mine:
    def __init__(self, name, **stated):
        self.name = self.title = name
        vars(self).update(stated)
    def detect(self, path):
        return path.is_dir() and any(path.glob(f"*.{self.name}"))
    def open(self, path, labels=None):
        return MemoryDataset(labels or load_labels("cholec80"), [])

silent, labelling, odd = Mine("silent"), Mine("labelling", holds="labels"), Mine("odd", holds=["?"])
asking, filming = Mine("asking", holds="questions"), Mine("filming", holds="media")
"""
NAMES = ("silent", "labelling", "odd", "asking", "filming")


@pytest.fixture
def other_formats(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with formats for files that end in their names."""
    entries = {name: f"odd_formats:{name}" for name in NAMES}
    folder = install_plugin(tmp_path_factory.mktemp("site"), "surgeval.datasets", entries, odd_formats=SOURCE)
    monkeypatch.syspath_prepend(folder)


@pytest.mark.usefixtures("other_formats")
def test_a_format_of_another_package_is_offered_if_it_holds_labels(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / "imports" / name).mkdir(parents=True)
        (tmp_path / "imports" / name / f"1.{name}").touch()
    offers = {offer.path: offer.formats for offer in offered_imports(tmp_path)}
    assert offers == {f"imports/{name}": (name,) for name in ("silent", "labelling", "odd")}


@pytest.mark.usefixtures("other_formats")
def test_media_of_another_package_give_way_to_labels_in_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "1.filming").touch()
    assert open_dataset(tmp_path).space.name == "cholec80"  # alone it is opened
    (tmp_path / "1.silent").touch()
    assert open_dataset(tmp_path, labels="cholect50").space.name == "cholect50"


def test_of_our_own_formats_questions_and_films_are_no_labels() -> None:
    others = {name: held_by(format) for name, format in dataset_formats().items() if held_by(format) != "labels"}
    assert others == {"focus": "questions", "intent": "questions", "video": "media"}
