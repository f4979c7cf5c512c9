"""Every (seed, name) has its own random stream, the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from surgeval.errors import BadInput
from surgeval.stats import stream

FIRST_WORDS = [1332696958385314092, 4067389951972058158, 9243266244758894569]


def test_the_first_draws_of_a_stream_are_fixed_for_all_versions() -> None:
    assert stream(0, "overall").bit_generator.random_raw(3).tolist() == FIRST_WORDS


def test_a_stream_depends_on_seed_names_and_their_borders() -> None:
    keys: list[tuple[int | str, ...]] = [
        (0,), (1,), (-1,), (0, ""), (0, "", ""), (0, "ab", "c"), (0, "a", "bc"), (0, 1), (0, "1"), (0, "vidéo")
    ]  # fmt: skip
    draws = {tuple(stream(*key).integers(0, 2**62, 2).tolist()) for key in keys}  # type: ignore[arg-type]
    assert len(draws) == len(keys)


def test_streams_of_neighbouring_seeds_are_uncorrelated() -> None:
    columns = np.array([stream(seed, "x").random(2000) for seed in range(20)])
    correlation = np.corrcoef(columns)
    assert np.abs(correlation - np.eye(20)).max() < 5 / np.sqrt(2000)


@pytest.mark.parametrize("bad", [None, 1.0, True, ("a",)])
def test_a_seed_or_name_of_another_type_is_refused(bad: object) -> None:
    with pytest.raises(BadInput, match="whole number or text"):
        stream(0, bad)  # type: ignore[arg-type]
