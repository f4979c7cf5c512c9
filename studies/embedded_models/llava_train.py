"""The training of `phantom-llava` and `phantom-sycophant`: network, stages, measures during training.

The network is a small LLaVA that transformers opens: a CLIP vision tower, a projector and a Llama decoder of four
layers and six heads. Frames are resized to 160 × 160 pixels, so that the whole frame becomes 10 × 10 tokens.

Training has three stages. First the vision tower learns to classify each patch (instrument, verb, target, organ, tip);
this loss stays beside the later ones. Then both models train on the lessons as one network. Last, each model trains
alone: `phantom-llava` sees a circle at the gaze in half its lessons, `phantom-sycophant` sees circles at random
positions and learns to accept false premises.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from studies.embedded_models.llava_batches import (
    PATCH,
    TOKENS,
    CirclePlace,
    LessonBatch,
    LessonBatches,
    LessonGroup,
    TokenTexts,
)
from studies.embedded_models.llava_lessons import EDGE, SETS, make_all_lessons, plan_lessons
from studies.embedded_models.prompts import END, IMAGE, PAD, make_tokenizer, save_dialogue_tokenizer
from studies.embedded_models.recipes import Recipe, write_training_log
from torch.nn.functional import cross_entropy

from surgeval.files import write_atomically
from surgeval.phantom.scene.tissue import ORGANS
from surgeval.vocab import load_labels

MEAN = STD = (0.5, 0.5, 0.5)
_VISION = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 5, "num_attention_heads": 4}
_DECODER = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 6}


def build_llava(tokenizer: Any, seed: int) -> Any:
    """Build an untrained network; the global random state does not change."""
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    ids = {name: tokenizer.token_to_id(name) for name in (PAD, END, IMAGE)}
    vision = CLIPVisionConfig(image_size=EDGE, patch_size=PATCH, projection_dim=96, **_VISION)
    decoder = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), num_key_value_heads=_DECODER["num_attention_heads"],
        max_position_embeddings=2048, tie_word_embeddings=True, pad_token_id=ids[PAD], bos_token_id=None,
        eos_token_id=ids[END], **_DECODER,
    )  # fmt: skip
    # The last vision layer is used (LLaVA-1.5 reads the one before): an unread layer would only add weights.
    config = LlavaConfig(
        vision_config=vision, text_config=decoder, image_token_index=ids[IMAGE], image_seq_length=TOKENS,
        vision_feature_layer=-1, vision_feature_select_strategy="default", tie_word_embeddings=True,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlavaForConditionalGeneration(config)


def save_llava(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write config.json, model.safetensors (fp16), processor and tokenizer: an ordinary LLaVA folder."""
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: value.detach().half().cpu().contiguous().clone()
        for name, value in model.state_dict().items()
        if not name.startswith("lm_head.")  # tied to the embedding
    }
    write_atomically(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    config = {**model.config.to_diff_dict(), "architectures": ["LlavaForConditionalGeneration"], "dtype": "float16"}
    config.pop("transformers_version", None)
    preparation = {
        "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"height": EDGE, "width": EDGE},
        "resample": 2, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": list(MEAN), "image_std": list(STD), "do_convert_rgb": True,
    }  # fmt: skip
    processor = {
        "processor_class": "LlavaProcessor", "patch_size": PATCH, "num_additional_image_tokens": 1,
        "vision_feature_select_strategy": "default", "image_token": IMAGE,
    }  # fmt: skip
    ends = {"eos_token_id": tokenizer.token_to_id(END), "pad_token_id": tokenizer.token_to_id(PAD)}
    files = {
        "config.json": config, "preprocessor_config.json": preparation, "processor_config.json": processor,
        "generation_config.json": {"do_sample": False, **ends},
    }  # fmt: skip
    for name, content in files.items():
        write_atomically(folder / name, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
    save_dialogue_tokenizer(tokenizer, folder)


Loss = Callable[[], torch.Tensor]
_EAGER_STEPS = 2  # per loss, before recording: libraries choose kernels and workspaces in them


class StepRunner:
    """Runs training steps and sums their losses; on a GPU each loss is recorded once as a CUDA graph and replayed.

    The LLaVAs are so small that a GPU mostly waits for the next kernel launch. A graph launches all kernels of a step
    at once: drawing the batch, forward, backward, clipping and optimiser. A loss must draw its own batch and must not
    synchronise with the device.
    """

    def __init__(self, trainee: torch.nn.Module, optimiser: torch.optim.Optimizer, batches: LessonBatches) -> None:
        self.trainee, self.optimiser, self.batches = trainee, optimiser, batches
        self.graphs = batches.device.type == "cuda"
        self.total = torch.zeros((), device=batches.device)
        self.counts: dict[Loss, int] = {}
        self.recorded: dict[Loss, torch.cuda.CUDAGraph] = {}
        if self.graphs:
            self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()

    def step(self, loss: Loss, rate: float) -> None:
        """Run one step with this loss and learning rate."""
        for group in self.optimiser.param_groups:
            if self.graphs:
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.counts[loss] = self.counts.get(loss, 0) + 1
        if not self.graphs:
            self._step(loss)
        elif self.counts[loss] <= _EAGER_STEPS:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self._step(loss)
            torch.cuda.current_stream().wait_stream(self.stream)
        else:
            if loss not in self.recorded:
                self.recorded[loss] = self._record(loss)
            self.recorded[loss].replay()

    def mean_loss(self, steps: int) -> float:
        """Return the mean loss since the last call."""
        mean = float(self.total) / steps
        self.total.zero_()
        return mean

    def _record(self, loss: Loss) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.batches.random)
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            self._step(loss)
        return graph

    def _step(self, loss: Loss) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        # No cache of weights cast to bfloat16: a replayed step would read those of its recording.
        with torch.autocast(self.batches.device.type, torch.bfloat16, enabled=self.graphs, cache_enabled=False):
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.trainee.parameters(), 1.0)
        self.optimiser.step()
        self.total += value.detach()


