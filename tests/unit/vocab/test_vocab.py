from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surgeval import vocab
from surgeval.errors import BadInput, DataError

PUBLISHED = Path(__file__).parents[2] / "data" / "vocab" / "cholect50_map.json"  # the map of ivtmetrics 0.1.5


def test_component_classes_are_as_many_as_the_reference_metrics_count() -> None:
    cholect50, prostatd = vocab.load_labels("cholect50"), vocab.load_labels("prostatd")
    assert [cholect50.num_classes(c) for c in ("i", "v", "t", "iv", "it", "ivt")] == [6, 10, 15, 26, 59, 100]
    assert [prostatd.num_classes(c) for c in ("i", "v", "t", "iv", "it", "ivt")] == [7, 10, 10, 25, 51, 89]


def test_pair_ids_follow_the_published_map() -> None:
    table = json.loads(PUBLISHED.read_text())
    space = vocab.load_labels("cholect50")
    for component, present in (("iv", table["iv_ids_present"]), ("it", table["it_ids_present"])):
        compact = space.component_ids(component)
        published = np.array([present.index(row[component]) for row in table["triplets"]])
        assert np.array_equal(compact, published)


def test_names_of_triplets_are_the_published_ones() -> None:
    rows = json.loads(PUBLISHED.read_text())["triplets"]
    assert list(vocab.load_labels("cholect50").triplet_names) == [row["name"] for row in rows]


def test_prostatd_counts_add_up_to_the_published_totals() -> None:
    counts = vocab.load_labels("prostatd").counts
    assert {source: sum(values) for source, values in counts.items()} == {
        "ESAD": 44061,
        "PSI-AVA": 71250,
        "PWH": 81179,
        "total": 196490,
    }
    rows = zip(counts["ESAD"], counts["PSI-AVA"], counts["PWH"], counts["total"], strict=True)
    assert all(a + b + c == total for a, b, c, total in rows)


def test_the_bag_of_the_phantom_is_an_instrument_without_triplets() -> None:
    space = vocab.load_labels("phantom")
    bag = space.id("instrument", "specimen_bag")
    assert all(triplet[0] != bag for triplet in space.triplets)
    assert space.triplets == vocab.load_labels("cholect50").triplets


@pytest.mark.parametrize("name", vocab.fold_names())
def test_no_video_is_trained_and_tested_on(name: str) -> None:
    for fold in vocab.folds(name).values():
        assert not (set(fold.train) | set(fold.val)) & set(fold.test)
        assert not set(fold.train) & set(fold.val)


@pytest.mark.parametrize(("name", "videos"), [("cholect45-cv", 45), ("cholect50-cv", 50), ("prostatd", 21)])
def test_each_video_is_tested_in_exactly_one_fold(name: str, videos: int) -> None:
    tested = [video for fold in vocab.folds(name).values() for video in fold.test]
    assert len(tested) == len(set(tested)) == videos


def test_prostatd_without_validation_trains_on_those_videos() -> None:
    with_val, without = vocab.folds("prostatd")["fold2"], vocab.folds("prostatd-noval")["fold2"]
    assert set(without.train) == set(with_val.train) | set(with_val.val)
    assert without.val == ()


def test_focus_has_ten_objects_and_three_tracks() -> None:
    assert len(vocab.foreign_objects()) == 10
    assert vocab.track_limits() == {"frame": 5.0, "segment": 15.0, "procedure": 30.0}


def test_a_users_own_label_space_comes_from_one_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        json.dumps(
            {
                "instruments": ["scissors", "needle driver"],
                "verbs": ["cut", "null"],
                "targets": ["thread", "null"],
                "triplets": [["scissors", "cut", "thread"], "needle_driver,null,null"],
            }
        )
    )
    space = vocab.load_labels(path)
    assert space.name == "mine"
    assert space.triplet_names == ("scissors,cut,thread", "needle driver,null,null")
    assert space.triplet_id("Needle-Driver", "null", "NULL") == 1
    assert vocab.LabelSpace.from_json(space.to_json(), "again") == space


def test_published_counts_have_a_number_for_each_triplet(tmp_path: Path) -> None:
    lists = {"instruments": ["hook"], "verbs": ["cut", "clip"], "targets": ["duct"], "triplets": "all"}
    path = tmp_path / "counted.json"
    path.write_text(json.dumps({**lists, "counts": {"clinic": [7, 9]}}))
    assert vocab.load_labels(path).counts == {"clinic": (7, 9)}
    path.write_text(json.dumps({**lists, "counts": {"clinic": [7]}}))
    with pytest.raises(DataError, match="counts: expected, for each source, a list of 2 whole numbers"):
        vocab.load_labels(path)


