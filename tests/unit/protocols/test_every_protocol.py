"""One contract for all protocols: each has its rooms, and what is loaded from its run offers the same things."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tests.unit.protocols.intent_world import ANSWERERS, make_cases, make_items, write_run
from tests.unit.protocols.training.conftest import FOLDS, simulated

import surgeval
from surgeval.asking import ModelAnswer, Unanswered
from surgeval.datasets import MemoryDataset
from surgeval.errors import BadInput, RunError, SurgevalError
from surgeval.protocols.asked import AskedRun
from surgeval.protocols.focus import as_sources, run_focus, score_focus
from surgeval.protocols.intent import run_intent
from surgeval.protocols.quality import run_quality
from surgeval.protocols.registry import descriptors, load_run
from surgeval.protocols.result import FinishedRun, RunResult
from surgeval.protocols.surgxbench import SurgXSettings, run_surgxbench
from surgeval.protocols.training import run_training
from surgeval.protocols.triplets import score_triplets
from surgeval.records import VqaQuestion
from surgeval.report import write_run_pages
from surgeval.results import Result

OURS = {name: one for name, one in descriptors().items() if one.load.startswith("surgeval.")}
PAGE = Path(__file__).parents[3] / "docs" / "protocols.md"
ANY_PROTOCOL = ("report", "compare", "rank", "demo_chapters", "protocols")  # commands, by their modules
Make = Callable[[str, Path], None]


def offers_what_the_run_does(done: FinishedRun, out: Path) -> None:
    """What a `run_…` hands back has the tables and figures of the run in its folder, and what failed."""
    loaded = load_run(out)
    assert set(done.tables) == {*loaded.tables, "failures"} | ({"answers"} if isinstance(done, AskedRun) else set())
    assert done.tables["failures"].is_empty()
    assert list(done.figures) == list(loaded.figures) != []
    drawn = done.plot()
    assert drawn.title and drawn.spec
    assert "<table" in done._repr_html_() and "\n" not in repr(done)


@pytest.fixture(scope="module")
def make(theatre: MemoryDataset, good: pl.DataFrame, filmed: Path) -> Make:
    """Writes a small run of a protocol into a folder."""

    def triplets(out: Path) -> None:
        score_triplets(good, theatre, name="run").save(out)

    def focus(out: Path) -> None:
        asked = [{"qID": f"q{n}", "videoID": f"v{n % 3}", "start_time": n, "end_time": n + 1, "procedure_type": "",
                  "question": "?"} for n in range(9)]  # fmt: skip
        truth = [{"qID": f"q{n}", "primary": "3a", "format": "number", "answer": "3"} for n in range(9)]
        said = [{"qID": f"q{n}", "content": str(3 + n % 2), "latency": 1.0} for n in range(9)]
        score_focus(said, asked, truth, name="run", resamples=20).save(out)

    def intent(out: Path) -> None:
        items = make_items(4, scenarios=("open_surgery",))
        write_run(out, items, make_cases(items, ANSWERERS["sycophant"]), "run")

    def surgxbench(out: Path) -> None:
        settings = replace(SurgXSettings(), occlusion=False, curves=0, sanity=0, tasks=("instruments",))
        done = run_surgxbench(filmed, "phantom-clip", out=out, settings=settings, gallery=0, progress=False)
        assert repr(done) == f"SurgXRun of phantom-clip: {done.summary.cases} cases in {out}"
        offers_what_the_run_does(done, out)

    def quality(out: Path) -> None:
        done = run_quality(filmed, out=out, progress=False)
        assert repr(done).startswith("QualityRun of run: ")
        offers_what_the_run_does(done, out)

    def training(out: Path) -> None:
        assert run_training(theatre, simulated("good"), out, scheme=FOLDS, pages=False) is not None

    made = {one.__name__: one for one in (triplets, focus, intent, surgxbench, quality, training)}
    return lambda name, out: made[name](out)


@pytest.fixture(scope="module", params=sorted(OURS))
def run(request: pytest.FixtureRequest, make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of each protocol, in turn."""
    folder = tmp_path_factory.mktemp(request.param) / "run"
    make(request.param, folder)
    return folder


@pytest.fixture(scope="module")
def result(run: Path) -> RunResult:
    return load_run(run)


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_protocol_has_its_rooms_and_every_part_that_it_names(name: str) -> None:
    package, parts = f"surgeval.protocols.{name}", OURS[name]
    rooms = ["method", "result", "tables", "figures", "page", "compare"]
    rooms += ["demo"] if parts.chapter else []
    rooms = rooms if hasattr(import_module(package), "__path__") else []  # a protocol may be one module
    assert [room for room in rooms if find_spec(f"{package}.{room}") is None] == []
    for part in ("load", "page", "pair", "evaluate", "run", "score", "outcomes", "chapter"):
        if getattr(parts, part):
            assert callable(parts.part(part))
    assert parts.question.endswith("?")


