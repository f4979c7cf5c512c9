"""The protocols that are installed, and the run folders they made.

A package adds a protocol by an entry point of the group `surgeval.protocols` that names its `Descriptor`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from surgeval.errors import BadInput, DataError, LeftOut
from surgeval.protocols.descriptor import Descriptor
from surgeval.registry import Registry

if TYPE_CHECKING:
    from surgeval.pages import Section
    from surgeval.protocols.contract import FolderKind
    from surgeval.protocols.result import RunResult
    from surgeval.stats import Measure

__all__ = ["PROTOCOLS", "descriptor_of", "descriptors", "folder_kind_of", "folder_kinds", "is_run", "load_run",
           "ranked_measures", "runs_in"]  # fmt: skip

PROTOCOLS = Registry(
    "surgeval.protocols",
    {
        "triplets": "surgeval.protocols.triplets:DESCRIPTOR",
        "training": "surgeval.protocols.training:DESCRIPTOR",
        "focus": "surgeval.protocols.focus:DESCRIPTOR",
        "intent": "surgeval.protocols.intent:DESCRIPTOR",
        "surgxbench": "surgeval.protocols.surgxbench:DESCRIPTOR",
        "quality": "surgeval.protocols.declarations:QUALITY",
    },
    Descriptor,
    "protocol",
)


def descriptors() -> dict[str, Descriptor]:
    """Every installed protocol by name, in the order of the demo.

    >>> list(descriptors())[:3]
    ['triplets', 'training', 'focus']
    """
    return dict(sorted(PROTOCOLS.load_all().items(), key=lambda item: (item[1].order, item[0])))


def ranked_measures() -> tuple[Measure, ...]:
    """The declared numbers of every protocol whose runs can be ranked.

    >>> "flat_accuracy" in {measure.key for measure in ranked_measures()}
    True
    """
    ranked = (descriptor for descriptor in descriptors().values() if descriptor.outcomes)
    return tuple(measure for descriptor in ranked for measure in descriptor.declared_measures())


def is_run(folder: str | Path) -> bool:
    """Whether a folder says that it is a run.

    >>> is_run(Path("no/such/run"))
    False
    """
    return (Path(folder) / "run.json").is_file()


def runs_in(folder: str | Path) -> list[Path]:
    """The runs directly in a folder, or one folder further down, by name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b/run.json", "teams/a/run.json", ".hidden/run.json"):
    ...         (Path(folder) / name).parent.mkdir(parents=True)
    ...         (Path(folder) / name).touch()
    ...     [str(run.relative_to(folder)) for run in runs_in(Path(folder))]
    ['b', 'teams/a']
    """
    inner = sorted(path for path in Path(folder).iterdir() if path.is_dir() and not path.name.startswith("."))
    below = [sub for path in inner if not is_run(path) for sub in sorted(path.iterdir()) if sub.is_dir()]
    return [path for path in (*inner, *below) if is_run(path)]


def folder_kinds() -> list[FolderKind]:
    """The kinds of folders that protocols leave beside runs; one that cannot be had costs a warning.

    >>> [kind.noun for kind in folder_kinds()]
    ['training']
    """
    kinds = []
    for descriptor in (descriptor for descriptor in descriptors().values() if descriptor.folders):
        try:
            kinds.append(_folder_kind(descriptor))
        except BadInput as error:  # a package of somebody else's must not take the pages of runs away
            warnings.warn(str(error), LeftOut, stacklevel=2)
    return kinds


def _folder_kind(descriptor: Descriptor) -> FolderKind:
    """A protocol's kind of folder, whose functions its descriptor answers for."""
    kind: FolderKind = descriptor.part("folders")()

    def holds(folder: Path) -> bool:
        with descriptor.answers_for("folders"):
            return bool(kind.holds(folder))

    def write_page(folder: Path, out: Path | None) -> Path:
        with descriptor.answers_for("folders"):
            return Path(kind.write_page(folder, out))

    def section(folder: Path, out: Path | None) -> Section | None:
        from surgeval.pages import Section  # listing protocols needs no pages

        with descriptor.answers_for("folders"):
            found = kind.section(folder, out)
            if not isinstance(found, Section | None):
                raise TypeError(f"found {found!r:.60}, expected a Section or None")
            return found

    return replace(kind, holds=holds, write_page=write_page, section=section)


def folder_kind_of(folder: str | Path) -> FolderKind | None:
    """What a folder is that a protocol left and that is no run; None for runs and all others.

    >>> folder_kind_of(Path("no/such/folder")) is None
    True
    """
    folder = Path(folder)
    return None if is_run(folder) else next((kind for kind in folder_kinds() if _holds(kind, folder)), None)


def _holds(kind: FolderKind, folder: Path) -> bool:
    try:
        return kind.holds(folder)
    except BadInput as error:
        warnings.warn(str(error), LeftOut, stacklevel=2)
        return False


def descriptor_of(folder: str | Path) -> Descriptor:
    """The protocol whose run a folder holds.

    >>> descriptor_of(Path("no/such/run"))
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/run: no such folder
    """
    from surgeval.engine import load_record  # the command line lists protocols before it needs tables

    _refuse_other(Path(folder))
    record, known = load_record(folder), descriptors()
    if record.protocol not in known:
        raise DataError(
            Path(folder) / "run.json",
            f"found {record.protocol}, "
            f"expected one of {', '.join(known)}, or that the package that offers it is installed",
            field="protocol",
        )
    return known[record.protocol]


def _refuse_other(folder: Path) -> None:
    """Refuse a folder that is not a run, and say what it is where that is known."""
    if not folder.is_dir() or is_run(folder):
        return
    if (kind := folder_kind_of(folder)) is not None:
        raise DataError(folder, f"found a {kind.noun}, expected the folder of a run")
    if runs := runs_in(folder):
        many = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
        raise DataError(folder, f"found a folder of {many}, expected one of them, such as {runs[0]}")
    from surgeval.datasets import is_dataset

    if is_dataset(folder):
        raise DataError(folder, "found a dataset, expected the folder of a run")


def load_run(folder: str | Path) -> RunResult:
    """The result of a finished run, whatever its protocol.

    >>> import tempfile
    >>> from surgeval import score_recognition
    >>> labels = [[1, 0], [0, 1]] * 2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = score_recognition(labels, labels, ["v1", "v1", "v2", "v2"], name="net").save(folder)
    ...     run = load_run(folder)
    >>> run.protocol, run.name, [number.key for number in run.headlines()]
    ('triplets', 'net', ['global|ivt|mAP', 'video (class-first)|ivt|mAP'])
    >>> load_run("no/such/run")
    Traceback (most recent call last):
    surgeval.errors.DataError: no/such/run: no such folder
    """
    run = Path(folder)
    result: RunResult = descriptor_of(run).part("load")(run)
    return result
