"""A whole run: tables in every format, resuming, tracks, films, and scores from the table as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from tests.unit.detector.inference.conftest import Film
from tests.unit.detector.inference.detectors import SPACE, FindsWhite

from surgeval.datasets import open_video, read_image, video_index
from surgeval.datasets.predictions import ground_truth, join, read_detections
from surgeval.detector import Classes, Raw
from surgeval.detector.inference import (
    Detected,
    DetectSettings,
    Tracking,
    detect_source,
    detection_table,
    open_source,
    parts,
)
from surgeval.detector.inference.film import write_film
from surgeval.detector.nms import Found
from surgeval.errors import BadInput, RunError
from surgeval.files import folder_lock
from surgeval.records import Frame, ImageRef
from surgeval.vocab import load_labels


def run(network: FindsWhite, data: Path, out: Path, settings: DetectSettings | None = None, **more: object) -> Detected:
    source = open_source(data, network.space, **{k: more.pop(k) for k in ("every", "fps", "videos") if k in more})  # type: ignore[arg-type]
    return detect_source(network, source, out, settings, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["found.parquet", "found.csv", "found.json", "found"])
def test_every_format_says_which_frames_were_seen(name: str, images: Path, tmp_path: Path) -> None:
    told: list[str] = []
    done = run(FindsWhite(), images, tmp_path / name, announce=told.append)
    assert (done.frames, done.skipped, done.boxes) == (4, 1, 3)
    assert [text.partition(":")[0] for text in told] == ["pictures frame 002 is left out"]
    truth = ground_truth(open_source(images, SPACE).dataset)
    back = read_detections(tmp_path / name, truth)
    assert back.table["frame"].to_list() == ["000", "001", "003"]
    assert back.table["triplet"].to_list() == [0, 0, 0]
    assert back.table["x"].to_list() == pytest.approx([10, 14, 22], abs=2)
    assert back.empty.rows() == [("pictures", "004")]
    assert not list(tmp_path.glob(".*"))


def test_all_probabilities_are_kept_unless_they_are_not_wanted(images: Path, tmp_path: Path) -> None:
    run(FindsWhite(), images, tmp_path / "all.parquet")
    table = pl.read_parquet(tmp_path / "all.parquet")
    assert {name: len(table[name][0]) for name in ("p_ivt", "p_i", "p_v", "p_t")} == {
        "p_ivt": 100, "p_i": 7, "p_v": 10, "p_t": 15}  # fmt: skip
    assert table["p_ivt"][0][0] == 0.75
    assert table["score"].to_list() == [0.75, 0.75, 0.75, None]
    run(FindsWhite(), images, tmp_path / "few.parquet", DetectSettings(probabilities=False))
    assert "p_ivt" not in pl.read_parquet(tmp_path / "few.parquet").columns


def test_an_interrupted_run_goes_on_where_it_was(film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BLOCK", 8)
    path, out = film(frames=30), tmp_path / "found.parquet"
    whole = FindsWhite()
    run(whole, path, tmp_path / "whole.parquet", DetectSettings(batch=4))

    class Breaks(FindsWhite):
        def raw(self, images: torch.Tensor) -> Raw:
            if self.calls == 5:
                raise KeyboardInterrupt
            return super().raw(images)

    with pytest.raises(KeyboardInterrupt):
        run(Breaks(), path, out, DetectSettings(batch=4), identity="v1")
    assert not out.exists()
    done = run(FindsWhite(), path, out, DetectSettings(batch=4), identity="v1")
    assert (done.frames, done.earlier) == (14, 16)
    assert pl.read_parquet(out).equals(pl.read_parquet(tmp_path / "whole.parquet"))


@pytest.mark.parametrize("other", [{"identity": "v2"}, {"settings": DetectSettings(probabilities=False)}, {"every": 2}])
def test_blocks_of_other_weights_or_settings_are_never_used(
    other: dict[str, object], film: Film, tmp_path: Path
) -> None:
    path, out = film(frames=10), tmp_path / "found.parquet"

    class Breaks(FindsWhite):
        def raw(self, images: torch.Tensor) -> Raw:
            raise KeyboardInterrupt

    settings = DetectSettings()
    with pytest.raises(KeyboardInterrupt):
        run(Breaks(), path, out, settings, identity="v1")
    work = tmp_path / ".found.parquet.parts"
    (work / "parts" / "00000-0000000.parquet").write_bytes(b"what an earlier run left")
    again: dict[str, object] = {"settings": settings, "identity": "v1"} | other
    done = run(FindsWhite(), path, out, **again)  # type: ignore[arg-type]
    assert done.earlier == 0


def test_a_second_process_leaves_the_first_ones_blocks_alone(film: Film, tmp_path: Path) -> None:
    path, out = film(frames=10), tmp_path / "found.parquet"
    work = tmp_path / ".found.parquet.parts"
    (work / "parts").mkdir(parents=True)
    (work / "parts" / "00000-0000000.parquet").write_bytes(b"what the first one has done")
    with folder_lock(work), pytest.raises(RunError, match=r"\.found\.parquet\.parts: process \d+ on .* is working"):
        run(FindsWhite(), path, out, identity="v2")
    assert (work / "parts" / "00000-0000000.parquet").read_bytes() == b"what the first one has done"
    run(FindsWhite(), path, out, identity="v2")
    assert out.exists() and not work.exists()


@pytest.mark.parametrize("identity", ["", "v1"])
def test_a_folder_of_other_files_is_left_alone(film: Film, tmp_path: Path, identity: str) -> None:
    work = tmp_path / ".found.parquet.parts"
    work.mkdir()
    (work / "thesis.docx").write_text("years of work")
    with pytest.raises(RunError, match=r"\.parts: holds 'thesis\.docx' but no run\.json"):
        run(FindsWhite(), film(frames=10), tmp_path / "found.parquet", identity=identity)
    assert [path.name for path in work.iterdir()] == ["thesis.docx"]


def test_a_damaged_block_is_done_again_and_tracks_of_an_earlier_run_are_dropped(
    film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BLOCK", 8)
    path, out = film(frames=20), tmp_path / "found.parquet"
    run(FindsWhite(), path, tmp_path / "whole.parquet")

    def stop(_name: str) -> None:
        if _name == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(FindsWhite(), path, out, DetectSettings(tracking=Tracking()), identity="v1", phase=stop)
    first = min((tmp_path / ".found.parquet.parts" / "parts").iterdir())
    frames = pl.read_parquet(first)["frame"].n_unique()
    first.write_bytes(first.read_bytes()[:-9])
    told: list[str] = []
    done = run(FindsWhite(), path, out, identity="v1", announce=told.append)
    assert (done.frames, done.earlier) == (frames, 20 - frames)
    assert len(told) == 1 and "is damaged (it cannot be read); it is done again" in told[0]
    assert pl.read_parquet(out).equals(pl.read_parquet(tmp_path / "whole.parquet"))


def test_tracks_follow_the_instrument_through_a_short_absence(film: Film, tmp_path: Path) -> None:
    path = film(frames=28, hidden=range(10, 18))
    done = run(FindsWhite(image_size=96), path, tmp_path / "t.csv", DetectSettings(tracking=Tracking()))
    assert done.tracks == 1
    table = read_detections(tmp_path / "t.csv", open_source(path, SPACE).dataset).table
    assert table["track"].to_list() == [1] * 20
    gone = DetectSettings(tracking=Tracking(lost=0.2))
    assert run(FindsWhite(image_size=96), path, tmp_path / "u.csv", gone).tracks == 2


def test_frames_without_times_are_tracked_a_second_apart_and_that_is_told(images: Path, tmp_path: Path) -> None:
    told: list[str] = []
    settings = DetectSettings(tracking=Tracking())
    run(FindsWhite(), images, tmp_path / "t.csv", settings, announce=told.append)
    assert "the times of frames are not known: they are tracked as if they were a second apart" in told


def test_the_film_shows_each_frame_at_its_time_with_its_box(film: Film, tmp_path: Path) -> None:
    path, seen = film(frames=20), tmp_path / "seen.mp4"
    done = run(FindsWhite(image_size=96), path, tmp_path / "f.csv", every=2, film=seen)
    assert done.films == (seen,)
    assert np.allclose(video_index(seen).times, np.arange(10) * 0.08, atol=1e-3)
    from surgeval.datasets import read_image

    before, after = (read_image(next(open_video(p).frames(p.stem)).image) for p in (path, seen))  # type: ignore[arg-type]
    changed = np.abs(before.astype(int) - after.astype(int)).max(2) > 60
    assert changed[16, 4:28].mean() > 0.5  # the upper edge of the box is drawn on
    assert not changed[56:, 60:].any()  # and nothing far from it


@pytest.mark.parametrize("size", [(1, 1), (1, 64), (63, 1), (2, 20_000), (481, 641)])
def test_pictures_of_any_size_become_a_film(size: tuple[int, int], tmp_path: Path) -> None:
    shown = [(0.0, np.full((*size, 3), 200, np.uint8)), (0.5, np.full((9, 9, 3), 90, np.uint8))]
    assert write_film(tmp_path / "film.mp4", shown) == 2
    index = video_index(tmp_path / "film.mp4")
    assert len(index) == 2
    assert (index.height, index.width) == tuple(max(2, min(side, 8192) // 2 * 2) for side in size)
    first = read_image(ImageRef(tmp_path / "film.mp4", 0))
    assert abs(int(first.mean()) - 200) < 4


def test_no_picture_is_no_film(tmp_path: Path) -> None:
    assert write_film(tmp_path / "film.mp4", []) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_source_without_a_readable_frame_is_refused_after_naming_each(tmp_path: Path) -> None:
    for name in ("1.png", "2.png"):
        (tmp_path / "pictures").mkdir(exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(b"no picture")
    told: list[str] = []
    with pytest.raises(BadInput, match="pictures: found no frame that can be read, expected at least one"):
        run(FindsWhite(), tmp_path / "pictures", tmp_path / "found.parquet", announce=told.append)
    assert [name for text in told for name in ("1.png", "2.png") if name in text] == ["1.png", "2.png"]
    assert not (tmp_path / "found.parquet").exists()


def test_two_films_need_a_folder(film: Film, tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    for name in ("a", "b"):
        film(f"ops/{name}.mp4", frames=3)
    with pytest.raises(BadInput, match="found 2 videos to film, expected a folder"):
        run(FindsWhite(), tmp_path / "ops", tmp_path / "f.csv", film=tmp_path / "seen.mp4")
    done = run(FindsWhite(), tmp_path / "ops", tmp_path / "f.csv", film=tmp_path / "seen")
    assert [path.name for path in done.films] == ["a.mp4", "b.mp4"]


def test_a_film_is_never_written_over_the_video_it_shows(film: Film, tmp_path: Path) -> None:
    path = film(frames=3)
    before = path.read_bytes()
    for place in (path, tmp_path):
        with pytest.raises(BadInput, match=r"op\.mp4: found the video to look at, expected another place for the film"):
            run(FindsWhite(), path, tmp_path / "f.csv", film=place)
    assert path.read_bytes() == before


def test_one_video_of_several_can_be_chosen(film: Film, tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    for name in ("a", "b"):
        film(f"ops/{name}.mp4", frames=3)
    assert run(FindsWhite(), tmp_path / "ops", tmp_path / "f.csv", videos=["b"]).frames == 3
    with pytest.raises(BadInput, match="found no video 'c', expected one of a, b"):
        run(FindsWhite(), tmp_path / "ops", tmp_path / "f.csv", videos=["c"])


def test_what_could_not_be_written_is_refused_before_the_work(images: Path, tmp_path: Path) -> None:
    network = FindsWhite()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for out, settings, film, said in [
        (tmp_path / "a.txt", DetectSettings(), None, r"found suffix '\.txt'"),
        (tmp_path / "a.json", DetectSettings(components="heads"), None, "found components of the heads"),
        (tmp_path / "full", DetectSettings(), None, "found something there already"),
        (tmp_path / "a.csv", DetectSettings(), tmp_path / "a.avi", r"found suffix '\.avi', expected \.mp4"),
    ]:
        with pytest.raises(BadInput, match=said):
            run(network, images, out, settings, film=film)
    assert network.calls == 0


def frame(name: str = "000001") -> Frame:
    return Frame("VID01", name, 1, None, None, 64, 48)


def test_components_of_the_heads_are_their_own_choice() -> None:
    classes = Classes.of(SPACE)
    heads = {head: torch.zeros(1, count) for head, count in classes.counts.items()}
    heads["v"][0, 7] = 1.0
    found = Found(torch.tensor([[1.0, 2.0, 31.0, 42.0]]), torch.tensor([0.5]), torch.tensor([17]), heads)
    own = detection_table([(frame(), found)], classes, components="heads")
    assert own.select("triplet", "instrument", "verb", "target", "components").row(0) == (17, 0, 7, 0, "heads")
    usual = detection_table([(frame(), found)], classes)
    assert usual.select("triplet", "instrument", "verb", "target").row(0) == (17, *SPACE.triplets[17])
    lean = Found(found.boxes, found.scores, found.classes, {"ivt": heads["ivt"]})
    with pytest.raises(BadInput, match="found a detector without heads for instrument, verb and target"):
        detection_table([(frame(), lean)], classes, components="heads")


def test_a_detector_of_instruments_names_no_triplet(images: Path, tmp_path: Path) -> None:
    network = FindsWhite(space=load_labels("cholec80"))
    run(network, images, tmp_path / "found.csv")
    truth = ground_truth(open_source(images, network.space).dataset)
    table = read_detections(tmp_path / "found.csv", truth).table
    assert table.select("triplet", "instrument", "verb", "target").row(0) == (-1, 0, -1, -1)
    assert join(table, truth).predictions.classes["i"].tolist() == []  # no frame is labelled


def test_a_run_that_finds_nothing_at_all_is_a_table_all_the_same(images: Path, tmp_path: Path) -> None:
    dark = (images / "004.png").read_bytes()
    for path in images.glob("*.png"):
        path.write_bytes(dark)
    done = run(FindsWhite(), images, tmp_path / "found.parquet")
    assert (done.frames, done.boxes) == (5, 0)
    assert pl.read_parquet(tmp_path / "found.parquet")["score"].to_list() == [None] * 5
