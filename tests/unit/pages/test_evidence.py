"""Evidence on the page: joined by case, the same bytes every time, nothing a stranger wrote as markup."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import polars as pl
import pytest

from surgeval.errors import BadInput
from surgeval.pages import Evidence, Section, render_page
from surgeval.pages.evidence_data import evidence_data

ROW = {"video": "v", "frame": "1", "asked": "?", "reference": "yes", "reason": ""}
JPEG = b"\xff\xd8\xff one"


def _evidence(model: str, verdicts: dict[str, str], **more: Any) -> Evidence:
    rows = [{"id": case, "answer": f"{model} on {case}", "verdict": said, **ROW} for case, said in verdicts.items()]
    return Evidence(model=model, cases=pl.DataFrame(rows), **more)


def _content(*models: Evidence) -> dict[str, Any]:
    return dict(json.loads(zlib.decompress(base64.b64decode(evidence_data(models).cases))))


def _listed(column: Any) -> list[str | None]:
    return column if isinstance(column, list) else [column["of"][at] for at in column["at"]]


def test_models_are_joined_by_case_and_what_one_was_not_asked_stays_open() -> None:
    content = _content(_evidence("a", {"q1": "right", "q2": "wrong"}), _evidence("b", {"q2": "right", "q3": "wrong"}))
    assert _listed(content["id"]) == ["q1", "q2", "q3"]
    assert [_listed(said["verdict"]) for said in content["said"]] == [
        ["right", "wrong", None],
        [None, "right", "wrong"],
    ]
    assert _listed(content["asked"]) == ["?", "?", "?"]


def test_models_of_one_name_are_told_apart() -> None:
    content = _content(_evidence("net", {"q": "right"}), _evidence("net", {"q": "wrong"}))
    assert content["models"] == ["net", "net (2)"]


def test_a_picture_of_both_models_is_carried_once() -> None:
    both = [_evidence(name, {"q": "right"}, pictures={"q": JPEG, "elsewhere": JPEG}) for name in "ab"]
    data = evidence_data(both)
    assert data.pictures == (base64.b64encode(JPEG).decode(),)
    assert _content(*both)["pictures"] == [{"0": 0}, {"0": 0}]


def test_cases_with_a_picture_stand_first_and_the_rest_as_they_came() -> None:
    verdicts = {f"q{n}": "right" for n in range(6)}
    first, second = _evidence("a", verdicts, pictures={"q4": JPEG}), _evidence("b", verdicts, pictures={"q2": JPEG})
    content = _content(first, second)
    assert _listed(content["id"]) == ["q2", "q4", "q0", "q1", "q3", "q5"]
    assert content["pictures"] == [{"1": 0}, {"0": 0}]
    assert _listed(content["said"][0]["answer"])[:2] == ["a on q2", "a on q4"]


def test_the_same_evidence_gives_the_same_bytes() -> None:
    def page() -> str:
        shown = _evidence("</script>", {f"q{n}": "right" for n in range(50)})
        return render_page("t", [Section("s", evidence=(shown,))])

    assert page() == page()


def test_a_page_without_evidence_carries_no_browser_for_it() -> None:
    assert "ev-list" not in render_page("t", [Section("s", "text")])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cases: cases.drop("reason"), "no column 'reason'"),
        (lambda cases: cases.with_columns(answer=pl.lit(None, pl.String)), "answer: found other values"),
        (lambda cases: pl.concat([cases, cases]), "two cases of one id"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(change: Any, said: str) -> None:
    cases = change(_evidence("net", {"q": "right"}).cases)
    with pytest.raises(BadInput, match=said):
        Evidence(model="net", cases=cases)


def test_evidence_stands_in_one_section() -> None:
    section = Section("s", evidence=(_evidence("net", {"q": "right"}),))
    with pytest.raises(BadInput, match="evidence in two sections"):
        render_page("t", [section, section])


def test_filters_list_the_most_frequent_first_and_orders_name_their_model() -> None:
    verdicts = {"q1": "late", "q2": "wrong", "q3": "right", "q4": "wrong"}
    (facet,) = _content(_evidence("a", verdicts))["facets"]
    assert facet["of"] == ["wrong", "late", "right"]  # equally frequent ones by name
    sorted_by = {"numbers": {"count": "Count"}, "order": "count"}
    ordered, plain = _evidence("a", verdicts), _evidence("b", verdicts)
    counted = Evidence(model="a", cases=ordered.cases.with_columns(count=pl.Series([1, 2, 3, 4])), **sorted_by)  # type: ignore[arg-type]
    assert _content(counted)["order"] == "count"
    assert _content(counted, plain)["order"] == "count1"
    assert _content(plain, counted)["order"] == "count2"
    same = _evidence("a", dict.fromkeys(("q1", "q2", "q3"), "right"))
    assert _content(same)["facets"] == []  # one value is no choice
    assert _content(same)["said"][0]["verdict"] == {"of": ["right"], "at": [0, 0, 0]}


@pytest.mark.parametrize(("case", "said"), [("answer", "opens an answer."), ("question", "opens a question.")])
def test_the_keys_are_explained_with_the_right_article(case: str, said: str) -> None:
    assert said in render_page("t", [Section("s", evidence=(_evidence("net", {"q": "right"}, case=case),))])
