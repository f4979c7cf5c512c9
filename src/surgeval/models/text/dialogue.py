"""A question about pictures as tokens, and tokens as text, by the tokenizer and chat template of a model folder.

The template decides where the pictures stand; each of its image tokens then becomes as many as a picture has. The
folder is a stranger's: whatever fails is one sentence, and a question cannot bring pictures of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from surgeval.errors import BadInput, DataError
from surgeval.models.io.weights import read_config
from surgeval.models.text.template import ChatTemplate
from surgeval.models.text.tokens import FolderTokens, checked_prompts, tokenizing

__all__ = ["Dialogue"]

_TEMPLATES = ("chat_template.jinja", "chat_template.json")
_LONGEST = 1 << 20  # characters of a question with what the template adds


class Dialogue(FolderTokens):
    """How a folder's model is asked: `image_token` is the number of its placeholder, `patches` tokens each picture."""

    def __init__(self, folder: Path, *, image_token: int, patches: int, words: int) -> None:
        super().__init__(folder, longest=0, words=words, fast=(folder / "tokenizer.json").is_file())
        self.image_token, self.patches = image_token, patches

    @property
    def files(self) -> list[Path]:
        """The files that decide how a question is read."""
        return [*super().files, *(self.path / name for name in _TEMPLATES if (self.path / name).is_file())]

    @property
    def last(self) -> int | None:
        """The token that ends a reply, as the tokenizer has it."""
        number: int | None = self._tokenizer.eos_token_id
        return number

    @cached_property
    def _template(self) -> ChatTemplate:
        stored = self._tokenizer.chat_template
        older = self.path / "chat_template.json"
        if not stored and older.is_file():
            stored = read_config(older).get("chat_template")
        if not isinstance(stored, str) or not stored:
            raise DataError(
                self.path, "found no chat template, expected chat_template.jinja: a model that was taught to answer"
            )
        return ChatTemplate(stored, self._tokenizer.special_tokens_map, _LONGEST)

    def question(self, text: str, pictures: int) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """The tokens of a question about so many pictures, and the positions of each picture's tokens."""
        (text,) = checked_prompts([text])
        content = [*({"type": "image"} for _ in range(pictures)), {"type": "text", "text": text}]
        template = self._template
        with tokenizing(self.path, "a chat template for pictures and text"):
            (prompt,) = template.fill([[{"role": "user", "content": content}]])
            start = self._tokenizer.bos_token
            ids = self._tokenizer(prompt, add_special_tokens=not (start and prompt.startswith(start)))["input_ids"]
        placeholders = ids.count(self.image_token)
        if placeholders != pictures:
            raise BadInput(f"question {text[:60]!r}: found {placeholders} image tokens for {pictures} pictures, "
                           "expected a text without them and a template that names each picture")  # fmt: skip
        return self._spread(self._checked(ids))

    def _spread(self, ids: Sequence[int]) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        tokens: list[int] = []
        spans = []
        for number in ids:
            if number == self.image_token:
                spans.append((len(tokens), len(tokens) + self.patches))
                tokens += [number] * self.patches
            else:
                tokens.append(number)
        return tuple(tokens), tuple(spans)

    def unknown(self, prompts: Sequence[str]) -> tuple[str, ...]:
        """The words that are read as "unknown", looked for where they stand: a word alone may be another token."""
        none = self._unknown_ids()
        missing: dict[str, None] = {}
        for text in prompts:
            with tokenizing(self.path, "a tokenizer that knows where its tokens stand"):
                read = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            places = zip(read["input_ids"], read["offset_mapping"], strict=True)
            missing |= {text[first:stop].strip(): None for number, (first, stop) in places if number in none}
        return tuple(word for word in missing if word)

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that stands in the place of a reply."""
        with tokenizing(self.path, "a tokenizer"):
            return self._checked(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def pieces(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """What each token adds to the text; together they are the text."""
        pieces, before = [], ""
        with tokenizing(self.path, "a tokenizer"):
            for count in range(1, len(tokens) + 1):
                text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
                text = text.rstrip("\N{REPLACEMENT CHARACTER}") if count < len(tokens) else text
                # A token may end in the middle of a letter; the letter belongs to the token that completes it.
                whole = text if text.startswith(before) else before
                pieces.append(whole[len(before) :])
                before = whole
        return tuple(pieces)

    def _checked(self, ids: Sequence[int]) -> tuple[int, ...]:
        if any(not 0 <= number < self.words for number in ids):
            worst = max(ids, key=lambda number: number if number >= 0 else self.words - number)
            raise DataError(self.path, f"found token {worst}, expected tokens below {self.words}", field="tokenizer")
        return tuple(ids)
