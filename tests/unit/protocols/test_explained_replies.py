"""One image and a question: a reply, a map for each of its words, and a picture of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.unit.models.llava_folder import write_llava
from typer.testing import CliRunner

from surgeval.cli.app import app
from surgeval.errors import BadInput
from surgeval.explain import Method
from surgeval.protocols.surgxbench import ExplainedReply, explain_image

ASKED = "What surgical tools do you see?"


@pytest.fixture(scope="module", params=[False, True], ids=["cropped", "padded"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llava(tmp_path_factory.mktemp("llava"), pad=request.param)


def _frame() -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (90, 160, 3)).astype(np.uint8)


def test_a_reply_has_a_map_for_each_word_in_what_the_model_saw(folder: Path) -> None:
    shown = explain_image(_frame(), str(folder), [ASKED, "hook"], max_tokens=4)
    assert isinstance(shown, ExplainedReply)
    assert list(shown.replies) == [ASKED, "hook"]
    words = [(one.question, one.word) for one in shown.words]
    assert words and shown.heatmaps.shape == (len(words), 90, 160)
    assert shown.to_frame().columns == ["question", "word", "probability", "area", "flags"]
    padded = shown.visible == 1.0
    assert np.isnan(shown.heatmap[:, 0]).all() != padded  # cropped: the left edge was never seen
    assert not np.isnan(shown.heatmap[:, 80]).any()
    assert all(0 <= one.probability <= 1 for one in shown.words)
    assert shown.method == {"name": "token-gradcam", "words": "mean"}
    assert repr(shown).startswith(f"Explained by {folder}: ") and "<img" in shown._repr_html_()
    assert shown.picture.shape[1] == 3 * 360  # three panels in a row


def test_a_method_of_the_other_kind_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="method rollout cannot explain"):
        explain_image(_frame(), str(folder), ASKED, method=Method("rollout"))
    with pytest.raises(BadInput, match="method token-gradcam cannot explain"):
        explain_image(_frame(), "phantom-clip", ASKED, method=Method("token-gradcam"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prompts": None}, "prompts: found None, expected a sentence or a list of them"),
        ({"prompts": ["The hook", 5]}, r"prompts: found \['The hook', 5\], expected a sentence or a list of them"),
        ({"prompts": "The hook", "method": "gradcam"}, r"method must be a Method, such as"),
    ],
)
def test_prompts_and_methods_of_another_type_are_refused_in_one_sentence(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        explain_image(np.zeros((64, 96, 3), np.uint8), "phantom-clip", **asked)


def test_the_command_prints_the_reply_and_draws_its_words(folder: Path, tmp_path: Path) -> None:
    Image.fromarray(_frame()).save(tmp_path / "frame.png")
    command = ["explain", str(tmp_path / "frame.png"), "--model", str(folder), "--prompt", ASKED, "--max-tokens", "3",
               "--words", "max", "--out", str(tmp_path / "out.png")]  # fmt: skip
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    made = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert made["replies"][ASKED] in told.output
    assert [row["word"] for row in made["words"]] and made["method"]["words"] == "max"
    assert Image.open(tmp_path / "out.png").size[0] >= 360
