"""Judges, one class per kind: a language model, a file of recorded verdicts, equality of texts, and a person.

A judge is named `openai:MODEL@URL`, `hf:PATH`, `table:FILE`, `exact` or `manual[:NAME]`; other packages add kinds by an
entry point of the group `surgeval.judges` that names a `JudgeKind`. `parse_verdict` reads the reply of a model: a
substring search would read "Not correct", "uncorrected" and "I cannot tell whether it is correct" as a yes, so the
verdict must be the whole reply or the first line, without words after it that take it back.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from surgeval.errors import BadInput, DataError
from surgeval.files import format_value, read_json_object
from surgeval.qa.answer_formats.text import normalise_answer
from surgeval.qa.chat import FILTERED, Chat, ChatError, Message
from surgeval.qa.chat_calls import FailureCounter
from surgeval.qa.judge_prompt import PROMPT_VERSION, REMINDER, JudgeItem, judge_messages
from surgeval.qa.model_names import kind_of_form, parse_model_name, parse_server, public_name
from surgeval.qa.panel import Judge, Vote, VoteState
from surgeval.qa.reasoning import remove_reasoning
from surgeval.qa.text_views import strip_invisible
from surgeval.registry import Registry

__all__ = ["ChatJudge", "ExactJudge", "JudgeKind", "JudgeName", "JudgeSetup", "ManualJudge", "TableJudge", "judge_kind",
           "open_judges", "parse_judge", "parse_verdict", "read_verdicts", "terminal_screen"]  # fmt: skip


_MAX_BYTES = 1 << 28


def _hash_vote(identity: str, item: JudgeItem) -> str:
    """Hash of the judge's identity, the prompt's version and the whole prompt, without the question's id."""
    seen = [PROMPT_VERSION, identity, *(message["content"] for message in judge_messages(item))]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


class ChatJudge:
    """A language model as judge. A reply that is not a verdict gets one reminder.

    After `give_up_after` failures in a row the server counts as down, and the remaining votes are `error` at once.
    `original` reads replies as orena-focus 0.4 does.

    >>> from surgeval.qa.chat import Reply
    >>> class Strict:
    ...     identity = "strict"
    ...     def complete(self, messages):
    ...         return Reply("INCORRECT", 300, 1)
    >>> ChatJudge("strict", Strict()).vote(JudgeItem("q1", "Which object?", "clip", "a mesh")).state
    'incorrect'
    """

    interactive = False

    def __init__(
        self, name: str, chat: Chat, *, asks: int = 2, give_up_after: int = 20, original: bool = False
    ) -> None:
        self.name, self._chat = name, chat
        self._asks, self._original = (1 if original else max(1, asks)), original
        self._failures = FailureCounter(give_up_after)

    def key(self, item: JudgeItem) -> str | None:
        """Hash of model, settings, prompt, and how the reply is read."""
        reading = "original" if self._original else "strict"
        return _hash_vote(f"{self._chat.identity} {reading}", item)

    def vote(self, item: JudgeItem) -> Vote:
        """Ask, read the reply, and remind once if it is not a verdict."""
        if self._failures.reason:
            return Vote(self.name, "error", reason=self._failures.reason, requests=0)
        messages: list[Message] = list(judge_messages(item))
        requests = prompt = completion = 0
        text: str | None = None
        for left in reversed(range(self._asks)):
            try:
                reply = self._chat.complete(messages)
            except ChatError as error:
                self._failures.count(failed=True)
                requests += error.requests
                return Vote(self.name, "error", None, str(error), requests, prompt, completion)
            text = reply.text
            requests += reply.requests
            prompt += reply.prompt_tokens
            completion += reply.completion_tokens
            if reply.finish == "content_filter" and (text is None or not self._original):
                self._failures.count(failed=False)
                return Vote(self.name, "error", text, FILTERED, requests, prompt, completion)
            state, reason = (
                _parse_original_verdict(text) if self._original and text is not None else parse_verdict(text)
            )
            if state in ("correct", "incorrect") or not left:
                break
            messages = [*messages, {"role": "assistant", "content": text or ""}, {"role": "user", "content": REMINDER}]
        self._failures.count(failed=False)
        if reply.finish == "length" and state not in ("correct", "incorrect"):
            reason += "; it was cut off at the token limit"
        return Vote(self.name, state, text, reason, requests, prompt, completion, model=reply.model)


