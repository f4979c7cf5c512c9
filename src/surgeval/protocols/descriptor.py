"""A protocol in a dozen lines: what `run`, `score`, `report`, `compare`, `rank`, `demo` and `--help` find it by.

A package offers its `Descriptor` under the entry-point group `surgeval.protocols`. Parts are named `module:attribute`,
so that listing protocols imports none of them.

What a part of another package raises while it runs becomes one sentence that names the protocol and the part: whoever
evaluates a model cannot repair it, and other protocols work without it. A part of surgeval's own raises as it does, so
that a defect of ours is seen as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeval.errors import MODEL_PACKAGES, BadInput, MissingExtra, code_of_others

if TYPE_CHECKING:
    from surgeval.stats import Measure

__all__ = ["Command", "Descriptor"]

_COMMANDS = ("run", "score")  # the command line guards them: it knows an exit from a failure


@dataclass(frozen=True)
class Command:
    """A Python function as a command: `address` names it, `surgeval.console.commands` says how options follow from it.

    `text` is what the help says beside the first paragraph of the function's docstring, `examples` are command lines.
    `tables(result)` gives the tables to print, by title (default: the headline numbers). The folder `out` of new
    scores must be empty or hold the file `mark`.
    """

    address: str
    examples: tuple[str, ...] = ()
    text: str = ""
    tables: str = ""
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """A protocol, declared in a dozen lines.

    `load(folder)` gives a `RunResult`, `page(results, out)` writes report.html (of one run, or of several side by
    side where `several` says so). `pair(a, b)` gives what two runs share as a `comparison.Pair`; without it they need
    equal settings and are compared over the videos that both have. `evaluate(data, model, out, **settings)` runs the
    protocol on a model and gives a `Result`. `run` and `score` are functions that hand back a result, whose parameters
    become the options of a command (`Command` adds what the function does not say). `outcomes` turns a result into the
    table that `rank` takes (qID, video, group, ood, correctness); `ranks_by` is what the mean accuracy of that table's
    groups is called in a column's title. `chapter(demo)` is its part of the demo. `folders()` gives a `FolderKind`
    where the protocol leaves folders that are no runs. `measures` names the protocol's numbers, a sequence of
    `surgeval.stats.Measure`.
    """

    name: str
    question: str
    order: int = 100
    load: str
    page: str
    several: bool = False
    pair: str = ""
    evaluate: str = ""
    run: Command | str = ""
    score: Command | str = ""
    outcomes: str = ""
    ranks_by: str = ""
    chapter: str = ""
    folders: str = ""
    measures: str = ""

    def __post_init__(self) -> None:
        texts = (self.name, self.question, self.load, self.page, self.pair, self.evaluate, self.address("run"),
                 self.address("score"), self.outcomes, self.chapter, self.folders, self.ranks_by,
                 self.measures)  # fmt: skip
        if not all(isinstance(text, str) for text in texts) or type(self.order) is not int or not self.name:
            raise BadInput(f"protocol {self.name!r:.60}: found other values, expected texts and a whole number")

    @classmethod
    def of_rooms(
        cls, package: str, question: str, *, offers: Sequence[str] = (), run: Command | str = "",
        score: Command | str = "", ranks_by: str = "", several: bool = False, order: int = 100, measures: str = "",
    ) -> Descriptor:  # fmt: skip
        """The descriptor of a package NAME with the usual rooms; `offers` names the parts that not all protocols have.

        `result` holds `load_NAME` and `outcomes`, `page` holds `write_page_of`, `compare` holds `pair_NAME`, `demo`
        holds `chapter`, `overview` holds `folder_kind`; `evaluate` is the function `run_NAME` that the package exports;
        `measures` is `room:NAME` of the numbers.

        >>> crowd = Descriptor.of_rooms("surgical.crowd", "Do many eyes agree?", offers=["chapter"])
        >>> crowd.name, crowd.load, crowd.chapter, crowd.run
        ('crowd', 'surgical.crowd.result:load_crowd', 'surgical.crowd.demo:chapter', '')
        """
        name = package.rpartition(".")[2]
        rooms = {
            "load": f"result:load_{name}", "page": "page:write_page_of", "pair": f"compare:pair_{name}",
            "outcomes": "result:outcomes", "chapter": "demo:chapter",
            "folders": "overview:folder_kind",
        }  # fmt: skip
        parts = {part: f"{package}.{rooms[part]}" for part in ("load", "page", *offers) if part in rooms}
        if "evaluate" in offers:
            parts["evaluate"] = f"{package}:run_{name}"
        return cls(
            name=name,
            question=question,
            run=run,
            score=score,
            ranks_by=ranks_by,
            several=several,
            order=order,
            measures=f"{package}.{measures}" if measures else "",
            **parts,
        )

    def address(self, name: str) -> str:
        """Where the function of a part is.

        >>> Descriptor.of_rooms("surgical.crowd", "Do many eyes agree?", run=Command("crowd:count")).address("run")
        'crowd:count'
        """
        part = getattr(self, name)
        return part.address if isinstance(part, Command) else part

    def command(self, name: str) -> Command:
        """The part `run` or `score`."""
        part = getattr(self, name)
        return part if isinstance(part, Command) else Command(part)

    def tables(self, name: str) -> Callable[[Any], Mapping[str, Any]]:
        """What gives the tables that the command `run` or `score` prints."""
        address = self.command(name).tables
        if not address:
            return lambda result: {"": result.headline_table()}
        module, _, attribute = address.partition(":")
        function: Callable[[Any], Mapping[str, Any]] = getattr(import_module(module), attribute)
        return function

    def part(self, name: str) -> Callable[..., Any]:
        """The function behind one of the parts, imported now; whatever goes wrong there is `BadInput`.

        So is what another package's function raises when it is called, and what it gives back that is not what the
        part promises.
        """
        address = self.address(name)
        module, colon, attribute = address.partition(":")
        if not colon:
            raise BadInput(f"protocol {self.name}: {name}: found {address!r}, expected MODULE:FUNCTION")
        with self._guarded(name):
            function: Callable[..., Any] = getattr(import_module(module), attribute)
            if not callable(function):
                raise BadInput(f"{self._where(name)}: found {function!r:.60}, expected a function")
        return function if name in _COMMANDS or self.is_ours(name) else partial(self._called, name, function)

    def declared_measures(self) -> tuple[Measure, ...]:
        """The numbers of the protocol, declared; none where it names none.

        >>> Descriptor.of_rooms("surgical.crowd", "Do many eyes agree?").declared_measures()
        ()
        """
        module, _, attribute = self.measures.partition(":")
        if not module:
            return ()
        with self.answers_for("measures"):
            return tuple(getattr(import_module(module), attribute))

    def is_ours(self, name: str) -> bool:
        """Whether a part is code of surgeval itself.

        >>> Descriptor.of_rooms("surgical.crowd", "Do many eyes agree?").is_ours("load")
        False
        """
        return self.address(name).startswith("surgeval.")

    @contextmanager
    def answers_for(self, name: str, passing: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
        """For a block that uses what a part gave: if the part is another package's, what goes wrong is `BadInput`.

        >>> crowd = Descriptor.of_rooms("surgical.crowd", "Do many eyes agree?")
        >>> with crowd.answers_for("load"):
        ...     [][0].headlines()
        Traceback (most recent call last):
        surgeval.errors.BadInput: protocol crowd: load = 'surgical.crowd.result:load_crowd': IndexError: list index...
        """
        if self.is_ours(name):
            yield
        else:
            with self._guarded(name, passing):
                yield

    def _where(self, name: str) -> str:
        return f"protocol {self.name}: {name} = {self.address(name)!r}"

    @contextmanager
    def _guarded(self, name: str, passing: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
        with code_of_others(self._where(name), passing):
            try:
                yield
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] not in MODEL_PACKAGES:
                    raise
                raise MissingExtra(f"protocol {self.name}", error.name or "") from error

    def _called(self, name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with self._guarded(name):
            given = function(*arguments, **named)
            if not isinstance(given, expected := _promised(name)):
                raise BadInput(f"{self._where(name)}: found {given!r:.60}, expected a {expected.__name__}")
        return given


def _promised(part: str) -> type:
    """What a part gives back."""
    import polars as pl  # listing protocols needs no tables

    from surgeval.protocols.comparison import Pair
    from surgeval.protocols.contract import Chapter, FolderKind
    from surgeval.protocols.result import RunResult
    from surgeval.results import Result

    kinds = {
        "load": RunResult,
        "page": Path,
        "pair": Pair,
        "outcomes": pl.DataFrame,
        "chapter": Chapter,
        "evaluate": Result,
    }
    return kinds.get(part, FolderKind)
