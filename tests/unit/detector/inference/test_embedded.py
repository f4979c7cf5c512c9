"""The detector that comes with surgeval opens by its name and finds what it was taught, on operations it never saw."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from tests.unit.detector.inference.detectors import operation

from surgeval.detector import load_detector
from surgeval.detector.inference import Looker, detector_digest, open_detector
from surgeval.detector.nms import SELECTING
from surgeval.errors import BadInput
from surgeval.models import EMBEDDED, embedded_names, open_model
from surgeval.phantom import edition, plan_videos
from surgeval.vocab import load_labels

ROOT = Path(__file__).parents[4]
TAUGHT = (11, 96)  # seed and number of videos of the dataset whose training videos it saw


@pytest.mark.parametrize("name", embedded_names("detector"))
def test_it_opens_by_its_name(name: str) -> None:
    detector = open_detector(name)
    assert detector.name == name
    assert detector.classes.space.triplets == load_labels("phantom").triplets
    assert detector_digest(name) == detector_digest(EMBEDDED[name].path)


@pytest.mark.parametrize("name", embedded_names("detector"))
def test_its_file_is_small_and_half_precise_and_computes_in_full(name: str) -> None:
    content = EMBEDDED[name].path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert {entry["dtype"] for key, entry in header.items() if key != "__metadata__"} == {"F16"}
    assert len(content) < 2_500_000
    loaded = load_detector(EMBEDDED[name].path)
    assert {value.dtype for value in loaded.model.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize("name", embedded_names("detector"))
def test_the_documented_weights_are_the_installed_ones(name: str) -> None:
    page = (ROOT / "docs" / "embedded-models.md").read_text(encoding="utf-8")
    found = hashlib.sha256(EMBEDDED[name].path.read_bytes()).hexdigest()
    assert f"| `{name}` | `{found[:16]}` |" in page, "measure the new weights and put the numbers into the page"


def test_no_operation_of_the_demo_or_of_the_tests_was_taught() -> None:
    taught = {plan.seed for plan in plan_videos(*TAUGHT)}
    fixed = edition("phantom-v1")
    for seed, videos in ((fixed.seed, fixed.videos), (7, 2)):
        assert taught.isdisjoint(plan.seed for plan in plan_videos(seed, videos))


def test_what_it_is_sure_of_is_an_instrument_of_the_frame() -> None:
    found = Looker(open_detector("tdnet-p", aux=False), SELECTING["viewer"]).look([operation(20)])[0]
    assert len(found) >= 1
    assert bool((found.scores >= 0.25).all())


def test_it_is_no_model_that_scores_prompts() -> None:
    with pytest.raises(BadInput, match="'tdnet-p' is a detector; this needs a model that scores"):
        open_model("tdnet-p")