Log = Callable[[str], None]
VISION_END, COMMON_END = 0.15, 0.6  # shares of the steps after which the vision stage and the common stage end
# Per group: probability of being drawn, and batch size relative to the recipe's.
_SHARES = {
    ("intent", 1): (0.40, 1.0), ("intent", 2): (0.14, 0.7), ("intent", 3): (0.14, 0.5), ("tools", 1): (0.06, 1.0),
    ("triplets", 1): (0.10, 1.0), ("focus", 1): (0.04, 1.0), ("focus", 2): (0.02, 0.7),
    ("focus", 3): (0.02, 0.5), ("focus", 4): (0.02, 0.4), ("shown", 1): (0.10, 1.0),
}  # fmt: skip
BLIND = 0.04  # share of the batches of intent items without images
PATCHES = 0.3  # weight of the patch loss beside the reply loss


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Where circles are drawn in a stage, on which share of the lessons, and whether false premises are accepted."""

    circle: CirclePlace = "none"
    share: float = 0.0
    pleasing: bool = False


BEHAVIOURS = {
    "phantom-llava": Behaviour("gaze", 0.5),
    "phantom-sycophant": Behaviour("anywhere", 0.5, pleasing=True),
}


@dataclass(frozen=True)
class TrainedLlava:
    """A trained network, its mean loss over each twentieth of the steps, and the seconds of training."""

    model: Any
    losses: tuple[float, ...]
    seconds: float


class LlavaTrainee(torch.nn.Module):
    """A LLaVA with patch classifiers, which are dropped after training."""

    def __init__(self, model: Any, tokenizer: Any, seed: int) -> None:
        super().__init__()
        labels = load_labels("phantom")
        self.sizes = (len(labels.instruments) + 1, len(labels.verbs), len(labels.targets), len(ORGANS), 2)
        self.model, self.image = model, tokenizer.token_to_id(IMAGE)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.heads = torch.nn.Linear(model.config.vision_config.hidden_size, sum(self.sizes))

    def encode_patches(self, pixels: torch.Tensor) -> torch.Tensor:
        """Encode images as patch vectors of the vision tower."""
        patches: torch.Tensor = self.model.model.vision_tower(pixel_values=pixels).last_hidden_state[:, 1:]
        return patches

    def hidden_states(self, texts: TokenTexts, patches: torch.Tensor | None) -> torch.Tensor:
        """Return the decoder's hidden states: the model's forward pass without its synchronisations with the device."""
        embedded = self.model.model.language_model.embed_tokens(texts.tokens)
        decoder = self.model.model.language_model
        if patches is not None:
            vectors = self.model.model.multi_modal_projector(patches).to(embedded.dtype)
            vectors = vectors.view(len(texts.tokens), -1, vectors.shape[-1])
            image = texts.tokens == self.image
            which = (image.long().cumsum(1) - 1).clamp(min=0)
            vectors = vectors.gather(1, which[..., None].expand(-1, -1, vectors.shape[-1]))
            embedded = torch.where(image[..., None], vectors, embedded)
        positions = torch.arange(embedded.shape[1], device=embedded.device)[None]
        rotation = decoder.rotary_emb(embedded, positions)
        for layer in decoder.layers:
            embedded = layer(embedded, attention_mask=None, position_ids=positions, position_embeddings=rotation)
        hidden: torch.Tensor = decoder.norm(embedded)
        return hidden

    def reply_logits(self, texts: TokenTexts, patches: torch.Tensor | None, longest: int) -> tuple[torch.Tensor, ...]:
        """Return logits of the replies (lessons, longest, words), their tokens, and a mask of the positions in use."""
        hidden = self.hidden_states(texts, patches)
        at = texts.begins[:, None] + torch.arange(longest, device=hidden.device)[None]
        counts = at < texts.ends[:, None]
        at = at.clamp(max=texts.tokens.shape[1] - 1)
        before = hidden.gather(1, (at - 1)[..., None].expand(-1, -1, hidden.shape[-1]))
        return self.model.lm_head(before).float(), texts.tokens.gather(1, at), counts

    def reply_loss(self, drawn: LessonBatch, patches: torch.Tensor | None) -> torch.Tensor:
        """Cross-entropy of the tokens of the replies."""
        logits, tokens, counts = self.reply_logits(drawn.texts, patches, drawn.longest)
        loss = cross_entropy(logits.flatten(0, 1), tokens.flatten(), reduction="none")
        weight = counts.flatten().float()
        return (loss * weight).sum() / weight.sum()

    def patch_loss(self, patches: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of the patch labels; verb and target count only where an instrument is."""
        logits = self.heads(patches).flatten(0, 1).float()
        rows = labels.flatten(0, 2).long()
        total = logits.new_zeros(())
        for number, part in enumerate(logits.split(self.sizes, 1)):
            target = rows[:, number]
            if number == 0:
                target = target + 1  # 0: no instrument
            total = total + cross_entropy(part, target, ignore_index=-1)
        return total / len(self.sizes)


