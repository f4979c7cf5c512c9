"""Two people judge a set without seeing one another; what they agree on goes out, and the trail says who said what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from tests.unit.questions.sound import SKILLS

from surgeval.datasets import read_intent_items
from surgeval.errors import BadInput, DataError
from surgeval.qa import Message, Reply
from surgeval.questions import (
    Adjudication,
    QuestionSet,
    ReviewDesk,
    agreement,
    decide,
    export_set,
    open_set,
    probe_items,
    read_judgements,
)
from surgeval.questions.question_set import write_items
from surgeval.records import IntentQuestion, OptionLabel
from surgeval.stats import cohen_kappa

DIMENSIONS = {"relative": "spatial", "absolute": "spatial", "prospective": "temporal", "retrospective": "temporal",
              "discrete": "standard", "continuous": "standard"}  # fmt: skip


def item(number: int, **changed: object) -> IntentQuestion:
    skill = SKILLS[number % 6]
    options = tuple(f"step {letter} of {number}" for letter in "abcde")
    made = IntentQuestion(
        f"q{number}", "open_surgery", f"v{number // 6}", (), DIMENSIONS[skill], skill, f"What do I do, case {number}?",
        options, number % 5,
    )  # fmt: skip
    return replace(made, **changed)  # type: ignore[arg-type]


@pytest.fixture
def twelve(tmp_path: Path) -> QuestionSet:
    write_items(tmp_path / "items.jsonl", [item(n) for n in range(12)])
    return open_set(tmp_path)


def judge_all(questions: QuestionSet, name: str, wrong: Sequence[int] = ()) -> None:
    desk = ReviewDesk(questions, name)
    for question in desk.pending():
        number = int(question.id[1:])
        if number in wrong:
            desk.judge(question.id, "wrong", answer=(question.answer + 1) % 5, comment="the next one")
        else:
            desk.judge(question.id, "correct")


def test_a_reviewer_goes_on_where_they_stopped_and_sees_nobody_else(twelve: QuestionSet) -> None:
    first = ReviewDesk(twelve, "Ada")
    order = [question.id for question in first.pending()]
    for name in order[:5]:
        first.judge(name, "correct")
    again = ReviewDesk(open_set(twelve.folder), "Ada")
    assert again.done == 5
    assert [question.id for question in again.pending()] == order[5:]
    other = ReviewDesk(twelve, "Bo")
    assert other.done == 0
    assert len(other.pending()) == 12
    assert [question.id for question in other.pending()] != order  # an order of their own


def test_with_two_per_item_the_third_reviewer_gets_what_is_left(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada")
    desk = ReviewDesk(twelve, "Bo", each=2)
    for question in desk.pending()[:7]:
        desk.judge(question.id, "correct")
    assert len(ReviewDesk(twelve, "Cy", each=2).pending()) == 5


def test_unanimous_people_decide_and_an_adjudicator_settles_the_rest(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada", wrong=[1, 2])
    judge_all(twelve, "Bo", wrong=[2, 3])
    status = {name: decision.status for name, decision in decide(twelve).items()}
    assert {name for name, state in status.items() if state == "disputed"} == {"q1", "q3"}
    assert status["q2"] == "accepted"  # both name the same other answer
    assert decide(twelve)["q2"].answer == 3
    desk = Adjudication(twelve, "Eve")
    assert [question.id for question in desk.pending()] == ["q1", "q3"]
    assert {said.verdict for said in desk.judgements_of("q1")} == {"correct", "wrong"}
    desk.judge("q1", "correct")
    desk.judge("q3", "unclear")
    assert desk.pending() == []
    assert (decide(twelve)["q1"].status, decide(twelve)["q3"].status) == ("accepted", "rejected")


def test_nobody_settles_what_they_reviewed_themselves(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada", wrong=[1])
    judge_all(twelve, "Bo")
    assert Adjudication(twelve, "Bo").pending() == []
    assert len(Adjudication(twelve, "Eve").pending()) == 1


def test_a_changed_item_must_be_judged_again(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada")
    write_items(twelve.folder / "items.jsonl", [replace(item(0), question="What do I do now?"), *twelve.items[1:]])
    changed = open_set(twelve.folder)
    assert [question.id for question in ReviewDesk(changed, "Ada").pending()] == ["q0"]
    assert len(read_judgements(changed)) == 11


def test_a_line_cut_off_by_a_crash_is_dropped_and_the_next_judgement_is_whole(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada")
    path = twelve.folder / "reviews" / "Ada.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    desk = ReviewDesk(twelve, "Ada")
    assert desk.done == 11
    desk.judge(desk.pending()[0].id, "unclear")
    assert ReviewDesk(twelve, "Ada").done == 12
    assert len(path.read_text().splitlines()) == 12


def line(**changed: object) -> str:
    said = {"item": "q0", "content": "", "reviewer": "Ada", "verdict": "correct", "answer": None, "comment": ""}
    return json.dumps({**said, "when": "", **changed})


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{broken", "not valid JSON|cut off"),
        ('{"item": "q0"}', "content: is missing"),
        ("[1, 2]", "expected an object"),
        (line(item=1), "item: expected text"),
        (line(verdict="fine"), "verdict: expected 'correct'"),
        (line(answer="A"), "answer: expected a whole number"),
        (line(reviewer="Bo"), "a judgement of 'Bo' in the file of 'Ada'"),
    ],
)  # fmt: skip
def test_a_spoilt_review_file_is_one_sentence(twelve: QuestionSet, written: str, why: str) -> None:
    (twelve.folder / "reviews").mkdir()
    (twelve.folder / "reviews" / "Ada.jsonl").write_text(written + "\n")
    with pytest.raises(DataError, match=why):
        ReviewDesk(twelve, "Ada")


@pytest.mark.parametrize(
    ("verdict", "answer", "name", "why"),
    [
        ("fine", None, "q0", "Unknown verdict 'fine'"),
        ("wrong", 9, "q0", "The answer 9 must be"),
        ("correct", 1, "q0", "The answer 1 must be"),
        ("wrong", 0, "q0", "The answer is the item's own"),
        ("wrong", None, "nobody", "no item 'nobody'"),
    ],
)
def test_a_judgement_that_means_nothing_is_refused(
    twelve: QuestionSet, verdict: str, answer: int | None, name: str, why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        ReviewDesk(twelve, "Ada").judge(name, verdict, answer=answer)


@pytest.mark.parametrize("name", ["", "..", "   ", "x" * 200])
def test_a_reviewer_has_a_name(twelve: QuestionSet, name: str) -> None:
    with pytest.raises(BadInput, match="a name has letters"):
        ReviewDesk(twelve, name)


def test_a_reviewers_name_leads_nowhere(twelve: QuestionSet) -> None:
    ReviewDesk(twelve, "../../evil").judge("q0", "correct")
    assert [path.name for path in (twelve.folder / "reviews").iterdir()] == ["evil.jsonl"]
    assert not (twelve.folder.parent / "evil.jsonl").exists()


def test_kappa_of_a_pair_is_that_of_its_verdicts_over_clusters(twelve: QuestionSet) -> None:
    judge_all(twelve, "Ada", wrong=[1, 2])
    judge_all(twelve, "Bo", wrong=[2, 3])
    rows = agreement(twelve)
    assert [(row.who, row.about, row.items) for row in rows] == [
        ("Ada and Bo", "verdict", 12),
        ("Ada and Bo", "answer", 12),
    ]
    verdicts = [["wrong" if n in wrong else "correct" for n in range(12)] for wrong in ([1, 2], [2, 3])]
    assert rows[0].kappa.value == cohen_kappa(*verdicts).value == pytest.approx(0.4)
    assert rows[0].same == pytest.approx(10 / 12)
    assert rows[0].kappa.interval.scheme == "cluster"


def test_three_people_also_get_fleiss_kappa(twelve: QuestionSet) -> None:
    for name, wrong in (("Ada", [1, 2]), ("Bo", [2, 3]), ("Cy", [2])):
        judge_all(twelve, name, wrong)
    rows = agreement(twelve)
    everybody = [row for row in rows if row.kappa.coefficient == "Fleiss' kappa"]
    assert len(rows) == 2 * 3 + 2
    assert [row.who for row in everybody] == ["all 3, 3 per item"] * 2
    p = 5 / 36  # of the ratings are "wrong"
    observed = (9 * 1 + 2 * (1 / 3) + 1) / 12  # q1 and q3: one of three pairs agrees; q2: all say wrong
    chance = p**2 + (1 - p) ** 2
    assert everybody[0].kappa.value == pytest.approx((observed - chance) / (1 - chance))


def test_a_copied_file_is_not_a_second_reviewer(twelve: QuestionSet) -> None:
    ReviewDesk(twelve, "Ada").judge("q0", "correct")
    folder = twelve.folder / "reviews"
    (folder / "Bob.jsonl").write_bytes((folder / "Ada.jsonl").read_bytes())
    with pytest.raises(DataError, match=r"Bob\.jsonl: 'Ada' has judgements in Ada\.jsonl too"):
        decide(twelve)


def test_a_comment_may_hold_any_end_of_line(twelve: QuestionSet) -> None:
    comment = "pasted\u2028from\x85a\x0cdocument\nof two lines"
    ReviewDesk(twelve, "Ada").judge("q0", "unclear", comment=comment)
    ReviewDesk(twelve, "Ada").judge("q1", "correct")
    said = {judgement.item: judgement for judgement in read_judgements(twelve)}
    assert set(said) == {"q0", "q1"}
    assert said["q0"].comment.split() == comment.split()


def test_only_accepted_items_go_out_with_their_trail(twelve: QuestionSet, tmp_path: Path) -> None:
    judge_all(twelve, "Ada", wrong=[1, 2])
    judge_all(twelve, "Bo", wrong=[2, 3])
    Adjudication(twelve, "Eve").judge("q1", "correct", comment="Ada misread it")
    out = tmp_path / "out"
    done = export_set(twelve, out)
    assert done.left == {"q3": "disputed"}
    items = {question.id: question for question in read_intent_items(out / "items.jsonl")}
    assert len(items) == 11
    assert items["q2"].answer == 3
    review = items["q1"].review
    assert review is not None
    assert [said["reviewer"] for said in review["verdicts"]] == ["Ada", "Bo"]  # type: ignore[attr-defined]
    assert review["adjudicated"]["comment"] == "Ada misread it"  # type: ignore[index]
    told = json.loads((out / "export.json").read_text())
    assert told["not_exported"] == {"q3": "disputed"}
    assert sum(row["all"] for row in told["skills_by_scenario"]) == 11
    assert told["agreement"][0]["kappa"] == pytest.approx(0.4)


def test_names_can_stay_at_home(twelve: QuestionSet, tmp_path: Path) -> None:
    judge_all(twelve, "Ada")
    judge_all(twelve, "Bo")
    export_set(twelve, tmp_path / "out", anonymous=True)
    text = (tmp_path / "out" / "items.jsonl").read_text()
    assert "Ada" not in text
    assert "reviewer 1" in text


class Guesser:
    """Knows the answer to the first six questions, and elsewhere always takes the option that ends in `b of N`."""

    identity, sees = "guesser", False

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, object] | None = None) -> Reply:
        text = str(messages[-1]["content"])
        number = int(text.split("case ")[1].split("?")[0])
        wanted = f"step {'abcde'[number % 5] if number < 6 else 'b'} of {number}"
        line = next(line for line in text.splitlines() if line.rstrip().endswith(wanted))
        return Reply(f"Answer: {line.strip().lstrip('(')[0]}", 20, 2)


def test_the_option_that_nobody_guesses_is_dropped_and_recorded(twelve: QuestionSet, tmp_path: Path) -> None:
    judge_all(twelve, "Ada")
    judge_all(twelve, "Bo")
    probed = probe_items(twelve, Guesser())
    assert len(probed.rows) == 36
    out = tmp_path / "four"
    export_set(twelve, out, options=4)
    items = {question.id: question for question in read_intent_items(out / "items.jsonl")}
    for number in range(12):
        question = items[f"q{number}"]
        assert len(question.options) == 4
        assert question.options[question.answer] == f"step {'abcde'[number % 5]} of {number}"
        assert question.review is not None
        assert question.review["dropped_options"]["by"] == "least chosen without pictures"  # type: ignore[index]
        if number >= 6:
            assert f"step b of {number}" in question.options  # somebody takes it
    again = tmp_path / "again"
    export_set(twelve, again, options=4)
    assert (again / "items.jsonl").read_text() == (out / "items.jsonl").read_text()
    kept = export_set(twelve, tmp_path / "hard", drop_guessable=True)
    assert {name for name, why in kept.left.items() if why.startswith("guessable")} >= {f"q{n}" for n in range(6)}


def test_a_trap_and_its_twin_lose_the_same_option(tmp_path: Path) -> None:
    trap = item(0, trap="cognitive", twin="q1")
    twin = item(1, options=tuple(reversed(trap.options)), answer=0)  # the last option of the trap is right here
    write_items(tmp_path / "items.jsonl", [trap, twin])
    questions = open_set(tmp_path)
    judge_all(questions, "Ada")
    judge_all(questions, "Bo")
    for options, seed in product((4, 3, 2), range(3)):
        made = export_set(questions, tmp_path / f"out{options}-{seed}", options=options, seed=seed).items
        assert set(made[0].options) == set(made[1].options)
        assert len(made[0].options) == options
        assert made[1].options[made[1].answer] == trap.options[4]


def test_two_traps_of_one_twin_lose_the_same_options(tmp_path: Path) -> None:
    first = item(0, trap="cognitive", twin="q2")
    second = item(1, trap="perceptual", twin="q2", options=first.options, answer=1)
    twin = item(2, options=tuple(reversed(first.options)), answer=0)
    write_items(tmp_path / "items.jsonl", [first, second, twin])
    questions = open_set(tmp_path)
    judge_all(questions, "Ada")
    judge_all(questions, "Bo")
    for options, seed in product((4, 3), range(6)):
        made = export_set(questions, tmp_path / f"out{options}-{seed}", options=options, seed=seed).items
        assert len(made) == 3 and len({frozenset(one.options) for one in made}) == 1
        assert {len(one.options) for one in made} == {options}
        right = [one.options[one.answer] for one in made]
        assert right == [first.options[0], first.options[1], first.options[4]]


def test_a_corrected_trap_that_breaks_its_labels_stays_at_home(tmp_path: Path) -> None:
    reasons = tuple(OptionLabel("visible" if k == 0 else "absent", "a fair reason") for k in range(5))
    write_items(tmp_path / "items.jsonl", [item(0, trap="perceptual", labels=reasons)])
    questions = open_set(tmp_path)
    judge_all(questions, "Ada", wrong=[0])
    judge_all(questions, "Bo", wrong=[0])
    done = export_set(questions, tmp_path / "out")
    assert done.items == ()
    assert done.left["q0"].startswith("corrected, and then perceptual-labels")
