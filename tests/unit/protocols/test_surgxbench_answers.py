"""Models that answer in words in `surgxbench`: what a reply names is predicted, has a map, is lost by hiding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tests.conftest import Once
from tests.unit.models.llava_folder import write_llava
from tests.unit.protocols.scripted_model import Scripted

from surgeval.errors import BadInput
from surgeval.models import Generative
from surgeval.protocols.surgxbench import SurgXSettings, load_surgxbench, outcomes, run_surgxbench
from surgeval.protocols.surgxbench.measuring.asked import AskedModel
from surgeval.protocols.surgxbench.measuring.checks import check_answers
from surgeval.protocols.surgxbench.measuring.frames import PreparedFrame
from surgeval.protocols.surgxbench.page import write_page_of
from surgeval.records import Box, Case, Frame, Instance, Triplet
from surgeval.vocab import LabelSpace

SPACE = LabelSpace("toy", ("grasper", "hook", "clipper"), ("grasp", "dissect", "clip"), ("liver", "gallbladder"),
                   ((0, 0, 0), (0, 0, 1), (1, 1, 1), (2, 2, 1)))  # fmt: skip
HOOK_CELL = 5  # row 1, column 1 of the 4 × 4 tokens


def _frame(*instances: Instance, size: tuple[int, int] = (64, 64), net: Any = None) -> PreparedFrame:
    frame = Frame("v1", "000001", 1, None, None, size[1], size[0], instances)
    image = np.full((*size, 3), 200, np.uint8)
    net = net or Scripted(lambda *_: "")
    return PreparedFrame(frame, image, net.preparation(image), net.preparation.view(*size))


HOOK = Instance(Triplet(1, 1, 1), Box(16, 16, 16, 16))  # just the cell 5 of a 64 × 64 frame
GRASPER = Instance(Triplet(0, 0, 1), Box(48, 48, 16, 16))


def _cases(asked: AskedModel, *seen: PreparedFrame) -> dict[str, list[dict[str, Any]]]:
    made: dict[str, list[dict[str, Any]]] = {}
    cases: list[Case] = list(asked.cases(seen))
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        made.setdefault(str(case.values["task"]), []).append(dict(case.values))
    return made


def _asked(say: Any, look: dict[str, int] | None = None, pad: bool = False, **settings: Any) -> AskedModel:
    net = Scripted(say, look, pad)
    assert isinstance(net, Generative)
    return AskedModel(net, SPACE, SurgXSettings(**({"occlusion": False} | settings)))


def test_everything_a_reply_names_is_predicted_and_the_first_name_is_the_best() -> None:
    asked = _asked(lambda *_: "A hook, no grasper, a clip applier and a trocar.", {"hook": HOOK_CELL},
                   tasks=("instruments",), keep_top=1 / 16)  # fmt: skip
    made = _cases(asked, _frame(HOOK, GRASPER))
    rows = {row["class"]: row for row in made["instruments"]}
    assert [name for name, row in rows.items() if row["predicted"]] == ["hook", "clipper"]
    assert [name for name, row in rows.items() if row["best"]] == ["hook"]
    assert rows["grasper"]["present"] and rows["grasper"]["excluded"] == "no_map"  # denied: missed
    assert rows["hook"]["score"] == pytest.approx(0.5) and rows["clipper"]["score"] == pytest.approx(0.25)
    assert rows["hook"]["ac"] == rows["hook"]["aa"] > 0.5 > rows["hook"]["chance"]
    assert rows["clipper"]["ac"] == 0.0 and not rows["clipper"]["present"]
    (reply,) = made["replies"]
    assert (reply["named"], reply["unparsed"], reply["unparsed_words"]) == (2, 1, "trocar")


def test_a_reply_that_names_nothing_is_wrong_and_not_left_out() -> None:
    made = _cases(_asked(lambda *_: "I cannot tell.", tasks=("instruments",)), _frame(HOOK), )  # fmt: skip
    best = [row for row in made["instruments"] if row["best"]]
    assert [(row["class"], row["present"], row["shown"]) for row in best] == [("none", False, 1)]
    frame = pl.DataFrame([{"cluster": "v1", **row} for row in made["instruments"]], infer_schema_length=None)
    from types import SimpleNamespace

    assert outcomes(SimpleNamespace(cases=frame, name="x"))["correctness"].to_list() == [False]  # type: ignore[arg-type]


def test_triplet_lines_are_matched_and_verbs_outside_the_space_are_unparsed() -> None:
    reply = "hook dissect gallbladder\ngrasper manipulate gallbladder"
    asked = _asked(lambda *_: reply, {"hook": HOOK_CELL, "dissect": HOOK_CELL, "gallbladder": HOOK_CELL},
                   tasks=("triplets",))  # fmt: skip
    made = _cases(asked, _frame(HOOK, GRASPER, Instance(Triplet(2, 2, 1), Box(0, 0, 8, 8))))
    found = {row["triplet"]: (row["level"], row["prompt"]) for row in made["triplets"]}
    assert found == {
        "hook,dissect,gallbladder": ("IVT", "hook,dissect,gallbladder"),
        "grasper,grasp,gallbladder": ("IT", "grasper,?,gallbladder"),
        "clipper,clip,gallbladder": ("missed", None),
    }
    assert made["replies"][0]["unparsed_words"] == "grasper manipulate gallbladder"


def test_triplets_of_a_reply_without_any_are_missed_without_a_map() -> None:
    made = _cases(_asked(lambda *_: "none", tasks=("triplets",)), _frame(HOOK))
    assert [(row["level"], row["excluded"]) for row in made["triplets"]] == [("missed", "no_map")]


def test_hiding_the_attended_region_loses_a_name_that_depended_on_it() -> None:
    def say(question: str, pixels: torch.Tensor) -> str:
        bright = float(pixels[0, 8:16, 8:16].mean()) > 0  # the hook's cell in the model's 32 × 32 pixels
        return "hook" if bright else "grasper"

    asked = _asked(say, {"hook": HOOK_CELL}, tasks=("instruments",), occlusion=True, keep_top=1 / 16)
    made = _cases(asked, _frame(HOOK))
    (hook,) = [row for row in made["instruments"] if row["class"] == "hook"]
    assert hook["kept_attended"] is False and hook["kept_boxes"] is False
    assert hook["kept_random"] is True and hook["kept_least"] is True and hook["kept_boxes_moved"] is True
    assert {name for name in hook if name.startswith("change_")} == {
        f"change_{name}" for name in ("attended", "random", "least", "boxes", "boxes_moved")
    }


@pytest.mark.parametrize("pad", [False, True])
def test_padding_is_in_no_quantile_and_never_hidden(pad: bool) -> None:
    """A frame twice as wide as high fills half of a padded square: the region is a share of that half."""
    shown: list[torch.Tensor] = []

    def say(question: str, pixels: torch.Tensor) -> str:
        shown.append(pixels)
        return "hook"

    asked = _asked(say, {"hook": 6}, pad, tasks=("instruments",), occlusion=True)
    one = _frame(Instance(Triplet(1, 1, 1), Box(64, 0, 32, 32)), size=(64, 128), net=asked.net)
    made = _cases(asked, one)
    (hook,) = made["instruments"]
    assert hook["area"] == pytest.approx(0.2, abs=0.02)  # of the frame, padded or not
    assert hook["chance"] == pytest.approx(32 * 32 / (64 * 128))
    top = shown[0][:, :8]  # of the square's 32 rows the first 8 are padding
    for without in shown[1:]:
        hidden = float((without != shown[0]).any(0).float().mean())
        assert 0 < hidden <= (0.11 if pad else 0.22)
        assert torch.equal(without[:, :8], top) or not pad


def test_checks_explain_the_name_of_the_first_instrument(tmp_path: Path) -> None:
    from surgeval.models import open_generative

    net = open_generative(write_llava(tmp_path / "llava", pad=True))
    asked = AskedModel(net, SPACE, SurgXSettings(tasks=("instruments",), max_tokens=3))
    seen = [_frame(HOOK, size=(48, 96), net=net)]
    made: list[dict[str, Any]] = [dict(case.values) for case in check_answers(asked, seen, seen)]
    (curve,) = [row for row in made if row["task"] == "curves"]
    assert curve["class"] == "hook" and len(curve["deletion"]) == 21
    assert all(0 <= value <= 1 for value in curve["deletion"])  # probabilities of the name
    weights = [row for row in made if row.get("check") == "weights"]
    assert weights[0]["step"].startswith("1. network.lm_head")
    assert any("vision_tower" in row["step"] for row in weights)
    (prompt,) = [row for row in made if row.get("check") == "prompt"]
    assert prompt["correlation"] is None or -1 <= prompt["correlation"] <= 1


def test_the_early_profile_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="profile early: found scripted, which answers in words"):
        _asked(lambda *_: "", profile="early")


def test_a_run_stands_beside_one_of_a_model_that_scores_prompts(
    filmed: Path, once: Once, tmp_path: Path, one_thread: None
) -> None:
    folder = once("tiny-llava", lambda out: write_llava(out))
    settings = SurgXSettings(curves=2, sanity=1, max_tokens=6, threads=1)
    done = run_surgxbench(filmed, str(folder), out=tmp_path / "words", settings=settings, gallery=4, progress=False)
    scores = done.loaded
    assert {"classes", "four_way", "references", "occlusion", "sanity", "matches", "replies"} <= set(
        scores.detail_tables
    )
    assert done.unknown_words and scores.verdict() is not None
    record = json.loads((tmp_path / "words" / "run.json").read_text())
    assert record["config"]["questions"]["instruments"].startswith("What surgical tools do you see?")
    assert record["config"]["method"] == {"name": "token-gradcam", "words": "mean"}
    again = load_surgxbench(tmp_path / "words")
    assert {key: one.estimate for key, one in again.numbers.items()} == {
        key: one.estimate for key, one in scores.numbers.items()
    }
    assert len(again.items) == len(scores.items) > 0
    clip = run_surgxbench(filmed, "phantom-clip", out=tmp_path / "clip",
                          settings=SurgXSettings(curves=0, sanity=0, threads=1, max_tokens=6),
                          gallery=0, progress=False).loaded  # fmt: skip
    page = write_page_of([clip, again], tmp_path / "both").read_text()
    assert "What it says" in page and "Asked: What surgical tools do you see?" in page
    evidence = again.evidence()
    assert evidence is not None and evidence.cases["answer"].str.contains("; it replied: ").all()