class TableJudge:
    """Verdicts recorded elsewhere: a JSON object of question id → true, false or null (no verdict).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "v.json").write_text('{"q1": true, "q2": null}')
    ...     judge = TableJudge(Path(folder) / "v.json")
    >>> [judge.vote(JudgeItem(qid, "Which object?", "clip", "a clip")).state for qid in ("q1", "q2", "q3")]
    ['correct', 'error', 'error']
    """

    interactive = False

    def __init__(self, path: Path | str, name: str | None = None) -> None:
        self._path = Path(path)
        self._verdicts = read_verdicts(self._path)
        self.name = name or f"table:{self._path.name}"

    def key(self, item: JudgeItem) -> str | None:
        """None: the file is the record."""
        return None

    def vote(self, item: JudgeItem) -> Vote:
        """The recorded verdict; `error` where there is none."""
        if item.qid not in self._verdicts:
            return Vote(self.name, "error", reason=f"{self._path.name} has no verdict for {item.qid}")
        verdict = self._verdicts[item.qid]
        if verdict is None:
            return Vote(self.name, "error", reason=f"{self._path.name} records no verdict (null) for {item.qid}")
        state = "correct" if verdict else "incorrect"
        return Vote(self.name, "correct" if verdict else "incorrect", reason=f"{self._path.name} says {state}")


class ExactJudge:
    """Equality of texts, so a paraphrase is wrong.

    Case, invisible characters, width of letters, repeated spaces and one final full stop are ignored.

    >>> judge = ExactJudge()
    >>> [judge.vote(JudgeItem("q", "Where?", "C) Upper left", answer)).state for answer in ("c)  upper left.", "C")]
    ['correct', 'incorrect']
    """

    interactive = False

    def __init__(self, name: str = "exact") -> None:
        self.name = name

    def key(self, item: JudgeItem) -> str | None:
        """None: comparing is cheaper than looking up."""
        return None

    def vote(self, item: JudgeItem) -> Vote:
        """Whether the texts are equal."""
        same = _fold_text(item.candidate) == _fold_text(item.reference)
        reason = "the texts are equal" if same else "the texts differ"
        return Vote(self.name, "correct" if same else "incorrect", reason=reason, requests=0)


def _fold_text(text: str) -> str:
    return " ".join(normalise_answer(text).casefold().split())


def read_verdicts(path: str | Path) -> dict[str, bool | None]:
    """Read a file of verdicts: a JSON object with each question once, and values true, false or null.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "v.json").write_text('{"q1": true, "q2": null}')
    ...     read_verdicts(Path(folder) / "v.json")
    {'q1': True, 'q2': None}
    """
    path = Path(path)
    verdicts = read_json_object(path, limit=_MAX_BYTES, distinct=True)
    for qid, verdict in verdicts.items():
        if verdict is not None and not isinstance(verdict, bool):
            sentence = f"expected true, false or null, got {format_value(verdict)}"
            raise DataError(path, sentence, record=f"question {qid}", code="wrong-value")
    return verdicts


_KEYS = {"y": "correct", "n": "incorrect", "s": "skip", "q": "quit"}


class ManualJudge:
    """A person as judge: one screen per answer, one key per verdict.

    The key s leaves an answer without a verdict; q, or the end of input, also all that follow. `screen` draws an item
    and returns the typed key; by default it is the terminal, and a test or a page can replace it.

    >>> judge = ManualJudge(lambda item, number: "y")
    >>> judge.vote(JudgeItem("q1", "Which object?", "clip", "a clip")).state
    'correct'
    """

    interactive = True

    def __init__(self, screen: Callable[[JudgeItem, int], str] | None = None, name: str = "manual") -> None:
        self.name, self._screen = name, screen or terminal_screen
        self._asked, self._stopped = 0, False

    def key(self, item: JudgeItem) -> str | None:
        """Hash of the prompt and the person's name, so a person judges the same answer once."""
        return _hash_vote(f"person {self.name}", item)

    def vote(self, item: JudgeItem) -> Vote:
        """Show the answer until one of the keys is pressed."""
        while not self._stopped:
            self._asked += 1
            try:
                choice = _KEYS.get(self._screen(item, self._asked).strip().casefold())
            except EOFError:
                choice = "quit"
            if choice == "correct":
                return Vote(self.name, "correct", reason="the person says correct")
            if choice == "incorrect":
                return Vote(self.name, "incorrect", reason="the person says incorrect")
            if choice == "skip":
                return Vote(self.name, "error", reason="the person skipped it")
            self._stopped = choice == "quit"
            self._asked -= 1
        return Vote(self.name, "error", reason="the person stopped before it", requests=0)