def test_the_documentation_lists_the_protocols_as_they_describe_themselves() -> None:
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [`")]
    listed = [(row[1].split("`")[1], row[2].strip()) for row in rows]
    assert listed == [(name, one.question) for name, one in OURS.items()]
    commands = {row[1].split("`")[1]: row[3] for row in rows}
    for name, one in OURS.items():
        assert (bool(one.run), bool(one.score)) == ("`run`" in commands[name], "`score`" in commands[name])


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_runs_is_exported_and_reached_from_the_top_level(name: str) -> None:
    package = import_module(f"surgeval.protocols.{name}")
    offered = {one for one in dir(package) if one.startswith("run_")}
    assert offered - {"run_ablation"} == ({f"run_{name}"} if OURS[name].evaluate else set())
    if OURS[name].evaluate:
        assert OURS[name].part("evaluate") is getattr(package, f"run_{name}")


def test_a_protocol_that_runs_no_model_is_named_with_those_that_do() -> None:
    with pytest.raises(BadInput, match=r"'triplets' runs no model\. These do: training, focus, intent, surgxbench, q"):
        surgeval.evaluate("triplets", "data", "model", "out")
    with pytest.raises(BadInput, match=r"Unknown protocol 'focsu'\..*did you mean 'focus'"):
        surgeval.evaluate("focsu", "data", "model", "out")


def test_two_runs_of_different_protocols_are_not_compared(make: Make, tmp_path: Path) -> None:
    make("triplets", tmp_path / "a")
    make("focus", tmp_path / "b")
    with pytest.raises(BadInput, match="run is a run of triplets, run one of focus: compare two runs of one protocol"):
        surgeval.compare(tmp_path / "a", tmp_path / "b")


def test_what_takes_runs_of_any_protocol_knows_none_by_name() -> None:
    package = Path(surgeval.__file__).parent
    anybodys = [*(package / "report").rglob("*.py"), *(package / "cli" / f"{name}.py" for name in ANY_PROTOCOL)]
    named = re.compile(rf"surgeval\.protocols\.({'|'.join(OURS)})\b")
    assert {path.name: found for path in anybodys if (found := named.findall(path.read_text(encoding="utf-8")))} == {}


def test_a_result_offers_tables_figures_and_a_short_word_about_itself(result: RunResult) -> None:
    assert result.tables and all(isinstance(table, pl.DataFrame) for table in result.tables.values())
    assert result.to_frame().equals(next(iter(result.tables.values())))
    drawn = result.plot()
    assert drawn.title and drawn.spec
    said = repr(result)
    assert said.startswith(f"{type(result).__name__} ") and "\n" not in said and len(said) < 400
    assert "<table" in result._repr_html_()
    assert result.name == {"training": "simulated"}.get(result.protocol, "run")
    assert result.headlines() and all(one.cell for one in result.headlines())


def test_what_asking_questions_hands_back_offers_the_scores_of_its_folder(tmp_path: Path) -> None:
    item = {
        "id": "i1",
        "scenario": "chest_xray",
        "cluster": "P1",
        "media": [],
        "dimension": "spatial",
        "skill": "absolute",
        "question": "Where is it?",
        "options": ["left", "right"],
        "answer": 1,
    }
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    offers_what_the_run_does(run_intent(tmp_path, "oracle", tmp_path / "intent", progress=False), tmp_path / "intent")
    questions = [VqaQuestion(f"q{n}", f"v{n}", 3, 3, "cholecystectomy", "Is a clip visible?", "1a", "binary", "Yes")
                 for n in range(3)]  # fmt: skip
    for name, rows in zip(("responses", "requests", "references"), as_sources(questions, []), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    files: dict[str, Any] = {"requests": tmp_path / "requests.json", "references": tmp_path / "references.json"}
    asked = run_focus(None, "oracle", tmp_path / "focus", **files, progress=False)
    assert asked.loaded.flat_accuracy == 1.0  # scored here: nothing of it needs a judge
    asked.loaded.save(tmp_path / "focus")
    offers_what_the_run_does(run_focus(None, "oracle", tmp_path / "focus", **files, progress=False), tmp_path / "focus")


def test_a_question_without_an_answer_is_no_wrong_answer_of_a_figure(tmp_path: Path) -> None:
    def fails(_question: VqaQuestion, _pictures: object = ()) -> ModelAnswer:
        raise Unanswered("the server is gone")

    questions = [VqaQuestion("q1", "v1", 3, 3, "cholecystectomy", "Is a clip visible?", "1a", "binary", "Yes")]
    for name, rows in zip(("responses", "requests", "references"), as_sources(questions, []), strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    model = SimpleNamespace(identity="gone", cache_answers=False, uses_images=False, answer=fails)
    files: dict[str, Any] = {"requests": tmp_path / "requests.json", "references": tmp_path / "references.json"}
    asked = run_focus(None, model, tmp_path / "run", **files, progress=False)
    assert list(asked.tables) == ["answers", "failures"] and asked.tables["failures"].height == 1
    with pytest.raises(RunError, match="found 1 question without an answer, expected all: retry asks only those"):
        asked.plot()


def result_classes(base: type[Result] = Result) -> Iterator[type[Result]]:
    """Those of surgeval, wherever they are."""
    for one in base.__subclasses__():
        if one.__module__.startswith("surgeval."):
            yield one
        yield from result_classes(one)


def test_what_protocols_give_back_is_a_result_and_made_by_keywords_only() -> None:
    functions = {name: getattr(surgeval, name) for name in dir(surgeval)}
    given = {
        (name, kind)
        for name, one in functions.items()
        if inspect.isfunction(one)
        for kind in one.__annotations__["return"].split(" | ")
    }
    found = {one.__name__: one for one in result_classes()}
    inputs = {
        ("open_dataset", "Dataset"), ("load_labels", "LabelSpace"), ("open_model", "Contrastive"),
        ("open_model", "Generative"), ("train", "Trained"), ("evaluate", "None"), ("evaluate", "Result"),
    }  # fmt: skip
    assert {one for one in given - inputs if one[1] not in found} == set()
    assert {("score_answers", "FocusScores"), ("rank", "Ranking"), ("load_run", "RunResult")} <= given
    for name, one in found.items():
        taken = {parameter.kind for parameter in inspect.signature(one).parameters.values()}
        assert taken <= {inspect.Parameter.KEYWORD_ONLY}, name


def test_a_page_made_again_from_a_copy_of_the_folder_is_the_same(run: Path, tmp_path: Path) -> None:
    first = write_run_pages([run], tmp_path / "first")
    shutil.copytree(run, tmp_path / "elsewhere" / "run")
    again = write_run_pages([tmp_path / "elsewhere" / "run"], tmp_path / "again")
    assert again.read_bytes() == first.read_bytes()
    made = {path.relative_to(first.parent): path.read_bytes() for path in first.parent.rglob("*") if path.is_file()}
    also = {path.relative_to(again.parent): path.read_bytes() for path in again.parent.rglob("*") if path.is_file()}
    assert also == made and len(made) > 2


def test_a_run_does_not_differ_from_itself(result: RunResult) -> None:
    compared = surgeval.compare(result, result, resamples=50, seed=3)
    assert compared.protocol == result.protocol
    assert (compared.settings["resamples"], compared.settings["seed"]) == (50, 3)
    known = [one for one in compared.to_frame()["difference"] if one is not None]
    assert known and set(known) == {0.0}
    assert "<table" in compared._repr_html_() and "\n" not in repr(compared)


def _spoilt(run: Path, out: Path, file: Path, column: pl.Expr) -> Path:
    """A copy of a run with one column of one of its tables replaced."""
    shutil.copytree(run, out, dirs_exist_ok=True)
    pl.read_parquet(run / file).with_columns(column).write_parquet(out / file)
    return out


def test_gaps_in_any_table_of_a_run_are_harmless_or_named(run: Path, tmp_path: Path) -> None:
    """One value of a column, or of a JSON file, is missing; of what is then computed nothing ends in a traceback."""
    tables = [file.relative_to(run) for file in run.glob("*.parquet")]
    spoilt = [
        _spoilt(run, tmp_path / file.stem / name, file, pl.when(pl.int_range(pl.len()) > 0).then(name))
        for file in tables
        for name in pl.read_parquet_schema(run / file)
    ]
    for file in run.glob("*.json"):
        content = json.loads(file.read_text())
        for number, key in enumerate(content if isinstance(content, dict) else ()):
            out = shutil.copytree(run, tmp_path / file.stem / str(number))
            (out / file.name).write_text(json.dumps({**content, key: None}))
            spoilt.append(out)
    loaded, refused = 0, 0
    for out in spoilt:
        try:
            result = load_run(out)
            result.headlines()
            surgeval.compare(load_run(run), result, resamples=20)
            loaded += 1
        except SurgevalError:
            refused += 1
    assert loaded and refused  # neither is every gap refused, nor does none matter
