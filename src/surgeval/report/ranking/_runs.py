"""Ranking what people have: run folders, results files, arrays, all by one function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from surgeval.errors import BadInput, DataError, visible
from surgeval.protocols.registry import descriptor_of, descriptors, is_run, load_run, runs_in
from surgeval.report.ranking._results_file import read_results
from surgeval.stats import Outcomes, Ranking
from surgeval.stats import rank as rank_outcomes

__all__ = ["rank", "rank_runs", "read_outcomes_of"]


def rank(data: Any, *args: Any, **options: Any) -> Ranking:
    """Rank models by arrays of right and wrong, by tables of results, or by run folders and results files.

    A list of paths is read first (`read_outcomes_of`); anything else goes to `surgeval.stats.rank` as it is.

    >>> right = {"a": [1, 1, 1, 1, 1, 1, 1, 1], "b": [0, 0, 0, 0, 0, 0, 0, 0]}
    >>> rank(right, ["all"] * 8, list("abcdefgh"), n_boot=200).final_order
    [['a'], ['b']]
    """
    paths = (
        isinstance(data, Sequence)
        and not isinstance(data, str)
        and bool(data)
        and all(isinstance(one, str | Path) for one in data)
    )
    return rank_runs(data, **options) if paths else rank_outcomes(data, *args, **options)


def rank_runs(paths: Sequence[str | Path], *, max_unscored: float = 0.05, **options: Any) -> Ranking:
    r"""Rank run folders of one protocol, or results files (CSV); a model is called after its folder or file.

    A folder of runs stands for the runs in it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, right in (("net", "1" * 16), ("prior", "10" * 8)):
    ...         rows = [f"q{k},VID{k // 2},verb,False,{one}" for k, one in enumerate(right)]
    ...         _ = Path(folder, f"{name}.csv").write_text("\n".join(["qID,video,group,ood,correctness", *rows]))
    ...     rank_runs([f"{folder}/net.csv", f"{folder}/prior.csv"], n_boot=200).final_order
    [['net'], ['prior']]
    >>> rank_runs([Path("net.csv"), Path("prior.csv")])
    Traceback (most recent call last):
    surgeval.errors.DataError: net.csv: found no such file, expected a results file...
    """
    outcomes = Outcomes.from_tables(read_outcomes_of(paths), max_unscored=max_unscored)
    return rank_outcomes(outcomes, **options)


def read_outcomes_of(paths: Sequence[str | Path]) -> dict[str, pl.DataFrame]:
    r"""One table of right and wrong per model.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "net.csv"
    ...     _ = path.write_text("qID,video,group,ood,correctness\nq1,VID01,verb,False,1\n")
    ...     read_outcomes_of([path])["net"].rows()
    [('q1', 'VID01', 'verb', 'False', '1')]
    """
    tables: dict[str, pl.DataFrame] = {}
    places: dict[str, Path] = {}
    kinds: dict[str, Path] = {}
    for path in (entry for given in paths for entry in _entries(Path(given))):
        name = (path.name or path.resolve().name) if path.is_dir() else path.stem
        name = name.encode("utf-8", "replace").decode()  # a file name need not be text; a table's and a page's must
        if name in places:
            raise BadInput(
                visible(f"models: found the name {name!r} twice ({places[name]} and {path}), expected different names")
            )
        places[name] = path
        tables[name] = _outcomes(path, kinds)
    if len(kinds) > 1:
        (a, first), (b, second) = list(kinds.items())[:2]
        raise BadInput(f"{first} and {second}: found runs of {a} and of {b}, expected runs of one protocol")
    return tables


def _entries(path: Path) -> list[Path]:
    """The path itself, or the runs that can be ranked in a folder that is no entry but holds some."""
    if not path.is_dir() or is_run(path) or (path / "tables" / "results.csv").exists():
        return [path]
    runs = [run for run in runs_in(path) if descriptor_of(run).outcomes]
    if not runs:
        expected = "a run, a folder of runs that know right and wrong, or one with tables/results.csv"
        raise DataError(path, found="a folder with none of them", expected=expected)
    return runs


def _outcomes(path: Path, kinds: dict[str, Path]) -> pl.DataFrame:
    if not is_run(path):
        return read_results(path)
    kind = descriptor_of(path)
    if not kind.outcomes:
        known = ", ".join(name for name, other in descriptors().items() if other.outcomes)
        raise BadInput(
            f"{path}: found a run of {kind.name}, which has no right and wrong to rank,"
            f" expected runs of one of {known}; two runs of {kind.name} can be compared"
        )
    kinds.setdefault(kind.name, path)
    table: pl.DataFrame = kind.part("outcomes")(load_run(path))
    return table
