"""Source records: read from files nobody vouches for, cut from video along phases, aligned from gaze and dictation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from tests.unit.questions.sound import BREECH, MAMMOGRAM, OPERATION, XRAY

from surgeval.datasets import MemoryDataset
from surgeval.datasets.gaze import SpokenWord
from surgeval.errors import DataError, SurgevalError
from surgeval.questions import (
    ClipOptions,
    ImageRegion,
    SourceRecord,
    assemble_prompt,
    dataset_clips,
    fitting_templates,
    image_records,
    read_source_records,
    regions_while_naming,
    table_clips,
    templates,
    write_source_records,
)
from surgeval.questions.prompt_templates import parse_template
from surgeval.records import Box, Frame, Gaze, ImageRef, Instance, Triplet, Video
from surgeval.vocab import LabelSpace

SPACE = LabelSpace("mine", ("hook", "clip_applier", "stapler"), ("cut", "null_verb"), ("cystic_duct", "null_target"),
                   phases=("Preparation", "CalotTriangleDissection"))  # fmt: skip


def test_records_survive_their_file(tmp_path: Path) -> None:
    every = [OPERATION, XRAY, MAMMOGRAM, BREECH]
    write_source_records(tmp_path / "records.jsonl", every)
    assert list(read_source_records(tmp_path / "records.jsonl")) == every


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"id": ""}, "id: found '', expected text"),
        ({"media": ["../secret.png"]}, "media: '../secret.png' is not a path inside"),
        ({"media": ["/etc/passwd"]}, "is not a path inside"),
        ({"media": ["a.png"] * 300}, "media: 300 entries"),
        ({"gaze": [{"t": 0, "x": float("nan"), "y": 0, "duration": 1}]}, "NaN"),
        ({"gaze": "everywhere"}, "a JSON list"),
        ({"scene": {"visible": "hook"}}, "a JSON list"),
        ({"scene": {"visible": [1]}}, "expected text"),
        ({"context": {"team": ["a"]}}, "expected text"),
        ({"phase": "x" * 5000}, "5000 characters"),
        ({"start": "soon"}, "start: found 'soon'"),
    ],
)
def test_a_spoilt_record_is_one_sentence(tmp_path: Path, changed: dict[str, object], why: str) -> None:
    record = {"id": "a", "scenario": "open_surgery", "cluster": "v", "media": ["a.png"], **changed}
    (tmp_path / "records.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match=why):
        list(read_source_records(tmp_path / "records.jsonl"))


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.png").symlink_to("/etc/hostname")
    record = {"id": "a", "scenario": "open_surgery", "cluster": "v", "media": ["out.png"]}
    (tmp_path / "records.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match="is not a path inside"):
        list(read_source_records(tmp_path / "records.jsonl"))


def _film(folder: Path, seconds: float = 8.0) -> None:
    film = cv2.VideoWriter(str(folder / "op.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 10, (64, 48))  # type: ignore[attr-defined]
    for n in range(round(seconds * 10)):
        film.write(np.full((48, 64, 3), n, np.uint8))
    film.release()


def _dataset(folder: Path) -> MemoryDataset:
    picture = folder / "frame.png"
    Image.fromarray(np.zeros((48, 64, 3), np.uint8)).save(picture)
    frames = []
    for second in range(20):
        held: tuple[Instance, ...] = (Instance(Triplet(0, 0, 0)),) if second % 2 else ()
        held += (Instance(Triplet(1, 1, 1)),) if second == 1 else ()
        gaze = (Gaze(second, 0.5, 0.25, 0.4),)
        frames.append(
            Frame("op", f"{second:03d}", second, float(second), ImageRef(picture), 64, 48, held,
                  phase=int(second >= 5), gaze=gaze, objects={"clip 1": "visible", "needle 1": "hidden"})
        )  # fmt: skip
    return MemoryDataset(SPACE, frames, [Video("op", procedure="open cholecystectomy")])


def test_a_video_is_cut_along_its_phases_and_long_phases_in_parts(tmp_path: Path) -> None:
    out = tmp_path / "scenes"
    options = ClipOptions("open_surgery", frames=3, longest=10, site="gallbladder")
    records = dataset_clips(_dataset(tmp_path), out, options)
    assert [(r.phase, r.start, r.end) for r in records] == [
        ("preparation", 0, 4), ("calot triangle dissection", 5, 14), ("calot triangle dissection", 15, 19),
    ]  # fmt: skip
    first = records[0]
    assert len(first.media) == 3
    assert all((out / name).is_file() for name in first.media)
    assert [g.t for g in first.gaze] == [0, 1, 2, 3, 4]
    assert first.procedure == "open cholecystectomy"
    assert list(read_source_records(out / "records.jsonl")) == records


def test_what_is_visible_is_in_the_frames_shown_and_what_is_absent_in_none_of_the_clip(tmp_path: Path) -> None:
    options = ClipOptions("open_surgery", frames=3, longest=10)  # seconds 0, 2 and 4 of the first clip: no instrument
    first, second, _ = dataset_clips(_dataset(tmp_path), tmp_path / "scenes", options)
    assert first.scene.visible == ("clip",)
    assert first.scene.absent == ("stapler",)  # hook and clip applier are in the clip, between the frames shown
    assert "hook" in second.scene.visible
    assert second.scene.actions == ("cut cystic duct",)
    assert second.scene.absent == ("clip applier", "stapler")


def test_films_are_cut_along_a_table_of_phases(tmp_path: Path) -> None:
    _film(tmp_path)
    (tmp_path / "phases.csv").write_text("video,start,end,phase,site\nop,0,5,Opening,abdomen\nop,5,5.5,Pause,abdomen\n")
    looked = {"op": (Gaze(1.0, 0.5, 0.5, 0.3), Gaze(7.0, 0.1, 0.1, 0.2))}
    made = table_clips(
        tmp_path / "phases.csv", tmp_path, tmp_path / "out", ClipOptions("open_surgery", frames=4), looked
    )
    assert [(r.id, r.phase, r.site, len(r.media)) for r in made] == [("op-001", "Opening", "abdomen", 4)]
    assert made[0].gaze == looked["op"][:1]  # the pause is shorter than a clip may be


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("video,start,end\nop,0,5\n", "no column phase"),
        ("video,start,end,phase\nop,soon,5,Opening\n", "line 2: start: 'soon' is not"),
        ("video,start,end,phase\nother,0,5,Opening\n", "video other: no such file"),
        ('video,start,end,phase\n"op,0,5\n', "not valid CSV"),
    ],
)
def test_a_spoilt_table_of_phases_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    _film(tmp_path, 1)
    (tmp_path / "phases.csv").write_text(text)
    with pytest.raises(DataError, match=why):
        table_clips(tmp_path / "phases.csv", tmp_path, tmp_path / "out", ClipOptions("open_surgery"))


def _case(folder: Path, **changed: object) -> Path:
    """A chest image of 200 × 100 pixels with two regions, a REFLACX gaze file and its dictation."""
    Image.fromarray(np.zeros((100, 200, 3), np.uint8)).save(folder / "x1.png")
    (folder / "fixations.csv").write_text(
        "timestamp_start_fixation,timestamp_end_fixation,x_position,y_position\n0.0,1.0,50,20\n1.2,3.0,150,90\n3.2,3.4,50,20\n"
    )
    (folder / "timestamps_transcription.csv").write_text(
        "word,timestamp_start_word,timestamp_end_word\nsmall,2.0,2.3\neffusion.,2.4,3.0\nheart,5.0,5.3\n"
    )
    case = {
        "id": "x1", "image": "x1.png", "scenario": "chest_xray", "patient": "p1", "diagnosis": "small effusion",
        "gaze": "fixations.csv", "dictation": "timestamps_transcription.csv",
        "regions": [{"name": "whole lung", "box": [0, 0, 200, 100]}, {"name": "left base", "box": [120, 70, 80, 30]}],
        **changed,
    }  # fmt: skip
    (folder / "cases.jsonl").write_text(json.dumps(case) + "\n")
    return folder / "cases.jsonl"


def test_the_region_looked_at_while_a_finding_is_named_is_where_it_is(tmp_path: Path) -> None:
    (record,) = image_records(_case(tmp_path), tmp_path / "out")
    assert record.scene.locations == ("left base",)
    assert record.scene.facts["dwell"] == "left base 1.8 s; whole lung 1.2 s"
    assert record.scene.facts["dictation"].startswith("small: left base")
    assert (record.gaze[1].t, record.gaze[1].x, record.gaze[1].y) == (1.2, 0.75, 0.9)
    assert record.cluster == "p1"
    assert (tmp_path / "out" / record.media[0]).is_file()
    prompt = assemble_prompt(templates()["chest_xray"], record)
    assert "left base 1.8 s" in prompt
    assert list(read_source_records(tmp_path / "out" / "records.jsonl")) == [record]


def test_a_finding_named_twice_within_a_look_counts_each_moment_once() -> None:
    base = ImageRegion("base", Box(0, 0.8, 1, 0.2))
    words = [SpokenWord("effusion", 2.0, 2.4), SpokenWord("effusion", 2.6, 3.0)]
    looked = [Gaze(1.2, 0.5, 0.9, 1.8)]  # 1.8 s, all of them within 1.5 s of one of the words
    assert regions_while_naming("effusion", words, looked, [base]) == {"effusion": {"base": pytest.approx(1.8)}}


def test_abbreviations_name_a_finding_and_small_words_do_not() -> None:
    base = ImageRegion("base", Box(0, 0.8, 1, 0.2))
    words = [SpokenWord(word, 1.0, 2.0) for word in ("chf", "pe", "and", "of", "with")]
    found = regions_while_naming("CHF and PE of the base, with effusion", words, [Gaze(1, 0.5, 0.9, 1)], [base])
    assert list(found) == ["chf", "pe"]


class Watched(MemoryDataset):
    """Knows the fixations of a video, a second one after each labelled frame too."""

    def fixations(self, video: str) -> tuple[Gaze, ...]:
        own = [g for frame in self.frames(video) for g in frame.gaze]
        return tuple(g for at in own for g in (at, Gaze(at.t + 0.5, 0.75, 0.25, 0.2)))


def test_short_clips_and_fixations_in_no_record_are_announced(tmp_path: Path) -> None:
    plain = _dataset(tmp_path)
    dataset = Watched(SPACE, plain.frames("op"), plain.videos())
    options = ClipOptions("open_surgery", shortest=5, longest=10)
    said: list[str] = []
    (record,) = dataset_clips(dataset, tmp_path / "some", options, announce=said.append)
    assert [g.t for g in record.gaze] == [float(second) for second in range(5, 15)]
    assert said == [
        "2 clips shorter than 5 s left out (option shortest)",
        "11 of 40 fixations lie between labelled frames and are left out (option all_fixations)",
        "19 of 40 fixations lie in no clip and are left out",
    ]
    (whole,) = dataset_clips(dataset, tmp_path / "all", replace(options, all_fixations=True))
    assert len(whole.gaze) == 21
    said.clear()
    short = ClipOptions("open_surgery", shortest=0)
    assert len(dataset_clips(plain, tmp_path / "every", short, announce=said.append)) == 2
    assert said == []


def test_fixations_outside_the_image_are_announced(tmp_path: Path) -> None:
    case = _case(tmp_path)
    with (tmp_path / "fixations.csv").open("a") as file:
        file.write("3.6,4.0,250,20\n")
    said: list[str] = []
    (record,) = image_records(case, tmp_path / "out", announce=said.append)
    assert len(record.gaze) == 3
    assert said == [f"{tmp_path / 'fixations.csv'}: 1 fixation outside the frame is left out"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"image": "../x1.png"}, "the path '../x1.png'"),
        ({"image": "cases.jsonl"}, "not a readable image"),
        ({"gaze": "nowhere.csv"}, "no such file"),
        ({"regions": [{"name": "base"}]}, "base|box"),
        ({"diagnosis": ["effusion"]}, "expected text"),
    ],
)
def test_a_spoilt_case_is_one_sentence(tmp_path: Path, changed: dict[str, object], why: str) -> None:
    with pytest.raises(DataError, match=why):
        image_records(_case(tmp_path, **changed), tmp_path / "out")


def test_six_templates_are_adapted_from_the_paper_and_the_waiting_phase_is_ours() -> None:
    origins = {name: template.origin for name, template in templates().items()}
    assert len(origins) == 7
    assert origins.pop("breech_waiting") == "ours"
    assert set(origins.values()) == {"adapted"}


def test_the_swapped_headings_are_set_right_by_meaning() -> None:
    cognitive, perceptual = templates()["cognitive_trap"], templates()["perceptual_trap"]
    assert (cognitive.trap, perceptual.trap) == ("cognitive", "perceptual")
    assert any("asserts something that the pictures contradict" in rule for rule in cognitive.content)
    assert any("in none of the pictures" in rule for rule in perceptual.content)
    assert set(templates()["mammography"].placeholders) == {"view_position_full", "findings", "birads", "gaze"}
    assert set(templates()["chest_xray"].placeholders) == {"diagnosis", "gaze"}


@pytest.mark.parametrize(
    ("phase", "name"),
    [
        ("Waiting for active labour", "breech_waiting"),
        ("pre-active phase", "breech_waiting"),
        ("active pushing", "breech_pushing"),
        ("Second stage", "breech_pushing"),
    ],
)
def test_the_phase_of_a_breech_birth_chooses_its_template(phase: str, name: str) -> None:
    record = SourceRecord("b", "breech_delivery", "b", ("1.png",), phase=phase)
    assert [template.name for template in fitting_templates(record)] == [name]


def test_a_prompt_has_its_four_stages_and_no_placeholder_left() -> None:
    for name, record in (("open_surgery", OPERATION), ("chest_xray", XRAY), ("mammography", MAMMOGRAM)):
        prompt = assemble_prompt(templates()[name], record)
        positions = [prompt.index(f"\n{k}. ") if k > 1 else prompt.index("1. ") for k in (1, 2, 3, 4)]
        assert positions == sorted(positions)
        assert prompt.startswith("1. Who I am and what I see\nI am ")
        assert "{" not in prompt.replace('{"', "")
        assert "Write exactly six questions" in prompt


def test_a_brace_in_a_record_is_only_a_brace() -> None:
    prompt = assemble_prompt(templates()["open_surgery"], replace(OPERATION, phase="{gaze} {unknown}"))
    assert "Phase: {gaze} {unknown}" in prompt


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{gaze}", "{look}", "placeholders: gaze, look: used but not declared"),
        ('gaze = "gaze"', 'gaze = "weather"', "Unknown field 'weather'"),
        ("[prompt]", "[promt]", "prompt: is missing"),
        ("version = 1", "version = ", "not valid TOML"),
        ("gaze_dependent = 4", "gaze_dependant = 4", "gaze_dependant: unknown key"),
        ('scenarios = ["chest_xray"]', 'scenarios = ["chest_xray"]\ntrap = "deep"', "trap: expected .* got 'deep'"),
        ('scenarios = ["chest_xray"]', "scenarios = [1]", "expected text, got 1"),
        ('gaze = "gaze"', "gaze = 1", "expected text, got 1"),
        ("gaze_dependent = 4", 'gaze_dependent = "four"', "expected a whole number, got 'four'"),
        ("hides_site = true", "hides_site = 2", "expected true or false"),
        ("hides_site = true", "years = [2023]", "rules.years"),
        ("hides_site = true", 'stem_names = ["__class__"]', "stem_names"),
        ("hides_site = true", "years = 5", "rules.years: expected a list"),
    ],
)
def test_a_template_with_a_mistake_is_refused(old: str, new: str, why: str) -> None:
    from importlib.resources import files

    text = (files("surgeval.questions") / "templates" / "chest_xray.toml").read_text()
    assert old in text
    with pytest.raises(SurgevalError, match=why):
        parse_template(text.replace(old, new), "mine.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "{a = " * 5000, "version = inf"])
def test_a_template_of_odd_values_is_one_sentence(text: str) -> None:
    rest = '\nname = "x"\nscenarios = []\n[placeholders]\n[prompt]\nrole = "a"\npurpose = "b"\ncontent = []\n'
    sentence = r"mine\.toml: (not valid TOML|version: expected a whole number)"
    with pytest.raises(DataError, match=sentence):
        parse_template(text + rest, "mine.toml")
