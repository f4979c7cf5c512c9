"""The studio's format among those of datasets, also where this checkout is not the one that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.studio.exchange.projects import register_format


@pytest.fixture
def studio_format(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The entry point of the distribution, on the search path."""
    place = tmp_path_factory.mktemp("distribution")
    register_format(place)
    monkeypatch.syspath_prepend(place)
    return place
