"""A checkpoint from a stranger: whatever is wrong with it is one sentence, and nothing in it is run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.models.surgvlp_checkpoint import surgvlp_tensors

from surgeval.errors import SurgevalError
from surgeval.models import open_contrastive
from surgeval.models.weights import build_network, read_torch


def refusal(path: Path, **options: int) -> str:
    """The sentence with which the loader refuses a file."""
    with pytest.raises(SurgevalError) as caught:
        read_torch(path, **options) if options else open_contrastive(f"surgvlp:{path}")
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence
    return sentence


def complaint(call: Callable[[], object]) -> str | None:
    """The sentence of a refusal, or nothing; any other exception is a defect."""
    try:
        call()
    except SurgevalError as error:
        return str(error)
    return None


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    torch.save({"a": torch.arange(4.0), "b": torch.ones(2, 3)}, tmp_path / "small.pth")
    return tmp_path / "small.pth"


def test_a_renamed_key_is_named(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    tensors["backbone_img.model.layer3.5.convolution2.weight"] = tensors.pop("backbone_img.model.layer3.5.conv2.weight")
    torch.save(tensors, tmp_path / "renamed.pth")
    sentence = refusal(tmp_path / "renamed.pth")
    assert "SurgVLPNetwork: backbone_img.model.layer3.5.conv2.weight is missing and 1 more difference" in sentence
    assert "does not fit the 519 tensors" in sentence


def test_a_wrong_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    tensors["backbone_img.global_embedder.weight"] = torch.zeros(512, 2048)
    torch.save(tensors, tmp_path / "shape.pth")
    assert "global_embedder.weight has shape (512, 2048) instead of (768, 2048)" in refusal(tmp_path / "shape.pth")


def test_a_tensor_that_pretends_to_be_huge_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    tensors["backbone_img.global_embedder.weight"] = torch.zeros(1).expand(1 << 20, 1 << 20)
    torch.save(tensors, tmp_path / "huge.pth")
    assert "(1048576, 1048576)" in refusal(tmp_path / "huge.pth")


def test_tensors_that_share_one_storage_many_times_are_refused(tmp_path: Path) -> None:
    shared = torch.zeros(1000)
    torch.save({f"block.{k}": shared for k in range(10)}, tmp_path / "shared.pth")
    size = (tmp_path / "shared.pth").stat().st_size
    assert "tensors that share numbers add up to 40000 bytes" in refusal(tmp_path / "shared.pth", limit=1)
    torch.save({"head": shared, "tied": shared}, tmp_path / "tied.pth")
    assert sorted(read_torch(tmp_path / "tied.pth", limit=1)) == ["head", "tied"] and size < 20_000


def test_a_configuration_cannot_make_a_constant_larger_than_the_weights(tmp_path: Path) -> None:
    class Positions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(10**13, 0)  # no numbers at all, however many rows
            self.register_buffer("position_ids", torch.arange(10**13), persistent=False)

    with pytest.raises(SurgevalError, match=r"config\.json: makes position_ids 10000000000000 numbers long"):
        build_network(Positions, {"embedding.weight": torch.zeros(10**13, 0)}, tmp_path / "model.safetensors")


def test_whole_numbers_where_weights_belong_are_refused(tmp_path: Path) -> None:
    tensors = surgvlp_tensors()
    tensors["backbone_img.global_embedder.bias"] = torch.zeros(768, dtype=torch.int64)
    torch.save(tensors, tmp_path / "whole.pth")
    assert "global_embedder.bias has type int64" in refusal(tmp_path / "whole.pth")


class Touch:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("form", ["zip", "legacy", "bare"])
def test_a_pickle_with_code_inside_is_refused_and_not_run(tmp_path: Path, form: str) -> None:
    trap = tmp_path / "was-here"
    file = tmp_path / "trap.pth"
    if form == "bare":
        file.write_bytes(pickle.dumps({"weight": Touch(trap)}, protocol=2))
    else:
        torch.save({"weight": Touch(trap)}, file, _use_new_zipfile_serialization=form == "zip")
    assert "the file wants to run posix.mkdir" in refusal(file) or os.name == "nt"
    assert not trap.exists()


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
def test_a_truncated_file_is_called_truncated(checkpoint: Path, share: float) -> None:
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: int(len(whole) * share)])
    assert "the zip archive is truncated or damaged" in refusal(checkpoint)


def test_a_damaged_inner_file_is_one_sentence(checkpoint: Path, tmp_path: Path) -> None:
    whole = checkpoint.read_bytes()
    outer = tmp_path / "outer.zip"
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("SurgVLP.pth", whole[: len(whole) // 2])
    assert "truncated or damaged" in refusal(outer)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("SurgVLP.pth", whole)
    broken = outer.read_bytes().replace(b"small/data/0", b"small/data/\xff", 1)
    outer.write_bytes(broken)
    refusal(outer)


def test_a_zip_around_a_checkpoint_is_read(checkpoint: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer.zip"
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(checkpoint, "folder/SurgVLP.pth")
        archive.writestr("README.txt", "weights")
    found = read_torch(outer)
    assert sorted(found) == ["a", "b"] and found["a"].tolist() == [0, 1, 2, 3]
    with zipfile.ZipFile(outer, "a") as archive:
        archive.write(checkpoint, "HecVL.pth")
    assert "the zip archive holds 2 .pth files" in refusal(outer)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("README.txt", "weights")
    assert "the zip archive holds 0 .pth files" in refusal(outer)


def test_a_zip_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("SurgVLP.pth", "w") as member:
        for _ in range(8):
            member.write(bytes(1 << 20))
    assert bomb.stat().st_size < 1 << 14
    assert "the archive unpacks to 8388608 bytes; the limit is 1000000" in refusal(bomb, limit=1_000_000)


def test_a_zip_bomb_that_lies_about_its_size_is_refused_too(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SurgVLP.pth", bytes(8 << 20))
    honest = (8 << 20).to_bytes(4, "little")
    bomb.write_bytes(bomb.read_bytes().replace(honest, (1000).to_bytes(4, "little")))
    refusal(bomb, limit=1_000_000)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n", "not a checkpoint"),
        (b"<!doctype html><title>404</title>", "not a checkpoint"),
        (b"", "not a torch checkpoint"),
        (b"PK", "truncated"),
        (b"\x80\x02}q\x00.", "not a torch checkpoint"),  # an honest pickle of nothing, but not as torch writes one
    ],
)
def test_a_text_file_is_called_no_checkpoint(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "SurgVLP.pth"
    file.write_bytes(content)
    assert words in refusal(file)


def test_an_honest_checkpoint_of_nothing_lacks_its_first_tensor(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "SurgVLP.pth")
    assert "is missing" in refusal(tmp_path / "SurgVLP.pth")


def test_things_that_are_no_tensors_are_named(tmp_path: Path) -> None:
    torch.save({"state_dict": {"a": torch.ones(1)}}, tmp_path / "wrapped.pth")
    assert "state_dict: expected a tensor, got a dict" in refusal(tmp_path / "wrapped.pth")
    torch.save([torch.ones(1)], tmp_path / "list.pth")
    assert "got a list" in refusal(tmp_path / "list.pth")
    torch.save({"a": torch.eye(3).to_sparse()}, tmp_path / "sparse.pth")
    assert "sparse" in refusal(tmp_path / "sparse.pth")


def test_a_missing_file_and_a_folder_are_told_apart_from_a_checkpoint(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.pth")
    assert "no such file" in refusal(tmp_path)


@pytest.fixture(scope="module")
def three_forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same tensors as a torch archive, in torch's old form, and in a compressed zip."""
    folder = tmp_path_factory.mktemp("forms")
    tensors = {"a": torch.arange(40.0), "b": torch.ones(2, 3).half()}
    torch.save(tensors, folder / "new.pth")
    torch.save(tensors, folder / "old.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(folder / "outer.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "new.pth", "SurgVLP.pth")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("form", ["new.pth", "old.pth", "outer.zip"])
