"""Prompts that a model cannot read: equal ones are refused, unknown words are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.models.conftest import WORDS, write_tokenizer
from tests.unit.models.surgvlp_checkpoint import write_vocab

from surgeval.errors import BadInput, DataError
from surgeval.models import check_model, open_contrastive
from surgeval.models.tokenizers import FolderTokens, WordPieces

KNOWN = WORDS[4:]


def tokens_of(folder: Path) -> FolderTokens:
    return FolderTokens(folder, longest=77, words=len(WORDS))


@pytest.fixture(scope="module")
def word_tokens(tmp_path_factory: pytest.TempPathFactory) -> FolderTokens:
    folder = tmp_path_factory.mktemp("tokens")
    write_tokenizer(folder)
    return tokens_of(folder)


@pytest.mark.parametrize("name", ["phantom-clip", "phantom-clip-resnet"])
def test_prompts_that_differ_in_unknown_words_only_are_refused(name: str) -> None:
    prompts = ["The hook is in the image", "The aspirator is in the image", "The Endobag is in the image"]
    with pytest.raises(BadInput) as caught:
        open_contrastive(name).texts(prompts)
    assert str(caught.value) == (
        "The model cannot distinguish the prompts 'The aspirator is in the image' and 'The Endobag is in the image': "
        "its vocabulary lacks 'aspirator', 'Endobag'."
    )


@pytest.mark.parametrize("kind", ["blip-itc", "blip-itm"])
def test_every_head_tells_the_words_it_does_not_know(blip_folder: Path, kind: str) -> None:
    model = open_contrastive(f"{kind}:{blip_folder}")
    texts = model.texts(["The gauze is in the image", "a hook", "the GAUZE to retract a gauze", "zebra"])
    assert texts.unknown == ("gauze", "GAUZE", "zebra")  # as they were written, once each
    assert model.texts(["The Hook is in the image"]).unknown == ()
    with pytest.raises(BadInput, match=r"'a zebra' and 'a gauze'.*lacks 'zebra', 'gauze'"):
        model.texts(["a zebra", "a gauze"])


def test_a_prompt_of_unknown_words_alone_is_scored_and_told(clip_folder: Path) -> None:
    texts = open_contrastive(clip_folder).texts(["zebra crossing", "the hook"])
    assert texts.unknown == ("zebra", "crossing")
    assert texts.vectors is not None and len(texts.vectors) == 2


def test_equal_prompts_far_apart_are_found(clip_folder: Path) -> None:
    many = [f"{a} {b} {c}" for a in KNOWN for b in KNOWN for c in KNOWN[:2]]  # encoded in several pieces
    assert len(many) > 300
    model = open_contrastive(clip_folder)
    assert model.texts(many).unknown == ()
    with pytest.raises(BadInput, match=rf"cannot distinguish the prompts '{many[0]}' and '{many[0].upper()}'"):
        model.texts([*many, many[0].upper()])  # this tokenizer is not cased
    with pytest.raises(BadInput, match=f"prompt '{many[1]}' is given twice"):
        model.texts([*many, many[1]])


def test_the_unknown_token_is_found_without_tokenizer_config(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    assert FolderTokens(tmp_path, longest=77, words=len(WORDS), fast=True).unknown(["the zebra"]) == ("zebra",)


def test_byte_pairs_know_every_word_although_their_unknown_token_is_the_end_token(tmp_path: Path) -> None:
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves
    letters = [chr(code) for code in shown] + [chr(256 + n) for n in range(256 - len(shown))]
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    config = {"tokenizer_class": "CLIPTokenizer", "unk_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokens = FolderTokens(tmp_path, longest=77, words=len(pieces), end=len(pieces) - 1)
    assert tokens.unknown(["the hook", "der Übungs-Haken", "a クリップ!"]) == ()
    assert tokens(["the hook"])["input_ids"][0, -1] == len(pieces) - 1


def test_word_pieces_tell_what_has_no_pieces(tmp_path: Path) -> None:
    tokens = WordPieces(write_vocab(tmp_path / "vocab.txt"), tmp_path, words=28996)
    assert tokens.unknown(["I use a grasper", "the Hook"]) == ("Hook",)
    with pytest.raises(BadInput, match=r"lacks 'Hook', 'Clipper'"):
        tokens.unknown(["the Hook", "the Clipper"])


def test_a_tokenizer_that_cannot_read_unknown_words_is_one_sentence(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    found = json.loads(path.read_text())
    found["model"]["unk_token"] = "[nowhere]"
    path.write_text(json.dumps(found))
    with pytest.raises(DataError, match="tokenizer: cannot be used"):
        tokens_of(tmp_path).unknown(["the zebra"])


def test_check_notes_the_words_of_its_prompt_that_a_model_does_not_know(clip_folder: Path) -> None:
    path = clip_folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"grasper"', '"grosper"'))
    result = check_model(clip_folder)
    assert result.usable
    assert result.notes == (
        "The tokenizer does not know these words of the prompt 'The grasper is in the image': grasper",
    )
    assert result.to_json()["notes"] == list(result.notes)


@given(
    st.lists(
        st.lists(st.sampled_from([*KNOWN, "zebra", "gauze", "Haken", "!"]), min_size=1, max_size=4).map(" ".join),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_either_all_prompts_are_told_apart_or_they_are_refused(word_tokens: FolderTokens, prompts: list[str]) -> None:
    rows = {tuple(row) for row in word_tokens(prompts)["input_ids"].tolist()}
    if len(rows) < len(prompts):
        with pytest.raises(BadInput, match=r"cannot distinguish|given twice"):
            word_tokens.unknown(prompts)
    else:
        said = dict.fromkeys(word for prompt in prompts for word in prompt.split() if word not in KNOWN)
        assert word_tokens.unknown(prompts) == tuple(said)
