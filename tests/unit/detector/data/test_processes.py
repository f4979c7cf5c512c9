"""Pictures made by other processes are those that threads make; what happens to one is told, and none stays."""

from __future__ import annotations

import _thread
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from tests.unit.detector.data.small_sets import mixed_set

from surgeval.arrays import Image
from surgeval.datasets import read_image
from surgeval.detector import Classes
from surgeval.detector.data import Augment, Batch, TrainingSet, batches, can_fork, epoch_order, picture_processes
from surgeval.detector.data.pictures import ScaledPictures
from surgeval.detector.data.processes import SLOTS, PictureProcesses, running_threads, wait_for_ending_threads
from surgeval.errors import BadInput, DataError, RunError
from surgeval.records import Box, Frame, ImageRef, Instance, Triplet
from surgeval.vocab import load_labels

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")
ROOT = Path(__file__).parents[4]
DATA = mixed_set(size=64, count=30)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """A process that hangs must not hang the tests; one that stays behind is found."""

    def over(_number: int, _frame: object) -> None:
        raise TimeoutError("a process never answered")

    others = set(children(os.getpid()))  # of tests that ran here before: a browser, a server of forks
    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(200)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert set(children(os.getpid())) <= others


def children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, owner = status.read_text().rpartition(")")[2].split()[:2]
            words = (status.parent / "cmdline").read_bytes() if int(owner) == parent else b""
        except OSError:  # it has just ended
            continue
        if int(owner) == parent and state != "Z" and b"resource_tracker" not in words:
            found.append(int(status.parent.name))
    return found


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for what must come; on a busy machine it may take its time."""
    until = time.monotonic() + 240
    while not true():
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(0.02)


def same(some: list[Batch], others: list[Batch]) -> None:
    assert [one.frames for one in some] == [other.frames for other in others]
    for one, other in zip(some, others, strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.truth.boxes, other.truth.boxes)
        assert torch.equal(one.truth.mask, other.truth.mask)
        assert all(torch.equal(one.truth.labels[head], other.truth.labels[head]) for head in one.truth.labels)


def failing(act: Callable[[], object], at: int = 9) -> TrainingSet:
    """The set with something that happens where this picture is read."""

    def read(number: int) -> Image:
        if number == at:
            act()
        return DATA.pictures[number]

    return replace(DATA, pictures=ScaledPictures(read, {}))


def raising(error: Callable[[], BaseException]) -> TrainingSet:
    def act() -> None:
        raise error()

    return failing(act)


def made(data: TrainingSet, batch: int = 2, count: int = 2) -> list[Batch]:
    with picture_processes(data, batch, count) as workers:
        return list(batches(data, batch=batch, workers=workers))


@pytest.mark.parametrize("batch", [3, 11])  # one errand a batch, and two with a short one
def test_processes_change_neither_order_nor_content(batch: int) -> None:
    order = epoch_order(DATA, epoch=2, seed=5).repeat(2)  # more batches than slots, frames that are drawn again
    settings = {"batch": batch, "epoch": 2, "seed": 5, "augment": Augment(), "order": order}
    assert len(order) > batch * SLOTS
    with picture_processes(DATA, batch, 2) as workers:
        same(list(batches(DATA, workers=workers, **settings)), list(batches(DATA, **settings)))  # type: ignore[arg-type]


def test_other_processes_make_the_pictures() -> None:
    used: set[int] = set()
    data = failing(lambda: used.add(os.getpid()))
    same(made(data), list(batches(DATA, batch=2)))
    assert not used


def test_left_early_the_same_processes_make_the_next_batches() -> None:
    with picture_processes(DATA, 2, 2) as workers:
        for taken in (1, 3):
            stream = batches(DATA, batch=2, order=np.arange(30).repeat(3), workers=workers)
            for _ in range(taken):
                next(stream)
            stream.close()  # type: ignore[attr-defined]
        same(list(batches(DATA, batch=2, workers=workers)), list(batches(DATA, batch=2)))


def test_batches_under_way_keep_others_out_of_their_slots() -> None:
    with picture_processes(DATA, 2, 2) as workers:
        first = batches(DATA, batch=2, workers=workers)
        start = next(first)
        with pytest.raises(BadInput, match="found other batches under way in the same processes"):
            next(batches(DATA, batch=2, workers=workers, order=[5, 4]))
        same([start, *first], list(batches(DATA, batch=2)))
        same(list(batches(DATA, batch=2, workers=workers, order=[5, 4])), list(batches(DATA, batch=2, order=[5, 4])))


def test_processes_of_another_set_or_a_smaller_batch_are_refused() -> None:
    with picture_processes(DATA, 2, 1) as workers:
        for data, batch in ((mixed_set(size=64, count=30), 2), (DATA, 3)):
            with pytest.raises(BadInput, match="found processes of another set or a smaller batch"):
                next(batches(data, batch=batch, workers=workers))


def test_two_sets_have_their_processes_at_the_same_time() -> None:
    other = mixed_set(size=96, count=6)
    with picture_processes(DATA, 2, 1) as some, picture_processes(other, 4, 2) as others:
        one, two = batches(DATA, batch=2, workers=some), batches(other, batch=4, workers=others)
        first, second = next(one), next(two)
        same([second, *two], list(batches(other, batch=4)))
        same([first, *one], list(batches(DATA, batch=2)))


class TwoArguments(Exception):
    """Cannot be unpickled: its first argument is the whole message by then."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


