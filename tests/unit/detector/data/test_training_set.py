"""What becomes of a dataset's labels: every box is learned, or counted with the reason why not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image
from tests.unit.datasets.conftest import write_phantom
from tests.unit.detector.data.small_sets import (
    HEIGHT,
    SPACE,
    TOOLS,
    TRIPLETS,
    WIDTH,
    frame,
    instance,
    mixed_set,
    on_disk,
    picture,
    training_set,
)

from surgeval.datasets import MemoryDataset, convert, open_dataset, read_image
from surgeval.detector import Classes
from surgeval.detector.data import PLAIN, Augment, TrainingSet
from surgeval.detector.data.reading import FrameReader
from surgeval.detector.geometry import Fit
from surgeval.errors import BadInput, DataError
from surgeval.records import Box, Frame, ImageRef, Instance, Mask, Triplet
from surgeval.vocab import LabelSpace, load_labels


def test_two_triplets_on_one_box_are_one_row_with_two_marks() -> None:
    first, second = 17, next(k for k, t in enumerate(SPACE.triplets) if t[0] == SPACE.triplets[17][0] and k > 17)
    data = training_set([frame(1, [instance(first), instance(second), instance(first)])])
    sample = data.sample(0)
    assert np.flatnonzero(sample.labels["ivt"][0]).tolist() == [first, second]
    for head, column in (("i", 0), ("v", 1), ("t", 2)):
        ids = {SPACE.triplets[first][column], SPACE.triplets[second][column]}
        assert set(np.flatnonzero(sample.labels[head][0]).tolist()) == ids
    assert (data.problems["box-shared"], data.problems["box-repeated"]) == (1, 1)
    assert data.labels_per_box == 2


def test_two_instruments_on_one_box_stay_two_boxes() -> None:
    other = next(k for k, t in enumerate(SPACE.triplets) if t[0] != SPACE.triplets[17][0])
    data = training_set([frame(1, [instance(17), instance(other)])])
    assert len(data.boxes) == 2
    assert data.problems["box-shared"] == 0


def test_frames_without_labels_are_left_out_and_empty_ones_are_background() -> None:
    data = training_set([frame(1, [instance()]), frame(2, labelled=False), frame(3)])
    assert data.names == ("000001", "000003")
    assert data.problems["frame-unlabelled"] == 1
    assert data.problems.examples["frame-unlabelled"] == ("VID01/000002",)
    background = data.sample(1)
    assert background.boxes.shape == (0, 4)
    assert background.labels["ivt"].shape == (0, 100)


def test_boxes_past_the_edge_are_cut_and_counted() -> None:
    data = training_set([frame(1, [instance(box=(-4, 10, 20, 20)), instance(box=(80, 50, 30, 30))])])
    fit = Fit.of(HEIGHT, WIDTH, 96)
    wanted = fit.forward(np.array([[0, 10, 16, 30], [80, 50, 96, 64]], np.float64))
    assert np.allclose(data.boxes, wanted)
    assert np.allclose(data.sample(0).boxes, wanted)
    assert data.problems["box-outside"] == 2


@pytest.mark.parametrize("box", [(10, 10, 0, 5), (10, 10, 5, -1), (200, 10, 5, 5), (float("nan"), 1, 5, 5),
                                 (0, 0, float("inf"), 5), (96, 10, 5, 5)])  # fmt: skip
def test_boxes_without_area_are_left_out_and_counted(box: tuple[float, float, float, float]) -> None:
    data = training_set([frame(1, [instance(), instance(box=box)])])
    assert len(data.boxes) == 1
    assert data.problems["box-degenerate"] == 1


def test_triplets_that_are_no_class_are_left_out_and_counted() -> None:
    unknown = Instance(Triplet(0), Box(8, 8, 10, 10))
    odd = next(t for t in ((i, v, 0) for i in range(6) for v in range(10)) if SPACE.find(*t) < 0)
    data = training_set([frame(1, [instance(), unknown, Instance(Triplet(*odd), Box(1, 1, 9, 9))])])
    assert len(data.boxes) == 1
    assert data.problems["triplet-unknown"] == 2


def test_classes_are_found_by_name_where_the_label_spaces_differ() -> None:
    turned = LabelSpace("mine", ("Specimen-Bag", "HOOK", "spoon"))
    frames = [frame(1, [Instance(Triplet(k), Box(8, 8, 10 + k, 10)) for k in range(3)])]
    data = TrainingSet.of(MemoryDataset(turned, frames), TOOLS, image_size=96, read=lambda one: picture(one.index))
    names = load_labels("cholec80").instruments
    found = [names[int(np.flatnonzero(row)[0])].lower().replace("-", "").replace("_", "") for row in data.main]
    assert found == ["specimenbag", "hook"]
    assert data.problems["class-unknown"] == 1


def test_a_frame_with_an_instrument_that_has_no_box_is_left_out() -> None:
    data = training_set([frame(1, [instance()]), frame(2, [instance(), instance(box=None)])])
    assert data.names == ("000001",)
    assert data.problems["frame-unboxed"] == 1


def test_outlines_give_boxes_where_the_source_has_none() -> None:
    triplet = Triplet(*SPACE.triplets[17])
    shape = np.zeros((HEIGHT, WIDTH), bool)
    shape[10:20, 30:50] = True
    outlined = [Instance(triplet, mask=Mask.from_array(shape)), Instance(triplet, polygon=((1, 2), (9, 4), (5, 30)))]
    data = training_set([frame(1, outlined)])
    fit = Fit.of(HEIGHT, WIDTH, 96)
    assert np.allclose(data.boxes, fit.forward(np.array([[30, 10, 50, 20], [1, 2, 9, 30]], np.float64)))


def test_classes_that_never_occur_are_counted_and_named() -> None:
    data = training_set([frame(1, [instance()])])
    assert data.problems["class-absent"] == 99
    assert data.problems.examples["class-absent"][0] == SPACE.triplet_names[0]
    assert any("cannot learn" in line for line in data.problems.lines())


def test_the_instrument_task_needs_no_triplets() -> None:
    data = training_set([frame(1, [instance(17), Instance(Triplet(2), Box(40, 8, 20, 30))])],
                        Classes.of(SPACE, "instruments"))  # fmt: skip
    assert set(data.sample(0).labels) == {"i"}
    assert data.counts.sum() == 2


def test_no_box_at_all_is_refused_with_the_reasons() -> None:
    with pytest.raises(DataError, match=r"no box with a known triplet in 1 frames.*1 box whose triplet is no class"):
        training_set([frame(1, [Instance(Triplet(0), Box(8, 8, 10, 10))])])
    with pytest.raises(DataError, match="every frame is labelled as empty"):
        training_set([frame(1)])


def test_missing_and_broken_pictures_are_skipped_by_name(tmp_path: Path) -> None:
    source = on_disk(tmp_path, [(k, [instance()]) for k in range(20)])
    (tmp_path / "VID01" / "000003.png").unlink()
    file = tmp_path / "VID01" / "000007.png"
    file.write_bytes(file.read_bytes()[:200])
    data = TrainingSet.of(source, TRIPLETS, image_size=96, tolerance=0.2)
    assert len(data) == 18
    assert data.problems.examples["image-missing"] == ("VID01/000003",)
    assert data.problems.examples["image-broken"] == ("VID01/000007",)
    assert "000003" not in data.names and "000007" not in data.names
    with pytest.raises(DataError, match=r"2 labels or images that cannot be read beside 18 good frames.*000003\.png"):
        TrainingSet.of(source, TRIPLETS, image_size=96)


def test_a_picture_that_changes_during_training_is_named(tmp_path: Path) -> None:
    data = TrainingSet.of(on_disk(tmp_path, [(1, [instance()])]), TRIPLETS, image_size=96, cache_bytes=0)
    file = tmp_path / "VID01" / "000001.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    with pytest.raises(DataError, match=r"000001\.png: found a damaged image"):
        data.sample(0)
    Image.fromarray(picture(1, 50, 40)).save(file)
    with pytest.raises(DataError, match="found an image of 50 × 40 pixels, expected 96 × 64 as its labels say"):
        data.sample(0)
    file.unlink()
    with pytest.raises(DataError, match="no such file"):
        data.sample(0)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".tif"])
def test_reading_again_gives_the_same_pixels(tmp_path: Path, suffix: str) -> None:
    pixels = cv2.GaussianBlur(picture(3), (0, 0), 2)
    turned = Image.Exif()
    turned[0x0112] = 6  # "turn me by a quarter": boxes refer to the pixels as they are stored
    for mode in ("RGB", "L", "CMYK") if suffix in (".jpg", ".tif") else ("RGB", "L"):
        path = tmp_path / f"{mode}{suffix}"
        settings: dict[str, Any] = {"exif": turned} if suffix == ".jpg" else {}
        Image.fromarray(pixels).convert(mode).save(path, **settings)
        one = Frame("V1", mode, 1, None, ImageRef(path), WIDTH, HEIGHT)
        reader = FrameReader()
        first, again = reader(one), reader(one)
        assert (first == read_image(ImageRef(path))).all()
        assert (first == again).all()


def test_a_picture_of_another_size_than_its_labels_is_skipped() -> None:
    frames = [frame(k, [instance()]) for k in range(30)]
    frames[4] = replace(frames[4], width=2 * WIDTH)
    data = training_set(frames)
    assert data.problems.examples["image-size"] == ("VID01/000004",)
    assert len(data) == 29


def test_frames_without_a_picture_are_refused() -> None:
    with pytest.raises(DataError, match="no image"):
        TrainingSet.of([frame(1, [instance()])], TRIPLETS, image_size=96)


@pytest.mark.parametrize("format", ["cholect50", "yolo8", "labelme", "coco", "yolo5", "voc"])
def test_every_format_gives_the_same_training_set(tmp_path: Path, format: str) -> None:
    source = on_disk(tmp_path / "source", [(1, [instance(), instance(60, (40.5, 8.25, 20.75, 30.5))]), (2, []),
                                           (3, [instance(30)])])  # fmt: skip
    convert(source, tmp_path / format, format)
    opened = open_dataset(tmp_path / format, labels=SPACE if format.startswith("yolo") else None)
    classes = Classes.of(SPACE, "instruments" if format == "voc" else "triplets")
    wanted = TrainingSet.of(source, classes, image_size=64)
    data = TrainingSet.of(opened, classes, image_size=64)
    assert len(data) == 3
    assert np.allclose(data.boxes, wanted.boxes, atol=0.01)
    assert (data.main == wanted.main).all()
    assert not {"triplet-unknown", "class-unknown", "image-missing", "frame-unlabelled"} & data.problems.counts.keys()
    difference = np.abs(data.sample(0).image.astype(int) - wanted.sample(0).image)
    assert difference.max() == 0  # pictures are copied as they are


def test_what_the_phantom_shows_is_learned_but_for_the_bag(tmp_path: Path) -> None:
    opened = open_dataset(write_phantom(tmp_path / "phantom"))
    data = TrainingSet.of(opened, Classes.of(opened.space), image_size=96)
    assert (len(data), len(data.boxes), data.problems["triplet-unknown"]) == (4, 4, 4)  # a bag does nothing
    data = TrainingSet.of(opened, Classes.of(opened.space, "instruments"), image_size=96)
    assert (len(data.boxes), data.problems["triplet-unknown"]) == (8, 0)


def test_an_empty_yolo_file_is_background_and_a_missing_one_no_label(tmp_path: Path) -> None:
    source = on_disk(tmp_path / "source", [(k, [instance()]) for k in range(1, 4)])
    convert(source, tmp_path / "yolo", "yolo8")
    empty, gone = sorted((tmp_path / "yolo" / "labels").rglob("*.txt"))[1:3]
    empty.write_text("")
    gone.unlink()
    data = TrainingSet.of(open_dataset(tmp_path / "yolo", labels=SPACE), TRIPLETS, image_size=64)
    assert np.diff(data.offsets).tolist() == [1, 0]
    assert data.problems["frame-unlabelled"] == 1


def test_lines_that_the_reader_refuses_are_named_with_their_file(tmp_path: Path) -> None:
    source = on_disk(tmp_path / "source", [(k, [instance()]) for k in range(1, 3)])
    convert(source, tmp_path / "yolo", "yolo8")
    first, second = sorted((tmp_path / "yolo" / "labels").rglob("*.txt"))
    first.write_text(first.read_text() + "250 0 1 0 0.5 0.5 0.1 0.1\n")
    second.write_text(second.read_text() + "17 0 1 0 1.5 0.5 0.1 0.1\n")
    opened = open_dataset(tmp_path / "yolo", labels=SPACE)
    data = TrainingSet.of(opened, TRIPLETS, image_size=64, tolerance=1.0)
    one, two = (file.relative_to(tmp_path / "yolo") for file in (first, second))
    said = list(data.problems.lines())
    assert f"1 box of a class that the detector does not know: left out ({one}: line 2)" in said
    assert f"1 box outside the frame: left out ({two}: line 2)" in said


def test_a_broken_label_file_is_counted_against_the_tolerance(tmp_path: Path) -> None:
    source = on_disk(tmp_path / "source", [(k, [instance()]) for k in range(1, 6)])
    convert(source, tmp_path / "voc", "voc")
    sorted((tmp_path / "voc" / "Annotations").rglob("*.xml"))[2].write_text("<annotation")
    opened = open_dataset(tmp_path / "voc")
    with pytest.raises(DataError, match="1 labels or images that cannot be read beside 4 good frames"):
        TrainingSet.of(opened, Classes.of(SPACE, "instruments"), image_size=64)
    data = TrainingSet.of(opened, Classes.of(SPACE, "instruments"), image_size=64, tolerance=0.25)
    assert (len(data), data.problems["file-broken"]) == (4, 1)


def test_frames_of_a_video_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "op.mp4"
    film = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25, (96, 64))
    for k in range(40):
        film.write(np.full((64, 96, 3), 6 * k, np.uint8))
    film.release()
    frames = [Frame("op", str(n), n, None, ImageRef(path, n), 96, 64, (instance(),)) for n in (35, 3, 20)]
    for cache in (0, 1 << 20):
        data = TrainingSet.of(frames, TRIPLETS, image_size=96, cache_bytes=cache)
        assert [abs(int(data.sample(k).image[48, 48, 0]) - 6 * n) < 6 for k, n in enumerate((35, 3, 20))] == [True] * 3


def test_memory_is_bounded_and_does_not_change_what_is_seen(tmp_path: Path) -> None:
    source = on_disk(tmp_path, [(k, [instance()]) for k in range(6)])
    one = 96 * 64 * 3
    small = TrainingSet.of(source, TRIPLETS, image_size=96, cache_bytes=2 * one + 5)
    large = TrainingSet.of(source, TRIPLETS, image_size=96)
    kept = [sum(image.nbytes for image in data.pictures.cached.values()) for data in (small, large)]
    assert kept == [2 * one, 6 * one]
    for k in range(6):
        assert (small.sample(k, 1, 0, Augment()).image == large.sample(k, 1, 0, Augment()).image).all()


def test_a_plain_sample_is_the_letterbox() -> None:
    for size in (64, 96, 160):
        data = training_set([frame(k, [instance()]) for k in range(2)], size=size)
        fit = Fit.of(HEIGHT, WIDTH, size)
        assert (data.sample(1, 5, 3, PLAIN).image == fit.image(picture(1), 114)).all()
        assert np.allclose(data.sample(1).boxes, fit.forward(np.array([[8, 16, 32, 48]], np.float64)))


def test_padding_is_black_for_prostatd_and_grey_otherwise() -> None:
    space = load_labels("prostatd")
    tool = Instance(Triplet(*space.triplets[0]), Box(8, 16, 24, 32))
    data = training_set([frame(1, [tool])], Classes.of(space))
    assert (data.fill, mixed_set().fill, training_set([frame(1, [instance()])], fill=7).fill) == (0, 114, 7)
    assert not data.sample(0).image[0].any()
    with pytest.raises(BadInput, match="fill: found 256"):
        training_set([frame(1, [instance()])], fill=256)


def test_some_videos_only(tmp_path: Path) -> None:
    data = mixed_set()
    half = data.of_videos(["VID02"])
    assert set(half.videos) == {"VID02"} and len(half) == 6
    assert half.problems["class-absent"] == int((half.counts == 0).sum()) > data.problems["class-absent"]
    for k, index in enumerate(np.flatnonzero(np.array(data.videos) == "VID02")):
        one, other = half.sample(k), data.sample(int(index))
        assert (one.image == other.image).all() and (one.boxes == other.boxes).all()
        assert (one.labels["ivt"] == other.labels["ivt"]).all()
    with pytest.raises(BadInput, match="VID09"):
        data.of_videos(["VID09"])
    source = on_disk(tmp_path, [(1, [instance()])])
    with pytest.raises(BadInput, match="found no video 'VID09', expected one of VID01"):
        TrainingSet.of(source, TRIPLETS, image_size=96, videos=["VID09"])


def test_the_fingerprint_changes_with_what_is_learned() -> None:
    base = training_set([frame(1, [instance()]), frame(2)])
    assert base.fingerprint == training_set([frame(1, [instance()]), frame(2)]).fingerprint
    others = [training_set([frame(1, [instance(18)]), frame(2)]), training_set([frame(1, [instance()]), frame(3)]),
              training_set([frame(1, [instance(box=(8, 16, 24, 31))]), frame(2)]),
              training_set([frame(1, [instance()]), frame(2)], size=64),
              training_set([frame(1, [instance()]), frame(2)], fill=0)]  # fmt: skip
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 6


@pytest.mark.parametrize("size", [0, 31, 100, 8192])
def test_sizes_that_the_network_cannot_take_are_refused(size: int) -> None:
    with pytest.raises(BadInput, match="expected a multiple of 32"):
        training_set([frame(1, [instance()])], size=size)
