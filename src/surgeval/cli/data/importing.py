"""`surgeval data import`: labels of another tool into a project of the studio."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surgeval.cli.texts import login_name
from surgeval.console import print_json, progress_bar, rich_console
from surgeval.console.options import FormatOption, JsonOption
from surgeval.errors import BadInput, visible
from surgeval.results import counted

if TYPE_CHECKING:
    from surgeval.studio.exchange import ImportReport
    from surgeval.studio.store import Database


def register(app: typer.Typer) -> None:
    """Add the command to `surgeval data`."""
    app.command("import")(import_labels)


def import_labels(
    source: Annotated[Path, typer.Argument(help="A dataset folder or file: the labels.", show_default=False)],
    into: Annotated[Path, typer.Option(help="The folder of a studio project: the films or images.")],
    format: FormatOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Frames that the source labels lose what they have in the project.")
    ] = False,
    schema: Annotated[
        str | None,
        typer.Option(
            help="For a folder that is no project yet: a built-in schema or a JSON file. Default: the source's."
        ),
    ] = None,
    author: Annotated[str | None, typer.Option(help="Your name. Default: the one you logged in with.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change; store nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Put labels of another tool into a project of the studio, as an edit that can be undone there.

    Frames are met by video and name; what is not met is said. For the way out a project is a dataset like any other:
    [bold]surgeval data convert PROJECT --to coco --out DIR[/bold].

    Example: [bold]surgeval data import labelme/ --into videos/ --dry-run[/bold]
    """
    from surgeval.studio.exchange import import_dataset, preview_import
    from surgeval.studio.media import find_films, media_folder, register
    from surgeval.studio.store import reading

    into, user = media_folder(into), author or login_name()
    films = find_films(into, skip=_note)
    with _project(into, dry_run) as (database, new):
        _settle_schema(database, new, schema or (_schema_of(source, format) if new else None), user)
        register(database, films, skip=_note)
        with database.reading() as connection:
            used = reading.schema(connection).name
        with progress_bar("frames") as bar:
            bar.phase("reading labels")
            if dry_run:
                report = preview_import(database, source, format=format, replace=replace, advance=bar.advance)
            else:
                report = import_dataset(database, source, author=user, format=format, replace=replace,
                                        advance=bar.advance)  # fmt: skip
    if json:
        print_json({**asdict(report), "schema": used})
        return
    rich_console().print(visible(f"schema: {used}{' (of a new project)' if new else ''}"), markup=False)
    for line in _lines(report, dry_run):
        rich_console().print(line, markup=False, soft_wrap=True)


def _note(reason: str) -> None:
    typer.echo(visible(f"note: left out: {reason}"), err=True)


@contextmanager
def _project(folder: Path, dry_run: bool) -> Iterator[tuple[Database, bool]]:
    """The project of a folder and whether it is a new one, which a dry run makes elsewhere."""
    from surgeval.studio.store import STORE_FILE, Database

    new = not (folder / STORE_FILE).exists()
    with (
        tempfile.TemporaryDirectory() as away,
        Database((Path(away) if new and dry_run else folder) / STORE_FILE) as database,
    ):
        yield database, new


def _schema_of(source: Path, format: str | None) -> str | None:
    """The built-in schema that is named after the label space of the source."""
    from surgeval.datasets import open_dataset
    from surgeval.studio.schema import builtin_schema_names

    name = open_dataset(source, format).space.name
    return name if name in builtin_schema_names() else None


def _settle_schema(database: Database, new: bool, schema: str | None, author: str) -> None:
    """Give a new project its schema; that of a project is changed in the studio, which shows what would be unknown."""
    from surgeval.studio.schema import builtin_schema, builtin_schema_names, read_schema
    from surgeval.studio.store import Request, apply, reading

    if schema is None:
        return
    wanted = builtin_schema(schema) if schema in builtin_schema_names() else read_schema(Path(schema))
    with database.reading() as connection:
        present = reading.schema(connection)
    if present == wanted:
        return
    if not new:
        raise BadInput(visible(f"--schema {wanted.name}: found a project with the schema {present.name}, expected a "
                               "folder that is no project yet: the studio switches schemas"))  # fmt: skip
    apply(database, Request("schema.import", author, "schema.set", {"name": wanted.name, "source": wanted.source}))


def _lines(report: ImportReport, dry_run: bool) -> list[str]:
    missed = report.frames - report.matched
    will = "would be" if dry_run else "were"
    added = f"{counted(report.instances, 'instance')} {will} added ({counted(report.proposals, 'proposal')})"
    lines = [f"{report.format}: {counted(report.matched, 'frame')} of {report.frames} met; {added}, "
             f"{report.present} are there already, {report.removed} {will} removed; "
             f"{counted(report.images, 'frame')} with values of the image, "
             f"{counted(report.flags, 'flag')}"]  # fmt: skip
    if missed:
        lines.append(f"not met: {counted(missed, 'frame')} ({', '.join(map(visible, report.unmatched[:5]))} …)")
    if report.scaled:
        lines.append(f"{counted(report.scaled, 'frame')} of another size: shapes are scaled")
    for missing in report.lacking:
        name = f"{missing.group}.{missing.name}" + (
            f".{missing.attribute} {missing.value}" if missing.attribute else ""
        )
        lines.append(f"not in the schema: {visible(name)} ({missing.count})")
    if report.problems:
        lines += [f"{counted(report.problems, 'record')} that cannot be read:", *map(visible, report.examples[:5])]
    lines += [f"not taken: {loss}" for loss in report.losses]
    if report.versions:
        lines.append(f"stored as {counted(len(report.versions), 'edit')}, which the studio can undo")
    return lines