class WithFunction(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("a function inside")
        self.function = lambda: 1


def test_a_file_that_broke_since_it_was_read_is_named() -> None:
    gone = DataError("gone.jpg", "found no such file, expected an image", record="frame 9")
    with pytest.raises(DataError, match=r"gone\.jpg: frame 9: found no such file, expected an image"):
        made(raising(lambda: gone))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (lambda: TwoArguments("odd", "one"), "TwoArguments: odd one"),
        (WithFunction, "WithFunction: a function inside"),
        (lambda: ZeroDivisionError("plain"), "plain"),
    ],
)
def test_an_error_that_cannot_travel_is_still_told_as_itself(error: Callable[[], BaseException], told: str) -> None:
    with pytest.raises((RuntimeError, ZeroDivisionError)) as raised:
        made(raising(error))
    assert str(raised.value) == told


def test_after_an_error_nothing_more_is_written_into_the_slots() -> None:
    with picture_processes(raising(lambda: DataError("x", "found y, expected z")), 24, 3) as workers:
        with pytest.raises(DataError):
            list(batches(workers.data, batch=24, workers=workers))
        before = workers.slots.copy()
        time.sleep(0.1)
        assert (workers.slots == before).all()
        same(list(batches(workers.data, batch=4, order=[1, 2, 3], workers=workers)),
             list(batches(DATA, batch=4, order=[1, 2, 3])))  # fmt: skip


ENDED = "a process that prepares them was ended from outside, expected it to live: memory may be short"


def test_a_process_that_is_killed_at_work_is_told() -> None:
    with pytest.raises(RunError, match=ENDED):
        made(failing(lambda: os.kill(os.getpid(), signal.SIGKILL)))


def test_a_process_that_is_killed_while_nobody_waits_is_told() -> None:
    others = set(children(os.getpid()))
    with picture_processes(DATA, 2, 2) as workers:
        stream = batches(DATA, batch=2, workers=workers)
        next(stream)
        os.kill(min(set(children(os.getpid())) - others), signal.SIGKILL)
        wait_until(lambda: set(children(os.getpid())) <= others)  # it was noticed, and the other one ended
        with pytest.raises(RunError, match=ENDED):
            list(stream)
        with pytest.raises(RunError, match=ENDED):
            list(batches(DATA, batch=2, workers=workers))


