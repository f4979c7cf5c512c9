"""Names of models: embedded, folders, files, the hub, other packages; and what `surgeval models` prints."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Literal

import huggingface_hub.constants
import huggingface_hub.errors
import numpy as np
import pytest
import torch
import typer
from safetensors.torch import load_file, save_file
from studies.embedded_models.render import RenderJob, render_video
from tests.plugins import install_plugin

from surgeval.cli.models import register
from surgeval.errors import BadInput, MissingExtra, SurgevalError
from surgeval.models import EMBEDDED, FAMILIES, check_model, embedded_names, hub_folder, open_contrastive
from surgeval.phantom import edition, plan_videos
from surgeval.vocab import load_labels

CLIPS = embedded_names("contrastive")
PLUGIN = '''
from surgeval.models import ModelFamily, Preparation


class Blind:
    """Scores everything alike."""

    name, identity, family, logit_scale, device = "blind", "0" * 64, "blind", 1.0, "cpu"
    preparation = Preparation((8, 8))

    def to(self, device):
        return self

    def texts(self, prompts):
        return list(prompts)

    def scores(self, pixels, texts):
        import torch

        return torch.zeros(len(pixels), len(texts))


def open_blind(place, name, dtype):
    model = Blind()
    model.name = place
    return model


def open_nothing(place, name, dtype):
    return place


blind = ModelFamily("blind", "no images", "blind_models:open_blind")
nothing = ModelFamily("nothing", "no model", "blind_models:open_nothing")
'''


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with entry points, as files on the path."""
    entries = {name: f"blind_models:{name}" for name in ("blind", "nothing", "absent")}
    monkeypatch.syspath_prepend(install_plugin(tmp_path, "surgeval.models", entries, blind_models=PLUGIN))


@pytest.mark.usefixtures("other_package")
def test_another_package_adds_a_model_by_entry_point() -> None:
    assert {"blind", "nothing"} <= set(FAMILIES.plugins())
    assert open_contrastive("blind:small").name == "small"
    assert open_contrastive("blind").name == ""
    result = check_model("blind:x")
    assert result.usable and result.family == "blind" and result.explains is None
    with pytest.raises(SurgevalError, match=r"'nothing': .*: expected a Contrastive or a Generative model, got a str"):
        open_contrastive("nothing:x")
    with pytest.raises(SurgevalError, match="'absent' of another package"):
        open_contrastive("absent:x")


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("", "Give a folder"),
        ("phantom-clop", "phantom-clip"),
        ("./nowhere", "no such file or folder"),
        ("/nowhere/at/all", "no such file or folder"),
        ("../a/b", "no such file or folder"),
        ("a" * 5000, "no such file or folder"),
        ("clip:", "nothing follows clip:"),
        ("surgvlp:x.pth?vocab=", r"nothing follows \?vocab="),
        ("surgvlp:x.pth", "no such file"),
        ("bad\0name", "Give a folder"),
    ],
)
def test_a_name_that_stands_for_nothing_is_one_sentence(spec: str, word: str) -> None:
    with pytest.raises(SurgevalError, match=word) as caught:
        open_contrastive(spec)
    assert "\n" not in str(caught.value)


def test_a_hub_name_without_a_network_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(SurgevalError, match=r"nobody/no-such-model.*the hub could not provide it"):
        open_contrastive("nobody/no-such-model")


@pytest.mark.parametrize("repo_type", ["model", "dataset"])
def test_a_hub_that_breaks_off_and_a_missing_client_are_one_sentence_for_models_and_datasets(
    repo_type: Literal["model", "dataset"], monkeypatch: pytest.MonkeyPatch
) -> None:
    http_error = huggingface_hub.errors.HfHubHTTPError.__bases__[0]  # of the client below, no OSError

    def broken(*_: object, **__: object) -> str:
        raise http_error("peer closed\nthe connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", broken)
    with pytest.raises(BadInput, match=rf"{repo_type} 'a/b': .* the hub could not provide it: peer closed"):
        hub_folder("a/b", ["*.parquet"], repo_type=repo_type)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=rf"{repo_type} 'hub:a/b': found no huggingface_hub"):
        hub_folder("a/b", ["*.parquet"], repo_type=repo_type, text="hub:a/b")


def test_an_unknown_precision_is_refused(clip_folder: Path) -> None:
    with pytest.raises(SurgevalError, match="float32 or bfloat16"):
        open_contrastive(clip_folder, dtype="float8")
    with pytest.raises(SurgevalError, match=r"\?vocab= is for checkpoint files, not for folders"):
        open_contrastive(f"clip:{clip_folder}?vocab=x")


@pytest.mark.parametrize("name", CLIPS)
def test_an_embedded_model_is_installed_and_usable(name: str) -> None:
    result = check_model(name)
    assert result.problems == () and result.usable
    assert result.explains == ("gradcam" if "resnet" in name else "rollout")


@pytest.mark.parametrize("name", CLIPS)
def test_opening_an_embedded_model_complains_about_nothing(name: str) -> None:
    said: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("transformers")
    logger.addHandler(listener)
    try:
        open_contrastive(name).texts(["The grasper is in the image"])
    finally:
        logger.removeHandler(listener)
    assert said == []


