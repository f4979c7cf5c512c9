"""What the views share: the project that is served, errors as sentences, and reading what was asked."""

from __future__ import annotations

import asyncio
import errno
import math
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response

from surgeval.errors import BadInput, DataError, SurgevalError, visible
from surgeval.files import BrokenJson, parse_json
from surgeval.studio.jobs import Jobs
from surgeval.studio.lanes import Lanes
from surgeval.studio.pictures import EncodedPicture, Pictures
from surgeval.studio.store import Conflict, Database, NoRoom, NotStored, Request, VideoState, reading

__all__ = [
    "Served", "View", "answering", "author_of", "edit_of", "frame_range", "json_object", "number_of", "picture_answer",
    "range_of", "text_of", "video_of", "whole_number",
]  # fmt: skip

if TYPE_CHECKING:
    from surgeval.studio.question_desk import QuestionDesk

Result = TypeVar("Result")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_JSON = 8 << 20  # bytes: as empty lists they become twenty times as many


@dataclass
class Served:
    """What the server serves: a store, its pictures, and who sits before it."""

    name: str
    folder: Path  # where the films are, and what is imported and exported
    database: Database
    pictures: Pictures
    author: str
    shared: bool = False  # several people: each says who he or she is
    token: str | None = None  # what every request needs; None: nothing
    detectors: tuple[str, ...] = ()  # that whoever started the server offers, beside the embedded ones
    jobs: Jobs = field(default_factory=Jobs)
    lanes: Lanes = field(default_factory=Lanes)
    skipped: tuple[str, ...] = ()  # why films of the folder are not served
    questions: QuestionDesk | None = None  # where the folder is a set of questions
    listeners: set[asyncio.Queue[dict[str, Any]]] = field(default_factory=set)
    edited: asyncio.Event = field(default_factory=asyncio.Event)  # there is news for them
    importing: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time: each looks at what is there
    loop: asyncio.AbstractEventLoop | None = None  # in which the server runs

    async def read(self, look: Callable[[Connection], Result]) -> Result:
        """Read in a thread of its own: the server goes on meanwhile."""

        def work() -> Result:
            with self.database.reading() as connection:
                return look(connection)

        return await run_in_threadpool(work)

    def hang_up(self) -> None:
        """Let the pages go that listen: a server that ends would wait for them. From any thread."""
        for queue in list(self.listeners):
            self.listeners.discard(queue)
            if self.loop is not None and not queue.full():
                self.loop.call_soon_threadsafe(queue.put_nowait, {})

    def tell(self, event: dict[str, Any]) -> None:
        """Tell every open page of an edit; one that does not listen any more is left behind."""
        for queue in list(self.listeners):
            if queue.full():
                self.listeners.discard(queue)
            else:
                queue.put_nowait(event)


View: TypeAlias = Callable[[Served, Asked], Awaitable[Response]]


def answering(project: Served, view: View) -> Callable[[Asked], Awaitable[Response]]:
    """Errors as sentences with the status that fits them."""

    async def answer(asked: Asked) -> Response:
        try:
            return await view(project, asked)
        except Conflict as error:
            return _refusal(error, 409, who=error.author, what=error.subject)
        except NoRoom as error:
            return _refusal(error, 507)
        except NotStored as error:
            return _refusal(error, 503)
        except DataError as error:
            return _refusal(error, 404)
        except SurgevalError as error:
            return _refusal(error, 400)
        except OSError as error:  # of files that a request writes: what it asked for is not done
            status = 507 if error.errno in _NO_ROOM else 500
            message = visible(f"{error.filename or 'file'}: found {error.strerror or error}, expected to write it")
            return JSONResponse({"error": message}, status)

    return answer


def _refusal(error: SurgevalError, status: int, **more: str) -> Response:
    """The sentence, and the code and parts from which the page makes one in its own language."""
    return JSONResponse({"error": str(error), "code": error.code, "parts": error.parts, **more}, status)


