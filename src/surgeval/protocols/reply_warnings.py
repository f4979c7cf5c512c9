"""What is probably wrong with answers, references, verdicts or the server: sentences to read before the numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from surgeval.qa import PanelVerdict, Vote
from surgeval.results import counted

__all__ = ["find_odd_references", "find_one_answer", "find_one_verdict", "find_other_models", "find_reused_verdicts",
           "named_models"]  # fmt: skip

_FEWEST = 10  # answers or verdicts; fewer may be equal by chance
_LONGEST = 60
# An editor's remark, or a chat model's, in place of an answer.
_REMARK = re.compile(
    r"\b(?:errors?|corrections?|corrected (?:question|answer|version|text)|changes(?: made)?|edits|explanation"
    r"|rationale|notes?|comments?)\s?:\s?[^\W\d]"
    r"|\A\W{0,3}(?:as an ai\b|i(?:['’]m| am) sorry|i (?:cannot|can['’]t)\b|here(?: is|['’]s) )",
    re.IGNORECASE,
)


def find_one_answer(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Find that all answers are the same although the references differ; each pair is an answer and its reference.

    >>> find_one_answer([("Yes", reference) for reference in ["Yes", "No"] * 5])
    ["the model gave the same answer to all 10 questions: 'Yes'"]
    """
    answers = {" ".join(answer.split()).casefold() for answer, _ in pairs}
    references = {" ".join(reference.split()).casefold() for _, reference in pairs}
    if len(pairs) < _FEWEST or len(answers) > 1 or len(references) < 2:
        return []
    said = _short(pairs[0][0])
    return [
        f"the model gave the same answer to all {len(pairs)} questions{f': {said!r}' if said else ', an empty one'}"
    ]


def find_one_verdict(verdicts: Iterable[PanelVerdict]) -> list[str]:
    """Find judges that gave the same verdict to all answers; the comparison of texts (`exact`) is left out.

    >>> verdicts = [PanelVerdict(f"q{n}", "correct", (Vote("j", "correct"),), 1, "") for n in range(12)]
    >>> find_one_verdict(verdicts)
    ['the judge j gave the verdict correct to all 12 answers: check that it reads them']
    """
    warnings = []
    for judge, votes in _by_judge(verdicts).items():
        states = {vote.state for vote in votes if vote.valid}
        count = sum(vote.valid for vote in votes)
        if len(states) == 1 and count >= _FEWEST and judge != "exact":
            verdict = states.pop()
            warnings.append(
                f"the judge {judge} gave the verdict {verdict} to all {count} answers: check that it reads them"
            )
    return warnings


def find_reused_verdicts(verdicts: Iterable[PanelVerdict]) -> list[str]:
    """Count the verdicts of each judge that were stored by an earlier run.

    >>> find_reused_verdicts([PanelVerdict("q", "correct", (Vote("j", "correct", cached=True),), 0, "")])
    ['1 of 1 verdict of the judge j was stored by an earlier run and not asked for again']
    """
    warnings = []
    for judge, votes in _by_judge(verdicts).items():
        if reused := sum(vote.cached for vote in votes):
            was = "was" if reused == 1 else "were"
            warnings.append(
                f"{reused} of {counted(len(votes), 'verdict')} of the judge {judge} {was} stored by an earlier run and "
                "not asked for again"
            )
    return warnings


def find_odd_references(references: Iterable[tuple[str, str]]) -> list[str]:
    """Count references that hold an editor's remark; each pair is a question's id and its reference.

    >>> find_odd_references([("q1", "clip. Errors: corrected subject–verb agreement"), ("q2", "specimen, clip")])
    ["1 reference contains an editor's remark (first q1: 'Errors: corrected subject–verb agreement')"]
    """
    odd = [(name, found.start(), text) for name, text in references if (found := _REMARK.search(text))]
    if not odd:
        return []
    name, start, text = odd[0]
    hold = "reference contains an editor's remark" if len(odd) == 1 else "references contain editor's remarks"
    return [f"{len(odd)} {hold} (first {name}: {_short(text[start:])!r})"]


def find_other_models(asked: str, answered: Mapping[str, int]) -> list[str]:
    """Name the other models that a server answered as; `asked` is a model as options or run.json name it.

    >>> find_other_models("openai:vlm@http://h/v1", {"vlm": 3, "tiny": 2})
    ["2 replies came from the model 'tiny' instead of 'vlm'"]
    """
    wanted = _server_model(asked)
    return [
        f"{counted(count, 'reply', 'replies')} came from the model {name!r} instead of {wanted!r}"
        for name, count in answered.items() if wanted and name != wanted
    ]  # fmt: skip


def named_models(verdicts: Iterable[PanelVerdict]) -> dict[str, dict[str, int]]:
    """For each judge, the votes by the model name that its server gave."""
    named = {
        judge: dict(Counter(vote.model for vote in votes if vote.model)) for judge, votes in _by_judge(verdicts).items()
    }
    return {judge: names for judge, names in named.items() if names}


def _server_model(name: str) -> str:
    """The model in `openai:MODEL@URL` or in an identity `openai MODEL URL …`; "" of models without a server."""
    for start, end in (("openai:", "@http"), ("openai ", " http")):
        if name.startswith(start) and end in name:
            return name[len(start) : name.rindex(end)]
    return ""


def _by_judge(verdicts: Iterable[PanelVerdict]) -> dict[str, list[Vote]]:
    votes: dict[str, list[Vote]] = {}
    for verdict in verdicts:
        for vote in verdict.votes:
            votes.setdefault(vote.judge, []).append(vote)
    return votes


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
