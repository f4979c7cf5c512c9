"""Token Grad-CAM: a map of each generated token, alone and in batches, and of a name that several tokens spell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.models.llava_folder import write_llava

from surgeval.errors import BadInput
from surgeval.explain import token_maps
from surgeval.models import Generative, open_generative

ASKED = "What tools do you see?"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Generative:
    return open_generative(write_llava(tmp_path_factory.mktemp("llava")))


def _frames(count: int) -> list[list[np.ndarray[Any, np.dtype[np.uint8]]]]:
    rng = np.random.default_rng(3)
    return [[rng.integers(0, 256, (60, 90, 3), np.uint8)] for _ in range(count)]


def test_maps_in_a_batch_are_those_of_each_reply_alone(model: Generative) -> None:
    frames = _frames(3)
    replies = model.reply(frames, [ASKED, "hook", f"a {ASKED}"], 5)
    chosen = [(0, 2, 4), (1,), ()]
    for maps, frame, reply, tokens in zip(
        token_maps(model, frames, replies, chosen), frames, replies, chosen, strict=True
    ):
        (alone,) = token_maps(model, [frame], [reply])
        assert maps.values.shape == (len(tokens), *model.grid) and maps.tokens == tokens
        torch.testing.assert_close(maps.values, alone.values[list(tokens)], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(maps.logits, alone.logits[list(tokens)], atol=1e-4, rtol=1e-4)


def test_each_token_is_explained_by_the_score_with_which_it_was_said(model: Generative) -> None:
    """A greedy reply said its most likely words: their logits are the largest of the rows that predicted them."""
    frames = _frames(1)
    replies = model.reply(frames, [ASKED], 4)
    (maps,) = token_maps(model, frames, replies)
    best = model.replay(frames, replies).logits[0].amax(dim=-1)
    torch.testing.assert_close(maps.logits, best.detach(), atol=1e-4, rtol=1e-4)


def test_the_gradient_reaches_every_position_before_the_last_layer_and_one_behind_it(model: Generative) -> None:
    """Why the map is read at the layer's input: behind it all image tokens would be exactly zero."""
    frames = _frames(1)
    replies = model.reply(frames, [ASKED], 3)
    behind: list[torch.Tensor] = []
    network: Any = model.network  # type: ignore[attr-defined]
    handle = network.model.language_model.layers[-1].register_forward_hook(lambda _m, _i, out: behind.append(out))
    try:
        seen = model.replay(frames, replies)
    finally:
        handle.remove()
    logit = seen.logits[0, 1, replies[0].tokens[1]]
    into, out = torch.autograd.grad(logit, [seen.hidden, behind[0]])
    read = replies[0].predicted_at(1) + 1
    assert (into[0, :read].abs().sum(-1) > 0).all()
    assert (out[0].abs().sum(-1) > 0).nonzero().flatten().tolist() == [read - 1]


def test_a_name_of_several_tokens_is_their_mean_first_or_maximum(model: Generative) -> None:
    frames = _frames(1)
    answer = model.force(frames, [ASKED], ["a grasper and a hook"])
    (maps,) = token_maps(model, frames, answer)
    tokens = answer[0].tokens_of(2, 13)
    assert tokens == (1, 2)
    torch.testing.assert_close(maps.of(tokens), maps.values[1:3].mean(0))
    torch.testing.assert_close(maps.of(tokens, "max"), maps.values[1:3].amax(0))
    torch.testing.assert_close(maps.of(tokens, "first"), maps.values[1])
    with pytest.raises(BadInput, match="Use one of mean, first, max"):
        maps.of(tokens, "last")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"maps of the tokens \(0, 1"):
        maps.of((9,))


def test_a_map_without_anything_positive_is_flagged_empty(model: Generative) -> None:
    frames = _frames(1)
    answers = model.force(frames, [ASKED], ["a grasper hook bipolar scissors clipper irrigator liver gallbladder no"])
    (maps,) = token_maps(model, frames, answers)
    assert maps.empty.tolist() == [bool((one <= 0).all()) for one in maps.values]
    assert (maps.values >= 0).all()


def test_several_pictures_have_a_map_each_and_a_question_without_one_has_none(model: Generative) -> None:
    (first,), (second,) = _frames(2)
    replies = model.reply([[first, second]], [ASKED], 2)
    maps = [token_maps(model, [[first, second]], replies, image=number)[0].values for number in (0, 1)]
    assert not torch.allclose(*maps)
    with pytest.raises(BadInput, match="has 2 images; there is no image 3"):
        token_maps(model, [[first, second]], replies, image=2)
    blind = model.reply([[]], [ASKED], 2)
    with pytest.raises(BadInput, match="has 0 images"):
        token_maps(model, [[]], blind)
    with pytest.raises(BadInput, match="they are 0 to 1"):
        token_maps(model, [[first, second]], replies, [[7]])
