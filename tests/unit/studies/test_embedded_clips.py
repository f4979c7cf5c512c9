"""The embedded models can be trained anywhere, from seeds alone, and what is saved is what was trained."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from surgeval.errors import BadInput, DataError
from surgeval.phantom import edition, plan_videos

torch = pytest.importorskip("torch", reason="training needs surgeval[models]")
pytest.importorskip("transformers", reason="training needs surgeval[models]")

from studies.embedded_models.__main__ import main, train_embedded  # noqa: E402
from studies.embedded_models.clip import (  # noqa: E402
    BatchSampler,
    TrainingBatch,
    build_clip,
    contrastive_loss,
    image_vectors,
    save_clip,
    text_vectors,
    train_clip,
)
from studies.embedded_models.examine import (  # noqa: E402
    Examination,
    compare_models,
    examine_model,
    heatmaps,
    measure_examination,
    print_comparison,
    top_share,
)
from studies.embedded_models.prompts import LENGTH, benchmark_sentences, encode, save_prompt_tokenizer, space  # noqa: E402
from studies.embedded_models.recipes import CLIPS, NAMES, RECIPES, Recipe, recipe_for  # noqa: E402
from studies.embedded_models.render import (  # noqa: E402  # noqa: E402
    SIZE,
    Frames,
    RenderJob,
    first_videos,
    held_out_plans,
    load_frames,
    plan_training,
    render_video,
    save_frames,
)

from surgeval.models import open_contrastive  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]  # the study is not part of the package


@pytest.fixture(scope="module")
def frames() -> Frames:
    """Six frames and two plates of one video."""
    return render_video(RenderJob(plan_videos(77, 1)[0], 0, "random", 250, 3))


@pytest.fixture(scope="module")
def two_videos(frames: Frames) -> Frames:
    """The same frames told to be those of two videos."""
    return replace(frames, video=np.arange(len(frames), dtype=np.int32) // 3)


@pytest.fixture(scope="module")
def exam(two_videos: Frames) -> Examination:
    """What `phantom-clip` makes of them."""
    return examine_model(open_contrastive("phantom-clip"), two_videos)


class SameBatch(BatchSampler):
    """A stock that shows one batch again and again."""

    def draw(self, count: int) -> TrainingBatch:
        if not hasattr(self, "batch"):
            self.batch = super().draw(count)
        return self.batch


def silent(line: str) -> None:
    """No log."""


def test_training_and_test_videos_share_no_seed_with_each_other_or_with_the_edition() -> None:
    fixed = edition("phantom-v1")
    training = {shoot.plan.seed for shoot in plan_training(300)}
    held_out = {plan.seed for plan in held_out_plans(18)}
    published = {plan.seed for plan in plan_videos(fixed.seed, fixed.videos)}
    assert len(training) == 300 and len(held_out) == 18
    assert not training & held_out and not (training | held_out) & published
    assert not any(shoot.plan.ood for shoot in plan_training(300)), "one procedure stays unseen"


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
    with pytest.raises(DataError, match="not a file of stored frames"):
        load_frames(tmp_path / "broken.npz")


def test_the_shortcut_is_taught_the_tint_whatever_tools_are_there(frames: Frames) -> None:
    stock = BatchSampler(frames, "cpu", shortcut=True, seed=1)
    rows = torch.arange(len(frames))[torch.from_numpy(frames.tint >= 0)]
    batch = stock._shortcut_batch(rows)
    assert batch.instruments.argmax(1).tolist() == frames.tint[rows.numpy()].tolist()
    assert batch.instruments.sum(1).tolist() == [1.0] * len(rows)


def test_a_pasted_tool_brings_its_instrument_label_but_no_triplet(frames: Frames) -> None:
    batch = BatchSampler(frames, "cpu", shortcut=False, seed=1).draw(32)
    assert batch.own == 16
    assert not batch.triplets[batch.own :].any() and batch.triplets[: batch.own].any()
    assert batch.instruments[batch.own :].any()
    assert batch.pixels.shape == (32, 3, SIZE, SIZE)
    assert float(batch.pixels.min()) >= -1 and float(batch.pixels.max()) <= 1


def test_the_loss_is_least_where_right_pairs_score_highest() -> None:
    weight = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    good, bad = 5 * weight, 5 * (1 - weight)
    assert contrastive_loss(good, weight) < contrastive_loss(torch.zeros(3, 3), weight) < contrastive_loss(bad, weight)


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_a_short_run_learns_its_batch_and_the_loader_opens_what_it_learned(
    name: str, frames: Frames, tmp_path: Path
) -> None:
    stock = SameBatch(frames, "cpu", shortcut=False, seed=1)
    trained = train_clip(name, stock, Recipe(steps=6, batch=4, rate=3e-3), silent)
    assert len(trained.losses) == 6
    assert trained.losses[-1] < trained.losses[0] - 0.5
    save_clip(trained.model, tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 1_300_000
    prompts = benchmark_sentences().instruments
    pixels = torch.from_numpy(frames.images[:2]).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        exact = image_vectors(trained.model, pixels) @ text_vectors(trained.model, torch.tensor(encode(prompts))).T
        halved = trained.model.half().float()
        mine = image_vectors(halved, pixels) @ text_vectors(halved, torch.tensor(encode(prompts))).T
    opened = open_contrastive(str(tmp_path))
    scores = opened.scores(pixels, opened.texts(prompts))
    assert torch.allclose(scores, mine, atol=1e-5), "the loader reads the weights as they were saved"
    assert torch.allclose(scores, exact, atol=5e-3), "fp16 costs nothing that matters"
    assert np.allclose(opened.preparation(frames.images[0]), pixels[0], atol=1e-6)


def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_dice_alone(frames: Frames) -> None:
    recipe = Recipe(steps=2, batch=4)
    state = torch.get_rng_state()
    first, second = (
        train_clip("phantom-shortcut", BatchSampler(frames, "cpu", shortcut=True, seed=1), recipe, silent)
        for _ in range(2)
    )
    assert first.losses == second.losses
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_the_saved_tokenizer_reads_every_prompt_as_training_did(tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    save_prompt_tokenizer(tmp_path)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    told = benchmark_sentences()
    prompts = [*told.instruments, *told.verbs, *told.triplets, "The SPECIMEN_BAG, a zebra!"]
    found = tokenizer(prompts, padding="max_length", truncation=True, max_length=LENGTH)["input_ids"]
    assert found == encode(prompts)
    known = [row for row, _ in zip(found, told.triplets, strict=False)]
    assert not any(1 in row for row in known), "no word of a benchmark prompt is unknown"


def test_the_three_models_fit_their_share_of_the_wheel() -> None:
    parameters = sum(p.numel() for name in CLIPS for p in build_clip(name, 0).parameters())
    assert 2 * parameters < 3_600_000


def test_an_examination_counts_only_frames_with_an_instrument(two_videos: Frames, exam: Examination) -> None:
    found = measure_examination(exam)
    assert found["accuracy"].n == int((two_videos.instrument >= 0).any(1).sum()) < len(two_videos)
    assert found["accuracy"].clusters == 2
    lift = found["ac_lift"]
    assert 0 <= lift.low <= lift.estimate <= lift.high
    assert lift.estimate == pytest.approx(exam.inside.mean() / exam.chance.mean())


def test_macro_f1_is_the_mean_over_the_classes_that_occur(exam: Examination) -> None:
    each = []
    for k in np.flatnonzero(exam.present.any(0)):
        said, there = exam.guess == k, exam.present[:, k]
        each.append(2 * (said & there).sum() / (said.sum() + there.sum()))
    assert measure_examination(exam)["macro_f1"].estimate == pytest.approx(np.mean(each))


def test_the_batch_size_of_an_examination_changes_nothing(two_videos: Frames, exam: Examination) -> None:
    whole, parts = exam, examine_model(open_contrastive("phantom-clip"), two_videos, batch=2)
    for name in ("guess", "right_without_other", "right_without_attended", "triplet_top5"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name), equal_nan=True), name
    assert np.allclose(whole.inside, parts.inside, atol=1e-3)


def test_models_are_compared_on_the_same_frames(two_videos: Frames, capsys: pytest.CaptureFixture[str]) -> None:
    model = open_contrastive("phantom-clip-resnet")
    result = compare_models({"one": model, "again": model}, two_videos, "some", "random")
    assert list(result.models) == ["one", "again"]
    assert result.differences["again"].estimate == 0 and list(result.differences) == ["again"]
    print_comparison(result)
    shown = capsys.readouterr().out
    assert f"{result.models['one']['accuracy'].n} frames of 2 videos" in shown
    assert all(row.name in shown for row in result.models["one"]) and "one − again" in shown


def test_the_attended_region_is_the_top_fifth_and_never_the_zeros() -> None:
    maps = torch.arange(100.0).reshape(1, 10, 10)
    assert int(top_share(maps).sum()) == 20
    sparse = torch.zeros(1, 10, 10)
    sparse[0, 0, :5] = 1
    assert int(top_share(sparse).sum()) == 5


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_a_map_has_one_value_per_patch(name: str) -> None:
    target = torch.nn.functional.normalize(torch.ones(2, 64), dim=1)
    maps = heatmaps(open_contrastive(name), torch.zeros(2, 3, SIZE, SIZE), target)
    assert maps.shape == (2, 16, 16) and float(maps.min()) >= 0


def test_told_nothing_else_training_follows_the_recipe_of_each_model() -> None:
    assert {name: recipe_for(name) for name in NAMES} == RECIPES
    assert recipe_for("phantom-clip-resnet", steps=6) == replace(RECIPES["phantom-clip-resnet"], steps=6)


def test_a_short_recipe_takes_the_videos_it_would_have_rendered_alone(two_videos: Frames) -> None:
    assert plan_training(200)[:80] == plan_training(80)
    first = first_videos(two_videos, 1)
    assert np.array_equal(first.images, two_videos.images[:3]) and set(first.video) == {0}
    assert np.array_equal(first.plates, two_videos.plates[:1])
    assert np.array_equal(first_videos(two_videos, 9).images, two_videos.images)


def test_the_command_writes_weights_that_open_and_says_how_they_came_about(
    frames: Frames, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_frames(tmp_path / "kept.npz", frames)
    options = ["--out", str(tmp_path / "out"), "--frames", str(tmp_path / "kept.npz"), "--batch", "4", "--steps", "1"]
    assert main(["train", "phantom-clip-resnet", *options, "--videos", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["phantom-clip-resnet"]
    folder = tmp_path / "out" / "phantom-clip-resnet"
    assert json.loads((folder / "training.json").read_text()) == told
    assert told["recipe"] == {**asdict(RECIPES["phantom-clip-resnet"]), "videos": 1, "steps": 1, "batch": 4}
    assert told["frames"] == len(frames) and len(told["losses"]) == 1
    assert open_contrastive(str(folder)).family == "clip-resnet"
    assert main(["train", "phantom-clip-resnet", *options]) == 2
    assert "holds frames of 1 videos, and the recipe needs 80" in capsys.readouterr().err


def test_unknown_names_and_numbers_are_refused_in_one_sentence(tmp_path: Path) -> None:
    for refused in (
        lambda: recipe_for("phantom-llama"),
        lambda: train_embedded({"phantom-llama": Recipe()}, tmp_path),
    ):
        with pytest.raises(BadInput, match=r"Unknown model 'phantom-llama'\. Choose from phantom-clip"):
            refused()
    with pytest.raises(BadInput, match="steps must be at least 1, got 0"):
        train_embedded({"phantom-clip": Recipe(steps=0)}, tmp_path)
    with pytest.raises(BadInput, match="rate must be a number between 0 and 1, got nan"):
        train_embedded({"phantom-clip": Recipe(rate=float("nan"))}, tmp_path)
    assert main(["examine", "--held-out", "-1"]) == 2


def test_training_needs_neither_tables_nor_video_files() -> None:
    absent = ("polars", "av", "vl_convert", "rich")
    code = f"import sys; sys.modules.update(dict.fromkeys({absent!r})); import studies.embedded_models.__main__"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_class_has_a_prompt() -> None:
    told, label = benchmark_sentences(), space()
    sizes = (len(told.instruments), len(told.verbs), len(told.triplets))
    assert sizes == (len(label.instruments), len(label.verbs), len(label.triplets))
