"""Which videos one training learns from, which choose its best epoch, and which it must not see: `choose_videos`."""

from __future__ import annotations

from collections.abc import Sequence

from surgeval.datasets import Sources, name_sources
from surgeval.errors import BadInput
from surgeval.protocols.training.scheme import Fold, choose_folds
from surgeval.records import Video
from surgeval.vocab import fold_names

__all__ = ["choose_videos", "usual_scheme"]

# For ProstaTD the authors recommend to train on the validation videos too.
_USUAL = {"prostatd": "prostatd-noval", "cholect50": "cholect50-cv"}
_VALIDATION = ("val", "validation", "valid")


def usual_scheme(space: str) -> str | None:
    """The published folds of a label space.

    >>> usual_scheme("prostatd"), usual_scheme("mine")
    ('prostatd-noval', None)
    """
    return _USUAL.get(space)


def choose_videos(
    videos: Sequence[Video],
    *,
    scheme: str | None = None,
    fold: str | None = None,
    source: str | None = None,
    sources: Sources | None = None,
    validation: Sequence[str] = (),
    split: bool | None = None,
) -> Fold:
    """The videos of a training: of a fold, of all sources but one, of the dataset's own split, or all.

    `sources` says which videos are of which source, where the dataset does not: as `name_sources`.
    Videos named for `validation` are taken out of those to learn from. Where neither a fold nor a source is said it is
    the dataset's own split, if it has one: its test videos stay unseen (`split=False` leaves the split aside).

    >>> four = [Video("A1", "A", "train"), Video("A2", "A", "val"), Video("B1", "B", "train"), Video("B2", "B", "test")]
    >>> choose_videos(four)
    Fold(name='split', train=('A1', 'B1'), val=('A2',), test=('B2',))
    >>> choose_videos(four, validation=["B1"])
    Fold(name='split', train=('A1', 'A2'), val=('B1',), test=('B2',))
    >>> choose_videos(four, source="B", validation=["A2"])
    Fold(name='B', train=('A1',), val=('A2',), test=('B1', 'B2'))
    """
    if sum((fold is not None, source is not None, split is True)) > 1:
        raise BadInput("videos to learn from: found a fold, a source or a split together, expected one of them")
    if sources is not None and source is None:
        raise BadInput("sources: used only where a source is left out.")
    if not videos:
        raise BadInput("dataset: found no videos, expected at least one")
    names = [video.name for video in videos]
    unknown = [name for name in validation if name not in names]
    if unknown:
        raise BadInput(f"validation: found no video {unknown[0]!r}, expected some of {', '.join(names[:20])}")
    selection = _chosen(name_sources(videos, sources), scheme, fold, source, split)
    seen = [name for name in validation if name in selection.test]
    if seen:
        raise BadInput(f"validation: found {seen[0]}, which is held out for the test, expected another video")
    if validation:
        rest = tuple(name for name in (*selection.train, *selection.val) if name not in validation)
        selection = Fold(selection.name, rest, tuple(validation), selection.test)
    if not selection.train:
        raise BadInput(f"{selection.name}: found no video to learn from, expected at least one")
    return selection


def _chosen(
    videos: Sequence[Video], scheme: str | None, fold: str | None, source: str | None, split: bool | None
) -> Fold:
    if fold is not None:
        if scheme is None:
            raise BadInput(
                f"fold {fold}: found no published folds for these labels, expected a scheme: "
                f"{', '.join(fold_names())}, or a JSON file of folds by video"
            )
        table = choose_folds(videos, scheme)
        known = [known_fold.name for known_fold in table.folds]
        return table.fold(f"fold{fold}" if fold not in known and f"fold{fold}" in known else fold)
    if source is not None:
        return choose_folds(videos, "sources").fold(source)
    if split or (split is None and any(video.split == "train" for video in videos)):
        return _own_split(videos)
    return Fold("all", tuple(video.name for video in videos), (), ())


def _own_split(videos: Sequence[Video]) -> Fold:
    parts = {
        part: tuple(video.name for video in videos if video.split in words)
        for part, words in (("train", ("train",)), ("val", _VALIDATION))
    }
    known = {name for names in parts.values() for name in names}
    if not parts["train"]:
        found = ", ".join(sorted({video.split or "none" for video in videos}))
        raise BadInput(f"split: found {found}, expected videos whose split is train")
    return Fold("split", parts["train"], parts["val"], tuple(v.name for v in videos if v.name not in known))
