"""One image and a question: the causal graphs behind each generated token, as a table and a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.unit.models.llava_folder import write_llava
from typer.testing import CliRunner

from surgeval.cli.app import app
from surgeval.explain.cleann import CausalSettings
from surgeval.protocols.surgxbench import explain_causes

ASKED = "What surgical tools do you see?"


@pytest.fixture(scope="module", params=[False, True], ids=["cropped", "padded"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llava(tmp_path_factory.mktemp("llava"), pad=request.param)


def _frame() -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (60, 160, 3)).astype(np.uint8)


def test_every_token_has_a_row_for_each_head(folder: Path) -> None:
    shown = explain_causes(_frame(), str(folder), ASKED, boxes=[(60, 10, 100, 50)], max_tokens=3,
                           settings=CausalSettings(alpha=0.05, heads=4))  # fmt: skip
    table = shown.to_frame()
    tokens = len(shown.graphs[ASKED])
    assert tokens >= 1
    assert table.height == 4 * tokens
    assert (table["image"] <= table["explaining"]).all()
    assert (table["near"] <= table["image"]).all()
    assert table["complete"].all()
    assert shown.picture.shape[1] > 1000
    assert "Causes of what" in repr(shown)
    assert "<img" in shown._repr_html_()


def test_padding_tokens_are_in_no_graph_and_not_in_chance(folder: Path) -> None:
    shown = explain_causes(_frame(), str(folder), ASKED, boxes=[(0, 0, 160, 60)], max_tokens=2)
    assert shown.to_frame()["chance"].unique().to_list() == [1.0]  # all that shows the frame is in the box
    image = {node for row in shown.graphs[ASKED] for graph in row for node in graph.nodes.image}
    assert shown.to_frame()["near"].sum() == shown.to_frame()["image"].sum()
    assert image


def test_the_command_draws_and_counts(folder: Path, tmp_path: Path) -> None:
    Image.fromarray(_frame()).save(tmp_path / "frame.png")
    command = ["explain", str(tmp_path / "frame.png"), "--model", str(folder), "--prompt", ASKED, "--max-tokens", "2",
               "--causal", "--box", "60,10,100,50", "--out", str(tmp_path / "out.png")]  # fmt: skip
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.output
    made = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert made["settings"]["learner"] == "ordered"
    assert len(made["graphs"]) == 5 * 2  # heads of each token
    explaining = sum(row["explaining"] for row in made["graphs"])
    assert explaining > 0
    assert f"of {explaining} explaining tokens are image tokens" in " ".join(told.output.split())
    assert Image.open(tmp_path / "out.png").size[0] > 1000


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "5,5,1,9"])
def test_a_bad_box_is_one_sentence(folder: Path, tmp_path: Path, box: str) -> None:
    Image.fromarray(_frame()).save(tmp_path / "frame.png")
    told = CliRunner().invoke(app, ["explain", str(tmp_path / "frame.png"), "--model", str(folder), "--prompt", ASKED,
                                    "--causal", "--box", box])  # fmt: skip
    assert told.exit_code != 0
    assert "--box" in str(told.output) + str(told.exception)


def test_a_model_that_scores_prompts_has_no_causal_graphs(tmp_path: Path) -> None:
    Image.fromarray(_frame()).save(tmp_path / "frame.png")
    told = CliRunner().invoke(app, ["explain", str(tmp_path / "frame.png"), "--model", "phantom-clip", "--prompt",
                                    ASKED, "--causal"])  # fmt: skip
    assert told.exit_code != 0
    assert "phantom-clip" in str(told.output) + str(told.exception)
