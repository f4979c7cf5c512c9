"""The page on where models look: every number on it is one of the tables', and what is undefined is not drawn as 0."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.figure_values import dots, mark_rows, undefined
from tests.unit.protocols.surgxbench_runs import scores_of

from surgeval.engine import Manifest, RunRecord
from surgeval.errors import BadInput
from surgeval.protocols.surgxbench import profile_settings
from surgeval.protocols.surgxbench.figures import surgxbench_figures
from surgeval.protocols.surgxbench.gallery.cards import hiding_cards
from surgeval.protocols.surgxbench.item import Extras, Hiding, Item
from surgeval.protocols.surgxbench.page import write_page_of
from surgeval.protocols.surgxbench.result import SurgXScores

BAD = "<img src=x onerror=alert(1)>"
CLASSES = ("hook", BAD, "bag")
PICTURE = np.zeros((8, 16, 3), dtype=np.uint8)
# model → video, frame, class, predicted, present, AC, AA, excluded
SAID: dict[str, tuple[tuple[Any, ...], ...]] = {
    "clip": (
        ("A", "1", "hook", True, True, 0.6, 0.5, ""),
        ("A", "2", "hook", True, False, 0.2, 0.0, ""),
        ("A", "3", BAD, False, True, None, None, "no_map"),
        ("B", "1", "hook", True, True, 0.8, 0.8, ""),
        ("B", "2", "hook", False, True, None, None, "no_map"),
        ("B", "3", "hook", True, True, None, None, "gt_not_visible"),
    ),
    "blip": (
        ("A", "1", "hook", False, True, None, None, "no_map"),
        ("A", "2", "bag", True, False, 0.1, 0.0, ""),
        ("B", "1", BAD, True, True, 0.4, 0.2, ""),
    ),
}
TRIPLETS = (("A", "1", "hook,dissect,liver", "IVT"), ("A", "1", f"{BAD},grasp,liver", "missed"),
            ("B", "1", "hook,dissect,liver", "I"))  # fmt: skip


def _cases(name: str, profile: str) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for video, frame, label, predicted, present, ac, aa, excluded in SAID[name]:
        rows.append({
            "id": f"{video}/{frame}/{label}", "cluster": video, "frame": frame, "task": "instruments", "class": label,
            "score": 0.3, "best": True, "predicted": predicted, "present": present, "shown": 1, "ac": ac, "aa": aa,
            "chance": None if ac is None else 0.1, "area": 0.25 if predicted else None,
            "grounded": None if ac is None else ac > 0.5, "flags": excluded if predicted else "", "excluded": excluded,
            # Nothing but the attended region and its control were hidden: the boxes' shares are undefined.
            "kept_attended": frame != "1" if predicted and present else None,
            "kept_random": True if predicted and present else None,
        })  # fmt: skip
    if profile == "early":
        rows += [{"id": f"ars{video}{k}", "cluster": video, "frame": str(k), "task": "ars", "valid": k == 1,
                  "ars": 0.5 if k == 1 else None, "flags": "", "excluded": "", "match_instrument": True,
                  "match_verb": k == 1, "match_target": False, "match_triplet": False}
                 for video in ("A", "B") for k in (1, 2)]  # fmt: skip
    else:
        rows += [{"id": f"t{k}", "cluster": video, "frame": frame, "task": "triplets", "triplet": triplet,
                  "level": level, "ras": 0.5, "chance": 0.2, "area": 0.2, "flags": "", "excluded": ""}
                 for k, (video, frame, triplet, level) in enumerate(TRIPLETS)]  # fmt: skip
        rows += [{"id": f"s{step}{video}", "cluster": video, "frame": "1", "task": "sanity", "check": "weights",
                  "step": step, "correlation": value, "flags": "", "excluded": ""}
                 for video in ("A", "B") for step, value in (("1. a.b.c", -0.4), ("2. a.b.d", None))]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _model(name: str, profile: str = "surgxbench") -> SurgXScores:
    config = {**profile_settings(profile).record(), "classes": list(CLASSES)}
    manifest = Manifest(
        "surgxbench",
        config=config,
        dataset={"name": "films", "format": "phantom", "content": "ab"},
        model={"name": f"model of {name}", "family": "clip", "identity": "0123456789abcdef"},
    )
    record = RunRecord(**manifest.stored(), status="done", units=1, finished=1, failed=0, cases=6)
    return scores_of(name, record, _cases(name, profile))


class _Reader(HTMLParser):
    """Tables by title, cards and figures of a page, as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.cards: list[list[str]] = []
        self.figures: dict[str, dict[str, Any]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self._caption = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag in ("meta", "img", "br", "link", "input"):
            return
        self._open.append(f"{tag}.{found.get('class') or ''}")
        if tag == "div" and "scroll" in (found.get("class") or "").split():
            self._caption = found["aria-label"] or ""
            self.tables[self._caption] = []
        if tag == "tr":
            self.tables[self._caption].append([])
        if tag in ("td", "th"):
            self.tables[self._caption][-1].append("")
        if tag == "figure" and found.get("class") == "card":
            self.cards.append([])
        if "figure.card" in self._open and tag in ("strong", "span"):
            self.cards[-1].append("")
        if tag == "figure" and (found.get("class") or "").startswith("plot"):
            self._caption = ""
        if tag == "script" and found.get("type") == "application/json":
            self._open[-1] = "script.figure"

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().split(".")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        within = {name.split(".")[0] for name in self._open}
        if "td" in within or "th" in within:
            self.tables[self._caption][-1][-1] += data.strip()
        elif "figure.card" in self._open and within & {"strong", "span"}:
            self.cards[-1][-1] += data
        elif self._open and self._open[-1] == "script.figure":
            self.figures[self._caption] = json.loads(data)
        elif "figcaption" in within and "strong" in within and any(o.startswith("figure.plot") for o in self._open):
            self._caption += data


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, _Reader, SurgXScores]:
    """One model with a gallery and a frame whose region was hidden."""
    folder = tmp_path_factory.mktemp("one")
    model = _model("clip")
    before = (("hook,dissect,liver", 0.5), ("hook,dissect,gut", 0.4), ("hook,cut,liver", 0.3), ("hook,cut,gut", 0.2),
              ("bag,cut,gut", 0.1))  # fmt: skip
    hiding = Hiding(PICTURE, "A", "1", "hook,dissect,liver", before, before[1:])
    item = Item(PICTURE, "A", "1", "hook", ("hook",), 0.3, 0.6, 0.5, 0.1, True, True, "")
    page = write_page_of([replace(model, items=(item,), extras=Extras(hidings=(hiding,)))], folder)
    return folder, _Reader(page.read_text("utf-8")), model


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, _Reader]:
    """Two models of the early profile side by side."""
    folder = tmp_path_factory.mktemp("early")
    page = write_page_of([_model("clip", "early"), _model("blip", "early")], folder)
    return folder, _Reader(page.read_text("utf-8"))


