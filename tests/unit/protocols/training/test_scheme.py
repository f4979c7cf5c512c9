"""Folds: every video is tested once, by a model that never saw it; whatever would break that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surgeval.errors import BadInput
from surgeval.protocols.training.scheme import choose_folds
from surgeval.records import Video
from surgeval.vocab import folds

PROSTATD = [Video(name) for fold in folds("prostatd").values() for name in fold.test]
SIX = [Video(f"v{k}", "AB"[k % 2], ("train", "val", "test")[k // 2]) for k in range(6)]


def test_the_five_published_folds_test_every_video_once() -> None:
    scheme = choose_folds(PROSTATD, "prostatd")
    tested = [video for fold in scheme.folds for video in fold.test]
    assert sorted(tested) == sorted(video.name for video in PROSTATD)
    assert scheme.fold("fold1").val == ("psiv7", "pwhv5")
    for fold in scheme.folds:
        assert len({*fold.train, *fold.val, *fold.test}) == 21


def test_without_validation_its_videos_are_learned_from() -> None:
    plain, more = (choose_folds(PROSTATD, name).fold("fold2") for name in ("prostatd", "prostatd-noval"))
    assert more.val == () and set(more.train) == {*plain.train, *plain.val} and more.test == plain.test


def test_absent_training_videos_are_told_and_absent_test_videos_refused() -> None:
    fold = folds("prostatd")["fold1"]
    some = [video for video in PROSTATD if video.name != fold.test[0]]
    with pytest.raises(BadInput, match=f"found no video {fold.test[0]} in the dataset"):
        choose_folds(some, "prostatd")
    assert choose_folds(PROSTATD, "prostatd").notes == ()


def test_sources_and_videos_are_left_out_one_by_one() -> None:
    assert [fold.test for fold in choose_folds(SIX, "sources").folds] == [("v0", "v2", "v4"), ("v1", "v3", "v5")]
    assert [fold.test for fold in choose_folds(SIX, "videos").folds] == [(f"v{k}",) for k in range(6)]
    split = choose_folds(SIX, "split").fold("split")
    assert (split.train, split.val, split.test) == (("v0", "v1"), ("v2", "v3"), ("v4", "v5"))


def test_a_file_of_folds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"one": {"test": ["v0"], "val": ["v1"], "train": ["v2"]}, "two": ["v3"]}))
    scheme = choose_folds(SIX, path)
    assert scheme.name == "mine.json" and scheme.fold("one").train == ("v2",)
    assert scheme.fold("two").train == ("v0", "v1", "v2", "v4", "v5")


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ({"a": {"test": ["v0"], "train": ["v0", "v1"]}}, "found video v0 twice, expected it in one of train"),
        ({"a": {"test": [], "train": ["v1"]}}, "found no test video"),
        ({"a": {"test": ["v0"], "train": []}}, "found no train video"),
        ({"a": ["v0"], "b": ["v0"]}, "found test video v0 in fold a too"),
        ({"a": ["v9"]}, "found no video v9 in the dataset"),
        ({"a": {"tset": ["v0"]}}, "expected lists of videos: train, val, test"),
        ({"a": "v0"}, "expected lists of videos"),
        ({"mean": ["v0"]}, "found a fold named mean"),
        ({"a/b": ["v0"], "a-b": ["v1"]}, "names are one as folders"),
        ({}, "found no fold"),
        ("prostat", "found neither name nor file, expected cholect50"),
    ],
)
def test_a_scheme_that_would_leak_or_mislead_is_refused(scheme: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        choose_folds(SIX, scheme)