async def json_object(asked: Asked) -> dict[str, Any]:
    """The body of a request: a JSON object, whose type the sender says."""
    if asked.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise BadInput("request: found another content type, expected application/json")
    body = await asked.body()
    if len(body) > _MOST_JSON:
        raise HTTPException(413, f"request: found {len(body)} bytes, expected at most {_MOST_JSON}")
    try:
        parsed = await run_in_threadpool(lambda: parse_json(body.decode("utf-8"), finite=True, distinct=True))
    except (BrokenJson, UnicodeDecodeError) as error:
        raise BadInput(f"request: found no JSON ({error}), expected an object") from None
    if not isinstance(parsed, dict):
        raise BadInput("request: found no object, expected one")
    return parsed


def author_of(project: Served, name: str | None) -> str:
    """Who asks: on a shared server each says so, on one's own machine it is whoever started it."""
    return name or project.author if project.shared else project.author


def text_of(body: Mapping[str, Any], name: str, most: int, *, default: str | None = None) -> str:
    """A text of a request's body."""
    value = body.get(name, default)
    if not isinstance(value, str) or len(value) > most or not (value or default == ""):
        shown = "nothing" if value is None else repr(value)[:60]
        raise BadInput(f"{name}: found {visible(shown)}, expected text of at most {most} characters")
    return value


def number_of(body: Mapping[str, Any], name: str, default: float, least: float, most: float) -> float:
    """A number of a request's body."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"{name}: found {visible(repr(value)[:40])}, expected a number")
    if not least <= value <= most:
        raise BadInput(f"{name}: found {value:g}, expected {least:g} to {most:g}")
    return float(value)


def range_of(body: Mapping[str, Any], frames: int) -> tuple[int, int] | None:
    """The frames `first` to `last` of a request's body; None where it names none: the whole video."""
    if body.get("first") is None and body.get("last") is None:
        return None
    first, last = (number_of(body, name, -1, 0, max(frames - 1, 0)) for name in ("first", "last"))
    if first > last:
        raise BadInput(f"last: found {last:.0f}, expected a frame not before the first, {first:.0f}")
    return int(first), int(last)


def edit_of(project: Served, body: Mapping[str, Any], kind: str, payload: Mapping[str, Any]) -> Request:
    """The edit that a request asks for in its own words: who, in which tab, having seen which version."""
    base = body.get("base")
    if base is not None and (isinstance(base, bool) or not isinstance(base, int)):
        raise BadInput(f"base: found {str(base)[:40]!r}, expected a version")
    author, session = text_of(body, "author", 100, default=""), text_of(body, "session", 100, default="")
    return Request(text_of(body, "id", 80), author_of(project, author), kind, payload, base, session)


def video_of(connection: Connection, wanted: str) -> VideoState:
    """The video that an address names."""
    video = next((video for video in reading.videos(connection) if video.id == wanted), None)
    if video is None:
        raise BadInput(f"video: found {wanted[:60]!r}, expected one of the project")
    return video


def frame_range(asked: Asked, most: int) -> tuple[int, int]:
    """The frames `first` to `last` of a request, at most so many."""
    first = whole_number(asked, "first")
    last = whole_number(asked, "last", first)
    if not first <= last < first + most:
        raise BadInput(f"last: found {last}, expected {first} to {first + most - 1}")
    return first, last


def whole_number(asked: Asked, name: str, default: int = 0) -> int:
    """A whole number that is part of an address."""
    text = asked.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise BadInput(f"{name}: found {text[:40]!r}, expected a whole number")
    return int(text)


def picture_answer(asked: Asked, picture: EncodedPicture) -> Response:
    """A picture; nothing of it where the page has it already."""
    tag = f'"{zlib.crc32(picture.data):08x}{len(picture.data):x}"'
    headers = {"etag": tag, "cache-control": "private, max-age=600"}
    if asked.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(picture.data, media_type=picture.kind, headers=headers)