# the papers' tables


def test_table_1_stands_on_the_page_and_beside_it_in_the_papers_layout(early: tuple[Path, _Reader]) -> None:
    folder, page = early
    (title,) = (title for title in page.tables if title.startswith("Table 1"))
    head, first, second, *chance = page.tables[title]
    assert [name.replace("\u2011", "-") for name in head] == [
        "model", "A τ-AC", "A τ-AA", "B τ-AC", "B τ-AA", "all videos τ-AC", "all videos τ-AA",
    ]  # fmt: skip
    # clip in A: (0.6 + 0.2) / 2 and 0.5 / 2; in B only what is visible counts.
    assert first == [
        "clip",
        "40.0 %",
        "25.0 %",
        "80.0 %",
        "80.0 %",
        "53.3\u00a0% [0.0,\u00a0100.0]",
        "43.3\u00a0% [0.0,\u00a0100.0]",
    ]
    assert second[:5] == ["blip", "10.0 %", "0.0 %", "40.0 %", "20.0 %"]
    assert [row[0] for row in chance] == ["chance (clip)", "chance (blip)"]  # not the same predictions
    saved = pl.read_csv(folder / "tables" / "paper_table1.csv")
    assert saved.row(0, named=True)["all videos τ-AC"] == pytest.approx(1.6 / 3)
    assert saved.row(0, named=True)["all videos τ-AC_low"] == 0.0


