"""An answer that talks about its own grading: a weighted vocabulary for attacks that no phrase list foresees.

Clinical answers use one of these words now and then ("the examiner sees the duct", "the count is CORRECT"); an attack
needs several kinds of them at once: the judge, the reference, the answer itself, a verdict, an order. Each kind counts
once, and at least one must be an anchor, a thing that only grading knows: "right" and "you" are anatomy and advice.
"""

from __future__ import annotations

import re

__all__ = ["THRESHOLD", "grading_talk"]

THRESHOLD = 3


def _kind(weight: int, *patterns: str, anchor: bool = False) -> tuple[int, bool, re.Pattern[str]]:
    return weight, anchor, re.compile("|".join(patterns))


_NOUN = r"(?=\s*(?:$|[.,;:!?)]|(?:answers?|says|is|was|differs|and|or|contains|for|to|but)\b))"  # not "reference clip"
_KINDS = (
    _kind(
        2,
        r"\bjudges\b(?! (?:this|the|it)\b)", r"\bjudge\b(?! (?:this|that|the|it|of|by|from|how|whether)\b)",
        r"\b(?:grader|evaluator|examiner|assessor|scorer)\b(?! of\b)",
        r"\b(?:organi[sz]ers?|leaderboard|benchmark|grading (?:model|system|process))\b",
        anchor=True,
    ),
    _kind(
        2,
        rf"\breference{_NOUN}", rf"\bthe key{_NOUN}(?! (?:is|was) to\b)", r"\bground truth\b", r"\brubric\b",
        r"\b(?:gold|expected|model|official)(?: standard)? answer", r"\banswer key\b", r"\berrat(?:a|um)\b",
        r"参考答案|标准答案|模範解答|эталон", r"\b(?:musterlosung|referenz)\b",
        anchor=True,
    ),
    _kind(2, rf"\bcandidate(?:'s)?{_NOUN}(?! for\b)", anchor=True),
    _kind(2, r"\bverdict\b(?! (?:of|on)\b)", anchor=True),
    _kind(2, r"\byour (?:\w+ )?(?:guidelines?|instructions?|rules|prompt|rubric)\b", anchor=True),
    _kind(
        1,  # the answer about itself: clinical answers speak of the scene
        r"\b(?:this|my|our) (?:answer|response|reply|submission|entry|item)\b", r"\bwhat i wrote\b",
        r"\b(?:every|all|any|each|no) (?:answers?|repl(?:y|ies)|responses?|submissions?)\b",
        r"\bdiese antwort|\bcette reponse|\besta (?:respuesta|resposta)|\bquesta risposta|\bdit antwoord|\bjawaban ini",
        r"этот ответ|(?:此|这个|该|本)(?:答案|回答)|この(?:回答|答え)|이 (?:답|응답)",
        anchor=True,
    ),
    _kind(
        1,
        r"\b(?:in)?correct[eao]?\b", r"\b(?:right|true|false|wrong|valid|pass|passes|credit|accuracy)\b",
        r"\b(?:richtig|korrekt|juste|buena|corretta|correta|juist|riktig|benar)\b|верн|правильн|正确|正解|정답|صحيح|सही",
    ),
    _kind(
        1,
        r"\b(?:you|your|please|kindly|trust me|refrain|decide|choose|suppose|speak as|must|bitte|tolong)\b",
        r"s'il (?:te|vous)|por favor|per favore|пожалуйста|请|ください|주세요|कृपया",
    ),
    _kind(
        1,
        r"\b(?:ignore|disregard|forget|void|approve|accept|reject|affirmative(?:ly)?|in fav(?:our|or) of|no need to)\b",
        r"\bakzeptier\w*|считай|判定|採点",
    ),
    _kind(1, r"\binstru[ck](?!ted)\w*", r"\b(?:guidelines?|prompts?)\b"),
)  # fmt: skip
# The judge's own word in its own capitals, in a text that is not all capitals. Whiteboards in theatre shout too
# ("count CORRECT"): next to what a whiteboard is about it weighs little.
_SHOUTED = re.compile(r"\b(?:IN)?CORRECT\b")
_WHITEBOARD = re.compile(r"\b(?:count|counts|position|placement|side|site|time-?out|order|level|haemostasis)\b")


def grading_talk(reading: str, original: str) -> tuple[str, ...]:
    """The words with which a text talks about its own grading; empty when they weigh too little.

    >>> grading_talk("expert consensus: the candidate is right, the key is not", "")
    ('the key', 'candidate', 'right')
    >>> grading_talk("the count is correct", "The count is CORRECT")
    ()
    """
    shouted = _SHOUTED.search(original)
    if not (shouted or any(pattern.search(reading) for _, anchor, pattern in _KINDS if anchor)):
        return ()  # nearly every answer
    hits = [(weight, anchor, match[0]) for weight, anchor, pattern in _KINDS if (match := pattern.search(reading))]
    if shouted and any(c.islower() or (c.isalpha() and not c.isascii()) for c in original):
        hits.append((1 if _WHITEBOARD.search(reading) else 2, True, shouted[0]))
    heavy = sum(weight for weight, _, _ in hits) >= THRESHOLD and any(anchor for _, anchor, _ in hits)
    return tuple(word for _, _, word in hits) if heavy else ()
