"""What is listed for users is listed in one place: the packages of an extra, the names of models."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import pytest

import surgeval
from surgeval.asking import answerer_forms, open_answerer
from surgeval.errors import MODEL_PACKAGES, BadInput
from surgeval.models import embedded_names
from surgeval.protocols.focus import run_focus
from surgeval.protocols.intent import run_intent

SOURCES = Path(surgeval.__file__).parent


@pytest.mark.parametrize("words", ['"safetensors", "tokenizers"', '"prior[:TRAIN]"', "prior[:TRAIN], random[:SEED]"])
def test_a_list_is_spelt_once(words: str) -> None:
    assert sum(words in path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")) <= 1


def test_help_and_errors_name_the_models_that_can_be_opened() -> None:
    forms, every_form = answerer_forms(), answerer_forms(premises=True)
    assert set(embedded_names("generative")) <= set(forms) < set(every_form)
    said = {function: _help_of(function) for function in (run_focus, run_intent)}
    assert all(spec in text for text in said.values() for spec in forms)
    assert all(
        (spec in said[run_intent], spec in said[run_focus]) == (True, False) for spec in set(every_form) - set(forms)
    )
    with pytest.raises(BadInput) as refused:
        open_answerer("nobody", lambda question, frames: (), lambda place: ())
    assert all(spec in str(refused.value) for spec in every_form)
    for spec in ("random:3", "oracle", "always-reject:1", "always-accept"):
        assert open_answerer(spec, lambda question, frames: (), lambda place: ()).identity
        assert spec.partition(":")[0] in {re.split(r"[:\[]", one)[0] for one in every_form}


def _help_of(function: Callable[..., object]) -> str:
    (help,) = get_type_hints(function, include_extras=True)["model"].__metadata__
    return str(help.text)


def test_the_extra_holds_its_packages() -> None:
    declared = (SOURCES.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf'"{package}\b', declared) for package in MODEL_PACKAGES)
