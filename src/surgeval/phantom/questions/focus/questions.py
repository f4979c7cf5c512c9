"""Questions of the `focus` kind from a scene graph: all eight answer formats, all fifteen capabilities.

Answers are right by construction: they follow from the graph, and no maker looks at pixels. Of the yes/no questions
half are answered yes, and one is asked only where the video could have had either answer.
"""

from __future__ import annotations

from surgeval.phantom.questions.focus.makers import MAKERS, Maker
from surgeval.phantom.questions.focus.scene import AskedQuestion, QuestionScene
from surgeval.phantom.questions.phrases import PHRASES
from surgeval.phantom.script.dice import Dice
from surgeval.phantom.script.graph import SceneGraph
from surgeval.records import VqaQuestion


def make_focus_questions(graph: SceneGraph, *, prefix: str, held_out: float, ood: bool) -> list[VqaQuestion]:
    """All questions of one video; a share `held_out` gets held-out wordings, `ood` says the procedure is unseen.

    >>> from surgeval.phantom import make_procedure
    >>> from surgeval.phantom.script.graph import build_graph
    >>> graph = build_graph("A1", make_procedure(7), [], [])
    >>> questions = make_focus_questions(graph, prefix="p", held_out=0.0, ood=False)
    >>> len(questions)
    10
    """
    dice = Dice("focus", prefix, graph.video)
    questions: list[VqaQuestion] = []
    turn = sum(map(ord, graph.video))  # neighbouring videos begin with different answers and letters
    yes, option = turn % 2 == 0, turn
    for position, maker in enumerate(MAKERS):
        for asked in _ask(maker, graph, yes, option % 4, (prefix, position)):
            usual, unusual = PHRASES[asked.kind]
            strange = dice.chance(held_out)
            text = dice.choice(unusual if strange else usual).format(**asked.slots)
            if asked.format == "binary":
                yes = not yes
            option += asked.format == "multiple_choice"
            questions.append(
                VqaQuestion(
                    id=f"{prefix}-{graph.video}-{len(questions) + 1:04d}",
                    video=graph.video,
                    start=asked.start,
                    end=asked.end,
                    procedure=graph.procedure,
                    text=text[0].upper() + text[1:],
                    primary=asked.primary,
                    format=asked.format,
                    answer=asked.answer,
                    format_options=asked.options,
                    secondaries=asked.secondaries,
                    ood=ood or strange,
                    clinical=asked.clinical,
                )
            )
    return questions


def _ask(maker: Maker, graph: SceneGraph, yes: bool, option: int, stream: tuple[object, ...]) -> list[AskedQuestion]:
    """A maker's questions; a yes/no question only where this video could have had either answer."""
    asked = list(maker(QuestionScene(graph, Dice("focus", graph.video, *stream), yes, option)))
    if all(question.format != "binary" for question in asked):
        return asked
    return asked if list(maker(QuestionScene(graph, Dice("focus", graph.video, *stream), not yes, option))) else []
