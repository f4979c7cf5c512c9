"""Free text → classes: synonyms, lists, negation, triplet lines, and what a label space does not hold."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.qa import instrument_mentions, triplet_mentions
from surgeval.vocab import LabelSpace, load_labels, spellings

CHOLEC80, CHOLECT50, PROSTATD = (load_labels(name) for name in ("cholec80", "cholect50", "prostatd"))
COPESD = LabelSpace("copesd", ("Forceps", "Knife"))
OWN = LabelSpace("mine", ("hook", "forceps", "ultrasonic shears"))

# text, instruments named (in order), pieces outside the label space
CHOLEC80_TEXTS = [
    ("Grasper", "Grasper", ""),
    ("Grasper, Hook", "Grasper Hook", ""),
    ("grasper and hook", "Grasper Hook", ""),
    ("Hook, grasper, hook, Hook.", "Hook Grasper", ""),
    ("- Grasper\n- Hook\n- Bag", "Grasper Hook SpecimenBag", ""),
    ("1. Grasper\n2. Clip applier", "Grasper Clipper", ""),
    ("**Grasper** and **Irrigator**", "Grasper Irrigator", ""),
    ("graspers", "Grasper", ""),
    ("two graspers and a pair of scissors", "Grasper Scissors", ""),
    ("a clip applier", "Clipper", ""),
    ("clip-applier", "Clipper", ""),
    ("the suction device", "Irrigator", ""),
    ("suction", "Irrigator", ""),
    ("specimen bag", "SpecimenBag", ""),
    ("SpecimenBag", "SpecimenBag", ""),
    ("specimen_bag", "SpecimenBag", ""),
    ("retrieval bags", "SpecimenBag", ""),
    ("bipolar forceps", "Bipolar", ""),
    ("bipolar grasper", "Bipolar", ""),
    ("forceps", "Grasper", ""),
    ("an electrocautery hook", "Hook", ""),
    ("L-hook", "Hook", ""),
    ("scissor", "Scissors", ""),
    ("I see a grasper and a trocar.", "Grasper", "trocar"),
    ("grasper, scalpel, needle holder", "Grasper", "scalpel|needle holder"),
    ("grasper, stapling gun", "Grasper", "stapling gun"),
    ("In the image, I can see several tools, including a Grasper, a Hook, and Scissors.", "Grasper Hook Scissors", ""),
    ("The surgical tools that I see are the grasper and the bipolar.", "Grasper Bipolar", ""),
    ("I do not see a hook", "", ""),
    ("I don't see a hook.", "", ""),
    ("I can’t see any grasper or hook.", "", ""),
    ("no grasper", "", ""),
    ("There is no trocar.", "", ""),
    ("there is neither a hook nor a grasper", "", ""),
    ("There is neither a hook nor a grasper, but scissors are used.", "Scissors", ""),
    ("There is no hook, only a grasper.", "Grasper", ""),
    ("No hook and a grasper is visible", "Grasper", ""),
    ("A grasper without a hook", "Grasper", ""),
    ("A grasper is visible, no hook.", "Grasper", ""),
    ("I do not see a hook. I see a grasper.", "Grasper", ""),
    ("I do not see a hook, but I see a grasper.", "Grasper", ""),
    ("The hook is not visible.", "", ""),
    ("The hook isn't visible but the bag is", "SpecimenBag", ""),
    ("The hook and the scissors are not visible, but the grasper is.", "Grasper", ""),
    ("Grasper: yes\nHook: no\nScissors: not visible\nBag: yes", "Grasper SpecimenBag", ""),
    ("Grasper (visible), Hook (not visible)", "Grasper", ""),
    ("Not only a hook but also a grasper", "Hook Grasper", ""),
    ("No instruments are visible except the hook.", "Hook", ""),
    ("The image doesn't show a hook or a clipper; it shows scissors.", "Scissors", ""),
    ("A grasper rather than a hook", "Grasper", ""),
    ("Is there a hook? No. There is a grasper.", "Grasper", ""),
    ("No, a grasper.", "Grasper", ""),
    ("a grasper (not a hook)", "Grasper", ""),
    ("The instrument is not a hook but a grasper", "Grasper", ""),
    ("It is unclear whether a hook is visible.", "", ""),
    ("A Grasper and Scissors are used. There is no Hook, Clipper, or Irrigator visible.", "Grasper Scissors", ""),
    ("I see a Grasper. The Hook, Scissors, Clipper, and Bag are not present.", "Grasper", ""),
    ('Tools: ["Grasper", "Hook"]', "Grasper Hook", ""),
    ("None", "", ""),
    ("", "", ""),
    ("The tissue is hooked and clipped.", "", ""),
    ("unhooked graspering", "", "unhooked graspering"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "named", "outside"), CHOLEC80_TEXTS)
def test_instruments_of_cholec80(text: str, named: str, outside: str) -> None:
    said = instrument_mentions(text, CHOLEC80)
    assert [CHOLEC80.instruments[k] for k in said.classes] == named.split()
    assert said.unparsed == tuple(outside.split("|") if outside else ())


@pytest.mark.parametrize(
    ("space", "text", "named", "outside"),
    [
        (PROSTATD, "forceps and aspirator", ["forceps", "aspirator"], ()),
        (PROSTATD, "Suction; a needle holder; monopolar scissors", ["aspirator", "needle driver", "scissors"], ()),
        (PROSTATD, "hook", [], ("hook",)),
        (COPESD, "The Forceps and the dual knife", ["Forceps", "Knife"], ()),
        (COPESD, "Knife, no forceps", ["Knife"], ()),
        (OWN, "forceps, ultrasonic shears, L-hook, grasper", ["forceps", "ultrasonic shears", "hook"], ("grasper",)),
    ],
)
def test_a_name_means_the_class_of_its_own_space(
    space: LabelSpace, text: str, named: list[str], outside: tuple[str, ...]
) -> None:
    said = instrument_mentions(text, space)
    assert ([space.instruments[k] for k in said.classes], said.unparsed) == (named, outside)


def test_spans_are_those_of_the_first_mention_that_is_not_denied() -> None:
    text = "No hook at first. Later a Hook, then a clip  applier and the hook again."
    said = instrument_mentions(text, CHOLEC80)
    assert [text[start:end] for start, end in said.spans] == ["Hook", "clip  applier"]


def test_the_unparsed_rate_is_the_share_of_what_is_named() -> None:
    assert instrument_mentions("grasper, trocar, scalpel, hook", CHOLEC80).unparsed_rate == 0.5
    assert instrument_mentions("", CHOLEC80).unparsed_rate == 0.0


# text, triplets named ("-" = not of the space), pieces that could not be parsed
CHOLECT50_TEXTS = [
    ("grasper retract gallbladder", ["grasper retract gallbladder"], []),
    ("Grasper, retract, gallbladder", ["grasper retract gallbladder"], []),
    ("<grasper, retract, gallbladder>", ["grasper retract gallbladder"], []),
    ("grasper - retract - gallbladder", ["grasper retract gallbladder"], []),
    ("1. grasper grasp gallbladder\n2. hook dissect cystic duct",
     ["grasper grasp gallbladder", "hook dissect cystic_duct"], []),
    ("hook dissect cystic_plate, grasper retract liver", ["hook dissect cystic_plate", "grasper retract liver"], []),
    ("grasper retract liver\ngrasper retract liver", ["grasper retract liver"], []),
    ("The grasper is retracting the gall bladder while the hook dissects the cystic plate.",
     ["grasper retract gallbladder", "hook dissect cystic_plate"], []),
    ("The gallbladder is retracted by the grasper.", ["grasper retract gallbladder"], []),
    ("dissecting the omentum with the hook", ["hook dissect omentum"], []),
    ("I use a clip applier to clip the cystic artery", ["clipper clip cystic_artery"], []),
    ("The suction aspirates blood", ["irrigator aspirate fluid"], []),
    ("irrigator irrigating the abdominal cavity", ["irrigator irrigate abdominal_wall_cavity"], []),
    ("bipolar cauterizes the vessels", ["bipolar coagulate blood_vessel"], []),
    ("scissors cutting the cystic duct", ["scissors cut cystic_duct"], []),
    ("grasper packing the gallbladder", ["grasper pack gallbladder"], []),
    ("grasper null_verb null_target", ["grasper null_verb null_target"], []),
    ("grasper and hook dissect omentum", ["grasper dissect omentum", "hook dissect omentum"], []),
    ("Instrument: grasper\nVerb: retract\nTarget: liver", ["grasper retract liver"], []),
    ('{"instrument": "grasper", "verb": "retract", "target": "gut"}', ["grasper retract gut"], []),
    ("The grasper is grasping and retracting the gallbladder.",
     ["grasper grasp gallbladder", "grasper retract gallbladder"], []),
    ("The grasper retracts the gallbladder and the gut.", ["grasper retract gallbladder", "grasper retract gut"], []),
    ("hook manipulate gallbladder", ["hook - gallbladder"], ["hook manipulate gallbladder"]),
    ("grasper grasp tissue", ["grasper grasp -"], ["grasper grasp tissue"]),
    ("grasper retract gut\nhook manipulate tissue", ["grasper retract gut", "hook - -"], ["hook manipulate tissue"]),
    ("scalpel cut liver", [], ["scalpel cut liver"]),
    ("laser ablate polyp", [], ["laser ablate polyp"]),
    ("The grasper is not retracting the liver.", [], []),
    ("No hook is used. The grasper holds the gallbladder.", ["grasper grasp gallbladder"], []),
    ("Is the grasper retracting the liver?", [], []),
    ("scissors irrigate gallbladder", ["scissors irrigate gallbladder"], []),
    ("", [], []),
    ("There are no surgical actions visible in this image.", [], []),
]  # fmt: skip


def _spoken(text: str, space: LabelSpace) -> list[str]:
    named = []
    for triplet in triplet_mentions(text, space).classes:
        verb = space.verbs[triplet.verb] if triplet.verb >= 0 else "-"
        target = space.targets[triplet.target] if triplet.target >= 0 else "-"
        named.append(f"{space.instruments[triplet.instrument]} {verb} {target}")
    return named


@pytest.mark.parametrize(("text", "named", "outside"), CHOLECT50_TEXTS)
def test_triplets_of_cholect50(text: str, named: list[str], outside: list[str]) -> None:
    assert _spoken(text, CHOLECT50) == named
    assert list(triplet_mentions(text, CHOLECT50).unparsed) == outside


def test_in_prostatd_bag_is_a_verb_after_an_instrument_and_a_tool_elsewhere() -> None:
    text = "grasper bag prostate\nclip applier clip fascia\nEndobag null null\ngrasper grasp Endobag"
    assert _spoken(text, PROSTATD) == [
        "grasper bag prostate", "clip applier clip fascias", "Endobag null null", "grasper grasp Endobag",
    ]  # fmt: skip


def test_a_triplets_span_reaches_from_its_first_to_its_last_word() -> None:
    text = "I see: the grasper is retracting the liver."
    assert [text[start:end] for start, end in triplet_mentions(text, CHOLECT50).spans] == [
        "grasper is retracting the liver"
    ]


@pytest.mark.parametrize("space", [CHOLECT50, PROSTATD, load_labels("phantom")])
def test_every_class_of_a_space_is_read_from_its_own_name(space: LabelSpace) -> None:
    for number, name in enumerate(space.instruments):
        assert instrument_mentions(name, space).classes == (number,)
    for component, names in (("instrument", space.instruments), ("verb", space.verbs), ("target", space.targets)):
        assert set(spellings(space, component).values()) == set(range(len(names)))
    for triplet in space.triplets:
        parts = (space.instruments[triplet[0]], space.verbs[triplet[1]], space.targets[triplet[2]])
        (said,) = triplet_mentions(" ".join(parts), space).classes
        assert (said.instrument, said.verb, said.target) == triplet


@given(
    st.lists(st.sampled_from(CHOLECT50.instruments), min_size=1, unique=True),
    st.sampled_from([", ", "\n", " and ", "; "]),
)
def test_a_list_gives_its_classes_in_order_however_it_is_written(names: list[str], between: str) -> None:
    said = instrument_mentions(between.join(names), CHOLECT50)
    assert [CHOLECT50.instruments[k] for k in said.classes] == names
    assert not said.unparsed


@given(st.text(max_size=300))
def test_any_text_can_be_searched(text: str) -> None:
    for said in (instrument_mentions(text, CHOLEC80), triplet_mentions(text, CHOLECT50)):
        assert all(0 <= start < end <= len(text) for start, end in said.spans)
        assert len(said.spans) == len(said.classes)


@pytest.mark.parametrize("piece", ["hook ", "not hook, ", "grasper and ", "a b c\n", "by the hook "])
def test_long_texts_take_linear_time(piece: str) -> None:
    text = piece * (30_000 // len(piece))
    start = time.process_time()
    instrument_mentions(text, CHOLECT50)
    triplet_mentions(text, CHOLECT50)
    assert time.process_time() - start < 3.0
