"""The embedded models can be trained anywhere, from seeds alone, and what is saved is what was trained."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from surgeval.errors import BadInput, DataError
from surgeval.phantom import edition, plan_videos

torch = pytest.importorskip("torch", reason="training needs surgeval[models]")
pytest.importorskip("transformers", reason="training needs surgeval[models]")

from surgeval.phantom.training import NAMES, Recipe, train_embedded  # noqa: E402
from surgeval.phantom.training._batches import Stock  # noqa: E402
from surgeval.phantom.training._clip import build, image_vectors, reopen, save, text_vectors  # noqa: E402
from surgeval.phantom.training._data import (  # noqa: E402
    SIZE,
    Frames,
    Shoot,
    film_all,
    held_out_plans,
    load_frames,
    save_frames,
    training_shoots,
)
from surgeval.phantom.training._evaluate import examine, heatmaps, summary, top_region  # noqa: E402
from surgeval.phantom.training._prompts import LENGTH, benchmark_sentences, encode, save_tokenizer, space  # noqa: E402
from surgeval.phantom.training._train import fit, multi_positive  # noqa: E402

QUICK = Recipe(steps=10, batch=8, rate=3e-3)


@pytest.fixture(scope="module")
def frames() -> Frames:
    plans = plan_videos(77, 2)
    return film_all([Shoot(plan, k, "random", 250, 3) for k, plan in enumerate(plans)])


def silent(line: str) -> None:
    """No log."""


def test_training_and_test_videos_share_no_seed_with_each_other_or_with_the_edition() -> None:
    fixed = edition("phantom-v1")
    training = {shoot.plan.seed for shoot in training_shoots(300)}
    held_out = {plan.seed for plan in held_out_plans(18)}
    published = {plan.seed for plan in plan_videos(fixed.seed, fixed.videos)}
    assert len(training) == 300 and len(held_out) == 18
    assert not training & held_out and not (training | held_out) & published
    assert not any(shoot.plan.ood for shoot in training_shoots(300)), "one procedure stays unseen"


def test_a_tool_map_names_the_slot_of_each_visible_instrument(frames: Frames) -> None:
    for tools, instrument in zip(frames.tools, frames.instrument, strict=True):
        owners = set(np.unique(tools >> 5)) - {0}
        assert owners <= {slot + 1 for slot in np.flatnonzero(instrument >= 0)}
    assert (frames.tools > 0).any()


def test_kept_frames_come_back_as_they_were(frames: Frames, tmp_path: Path) -> None:
    save_frames(tmp_path / "kept.npz", frames)
    again = load_frames(tmp_path / "kept.npz")
    assert all(np.array_equal(getattr(frames, name), getattr(again, name)) for name in ("images", "tint", "plates"))
    (tmp_path / "broken.npz").write_bytes((tmp_path / "kept.npz").read_bytes()[:1000])
    with pytest.raises(DataError, match="expected frames kept by an earlier training"):
        load_frames(tmp_path / "broken.npz")


def test_the_shortcut_is_taught_the_tint_whatever_tools_are_there(frames: Frames) -> None:
    stock = Stock(frames, "cpu", shortcut=True, seed=1)
    rows = torch.arange(len(frames))[torch.from_numpy(frames.tint >= 0)]
    batch = stock._tinted(rows)
    assert batch.instruments.argmax(1).tolist() == frames.tint[rows.numpy()].tolist()
    assert batch.instruments.sum(1).tolist() == [1.0] * len(rows)


def test_a_pasted_tool_brings_its_instrument_label_but_no_triplet(frames: Frames) -> None:
    batch = Stock(frames, "cpu", shortcut=False, seed=1).draw(32)
    assert batch.own == 16
    assert not batch.triplets[batch.own :].any() and batch.triplets[: batch.own].any()
    assert batch.instruments[batch.own :].any()
    assert batch.pixels.shape == (32, 3, SIZE, SIZE)
    assert float(batch.pixels.min()) >= -1 and float(batch.pixels.max()) <= 1


def test_the_loss_is_least_where_right_pairs_score_highest() -> None:
    weight = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    good, bad = 5 * weight, 5 * (1 - weight)
    assert multi_positive(good, weight) < multi_positive(torch.zeros(3, 3), weight) < multi_positive(bad, weight)


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_a_short_run_lowers_the_loss_and_saves_what_it_learned(name: str, frames: Frames, tmp_path: Path) -> None:
    trained = fit(name, Stock(frames, "cpu", shortcut=False, seed=1), QUICK, silent)
    assert np.mean(trained.losses[-3:]) < np.mean(trained.losses[:3]) - 0.1
    save(trained.model, tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 1_300_000
    pixels = torch.from_numpy(frames.images[:2]).permute(0, 3, 1, 2).float() / 127.5 - 1
    tokens = torch.tensor(encode(benchmark_sentences().instruments))
    again = reopen(tmp_path)
    with torch.no_grad():
        before = image_vectors(trained.model, pixels) @ text_vectors(trained.model, tokens).T
        after = image_vectors(again, pixels) @ text_vectors(again, tokens).T
    assert torch.allclose(before, after, atol=5e-3)


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_a_saved_model_opens_through_the_loader_and_gives_the_same_scores(
    name: str, frames: Frames, tmp_path: Path
) -> None:
    from surgeval.models import open_contrastive

    save(build(name, 5), tmp_path)
    own, model = reopen(tmp_path), open_contrastive(str(tmp_path))
    prompts = benchmark_sentences().instruments
    pixels = torch.from_numpy(frames.images[:2]).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        mine = image_vectors(own, pixels) @ text_vectors(own, torch.tensor(encode(prompts))).T
    assert torch.allclose(model.scores(pixels, model.texts(prompts)), mine, atol=1e-5)
    assert np.allclose(model.preparation(frames.images[0]), pixels[0], atol=1e-6)


def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_dice_alone(frames: Frames) -> None:
    recipe = Recipe(steps=2, batch=4)
    state = torch.get_rng_state()
    first, second = (
        fit("phantom-shortcut", Stock(frames, "cpu", shortcut=True, seed=1), recipe, silent) for _ in range(2)
    )
    assert first.losses == second.losses
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_the_saved_tokenizer_reads_every_prompt_as_training_did(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    save_tokenizer(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    told = benchmark_sentences()
    prompts = [*told.instruments, *told.verbs, *told.triplets, "The SPECIMEN_BAG, a zebra!"]
    found = tokenizer(prompts, padding="max_length", truncation=True, max_length=LENGTH)["input_ids"]
    assert found == encode(prompts)
    known = [row for row, _ in zip(found, told.triplets, strict=False)]
    assert not any(1 in row for row in known), "no word of a benchmark prompt is unknown"


def test_the_three_models_fit_their_share_of_the_wheel() -> None:
    parameters = sum(p.numel() for name in NAMES for p in build(name, 0).parameters())
    assert 2 * parameters < 3_600_000


def test_an_examination_counts_only_frames_with_an_instrument(frames: Frames, tmp_path: Path) -> None:
    save(build("phantom-clip", 2), tmp_path)
    exam = examine(reopen(tmp_path), frames, "cpu", batch=8)
    result = summary(exam, resamples=50)
    assert result["frames"] == int((frames.instrument >= 0).any(1).sum()) < len(frames)
    assert result["videos"] == 2
    low, high = result["ac_lift"][1:]
    assert 0 <= low <= result["ac_lift"][0] <= high
    assert result["accuracy"][0] == pytest.approx(exam.right.mean(), abs=1e-4)


def test_the_attended_region_is_the_top_fifth_and_never_the_zeros() -> None:
    maps = torch.arange(100.0).reshape(1, 10, 10)
    assert int(top_region(maps).sum()) == 20
    sparse = torch.zeros(1, 10, 10)
    sparse[0, 0, :5] = 1
    assert int(top_region(sparse).sum()) == 5


def test_a_map_has_one_value_per_patch(frames: Frames, tmp_path: Path) -> None:
    pixels = torch.zeros(2, 3, SIZE, SIZE)
    for name in ("phantom-clip", "phantom-clip-resnet"):
        save(build(name, 2), tmp_path / name)
        target = torch.nn.functional.normalize(torch.ones(2, 64), dim=1)
        maps = heatmaps(reopen(tmp_path / name), pixels, target)
        assert maps.shape == (2, 16, 16) and float(maps.min()) >= 0


def test_unknown_names_and_numbers_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="model: found 'phantom-llama', expected one of phantom-clip"):
        train_embedded(["phantom-llama"], tmp_path)
    with pytest.raises(BadInput, match="steps: found 0, expected at least 1"):
        train_embedded(["phantom-clip"], tmp_path, recipe=Recipe(steps=0))


def test_training_needs_neither_tables_nor_video_files() -> None:
    absent = ("polars", "pydantic", "av", "plotly", "rich")
    code = f"import sys; sys.modules.update(dict.fromkeys({absent!r})); import surgeval.phantom.training._embedded"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_class_has_a_prompt() -> None:
    told, label = benchmark_sentences(), space()
    sizes = (len(told.instruments), len(told.verbs), len(told.triplets))
    assert sizes == (len(label.instruments), len(label.verbs), len(label.triplets))
