"""An RT-DETR folder: what was saved comes back, transformers can open it, and folders of strangers are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.detector.rtdetr_scene import CLASSES, SIDE, SPACE, scene

from surgeval.detector import Classes
from surgeval.detector.rtdetr import RTDetr, build_rtdetr, load_rtdetr, pretrained_rtdetr, save_rtdetr
from surgeval.detector.rtdetr.config import architecture, transformers_config
from surgeval.errors import DataError, SurgevalError
from surgeval.vocab import load_labels

NAMES = ["config.json", "model.safetensors", "surgeval.json"]


@pytest.fixture(scope="module")
def network() -> RTDetr:
    torch.set_num_threads(1)
    made = build_rtdetr("tiny", CLASSES, image_size=SIDE, fill=0, aux=True, seed=4)
    made.eval()
    return made


@pytest.fixture
def folder(network: RTDetr, tmp_path: Path) -> Path:
    save_rtdetr(tmp_path / "mine", network, extra={"epochs": 3})
    return tmp_path / "mine"


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object], file: str = "config.json") -> None:
    found = json.loads((folder / file).read_text())
    change(found)
    (folder / file).write_text(json.dumps(found))


def test_what_was_saved_comes_back_bit_by_bit(network: RTDetr, folder: Path) -> None:
    again = load_rtdetr(folder)
    images, _ = scene()
    first, second = network.raw(images), again.raw(images)
    assert torch.equal(first.boxes, second.boxes)
    assert all(torch.equal(first.probabilities[head], second.probabilities[head]) for head in CLASSES.heads)
    assert again.classes == CLASSES and (again.image_size, again.fill, again.aux, again.name) == (SIDE, 0, True, "mine")
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert set(load_rtdetr(folder, aux=False).raw(images).probabilities) == {"ivt"}


def test_half_precision_takes_half_the_room_and_moves_boxes_by_less_than_a_pixel(
    network: RTDetr, tmp_path: Path
) -> None:
    save_rtdetr(tmp_path / "whole", network)
    save_rtdetr(tmp_path / "half", network, half=True)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.6 * sizes[1]
    images, _ = scene()
    first, second = (
        network.raw(images).boxes.sort(1).values,
        load_rtdetr(tmp_path / "half").raw(images).boxes.sort(1).values,
    )
    assert float((first - second).abs().mean()) < 1


def test_transformers_opens_the_folder_by_the_hubs_names(network: RTDetr, folder: Path) -> None:
    from transformers import RTDetrForObjectDetection

    theirs = RTDetrForObjectDetection.from_pretrained(folder).eval()
    images, _ = scene()
    with torch.no_grad():
        assert torch.equal(theirs(images / 255).logits.sigmoid(), network.raw(images).probabilities["ivt"])
    assert theirs.config.id2label[3] == "hook,dissect,duct"
    names = load_file(folder / "model.safetensors")
    assert "model.encoder.encoder.0.layers.0.self_attn.out_proj.weight" in names
    assert "model.decoder.layers.0.fc1.weight" in names


def test_weights_of_other_classes_are_a_start_with_new_heads(network: RTDetr, folder: Path) -> None:
    (folder / "surgeval.json").unlink()  # as a folder from elsewhere
    others = Classes.of(load_labels("phantom"))
    start = pretrained_rtdetr(folder, others, image_size=96)
    assert start.net.model.decoder.class_embed[0].out_features == 100 and not start.aux
    assert all(p.requires_grad for p in start.parameters())
    kept, mine = start.state_dict(), network.state_dict()
    same = {name for name, value in kept.items() if name in mine and torch.equal(value, mine[name])}
    assert {name for name in kept if name not in same and "batches_tracked" not in name} == {
        name for name in kept if "class_embed" in name or "enc_score_head" in name
    }
    assert torch.isfinite(start.eval().raw(torch.zeros(1, 3, 96, 96, dtype=torch.uint8)).boxes).all()


def test_a_folder_that_transformers_wrote_is_a_start(tmp_path: Path) -> None:
    from transformers import RTDetrForObjectDetection

    theirs = RTDetrForObjectDetection(transformers_config(architecture("tiny", 7, frozen_norms=True)))
    theirs.save_pretrained(tmp_path)
    start = pretrained_rtdetr(tmp_path, CLASSES, image_size=SIDE)
    mine, given = start.net.state_dict(), theirs.state_dict()
    assert mine.keys() == given.keys()  # the backbone's norms are frozen in both
    changed = {name.rpartition(".")[0] for name in mine if not torch.equal(mine[name], given[name])}
    assert {name.split(".")[-1 if name.endswith(("head", "embed")) else -2] for name in changed} == {
        "class_embed", "enc_score_head", "denoising_class_embed"
    }  # fmt: skip


def test_files_that_name_the_decoders_heads_twice_are_read(network: RTDetr, folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    again = {name.removeprefix("model.decoder."): value.clone() for name, value in tensors.items()
             if name.startswith(("model.decoder.class_embed", "model.decoder.bbox_embed"))}  # fmt: skip
    assert again
    save_file({**tensors, **again}, folder / "model.safetensors")
    mine, theirs = load_rtdetr(folder).state_dict(), network.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_a_folder_of_ours_with_the_same_classes_keeps_its_heads(network: RTDetr, folder: Path) -> None:
    again = pretrained_rtdetr(folder, CLASSES, image_size=96, aux=True)
    assert all(
        torch.equal(a, b) for a, b in zip(again.state_dict().values(), network.state_dict().values(), strict=True)
    )
    assert again.image_size == 96 and all(p.requires_grad for p in again.parameters())
    fewer = pretrained_rtdetr(folder, Classes.of(SPACE, "instruments"), image_size=96)
    assert fewer.net.model.enc_score_head.out_features == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_queries", 10**9), ("decoder_layers", 10**6), ("d_model", 66), ("encoder_attention_heads", 0),
        ("dropout", 7), ("activation_function", "os.system"), ("learn_initial_query", True), ("model_type", "detr"),
        ("use_timm_backbone", True), ("backbone", "resnet50"), ("anchor_image_size", [64, 64]), ("feat_strides", [8]),
        ("backbone_config", None), ("backbone_config", {"model_type": "timm_backbone"}), ("id2label", {}),
        ("hidden_expansion", "0.5"), ("num_denoising", 2.5),
    ],
)  # fmt: skip
def test_a_configuration_out_of_bounds_is_one_sentence_that_names_the_field(
    folder: Path, field: str, value: object
) -> None:
    rewrite(folder, lambda config: config.update({field: value}))
    with pytest.raises(DataError) as error:
        load_rtdetr(folder)
    assert (
        str(folder / "config.json") in str(error.value) and field in str(error.value) and "\n" not in str(error.value)
    )


@pytest.mark.parametrize(("field", "value"), [("depths", [1, 1, 1, 9999]), ("hidden_sizes", [16, 32]),
                                              ("out_features", ["stage4"]), ("layer_type", "wide")])  # fmt: skip
def test_a_strange_backbone_is_refused(folder: Path, field: str, value: object) -> None:
    rewrite(folder, lambda config: config["backbone_config"].update({field: value}))
    with pytest.raises(DataError, match=field):
        load_rtdetr(folder)


def test_sizes_that_make_no_network_are_one_sentence(folder: Path) -> None:
    rewrite(folder, lambda config: config["backbone_config"].update(layer_type="bottleneck", hidden_sizes=[1, 2, 3, 4]))
    with pytest.raises(DataError, match=r"config\.json|model\.safetensors: weights: does not fit"):
        load_rtdetr(folder)


def test_a_larger_network_than_its_weights_takes_no_memory(folder: Path) -> None:
    rewrite(folder, lambda config: config.update(d_model=2048, decoder_ffn_dim=16384, decoder_layers=24))
    with pytest.raises(DataError, match=r"model\.safetensors: weights: does not fit"):
        load_rtdetr(folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "tdnet"), ("version", 9), ("image_size", 1.5), ("image_size", 33), ("fill", 999), ("aux", "yes"),
     ("classes", {"task": "triplets", "space": {"instruments": []}})],
)  # fmt: skip
def test_what_surgeval_json_says_is_checked(folder: Path, field: str, value: object) -> None:
    rewrite(folder, lambda ours: ours.update({field: value}), "surgeval.json")
    with pytest.raises(DataError) as error:
        load_rtdetr(folder)
    assert str(folder / "surgeval.json") in str(error.value)


def test_other_classes_than_the_weights_have_are_refused(folder: Path) -> None:
    rewrite(folder, lambda ours: ours.update(classes=Classes.of(load_labels("phantom")).to_json()), "surgeval.json")
    with pytest.raises(DataError, match="id2label: found 4 classes, expected the 100 of"):
        load_rtdetr(folder)


def test_weights_that_do_not_fit_are_named(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    for change, complaint in (
        ({"surgeval_parts.v.weight": torch.zeros(3, 64)}, "v.weight has shape"),
        ({"model.enc_score_head.bias": torch.full((4,), torch.nan)}, "NaN or infinity"),
        ({"model.strange": torch.zeros(1)}, "model.strange is not part"),
        ({"model.enc_score_head.weight": torch.zeros(9, 64)}, "enc_score_head.weight has shape"),
    ):
        save_file({**tensors, **change}, folder / "model.safetensors")
        with pytest.raises(DataError, match=complaint):
            load_rtdetr(folder)
    save_file({name: value for name, value in tensors.items() if "fc1" not in name}, folder / "model.safetensors")
    with pytest.raises(DataError, match=r"fc1.* is missing"):
        load_rtdetr(folder)


def test_pickled_weights_are_not_read(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"model\.safetensors: no such file"):
        load_rtdetr(folder)
    (folder / "model.safetensors").write_bytes((folder / "pytorch_model.bin").read_bytes())
    with pytest.raises(DataError, match="not a safetensors file"):
        load_rtdetr(folder)


@pytest.mark.parametrize("where", ["no-such-folder", "../..", "a/b/c", "x" * 5000])
def test_neither_a_folder_nor_a_hub_name(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SurgevalError) as error:
        pretrained_rtdetr(where, CLASSES)
    assert "\n" not in str(error.value)