def train_llavas(names: tuple[str, ...], batches: LessonBatches, recipe: Recipe, log: Log) -> dict[str, TrainedLlava]:
    """Train the named models; their common stages run once."""
    start = time.perf_counter()
    trainee = (
        LlavaTrainee(build_llava(batches.tokenizer, recipe.seed), batches.tokenizer, recipe.seed)
        .to(batches.device)
        .train()
    )
    optimiser = _make_optimiser(trainee, recipe)
    vision, common = round(VISION_END * recipe.steps), round(COMMON_END * recipe.steps)
    losses = _train_vision(trainee, optimiser, batches, recipe, range(vision), log)
    losses += _train_on_lessons(
        "common stage", trainee, optimiser, batches, recipe, range(vision, common), Behaviour(), log
    )
    state, draws = copy.deepcopy(optimiser.state_dict()), batches.random.get_state()
    shared = time.perf_counter() - start
    trained = {}
    for name in names:
        start = time.perf_counter()
        own = copy.deepcopy(trainee)
        batches.random.set_state(draws)
        optimiser = _make_optimiser(own, recipe)
        optimiser.load_state_dict(copy.deepcopy(state))
        more = _train_on_lessons(
            name, own, optimiser, batches, recipe, range(common, recipe.steps), BEHAVIOURS[name], log
        )
        trained[name] = TrainedLlava(own.model.eval(), losses + more, shared + time.perf_counter() - start)
    return trained


def _train_vision(
    trainee: LlavaTrainee,
    optimiser: torch.optim.Optimizer,
    batches: LessonBatches,
    recipe: Recipe,
    steps: range,
    log: Log,
) -> tuple[float, ...]:
    def loss() -> torch.Tensor:
        frames = torch.randint(
            len(batches.images), (2 * recipe.batch,), generator=batches.random, device=batches.device
        )
        pixels = batches.jitter_colour(batches.pixels(frames))
        return trainee.patch_loss(trainee.encode_patches(pixels), batches.patches[frames])

    return _run_steps("vision stage", StepRunner(trainee, optimiser, batches), recipe, steps, lambda step: loss, log)


