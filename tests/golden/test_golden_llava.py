"""Golden LLaVA data under `--golden DIR`: folders with tokens.npz (attention, gradients, maps) and geometry files.

Files are found by pattern; an absent kind is not a failure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surgeval.explain import Paste, joined_map, token_maps
from surgeval.models import Generated, Preparation
from surgeval.models.llava import Llava, load_network

LLAVA: dict[str, Any] = {"image_processor_type": "LlavaImageProcessor"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen = metafunc.config.getoption("--golden")
    folder = (Path(str(chosen)) if chosen else Path(__file__).parents[1] / "data" / "golden") / "xai"
    if "frame_case" in metafunc.fixturenames:
        cases = [row for file in sorted(folder.glob("llava_geometry*.json")) for row in json.loads(file.read_bytes())]
        names = [f"{row['case']}-{'padded' if row['do_pad'] else 'cropped'}" for row in cases]
        metafunc.parametrize("frame_case", cases, ids=names)
    if "llava_folder" in metafunc.fixturenames:
        folders = sorted(path.parent for path in folder.glob("*/tokens.npz"))
        metafunc.parametrize("llava_folder", folders, ids=[path.name for path in folders])


def _picture(width: int, height: int, shift: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    planes = [
        127.5 + 100 * np.sin(2 * np.pi * ((c + 1) * x / width + (shift + c) * y / height))
        + 27 * ((x // 8 + y // 8 + c) % 2)
        for c in range(3)
    ]  # fmt: skip
    return np.asarray(np.clip(np.stack(planes, axis=-1), 0, 255), np.uint8)  # cuts, as floor does


def test_a_frame_becomes_the_golden_pixels_and_its_window_is_the_golden_one(frame_case: dict[str, Any]) -> None:
    width, height = frame_case["size_wh"]
    crop = frame_case["crop"]
    prep = Preparation.from_processor(LLAVA | {"do_pad": frame_case["do_pad"], "crop_size": crop,
                                               "size": {"shortest_edge": frame_case["shortest_edge"]}})  # fmt: skip
    view = prep.view(height, width)
    np.testing.assert_allclose(view.window, frame_case["window_xyxy"], atol=1e-9)
    assert view.fraction == pytest.approx(frame_case["frame_fraction_seen"], abs=1e-9)
    assert view.padding == pytest.approx(frame_case["padding_fraction_of_input"], abs=1e-9)
    x1, y1, x2, y2 = view.window
    across, down = crop / (x2 - x1), crop / (y2 - y1)
    np.testing.assert_allclose((across, down), frame_case["scale_xy"], atol=1e-9)
    left, top, right, bottom = view.inside
    inside = ((left - x1) * across, (top - y1) * down, (right - x1) * across, (bottom - y1) * down)
    np.testing.assert_allclose(inside, frame_case["frame_in_input_xyxy"], atol=1e-9)
    side = round(frame_case["tokens"] ** 0.5)
    assert int(view.frame_cells(side, side).sum()) == frame_case["tokens_touching_the_frame"]
    assert Paste.of(view, (side, side)).shape[0] <= height  # a window larger than the frame has no pixels beyond it

    pixels = prep(_picture(width, height, frame_case["s"])).astype(np.float64)
    np.testing.assert_allclose(pixels.mean((1, 2)), frame_case["mean_per_channel"], atol=1e-4)
    block = frame_case["block"]
    squares = pixels.reshape(3, crop // block, block, crop // block, block).mean((2, 4))
    np.testing.assert_allclose(squares.mean(0), frame_case["block_mean_luma"], atol=1e-4)
    np.testing.assert_allclose(squares[0, 0], frame_case["block_mean_red_row0"], atol=1e-4)
    middle, last = crop // 2, crop - 1
    for name, (row, column) in {"top_left": (0, 0), "top_right": (0, last), "bottom_left": (last, 0),
                                "bottom_right": (last, last), "centre": (middle, middle)}.items():  # fmt: skip
        np.testing.assert_allclose(pixels[:, row, column], frame_case["corners"][name], atol=1e-4)


@pytest.fixture
def llava(llava_folder: Path) -> tuple[Llava, dict[str, Any], dict[str, Any]]:
    with np.load(llava_folder / "tokens.npz", allow_pickle=False) as arrays:
        stored = {name: arrays[name] for name in arrays.files}
    facts = json.loads((llava_folder / "tokens.json").read_bytes())
    network, _, _ = load_network(llava_folder)  # without a tokenizer
    side = facts["image_size"]
    model = Llava(network, None, tuple(facts["grid"]), name="golden", family="llava", identity="golden",
                  preparation=Preparation((side, side)))  # fmt: skip
    return model, stored, facts


def _asked(facts: dict[str, Any]) -> Generated:
    return Generated("", (), (), facts["prompt_length"], tuple(facts["input_ids"]), (tuple(facts["image_span"]),))


def test_a_golden_llava_generates_and_attends_as_expected(llava: Any) -> None:
    model, stored, facts = llava
    pixels = torch.from_numpy(stored["pixel_values"])
    question = _asked(facts)
    tokens, _ = model._decoder.generate(model._features([[pixels]]), [question], len(facts["generated"]), ())
    assert tokens == [facts["generated"]]
    reply = question.with_reply(facts["generated"])
    assert [reply.predicted_at(k) for k in range(len(reply.tokens))] == facts["predicting_rows"]
    seen = model.replay([[pixels]], [reply])
    np.testing.assert_allclose(seen.attention_of(0).numpy(), stored["attention"], atol=1e-5)
    np.testing.assert_allclose(seen.hidden[0].detach().numpy(), stored["generated/hidden"], atol=1e-4)
    np.testing.assert_allclose(seen.logits[0].detach().numpy(), stored["generated_logits"], atol=1e-4)


def test_token_maps_of_a_golden_llava_are_the_golden_ones(llava: Any) -> None:
    model, stored, facts = llava
    pixels = torch.from_numpy(stored["pixel_values"])
    runs = {"generated": facts["generated"], **{f"forced{n}": row for n, row in enumerate(facts["forced"], start=1)}}
    replies = [_asked(facts).with_reply(tokens) for tokens in runs.values()]
    together = token_maps(model, [[pixels]] * len(replies), replies)  # replies of other lengths in one batch
    empty = {(one["run"], one["k"]): one["empty"] for one in facts["maps"]}
    for (run, tokens), maps, reply in zip(runs.items(), together, replies, strict=True):
        seen = model.replay([[pixels]], [reply])
        np.testing.assert_allclose(seen.hidden[0].detach().numpy(), stored[f"{run}/hidden"], atol=1e-4)
        for k, token in enumerate(tokens):
            (gradient,) = torch.autograd.grad(seen.logits[0, k, token], [seen.hidden], retain_graph=True)
            np.testing.assert_allclose(gradient[0].numpy(), stored[f"{run}/{k}/gradient"], atol=1e-5)
            np.testing.assert_allclose(maps.values[k].numpy(), stored[f"{run}/{k}/map"], atol=1e-5)
            assert bool(maps.empty[k]) == empty[run, k]
        for rule in ("mean", "max"):
            np.testing.assert_allclose(joined_map(maps.values, rule).numpy(), stored[f"{run}/{rule}_map"], atol=1e-5)
