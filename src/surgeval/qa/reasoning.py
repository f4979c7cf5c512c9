"""Separate the reasoning that a model writes into its reply from its answer.

Reasoning is marked by tags (`<think>…</think>` and the other names of `TAGS`) or by the channel markers of gpt-oss
style servers, as tokens (`<|channel|>analysis<|message|>…`) or as the text that is left when a server drops the tokens
(`analysis…assistantfinal…`). Time is linear in the reply.
"""

from __future__ import annotations

import re

__all__ = ["TAGS", "remove_reasoning"]

TAGS = ("think", "thinking", "thought", "reasoning", "reflection", "analysis", "scratchpad")

_QUOTES = "`\"'“”‘’«»"
_TAG = re.compile(rf"<(?P<end>/?)(?P<name>{'|'.join(TAGS)})(?:\s[^<>]{{0,100}})?>", re.IGNORECASE)
_CHANNELS = "analysis|commentary|final"
_HAS_CHANNELS = re.compile(
    rf"(?<![{_QUOTES}])(?:<\|channel\|>\s{{0,8}}(?:{_CHANNELS})|<\|start\|>\s{{0,8}}assistant\b)"
    rf"|\A\s*(?:{_CHANNELS})?\s{{0,8}}<\|message\|>"
)
_MARKER = re.compile(r"<\|(start|channel|constrain|message|end|return|call)\|>")
_END = re.compile(r"<\|(?:return|end|call)\|>\s*\Z")
_NAME = re.compile(rf"\s*({_CHANNELS}|assistant|[A-Za-z0-9_.-]*)")
# The same markers after a server dropped the special tokens: "analysisWe see a hook.assistantfinalYes".
_DROPPED_START = re.compile(r"\s*analysis")
_DROPPED_FINAL = re.compile(rf"(?:^|(?<=[^\s{_QUOTES}]))assistantfinal(?=\S)", re.MULTILINE)
_DROPPED_FINAL_AFTER_START = re.compile(rf"(?<![{_QUOTES}])assistantfinal")
_ONLY_FINAL = re.compile(r"\s*final(?=[A-Z0-9])")
_ONLY_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z])")


def remove_reasoning(text: str) -> str | None:
    """Return the answer of a reply: the part after its reasoning, or before it where no answer follows.

    A reply without marks is returned unchanged. A reply of nothing but finished reasoning gives "". Reasoning that
    never ends gives None, because nothing tells whether an answer follows in it.

    >>> remove_reasoning("<thinking>yes or no?</thinking> yes")
    'yes'
    >>> remove_reasoning("<|channel|>analysis<|message|>A hook?<|end|><|start|>assistant<|channel|>final<|message|>No")
    'No'
    >>> remove_reasoning("<think>It may be"), remove_reasoning("My reasoning: it is cut.")
    (None, 'My reasoning: it is cut.')
    """
    answer = _final_channel(text) if _HAS_CHANNELS.search(text) else _final_of_dropped(_END.sub("", text))
    return None if answer is None else _outside_tags(answer)


def _outside_tags(text: str) -> str | None:
    """The last part outside the tags that holds a letter or digit."""
    pieces: list[str] = []  # parts outside, up to `begin`
    begin = opened = 0
    inside: list[str] = []  # names of the tags that are open
    ended = -1  # where the outermost open tag's name was last closed, inside it
    unopened = False
    tags = [tag for tag in _TAG.finditer(text) if not _is_quoted(text, tag.start(), tag.end())]
    for tag in tags:
        name = tag["name"].casefold()
        if not tag["end"]:
            if not inside:
                pieces.append(text[begin : tag.start()])
                opened, ended = tag.start(), -1
            inside.append(name)
        elif not inside:  # the opening tag was part of the prompt
            pieces.clear()
            begin, unopened = tag.end(), True
        else:
            outermost = inside[0]
            # A name that is not open closes all of them: models mix the names up.
            while inside and inside.pop() != name:
                pass
            if not inside:
                begin = tag.end()
            elif name == outermost:
                ended = tag.end()
    if not tags:
        return text
    never_ends = bool(inside) and ended < 0
    if never_ends and _has_letters_or_digits(pieces[-1]):
        pieces[-1] += text[opened:]  # inside a sentence: a mention of the tag
    elif not never_ends:
        pieces.append(text[ended if inside else begin :])
    said = next((piece for piece in reversed(pieces) if _has_letters_or_digits(piece)), None)
    if said is not None:
        return said.strip()
    return None if never_ends or unopened else ""


def _final_channel(text: str) -> str | None:
    """The last message of the channel `final`, or else the last one of no channel."""
    messages: list[tuple[str, str]] = []
    first = _MARKER.search(text)
    head = text[: first.start()] if first else text
    named = head.strip() if head.strip() in _CHANNELS.split("|") else ""
    channel, ended = named, False
    if not named:
        messages.append(("", head))
    marks = list(_MARKER.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        kind = mark[1]
        content = text[mark.end() : following.start() if following else len(text)]
        ended = kind in ("end", "return", "call")
        if ended:
            channel = ""
        elif kind != "message":
            header = _NAME.match(content)
            name = header[1] if header else ""
            if kind == "channel":
                channel = name
            elif kind == "start":
                channel = "" if name in ("", "assistant") else f"of {name}"
            if following and following[1] in ("channel", "constrain", "message"):
                continue  # the header of the message that follows
            content = content[header.end() if header else 0 :]
        messages.append((channel, content))
    for wanted in ("final", ""):
        for channel_of, content in reversed(messages):
            if channel_of == wanted and _has_letters_or_digits(content):
                return content.strip()
    return "" if ended else None


def _final_of_dropped(text: str) -> str | None:
    """The answer in a reply whose channel markers lost their special tokens; other replies unchanged."""
    finals = _DROPPED_FINAL_AFTER_START if _DROPPED_START.match(text) else _DROPPED_FINAL
    end = 0
    for final in finals.finditer(text):
        end = final.end()
    if end:
        return text[end:].strip()
    if final_alone := _ONLY_FINAL.match(text):
        return text[final_alone.end() :].strip()
    return None if _ONLY_ANALYSIS.match(text) else text


def _is_quoted(text: str, start: int, end: int) -> bool:
    return start > 0 and end < len(text) and text[start - 1] in _QUOTES and text[end] in _QUOTES


def _has_letters_or_digits(text: str) -> bool:
    return any(character.isalnum() for character in text)
