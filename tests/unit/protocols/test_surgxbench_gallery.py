"""The pictures of a run and of `surgeval explain`: as many as asked, and words that can be read at any size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from surgeval.cli.app import run
from surgeval.errors import BadInput
from surgeval.figures.image_overlay import text_height, text_width
from surgeval.models import Preparation
from surgeval.protocols.surgxbench import Explained, explain_image
from surgeval.protocols.surgxbench.gallery.labels import fold, name_patches
from surgeval.protocols.surgxbench.gallery.legend import legend_band
from surgeval.protocols.surgxbench.gallery.pictures import _choose, side_by_side
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.records import Box, Frame, Instance, Triplet

pytestmark = pytest.mark.usefixtures("one_thread")
Pixels = npt.NDArray[np.uint8]
CLASSES = ("grasper", "bipolar", "hook")
GREEN = (70, 220, 90)
PROMPT = "The hook is in the image"


def _seen(width: int, height: int, boxes: list[tuple[float, float, float, float]]) -> PreparedFrame:
    """A black frame; boxes in shares of its size."""
    instances = tuple(
        Instance(Triplet(number % len(CLASSES), -1, -1), Box(x * width, y * height, w * width, h * height))
        for number, (x, y, w, h) in enumerate(boxes)
    )
    image = np.zeros((height, width, 3), np.uint8)
    preparation = Preparation((8, 8))
    frame = Frame("v", "1", 1, None, None, width, height, instances)
    return PreparedFrame(frame, image, preparation(image), preparation.view(height, width))


def _pair(width: int, height: int, boxes: list[tuple[float, float, float, float]]) -> tuple[Pixels, Pixels]:
    one = _seen(width, height, boxes)
    left, right = np.split(side_by_side(one, (one.image, one.image), CLASSES), 2, axis=1)
    return left, right


# boxes and their names


def test_names_are_as_large_in_a_large_frame_as_in_a_small_one() -> None:
    boxes = [(0.1, 0.3, 0.4, 0.4), (0.6, 0.5, 0.3, 0.3)]
    small, large = _pair(400, 200, boxes), _pair(1600, 800, boxes)
    assert small[0].shape == (210, 420, 3)
    assert (small[0] == large[0]).all() and (small[1] == large[1]).all()


def test_a_name_stands_in_dark_letters_on_a_filled_patch_in_the_first_picture_only() -> None:
    named, bare = _pair(840, 420, [(0.2, 0.5, 0.5, 0.4)])
    top, left = 105, 84
    patch = named[top - 18 : top - 4, left + 2 : left + 50]
    filled = (patch == GREEN).all(axis=2).mean()
    assert 0.5 < filled < 0.9
    assert (patch.max(axis=2) < 90).mean() > 0.05
    assert not bare[: top - 4].any()


def test_a_name_covers_no_small_box() -> None:
    """At the frame's edge it stands below one that is no larger than itself."""
    inside = _pair(840, 420, [(0.2, 0.0, 0.05, 0.04)])[0]
    assert not inside[4:6, 90:100].any()
    assert inside[14:30, 90:100].any()


@given(
    st.lists(st.tuples(st.floats(-50, 450), st.floats(-50, 250), st.sampled_from(["hook", "specimen_bag", "x" * 90])),
             max_size=12)
)  # fmt: skip
def test_no_name_hides_another_and_all_are_in_the_frame(given_names: list[tuple[float, float, str]]) -> None:
    image = np.zeros((236, 420, 3), np.uint8)
    places = name_patches(image, [name for *_, name in given_names], [(x, y) for x, y, _ in given_names], 17, GREEN)
    if len(given_names) <= 5:  # four patches of 23 rows cannot block all 236
        assert len(places) == len(given_names)
    covered = np.zeros((236, 420), int)
    for x1, y1, x2, y2 in places:
        assert 0 <= x1 < x2 <= 420 and 0 <= y1 < y2 <= 236
        covered[y1:y2, x1:x2] += 1
    assert covered.max(initial=0) <= 1


def test_names_of_boxes_that_lie_on_each_other_are_stacked_downwards() -> None:
    image = np.zeros((236, 420, 3), np.uint8)
    places = name_patches(image, ["grasper", "hook", "bag"], [(100, 50), (102, 52), (104, 54)], 17, GREEN)
    tops = [y1 for _, y1, _, _ in places]
    assert tops == [50, 50 + text_height(17), 50 + 2 * text_height(17)]
    assert [x1 for x1, *_ in places] == [100, 102, 104]


# as many as asked


def _cases(cells: dict[tuple[bool, bool], int], videos: int = 3) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for (right, grounded), count in cells.items():
        for _ in range(count):
            number = len(rows)
            rows.append({"task": "instruments", "predicted": True, "excluded": "", "cluster": f"v{number % videos}",
                         "frame": f"{number}", "class": "hook", "present": right, "grounded": grounded})  # fmt: skip
    return pl.DataFrame(rows)


