"""SurgVLP, HecVL, PeskaVLP: a random checkpoint of the exact names and shapes loads and runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.models.surgvlp_checkpoint import surgvlp_names, surgvlp_tensors, write_vocab
from transformers import BertTokenizer

from surgeval.errors import SurgevalError
from surgeval.models import ConvTower, check_model, open_contrastive
from surgeval.models.resnet import resnet50
from surgeval.models.surgvlp import SurgVLP, SurgVLPNetwork
from surgeval.models.tokenizers import WordPieces
from surgeval.models.weights import find_prefix

PROMPTS = ["I use a grasper", "the Grasper"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SurgVLP:
    folder = tmp_path_factory.mktemp("surgvlp")
    extra = {"backbone_text.model.embeddings.position_ids": torch.arange(512)[None]}  # older files carry it
    torch.save(surgvlp_tensors() | extra, folder / "SurgVLP.pth")
    write_vocab(folder / "words.txt")
    found = open_contrastive(f"surgvlp:{folder / 'SurgVLP.pth'}?vocab={folder / 'words.txt'}")
    assert isinstance(found, SurgVLP)
    return found


def test_the_network_has_exactly_the_described_tensors() -> None:
    names = surgvlp_names()
    assert sum(name.startswith("backbone_img.model.") for name in names) == 318
    with torch.device("meta"):
        ours = {name: tuple(value.shape) for name, value in SurgVLPNetwork().state_dict().items()}
    assert ours == names


def test_a_random_checkpoint_loads_and_scores_frames(model: SurgVLP) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (90, 160, 3), np.uint8)
    pixels = torch.from_numpy(model.preparation(frame))[None]
    texts = model.texts(PROMPTS)
    scores = model.scores(pixels, texts)
    assert scores.shape == (1, 2) and bool((scores.abs() <= 1 + 1e-6).all())
    assert model.logit_scale == 100.0 and model.family == "surgvlp"
    assert isinstance(model, ConvTower)
    maps = model.trunk(pixels)
    assert maps.shape == (1, 2048, 7, 7) and not maps.requires_grad
    maps.requires_grad_(True)
    assert texts.vectors is not None
    score = (model.head(maps) @ texts.vectors.T)[0]
    torch.testing.assert_close(score.detach(), scores[0])
    assert bool(torch.autograd.grad(score[0], maps)[0].abs().sum() > 0)
    assert not model.network.training and not any(p.requires_grad for p in model.network.parameters())


def test_the_sentence_vector_sums_real_tokens_over_the_last_four_layers(model: SurgVLP) -> None:
    tokens = model.tokens(PROMPTS)
    assert tokens["input_ids"].shape == (2, 77)
    assert tokens["input_ids"][0, :8].tolist() == [2, 5, 6, 7, 8, 9, 3, 0]  # cased: "grasper" is gra ##sper
    assert tokens["input_ids"][1, :5].tolist() == [2, 11, 10, 3, 0]
    bert = model.network.backbone_text["model"]
    length = 7  # without the padding, which the mask must make irrelevant
    with torch.no_grad():
        states = bert(tokens["input_ids"][:1, :length], output_hidden_states=True).hidden_states
        wanted = sum(layer[0].sum(0) for layer in states[-4:]) / 77
        found = model.network.sentence(**tokens)[0]
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_the_residual_trunk_keeps_torchvisions_geometry() -> None:
    with torch.device("meta"):
        network = resnet50().eval()
        assert network(torch.zeros(1, 3, 96, 64)).shape == (1, 2048, 3, 2)
    strides = {
        name: module.stride for name, module in network.named_modules() if getattr(module, "stride", 1) == (2, 2)
    }
    assert set(strides) == {"conv1", *(f"layer{k}.0.{part}" for k in (2, 3, 4) for part in ("conv2", "downsample.0"))}


def test_a_vocabulary_beside_the_checkpoint_is_found_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "SurgVLP.pth"
    missing = WordPieces(None, file, words=28996)
    assert missing.files == []
    with pytest.raises(SurgevalError, match=r"vocab\.txt: no such file"):
        missing(PROMPTS)
    write_vocab(tmp_path / "vocab.txt")
    beside = WordPieces(None, file, words=28996)
    assert beside.files == [tmp_path / "vocab.txt"]
    assert beside(PROMPTS)["attention_mask"].sum(1).tolist() == [7, 4]
    theirs = BertTokenizer(str(tmp_path / "vocab.txt"), do_lower_case=False)
    assert beside(PROMPTS)["input_ids"][0, :7].tolist() == theirs(PROMPTS[0])["input_ids"]


def test_another_models_vocabulary_is_refused(tmp_path: Path) -> None:
    uncased = WordPieces(write_vocab(tmp_path / "vocab.txt", 30522), tmp_path, words=28996)
    with pytest.raises(SurgevalError, match="30522 different word pieces on 30522 lines; the checkpoint needs 28996"):
        uncased(PROMPTS)
    path = write_vocab(tmp_path / "vocab.txt")
    path.write_text(path.read_text().replace("[SEP]", "[END]"))
    with pytest.raises(SurgevalError, match=r"\[SEP\] is missing"):
        WordPieces(path, tmp_path, words=28996)(PROMPTS)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SurgevalError, match="not valid UTF-8"):
        WordPieces(path, tmp_path, words=28996)(PROMPTS)


def test_a_prompt_over_77_tokens_is_refused_not_cut(tmp_path: Path) -> None:
    tokens = WordPieces(write_vocab(tmp_path / "vocab.txt"), tmp_path, words=28996)
    with pytest.raises(SurgevalError, match="82 tokens; this model reads at most 77"):
        tokens(["the " * 80])


def test_check_lists_every_missing_tensor(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    for name in ("backbone_img.global_embedder.weight", "backbone_img.model.layer4.2.conv3.weight"):
        del tensors[name]
    torch.save(tensors, tmp_path / "cut.pth")
    result = check_model(tmp_path / "cut.pth")
    assert not result.loads and len(result.problems) == 2
    assert "backbone_img.model.layer4.2.conv3.weight is missing and 1 more difference" in result.problems[0]
    assert result.problems[1] == "backbone_img.global_embedder.weight is missing"


def test_a_wrapper_around_all_names_is_left_out_and_told(tmp_path: Path) -> None:
    file = tmp_path / "SurgVLP.pth"
    torch.save({f"module.{name}": value for name, value in surgvlp_tensors().items()}, file)
    found = open_contrastive(file)
    assert isinstance(found, SurgVLP)
    assert found.notes == ("The names of all 519 tensors begin with 'module.', which was removed.",)
    name = "backbone_img.global_embedder.weight"
    torch.testing.assert_close(found.network.state_dict()[name], surgvlp_tensors()[name].float())


def test_a_wrapper_around_some_names_is_none(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    name = "backbone_img.global_embedder.weight"
    tensors[f"module.{name}"] = tensors.pop(name)
    torch.save(tensors, tmp_path / "SurgVLP.pth")
    assert check_model(tmp_path / "SurgVLP.pth").problems[1:] == (f"module.{name} is not part of the network",)
    image = {name: value for name, value in surgvlp_tensors().items() if name.startswith("backbone_img.")}
    torch.save(image, tmp_path / "SurgVLP.pth")  # all names share a beginning, and it is the right one
    result = check_model(tmp_path / "SurgVLP.pth")
    assert "backbone_text.model.embeddings.word_embeddings.weight is missing" in result.problems[0]
    assert not any("not part" in problem for problem in result.problems)


def test_what_wraps_the_names_is_found_by_the_names_that_fit() -> None:
    wanted = ["model.head.weight", "model.body.bias"]
    for prefix in ("module.", "_orig_mod.module.", "student."):
        assert find_prefix([f"{prefix}{name}" for name in wanted], wanted) == prefix
    assert find_prefix(["head.weight"], wanted) == ""
    assert find_prefix(wanted, wanted) == ""
    assert find_prefix([], wanted) == ""
    assert find_prefix(["." * 100_000 + "model.head.weight"], wanted) == ""