def test_table_2_prints_every_share_in_per_cent(early: tuple[Path, _Reader]) -> None:
    folder, page = early
    (title,) = (title for title in page.tables if title.startswith("Table 2"))
    head, a, _, total = page.tables[title]
    assert head == ["video", "clip ARS", "clip V/T", "clip Z/V", "blip ARS", "blip V/T", "blip Z/V"]
    assert [text.strip() for text in a] == ["A", "50.0 %", "50.0 %", "0.0 %", "50.0 %", "50.0 %", "0.0 %"]
    assert total[0] == "all videos"
    assert total[2].strip().startswith("50.0\u00a0% [")  # an aggregate has an interval
    saved = pl.read_csv(folder / "tables" / "paper_table2.csv")
    assert saved["clip V/T (%)"].to_list() == pytest.approx([50, 50, 50])


def test_the_other_profile_has_neither(one: tuple[Path, _Reader, SurgXScores]) -> None:
    folder, page, _ = one
    assert not [title for title in page.tables if "early text" in title]
    assert not list((folder / "tables").glob("paper_*"))


# what is undefined, and intervals


def test_an_undefined_precision_draws_no_bar_and_says_so(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, _ = one
    spec = page.figures["Precision, recall and F1"]
    known = dots(spec)
    # Instruments met: hook (said 4 times, 3 rightly), and one that was shown once and never said.
    assert list(known["precision"].values()) == [pytest.approx(3 / 4)]
    assert list(known["recall"].values()) == [pytest.approx(3 / 4), 0.0]  # 0 of 1 is a finding
    assert list(known["F1"].values()) == [pytest.approx(6 / 8), 0.0]
    assert [group for group, _ in undefined(spec)] == ["precision"]


def test_what_could_not_be_hidden_has_no_bar(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, _ = one
    spec = page.figures["Right predictions lost by hiding …"]
    (lost,) = dots(spec).values()
    # attended (2 of 3 lost), elsewhere (none lost), least, boxes, the boxes' shape elsewhere
    assert list(lost.values()) == [pytest.approx(200 / 3), 0.0]
    assert len(undefined(spec)) == 3


def test_bars_carry_the_intervals_of_the_table(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, model = one
    spec = page.figures["Precision, recall and F1"]
    row = model.tables["classes"].row(0, named=True)
    bands = {(band["series"], band["class"]): (band["low"], band["high"]) for band in mark_rows(spec, "rule")}
    hook = next(name for _, name in bands)
    for group, name in (("precision", "precision"), ("recall", "recall"), ("F1", "f1")):
        assert bands[group, hook] == (row[f"{name}_low"], row[f"{name}_high"])
        assert row[f"{name}_low"] < row[f"{name}_high"]
    assert len(bands) == 3  # the other instrument was in one video: no interval


def test_a_negative_correlation_is_drawn_as_it_is_and_an_undefined_one_not_at_all(
    one: tuple[Path, _Reader, SurgXScores],
) -> None:
    _, page, _ = one
    spec = page.figures["Rank correlation after randomising"]
    (correlations,) = dots(spec).values()
    assert list(correlations.values()) == [pytest.approx(-0.4)]
    assert len(undefined(spec)) == 1


def test_shares_tell_their_intervals_in_words(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, model = one
    spec = page.figures["Labelled triplets among the top prompts"]
    row = model.tables["matches"].row(0, named=True)
    assert f"33.3 % [{100 * row['share_low']:.1f}, {100 * row['share_high']:.1f}]" in mark_rows(spec, "bar")[0]["tip"]


# Figure 7


def test_each_instrument_has_its_scores_beside_its_boxes(tmp_path: Path) -> None:
    figures = surgxbench_figures([_model("clip"), _model("blip")])
    named, looked = (figures[f"instrument_1_{kind}"].spec for kind in ("named", "looked"))
    assert dots(named)["clip"] == pytest.approx({"precision": 3 / 4, "recall": 3 / 4, "F1": 6 / 8})
    assert dots(named)["blip"] == {"recall": 0.0, "F1": 0.0}  # never said: no precision; shown once and missed
    boxes = {row["class"]: row["median"] for row in mark_rows(looked, "point") if row["series"] == "clip"}
    assert boxes == {"TP-AA": pytest.approx(65), "TP-AC": pytest.approx(70), "FP-AC": pytest.approx(20)}
    assert len(mark_rows(looked, "text")) == 3  # "none": blip said it never
    # hook; the one with a hostile name; bag, which blip said though no frame shows it
    assert sorted(name for name in figures if name.endswith("_looked")) == [f"instrument_{k}_looked" for k in (1, 2, 3)]


# gallery and Figure 6


def test_a_card_of_the_gallery_tells_the_attended_share(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, _ = one
    (card,) = (card for card in page.cards if card[0] == "hook: right · grounded")
    assert card[1] == "AC 60.0 %, chance 10.0 %, AA 50.0 %, |A|/HW 25.0 %, score 0.300"


def test_figure_6_lists_prompts_by_rank_and_marks_each_by_its_match(one: tuple[Path, _Reader, SurgXScores]) -> None:
    _, page, _ = one
    (card,) = (card for card in page.cards if "hidden" in card[0])
    assert card[0] == "hook, dissect, liver: no complete match left when the attended region is hidden"
    assert card[1] == f"Labelled: hook, dissect, liver; {BAD}, grasp, liver"
    assert card[3:8] == [
        "1. ✓ IVT · 0.500 · I use a hook to dissect the liver",
        "2. IV · 0.400 · I use a hook to dissect the gut",
        "3. IT · 0.300 · I use a hook to cut the liver",
        "4. I only · 0.200 · I use a hook to cut the gut",
        "5. none · 0.100 · I use a bag to cut the gut",
    ]
    assert card[9].startswith("1. IV · 0.400")  # after hiding


def test_a_frame_that_keeps_the_match_of_another_triplet_is_not_called_lost() -> None:
    after = (("grasper,retract,liver", 0.4), ("hook,cut,liver", 0.3))
    hiding = Hiding(PICTURE, "A", "1", "hook,dissect,liver", (("hook,dissect,liver", 0.5), *after), after)
    run = replace(_model("clip"), extras=Extras(hidings=(hiding,)))
    labels = [{"task": "triplets", "cluster": "A", "frame": "1", "triplet": name}
              for name in ("hook,dissect,liver", "grasper,retract,liver")]  # fmt: skip
    (card,) = hiding_cards([replace(run, cases=pl.DataFrame(labels))])
    assert card.title == (
        "hook, dissect, liver: complete match of another triplet kept when the attended region is hidden"
    )
    assert "1. ✓ IVT · 0.400 · I use a grasper to retract the liver" in card.lines


# what was left out


def test_the_page_says_how_many_predictions_were_left_out_and_why(one: tuple[Path, _Reader, SurgXScores]) -> None:
    folder, page, _ = one
    rows = page.tables["What was measured, and what was left out of means"]
    left = ["instrument predictions (AC, AA)", "left out: gt_not_visible", "1", "4", "25.0 %"]
    assert left in [row[:5] for row in rows]
    numbers = dict(row[:2] for row in page.tables["The numbers to read first, with 95 % intervals over videos"])
    assert numbers["cases left out of means"] == "1 of 7 (14.3 %)"  # 4 predictions and 3 triplets
    assert numbers["attended share of its view,|A|/HW"] == "25.0 % (2 videos)"  # fixed by the settings: no interval
    assert pl.read_csv(folder / "tables" / "left_out.csv")["cases"].sum() == 7


def test_every_model_tells_its_own(early: tuple[Path, _Reader]) -> None:
    _, page = early
    rows = page.tables["What was measured, and what was left out of means"]
    assert {row[0] for row in rows[1:]} == {"clip", "blip"}
    assert [row[3:5] for row in rows if row[0] == "blip" and "AC" in row[1]] == [["2", "2"]]


def test_counts_of_each_instrument_say_over_which_frames(one: tuple[Path, _Reader, SurgXScores]) -> None:
    folder, page, scores = one
    rows = {row[0]: row for row in page.tables["Each instrument"]}
    assert rows["hook"][1:3] == ["4", "4"]  # one frame is missed, and one names it that does not show it
    assert rows["mean"][1:3] == ["–", "–"]  # a mean has no counts
    assert scores.detail_tables["classes"]["predicted"].to_list()[-1] is None
    assert "Predicted counts every frame in which it is named, also frames that show no instrument" in " ".join(
        re.sub(r"<[^>]+>", "", (folder / "report.html").read_text("utf-8")).split()
    )


# names from files


@pytest.mark.figures
def test_markup_in_a_class_name_is_shown_and_not_obeyed(
    one: tuple[Path, _Reader, SurgXScores], early: tuple[Path, _Reader]
) -> None:
    for folder, page in (one[:2], early):
        assert BAD not in (folder / "report.html").read_text("utf-8")
        assert not [found for tag, found in page.tags if tag == "img" and "onerror" in found]
        outside = [found.get(key) or "" for _, found in page.tags for key in ("src", "href")]
        assert not [link for link in outside if link.startswith(("http:", "https:", "//"))]
    assert BAD in [row[0] for row in one[1].tables["Each instrument"]]
    assert BAD in "".join(one[1].cards[0])
    assert f"{BAD}: how well it is named" in one[1].figures


# what was not measured, and what cannot be compared


def test_the_page_names_model_and_data_and_what_could_not_be_used(tmp_path: Path) -> None:
    lost = pl.DataFrame({"status": ["unreadable"], "reason": ["<b>no</b> such file"], "cases": [3]})
    model = _model("clip")
    model = replace(model, detail_tables={**model.detail_tables, "failures": lost})
    text = write_page_of([model], tmp_path).read_text("utf-8")
    assert "model of clip (clip, 0123456789ab)" in text and "films (phantom)" in text
    assert "Frames or records that could not be used are in no number: 3 of clip" in text
    assert "&lt;b&gt;no&lt;/b&gt; such file" in text and "<b>no</b>" not in text
    page = _Reader(text)
    (overview,) = (rows for title, rows in page.tables.items() if title.startswith("The numbers to read first"))
    assert ["frames and records that could not be used", "3"] in overview
    assert any(cells[1].endswith("(2 videos)") for cells in overview[1:])  # few: the interval is a lower bound


def test_runs_that_differ_in_more_than_the_model_say_so(tmp_path: Path) -> None:
    one, other = _model("clip"), _model("blip")
    record = other.record
    changed = {"config": {**record.config, "every": 3}, "dataset": {**record.dataset, "content": "cd"}}
    text = write_page_of([one, replace(other, record=record.model_copy(update=changed))], tmp_path)
    assert "these runs differ in dataset, every" in text.read_text("utf-8")
    alone = write_page_of([one, other], tmp_path / "same").read_text("utf-8")
    assert "these runs differ" not in alone
    with pytest.raises(BadInput, match="different instruments"):
        write_page_of([one, replace(other, classes=("x",))], tmp_path / "no")


def test_a_run_without_triplets_beside_one_with_them_is_no_warning(tmp_path: Path) -> None:
    one, other = _model("clip"), _model("blip")
    with_motion = {**one.record.config, "motion": {"flow": "dis"}}
    without = {**other.record.config, "tasks": ["instruments"], "motion": {}}
    pair = [replace(run, record=run.record.model_copy(update={"config": config}))
            for run, config in ((one, with_motion), (other, without))]  # fmt: skip
    assert "these runs differ" not in write_page_of(pair, tmp_path).read_text("utf-8")
