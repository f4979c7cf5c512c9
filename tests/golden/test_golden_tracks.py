"""Every golden sequence under `--golden DIR`/tracks: IDF1, HOTA with its parts and swaps as in the references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.conftest import golden_folder
from tests.golden.reading import load

from surgeval.metrics import Tracks, track_identity

TOLERANCE = 1e-9


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "sequence" in metafunc.fixturenames:
        files = sorted((golden_folder(metafunc.config) / "tracks").glob("*.json*"))
        sequences = [entry for file in files for entry in load(file) if "trackeval" in entry]
        metafunc.parametrize("sequence", sequences, ids=[entry["case"] for entry in sequences])


def _tracks(frames: list[list[Any]]) -> Tracks:
    rows = [(number, track, box) for number, frame in enumerate(frames) for track, box in frame]
    frame, track, box = zip(*rows, strict=True) if rows else ((), (), ())
    return Tracks.of(frame, track, box)


def test_a_golden_sequence_scores_as_the_references_say(sequence: dict[str, Any]) -> None:
    found = track_identity(_tracks(sequence["tracked"]), _tracks(sequence["truth"]), iou=sequence["iou_threshold"])
    ids, hota, expected = found.ids, found.hota, sequence["trackeval"]
    assert [ids.idtp, ids.idfp, ids.idfn] == [expected["IDTP"], expected["IDFP"], expected["IDFN"]]
    assert [ids.idf1, ids.idp, ids.idr] == pytest.approx([expected[k] for k in ("IDF1", "IDP", "IDR")], abs=TOLERANCE)
    assert ids.idf1 == pytest.approx(sequence["motmetrics"]["idf1"], abs=TOLERANCE)
    assert hota.hota == pytest.approx(expected["HOTA"], abs=TOLERANCE)
    for name in ("DetA", "AssA", "LocA"):
        assert getattr(hota, name) == pytest.approx(expected[name], abs=TOLERANCE), name
    for values, name in ((hota.levels, "HOTA"), (hota.det_a, "DetA"), (hota.ass_a, "AssA")):
        np.testing.assert_allclose(values, expected[f"{name}_per_alpha"], rtol=0, atol=TOLERANCE, err_msg=name)
    assert found.swaps == expected["IDSW"]
