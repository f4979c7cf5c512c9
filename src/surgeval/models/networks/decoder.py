"""The language model behind the pictures: greedy replies in a batch, and replies read again for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from surgeval.models.generative import Generated, Replayed

__all__ = ["Decoder"]


class Decoder:
    """Runs a network's `language_model` on tokens whose image positions hold the pictures' features."""

    def __init__(self, network: Any) -> None:
        self._network = network

    @property
    def _model(self) -> Any:
        return self._network.model.language_model

    def greedy(
        self, features: torch.Tensor, questions: Sequence[Generated], most: int, ends: Sequence[int]
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Up to `most` tokens for each question and their probabilities; a row stops behind the first of `ends`."""
        from transformers import DynamicCache

        length = max(question.prompt_length for question in questions)
        # Questions of other lengths are filled up in front, so that all replies begin at the same position.
        before = [length - question.prompt_length for question in questions]
        state = self._embedded(features, questions, before, [()] * len(questions), length)
        mask = torch.ones(state.shape[:2], dtype=torch.long, device=state.device)
        for row, empty in enumerate(before):
            mask[row, :empty] = 0
        cache = DynamicCache(config=self._network.config.text_config)
        stops = torch.tensor(ends, dtype=torch.long, device=state.device)
        going = torch.ones(len(questions), dtype=torch.bool, device=state.device)
        tokens, chances = [], []
        for _ in range(most):
            places = (mask.cumsum(1) - 1).clamp(min=0)[:, -state.shape[1] :]
            with torch.no_grad():
                out = self._model(inputs_embeds=state, attention_mask=mask, position_ids=places, past_key_values=cache,
                                  use_cache=True)  # fmt: skip
                logits = self._network.lm_head(out.last_hidden_state[:, -1]).float()
            if not bool(logits.isfinite().all()):
                raise RuntimeError("scores of words that are not finite")
            best = logits.argmax(-1)
            chances.append(functional.softmax(logits, -1).gather(1, best[:, None])[:, 0])
            tokens.append(best)
            going &= ~torch.isin(best, stops)
            if not bool(going.any()):
                break
            state = self._model.embed_tokens(best[:, None]).detach()
            mask = torch.cat([mask, mask.new_ones(len(questions), 1)], dim=1)
        return torch.stack(tokens, 1).tolist(), torch.stack(chances, 1).tolist()

    def replay(self, features: torch.Tensor, replies: Sequence[Generated]) -> Replayed:
        """All replies at once, the last decoder layer inside a graph that begins at its input.

        The layers below run without a graph, and only the last one's attention is kept: of a model with 7 billion
        weights all layers' would take a gigabyte.
        """
        inputs = [reply.tokens[:-1] for reply in replies]
        rows = [reply.prompt_length + len(tokens) for reply, tokens in zip(replies, inputs, strict=True)]
        # Replies are filled up behind their end, which no earlier position sees.
        state = self._embedded(features, replies, [0] * len(replies), inputs, max(rows))
        hidden, options = self._below(state)
        hidden.requires_grad_(True)
        layer, attentions = self._model.layers[-1], []
        handle = layer.self_attn.register_forward_hook(lambda _module, _inputs, out: attentions.append(out[1]))
        try:
            with torch.enable_grad():
                last = self._model.norm(layer(hidden, **options))
                where = torch.zeros(len(replies), max(len(reply.tokens) for reply in replies), dtype=torch.long)
                for row, reply in enumerate(replies):
                    for token in range(len(reply.tokens)):
                        where[row, token] = reply.predicted_at(token)
                at = where.to(last.device)[:, :, None].expand(-1, -1, last.shape[2])
                logits = self._network.lm_head(last.gather(1, at)).float()
        finally:
            handle.remove()
        if len(attentions) != 1 or attentions[0] is None:
            raise RuntimeError("the last decoder layer returned no attention, expected eager attention")
        return Replayed(hidden, logits, attentions[0].detach(), tuple(rows))

    def _below(self, state: torch.Tensor) -> tuple[torch.Tensor, dict[str, Any]]:
        """The input of the last decoder layer, and what else it is called with."""
        caught: list[tuple[torch.Tensor, dict[str, Any]]] = []

        def catch(_module: object, inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
            caught.append((inputs[0] if inputs else options["hidden_states"], options))
            raise _Caught

        handle = self._model.layers[-1].register_forward_pre_hook(catch, with_kwargs=True)
        try:
            with torch.no_grad():
                self._model(inputs_embeds=state, use_cache=False)
        except _Caught:
            hidden, options = caught[0]
            return hidden.detach(), {name: value for name, value in options.items() if name != "hidden_states"}
        finally:
            handle.remove()
        raise RuntimeError("the last decoder layer was not called, expected a model that runs all its layers")

    def _embedded(
        self, features: torch.Tensor, asked: Sequence[Generated], before: Sequence[int],
        inputs: Sequence[Sequence[int]], length: int,
    ) -> torch.Tensor:  # fmt: skip
        """Token vectors (questions, length, width), the pictures' features at their positions."""
        ids = torch.zeros(len(asked), length, dtype=torch.long)
        for row, (question, empty, tokens) in enumerate(zip(asked, before, inputs, strict=True)):
            sequence = [*question.prompt, *tokens]
            ids[row, empty : empty + len(sequence)] = torch.tensor(sequence)
        with torch.no_grad():
            state: torch.Tensor = self._model.embed_tokens(ids.to(features.device)).clone()
            picture = 0
            for row, (question, empty) in enumerate(zip(asked, before, strict=True)):
                for first, stop in question.spans:  # not by number: a model may also generate the image token
                    state[row, empty + first : empty + stop] = features[picture].to(state.dtype)
                    picture += 1
        return state


class _Caught(Exception):
    """The last layer's input is there."""