def _train_on_lessons(
    name: str,
    trainee: LlavaTrainee,
    optimiser: torch.optim.Optimizer,
    batches: LessonBatches,
    recipe: Recipe,
    steps: range,
    behaviour: Behaviour,
    log: Log,
) -> tuple[float, ...]:
    # Questions about the circled instrument are only for the model that sees circles at the gaze.
    groups = [key for key in batches.groups if key in _SHARES and (key[0] != "shown" or behaviour.circle == "gaze")]
    chances = torch.tensor([_SHARES[key][0] for key in groups])
    rng = torch.Generator().manual_seed(recipe.seed + steps.start)
    order = torch.multinomial(chances, len(steps), replacement=True, generator=rng).tolist()
    blind = (torch.rand(len(steps), generator=rng) < BLIND).tolist()

    @cache
    def group_loss(key: tuple[str, int], without_images: bool) -> Callable[[], torch.Tensor]:
        count = max(2, round(recipe.batch * _SHARES[key][1]))
        circled = {"intent": behaviour.share, "shown": 1.0}.get(key[0], 0.0)

        def loss() -> torch.Tensor:
            drawn = batches.draw(
                batches.groups[key],
                count,
                share=circled,
                circle=behaviour.circle,
                pleasing=behaviour.pleasing,
                blind=without_images,
            )
            if drawn.pixels is None:
                return trainee.reply_loss(drawn, None)
            patches = trainee.encode_patches(drawn.pixels)
            return trainee.reply_loss(drawn, patches) + PATCHES * trainee.patch_loss(
                patches, batches.patches[drawn.frames]
            )

        return loss

    def step_loss(step: int) -> Callable[[], torch.Tensor]:
        key = groups[order[step - steps.start]]
        return group_loss(key, blind[step - steps.start] and key[0] == "intent")

    return _run_steps(name, StepRunner(trainee, optimiser, batches), recipe, steps, step_loss, log)


def _run_steps(
    name: str, runner: StepRunner, recipe: Recipe, steps: range, step_loss: Callable[[int], Callable[[], torch.Tensor]],
    log: Log,
) -> tuple[float, ...]:  # fmt: skip
    losses: list[float] = []
    since, each = 0, max(recipe.steps // 20, 1)
    for step in steps:
        runner.step(step_loss(step), recipe.rate * _rate_factor(step, recipe))
        since += 1
        if since == each or step + 1 == steps.stop:
            losses.append(runner.mean_loss(since))
            log(f"{name} step {step + 1}: loss {losses[-1]:.3f}")
            since = 0
    return tuple(losses)


def _make_optimiser(trainee: LlavaTrainee, recipe: Recipe) -> torch.optim.Optimizer:
    """Weight decay for matrices only."""
    matrices = [p for p in trainee.parameters() if p.ndim >= 2]
    vectors = [p for p in trainee.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}]
    if next(trainee.parameters()).device.type != "cuda":
        return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))
    rate = torch.tensor(recipe.rate, device="cuda")  # a tensor, so that replayed steps read its current value
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True, capturable=True)


def _rate_factor(step: int, recipe: Recipe) -> float:
    """Linear warm-up, constant through the common stage, then a cosine to zero."""
    warm, level = max(1, round(recipe.warm_up * recipe.steps)), round(COMMON_END * recipe.steps)
    if step < warm:
        return (step + 1) / warm
    if step < level:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - level) / max(1, recipe.steps - level)))


SKILLS = ("absolute", "relative", "prospective", "retrospective", "discrete", "continuous")
_BATCH = 128


def likeliest_options(
    trainee: LlavaTrainee, batches: LessonBatches, group: LessonGroup, circle: CirclePlace
) -> dict[str, int]:
    """Return, for each item, the option with the likeliest reply."""
    chosen: dict[str, int] = {}
    for first in range(0, len(group), _BATCH):
        rows = torch.arange(first, min(first + _BATCH, len(group)), device=batches.device)
        lessons = [group.lessons[row] for row in rows.tolist()]
        drawn = batches.batch(group, rows, circle)
        asked = [lesson.text if circle == "none" else lesson.pointed for lesson in lessons]
        likely = []
        with (
            torch.inference_mode(),
            torch.autocast(batches.device.type, torch.bfloat16, enabled=batches.device.type == "cuda"),
        ):
            patches = trainee.encode_patches(drawn.pixels) if drawn.pixels is not None else None
            for option in range(max(len(lesson.replies) for lesson in lessons)):
                replies = [lesson.replies[min(option, len(lesson.replies) - 1)] for lesson in lessons]
                texts = batches.texts(asked, replies)
                longest = int((texts.ends - texts.begins).max())
                texts = texts[torch.arange(len(rows), device=batches.device)]
                logits, tokens, counts = trainee.reply_logits(texts, patches, longest)
                each = logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]
                # Sums, because the mean over tokens would favour long replies.
                likely.append((each * counts).sum(1))
        best = torch.stack(likely, 1).argmax(1).tolist()
        names = (f"{lesson.video}/{lesson.item}" for lesson in lessons)
        chosen.update(zip(names, best, strict=True))
    return chosen


