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
from surgeval.studio.server.served import Served, View, author_of, json_object

__all__ = ["GIVING", "TAKING"]

Result = TypeVar("Result")
_BLOCK = 1 << 18


async def _exports(project: Served, _asked: Asked) -> Response:
    """The formats, and the exports that there are."""
    folder = project.folder / EXPORTS

    def listed() -> list[str]:
        if not folder.is_dir() or folder.is_symlink():
            return []
        return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink())

    exports = [name for name in await run_in_threadpool(listed) if not name.startswith(".")]
    return JSONResponse({"formats": list(EXPORT_FORMATS), "exports": exports})


async def _export_preview(project: Served, asked: Asked) -> Response:
    body = await json_object(asked)
    format, selection, images = _wanted(body)
    told = await _work(lambda: preview_export(project.folder, project.database, format, selection, images=images))
    return JSONResponse(_export_row(told))


async def _export(project: Served, asked: Asked) -> Response:
    body = await json_object(asked)
    name = body.pop("name", None)
    if not isinstance(name, str):
        raise BadInput("name: found nothing, expected a name for the export")
    format, selection, images = _wanted(body)
    told = await _work(lambda: export_project(project.folder, project.database, name, format, selection, images=images))
    return JSONResponse({**_export_row(told), "name": name, "path": f"{EXPORTS}/{name}"})


async def _download(project: Served, asked: Asked) -> Response:
    """An export as a ZIP; it is made in a file that goes when it was sent."""
    name = asked.path_params["name"]
    folder = path_inside(project.folder, EXPORTS, name)
    if safe_name(name) != name or not folder.is_dir():
        raise DataError(f"{EXPORTS}/{name[:80]}", "found no such export, expected one of those that are listed")

    def make() -> IO[bytes]:
        stream = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when it was sent
        zipped(folder, stream)
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
    offers = await run_in_threadpool(offered_imports, project.folder)
    return JSONResponse([{"path": offer.path, "formats": list(offer.formats)} for offer in offers])


async def _upload(project: Served, asked: Asked) -> Response:
    """A file, or a ZIP of several, into a new folder of `imports`; how long it may be the guard decides."""
    name = asked.query_params.get("name", "")
    if not 0 < len(name) <= 200:
        raise BadInput(f"name: found {len(name)} characters, expected the name of a file")
    with tempfile.TemporaryDirectory() as folder:
        upload = Path(folder) / "upload"
        with upload.open("wb") as stream:
            async for block in asked.stream():
                await run_in_threadpool(stream.write, block)
        unpacked = await _work(lambda: unpack(upload, name, project.folder / IMPORTS))
    path = f"{IMPORTS}/{unpacked.name}"
    offer = await run_in_threadpool(look, project.folder, path)
    if not offer.formats:
        await run_in_threadpool(shutil.rmtree, unpacked, True)
        raise BadInput(
            f"{name[:80]}: found no labels of a known format, expected labelme, COCO, YOLO, CVAT or CholecT50"
        )
    return JSONResponse({"path": path, "formats": list(offer.formats)})


async def _import_preview(project: Served, asked: Asked) -> Response:
    path, format, replace = _source(await json_object(asked))
    report = await _work(lambda: preview_import(project.database, offered_path(project.folder, path), format=format,
                                                replace=replace))  # fmt: skip
    return JSONResponse(_import_row(report))


async def _import(project: Served, asked: Asked) -> Response:
    body = await json_object(asked)
    path, format, replace = _source(body)
    author, session = author_of(project, _text(body, "author")), _text(body, "session") or ""
    run = _text(body, "id")
    async with project.importing:
        report = await _work(lambda: import_dataset(project.database, offered_path(project.folder, path), run=run,
                                                    author=author, session=session, format=format,
                                                    replace=replace))  # fmt: skip
    for version in report.versions[-1:]:
        project.tell({"version": version, "author": author, "session": "", "kind": "project.import", "video": None})
    return JSONResponse(_import_row(report))


async def _work(function: Callable[[], Result]) -> Result:
    """In a thread; a file that cannot be used is a bad request here, not a missing page."""
    try:
        return await run_in_threadpool(function)
    except DataError as error:
        raise BadInput(str(error), code=error.code) from None


def _wanted(body: dict[str, Any]) -> tuple[str, Selection, bool]:
    """Format, selection and whether with images, as a page asks for them."""
    flags = {"proposals": False, "problem_frames": True, "images": True}
    for name in body:
        if name not in (*flags, "format", "rules"):
            raise BadInput(f"export: found the field {name[:40]!r}, expected format, rules, {', '.join(flags)}")
    for name, default in flags.items():
        flags[name] = body.get(name, default)
        if not isinstance(flags[name], bool):
            raise BadInput(f"export: {name}: found {str(body[name])[:40]!r}, expected true or false")
    format = _text(body, "format") or ""
    return format, Selection(flags["proposals"], flags["problem_frames"], _rules(body.get("rules"))), flags["images"]


def _rules(rules: Any) -> tuple[SchemaRule, ...]:
    """None, the rules that come with the studio by their name, or those of a mapping file."""
    if rules is None:
        return ()
    try:
        return builtin_refinement() if rules == "prostatd" else rules_from(rules, "merging")
    except DataError as error:
        raise BadInput(str(error), code=error.code) from None


def _source(body: dict[str, Any]) -> tuple[str, str | None, bool]:
    replace = body.get("replace", False)
    if not isinstance(replace, bool):
        raise BadInput(f"import: replace: found {str(replace)[:40]!r}, expected true or false")
    return _text(body, "path") or "", _text(body, "format"), replace


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not (isinstance(value, str) and len(value) <= 1000):
        raise BadInput(f"{name}: found {str(value)[:40]!r}, expected text")
    return value


def _export_row(told: Export) -> dict[str, Any]:
    refined = [{"group": counts.group, "name": counts.name, "values": dict(counts.values), "before": counts.before,
                "after": counts.after} for counts in told.refined]  # fmt: skip
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