def test_all_combinations_can_be_classes(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text('{"instruments": ["a", "b"], "verbs": ["x"], "targets": ["p", "q"], "triplets": "all"}')
    assert len(vocab.load_labels(path).triplets) == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cut off"),
        ("[]", "expected an object"),
        ("{}", "instruments: the list is empty"),
        ('{"instruments": "hook"}', "instruments: expected a list of names"),
        ('{"instruments": ["hook", "Hook"]}', "the same name twice"),
        ('{"instruments": ["hook"], "triplets": [[0, 0]]}', "triplet 0"),
        (
            '{"instruments": ["hook"], "verbs": ["cut"], "targets": ["liver"], "triplets": [[0, 7, 0]]}',
            "verb: 7 is neither",
        ),
        (
            '{"instruments": ["hook"], "verbs": ["cut"], "targets": ["liver"], "triplets": [[0, 0, 0], [0, 0, 0]]}',
            "twice",
        ),
        ('{"instruments": ["hook"], "verbs": ["cut"], "targets": ["liver"], "triplets": [[true, 0, 0]]}', "instrument"),
    ],
)
def test_a_bad_label_space_is_named_in_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"bad\.json") as caught:
        vocab.load_labels(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: vocab.load_labels("cholect51"),
        lambda: vocab.load_labels(Path(__file__).parent),
        lambda: vocab.folds("nonsense"),
        lambda: vocab.load_labels("cholect50").id("verb", "tickle"),
        lambda: vocab.load_labels("cholect50").triplet_id("clipper", "irrigate", "liver"),
        lambda: vocab.load_labels("cholect50").component_ids("x"),
    ],
)
def test_unknown_names_say_what_would_be_right(ask: Any) -> None:
    with pytest.raises(BadInput) as caught:
        ask()
    assert len(str(caught.value)) > 30


def names(word: str, count: int) -> list[str]:
    return [f"{word}{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("lists", "triplets", "words"),
    [
        ((400, 400, 400), "all", "triplets: 64000000 triplets; at most 10000"),
        ((1, 1, 1), [[0, 0, 0]] * 10_001, "triplets: 10001 triplets; at most 10000"),
        ((1, 1, 1), "every", "triplets: expected a list"),
        ((10_001, 1, 1), [], "instruments: 10001 names; at most 10000"),
        ((1, 1, 10_001), "all", "targets: 10001 names; at most 10000"),
    ],
)
def test_a_label_file_of_absurd_size_is_refused_before_it_is_built(
    tmp_path: Path, lists: tuple[int, int, int], triplets: Any, words: str
) -> None:
    path = tmp_path / "labels.json"
    keys = ("instruments", "verbs", "targets")
    path.write_text(json.dumps({**{k: names(k, n) for k, n in zip(keys, lists, strict=True)}, "triplets": triplets}))
    with pytest.raises(DataError) as error:
        vocab.load_labels(path)
    assert words in str(error.value)


def test_a_label_space_made_of_too_many_names_is_refused() -> None:
    with pytest.raises(BadInput, match="has 10001 instruments"):
        vocab.LabelSpace("mine", tuple(names("i", 10_001)))


def test_triplets_by_name_are_looked_up_not_searched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from surgeval.vocab import label_space as _space

    calls = 0
    key = _space._key

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return key(name)

    monkeypatch.setattr(_space, "_key", counted)
    lists = {"instruments": names("i", 20), "verbs": names("v", 20), "targets": names("t", 20)}
    rows = [[i, v, t] for i in lists["instruments"] for v in lists["verbs"] for t in lists["targets"]]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({**lists, "triplets": rows}))
    assert len(vocab.load_labels(path).triplets) == 8000
    assert calls <= 3 * len(rows) + 4 * 60


@pytest.mark.parametrize("text", ["[" * 100_000, '{"verbs": ' + "[" * 500 + "]" * 500 + "}", '{"instruments": [1'])
def test_a_label_file_that_is_no_ordinary_json_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(DataError, match=r"labels\.json: (nested too deeply|cut off|verbs: expected a list)"):
        vocab.load_labels(tmp_path / "labels.json")


def test_the_documentation_lists_every_capability() -> None:
    page = (Path(__file__).parents[3] / "docs" / "focus.md").read_text(encoding="utf-8")
    chapter = page.partition("## Capabilities\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", chapter, re.MULTILINE)
    listed = [(group, *leaf) for group, leaves in rows for leaf in re.findall(r"`(\w+)` \((\w+)\)", leaves)]
    assert listed == [(leaf.group, leaf.value, leaf.code) for leaf in vocab.capabilities()]