MANY = {(True, False): 20, (False, True): 20, (True, True): 20, (False, False): 20}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 36])
def test_as_many_pictures_are_chosen_as_were_asked_for(count: int) -> None:
    chosen = _choose(_cases(MANY), count)
    assert len(chosen) == count == len({(row["cluster"], row["frame"]) for row in chosen})
    shares = [sum((row["present"], row["grounded"]) == cell for row in chosen) for cell in MANY]
    assert shares == sorted(shares, reverse=True) and shares[0] - shares[-1] <= 1  # right but ungrounded first


def test_where_a_cell_has_too_few_the_others_give_more() -> None:
    cases = _cases({(True, False): 1, (True, True): 20, (False, False): 2})
    chosen = _choose(cases, 12)
    found = [(row["present"], row["grounded"]) for row in chosen]
    assert [found.count(cell) for cell in ((True, False), (True, True), (False, False))] == [1, 9, 2]
    assert len({row["cluster"] for row in chosen}) == 3
    assert len(_choose(cases, 100)) == 23  # as far as there are


def test_a_frame_is_shown_once_with_what_is_right_but_ungrounded() -> None:
    cases = _cases({(True, True): 3, (True, False): 3}).with_columns(pl.col("frame").cast(int).mod(3).cast(str))
    chosen = _choose(cases, 3)
    assert len(chosen) == 3
    assert [row["grounded"] for row in chosen].count(False) >= 1
    assert not _choose(cases, 1)[0]["grounded"]


# one image


@given(st.text(min_size=1, max_size=700), st.integers(40, 500), st.integers(1, 4))
def test_folded_lines_fit_and_are_few(text: str, width: int, lines: int) -> None:
    found = fold(text, 14, width, lines)
    assert 1 <= len(found) <= lines
    assert all(text_width(line, 14) <= width for line in found)
    assert all(line.isprintable() for line in found)


def test_a_folded_text_keeps_its_words_or_ends_in_an_ellipsis() -> None:
    text = "I use a hook to dissect the cystic duct"
    assert " ".join(fold(text, 14, 150, 3)) == text
    assert fold(text, 14, 150, 2)[-1].endswith("…")
    assert "".join(fold("x" * 60, 14, 150, 9)) == "x" * 60


@pytest.fixture
def picture(tmp_path: Path) -> Any:
    def make(width: int, height: int) -> Path:
        noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / "frame.png")
        return tmp_path / "frame.png"

    return make


def _ink(shown: Pixels, height: int, left: int) -> tuple[int, int]:
    """Height and width of the words above a panel, in pixels."""
    dark = shown[: shown.shape[0] - height, left:].max(axis=2) < 128
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


def test_captions_grow_with_the_picture(picture: Any) -> None:
    small = explain_image(picture(480, 270), "phantom-clip", [PROMPT]).picture
    large = explain_image(picture(1920, 1080), "phantom-clip", [PROMPT]).picture
    assert small.shape[1] == 960 and large.shape[1] == 3840
    (high, wide), (higher, wider) = _ink(small, 270, 480), _ink(large, 1080, 1920)
    assert 2.5 < higher / high < 4.5 and 2.5 < wider / wide < 4.5
    assert higher > 1080 / 50  # a screen shows a fiftieth of its height as a line of text


def test_a_thumbnail_is_enlarged_until_its_caption_fits(picture: Any) -> None:
    found = explain_image(picture(60, 40), "phantom-clip", [PROMPT])
    assert isinstance(found, Explained)
    assert found.picture.shape[1] == 720
    assert _ink(found.picture, 240, 360)[1] > 150  # score and prompt
    assert found.prompts[0].area == pytest.approx(0.2, abs=0.01)  # measured in the image, not in the picture
    tall = explain_image(picture(20, 3000), "phantom-clip", [PROMPT]).picture
    legend = legend_band(720, 14).shape[0]
    assert tall.shape[1] == 720 and tall.shape[0] < 3100 + legend
    assert (tall[-100 - legend : -legend, 20:360] == 255).all()


def test_a_long_prompt_takes_lines_and_the_score_stays(picture: Any) -> None:
    path = picture(400, 200)
    short = explain_image(path, "phantom-clip", [PROMPT]).picture
    words = (
        "The laparoscopic surgeon performs coagulate with the electrode in the peritoneum of the abdominal cavity view"
    )
    long = explain_image(path, "phantom-clip", [words + " with scissors"]).picture
    lines = (long.shape[0] - short.shape[0]) // text_height(14)
    assert lines == 2  # three in all
    first = slice(0, text_height(14))
    same = (short[first, 400:470] == long[first, 400:470]).mean()
    assert same > 0.5
    assert (long[first, 400:470].max(axis=2) < 128).sum() > 40  # the digits


