"""Gaze files: the neutral form, mapping files, REFLACX, EyeGaze, Ego-Exo4D, and sentences for what is wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeval.datasets.gaze import GazeMap, GazeTrack, find_fixations, idt, match_names, read_dictation, read_gaze
from surgeval.errors import BadInput, DataError, SurgevalError
from surgeval.records import Gaze


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_neutral_fixations_read_alike_from_csv_and_json_lines(tmp_path: Path) -> None:
    table = _file(tmp_path, "VID01.csv", "t,x,y,duration\n2.0,0.5,0.25,0.3\n1.0,0.1,0.9,0.2\n")
    lines = _file(
        tmp_path, "VID01.jsonl",
        '{"t": 2.0, "x": 0.5, "y": 0.25, "duration": 0.3}\n{"t": 1.0, "x": 0.1, "y": 0.9, "duration": 0.2}\n',
    )  # fmt: skip
    wanted = (Gaze(1.0, 0.1, 0.9, 0.2), Gaze(2.0, 0.5, 0.25, 0.3))
    assert read_gaze(table)["VID01"].on_frame() == read_gaze(lines)["VID01"].on_frame() == wanted


def test_neutral_samples_of_two_recordings_stay_apart_and_lost_gaze_is_kept_as_such(tmp_path: Path) -> None:
    path = _file(tmp_path, "gaze.csv", "recording,t,x,y\nb,0,0.5,0.5\na,0,0.1,0.2\na,0.01,,\na,0.02,0.1,0.2\n")
    tracks = read_gaze(path)
    assert list(tracks) == ["b", "a"]
    assert tracks["a"].kind == "samples"
    assert np.isnan(tracks["a"].x).tolist() == [False, True, False]
    assert len(tracks["a"].on_frame()) == 2


def test_thousands_of_recordings_are_told_apart_in_time_order(tmp_path: Path) -> None:
    rows = [f"r{number},{second},0.{second}5,0.5\n" for second in (1, 0) for number in range(20_000)]
    path = tmp_path / "gaze.csv"
    path.write_text("recording,t,x,y\n" + "".join(rows))
    began = time.perf_counter()
    tracks = read_gaze(path)
    assert time.perf_counter() - began < 60  # by comparing all rows with each name: minutes
    assert list(tracks) == [f"r{number}" for number in range(20_000)]
    assert (tracks["r7"].t.tolist(), tracks["r7"].x.tolist()) == ([0.0, 1.0], [0.05, 0.15])
    path.write_text("recording,t,x,y\n")
    assert read_gaze(path) == {}


def test_a_number_of_hundreds_of_digits_is_not_cut_to_a_smaller_one(tmp_path: Path) -> None:
    path = tmp_path / "gaze.jsonl"
    path.write_text('{"t": 1' + "0" * 400 + ', "x": 0.5, "y": 0.5}\n')
    with pytest.raises(DataError, match=r"line 1: t: found .1000.* expected a finite number"):
        read_gaze(path)


def test_a_mapping_file_says_what_the_columns_of_a_tracker_mean(tmp_path: Path) -> None:
    mapping = _file(
        tmp_path, "gaze.toml",
        'time = "stamp"\ntime_unit = "ms"\nfirst = 1000\nx = "gx"\ny = "gy"\nunit = "pixels"\nsize = [200, 100]\n'
        'origin = "bottom"\nvalid = "ok"\nrecording = "op"\nseparator = ";"\n',
    )  # fmt: skip
    path = _file(tmp_path, "t.txt", "op;stamp;gx;gy;ok\nVID9;1500;50;25;1\nVID9;1510;50;25;0\n")
    track = read_gaze(path, mapping=mapping)["VID9"]
    assert track.t.tolist() == [0.5, 0.51]
    assert (track.x[0], track.y[0]) == (0.25, 0.75)
    assert np.isnan(track.x[1])


def test_reflacx_fixations_are_pixels_of_the_image_and_named_after_the_reading(tmp_path: Path) -> None:
    path = _file(
        tmp_path, "main_data/P102R915/fixations.csv",
        "timestamp_start_fixation,timestamp_end_fixation,x_position,y_position,pupil_area_normalized\n"
        "0.5,0.75,1000,500,1.1\n0.8,1.0,-20,40,1.1\n",
    )  # fmt: skip
    track = read_gaze(path, size=(2000, 2000))["P102R915"]
    assert (track.kind, len(track)) == ("fixations", 2)
    assert track.on_frame() == (Gaze(0.5, 0.5, 0.25, 0.25),)  # the second lies beside the image


FULL = "1a2b3c4d-5e6f7081-92a3b4c5-d6e7f809-1a2b3c4d"
EYE_GAZE = "DICOM_ID,Time (in secs),FPOGX,FPOGY,FPOGS,FPOGD,FPOGID,FPOGV,X_ORIGINAL,Y_ORIGINAL\n"


def test_eyegaze_joins_ids_that_lost_their_last_five_digits(tmp_path: Path) -> None:
    rows = f"{FULL},1.0,0.5,0.5,0.7,0.3,1,1,500,1000\n{FULL[:-5]},2.0,0.4,0.4,1.6,0.4,2,1,250,250\n"
    path = _file(tmp_path, "fixations.csv", EYE_GAZE + rows)
    tracks = read_gaze(path, size={FULL: (1000, 2000)})
    assert list(tracks) == [FULL]
    assert tracks[FULL].on_frame() == (Gaze(0.7, 0.5, 0.5, 0.3), Gaze(1.6, 0.25, 0.125, 0.4))
    alone = _file(tmp_path, "alone/fixations.csv", EYE_GAZE + rows.splitlines()[1])
    assert list(read_gaze(alone, size=(1000, 2000), known=[FULL, "other"])) == [FULL]


def test_eyegaze_samples_are_those_of_eye_gaze_csv(tmp_path: Path) -> None:
    rows = f"{FULL},0.0,0,0,0,0,1,1,10,20\n{FULL},0.02,0,0,0,0,1,0,10,20\n"
    track = read_gaze(_file(tmp_path, "eye_gaze.csv", EYE_GAZE + rows), size=(100, 100))[FULL]
    assert track.kind == "samples"
    assert np.isnan(track.x).tolist() == [False, True]


def test_names_that_only_look_cut_are_left_alone(tmp_path: Path) -> None:
    path = _file(tmp_path, "gaze.csv", "recording,t,x,y\ntake1,0,0.5,0.5\ntake1_left,0,0.1,0.2\n")
    assert list(read_gaze(path)) == ["take1", "take1_left"]


def test_a_cut_id_that_fits_two_recordings_is_an_error() -> None:
    with pytest.raises(BadInput, match="found abc12345 and abc12346"):
        match_names(["abc"], ["abc12345", "abc12346"])


def test_ego_exo_gaze_is_ten_a_second_in_pixels_of_the_aria_camera(tmp_path: Path) -> None:
    text = "tracking_timestamp_us,frame_num,x,y\n5,0,704,352\n6,1,,\n7,2,704,352\n"
    track = read_gaze(_file(tmp_path, "take_7/eye_gaze/general_eye_gaze_2d.csv", text))["take_7"]
    assert track.t.tolist() == pytest.approx([0, 0.1, 0.2])
    assert (track.x[0], track.y[0]) == (0.5, 0.25)
    assert np.isnan(track.y[1])
    plain = read_gaze(_file(tmp_path, "general_eye_gaze_2d.csv", "x,y\n1408,0\n0,704\n"))["general_eye_gaze_2d"]
    assert plain.t.tolist() == pytest.approx([0, 0.1])


def test_dictated_words_have_times(tmp_path: Path) -> None:
    text = "word,timestamp_start_word,timestamp_end_word\nsmall,1.0,1.4\neffusion,1.4,2.1\n"
    words = read_dictation(_file(tmp_path, "timestamps_transcription.csv", text))
    assert [(word.word, word.start) for word in words] == [("small", 1.0), ("effusion", 1.4)]
    with pytest.raises(DataError, match=r"line 2: timestamp_end_word: found 0.5 s after a start at 1 s"):
        read_dictation(_file(tmp_path, "w.csv", text.splitlines()[0] + "\nsmall,1.0,0.5\n"))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "", "an empty file"),
        ("a.csv", "t,x\n1,2\n", r"found the columns t, x, expected t, x and y"),
        ("a.csv", "t,x,y\n1,0.5,0.5\nlate,0.5,0.5\n", r"line 3: t: found 'late', expected a finite number"),
        ("a.csv", "t,x,y\n1,inf,0.5\n", r"line 2: x: found 'inf', expected a finite number or nothing"),
        ("a.csv", "t,x,y,duration\n1,0.5,0.5,-1\n", r"line 2: duration: found -1 s, expected a fixation"),
        ("a.csv", "recording,t,x,y\n,1,0.5,0.5\n", r"line 2: recording: found nothing, expected a name"),
        ("a.csv", "t,x,y\n1,2,3,4,5\n", r"expected a readable CSV file"),
        ("a.csv", "t,x, x,y\n1,2,3,4\n", r"found the columns t, x, x, y, expected each column once"),
        ("a.jsonl", '{"t": 1\n', r"line 1: found .*expected complete JSON"),
        ("a.jsonl", "[1]\n", r"line 1: found \[1\], expected a JSON object"),
        ("a.jsonl", '{"t": 1, "x": "left", "y": 0.5}\n', r"line 1: x: found 'left', expected a finite number"),
        ("fixations.csv", EYE_GAZE + f"{FULL},1,0,0,1,1,1,1,5,5\n", r"size: found pixels of a frame whose size"),
        ("fixations.csv", EYE_GAZE + f"{FULL},1,0,0,1,1,1,maybe,5,5\n", r"FPOGV: found 'maybe', expected 1 or 0"),
    ],
)  # fmt: skip
def test_a_bad_file_gives_one_sentence(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as error:
        read_gaze(_file(tmp_path, name, text))
    assert str(error.value).count("\n") == 0


def test_an_absent_file_and_an_unknown_format_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_gaze(tmp_path / "none.csv")
    with pytest.raises(BadInput, match="expected one of neutral, reflacx"):
        read_gaze(_file(tmp_path, "a.csv", "t,x,y\n"), format="tobii")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"x": "a", "y": "b"}, "time: found neither time nor rate"),
        ({"x": "a", "y": "b", "time": "t", "units": "px"}, "found 'units', expected one of"),
        ({"x": "a", "y": "b", "time": "t", "unit": "px"}, "unit: found 'px', expected one of share, pixels"),
        ({"x": "a", "y": "b", "rate": 0}, "rate: found 0, expected rows per second"),
        ({"x": "a", "y": "b", "time": "t", "end": "e", "duration": "d"}, "found both end and duration"),
        ({"x": 3, "y": "b", "time": "t"}, "x: found 3, expected text"),
    ],
)
def test_a_bad_mapping_gives_one_sentence(data: dict[str, object], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        GazeMap.from_json(data)


@given(st.binary(max_size=300), st.sampled_from(["a.csv", "fixations.csv", "a.jsonl", "general_eye_gaze_2d.csv"]))
def test_any_bytes_are_gaze_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("gaze") / name
    path.write_bytes(data)
    try:
        tracks = read_gaze(path, size=(10, 10))
    except SurgevalError:
        return
    assert all(len(track.t) == len(track.x) for track in tracks.values())


def _samples(t: np.ndarray, x: np.ndarray, y: np.ndarray) -> GazeTrack:
    return GazeTrack("a", "samples", t, x, y, np.zeros(len(t)))


def test_a_gap_in_time_ends_a_fixation_like_lost_gaze() -> None:
    t = np.concatenate([np.arange(20), np.arange(60, 80)]) / 100
    fixed = find_fixations(_samples(t, np.full(40, 0.5), np.full(40, 0.5)))
    assert fixed.t.tolist() == [0.0, 0.6]
    assert find_fixations(_samples(t, np.full(40, 0.5), np.full(40, 0.5)), gap=1.0).t.tolist() == [0.0]


def test_a_threshold_in_degrees_needs_the_view_of_the_frame() -> None:
    t = np.arange(40) / 100
    track = _samples(t, np.where(t < 0.2, 0.50, 0.52), np.full(40, 0.5))  # two hundredths of the frame apart
    assert len(find_fixations(track, 1.0, view=(40, 22.5))) == 1  # 0.8 degrees
    assert len(find_fixations(track, 1.0, view=(80, 45))) == 2  # 1.6 degrees
    with pytest.raises(BadInput, match="view"):
        find_fixations(track, 1.0, view=(400, 20))


@pytest.mark.parametrize("arguments", [{"threshold": 0}, {"threshold": float("nan")}, {"minimum": -1}, {"gap": 0}])
def test_settings_without_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="expected a positive number"):
        find_fixations(_samples(np.arange(3.0), np.zeros(3), np.zeros(3)), **arguments)


def test_fixations_of_a_file_are_left_alone() -> None:
    track = GazeTrack("a", "fixations", np.array([0.0]), np.array([0.1]), np.array([0.1]), np.array([0.4]))
    assert find_fixations(track) is track


def _loop(x: np.ndarray, y: np.ndarray, threshold: float, samples: int) -> list[list[int]]:
    """I-DT as the textbook writes it."""

    def spread(first: int, end: int) -> float:
        return float(np.ptp(x[first:end]) + np.ptp(y[first:end]))

    pairs, start = [], 0
    while start + samples <= len(x):
        end = start + samples
        if not spread(start, end) <= threshold:
            start += 1
            continue
        while end < len(x) and spread(start, end + 1) <= threshold:
            end += 1
        pairs.append([start, end - 1])
        start = end
    return pairs


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 3.0, np.nan]), st.sampled_from([0.0, 1.0, 2.0])), max_size=40),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.integers(1, 6),
)
def test_idt_is_the_textbook_loop(rows: list[tuple[float, float]], threshold: float, samples: int) -> None:
    x, y = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
    assert idt(x, y, threshold, samples).tolist() == _loop(x, y, threshold, samples)


def test_an_hour_at_120_hz_takes_under_a_second() -> None:
    random = np.random.default_rng(0)
    n = 3600 * 120
    x = np.cumsum(random.random(n) < 0.01) * 0.1 % 1 + random.normal(0, 0.004, n)
    track = _samples(np.arange(n) / 120, x, random.normal(0.5, 0.004, n))
    start = time.process_time()
    assert len(find_fixations(track)) > 1000
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(("samples", "fixations"), [(9, 0), (10, 1)])
def test_a_fixation_of_exactly_the_least_duration_counts(samples: int, fixations: int) -> None:
    t = np.arange(samples) / 100
    track = GazeTrack("v", "samples", t, np.full(samples, 0.5), np.full(samples, 0.5), np.zeros(samples))
    assert len(find_fixations(track, minimum=0.1).t) == fixations
