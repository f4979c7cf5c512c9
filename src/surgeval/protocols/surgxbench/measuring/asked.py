"""Both tasks for a model that answers in words: it is asked, its reply is read, and each name it gives has a map.

The cases are those of a model that scores prompts, so that both stand in the same tables: the first class named is the
frame's `best`, everything named is predicted, and the map of a class is the token Grad-CAM of its first mention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import torch

from surgeval.errors import BadInput
from surgeval.explain import token_maps
from surgeval.explain.heatmaps import choose_method
from surgeval.metrics.grounding import Match, triplet_match
from surgeval.models import Generative
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.measuring.hide import hidden_images
from surgeval.protocols.surgxbench.measuring.instruments import named_cases, to_device
from surgeval.protocols.surgxbench.measuring.measure import classes_present
from surgeval.protocols.surgxbench.measuring.replies import (
    NamingReply,
    Question,
    answer_maps,
    ask,
    certainties,
    reply_case,
)
from surgeval.protocols.surgxbench.measuring.triplets import (
    complete_matches,
    labelled_triplets,
    matched_cases,
    triplet_name,
)
from surgeval.protocols.surgxbench.settings import SurgXSettings
from surgeval.qa import instrument_mentions, triplet_mentions
from surgeval.records import UNKNOWN, Case, Triplet
from surgeval.vocab import LabelSpace, format_class_name, tools_question, triplets_question

__all__ = ["AskedModel", "Example"]

# The map (1, rows, columns) of a triplet in one image, and what is said about an image, with scores.
Example: TypeAlias = tuple[torch.Tensor, Callable[[torch.Tensor], tuple[tuple[str, float], ...]]]


@dataclass(frozen=True, eq=False)
class AskedModel:
    """A generative model with the questions that a label space makes."""

    net: Generative
    space: LabelSpace
    settings: SurgXSettings

    def __post_init__(self) -> None:
        if self.settings.profile != "surgxbench":
            raise BadInput(f"profile {self.settings.profile}: found {self.net.name}, which answers in words, expected "
                           "a model that scores prompts, or profile surgxbench")  # fmt: skip

    @cached_property
    def tools(self) -> Question[int]:
        """Which instruments are there?"""
        return Question("instruments", tools_question(self.space), partial(instrument_mentions, space=self.space))

    @cached_property
    def triplets(self) -> Question[Triplet]:
        """What do they do to what?"""
        return Question("triplets", triplets_question(self.space), partial(triplet_mentions, space=self.space))

    @property
    def questions(self) -> dict[str, str]:
        """The texts by task."""
        asked: tuple[Question[Any], ...] = (self.tools, self.triplets)
        return {question.task: question.text for question in asked if question.task in self.settings.tasks}

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """Words of the questions that the model's tokenizer does not know."""
        unknown = getattr(self.net, "unknown", None)
        return () if unknown is None else tuple(unknown(list(self.questions.values())))

    def rehearse(self) -> None:
        """Run a black frame through everything that can refuse a setting, so that it fails before hours of work."""
        choose_method(self.net, self.settings.method)
        black = torch.zeros(3, *self.net.preparation.input_size)
        for text in self.questions.values():
            replies = self.net.reply([[black]], [text], self.settings.max_tokens)
            token_maps(self.net, [[black]], replies, [[0]] if replies[0].tokens else [[]])

    def cases(self, seen: Sequence[PreparedFrame]) -> Iterator[Case]:
        """All cases of one batch but those of the reference maps."""
        pixels = to_device(seen, self.net)
        if "instruments" in self.settings.tasks:
            yield from self._instruments(seen, pixels)
        if "triplets" in self.settings.tasks:
            yield from self._triplets(seen, pixels)

    def class_maps(self, seen: Sequence[PreparedFrame], numbers: Sequence[int]) -> torch.Tensor:
        """(frames, rows, columns): the map of one instrument per frame as the reply names it, else as if it did.

        For UNKNOWN, where a reply names nothing, there is no evidence anywhere.
        """
        pixels = to_device(seen, self.net)
        answers = self._asked(pixels, self.tools)
        maps = answer_maps(self.net, pixels, answers, self.method, self.settings.batch)
        chosen_maps = []
        for b, (answer, number) in enumerate(zip(answers, numbers, strict=True)):
            named = answer.mentions.classes
            own = number in named
            if number == UNKNOWN:
                chosen_maps.append(torch.zeros_like(maps[b, 0]))
            else:
                chosen_maps.append(
                    maps[b, named.index(number)] if own else self.name_maps(pixels[b : b + 1], [number])[0]
                )
        return torch.stack(chosen_maps)

    def example(self, pixels: torch.Tensor, triplet: str) -> Example | None:
        """The map of a triplet that is said about one image, and what is said about it or a changed one."""

        def named(answer: NamingReply[Triplet]) -> list[str]:
            return [triplet_name(triplet, self.space) for triplet in answer.mentions.classes]

        def names_and_scores(image: torch.Tensor) -> tuple[tuple[str, float], ...]:
            (answer,) = self._asked(image, self.triplets)
            return tuple(zip(named(answer), answer.scores, strict=True))

        answers: list[NamingReply[Triplet]] = self._asked(pixels, self.triplets)
        names = named(answers[0])
        if triplet not in names:
            return None
        maps = answer_maps(self.net, pixels, answers, self.method, self.settings.batch)
        return maps[:, names.index(triplet)], names_and_scores

    def name_maps(self, pixels: torch.Tensor, numbers: Sequence[int], net: Generative | None = None) -> torch.Tensor:
        """(images, rows, columns): the map of an instrument's name in the place of the reply, whatever would be said.

        `net` is another model to ask, such as this one with its weights shuffled.
        """
        model = net or self.net
        answers = self._named(pixels, numbers, model)
        return answer_maps(model, pixels, answers, self.method, self.settings.batch)[:, 0]

    def name_scores(self, pixels: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:
        """(images,): how likely the name of an instrument is as the reply."""
        answers = self._named(pixels, numbers, self.net)
        tokens = [answer.tokens[0] for answer in answers]
        return certainties(self.net, pixels, [answer.reply for answer in answers], tokens, self.settings.batch)

    def _named(self, pixels: torch.Tensor, numbers: Sequence[int], net: Generative) -> list[NamingReply[int]]:
        names = [format_class_name(self.space.instruments[number]).lower() for number in numbers]
        replies = net.force([[image] for image in pixels], [self.tools.text] * len(names), names)
        return [NamingReply(reply, self.tools.read(""), (tuple(range(len(reply.tokens))),)) for reply in replies]

    @cached_property
    def method(self) -> Any:
        """Token Grad-CAM, with how a name's tokens become one map."""
        return choose_method(self.net, self.settings.method)

    def _asked(self, pixels: torch.Tensor, question: Question[Any]) -> list[NamingReply[Any]]:
        return ask(self.net, pixels, question, self.settings.max_tokens, self.settings.batch)

    def _instruments(self, seen: Sequence[PreparedFrame], pixels: torch.Tensor) -> Iterator[Case]:
        answers: list[NamingReply[int]] = self._asked(pixels, self.tools)
        maps = answer_maps(self.net, pixels, answers, self.method, self.settings.batch)
        named = [list(answer.mentions.classes) for answer in answers]
        scores = {(b, c): value for b, answer in enumerate(answers)
                  for c, value in zip(named[b], answer.scores, strict=True)}  # fmt: skip
        count = len(self.space.instruments)
        pairs = [(b, k, c) for b, prepared in enumerate(seen) for k, c in enumerate(named[b])
                 if c in classes_present(prepared.frame, count)]  # fmt: skip
        effects = self._hidden(
            seen, pixels, maps, answers, self.tools, [(b, k, c, c) for b, k, c in pairs], [(b, c) for b, _, c in pairs]
        )
        best = [row[0] if row else None for row in named]
        yield from named_cases(seen, self.space.instruments, named, maps, scores, best, effects, self.settings)
        yield from (reply_case(prepared, self.tools, answer) for prepared, answer in zip(seen, answers, strict=True))
        if self.settings.causal is not None:
            from surgeval.protocols.surgxbench.measuring.causal import causal_cases  # loads numba, which few runs need

            names, batch = self.space.instruments, self.settings.batch
            yield from causal_cases(self.net, seen, pixels, answers, names, self.settings.causal, batch)

    def _triplets(self, seen: Sequence[PreparedFrame], pixels: torch.Tensor) -> Iterator[Case]:
        answers: list[NamingReply[Triplet]] = self._asked(pixels, self.triplets)
        maps = answer_maps(self.net, pixels, answers, self.method, self.settings.batch)
        named = [list(answer.mentions.classes) for answer in answers]
        scores = [answer.scores for answer in answers]
        matches: list[Sequence[Match]] = [
            triplet_match(named[b], scores[b], labelled_triplets(prepared)) for b, prepared in enumerate(seen)
        ]
        pairs = complete_matches(matches)
        effects = self._hidden(
            seen, pixels, maps, answers, self.triplets, [(b, k, truth.instrument, truth) for b, _, k, truth in pairs],
            [(b, number) for b, number, _, _ in pairs], [labelled_triplets(seen[b]) for b, *_ in pairs],
        )  # fmt: skip
        yield from matched_cases(seen, named, scores, maps, matches, effects, self.space, self.settings)
        yield from (reply_case(prepared, self.triplets, answer) for prepared, answer in zip(seen, answers, strict=True))

    def _hidden(
        self, seen: Sequence[PreparedFrame], pixels: torch.Tensor, maps: torch.Tensor,
        answers: Sequence[NamingReply[Any]], question: Question[Any], right: Sequence[tuple[int, int, int, Any]],
        keys: Sequence[tuple[int, int]], labelled: Sequence[Sequence[Triplet]] = (),
    ) -> dict[tuple[int, int], dict[str, Any]]:  # fmt: skip
        """Right answers again with regions hidden: is it still said, and how much less likely were the same words?

        `right` has frame, number of the mention, instrument and what was said; `keys` name the results. With the
        `labelled` triplets of each frame, `matched` says whether any of them is named.
        """
        effects: dict[tuple[int, int], dict[str, Any]] = {key: {} for key in keys}
        if not self.settings.occlusion or not right:
            return effects
        images = [b for b, *_ in right]
        replies, tokens = [answers[b].reply for b in images], [answers[b].tokens[k] for b, k, _, _ in right]
        before = [answers[b].scores[k] for b, k, _, _ in right]
        picked = torch.stack([maps[b, k] for b, k, _, _ in right])
        hidden = hidden_images(
            self.net.preparation, [seen[b] for b in images], pixels[images], picked, [c for _, _, c, _ in right],
            self.settings,
        )  # fmt: skip
        for name, without, hides in hidden:
            again = self._asked(without, question)
            after = certainties(self.net, without, replies, tokens, self.settings.batch).tolist()
            for row, (key, (*_, mention)) in enumerate(zip(keys, right, strict=True)):
                if hides[row]:
                    named = again[row].mentions.classes
                    effects[key][f"kept_{name}"] = mention in named
                    if labelled:
                        effects[key][f"matched_{name}"] = not set(labelled[row]).isdisjoint(named)
                    effects[key][f"change_{name}"] = after[row] - before[row]
        return effects