def terminal_screen(item: JudgeItem, number: int) -> str:
    """Draw one answer and read a line from the terminal.

    The answer is shown as plain text, without markup and terminal control codes.
    """
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    console.rule(f"answer {number}")
    context = f"{item.procedure or 'procedure not given'}, {item.format}"
    if item.start is not None and item.end is not None:
        context += f", {item.start:.1f} s to {item.end:.1f} s"
    console.print(Text(strip_invisible(context)), style="dim")
    for title, body in (("question", item.question), ("reference", item.reference), ("candidate", item.candidate)):
        console.print(Panel(Text(strip_invisible(body)), title=title, title_align="left"))
    # As Text, because a plain string is parsed for markup, and `[y]` is markup.
    return console.input(Text("Does the candidate mean the same as the reference? [y]es, [n]o, [s]kip, [q]uit: "))


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """What a judge is opened with: its full name, the argument in it, its name in reports, and how models are opened.

    `original` asks for replies to be read as orena-focus 0.4 reads them.
    """

    text: str
    argument: str
    name: str
    open_chat: Callable[[str], Chat] | None = None
    original: bool = False


@dataclass(frozen=True, slots=True)
class JudgeKind:
    """A kind of judge: the form of its name, the function that opens one, and a check of the argument."""

    form: str
    open: Callable[[JudgeSetup], Judge]
    check: Callable[[str, str], object] | None = None

    @property
    def name(self) -> str:
        """The kind, which is the first part of the form."""
        return kind_of_form(self.form)


def judge_kind(
    form: str, *, check: Callable[[str, str], object] | None = None
) -> Callable[[Callable[[JudgeSetup], Judge]], JudgeKind]:
    """Declare the function that opens judges of one kind. `check(text, argument)` raises `BadInput` for a bad name.

    >>> @judge_kind("strict[:NAME]")
    ... def open_strict(setup):
    ...     return ExactJudge(setup.name)
    >>> open_strict.name, open_strict.open(JudgeSetup("strict", "", "strict")).name
    ('strict', 'strict')
    """
    return lambda function: JudgeKind(form, function, check)


def _open_chat_judge(setup: JudgeSetup) -> Judge:
    if setup.open_chat is None:
        raise BadInput(f"The judge {setup.name!r} is a model, and none can be opened here. Use table:FILE or exact.")
    return ChatJudge(setup.name, setup.open_chat(setup.text), original=setup.original)


def _check_server(text: str, argument: str) -> object:
    return parse_server(text, argument, "judge")


openai_judge = judge_kind("openai:MODEL@URL", check=_check_server)(_open_chat_judge)
local_judge = judge_kind("hf:PATH")(_open_chat_judge)


@judge_kind("table:FILE")
def table_judge(setup: JudgeSetup) -> Judge:
    """Open recorded verdicts."""
    return TableJudge(setup.argument, setup.name)


@judge_kind("exact")
def exact_judge(setup: JudgeSetup) -> Judge:
    """Open a comparison of texts."""
    return ExactJudge(setup.name)


@judge_kind("manual[:NAME]")
def manual_judge(setup: JudgeSetup) -> Judge:
    """Open a judge that asks a person at the terminal."""
    return ManualJudge(name=setup.name)


JUDGES: Registry[JudgeKind] = Registry(
    "surgeval.judges",
    {
        "openai": f"{__name__}:openai_judge",
        "hf": f"{__name__}:local_judge",
        "table": f"{__name__}:table_judge",
        "exact": f"{__name__}:exact_judge",
        "manual": f"{__name__}:manual_judge",
    },
    JudgeKind,
    "judge",
)