def test_five_prompts_stand_in_two_rows_each_with_its_own_band(picture: Any) -> None:
    path = picture(400, 200)
    prompts = [PROMPT, "the grasper", "the bipolar", "the clipper", "the scissors"]
    shown = explain_image(path, "phantom-clip", prompts).picture
    legend = legend_band(1200, 14)
    assert shown.shape == (2 * (200 + 7 + text_height(14)) + legend.shape[0], 1200, 3)
    assert (shown[-legend.shape[0] :] == legend).all()


def test_an_array_is_explained_as_the_file_is_and_one_prompt_needs_no_list(picture: Any) -> None:
    path = picture(120, 80)
    pixels = np.asarray(Image.open(path))
    for_file = explain_image(path, "phantom-clip", [PROMPT, "the grasper"])
    for_array = explain_image(pixels, "phantom-clip", PROMPT)
    assert isinstance(for_file, Explained)
    assert for_array.heatmap.shape == (80, 120) and for_array.heatmap.dtype == np.float32
    assert for_file.heatmaps.shape == (2, 80, 120) and np.allclose(for_file.heatmap, for_array.heatmap, rtol=1e-4)
    (row,) = for_array.to_frame().to_dicts()
    assert row["prompt"] == PROMPT and row["score"] == pytest.approx(for_file.prompts[0].score, abs=1e-6)
    top = for_array.heatmap >= np.quantile(for_array.heatmap, 1 - 0.2)
    assert top.mean() == pytest.approx(row["area"], abs=0.01)
    assert repr(for_array).startswith("Explained by phantom-clip: ") and PROMPT in repr(for_array)
    html = explain_image(pixels, "phantom-clip", "<b> hook")._repr_html_()
    assert "data:image/jpeg;base64," in html and "<b>" not in html
    assert for_array.plot().spec["height"] == for_array.picture.shape[0] and list(for_array.tables) == ["prompts"]


@pytest.mark.parametrize(
    "array",
    [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 3)), np.zeros((0, 8, 3), np.uint8), np.zeros((8, 8, 4), np.uint8)],
    ids=["grey", "floats", "empty", "alpha"],
)
def test_another_kind_of_array_is_refused(array: npt.NDArray[Any]) -> None:
    with pytest.raises(BadInput, match=r"image: found .* expected uint8 of \(height, width, 3\), RGB"):
        explain_image(array, "phantom-clip", PROMPT)


# words that the model does not know


def test_explain_tells_unknown_words_once_and_apart_from_the_numbers(
    picture: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["explain", str(picture(64, 64)), "--model", "phantom-clip", "--prompt"]
    assert run([*words, "The gauze is in the \x1b[31mimage"]) == 0
    shown = capsys.readouterr()
    assert "note" not in shown.out
    assert shown.err.splitlines() == [
        "note: phantom-clip does not know 'gauze', '\\x1b', '[', '31mimage' and reads each as the same unknown word"
    ]
    assert run([*words, PROMPT, "--prompt", "a zebra", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["unknown"] == ["zebra"]
    assert run([*words, PROMPT]) == 0
    assert capsys.readouterr().err == ""


def test_explain_refuses_prompts_that_the_model_reads_alike(
    picture: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = picture(64, 64)
    assert run(["explain", str(path), "--model", "phantom-clip", "--prompt", "a zebra", "--prompt", "a lion"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'a zebra' and 'a lion'" in line and "lacks 'zebra', 'lion'" in line
    assert [path.name for path in tmp_path.iterdir()] == ["frame.png"]


def test_a_pil_image_is_explained_like_its_array() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    shown = [explain_image(picture, "phantom-clip", "The hook is in the image")
             for picture in (pixels, Image.fromarray(pixels), Image.fromarray(pixels).convert("RGBA"))]  # fmt: skip
    assert np.array_equal(shown[0].heatmap, shown[1].heatmap, equal_nan=True)
    assert np.array_equal(shown[0].heatmap, shown[2].heatmap, equal_nan=True)
    with pytest.raises(BadInput, match="image: found dict, expected a file, an RGB array or a PIL image"):
        explain_image({}, "phantom-clip", "The hook is in the image")  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_a_large_picture_is_explained_in_less_than_a_gigabyte(tmp_path: Path) -> None:
    """24 million pixels; the most that is read is 67 million, which took 975 MB when this was written."""
    Image.new("RGB", (6000, 4000), (90, 40, 40)).save(tmp_path / "large.jpg")
    script = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from surgeval.cli.app import run\n"
        "run(['explain', sys.argv[1], '--model', 'phantom-clip', '--prompt', 'The hook is in the image',"
        " '--prompt', 'The grasper is in the image', '--out', sys.argv[2]])\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) // 1024)\n"
    )
    files = (tmp_path / "large.jpg", tmp_path / "large-heatmap.png")
    done = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < 1000  # 2000 with maps at the size of the picture
    with Image.open(tmp_path / "large-heatmap.png") as picture:
        assert picture.width == 3 * 2449  # the frame and two maps, 4 million pixels each