def test_the_processes_outlive_the_thread_that_takes_the_first_batch() -> None:
    taken: list[Batch] = []
    with picture_processes(DATA, 2, 2) as workers:
        stream = batches(DATA, batch=2, workers=workers)
        thread = threading.Thread(target=lambda: taken.append(next(stream)))
        thread.start()
        thread.join()
        time.sleep(0.2)
        same([*taken, *stream], list(batches(DATA, batch=2)))


def test_what_no_machine_has_is_refused_in_one_sentence() -> None:
    with pytest.raises(RunError, match=r"found too little memory for 5 batches of 1000000000 pictures \(\d+ bytes\)"):
        made(DATA, batch=10**9)
    for batch, count in ((0, 1), (1, 0)):
        with pytest.raises(BadInput, match=f"found batches of {batch} and {count} processes, expected 1 or more"):
            made(DATA, batch=batch, count=count)


def test_there_are_no_more_processes_than_errands() -> None:
    others = set(children(os.getpid()))
    with picture_processes(DATA, 9, 10**6) as workers:
        assert isinstance(workers, PictureProcesses)
        assert len(set(children(os.getpid())) - others) == 2 * SLOTS


CHILD = """
import os, sys, time
from tests.unit.detector.data.test_processes import DATA, children
from surgeval.detector.data import batches, picture_processes, processes as _processes
begin, early = _processes._begin, sys.argv[1] == "early"
def slowly(*arguments):
    time.sleep(0.5 if early else 0)
    begin(*arguments)
_processes._begin = slowly
with picture_processes(DATA, 2, 2) as workers:
    stream = batches(DATA, batch=2, workers=workers)
    made = 0 if early else len([next(stream)])
    try:
        print(*children(os.getpid()), flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print(made + len(list(stream)), flush=True)
"""


@pytest.mark.parametrize(("how", "when"), [(signal.SIGKILL, "late"), (signal.SIGINT, "late"), (signal.SIGINT, "early")])
def test_however_the_process_ends_those_it_started_end_too(how: signal.Signals, when: str) -> None:
    """Also when Ctrl-C comes before they can ignore it."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    parent = subprocess.Popen(
        [sys.executable, "-c", CHILD, when], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        start_new_session=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert parent.stdout is not None
    started = [int(word) for word in parent.stdout.readline().split()]
    assert len(started) == 2
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)  # as a terminal does: only the parent answers, and its batches go on
        said, errors = parent.communicate(timeout=120)
        assert said == "15\n", errors
        assert "Traceback" not in errors
    else:
        parent.send_signal(how)
        parent.communicate(timeout=120)
    wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in started))


@pytest.mark.parametrize(("suffix", "codec"), [(".avi", "MJPG"), (".mp4", "mp4v")])
def test_films_that_were_open_before_the_fork_are_read_after_it(tmp_path: Path, suffix: str, codec: str) -> None:
    path = tmp_path / f"film{suffix}"
    film = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*codec), 25, (96, 64))  # type: ignore[attr-defined]
    for number in range(12):
        film.write(np.full((64, 96, 3), 20 * number, np.uint8))
    film.release()
    read_image(ImageRef(path, 3))  # a decoder with threads of its own, which a fork does not copy
    hook = Instance(Triplet(2), Box(32, 24, 24, 24))
    frames = [Frame("V1", str(k), k, None, ImageRef(path, k), 96, 64, (hook,)) for k in range(12)]
    tools = Classes.of(load_labels("cholec80"))
    data = TrainingSet.of(frames, tools, image_size=64, cache_bytes=0, workers=2)
    same(made(data), list(batches(data, batch=2)))


def test_nothing_is_forked_while_a_thread_that_python_has_joined_still_ends() -> None:
    # pbkdf2 computes without Python's lock, in a thread that `threading` does not list
    _thread.start_new_thread(hashlib.pbkdf2_hmac, ("sha256", b"", b"", 1_000_000))
    end = time.monotonic() + 60
    while not running_threads() and time.monotonic() < end:
        time.sleep(0.001)
    assert running_threads()
    wait_for_ending_threads(60)
    assert not running_threads()
