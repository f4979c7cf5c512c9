"""One function separates reasoning from answers, and every reader of replies uses it."""

from __future__ import annotations

import json
import time

import pytest

from surgeval.asking import Unanswered, extract_answer
from surgeval.qa import Reply, parse_verdict, read_choice
from surgeval.qa.reasoning import TAGS, remove_reasoning
from surgeval.questions.drafts import read_drafts
from surgeval.questions.prompt_templates import templates

FINAL = "<|start|>assistant<|channel|>final<|message|>"
MARKED = {
    "nested": "<think>no <think>yes</think> or no</think> yes",
    "nested, and the inner tag is only mentioned": "<think>no; I use <think> tags</think>\nyes",
    "closed under another name": "<thinking>no</think> yes",
    "opened in the prompt": "A hook, so no? I see it.</think>\n\nyes",
    "attributes and capital letters": '<THINK kind="brief">no</Think > yes',
    "after a sentence": "Let me look.\n<scratchpad>no</scratchpad>\nyes",
    "before it": "yes\n<reflection>Is it? I see it.</reflection>",
    "channels": f"<|channel|>analysis<|message|>no?<|end|>{FINAL}yes<|return|>",
    "channels, the first one opened in the prompt": f"no?<|end|>{FINAL}yes",
    "channels without <|end|> and <|start|>": "<|channel|>analysis<|message|>no?<|channel|>final<|message|>yes",
    "channels without <|message|>": "<|channel|>analysis no?<|end|><|start|>assistant<|channel|>final yes",
    "analysis alone has a channel": "<|channel|>analysis<|message|>no?<|end|>yes",
    "commentary between": f"<|channel|>analysis<|message|>no<|end|><|channel|>commentary<|message|>no<|end|>{FINAL}yes",
    "a format before the message": "<|channel|>final <|constrain|>text<|message|>yes",
    "channels whose tokens were dropped": "analysisWe see a hook, so no?assistantfinalyes",
    "dropped tokens but the last": "analysisWe see a hook, so no?assistantfinalyes<|return|>",
    "nothing but the end marker": "yes<|return|>",
    "dropped tokens, lines kept": "analysis\nno?\nassistantfinal\nyes",
    "dropped tokens, the first channel opened in the prompt": "It is no hook.assistantfinalyes",
}
UNMARKED = [
    "Analysis: no clip. The final assistant holds the hook.", "finalize the clip", "My reasoning is that I think so.",
    "The word <analysis> stands on the monitor.", "The `<think>` tag and the `</think>` tag are drawn there.",
    "The log says assistantfinal there.", 'It shows "assistantfinal" in green.', "a < b, and b <think",
    "The token `<|channel|>final<|message|>` is shown.", "analysis of the left side", "",
]  # fmt: skip


@pytest.mark.parametrize("reply", MARKED.values(), ids=MARKED.keys())
def test_the_answer_is_what_stands_outside_the_reasoning(reply: str) -> None:
    assert remove_reasoning(reply) == extract_answer(Reply(reply)) == "yes"


@pytest.mark.parametrize("answer", UNMARKED)
def test_an_answer_that_mentions_such_a_word_is_not_cut(answer: str) -> None:
    assert remove_reasoning(answer) == answer


@pytest.mark.parametrize("tag", TAGS)
def test_answers_choices_judges_and_generators_know_the_same_tags(tag: str) -> None:
    question = {"skill": "Causal Intent", "question": "Why do I look here?", "options": ["a", "b"]}
    drafts = f'<{tag}>{{"questions": []}}</{tag}>{json.dumps({"questions": [question]})}'
    assert extract_answer(Reply(f"<{tag}>yes or no</{tag}> yes")) == "yes"
    assert read_choice(f"<{tag}>Answer: A</{tag}> Answer: B", ["a", "b"]).strict == 1
    assert parse_verdict(f"<{tag}>INCORRECT?</{tag}>CORRECT")[0] == "correct"
    assert read_drafts(drafts, templates()["open_surgery"])[0].options == ("a", "b")
    with pytest.raises(Unanswered, match="cut off at the token limit"):
        extract_answer(Reply(f"<{tag}>yes or", finish="length"))


def test_reasoning_that_never_ends_holds_no_verdict_and_is_kept_as_an_answer() -> None:
    for reply in ("<analysis>Is it CORRECT?", "<|channel|>analysis<|message|>CORRECT", "CORRECT\n<think>Wait, no"):
        assert parse_verdict(reply)[0] == "unparsed"
    assert remove_reasoning("<think>a <analysis>b</analysis> c") is None
    assert extract_answer(Reply("<think>yes")) == "<think>yes"
    assert extract_answer(Reply("<think>yes</think>")) == ""


@pytest.mark.parametrize(
    "piece", ["<think>", "<think ", "<think></analysis>", "<|channel|>final", "assistantfinal", " "]
)
@pytest.mark.parametrize("start", ["", "<think>" * 30_000, "analysis", FINAL])
def test_a_reply_of_a_megabyte_is_read_in_linear_time(start: str, piece: str) -> None:
    began = time.process_time()
    remove_reasoning(start + piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 3  # 0.5 s at most on an idle core; quadratic time would be minutes
