"""What a project's folder offers for import: labels, whoever wrote their format; neither questions nor films."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surgeval.datasets import Format, MemoryDataset, _registry, dataset_formats, held_by, open_dataset
from surgeval.studio.exchange import offered_imports
from surgeval.vocab import LabelSpace, load_labels


class Mine:
    """A format of another package for files that end in its name; `said` is what it states about them."""

    def __init__(self, name: str, **said: Any) -> None:
        self.name = self.title = name
        vars(self).update(said)

    def detect(self, path: Path) -> bool:
        return path.is_dir() and any(path.glob(f"*.{self.name}"))

    def open(self, path: Path, labels: LabelSpace | None = None) -> MemoryDataset:
        return MemoryDataset(labels or load_labels("cholec80"), [])


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Format]:
    formats: dict[str, Format] = {
        "silent": Mine("silent"), "labelling": Mine("labelling", holds="labels"), "odd": Mine("odd", holds=["?"]),
        "asking": Mine("asking", holds="questions"), "filming": Mine("filming", holds="media"),
    }  # fmt: skip
    monkeypatch.setattr(_registry, "_from_outside", lambda _search: formats)
    return formats


def test_a_format_of_another_package_is_offered_if_it_holds_labels(
    strangers: dict[str, Format], tmp_path: Path
) -> None:
    for name in strangers:
        (tmp_path / "imports" / name).mkdir(parents=True)
        (tmp_path / "imports" / name / f"1.{name}").touch()
    offers = {offer.path: offer.formats for offer in offered_imports(tmp_path)}
    assert offers == {f"imports/{name}": (name,) for name in ("silent", "labelling", "odd")}


def test_media_of_another_package_give_way_to_labels_in_the_same_folder(
    strangers: dict[str, Format], tmp_path: Path
) -> None:
    (tmp_path / "1.filming").touch()
    assert open_dataset(tmp_path).space.name == "cholec80"  # alone it is opened
    (tmp_path / "1.silent").touch()
    assert open_dataset(tmp_path, labels="cholect50").space.name == "cholect50"


def test_of_our_own_formats_questions_and_films_are_no_labels() -> None:
    others = {name: held_by(format) for name, format in dataset_formats().items() if held_by(format) != "labels"}
    assert others == {"focus": "questions", "intent": "questions", "video": "media"}
