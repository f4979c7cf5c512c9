"""Import and export: what each would do, said before it is done; uploads and downloads are files of this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response, StreamingResponse

from surgeval.errors import BadInput, DataError
from surgeval.files import path_inside, safe_name
from surgeval.studio.exchange import (
    EXPORT_FORMATS,
    Export,
    ImportReport,
    Selection,
    export_project,
    import_dataset,
    look,
    offered_imports,
    offered_path,
    preview_export,
    preview_import,
    unpack,
    zipped,
)
from surgeval.studio.media import EXPORTS, IMPORTS
from surgeval.studio.schema import SchemaRule, builtin_refinement, rules_from
from surgeval.studio.server._served import Served, View, author_of, json_object

__all__ = ["GIVING", "TAKING"]

Found = TypeVar("Found")
_BLOCK = 1 << 18


async def _exports(project: Served, _asked: Asked) -> Response:
    """The formats, and the exports that there are."""
    place = project.folder / EXPORTS

    def listed() -> list[str]:
        if not place.is_dir() or place.is_symlink():
            return []
        return sorted(path.name for path in place.iterdir() if path.is_dir() and not path.is_symlink())

    made = [name for name in await run_in_threadpool(listed) if not name.startswith(".")]
    return JSONResponse({"formats": list(EXPORT_FORMATS), "exports": made})


async def _export_preview(project: Served, asked: Asked) -> Response:
    given = await json_object(asked)
    format, selection, images = _wanted(given)
    told = await _work(lambda: preview_export(project.folder, project.database, format, selection, images=images))
    return JSONResponse(_export_row(told))


async def _export(project: Served, asked: Asked) -> Response:
    given = await json_object(asked)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise BadInput("name: found nothing, expected a name for the export")
    format, selection, images = _wanted(given)
    told = await _work(lambda: export_project(project.folder, project.database, name, format, selection, images=images))
    return JSONResponse({**_export_row(told), "name": name, "path": f"{EXPORTS}/{name}"})


async def _download(project: Served, asked: Asked) -> Response:
    """An export as a ZIP; it is made in a file that goes when it was sent."""
    name = asked.path_params["name"]
    place = path_inside(project.folder, EXPORTS, name)
    if safe_name(name) != name or not place.is_dir():
        raise DataError(f"{EXPORTS}/{name[:80]}", found="no such export", expected="one of those that are listed")

    def make() -> IO[bytes]:
        stream = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when it was sent
        zipped(place, stream)
        stream.seek(0)
        return stream

    stream = await run_in_threadpool(make)
    headers = {"content-disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}.zip"'}
    return StreamingResponse(_blocks(stream), media_type="application/zip", headers=headers)


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        while block := stream.read(_BLOCK):
            yield block


async def _offers(project: Served, _asked: Asked) -> Response:
    found = await run_in_threadpool(offered_imports, project.folder)
    return JSONResponse([{"path": one.path, "formats": list(one.formats)} for one in found])


async def _upload(project: Served, asked: Asked) -> Response:
    """A file, or a ZIP of several, into a new folder of `imports`; how long it may be the guard decides."""
    name = asked.query_params.get("name", "")
    if not 0 < len(name) <= 200:
        raise BadInput(f"name: found {len(name)} characters, expected the name of a file")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "upload"
        with place.open("wb") as stream:
            async for block in asked.stream():
                await run_in_threadpool(stream.write, block)
        made = await _work(lambda: unpack(place, name, project.folder / IMPORTS))
    path = f"{IMPORTS}/{made.name}"
    found = await run_in_threadpool(look, project.folder, path)
    if not found.formats:
        await run_in_threadpool(shutil.rmtree, made, True)
        raise BadInput(
            f"{name[:80]}: found no labels of a known format, expected labelme, COCO, YOLO, CVAT or CholecT50"
        )
    return JSONResponse({"path": path, "formats": list(found.formats)})


async def _import_preview(project: Served, asked: Asked) -> Response:
    path, format, replace = _source(await json_object(asked))
    report = await _work(lambda: preview_import(project.database, offered_path(project.folder, path), format=format,
                                                replace=replace))  # fmt: skip
    return JSONResponse(_import_row(report))


async def _import(project: Served, asked: Asked) -> Response:
    given = await json_object(asked)
    path, format, replace = _source(given)
    author, session = author_of(project, _text(given, "author")), _text(given, "session") or ""
    run = _text(given, "id")
    async with project.importing:
        report = await _work(lambda: import_dataset(project.database, offered_path(project.folder, path), run=run,
                                                    author=author, session=session, format=format,
                                                    replace=replace))  # fmt: skip
    for version in report.versions[-1:]:
        project.tell({"version": version, "author": author, "session": "", "kind": "project.import", "video": None})
    return JSONResponse(_import_row(report))


async def _work(function: Callable[[], Found]) -> Found:
    """In a thread; a file that cannot be used is a bad request here, not a missing page."""
    try:
        return await run_in_threadpool(function)
    except DataError as error:
        raise BadInput(str(error)) from None


def _wanted(given: dict[str, Any]) -> tuple[str, Selection, bool]:
    """Format, selection and whether with images, as a page asks for them."""
    flags = {"proposals": False, "problem_frames": True, "images": True}
    for name in given:
        if name not in (*flags, "format", "rules"):
            raise BadInput(f"export: found the field {name[:40]!r}, expected format, rules, {', '.join(flags)}")
    for name, default in flags.items():
        flags[name] = given.get(name, default)
        if not isinstance(flags[name], bool):
            raise BadInput(f"export: {name}: found {str(given[name])[:40]!r}, expected true or false")
    format = _text(given, "format") or ""
    return format, Selection(flags["proposals"], flags["problem_frames"], _rules(given.get("rules"))), flags["images"]


def _rules(given: Any) -> tuple[SchemaRule, ...]:
    """None, the rules that come with the studio by their name, or those of a mapping file."""
    if given is None:
        return ()
    try:
        return builtin_refinement() if given == "prostatd" else rules_from(given, "merging")
    except DataError as error:
        raise BadInput(str(error)) from None


def _source(given: dict[str, Any]) -> tuple[str, str | None, bool]:
    replace = given.get("replace", False)
    if not isinstance(replace, bool):
        raise BadInput(f"import: replace: found {str(replace)[:40]!r}, expected true or false")
    return _text(given, "path") or "", _text(given, "format"), replace


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not (isinstance(value, str) and len(value) <= 1000):
        raise BadInput(f"{name}: found {str(value)[:40]!r}, expected text")
    return value


def _export_row(told: Export) -> dict[str, Any]:
    refined = [{"group": one.group, "name": one.name, "values": dict(one.values), "before": one.before,
                "after": one.after} for one in told.refined]  # fmt: skip
    return {"format": told.format, "frames": told.frames, "labelled": told.labelled, "instances": told.instances,
            "losses": list(told.losses), "refined": refined}  # fmt: skip


def _import_row(report: ImportReport) -> dict[str, Any]:
    return {**asdict(report), "missed": report.frames - report.matched}


GIVING: dict[str, View] = {"/api/exports": _exports, "/api/exports/{name}.zip": _download, "/api/imports": _offers}
TAKING: dict[str, View] = {
    "/api/export/preview": _export_preview,
    "/api/export": _export,
    "/api/import/upload": _upload,
    "/api/import/preview": _import_preview,
    "/api/import": _import,
}
