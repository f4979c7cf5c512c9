"""A person as judge, on a terminal: one screen per answer, one key per verdict.

The logic is `ManualJudge`; the screen is a function from item and progress to the typed key, so a studio page or a test
can take its place. What an answer holds is shown as text: no markup, no terminal control codes.
"""

from __future__ import annotations

from collections.abc import Callable

from surgeval.qa.judging.kinds import vote_key
from surgeval.qa.judging.prompt import JudgeItem
from surgeval.qa.judging.vote import Vote
from surgeval.qa.screening.views import shown

__all__ = ["KEYS", "ManualJudge", "terminal_screen"]

KEYS = {"y": "correct", "n": "incorrect", "s": "skip", "q": "quit"}


class ManualJudge:
    """Asks a person. `s` leaves an answer without a verdict, `q` (or the end of input) also all that follow.

    >>> judge = ManualJudge(lambda item, number: "y")
    >>> judge.vote(JudgeItem("q1", "Which object?", "clip", "a clip")).state
    'correct'
    """

    interactive = True

    def __init__(self, screen: Callable[[JudgeItem, int], str] | None = None, name: str = "manual") -> None:
        self.name, self._screen = name, screen or terminal_screen
        self._asked, self._stopped = 0, False

    def key(self, item: JudgeItem) -> str | None:
        """By content and by the person's name: nobody is asked the same thing twice."""
        return vote_key(f"person {self.name}", item)

    def vote(self, item: JudgeItem) -> Vote:
        """Show the answer until one of the keys comes back."""
        while not self._stopped:
            self._asked += 1
            try:
                choice = KEYS.get(self._screen(item, self._asked).strip().casefold())
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
    """Draw one answer and read a line from the terminal."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    console.rule(f"answer {number}")
    context = f"{item.procedure or 'procedure not given'}, {item.format}"
    if item.start is not None and item.end is not None:
        context += f", {item.start:.1f} s to {item.end:.1f} s"
    console.print(Text(shown(context)), style="dim")
    for title, body in (("question", item.question), ("reference", item.reference), ("candidate", item.candidate)):
        console.print(Panel(Text(shown(body)), title=title, title_align="left"))
    # As Text: a plain string would be read for markup, and `[y]` is markup.
    return console.input(Text("Does the candidate mean the same as the reference? [y]es, [n]o, [s]kip, [q]uit: "))
