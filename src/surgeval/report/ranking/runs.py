"""Ranking what people have: run folders, results files, arrays, all by one function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import polars as pl

from surgeval.errors import BadInput, DataError, NotRankable, visible
from surgeval.files import name_beside
from surgeval.protocols.registry import descriptor_of, descriptors, is_run, load_run, runs_in
from surgeval.protocols.verdict import Verdict
from surgeval.report.ranking.results_file import read_results
from surgeval.stats import (
    FEW_CLUSTERS,
    MAX_UNSCORED,
    RESAMPLES_OF_A_RANKING,
    Averaging,
    Collapse,
    Correction,
    Outcomes,
    Rankable,
    Ranking,
    RankScheme,
    Resolve,
    Sided,
    Test,
    WinTies,
    rank_outcomes,
    read_outcomes,
)

__all__ = ["Entrants", "rank", "read_entrants", "read_outcomes_of", "verdicts_of"]

_FEWEST = 2  # models that a ranking needs


@dataclass(frozen=True, kw_only=True)
class Entrants:
    """The models of run folders and results files, read once: what `rank` takes, and what its page shows beside it.

    `tables` has right and wrong by question for each model, `notes` names the runs that cannot be ranked, `score_name`
    is what the runs' protocol calls the number that they are ranked by. `refused` has the submissions that must not be
    ranked, such as disqualified ones, with the reason; they are in no table.
    """

    tables: Mapping[str, pl.DataFrame]
    notes: tuple[str, ...] = ()
    score_name: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)


def read_entrants(paths: Sequence[str | Path]) -> Entrants:
    r"""The models of run folders, folders of runs and results files (CSV), each called after its folder or file.

    A submission that must not be ranked is left out and noted, unless fewer than two others are left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "net.csv"
    ...     _ = path.write_text("qID,video,group,ood,correctness\nq1,VID01,verb,False,1\n")
    ...     list(read_entrants([path]).tables)
    ['net']
    """
    refusals: dict[str, NotRankable] = {}
    tables = _tables_of(paths, refusals)
    if refusals and len(tables) < _FEWEST:
        raise next(iter(refusals.values()))
    refused = {name: refusal.reason for name, refusal in refusals.items()}
    notes = tuple(visible(f"not ranked: {name}: {reason}") for name, reason in refused.items())
    return Entrants(tables=tables, notes=(*notes, *_left_out(paths)), score_name=_score_name_of(paths), refused=refused)


def rank(
    data: str | Path | Sequence[str | Path] | Entrants | Rankable, buckets: Iterable[str] | None = None,
    videos: Iterable[Any] | None = None, questions: Iterable[Any] | None = None, *,
    alpha: float = 0.05, resamples: int = RESAMPLES_OF_A_RANKING, scheme: RankScheme = "cluster", sided: Sided = "two",
    correction: Correction = "none", collapse: Collapse = "pairwise", resolve: Resolve = "top3",
    win_ties: WinTies = "split", point: Averaging = "flat", min_clusters: int = FEW_CLUSTERS, seed: int = 0,
    test: Test = "bootstrap", baselines: Sequence[str] = (), max_unscored: float = MAX_UNSCORED,
) -> Ranking:  # fmt: skip
    r"""Rank models by run folders and results files, by tables of results, or by arrays of right and wrong.

    `data` is a folder of runs, a list of run folders, folders of runs and results files (CSV), what `read_entrants`
    read of them, or what `surgeval.stats.rank_outcomes` takes: a table per model, one table with a `model` column, or a
    0/1 array per model with the `buckets` and `videos` of the questions. A model read from disk is called after its
    folder or file. Of a folder of runs those that know right and wrong are ranked, and `notes` names the others; runs
    of two protocols are refused. Where more than `max_unscored` of the questions lack the verdict of some models only,
    the ranking is refused.

    >>> right = {"a": [1, 1, 1, 1, 1, 1, 1, 1], "b": [0, 0, 0, 0, 0, 0, 0, 0]}
    >>> rank(right, ["all"] * 8, list("abcdefgh"), resamples=200).final_order
    [['a'], ['b']]
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, right in (("net", "1" * 16), ("prior", "10" * 8)):
    ...         rows = [f"q{k},VID{k // 2},verb,False,{one}" for k, one in enumerate(right)]
    ...         _ = Path(folder, f"{name}.csv").write_text("\n".join(["qID,video,group,ood,correctness", *rows]))
    ...     rank([f"{folder}/net.csv", f"{folder}/prior.csv"], resamples=200).final_order
    [['net'], ['prior']]
    >>> rank("runs")
    Traceback (most recent call last):
    surgeval.errors.DataError: runs: found no such file or folder, expected a run, a folder of runs or a results...
    """
    paths = _paths(data)
    entrants = data if paths is None else read_entrants(paths)
    if isinstance(entrants, Entrants):
        outcomes = Outcomes.from_tables(entrants.tables, max_unscored=max_unscored)
        outcomes = replace(outcomes, notes=(*entrants.notes, *outcomes.notes), score_name=entrants.score_name)
    else:
        outcomes = read_outcomes(cast("Rankable", data), buckets, videos, questions, max_unscored=max_unscored)
    return rank_outcomes(
        outcomes, alpha=alpha, resamples=resamples, scheme=scheme, sided=sided, correction=correction,
        collapse=collapse, resolve=resolve, win_ties=win_ties, point=point, min_clusters=min_clusters, seed=seed,
        test=test, baselines=baselines,
    )  # fmt: skip


def _paths(data: object) -> list[str | Path] | None:
    """The paths, where that is what was given."""
    if isinstance(data, str | Path):
        return [data]
    if not isinstance(data, Sequence) or not data or not all(isinstance(path, str | Path) for path in data):
        return None
    return list(data)


def read_outcomes_of(paths: Sequence[str | Path]) -> dict[str, pl.DataFrame]:
    r"""One table of right and wrong per model of run folders, folders of runs and results files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "net.csv"
    ...     _ = path.write_text("qID,video,group,ood,correctness\nq1,VID01,verb,False,1\n")
    ...     read_outcomes_of([path])["net"].rows()
    [('q1', 'VID01', 'verb', 'False', '1')]
    """
    return _tables_of(paths)


def _tables_of(paths: Sequence[str | Path], refusals: dict[str, NotRankable] | None = None) -> dict[str, pl.DataFrame]:
    """One table per model; with `refusals`, submissions that must not be ranked are kept there and do not raise."""
    tables: dict[str, pl.DataFrame] = {}
    places: dict[str, Path] = {}
    kinds: dict[str, Path] = {}
    for path in (entry for named in paths for entry in _entries(Path(named))):
        name = _name(path)
        if name in places:
            raise BadInput(visible(_named_twice(name, places[name], path)))
        places[name] = path
        try:
            tables[name] = _outcomes(path, kinds)
        except NotRankable as refusal:
            if refusals is None:
                raise
            refusals[name] = refusal
    if len(kinds) > 1:
        (a, first), (b, second) = list(kinds.items())[:2]
        raise BadInput(f"{first} and {second}: found runs of {a} and of {b}, expected runs of one protocol")
    return tables


def verdicts_of(paths: Sequence[str | Path]) -> dict[str, Verdict]:
    """What the runs among the paths say of themselves, by the model's name; a results file says nothing.

    >>> verdicts_of([])
    {}
    """
    verdicts = {}
    for run in _ranked_runs(paths):
        with descriptor_of(run).answers_for("load"):
            verdicts[_name(run)] = load_run(run).verdict()
    return {name: verdict for name, verdict in verdicts.items() if verdict is not None}


def _score_name_of(paths: Sequence[str | Path]) -> str:
    """What the protocol of the runs among the paths calls the number that they are ranked by; "" for results files."""
    return next((descriptor_of(run).ranks_by for run in _ranked_runs(paths)), "")


def _ranked_runs(paths: Sequence[str | Path]) -> list[Path]:
    return [entry for path in paths for entry in _entries(Path(path)) if is_run(entry)]


def _name(path: Path) -> str:
    """What a model is called: a file name need not be text, a table's and a page's words must."""
    name = (path.name or path.resolve().name) if path.is_dir() else path.stem
    return name.encode("utf-8", "replace").decode()


def _named_twice(name: str, first: Path, second: Path) -> str:
    if first.resolve() == second.resolve():
        return f"models: found {second} twice, expected every model once"
    rule = "a run is called after its folder: give one of the folders another name"
    if not (first.is_dir() and second.is_dir()):
        rule = "a model is called after its folder or file: give one of the two another name"
    return f"models: found the name {name!r} twice ({first} and {second}), expected different names; {rule}"


def _left_out(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """A sentence for the runs in folders of runs that know no right and wrong, and so are not ranked; else nothing."""
    runs = [run for path in paths for run in _runs_of(Path(path))]
    unrankable = [f"{run.name} ({kind.name})" for run in runs if not (kind := descriptor_of(run)).outcomes]
    if not unrankable:
        return ()
    return (visible(f"not ranked, because their protocols know no right and wrong: {', '.join(unrankable)}"),)


def _runs_of(path: Path) -> list[Path]:
    """The runs in a folder that is no entry itself."""
    entry = not path.is_dir() or is_run(path) or (path / "tables" / "results.csv").exists()
    return [] if entry else runs_in(path)


def _entries(path: Path) -> list[Path]:
    """The path itself, or the runs that can be ranked in a folder that is no entry but holds some."""
    if not path.exists():
        expected = f"a run, a folder of runs or a results file (CSV){name_beside(path)}"
        raise DataError(path, f"found no such file or folder, expected {expected}")
    if not path.is_dir() or is_run(path) or (path / "tables" / "results.csv").exists():
        return [path]
    runs = _runs_of(path)
    rankable = [run for run in runs if descriptor_of(run).outcomes]
    if not rankable:
        kinds = dict.fromkeys(descriptor_of(run).name for run in runs)
        found = f"a folder with runs of {', '.join(kinds)} only" if runs else "a folder with none of them"
        expected = "a run, a folder of runs that know right and wrong, or one with tables/results.csv"
        if runs:
            expected += f"; {_comparable(' or of '.join(kinds))}"
        raise DataError(path, f"found {found}, expected {expected}")
    return rankable


def _outcomes(path: Path, kinds: dict[str, Path]) -> pl.DataFrame:
    if not is_run(path):
        return read_results(path)
    kind = descriptor_of(path)
    if not kind.outcomes:
        known = ", ".join(name for name, other in descriptors().items() if other.outcomes)
        raise BadInput(
            f"{path}: found a run of {kind.name}, which has no right and wrong to rank,"
            f" expected runs of one of {known}; {_comparable(kind.name)}"
        )
    kinds.setdefault(kind.name, path)
    table: pl.DataFrame = kind.part("outcomes")(load_run(path))
    return table


def _comparable(kind: str) -> str:
    """What can be done with runs that cannot be ranked."""
    return f"two runs of {kind} can be compared"
