"""`surgeval questions review`: one person's desk on the terminal. What a judgement is lives in `questions.review`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.console import rich_console
from surgeval.errors import BadInput, visible

if TYPE_CHECKING:
    from surgeval.questions import ReviewDesk
    from surgeval.records import IntentQuestion

_VERDICTS = {"c": "correct", "w": "wrong", "u": "unclear"}
_LETTERS = "ABCDEFGH"


def review(
    questions: Annotated[Path, typer.Argument(help="A set's folder, or an items.jsonl.", show_default=False)],
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are.", show_default=False)],
    each: Annotated[int | None, typer.Option(min=1, max=20, help="Leave out what so many others have judged.")] = None,
    adjudicate: Annotated[
        bool, typer.Option("--adjudicate", help="Settle what reviewers disagree on; their views are shown.")
    ] = False,
) -> None:
    """Judge questions one after the other, without seeing what others said; stop and go on at any time.

    Keys: c correct, w wrong, u unclear, s skip, q quit. After w or u: the letter of the option that is right (or
    nothing), then a comment (or nothing). Every judgement is stored at once.

    Example: [bold]surgeval questions review set --as Ada[/bold]
    """
    from surgeval.questions import Adjudication, ReviewDesk, open_set

    opened = open_set(questions)
    if not opened.items:
        raise BadInput(f"{questions}: found no items, expected some to review")
    desk = Adjudication(opened, name) if adjudicate else ReviewDesk(opened, name, each=each)
    left = desk.pending()
    say = rich_console().print
    if any(item.media for item in left):
        say("pictures are links: a click (with Ctrl or Cmd) opens one, or paste it into a browser")
    for number, item in enumerate(left, start=1):
        _show(desk, item, number, len(left))
        if not _judged(desk, item):
            break
    remaining = len(desk.pending())
    say(f"{desk.done} judged by {visible(desk.reviewer)}, {remaining} left")


def _show(desk: ReviewDesk, item: IntentQuestion, number: int, count: int) -> None:
    from surgeval.questions import Adjudication, describe_gaze

    say = rich_console().print
    say(f"\n── {number} of {count}: {item.id} ──")
    known = ", ".join(f"{key} {value}" for key, value in item.context.items() if key not in ("record", "template"))
    say(
        f"{item.scenario}, {item.skill}{', ' + item.trap + ' trap' if item.trap else ''}{'; ' + known if known else ''}"
    )
    for media in item.media[:8]:
        say(f"  {(desk.questions.folder / media).absolute().as_uri()}")  # what terminals open by a click
    if item.gaze:
        say(f"gaze:\n{describe_gaze(item.gaze, 5)}")
    say(f"\n{item.question}")
    for k, option in enumerate(item.options):
        mark = "→" if k == item.answer else " "
        label = f"  [{item.labels[k].label}: {item.labels[k].reason}]" if item.labels else ""
        say(f" {mark} {_LETTERS[k]}. {option}{label}")
    if item.source:
        say(f"source: {item.source}")
    if isinstance(desk, Adjudication):
        for order, judgement in enumerate(desk.judgements_of(item.id), start=1):
            other = f", holds {_LETTERS[judgement.answer]} right" if judgement.answer is not None else ""
            say(f"reviewer {order}: {judgement.verdict}{other}{': ' + judgement.comment if judgement.comment else ''}")


def _judged(desk: ReviewDesk, item: IntentQuestion) -> bool:
    """Ask until an answer can be kept; False when the person stops."""
    while True:
        try:
            key = _ask("Is the marked option right? [c]orrect, [w]rong, [u]nclear, [s]kip, [q]uit: ")
            if key == "s":
                return True
            if key == "q":
                return False
            if key not in _VERDICTS:
                continue
            answer, comment = None, ""
            if key != "c":
                letter = _ask("Which option is right? A letter, or nothing: ").upper()
                if letter and (letter not in tuple(_LETTERS[: len(item.options)]) or letter == _LETTERS[item.answer]):
                    rich_console().print("that is none of the other options")
                    continue
                answer = _LETTERS.index(letter) if letter else None
                comment = _ask("Comment, or nothing: ", keep=True)
        except EOFError:
            return False
        desk.judge(item.id, _VERDICTS[key], answer=answer, comment=comment[:4_000])
        return True


def _ask(prompt: str, *, keep: bool = False) -> str:
    from rich.text import Text

    text = rich_console().input(Text(prompt)).strip()
    return text if keep else text.casefold()