def test_the_embedded_weights_fit_the_wheel_and_are_fp16() -> None:
    files = [path for name in CLIPS for path in EMBEDDED[name].path.iterdir()]
    assert sum(path.stat().st_size for path in files) <= 8_000_000
    for path in files:
        if path.suffix == ".safetensors":
            content = path.read_bytes()
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            types = {entry["dtype"] for key, entry in header.items() if key != "__metadata__"}
            assert types <= {"F16", "I64"}, path.parent.name  # the whole numbers are counters of batch normalisation


@pytest.mark.parametrize("name", CLIPS)
def test_the_documented_numbers_are_those_of_the_installed_weights(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "embedded-models.md").read_text(encoding="utf-8")
    found = hashlib.sha256((EMBEDDED[name].path / "model.safetensors").read_bytes()).hexdigest()
    assert f"| `{name}` | `{found[:16]}` |" in page, "examine the new weights and put the table into the page"


HITS = {  # of the 11 frames with an instrument; no decision among them is closer than 0.001
    "by_instrument": {"phantom-clip": 11, "phantom-clip-resnet": 11, "phantom-shortcut": 11},
    "random": {"phantom-clip": 11, "phantom-clip-resnet": 11, "phantom-shortcut": 3},
}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("tint", HITS)
def test_the_shortcut_is_right_only_where_the_tint_betrays_the_instrument(tint: str) -> None:
    fixed = edition("phantom-v1")
    plan = next(plan for plan in plan_videos(fixed.seed, fixed.videos) if plan.split == "test")
    frames = render_video(RenderJob(plan, 0, tint, every=125))
    shown = (frames.instrument >= 0).any(1)
    prompts = [f"The {instrument} is in the image" for instrument in load_labels("phantom").instruments]
    hits = {}
    for name in CLIPS:
        model = open_contrastive(name)
        pixels = torch.from_numpy(np.stack([model.preparation(image) for image in frames.images[shown]]))
        said = model.scores(pixels, model.texts(prompts)).argmax(1).numpy()
        hits[name] = int((frames.instrument[shown] == said[:, None]).any(1).sum())
    assert (int(shown.sum()), hits) == (11, HITS[tint])


def test_importing_the_package_imports_no_torch() -> None:
    code = (
        "import sys, surgeval.models, surgeval.models.preparation, surgeval.models.registry, surgeval.cli.models; "
        "surgeval.models.open_contrastive, surgeval.models.check_model, surgeval.models.Contrastive; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


def test_without_torch_one_sentence_says_how_to_get_it(clip_folder: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from surgeval.models import check_model\n"
        f"print(check_model({str(clip_folder)!r}).problems[0])"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    assert out.stdout.strip().endswith("found no torch, expected the models extra: pip install 'surgeval[models]'")


@pytest.fixture
def app() -> typer.Typer:
    root = typer.Typer()
    register(root)
    return root


def test_models_check_says_what_a_folder_is_and_exits_0(
    app: typer.Typer, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app(args=["models", "check", str(clip_folder)], standalone_mode=False) == 0
    shown = capsys.readouterr().out
    assert "rollout" in shown and "100.0 % of a 16:9 frame" in shown and "it can be used" in shown
    assert app(args=["models", "check", str(clip_folder), "--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] and found["family"] == "clip" and found["input_size"] == [32, 32]


def test_models_check_exits_2_and_says_what_is_missing(
    app: typer.Typer, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clip_folder / "tokenizer.json").unlink()
    assert app(args=["models", "check", str(clip_folder)], standalone_mode=False) == 2
    shown = capsys.readouterr().out
    assert "problem:" in shown and "tokenizer.json" in shown and "images only" in shown
    assert app(args=["models", "check", "nowhere.pth"], standalone_mode=False) == 2
    assert "it cannot be loaded" in capsys.readouterr().out


def test_models_list_names_every_kind(app: typer.Typer, capsys: pytest.CaptureFixture[str]) -> None:
    app(args=["models", "list"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*EMBEDDED, *FAMILIES, "FOLDER", "OWNER/NAME"))
    app(args=["models", "list", "--json"], standalone_mode=False)
    assert set(json.loads(capsys.readouterr().out)) == {"embedded", "places", "kinds", "plugins"}


@pytest.mark.parametrize("kind", ["", "clip:", "surgvlp:"])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_of_a_folder_is_answered_with_the_folder(clip_folder: Path, kind: str, name: str) -> None:
    result = check_model(f"{kind}{clip_folder / name}")
    (problem,) = result.problems
    assert problem.endswith(f"Give the folder: {clip_folder}")


def test_a_pickle_is_part_of_a_folder_only_beside_its_configuration(clip_folder: Path, tmp_path: Path) -> None:
    for folder in (clip_folder, tmp_path):
        torch.save({"a": torch.ones(1)}, folder / "pytorch_model.bin")
    assert f"Give the folder: {clip_folder}" in check_model(clip_folder / "pytorch_model.bin").problems[0]
    assert "tensors of SurgVLPNetwork" in check_model(tmp_path / "pytorch_model.bin").problems[0]


def test_models_check_prints_what_was_done_to_the_names(
    app: typer.Typer, clip_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = clip_folder / "model.safetensors"
    save_file({f"module.{name}": value for name, value in load_file(path).items()}, path)
    assert app(args=["models", "check", str(clip_folder)], standalone_mode=False) == 0
    assert "note: The names of all 78 tensors begin with 'module.', which was removed." in capsys.readouterr().out
