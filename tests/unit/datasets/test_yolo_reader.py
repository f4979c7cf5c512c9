from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from surgeval.datasets import open_dataset
from surgeval.records import Box, Triplet
from surgeval.vocab import load_labels

PROSTATD = load_labels("prostatd")


def put(root: Path, text: str | bytes, stem: str = "pwhv1_000100", split: str = "train") -> Path:
    for folder in ("labels", "images"):
        (root / folder / split).mkdir(parents=True, exist_ok=True)
    (root / "labels" / split / f"{stem}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    Image.new("RGB", (80, 40)).save(root / "images" / split / f"{stem}.jpg")
    return root


def line(number: int = 20, **changes: Any) -> str:
    i, v, t = PROSTATD.triplets[number]
    fields = {"n": number, "i": i, "v": v, "t": t, "cx": 0.5, "cy": 0.5, "w": 0.25, "h": 0.5} | changes
    return " ".join(str(value) for value in fields.values()) + "\n"


def test_eight_fields_are_prostatd_s(tmp_path: Path) -> None:
    dataset = open_dataset(put(tmp_path, line()))
    frame = next(iter(dataset.frames("pwhv1")))
    assert dataset.space is PROSTATD
    assert dataset.videos()[0].split == "train"
    assert frame.instances[0].triplet == Triplet(*PROSTATD.triplets[20])
    assert frame.instances[0].box == Box(30, 10, 20, 20)


def test_five_fields_are_triplets_where_the_space_has_triplets_else_instruments(tmp_path: Path) -> None:
    put(tmp_path, "3 0.5 0.5 0.25 0.5\n")
    plain = open_dataset(tmp_path)
    assert plain.space.instruments == ("class 0", "class 1", "class 2", "class 3")
    assert next(iter(plain.frames("pwhv1"))).instances[0].triplet == Triplet(3)
    triplets = open_dataset(tmp_path, labels=PROSTATD)
    assert next(iter(triplets.frames("pwhv1"))).instances[0].triplet == Triplet(*PROSTATD.triplets[3])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.yaml", "path: x\nnames: [Grasper, 'Hook']\n"),
        ("data.yaml", "nc: 2\nnames:\n  0: Grasper\n  1: Hook  # comment\n"),
        ("data.yaml", "names:\n- Grasper\n- Hook\ntrain: images\n"),
        ("classes.txt", "Grasper\nHook\n"),
    ],
)
def test_class_names_come_from_the_file_beside(tmp_path: Path, name: str, text: str) -> None:
    put(tmp_path, "1 0.5 0.5 0.25 0.5\n")
    (tmp_path / name).write_text(text)
    assert open_dataset(tmp_path).space.instruments == ("Grasper", "Hook")


def test_prostatd_s_own_yaml_names_give_prostatd(tmp_path: Path) -> None:
    put(tmp_path, "1 0.5 0.5 0.25 0.5\n")
    names = [f"  {k}: {name.replace(',', '_')}" for k, name in enumerate(PROSTATD.triplet_names)]
    (tmp_path / "dataset_triplet.yaml").write_text("\n".join(["nc: 89", "names:", *names]))
    assert open_dataset(tmp_path).space is PROSTATD


def test_an_empty_file_is_a_labelled_frame_without_instruments(tmp_path: Path) -> None:
    put(tmp_path, line(), stem="pwhv1_000050")
    frames = list(open_dataset(put(tmp_path, "\n")).frames("pwhv1"))
    assert [(len(frame.instances), frame.labelled) for frame in frames] == [(1, True), (0, True)]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("20 0.5 0.5 0.25 0.5 0.93\n", "wrong-shape", "6 fields are a prediction"),
        ("20 0.5 0.5 0.25\n", "wrong-shape", "4 fields"),
        (line(n=89), "class-unknown", "triplet: found 89"),
        (line(n=1.5), "class-unknown", "triplet: found 1.5"),
        (line(v=9), "triplet-inconsistent", "verb"),
        (line(n=-1, v=0, t=8), "triplet-unknown", "(scissors, retract, fluid)"),
        (line(n=-1, i=-1, v=-1, t=-1), "class-unknown", "instrument"),
        (line(cx="nan"), "not-finite", "cx: found NaN"),
        (line(cx="half"), "not-a-number", "'half'"),
        (line(w=0), "box-degenerate", "0 × 20"),
        (line(cx=5), "box-off-frame", "touches"),
        (line(cx=0.9), "box-outside", "inside the 80 × 40"),
        (b"\xff\xfe\x00\x01", "file-broken", "UTF-8"),
    ],
)
def test_each_wrong_value_is_named_with_file_and_line(
    tmp_path: Path, heard: Any, read: Callable[..., Any], text: str | bytes, kind: str, words: str
) -> None:
    put(tmp_path, line(), stem="pwhv1_000001")
    frames = read(open_dataset(put(tmp_path, text), labels=PROSTATD), heard)
    assert [problem.kind for problem in heard] == [kind], list(map(str, heard))
    assert "pwhv1_000100.txt" in str(heard[0])
    assert words in str(heard[0])
    assert frames[0].name == "000001"


def test_an_instrument_without_triplet_is_held_by_eight_fields(tmp_path: Path) -> None:
    frame = next(iter(open_dataset(put(tmp_path, line(n=-1, i=6, v=-1, t=-1))).frames("pwhv1")))
    assert frame.instances[0].triplet == Triplet(6)


def test_labels_without_images_are_read_in_a_nominal_frame(
    tmp_path: Path, heard: Any, read: Callable[..., Any]
) -> None:
    put(tmp_path, line())
    for image in (tmp_path / "images" / "train").iterdir():
        image.unlink()
    (frame,) = read(open_dataset(tmp_path), heard)
    assert frame.image is None
    assert frame.instances[0].box == Box(240, 160, 160, 320)
    assert [problem.kind for problem in heard] == ["images-absent"]


def test_a_word_for_a_number_is_quoted_once(tmp_path: Path, heard: Any, read: Callable[..., Any]) -> None:
    read(open_dataset(put(tmp_path, line(cx="null"))), heard)
    assert "cx: found 'null', expected a number" in heard.of("not-a-number")[0]
