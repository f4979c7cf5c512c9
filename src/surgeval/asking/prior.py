"""What the wording of a question alone gives away: the most frequent answer to questions of the same wording.

Nothing is ever learnt from the video that is asked about: its own answers are subtracted from every count. So the prior
is what a model reaches without looking, and a model that does not beat it has not shown that it looks.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping

from surgeval.datasets import clock
from surgeval.qa import Option, find_options, load_answer_formats
from surgeval.records import VqaQuestion
from surgeval.vocab import foreign_objects

__all__ = ["Prior"]

_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")
_NUMBER = re.compile(r"\d+")
_START = 3  # words


class Prior:
    """Answer counts by wording, from fine to coarse: the text, the text without object names, its start, the format.

    >>> known = [VqaQuestion(f"q{v}", v, 0, 9, "", "Is a clip visible?", "object_identification", "binary", a)
    ...          for v, a in (("v1", "Yes"), ("v2", "No"), ("v3", "No"))]
    >>> prior = Prior(known)
    >>> [prior.answer(question) for question in known]  # v2's own "No" does not count for v2
    ['No', 'No', 'No']
    """

    def __init__(self, train: Iterable[VqaQuestion]) -> None:
        self._all: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        self._own: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        for question in train:
            for key in _keys(question):
                self._all[key][_learnt(question)] += 1
                self._own[question.video, key][_learnt(question)] += 1

    def answer(self, question: VqaQuestion) -> str:
        """The most frequent answer of other videos at the finest wording that has one; else the format's default."""
        offered = find_options(question.text) if question.format == "multiple_choice" else ()
        for key in _keys(question):
            counts = self._all[key] - self._own[question.video, key] if key in self._all else Counter[str]()
            answer = _chosen(question, counts, offered)
            if answer is not None:
                return answer
        format = load_answer_formats().get(question.format)
        return "unknown" if format is None else format.default_answer(question)


def _chosen(question: VqaQuestion, counts: Mapping[str, int], offered: tuple[Option, ...]) -> str | None:
    if offered:
        best = max(offered, key=lambda option: counts.get(option.text.casefold(), 0))
        return best.whole if counts.get(best.text.casefold(), 0) else None
    if not counts:
        return None
    if question.format == "time":
        share = _median({int(text): count for text, count in counts.items() if text.isdigit()})
        return None if share is None else clock(question.start + (question.end - question.start) * share / 100)
    return min(counts, key=lambda text: (-counts[text], text))


def _learnt(question: VqaQuestion) -> str:
    """What is counted: the answer, an option's text without its letter, a time as percent of the window."""
    if question.format == "multiple_choice":
        offered = {option.whole: option.text.casefold() for option in find_options(question.text)}
        return offered.get(question.answer.strip(), question.answer.strip())
    if question.format == "time":
        return _share_of_window(question)
    return question.answer.strip()


def _share_of_window(question: VqaQuestion) -> str:
    match = re.match(r"\s*(\d\d):(\d\d):(\d\d)", question.answer)
    if match is None or question.end <= question.start:
        return ""
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    share = (seconds - question.start) / (question.end - question.start)
    return str(round(100 * min(max(share, 0.0), 1.0)))


def _median(counts: Mapping[int, int]) -> int | None:
    half, seen = sum(counts.values()) / 2, 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= half:
            return value
    return None


def _keys(question: VqaQuestion) -> tuple[Hashable, ...]:
    style = (question.format, str(question.format_options.get("pattern", "")))
    offered = find_options(question.text)
    text = question.text[: question.text.find(offered[0].whole)] if offered else question.text
    text = " ".join(_NUMBER.sub("#", _CLOCK.sub("@", text.casefold())).split())
    return (
        (*style, "text", text),
        (*style, "kind", _OBJECTS.sub("<object>", text)),
        (*style, "start", " ".join(text.split()[:_START])),
        style,
    )


_OBJECTS = re.compile(
    r"\b(?:" + "|".join(re.escape(foreign.name.casefold()) for foreign in foreign_objects()) + r")(?:e?s)?\b"
)