@given(data=st.data())
def test_damaged_bytes_give_tensors_or_one_sentence(
    three_forms: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    raw = bytearray(three_forms[form])
    places = st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(places, min_size=1, max_size=8)):
        raw[place] = value
    file = tmp_path_factory.getbasetemp() / "damaged"
    file.write_bytes(raw[: data.draw(st.integers(0, 2 * len(raw)))])
    sentence = complaint(lambda: read_torch(file))
    assert sentence is None or ("\n" not in sentence and sentence.startswith(str(file)))


@pytest.fixture(scope="module")
def clip_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden CLIP folder, to be spoiled."""
    source = Path(__file__).parents[2] / "data" / "golden" / "xai" / "tiny_clip"
    return Path(shutil.copytree(source, tmp_path_factory.mktemp("spoiled") / "clip"))


NASTY: st.SearchStrategy[object] = st.sampled_from(
    [None, -1, 0, 2**40, 1.5, "x", [], {}, True, [1, 2], float("nan"), 10**30]
)


@given(data=st.data())
def test_a_spoiled_configuration_opens_or_is_one_sentence(clip_copy: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["config.json", "preprocessor_config.json"]))
    path = clip_copy / name
    whole = path.read_text()
    config = json.loads(whole)
    part = config
    if name == "config.json":
        part = (
            config[data.draw(st.sampled_from(["text_config", "vision_config"]))] if data.draw(st.booleans()) else config
        )
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(NASTY)
    path.write_text(json.dumps(config))
    sentence = complaint(lambda: open_contrastive(clip_copy))
    path.write_text(whole)
    assert sentence is None or "\n" not in sentence
