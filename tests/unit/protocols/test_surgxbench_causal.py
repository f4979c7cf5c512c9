"""Explaining tokens of the names in replies: a planted attention is found, a blind one reaches chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from surgeval.explain.cleann import CausalSettings
from surgeval.models import Generated, Preparation, Replayed
from surgeval.protocols.surgxbench import SurgXSettings
from surgeval.protocols.surgxbench.causal_table import CausalCase, causal_table
from surgeval.protocols.surgxbench.measuring.causal import causal_cases
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.records import Box, Case, Frame, Instance, Triplet

CLASSES = ("grasper", "hook", "clipper")
GRID, FIRST, PROMPT = (8, 8), 2, 76  # 64 image tokens behind two of the system, then ten of the question
HOOK = Instance(Triplet(1, 1, 1), Box(40, 40, 24, 24))  # patches of 8 × 8 pixels: rows and columns 5 to 7


class Attending:
    """A model whose rows of the tokens `alike` and of the answer attend in the same way; all others differ."""

    grid = GRID
    preparation = Preparation((64, 64))

    def __init__(self, alike: list[int], heads: int = 6) -> None:
        self.alike, self.heads = alike, heads

    def replay(self, images: Any, replies: list[Generated]) -> Replayed:
        size = PROMPT + 1
        rng = np.random.default_rng(0)
        A = np.tril(rng.gamma(0.05, size=(self.heads, size, size)) + 1e-9)
        shared = np.zeros(size)
        shared[[0, 1]] = 1.0
        for head in range(self.heads):
            for token in (*self.alike, PROMPT - 1):
                row = shared + (1 + head) * 1e-3 * A[head, token]
                A[head, token] = np.tril(np.ones((size, size)))[token] * row
                if token == PROMPT - 1:
                    A[head, token, self.alike] = 0.2  # the answer attends to them
        A /= A.sum(2, keepdims=True)
        attention = torch.from_numpy(np.stack([A] * len(replies)))
        empty = torch.zeros(len(replies), 1, 1)
        return Replayed(empty, empty, attention, tuple(size for _ in replies))


def _answer(number: int) -> Any:
    reply = Generated("hook", (7,), ("hook",), PROMPT, (0,) * PROMPT, ((FIRST, FIRST + 64),), (0.9,))
    return SimpleNamespace(reply=reply, mentions=SimpleNamespace(classes=(number,)), tokens=((0,),))


def _seen(*instances: Instance) -> PreparedFrame:
    image = np.zeros((64, 64, 3), np.uint8)
    prepared = Attending.preparation
    return PreparedFrame(Frame("v1", "000001", 1, None, None, 64, 64, instances), image, prepared(image),
                         prepared.view(64, 64))  # fmt: skip


def _token(row: int, column: int) -> int:
    return FIRST + 8 * row + column


def _cases(alike: list[int], number: int, *instances: Instance, **settings: Any) -> list[Case]:
    seen, pixels = [_seen(*instances)], torch.zeros(1, 3, 64, 64)
    return list(causal_cases(Attending(alike), seen, pixels, [_answer(number)], CLASSES, CausalSettings(**settings)))  # type: ignore[arg-type]


def test_tokens_on_the_named_instrument_are_counted_as_near() -> None:
    (case,) = _cases([_token(6, 6), _token(5, 7)], 1, HOOK)
    values = case.values
    assert values["present"] and values["class"] == "hook"
    assert values["causal_graphs"] == 5
    assert values["causal_near"] == values["causal_image"]
    assert values["causal_image"] > 0  # type: ignore[operator]
    chance = 16 / 64  # the box grown by one patch: rows and columns 4 to 7
    assert values["causal_expected"] == pytest.approx(chance * values["causal_image"])  # type: ignore[operator]


def test_tokens_elsewhere_are_not_and_the_margin_decides_what_is_close() -> None:
    (far,) = _cases([_token(1, 1), _token(0, 3)], 1, HOOK)
    assert far.values["causal_near"] == 0 < far.values["causal_image"]  # type: ignore[operator]
    (close,) = _cases([_token(4, 4), _token(4, 5)], 1, HOOK)
    assert close.values["causal_near"] == close.values["causal_image"] > 0  # type: ignore[operator]
    (strict,) = _cases([_token(4, 4), _token(4, 5)], 1, HOOK, margin=0.0)
    assert strict.values["causal_near"] == 0


def test_a_wrong_name_is_measured_on_any_instrument_and_nothing_annotated_is_left_out() -> None:
    (wrong,) = _cases([_token(6, 6), _token(5, 7)], 0, HOOK)
    assert not wrong.values["present"]
    assert wrong.values["causal_near"] == wrong.values["causal_image"]
    (bare,) = _cases([_token(6, 6), _token(5, 7)], 0)
    assert bare.values["causal_near"] is None
    assert bare.values["causal_image"]


def test_the_table_keeps_right_and_wrong_names_apart_and_compares_with_chance() -> None:
    row = {"task": "causal", "causal_graphs": 5, "causal_stopped": 0, "causal_sink": 0.1, "causal_attended": 20,
           "causal_attended_near": 6}  # fmt: skip
    rows = [
        row | {"cluster": f"v{k}", "present": True, "causal_tokens": 10, "causal_image": 5, "causal_near": 4,
               "causal_expected": 1.0} for k in range(8)
    ] + [
        row | {"cluster": "v0", "present": False, "causal_tokens": 8, "causal_image": 2, "causal_near": None,
               "causal_expected": None}
    ]  # fmt: skip
    table = causal_table(pl.DataFrame(rows, schema_overrides=CausalCase.dtypes(), infer_schema_length=None))
    right, wrong = table.rows(named=True)
    assert (right["named"], right["names"], right["explaining_tokens"]) == ("rightly", 8, 80)
    assert (right["of_image"], right["near"], right["near_chance"]) == (0.5, 0.8, 0.2)
    assert right["near_attended"] == 0.3
    assert right["near_above_chance"] == pytest.approx(0.6)
    assert right["near_above_chance_low"] > 0
    assert (wrong["of_image"], wrong["near"]) == (0.25, None)
    assert causal_table(pl.DataFrame({"task": ["instruments"], "present": [True]})).is_empty()


def test_a_run_records_how_graphs_are_learned() -> None:
    recorded = SurgXSettings().record()["causal"]
    assert (recorded["learner"], recorded["radius"], recorded["kappa"], recorded["alpha"]) == ("ordered", 3, 0.01, 1e-5)
    assert SurgXSettings(causal=None).record()["causal"] is None