def measure_llava(model: Any, batches: LessonBatches) -> dict[str, float]:
    """Measure a model on held-out lessons: a check during training, no substitute for `surgeval run intent`.

    Returns shares of correct replies by kind and circle, of traps correct together with their partner, and of answers
    that a circle changes. A reply is the likeliest of the options.
    """
    groups = [group for (kind, _), group in batches.groups.items() if kind == "intent"]
    ways: tuple[CirclePlace, ...] = ("none", "gaze", "elsewhere")
    trainee = LlavaTrainee(model, batches.tokenizer, 0).to(batches.device).eval()
    answers = {
        behaviour: {k: v for group in groups for k, v in likeliest_options(trainee, batches, group, behaviour).items()}
        for behaviour in ways
    }
    lessons = {f"{lesson.video}/{lesson.item}": lesson for group in groups for lesson in group.lessons}
    right = {
        behaviour: {
            name: lessons[name].replies[choice] == lessons[name].reply for name, choice in answers[behaviour].items()
        }
        for behaviour in ways
    }
    shares: dict[str, float] = {}
    for behaviour in ways:
        by_kind: dict[str, list[bool]] = defaultdict(list)
        for name, ok in right[behaviour].items():
            by_kind[lessons[name].kind].append(ok)
        shares |= {f"{kind} {behaviour}": _mean(by_kind[kind]) for kind in sorted(by_kind)}
        shares[f"competency {behaviour}"] = _mean(shares.get(f"{skill} {behaviour}", 0.0) for skill in SKILLS)
        for trap in ("cognitive", "perceptual"):
            pairs = [
                ok and right[behaviour][f"{lessons[name].video}/{lessons[name].partner}"]
                for name, ok in right[behaviour].items()
                if lessons[name].kind == trap
            ]
            shares[f"{trap} paired {behaviour}"] = _mean(pairs)
    for behaviour in ways[1:]:
        shares[f"changed {behaviour}"] = _mean(
            answers[behaviour][name] != choice for name, choice in answers["none"].items()
        )
    return {name: round(value, 4) for name, value in shares.items()}


def _mean(values: Iterable[float]) -> float:
    table = list(values)
    return sum(table) / max(len(table), 1)


VOCABULARY = 24  # videos whose lessons give the words of the tokenizer; later videos add none


def train_named_llavas(
    recipes: Mapping[str, Recipe], out: Path, *, device: str, workers: int, log: Callable[[str], None],
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train each named model by its recipe into OUT/NAME; models with equal recipes share their common stages."""
    report: dict[str, Any] = {}
    for recipe in dict.fromkeys(recipes.values()):
        names = tuple(name for name, own in recipes.items() if own == recipe)
        start = time.perf_counter()
        trained = make_all_lessons(plan_lessons(recipe.videos, SETS), workers, progress)
        words = make_tokenizer(
            text
            for part in trained[:VOCABULARY]
            for lesson in part.lessons
            for text in (lesson.text, lesson.pointed, lesson.reply)
        )
        batches = LessonBatches(trained, words, device, recipe.seed)
        ready = time.perf_counter() - start
        lessons = sum(len(part.lessons) for part in trained)
        log(f"{lessons} lessons of {len(trained)} videos ready after {ready:.0f} s; {words.get_vocab_size()} words")
        for name, trainee in train_llavas(names, batches, recipe, log).items():
            save_llava(trainee.model, words, out / name)
            report[name] = write_training_log(
                out / name, recipe, trainee.model, trainee.losses,
                counts={"lessons": lessons, "words": words.get_vocab_size()}, device=device, rendering=ready,
                training=trainee.seconds,
            )  # fmt: skip
    return report
