"""Where labelme files lie: the folders of a dataset, and the videos that their files belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from surgeval.datasets.io.files import ends
from surgeval.datasets.io.layout import SPLITS, folders, is_published, names, video_and_frame

LABEL_FOLDERS = ("ann_dir", "annotations", "labels", "json")  # folders of a video that hold its label files
IMAGE_FOLDERS = ("img_dir", "images", "frames")


@dataclass(frozen=True, slots=True)
class LabelFiles:
    """The label files of one video."""

    video: str
    split: str
    labels: Path
    images: Path
    stems: tuple[str, ...]
    flat: bool = False  # the names of its files begin with the video's

    def name(self, stem: str) -> str:
        """The name of the frame that a file belongs to."""
        return video_and_frame(stem)[1] if self.flat else stem


def looks_like_labelme(path: Path) -> bool:
    """Whether the beginning of a JSON file has labelme's keys."""
    head, _ = ends(path, 1 << 16)
    return b'"shapes"' in head or b'"imagePath"' in head


def label_groups(root: Path) -> Iterator[LabelFiles]:
    """Folders up to three levels down that hold labelme files."""
    level = [root]
    for depth in range(4):
        for folder in level:
            stems = tuple(Path(name).stem for name in names(folder) if name.endswith(".json") and name != "labels.json")
            if any(looks_like_labelme(folder / f"{stem}.json") for stem in stems[:5]):
                home = folder.parent if folder.name in LABEL_FOLDERS and folder != root else folder
                images = next(
                    (home / name for name in IMAGE_FOLDERS if home != folder and (home / name).is_dir()),
                    folder,
                )
                split = home.parent.name if home not in (root, root.parent) and home.parent.name in SPLITS else ""
                for video, some in _by_video(stems, folder == root).items():
                    yield LabelFiles(video or home.resolve().name or "video", split, folder, images, some, bool(video))
        if depth < 3:
            level = [child for folder in level for child in folders(folder)]


def _by_video(stems: tuple[str, ...], alone: bool) -> dict[str, tuple[str, ...]]:
    """The files of a folder by video, where their names tell of several; else all of them under ''.

    Names of published videos tell so anywhere; others only in a folder that is the whole dataset (`alone`), and before
    a number.
    """
    cut = {stem: video_and_frame(stem) for stem in stems}
    videos: dict[str, list[str]] = {}
    for stem, (video, _) in cut.items():
        videos.setdefault(video, []).append(stem)
    known = all(is_published(video) for video in videos)
    numbered = alone and "" not in videos and all(name.isdigit() for _, name in cut.values())
    return (
        {video: tuple(some) for video, some in videos.items()}
        if len(videos) > 1 and (known or numbered)
        else {"": stems}
    )