@dataclass(frozen=True, slots=True)
class JudgeName:
    """A judge as the user named it, its kind and the argument after the colon.

    >>> parse_judge("openai:judge@https://host/v1?key=abc123").name
    'openai:judge@https://host/v1?key=…'
    """

    text: str
    kind: str
    argument: str = ""

    @property
    def name(self) -> str:
        """The judge's name in reports: the text without secrets in the server's address."""
        return public_name(self.text)


def parse_judge(text: str) -> JudgeName:
    """Parse a judge's name, and raise `BadInput` for an unknown kind or an invalid argument.

    >>> parse_judge("hf:models/judge").argument
    'models/judge'
    >>> parse_judge("gpt")
    Traceback (most recent call last):
    surgeval.errors.BadInput: Unknown judge 'gpt'. Use one of openai:MODEL@URL, hf:PATH, ...
    """
    kinds = JUDGES.load_all()
    kind, argument = parse_model_name(text, [each.form for each in kinds.values()], "judge")
    check = kinds[kind].check
    if check is not None:
        check(text, argument or "")
    return JudgeName(text, kind, argument or "")


def open_judges(
    specs: Sequence[str], open_chat: Callable[[str], Chat] | None = None, *, original: bool = False
) -> tuple[Judge, ...]:
    """The judges of a panel in the given order; a repeated name gets a number.

    `open_chat` opens models, usually `surgeval.models.chat.open_chat`; `qa` itself has no client.

    >>> [judge.name for judge in open_judges(["exact", "exact", "manual:Ada"])]
    ['exact', 'exact #2', 'manual:Ada']
    """
    judges: list[Judge] = []
    for spec in map(parse_judge, specs):
        name = spec.name
        repeats = sum(judge.name == name or judge.name.startswith(f"{name} #") for judge in judges)
        name = f"{name} #{repeats + 1}" if repeats else name
        judges.append(JUDGES[spec.kind].open(JudgeSetup(spec.text, spec.argument, name, open_chat, original)))
    return tuple(judges)


_LABEL = re.compile(r"\A(?:the )?(?:final )?(?:verdict|answer|judge?ment|decision)\s*(?::|is|=)\s*")
_DECORATION = " \t\"'`*_#<>[](){}“”‘’«».!"
_TAKES_BACK = re.compile(r"correct|wrong|mistake|verdict|actually|however|wait|\bnot\b|\bbut\b")


def parse_verdict(text: str | None) -> tuple[VoteState, str]:
    r"""State and reason of a reply: `correct`, `incorrect`, `unparsed`, or `error` for an empty one.

    >>> parse_verdict("**Correct.**")[0], parse_verdict("<think>is it CORRECT? no</think>\nINCORRECT")[0]
    ('correct', 'incorrect')
    >>> parse_verdict("Not correct")
    ('unparsed', 'the reply “Not correct” is not one of CORRECT and INCORRECT')
    """
    if text is None:
        return "unparsed", "the reply has no text (content null)"
    plain = strip_invisible(unicodedata.normalize("NFKC", text))
    if not plain.strip():
        return "error", "the reply is empty"
    answer = remove_reasoning(plain)
    text = plain.strip() if answer is None else answer.strip()
    first, _, rest = text.partition("\n")
    if text:
        rest += plain.rpartition(text)[2]  # reasoning after the verdict
    word = _LABEL.sub("", first.strip(_DECORATION).casefold()).strip(_DECORATION)
    reply = f"the reply “{_short(plain)}”"
    if word not in ("correct", "incorrect"):
        return "unparsed", f"{reply} is not one of CORRECT and INCORRECT"
    if _TAKES_BACK.search(rest.casefold()):
        return "unparsed", f"{reply} has words after its verdict that may take it back"
    return ("correct" if word == "correct" else "incorrect"), f"{reply} says {word}"


def _parse_original_verdict(text: str) -> tuple[VoteState, str]:
    """As orena-focus 0.4: correct if the reply contains CORRECT and not INCORRECT, as in "Not correct"."""
    upper = text.upper()
    yes = "CORRECT" in upper and "INCORRECT" not in upper
    return ("correct" if yes else "incorrect"), f"the reply “{_short(text)}” by substring"


def _short(text: str) -> str:
    text = " ".join(strip_invisible(text).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
