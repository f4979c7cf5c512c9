"""Options and fixtures shared by all tests."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import HealthCheck, settings

from surgeval.files import write_atomically

if TYPE_CHECKING:
    from surgeval.pages import Plot

# Two test processes share two cores: a second thread in each (torch, OpenMP) only makes them wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Three test processes and every command they start compile the same files: where Python was told to keep no bytecode,
# that is a quarter of a minute in each of them and a tenth of a second in each command.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A shell that ignores Ctrl-C (nohup, a background job) hands that down to every process a test starts, and the tests
# that send SIGINT would wait in vain: from here on processes are started as from a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
LONG = bool(os.environ.get("SURGEVAL_LONG"))
# The short run draws the same examples each time, so that it fails for what was changed; the long run looks further.
settings.register_profile(
    "surgeval", deadline=None, derandomize=not LONG, max_examples=300 if LONG else 25,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("surgeval")


_TESTS = Path(__file__).parent
Once: TypeAlias = Callable[[str, Callable[[Path], object]], Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        metavar="DIR",
        default=None,
        help="folder with golden files (detector, intent, tracks, triplets, vqa, xai); default tests/data/golden",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not LONG:
        later = pytest.mark.skip(reason="SURGEVAL_LONG is unset: left to make test-long")
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(later)
    items[:] = waiting_first(items)


def waiting_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Tests that wait for other processes first, each kind at the head of one process's share (worksteal deals the list
    out in four equal parts, and takes from their ends): begun last, they kept two cores idle for a minute.
    """
    kinds: dict[str, list[pytest.Item]] = {"fault": [], "browser": [], "e2e": [], "": []}
    for item in items:
        kind = item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""
        kinds.get(kind, kinds[""]).append(item)
    others = kinds.pop("")
    share = len(items) // 4
    dealt: list[pytest.Item] = []
    for waiting in kinds.values():
        fill = max(0, share - len(waiting))
        dealt += [*waiting, *others[:fill]]
        others = others[fill:]
    return dealt + others


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests and the modules they import: no garbage, and looked through again and again


def pytest_unconfigure() -> None:
    gc.freeze()  # an interpreter that holds torch looks for garbage for seconds before it ends


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Pages sketch their figures, unless a test is about them (`figures`) or full counts are wanted."""
    if LONG or item.get_closest_marker("figures"):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surgeval.pages.page.saved_plots", _sketched)
        return (yield)


@contextmanager
def _sketched(plots: Sequence[Plot], folder: Path) -> Iterator[None]:
    """The files of figures without drawing them, which takes most of the time of a page.

    They hold the specification, so that a page which is made again can be compared.
    """
    for plot in plots:
        for name in plot.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, json.dumps(plot.figure.paper_spec()).encode(errors="backslashreplace"))
    yield


def golden_folder(config: pytest.Config) -> Path:
    chosen = config.getoption("--golden")
    return Path(str(chosen)) if chosen else Path(__file__).parent / "data" / "golden"


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> Path:
    """The folder of golden files; an absent kind is not a failure."""
    return golden_folder(request.config)


@pytest.fixture(scope="session")
def long() -> bool:
    """Whether the full counts are wanted (`make test-long`)."""
    return LONG


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small networks on shared cores: torch with one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def same_tissue() -> Iterator[None]:
    """For tests that render the same few operations again and again: their tissue is painted once."""
    from surgeval.phantom.scene.tissue import build_field

    painted: dict[str, object] = {}

    def kept(*scene: object) -> object:
        key = repr(scene)
        if key not in painted:
            painted[key] = build_field(*scene)  # type: ignore[arg-type]
        return painted[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surgeval.phantom.scene.render.build_field", kept)
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Real surgical data, where the user has it."""
    place = os.environ.get("SURGEVAL_REAL_DATA")
    if not place:
        pytest.skip("SURGEVAL_REAL_DATA is unset: it should name a folder with the real datasets")
    return Path(place)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """A folder that one test process makes and all of them read; `make` gets the path at which to make it."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def shared(name: str, make: Callable[[Path], object]) -> Path:
        home, done = root / "once" / name, root / "once" / f"{name}.done"
        home.mkdir(parents=True, exist_ok=True)
        with (root / "once" / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                make(home / "D")
                done.touch()
        return home / "D"

    return shared
